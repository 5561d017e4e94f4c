"""The same random MERGE statements on twin tables, one by Apache Hudi and one by pyhudi."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.merge_statements import COLUMNS, MergeStatements
from tests.helpers.oracle.client import HudiOracle

CREATE = """CREATE TABLE trips ({columns}) USING hudi PARTITIONED BY (city) LOCATION '{base}'
TBLPROPERTIES (primaryKey = 'id', orderingFields = 'ts', type = '{type}')"""
SELECT = "SELECT id, n, ts, city FROM trips ORDER BY id"


def create(hudi: HudiOracle, base: Path, table_type: str) -> None:
    columns = ", ".join(f"{name} {data_type}" for name, data_type in COLUMNS.items())
    hudi.sql(base, "DROP TABLE IF EXISTS trips")
    hudi.sql(base, CREATE.format(columns=columns, base=base, type=table_type))


@pytest.mark.hudi("1.2.0")
@pytest.mark.parametrize("seed", range(2))
def test_merge_leaves_the_rows_of_hudis_merge(seed: int, hudi: HudiOracle, tmp_path: Path) -> None:
    twin, statements = tmp_path / "twin", MergeStatements(seed)
    create(hudi, twin, "cow")
    columns = ", ".join(f"{name} {data_type}" for name, data_type in COLUMNS.items())
    pyhudi.sql(CREATE.format(columns=columns, base=tmp_path / "own", type="cow"))
    own = pyhudi.open_table(tmp_path / "own")
    first = f"INSERT INTO trips VALUES {statements.rows()}"
    hudi.sql(twin, first)
    pyhudi.sql(first, {"trips": own})
    for _ in range(5):
        statement = statements.merge(by_source=False)
        hudi.sql(twin, statement)
        pyhudi.sql(statement, {"trips": own})
        expected = sorted(hudi.sql(twin, SELECT)["rows"], key=lambda row: str(row["id"]))
        result = pyhudi.sql(SELECT, {"trips": own})
        assert isinstance(result, pa.Table)
        assert result.to_pylist() == expected, statement


@pytest.mark.hudi("1.2.0")
def test_merge_not_matched_by_source_is_ignored_by_hudi(hudi: HudiOracle, tmp_path: Path) -> None:
    """So pyhudi's clause is compared with DuckDB's in `tests/unit/test_sql_merge_statement.py`."""
    base = tmp_path / "t"
    create(hudi, base, "cow")
    hudi.sql(base, "INSERT INTO trips VALUES ('a', 1, 1, 'oslo'), ('b', 2, 1, 'rome')")
    hudi.sql(
        base,
        "MERGE INTO trips t USING (SELECT 'a' AS id, 9 AS n, 2L AS ts, 'oslo' AS city) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n, ts = s.ts "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE",
    )
    assert [(row["id"], row["n"]) for row in hudi.sql(base, SELECT)["rows"]] == [("a", 9), ("b", 2)]


@pytest.mark.hudi("1.2.0")
def test_delete_by_prefix_leaves_rows_by_hudis_data_skipping(
    hudi: HudiOracle, tmp_path: Path
) -> None:
    """Hudi skips files for `LIKE 'prefix%'` that have such rows, also in a DELETE."""
    statement = "DELETE FROM trips WHERE id LIKE 'ap%' OR n IN (7, 8)"
    remaining = {}
    for skipping in ("true", "false"):
        base = tmp_path / skipping
        conf = {
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.index.column.stats.enable": "true",
            "hoodie.enable.data.skipping": skipping,
        }
        create(hudi, base, "cow")
        rows = "('apple', 1, 1, 'oslo'), ('pear', 2, 1, 'oslo')"
        hudi.sql(base, f"INSERT INTO trips VALUES {rows}", conf)
        if skipping == "true":
            own = tmp_path / "own"
            shutil.copytree(base, own)
            pyhudi.sql(statement, {"trips": pyhudi.open_table(own)})
            remaining["pyhudi"] = pyhudi.open_table(own).to_arrow()["id"].to_pylist()
        hudi.sql(base, statement, conf)
        remaining[skipping] = [row["id"] for row in hudi.sql(base, SELECT)["rows"]]
    assert remaining == {"pyhudi": ["pear"], "true": ["apple", "pear"], "false": ["pear"]}
