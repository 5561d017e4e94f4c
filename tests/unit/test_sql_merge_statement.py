"""MERGE INTO without Spark: which rows match, which columns a clause may name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable, WriteResult
from pyhudi.errors import ConfigError, SchemaMismatch, UnsupportedTableFeature
from pyhudi.input.lazy_rows import LazyRows
from tests.helpers.merge_statements import COLUMNS, MergeStatements

ROWS = pa.table(
    {
        "id": ["a", "b"],
        "n": pa.array([1, 2], pa.int32()),
        "city": ["oslo", "rome"],
        "note": ["x", "y"],
    }
)
SOURCE = pa.table({"ID": ["a", "c"], "n": [10, 30], "town": ["oslo", "lima"], "note": [None, "z"]})


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    return pyhudi.create_table(tmp_path / "trips", ROWS, key="id", partition_by="city")


def merge(table: HudiTable, clauses: str, on: str = "t.id = s.id AND city = town") -> WriteResult:
    result = table.sql(f"MERGE INTO trips t USING src AS s ON {on} {clauses}", {"src": SOURCE})
    assert isinstance(result, WriteResult)
    return result


def rows(table: HudiTable) -> list[tuple[Any, ...]]:
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    return [tuple(row.values()) for row in found]


def test_merge_takes_key_and_partition_from_the_condition(table: HudiTable) -> None:
    merge(table, "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    assert rows(table) == [("a", 10, "oslo", None), ("b", 2, "rome", "y"), ("c", 30, "lima", "z")]


@pytest.mark.parametrize(
    "on",
    [
        "(s.id = t.id) AND s.town = t.city",
        "trips.ID = src.ID AND trips.city = src.town",
        'T."id" = S.`id` and (T.CITY = S.TOWN)',
    ],
)
def test_merge_condition_may_be_in_any_order_and_case(table: HudiTable, on: str) -> None:
    if "src." in on:
        table.sql(f"MERGE INTO trips USING src ON {on} WHEN MATCHED THEN DELETE", {"src": SOURCE})
    else:
        merge(table, "WHEN MATCHED THEN DELETE", on)
    assert rows(table) == [("b", 2, "rome", "y")]


def test_merge_partition_may_come_from_an_insert_clause(table: HudiTable) -> None:
    merge(
        table,
        """WHEN MATCHED AND t.n + s.n > 100 THEN DELETE
        WHEN MATCHED THEN UPDATE SET id = s.id, CITY = s.town, t.note = t.note || s.n::STRING,
          n = CASE WHEN t.n = 1 THEN s.n * 2 ELSE 0 END
        WHEN NOT MATCHED AND n > 100 THEN INSERT *
        WHEN NOT MATCHED THEN INSERT (city, id, n) VALUES (town, s.ID, n + 1)""",
        "t.id = s.id",
    )
    assert rows(table) == [("a", 20, "oslo", "x10"), ("b", 2, "rome", "y"), ("c", 31, "lima", None)]


def test_merge_source_may_read_the_table(table: HudiTable) -> None:
    result = table.sql(
        """MERGE INTO trips USING (SELECT id, city, max(n) OVER () AS most FROM trips
          UNION ALL SELECT 'z', 'lima', 0) AS s ON trips.id = s.id
        WHEN MATCHED THEN UPDATE SET n = trips.n + most
        WHEN NOT MATCHED THEN INSERT (id, city, n) VALUES (s.id, s.city, most)"""
    )
    assert isinstance(result, WriteResult)
    assert rows(table) == [("a", 3, "oslo", "x"), ("b", 4, "rome", "y"), ("z", 0, "lima", None)]


def test_merge_source_may_be_an_earlier_snapshot(table: HudiTable) -> None:
    first = table.history().column("instant")[0].as_py()
    table.sql("UPDATE t SET n = 99, note = NULL")
    table.sql(
        f"""MERGE INTO trips t USING trips VERSION AS OF {first} s ON t.id = s.id
        WHEN MATCHED AND s.id <> 'b' THEN UPDATE SET *"""
    )
    assert rows(table) == [("a", 1, "oslo", "x"), ("b", 99, "rome", None)]


@pytest.mark.parametrize(
    ("on", "clauses", "error", "message"),
    [
        ("city = town", "WHEN MATCHED THEN DELETE", ConfigError, "key column 'id'"),
        (
            "t.id = s.id AND t.n = s.n",
            "WHEN MATCHED THEN DELETE",
            ConfigError,
            "not part of the key",
        ),
        ("t.id = s.id OR true", "WHEN MATCHED THEN DELETE", ConfigError, "does not compare"),
        ("t.id = lower(s.id)", "WHEN MATCHED THEN DELETE", ConfigError, "does not compare"),
        ("t.id = s.id AND city = 'x'", "WHEN MATCHED THEN DELETE", ConfigError, "does not compare"),
        ("id = s.id", "WHEN MATCHED THEN DELETE", ConfigError, "'id' is ambiguous"),
        ("t.id = s.id AND t.id = s.town", "WHEN MATCHED THEN DELETE", ConfigError, "twice"),
        (
            "t.id = s.town AND city = s.note",
            "WHEN MATCHED THEN DELETE",
            ConfigError,
            "the source has a column 'ID'",
        ),
        ("t.id = s.id", "WHEN MATCHED THEN DELETE", SchemaMismatch, "partition column 'city'"),
        (None, "WHEN MATCHED THEN UPDATE SET n = n", ConfigError, "'n' is ambiguous"),
        (None, "WHEN MATCHED THEN UPDATE SET n = s.x", SchemaMismatch, "no column 's.x'"),
        (None, "WHEN MATCHED THEN UPDATE SET x = 1", SchemaMismatch, "no column 'x'"),
        (None, "WHEN MATCHED THEN UPDATE SET id = 'x'", ConfigError, "UPDATE sets 'id'"),
        (None, "WHEN MATCHED THEN UPDATE SET city = note", ConfigError, "'note' is ambiguous"),
        (None, "WHEN MATCHED THEN UPDATE SET city = s.note", ConfigError, "UPDATE sets 'city'"),
        (None, "WHEN MATCHED THEN UPDATE SET n = 1, t.N = 2", ConfigError, "twice"),
        (None, "WHEN NOT MATCHED AND t.n = 1 THEN INSERT *", SchemaMismatch, "no column 't.n'"),
        (None, "WHEN NOT MATCHED THEN INSERT (n) VALUES (1)", SchemaMismatch, "null"),
        (
            None,
            "WHEN NOT MATCHED THEN INSERT (id, city) VALUES ('x', town)",
            ConfigError,
            "other keys",
        ),
    ],
)
def test_merge_refuses_what_the_key_cannot_decide(
    table: HudiTable, on: str | None, clauses: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        merge(table, clauses, on or "t.id = s.id AND city = town")
    assert table.history().num_rows == 1


def test_merge_refuses_sources_that_match_a_row_twice(table: HudiTable) -> None:
    with pytest.raises(SchemaMismatch, match="several rows of one key"):
        table.sql(
            """MERGE INTO trips t USING (SELECT 'a' AS id, 'oslo' AS city, range AS n
            FROM range(2)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n"""
        )
    with pytest.raises(SchemaMismatch, match="the source does not have the column 'note'"):
        table.sql(
            """MERGE INTO trips t USING (SELECT 'a' AS id, 1 AS n, 'oslo' AS city) s
            ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"""
        )
    with pytest.raises(ConfigError, match="both called 'trips'"):
        table.sql("MERGE INTO trips USING trips ON trips.id = trips.id WHEN MATCHED THEN DELETE")


def test_merge_needs_a_record_key(tmp_path: Path) -> None:
    table = pyhudi.create_table(tmp_path / "t", ROWS, key=None)
    with pytest.raises(UnsupportedTableFeature, match="recordkey"):
        table.sql("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE", {"s": SOURCE})


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("seed", range(3))
def test_merge_leaves_the_rows_of_duckdbs_merge(table_type: Any, seed: int, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", minversion="1.4")
    connection, statements = duckdb.connect(), MergeStatements(seed)
    columns = ", ".join(f"{name} {data_type}" for name, data_type in COLUMNS.items())
    connection.execute(f"CREATE TABLE trips ({columns})")
    connection.execute(f"INSERT INTO trips VALUES {statements.rows()}")
    first = connection.sql("FROM trips").to_arrow_table()
    partition_by = "city" if seed % 2 else None
    table = pyhudi.create_table(
        tmp_path / "trips", first, key="id", partition_by=partition_by, type=table_type
    )
    for _ in range(8):
        statement = statements.merge(by_source=True)
        connection.execute(statement)
        table.sql(statement)
        expected = connection.execute("FROM trips ORDER BY id").fetchall()
        assert rows(table) == expected, statement


def test_merge_by_source_changes_rows_without_a_source_row(table: HudiTable) -> None:
    result = merge(
        table,
        """WHEN NOT MATCHED BY SOURCE AND note = 'gone' THEN DELETE
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = t.n * 10, note = 'old'
        WHEN NOT MATCHED BY TARGET THEN INSERT (id, city, n) VALUES (s.id, town, s.n)""",
    )
    assert (result.rows_updated, result.rows_inserted, result.rows_deleted) == (1, 1, 0)
    assert rows(table) == [
        ("a", 1, "oslo", "x"),
        ("b", 20, "rome", "old"),
        ("c", 30, "lima", None),
    ]
    result = table.merge([]).when_not_matched_by_source_delete(where="n = 20").execute()
    assert result.rows_deleted == 1
    assert [row[0] for row in rows(table)] == ["a", "c"]


@pytest.mark.parametrize(
    "clause",
    [
        "THEN UPDATE SET n = s.n",
        "AND s.n > 1 THEN DELETE",
        "THEN UPDATE SET city = 'x'",
        "THEN UPDATE SET *",
    ],
)
def test_merge_by_source_refuses_columns_of_the_source(table: HudiTable, clause: str) -> None:
    with pytest.raises((ConfigError, SchemaMismatch)):
        merge(table, f"WHEN NOT MATCHED BY SOURCE {clause}")
    assert rows(table)[0] == ("a", 1, "oslo", "x")


def test_merge_by_source_refuses_a_source_larger_than_memory(tmp_path: Path) -> None:
    ids = [f"k{number}" for number in range(50_000)]
    data = pa.table({"id": ids, "n": [1] * len(ids)})
    table = pyhudi.create_table(tmp_path / "t", data.slice(0, 10), key="id")
    clauses = table.merge(data, memory_limit=2**20).when_not_matched_by_source_delete()
    with pytest.raises(UnsupportedTableFeature, match="source in memory"):
        clauses.execute()


def test_merge_by_source_runs_again_after_a_concurrent_insert(tmp_path: Path) -> None:
    """A row that another writer adds has no row of the source either."""
    data = pa.table({"id": ["a", "c"], "n": [1, 3]})
    table = pyhudi.create_table(tmp_path / "t", data, key="id")

    class Source(LazyRows):
        reads = 0

        def to_reader(self) -> pa.RecordBatchReader:
            Source.reads += 1
            if Source.reads == 1:
                pyhudi.open_table(tmp_path / "t").upsert([{"id": "b", "n": 2}])
            return pa.table({"id": ["a"]}).to_reader()

    result = table.merge(Source()).when_not_matched_by_source_delete().execute()
    assert (Source.reads, result.rows_deleted) == (2, 2)
    assert table.to_arrow()["id"].to_pylist() == ["a"]
