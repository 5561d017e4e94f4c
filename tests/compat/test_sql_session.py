"""The same SQL on twin tables: Apache Hudi on Spark on one, pyhudi without Spark on the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.oracle.client import HudiOracle

pytestmark = pytest.mark.filterwarnings("ignore::pyhudi.DuplicateKeyWarning")

CREATE = """CREATE TABLE trips (id STRING, n INT, fare DOUBLE, ts BIGINT, `order` STRING,
city STRING)
USING hudi PARTITIONED BY (city) LOCATION '{base}'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = '{type}')"""
STATEMENTS = (
    """INSERT INTO {table} VALUES ('a', 1, 1.5, 1, 'x;', 'oslo'), ('b', 2, NULL, 1, 'y', 'rome'),
    ('c', 3, 3.5, 1, NULL, 'oslo'), ('d', 4, 4.5, 1, 'its', 'lima')""",
    "INSERT INTO {table} (city, ID, ts, n) VALUES ('quito', 'e', 1, 5)",
    "UPDATE {table} SET FARE = n * 2, n = 10 WHERE fare IS NULL AND `order` = 'y' -- a comment;",
    "UPDATE {table} SET fare = CASE WHEN n > 3 THEN fare / 2 ELSE fare + 1 END",
    "DELETE FROM {table} WHERE id = 'd' OR fare > 100",
)
"""Statements that both run; `{table}` is the table. `test_sql_scripts.py` has those of MERGE."""
SELECT = "SELECT id, n, fare, ts, `order`, city FROM {table}"


@pytest.mark.hudi("1.2.0")
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_sql_leaves_the_rows_of_hudis_sql(
    table_type: str, hudi: HudiOracle, tmp_path: Path
) -> None:
    """Hudi also reads what each statement of pyhudi wrote."""
    twin, own = tmp_path / "twin", tmp_path / "own"
    hudi.sql(twin, "DROP TABLE IF EXISTS trips")
    hudi.sql(twin, CREATE.format(base=twin, type=table_type))
    pyhudi.sql(CREATE.format(base=own, type=table_type))
    for statement in STATEMENTS:
        hudi.sql(twin, statement.replace("{table}", "trips"))
        pyhudi.sql(statement.replace("{table}", f"hudi.`{own}`"))
        expected = by_id(hudi.sql(twin, SELECT.replace("{table}", "trips"))["rows"])
        found = pyhudi.sql(SELECT.replace("{table}", f"hudi.`{own}`"))
        assert isinstance(found, pa.Table)
        assert by_id(found.to_pylist()) == expected, statement
        read = [{name: row[name] for name in found.column_names} for row in hudi.read(own)["rows"]]
        assert by_id(read) == expected, statement
    assert not pyhudi.open_table(own).check().findings


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: str(row["id"]))
