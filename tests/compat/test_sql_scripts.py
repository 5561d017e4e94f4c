"""The rows of `tests/fixtures/sql/scripts.json` are those that Apache Hudi has."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.helpers.oracle.client import HudiOracle
from tests.helpers.sql_scripts import (
    FILE,
    RECORDED,
    RELEASE,
    create_statement,
    load,
    normalize_rows,
    steps,
)

RECORD = "PYHUDI_RECORD_SQL"
"""Set it to write what Hudi has into the file."""


@pytest.mark.parametrize("hudi", [RELEASE], indirect=True)
@pytest.mark.parametrize("case", RECORDED)
def test_sql_scripts_rows_are_hudis(case: str, hudi: HudiOracle, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    name, _, table_type = case.partition("-")
    hudi.sql(base, "DROP TABLE IF EXISTS trips")
    hudi.sql(base, create_statement(base, table_type))
    rows = []
    for statement, query in steps(name):
        if statement is not None:
            hudi.sql(base, statement)
        rows.append(normalize_rows(hudi.sql(base, query)["rows"]))
    if RECORD in os.environ:
        recorded = (load() if FILE.exists() else {}) | {case: rows}
        FILE.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
    assert load()[case] == rows
