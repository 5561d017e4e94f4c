"""Apache Hudi reads and writes a table after a rollback past a compaction of its metadata table."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyhudi
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.shared_table import Pair
from tests.unit.test_compacted_rollbacks import COMPACT_EACH, unpublish
from tests.unit.test_savepoints import people


@pytest.mark.timeout(600)
@pytest.mark.parametrize("hudi", ["0.15.0", "1.2.0"], indirect=True)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_hudi_goes_on_after_the_rollback(hudi: HudiOracle, kind: str, tmp_path: Path) -> None:
    pair = Pair(hudi, tmp_path / "visits", kind)
    pair.hudi_writes(range(3), 2)
    table = pair.table
    for v in (3, 4):
        table.refresh().upsert(people(range(4), v))
    compacting = pyhudi.open_table(table.uri, options=COMPACT_EACH)
    instant = compacting.upsert(people(range(2, 8), 9)).instant
    compacting.clean(retain=3)
    unpublish(tmp_path / "visits", instant)
    pair.pyhudi_writes(range(1), 10)
    rows = {"k0": 10, "k1": 4, "k2": 4, "k3": 4}
    pair.check(rows)
    pair.hudi_writes(range(3, 6), 11)
    pair.check({**rows, "k3": 11, "k4": 11, "k5": 11})
