"""The results in `tests/fixtures/options/maps.json` are those of Apache Hudi."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.helpers.options_maps import (
    COLUMNS,
    FILE,
    RELEASE,
    Recorded,
    cases,
    load,
    normalize_rows,
    properties,
    writes,
)
from tests.helpers.oracle.client import HudiOracle

RECORD = "PYHUDI_RECORD_OPTIONS"
"""Set it to write what Hudi makes of all maps into the file."""


@pytest.mark.parametrize("hudi", [RELEASE], indirect=True)
@pytest.mark.parametrize("case", cases() if RECORD in os.environ else load())
def test_results_of_options_map_are_hudis(case: str, hudi: HudiOracle, tmp_path: Path) -> None:
    base, options = tmp_path / "t", cases()[case]
    for rows, options_of_write in writes(options):
        hudi.write(base, rows, COLUMNS, operation=None, options=options_of_write)
    found = hudi.read(base, meta=True)["rows"]
    result = Recorded(normalize_rows(found, options, base), properties(base))
    if RECORD in os.environ:
        recorded = json.loads(FILE.read_text()) if FILE.exists() else {}
        recorded[case] = asdict(result)
        FILE.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
    assert load()[case] == result
