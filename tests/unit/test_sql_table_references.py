"""The tables of a query, found without parsing it."""

from __future__ import annotations

import pytest

from pyhudi.sql_statements.table_references import TableReference, find_tables, replace_tables


def names(sql: str) -> list[str]:
    return [str(reference.table) for reference in find_tables(sql)]


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SELECT * FROM a", ["a"]),
        ("SELECT * FROM a, b.c x JOIN `d e` ON a.x = d.x, f", ["a", "b.c", "`d e`", "f"]),
        ("SELECT x FROM (SELECT * FROM a) s LEFT JOIN b USING (c)", ["a", "b"]),
        ("SELECT * FROM (a) JOIN ((b)) ON true", ["a", "b"]),
        ("SELECT f(a, b), (SELECT max(x) FROM c) FROM d", ["c", "d"]),
        (
            "SELECT extract(DAY FROM a), trim(BOTH 'x' FROM b), c IS NOT DISTINCT FROM d FROM e",
            ["e"],
        ),
        ("SELECT x FROM a WHERE x IN (SELECT y FROM b) ORDER BY c, d", ["a", "b"]),
        ("WITH a AS (SELECT * FROM b), c (x) AS (SELECT 1 FROM d) SELECT * FROM a, c", ["b", "d"]),
        ("SELECT * FROM a LATERAL VIEW explode(x) t AS y", ["a"]),
        ("SELECT * FROM a, LATERAL explode(x)", ["a"]),
        ("SELECT * FROM range(3) JOIN a", ["a"]),
        ("FROM a SELECT x, y", ["a"]),
        ("TABLE a UNION ALL TABLE b", ["a", "b"]),
        ("INSERT INTO a SELECT * FROM b", ["b"]),
        ("CREATE TABLE a USING parquet AS TABLE b", []),
        ("SELECT 'FROM a' -- FROM b", []),
        ("SELECT * FROM VALUES (1), (2) AS t(x)", []),
        ("id IN (SELECT id FROM a) AND x", ["a"]),
    ],
)
def test_find_tables_knows_where_relations_stand(sql: str, tables: list[str]) -> None:
    assert names(sql) == tables


@pytest.mark.parametrize(
    ("sql", "as_of"),
    [
        ("SELECT * FROM a TIMESTAMP AS OF '2024-01-01' x", "2024-01-01"),
        ("SELECT * FROM a FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01'", "2024-01-01"),
        ("SELECT * FROM a VERSION AS OF 20240101000000000", "20240101000000000"),
        ("SELECT * FROM a FOR VERSION AS OF '20240101000000000' JOIN b", "20240101000000000"),
    ],
)
def test_find_tables_reads_the_time(sql: str, as_of: str) -> None:
    first = find_tables(sql)[0]
    assert first.as_of == as_of
    assert as_of not in replace_tables(sql, [first], lambda _: "`v`")


def test_find_tables_keeps_the_error_of_a_time_that_is_no_literal() -> None:
    first, second = find_tables("SELECT * FROM a TIMESTAMP AS OF now() JOIN b")
    assert "expected a number, found 'now()" in str(first.time_error)
    assert second.time_error is None


def test_find_tables_takes_table_functions() -> None:
    sql = "SELECT * FROM hudi_table_changes('lake.trips', 'cdc', 'earliest') c"
    (reference,) = find_tables(sql)
    assert (reference.function, str(reference.table)) == ("hudi_table_changes", "lake.trips")
    assert reference.arguments == ("cdc", "earliest")
    assert replace_tables(sql, [reference], lambda _: "`v`") == "SELECT * FROM `v` c"


def test_find_tables_takes_as_of_as_a_function_only() -> None:
    (reference, table) = find_tables("SELECT * FROM as_of('trips', 20240101000000000) a, as_of")
    assert (reference.function, str(reference.table)) == ("as_of", "trips")
    assert reference.arguments == (20240101000000000,)
    assert (table.function, str(table.table)) == (None, "as_of")


@pytest.mark.parametrize(
    ("sql", "replaced"),
    [
        ("SELECT trips.a FROM trips", "SELECT trips.a FROM `v` AS `trips`"),
        ("SELECT * FROM lake.trips WHERE x", "SELECT * FROM `v` AS `trips` WHERE x"),
        ("TABLE trips UNION TABLE trips", "TABLE `v` UNION TABLE `v`"),
        ("SELECT * FROM trips t", "SELECT * FROM `v` t"),
        ("SELECT * FROM trips AS t", "SELECT * FROM `v` AS t"),
        ("SELECT * FROM hudi.`/lake/trips`", "SELECT * FROM `v`"),
        ("SELECT * FROM trips VERSION AS OF '1' LIMIT 1", "SELECT * FROM `v` AS `trips` LIMIT 1"),
    ],
)
def test_replace_tables_keeps_names_of_columns_valid(sql: str, replaced: str) -> None:
    assert replace_tables(sql, find_tables(sql), lambda _: "`v`") == replaced


def test_replace_tables_leaves_unknown_tables() -> None:
    sql = "SELECT * FROM a JOIN b ON a.x = b.x"

    def view(reference: TableReference) -> str | None:
        return "`v`" if reference.table.parts == ("b",) else None

    assert replace_tables(sql, find_tables(sql), view) == (
        "SELECT * FROM a JOIN `v` AS `b` ON a.x = b.x"
    )
