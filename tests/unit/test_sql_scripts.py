"""Statements without Spark leave the rows that Apache Hudi has after them (see `sql_scripts`)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.sql_statements.relations import Relations
from pyhudi.sql_statements.session import SqlSession
from tests.helpers.sql_scripts import (
    RECORDED,
    create_statement,
    for_duckdb,
    load,
    normalize_rows,
    steps,
)

pytestmark = pytest.mark.filterwarnings("ignore::pyhudi.DuplicateKeyWarning")


@pytest.mark.parametrize(
    "case", [case for case in [*RECORDED, "merge-mor"] if "change" not in case]
)
def test_sql_script_has_hudis_rows(case: str, tmp_path: Path) -> None:
    name, _, table_type = case.partition("-")
    session = SqlSession(Relations())
    session.run(create_statement(tmp_path / "trips", table_type))
    for (statement, query), rows in zip(steps(name), load()[case], strict=True):
        if statement is not None:
            session.run(for_duckdb(statement))
        found = session.run(for_duckdb(query))
        assert isinstance(found, pa.Table)
        assert normalize_rows(found.to_pylist()) == rows, statement or query
