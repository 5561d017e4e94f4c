"""SQL statements without Spark: what Hudi has after them, names, queries, refusals."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable, WriteResult
from pyhudi.errors import ConfigError, SchemaMismatch, TableNotFound, UnsupportedTableFeature
from tests.helpers.pairwise import pairwise

pytestmark = pytest.mark.filterwarnings("ignore::pyhudi.DuplicateKeyWarning")

ROWS = pa.table(
    {
        "id": ["a", "b", "c"],
        "n": pa.array([1, 2, 3], pa.int32()),
        "fare": [1.5, 2.5, None],
        "city": ["oslo", "rome", "oslo"],
    }
)
AXES = ((6, 8, 9), ("cow", "mor"), (None, "city"))


def create(base: Path, **arguments: Any) -> HudiTable:
    return pyhudi.create_table(base / "trips", ROWS, **{"key": "id", **arguments})


def rows(table: HudiTable, sql: str = "SELECT * FROM trips ORDER BY id", **more: Any) -> list[Any]:
    found = table.sql(sql, **more)
    assert isinstance(found, pa.Table)
    return [tuple(row.values()) for row in found.to_pylist()]


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    return create(tmp_path)


@pytest.mark.parametrize(("version", "table_type", "partition_by"), pairwise(*AXES))
def test_sql_changes_rows_of_each_table(
    version: int, table_type: str, partition_by: str | None, tmp_path: Path
) -> None:
    table = create(tmp_path, version=version, type=table_type, partition_by=partition_by)
    inserted = table.sql("INSERT INTO trips VALUES ('d', 4, 4.5, 'lima'), ('e', 5, NULL, 'lima')")
    assert isinstance(inserted, WriteResult)
    assert inserted.rows_inserted == 2
    table.sql("UPDATE t SET fare = n * 2, n = n + 10 WHERE city = 'oslo'")
    table.sql("DELETE FROM trips WHERE id IN ('b', 'e')")
    source = pa.table(
        {"id": ["a", "d", "x"], "fare": [9.0, None, 8.0], "city": ["oslo", "lima", "rome"]}
    )
    condition = "t.id = s.id AND t.city = s.city" if partition_by else "t.id = s.id"
    merged = table.sql(
        f"""MERGE INTO trips AS t USING src AS s ON {condition}
        WHEN MATCHED AND s.fare IS NULL THEN DELETE
        WHEN MATCHED THEN UPDATE SET fare = s.fare + t.n
        WHEN NOT MATCHED THEN INSERT (id, n, fare, city) VALUES (s.id, 0, s.fare, s.city)""",
        {"src": source},
    )
    assert isinstance(merged, WriteResult)
    assert (merged.rows_inserted, merged.rows_updated, merged.rows_deleted) == (1, 1, 1)
    expected = [("a", 11, 20.0, "oslo"), ("c", 13, 6.0, "oslo"), ("x", 0, 8.0, "rome")]
    assert rows(table) == expected
    assert not table.check().findings
    assert rows(pyhudi.open_table(tmp_path / "trips")) == expected


def test_sql_function_takes_tables_in_any_form(table: HudiTable, tmp_path: Path) -> None:
    data = {"id": ["a"], "x": [7]}
    sources = [
        pa.table(data),
        pd.DataFrame(data),
        *([] if pa.__version__.startswith("17.") else [pl.DataFrame(data)]),  # has views
        [{"id": "a", "x": 7}],
        pa.table(data).to_reader(),
    ]
    for source in sources:
        tables = {"trips": table, "src": source}
        joined = pyhudi.sql(
            "SELECT n + src.x AS y FROM trips JOIN src USING (id) JOIN src s2 USING (id)", tables
        )
        assert isinstance(joined, pa.Table)
        assert joined.to_pylist() == [{"y": 8}]
    counted = pyhudi.sql(f"SELECT count(*) AS n FROM hudi.`{table.uri}`")
    assert isinstance(counted, pa.Table)
    assert counted["n"].to_pylist() == [3]
    changed = pyhudi.sql("DELETE FROM rides WHERE id = 'a'", {"rides": table.uri})
    assert isinstance(changed, WriteResult)
    assert changed.rows_deleted == 1
    assert isinstance(pyhudi.sql(f'DELETE FROM hudi."{table.uri}"'), WriteResult)
    assert table.refresh().count() == 0
    with pytest.raises(TableNotFound):
        pyhudi.sql(f"SELECT * FROM hudi.`{tmp_path}/none`")


def test_sql_reads_earlier_snapshots(table: HudiTable) -> None:
    first = table.history().column("instant")[0].as_py()
    table.sql("DELETE FROM trips WHERE id = 'a'")
    assert rows(table, f"SELECT count(*) FROM trips VERSION AS OF {first}") == [(3,)]
    assert rows(table, f"SELECT count(*) FROM trips FOR VERSION AS OF '{first}' x") == [(3,)]
    gone = f"""SELECT "Trips".id FROM Trips TIMESTAMP AS OF '{first}'
        LEFT JOIN hudi."{table.uri}" AS now USING (id) WHERE now.id IS NULL"""
    assert rows(table, gone) == [("a",)]
    assert rows(table, f"SELECT count(*) FROM as_of('t', '{first}')") == [(3,)]
    changes = "SELECT count(*) FROM hudi_table_changes('trips', 'latest_state', 'earliest')"
    assert rows(table, changes) == [(2,)]
    assert rows(table, "SELECT count(*) > 1 FROM hudi_query_timeline('trips')") == [(True,)]
    assert rows(table, "SELECT count(*) > 0 FROM hudi_filesystem_view('trips')") == [(True,)]
    with pytest.raises(ConfigError, match="expected a number"):
        table.sql("SELECT * FROM trips VERSION AS OF current")
    old = pyhudi.open_table(table.uri, as_of=first)
    assert rows(old, "SELECT count(*) FROM t") == [(3,)]
    with pytest.raises(ConfigError, match="read-only"):
        old.sql("DELETE FROM t")


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("insert into TRIPS (CITY, Id) values ('oslo', 'd')", ("d", None, None, "oslo")),
        ("INSERT INTO trips BY NAME SELECT 'd' AS ID, 'x;--' AS city", ("d", None, None, "x;--")),
        (
            "INSERT INTO trips SELECT ID || 'd', N, N, CITY FROM TRIPS WHERE N = 1",
            ("ad", 1, 1.0, "oslo"),
        ),
        (
            "INSERT INTO trips WITH t AS (SELECT 'd') SELECT *, 1, 1, 'x' FROM t -- ;",
            ("d", 1, 1.0, "x"),
        ),
        ("INSERT INTO trips FROM t SELECT 'd', 7, NULL, max(city)", ("d", 7, None, "rome")),
        ("INSERT INTO trips TABLE `odd one`;", ("d", 1, 2.0, "o'slo")),
    ],
)
def test_sql_inserts_rows_of_a_query(
    table: HudiTable, statement: str, expected: tuple[Any, ...]
) -> None:
    odd = [{"id": "d", "n": 1, "fare": 2.0, "city": "o'slo"}]
    result = table.sql(statement, {"odd one": odd})
    assert isinstance(result, WriteResult)
    assert result.rows_inserted == 1
    where = f"SELECT * FROM t WHERE id = '{expected[0]}'"
    assert rows(table, where) == [expected]


def test_sql_without_rows_makes_no_commit(table: HudiTable) -> None:
    for statement in (
        "INSERT INTO trips SELECT * FROM trips WHERE false",
        "DELETE FROM trips WHERE id = 'none'",
        "UPDATE trips SET n = 1 WHERE id IN (SELECT id FROM trips WHERE n > 99)",
        """MERGE INTO trips t USING (SELECT * FROM trips WHERE false) s ON t.id = s.id
        WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *""",
    ):
        result = table.sql(statement)
        assert isinstance(result, WriteResult)
        assert not result.committed
    assert rows(
        table, "SELECT count(*) FROM t WHERE id NOT IN (SELECT id FROM t WHERE n > 99)"
    ) == [(3,)]


def test_sql_names_are_not_case_sensitive_but_may_be_quoted(tmp_path: Path) -> None:
    data = pa.table([["a", "b"], [1, 2], [3, 4], ["x", "y"]], names=["Id", "select", "from", "Day"])
    table = pyhudi.create_table(tmp_path / "order", data, key="Id")
    table.sql("""UPDATE "Order" AS o SET "SELECT" = O."select" + `From`, day = upper(DAY)
        WHERE ID = 'a' AND o."from" = 3""")
    assert rows(table, 'SELECT * FROM "order" ORDER BY id') == [("a", 4, 3, "X"), ("b", 2, 4, "y")]
    table.sql("DELETE FROM `order` WHERE `ORDER`.`day` = 'X'")
    assert rows(table, "SELECT ID FROM t") == [("b",)]


def test_sql_subqueries_are_computed_first(table: HudiTable) -> None:
    other = pa.table({"id": ["a", "b", None], "x": [1.0, 2.0, 3.0]})
    table.sql(
        "UPDATE t SET fare = (SELECT max(n) FROM trips), n = (SELECT n FROM t WHERE false) "
        "WHERE id IN (SELECT id FROM other WHERE x < 2)",
        {"other": other},
    )
    assert rows(table)[0] == ("a", None, 3.0, "oslo")
    result = table.sql("DELETE FROM t WHERE id NOT IN (SELECT id FROM other)", {"other": other})
    assert isinstance(result, WriteResult)
    assert not result.committed
    table.sql(
        "DELETE FROM t WHERE id NOT IN (SELECT id FROM other WHERE id = 'none')", {"other": other}
    )
    assert table.count() == 0


@pytest.mark.parametrize(
    ("where", "deleted"),
    [
        ("EXISTS (SELECT 1 FROM other WHERE other.id = t.id AND other.x > t.n)", ["a"]),
        ("NOT EXISTS (FROM other WHERE id = t.id) AND n > 0", ["c"]),
        ("t.n IN (SELECT x FROM other WHERE other.id = t.id)", ["b"]),
        ("n < (SELECT max(x) FROM other WHERE other.id = t.id)", ["a"]),
        ("n > ALL (SELECT x FROM other WHERE x < 3)", ["c"]),
        ("n = -1 OR NOT (n > ANY (SELECT x FROM other) OR n IS NULL)", ["a", "b"]),
        ("id IN (SELECT id FROM other WHERE id = t.id) AND n IN (SELECT min(x) FROM other)", ["b"]),
        ("EXISTS (SELECT 1 FROM t AS u WHERE u.n > t.n)", ["a", "b"]),
    ],
)
def test_sql_subqueries_may_depend_on_the_row(
    tmp_path: Path, where: str, deleted: list[str]
) -> None:
    data = pa.table({"id": ["a", "b", "c"], "n": [1, 2, 3], "m": [0, 0, 0]})
    other = pa.table({"id": ["a", "b"], "x": [5, 2]})
    table = pyhudi.create_table(tmp_path / "t", data, key="id")
    result = table.sql(f"UPDATE t SET m = t.n + 10 WHERE {where}", {"other": other})
    assert isinstance(result, WriteResult)
    assert result.rows_updated == len(deleted)
    assert table.count("m = n + 10") == len(deleted)
    table.sql(f"DELETE FROM t WHERE {where}", {"other": other})
    assert set(table.to_arrow()["id"].to_pylist()) == {"a", "b", "c"} - set(deleted)


def test_sql_subquery_refuses_a_condition_true_for_one_duplicate(tmp_path: Path) -> None:
    data = pa.table({"id": ["a", "b"], "n": [1, 2]})
    table = pyhudi.create_table(tmp_path / "t", data, key="id")
    table.bulk_insert(pa.table({"id": ["a"], "n": [7]}))
    with pytest.raises(ConfigError, match="some rows of a key only"):
        table.sql("DELETE FROM t WHERE EXISTS (SELECT 1 WHERE t.n = 7)")
    assert table.count() == 3


def test_sql_functions_mean_the_same_next_to_subqueries_of_the_row(tmp_path: Path) -> None:
    """Days of a week are numbered from Sunday, 1 in Spark and 0 in DuckDB."""
    days = pa.array([date(2026, 11, 29), date(2026, 11, 30)])
    data = pa.table({"id": ["sunday", "monday"], "at": days, "n": [1, 1]})
    table = pyhudi.create_table(tmp_path / "order", data, key="id")
    same = "EXISTS (SELECT 1 FROM t AS u WHERE u.id = t.id)"
    table.sql(f"UPDATE t SET n = 2 WHERE {same} AND dayofweek(at) = 1")
    assert rows(table, "SELECT id FROM t WHERE n = 2") == [("sunday",)]
    where = f"dayofweek(at) = 2 AND {same} AND at > DATE '2026-01-01'"
    table.sql(f'DELETE FROM "order" AS t WHERE {where}')
    assert rows(table, "SELECT id FROM t") == [("sunday",)]
    for where in (f"dayofweek(at) = 1 OR {same}", f"n + 1 = 2 OR {same}", f"length({same}) = 1"):
        with pytest.raises(UnsupportedTableFeature, match="next to a subquery"):
            table.sql(f"DELETE FROM t WHERE {where}")


def test_sql_hint_says_which_column_to_quote(tmp_path: Path) -> None:
    data = pa.table({"id": ["a"], "at": [1], "left": [2], "year": [3]})
    table = pyhudi.create_table(tmp_path / "t", data, key="id")
    assert rows(table, 'SELECT t.at, "left", year FROM t') == [(1, 2, 3)]
    for statement, names in {
        "SELECT at FROM t": '"at"',
        "SELECT id, LEFT, AT FROM t": '"LEFT" and "AT"',
        "DELETE FROM t WHERE EXISTS (SELECT at FROM t AS u WHERE u.id = t.id)": '"at"',
    }.items():
        with pytest.raises(ConfigError) as caught:
            table.sql(statement)
        assert caught.value.hint.startswith(f"Put {names} into double quotes")
    with pytest.raises(ConfigError, match="DuckDB's SQL"):
        table.sql("SELECT FROM WHERE")
    with pytest.raises(ConfigError, match="DuckDB's functions"):
        table.sql("SELECT nvl2(id, 1, 2) FROM t")


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("", ConfigError, "expected a statement"),
        ("DELETE FROM t; DELETE FROM t", ConfigError, "expected the end"),
        ("SELECT 1; DROP TABLE trips", ConfigError, "expected the end"),
        ("DELETE FROM nowhere", ConfigError, "there is no table nowhere"),
        ("DELETE FROM src", ConfigError, "src is not a Hudi table"),
        ("DELETE FROM t WHERE nn = 1", SchemaMismatch, "there is no column 'nn'"),
        ("DELETE FROM t WHERE id = (SELECT id FROM t)", ConfigError, "several rows"),
        ("DELETE FROM t WHERE n IN (SELECT n, id FROM t)", ConfigError, "2 columns"),
        ("UPDATE t SET n = EXISTS (SELECT 1)::INT", UnsupportedTableFeature, "EXISTS"),
        ("DELETE FROM t WHERE EXISTS (SELECT nn FROM src)", ConfigError, "nn"),
        ("DELETE FROM t WHERE n > (SELECT t.nn FROM src)", ConfigError, "nn"),
        ("UPDATE t SET n = 1, N = 2", ConfigError, "twice"),
        ("UPDATE t SET id = 'x'", ConfigError, "'id' cannot be set"),
        ("UPDATE t SET n = 'many'", SchemaMismatch, "many"),
        ('UPDATE t SET n = "many"', SchemaMismatch, "there is no column 'many'"),
        ("INSERT INTO t VALUES ('d')", SchemaMismatch, "the query has 1 column"),
        ("INSERT INTO t (id, ID) VALUES ('d', 'e')", SchemaMismatch, "the query has 2 columns"),
        ("INSERT INTO t SELECT id, city, n, n FROM t", SchemaMismatch, "'n'"),
        ("INSERT INTO t SELECT * FROM nowhere", ConfigError, "nowhere"),
        ("INSERT INTO t PARTITION (city = 'x') VALUES ('d', 1, 2)", ConfigError, "PARTITION names"),
        ("SELECT id, id FROM t", ConfigError, "two columns"),
        ("SELECT * FROM statement", ConfigError, "statement"),
        ("SET x = 1", ConfigError, "not supported"),
        ("COPY t TO 'x.parquet'", ConfigError, "not supported"),
        ("SELECT 'unclosed", ConfigError, "cannot be read"),
    ],
)
def test_sql_error_leaves_the_table(
    table: HudiTable, statement: str, error: type[Exception], message: str
) -> None:
    before = table.sql("SELECT * FROM t")
    with pytest.raises(error, match=message):
        table.sql(statement, {"src": pa.table({"id": ["a"]})})
    assert table.refresh().sql("SELECT * FROM t") == before
    assert table.history().num_rows == 1


def test_sql_names_of_tables_are_unique(table: HudiTable) -> None:
    with pytest.raises(ConfigError, match="two tables are called"):
        pyhudi.sql("SELECT 1", {"a": table, "A": table})
    with pytest.raises(ConfigError, match="that of the table itself"):
        table.sql("SELECT 1", {"TRIPS": table})


def test_sql_changes_rows_without_duckdb(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.setattr("pyhudi.sql_statements.duckdb_queries.find_spec", lambda _: None)
    table.sql("UPDATE t SET n = 9 WHERE id = 'a'")
    table.sql("DELETE FROM t WHERE n = 9")
    source = pa.table({"id": ["b"], "n": [5]})
    table.sql(
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n", {"s": source}
    )
    assert sorted(table.scan(["n"]).to_arrow()["n"].to_pylist()) == [3, 5]
    with pytest.raises(ConfigError, match="DuckDB") as raised:
        table.sql("INSERT INTO t SELECT * FROM t")
    assert raised.value.hint == "pip install 'pyhudi[duckdb]'"


def test_sql_source_reads_the_target_again_after_a_conflict(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second writer commits after the source was first read."""
    read = pyhudi.sql_statements.duckdb_queries.QueryRows.to_reader
    other = pyhudi.open_table(table.uri)
    reads = []

    def read_after_commit(self: Any) -> Any:
        rows = read(self).read_all()
        reads.append(rows)
        if len(reads) == 2:  # the first is for the columns
            other.sql("UPDATE t SET n = n + 100")
        return rows.to_reader()

    monkeypatch.setattr(
        "pyhudi.sql_statements.duckdb_queries.QueryRows.to_reader", read_after_commit
    )
    table.sql(
        "MERGE INTO t USING (SELECT id, n + 1 AS n FROM t) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET n = s.n"
    )
    assert len(reads) > 2
    assert table.scan(["n"]).to_arrow()["n"].to_pylist() == [102, 103, 104]
