"""pyhudi and Apache Hudi show together what the committed table of anomalies says."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from tests.anomalies import results
from tests.anomalies.beside_hudi import RELEASES, measure_beside
from tests.anomalies.scripted_run import Place
from tests.helpers.oracle.client import HudiOracle


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("hudi", RELEASES, indirect=True)
def test_interleavings_with_hudi_show_committed_results(hudi: HudiOracle, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measured = measure_beside(hudi, Place(tmp_path))
    committed = results.load()
    for mode, outcomes in measured.items():
        for name, outcome in outcomes.items():
            # On a busy machine Hudi may be faster each time.
            assert outcome["interleavings"] or name.endswith("Hudi last")
            if outcome["interleavings"]:
                assert outcome == committed[mode][name], name
