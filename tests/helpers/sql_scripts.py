"""Statements of Spark SQL, with the rows that Apache Hudi 1.2.0 has after each of them.

`tests/compat/test_sql_scripts.py` checks that Hudi has these rows;
`tests/spark/test_sql_scripts.py` runs the same statements on pyhudi.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "fixtures/sql/scripts.json"
TYPES = ("cow", "mor")
RELEASE = "1.2.0"

SELECT = "SELECT id, n, fare, at, tags, city FROM trips"
_CREATE = """CREATE TABLE trips (id STRING, n INT, fare DOUBLE, at BIGINT, tags ARRAY<STRING>,
city STRING) USING hudi PARTITIONED BY (city) LOCATION '{base}'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'at', type = '{type}')"""
_ROWS = """('a', 1, 1.5, 1, array('x'), 'oslo'), ('b', 2, 2.5, 1, NULL, 'rome'),
('c', 3, NULL, 1, array('y', 'z'), 'oslo')"""

SCRIPTS: dict[str, tuple[str, ...]] = {
    "insert": (
        f"INSERT INTO trips VALUES {_ROWS}",
        "INSERT INTO trips SELECT 'd', 4, 4, 1, NULL, 'bergen'",
        "INSERT INTO trips PARTITION (city = 'lima') SELECT 'e', 5, 5, 1, array('q')",
        "INSERT INTO trips PARTITION (city) SELECT 'f', 6, 6, 1, array('q'), 'lima'",
        "INSERT INTO trips (city, id, at, n) VALUES ('quito', 'g', 1, 7)",
        "INSERT INTO trips VALUES ('a', 10, 10, 2, NULL, 'oslo')",
        "SET hoodie.spark.sql.insert.into.operation=upsert",
        "INSERT INTO trips VALUES ('b', 20, 20, 2, NULL, 'rome'), ('h', 8, 8, 1, NULL, 'rome')",
        "SET hoodie.spark.sql.insert.into.operation=insert",
    ),
    "overwrite": (
        f"INSERT INTO trips VALUES {_ROWS}",
        "INSERT OVERWRITE trips PARTITION (city = 'oslo') SELECT 'd', 4, 4.0, 1L, array('q')",
        "INSERT OVERWRITE trips PARTITION (city = 'rome') SELECT 'd', 4, 4.0, 1L, NULL WHERE false",
        "INSERT OVERWRITE trips PARTITION (city) SELECT 'e', 5, 5.0, 1L, array('q'), 'lima'",
        "INSERT OVERWRITE TABLE trips SELECT 'f', 6, 6.0, 1L, array('q'), 'oslo'",
        "SET hoodie.datasource.overwrite.mode=DYNAMIC",
        "INSERT OVERWRITE trips SELECT 'g', 7, 7.0, 1L, array('q'), 'rome'",
        "SET hoodie.datasource.overwrite.mode=STATIC",
        "TRUNCATE TABLE trips PARTITION (city = 'rome')",
        "INSERT INTO trips VALUES ('h', 8, 8, 1, NULL, 'rome')",
        "ALTER TABLE trips DROP PARTITION (city = 'oslo')",
        "TRUNCATE TABLE trips",
    ),
    "change": (
        f"INSERT INTO trips VALUES {_ROWS}",
        "UPDATE trips SET fare = 9, n = n + 1 WHERE id = 'a'",
        "UPDATE trips SET n = 12.0, tags = array('w') WHERE city = 'oslo' AND fare IS NULL",
        "UPDATE trips AS t SET t.fare = CASE WHEN t.n > 2 THEN 1 ELSE t.fare * 2 END",
        "UPDATE trips SET fare = NULL WHERE id IN (SELECT id FROM trips WHERE n = 2)",
        "DELETE FROM trips WHERE id = 'b' OR fare > 100",
        "DELETE FROM trips WHERE id IN (SELECT id FROM trips WHERE n = 2)",
        "DELETE FROM trips",
    ),
    "merge": (
        f"INSERT INTO trips VALUES {_ROWS}",
        """MERGE INTO trips AS t USING (
          SELECT 'a' AS id, 10 AS n, 10.5D AS fare, 2L AS at, array('m') AS tags, 'oslo' AS city
          UNION ALL SELECT 'd', 4, 4.5D, 2L, NULL, 'rome') s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""",
        """MERGE INTO trips t USING (SELECT 'a' AS id, 'delete' AS what, 3L AS at, 'oslo' AS city
          UNION ALL SELECT 'b', 'set', 3L, 'rome' UNION ALL SELECT 'x', 'ignore', 3L, 'rome'
          UNION ALL SELECT 'e', 'insert', 3L, 'lima') s ON t.id = s.id
        WHEN MATCHED AND s.what = 'delete' THEN DELETE
        WHEN MATCHED AND s.what = 'set' THEN UPDATE SET t.fare = length(s.what) * 2, at = s.at
        WHEN NOT MATCHED AND s.what = 'insert' THEN
          INSERT (id, n, fare, at, tags, city)
          VALUES (s.id, 5, length(s.what), s.at, NULL, s.city)""",
        """MERGE INTO trips t USING (SELECT 'c' AS id, 5 AS n, 2L AS at, 'oslo' AS city) AS s
        ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n + 100, at = s.at""",
    ),
    "columns": (
        f"INSERT INTO trips VALUES {_ROWS}",
        "ALTER TABLE trips ADD COLUMNS (note STRING COMMENT 'free text')",
        "UPDATE trips SET note = 'new' WHERE id = 'a'",
        "SELECT id, note FROM trips",
        "SELECT city, count(*), sum(n) FROM trips GROUP BY city",
        "SHOW PARTITIONS trips",
    ),
}
"""Statements on a new table `trips`. After each the rows are those of the statement if it is a
query, and otherwise those of `SELECT`. Sources of MERGE have the partition column, without which
Hudi looks for a key in the partition of null."""

RECORDED = [
    f"{name}-{kind}" for name in SCRIPTS for kind in TYPES if (name, kind) != ("merge", "mor")
]
"""The scripts that Hudi runs. It refuses the values and conditions of this MERGE on
merge-on-read."""


def create_statement(base: Path, table_type: str) -> str:
    """Return the statement that creates the table of a script."""
    return _CREATE.format(base=base, type=table_type)


def steps(name: str) -> Iterator[tuple[str | None, str]]:
    """Yield each statement that changes something (or None) and the query after it."""
    for statement in SCRIPTS[name]:
        if statement.startswith(("SELECT", "SHOW")):
            yield None, statement
        else:
            yield statement, SELECT


def normalize_rows(rows: list[dict[str, Any]]) -> list[str]:
    """Return rows in a form and order that compare."""
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def load() -> dict[str, list[list[str]]]:
    """Return the rows after each statement, by script and type of table."""
    data: dict[str, list[list[str]]] = json.loads(FILE.read_text())
    return {**data, "merge-mor": data["merge-cow"]}


def for_duckdb(statement: str) -> str:
    """Return a statement with DuckDB's literals and quotes in place of Spark's."""
    statement = re.sub(r"\b(\d+)L\b", r"\1::BIGINT", re.sub(r"([\d.]+)D\b", r"\1e0", statement))
    if not statement.startswith("UPDATE"):
        statement = re.sub(r"array\(([^)]*)\)", r"[\1]", statement)
    for name, value in (("count(1)", "count(*)"), ("sum(n)", "sum(n)")):
        statement = statement.replace(value, f'CAST({value} AS BIGINT) AS "{name}"')
    return re.sub(r"\bat\b", '"at"', statement)
