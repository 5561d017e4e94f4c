"""Statements in parts: expressions stay as the caller wrote them."""

from __future__ import annotations

import pytest

from pyhudi.errors import ConfigError
from pyhudi.sql_statements.statement_parser import first_word, parse_statement, target_table
from pyhudi.sql_statements.statements import (
    AlterColumns,
    Assignment,
    Call,
    Clause,
    ColumnChange,
    CreateIndex,
    CreateTable,
    Delete,
    DropIndex,
    DropPartitions,
    DropTable,
    Insert,
    MergeInto,
    Query,
    SetProperties,
    Show,
    Statement,
    TableName,
    Truncate,
    Update,
)

T = TableName(("t",))


def test_parse_statement_merge_has_all_clauses() -> None:
    merge = parse_statement(
        """merge into lake.trips as t
        using (select * from news where a in (1, 2)) s
        on t.id = s.id and case when s.x then true else false end
        when matched and s.gone -- a comment
        then delete
        when matched then update set t.fare = greatest(s.fare, 'THEN'), `my ts` = s.ts
        when not matched by target and s.n > 0 then insert (id, t.fare) values (s.id, f(s.a, 2))
        when not matched then insert *
        when not matched by source then update set gone = true;"""
    )
    assert merge == MergeInto(
        TableName(("lake", "trips")),
        "t",
        "select * from news where a in (1, 2)",
        "s",
        "t.id = s.id and case when s.x then true else false end",
        (
            Clause("matched", "delete", "s.gone"),
            Clause(
                "matched",
                "update",
                None,
                (
                    Assignment(("t", "fare"), "greatest(s.fare, 'THEN')"),
                    Assignment(("my ts",), "s.ts"),
                ),
            ),
            Clause(
                "not_matched",
                "insert",
                "s.n > 0",
                (Assignment(("id",), "s.id"), Assignment(("t", "fare"), "f(s.a, 2)")),
            ),
            Clause("not_matched", "insert"),
            Clause("not_matched_by_source", "update", None, (Assignment(("gone",), "true"),)),
        ),
    )


@pytest.mark.parametrize(
    ("source", "text", "alias"),
    [
        ("news", "news", None),
        ("lake.news AS n", "lake.news", "n"),
        ("hudi.`/lake/news` n", "hudi.`/lake/news`", "n"),
        ("news TIMESTAMP AS OF '2024' n", "news TIMESTAMP AS OF '2024'", "n"),
    ],
)
def test_parse_statement_merge_source_is_a_table(source: str, text: str, alias: str | None) -> None:
    merge = parse_statement(f"MERGE INTO t USING {source} ON a = b WHEN MATCHED THEN UPDATE SET *")
    assert isinstance(merge, MergeInto)
    assert (merge.source, merge.source_alias, merge.condition) == (text, alias, "a = b")
    assert merge.clauses == (Clause("matched", "update"),)


STATEMENTS: list[tuple[str, Statement]] = [
    (
        "UPDATE t SET a = CASE WHEN b THEN 1 ELSE 2 END, c = 'x, WHERE' WHERE d AND e = 'it''s'",
        Update(
            T,
            None,
            (
                Assignment(("a",), "CASE WHEN b THEN 1 ELSE 2 END"),
                Assignment(("c",), "'x, WHERE'"),
            ),
            "d AND e = 'it''s'",
        ),
    ),
    ("DELETE FROM t", Delete(T, None, None)),
    (
        "DELETE FROM hudi.`/a b/``c` AS x WHERE x.id IN (SELECT id FROM gone)",
        Delete(TableName(("hudi", "/a b/`c")), "x", "x.id IN (SELECT id FROM gone)"),
    ),
    ("INSERT INTO t VALUES ('a', 1)", Insert(T, "VALUES ('a', 1)")),
    ("INSERT INTO TABLE t (SELECT 1)", Insert(T, "(SELECT 1)")),
    ("INSERT INTO t (a, `b c`) SELECT 1, 2", Insert(T, "SELECT 1, 2", columns=("a", "b c"))),
    ("INSERT INTO t BY NAME SELECT 1 AS a", Insert(T, "SELECT 1 AS a", by_name=True)),
    (
        "INSERT OVERWRITE TABLE t PARTITION (day = DATE '2024-01-01', hour) SELECT 1, 2",
        Insert(
            T,
            "SELECT 1, 2",
            overwrite=True,
            partition={"day": "DATE '2024-01-01'", "hour": None},
        ),
    ),
    (
        """CREATE TABLE IF NOT EXISTS t (id STRING NOT NULL, d DECIMAL(10, 2)) USING hudi
        PARTITIONED BY (`my day`) LOCATION '/lake/t'
        TBLPROPERTIES (primaryKey = 'id', 'type' = 'mor', hoodie.a.b = 3)""",
        CreateTable(
            T,
            "id STRING NOT NULL, d DECIMAL(10, 2)",
            ("my day",),
            if_not_exists=True,
            location="/lake/t",
            properties={"primaryKey": "id", "type": "mor", "hoodie.a.b": "3"},
        ),
    ),
    (
        "CREATE TABLE t (id STRING) USING HUDI PARTITIONED BY (day DATE, n INT)",
        CreateTable(T, "id STRING", ("day", "n"), "day DATE, n INT"),
    ),
    (
        "CREATE TABLE t USING hudi OPTIONS (primaryKey 'id') AS SELECT 1 AS id",
        CreateTable(T, properties={"primaryKey": "id"}, query="SELECT 1 AS id"),
    ),
    ("CREATE TABLE t USING hudi SELECT 1 AS id", CreateTable(T, query="SELECT 1 AS id")),
    ("DROP TABLE IF EXISTS t PURGE;", DropTable(T, if_exists=True)),
    ("TRUNCATE TABLE t PARTITION (a = 1)", Truncate(T, {"a": "1"})),
    (
        "ALTER TABLE t ADD COLUMNS (a INT COMMENT 'x' AFTER b, c.d STRUCT<x: INT> FIRST)",
        AlterColumns(
            T,
            (
                ColumnChange("add", "a", "INT", "x", after="b"),
                ColumnChange("add", "c.d", "STRUCT<x: INT>", first=True),
            ),
        ),
    ),
    (
        "ALTER TABLE t ADD COLUMN a MAP<STRING, ARRAY<STRUCT<x: INT, y: DECIMAL(3, 1)>>>",
        AlterColumns(
            T, (ColumnChange("add", "a", "MAP<STRING, ARRAY<STRUCT<x: INT, y: DECIMAL(3, 1)>>>"),)
        ),
    ),
    (
        "ALTER TABLE t ALTER COLUMN a TYPE bigint",
        AlterColumns(T, (ColumnChange("type", "a", "bigint"),)),
    ),
    (
        "ALTER TABLE t CHANGE COLUMN a a bigint COMMENT 'x' AFTER b",
        AlterColumns(
            T,
            (
                ColumnChange("type", "a", "bigint"),
                ColumnChange("comment", "a", "x"),
                ColumnChange("move", "a", after="b"),
            ),
        ),
    ),
    (
        "ALTER TABLE t ALTER COLUMN a FIRST",
        AlterColumns(T, (ColumnChange("move", "a", first=True),)),
    ),
    (
        "ALTER TABLE t ALTER COLUMN a DROP NOT NULL",
        AlterColumns(T, (ColumnChange("nullable", "a"),)),
    ),
    (
        "ALTER TABLE t RENAME COLUMN a.b TO c",
        AlterColumns(T, (ColumnChange("rename", "a.b", "c"),)),
    ),
    (
        "ALTER TABLE t DROP COLUMNS (a, b)",
        AlterColumns(T, (ColumnChange("drop", "a"), ColumnChange("drop", "b"))),
    ),
    ("ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')", SetProperties(T, {"a": "b"})),
    (
        "ALTER TABLE t DROP IF EXISTS PARTITION (a = 'x'), PARTITION (a = 'y')",
        DropPartitions(T, ({"a": "'x'"}, {"a": "'y'"}), if_exists=True),
    ),
    (
        "CREATE INDEX i ON t USING column_stats(at) OPTIONS (expr = 'year')",
        CreateIndex("i", T, "column_stats", ("at",), {"expr": "year"}),
    ),
    ("CREATE INDEX IF NOT EXISTS i ON TABLE t (a)", CreateIndex("i", T, "", ("a",), {}, True)),
    ("DROP INDEX IF EXISTS i ON t", DropIndex("i", T, if_exists=True)),
    ("SHOW PARTITIONS t", Show("partitions", T)),
    ("DESCRIBE HISTORY t LIMIT 3", Show("history", T, 3)),
    ("DESC TABLE EXTENDED t", Show("columns", T, extended=True)),
    ("DESCRIBE t", Show("columns", T)),
    ("SHOW INDEXES FROM t", Show("indexes", T)),
    (
        "CALL system.run_clean(TABLE => 't', retain_commits => 3, x => -1, y => true, z => NULL)",
        Call("run_clean", (), {"table": "t", "retain_commits": 3, "x": -1, "y": True, "z": None}),
    ),
    ("CALL show_commits('t', limit => 10)", Call("show_commits", ("t",), {"limit": 10})),
    *(
        (statement, Query(statement))
        for statement in (
            "SELECT * FROM t GROUP BY a ORDER BY b",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "CREATE TABLE t (a INT) USING parquet",
            "SHOW TABLES",
            "DESCRIBE QUERY SELECT 1",
            "DESCRIBE FUNCTION abs",
            "SET a = b",
            "ALTER TABLE t RENAME TO u",
            "EXPLAIN SELECT 1",
        )
    ),
]


@pytest.mark.parametrize(("sql", "statement"), STATEMENTS, ids=[sql for sql, _ in STATEMENTS])
def test_parse_statement_returns_parts(sql: str, statement: Statement) -> None:
    assert parse_statement(sql) == statement


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("", "line 1, column 1: expected a statement, found 'the end'"),
        ("SELECT 1; SELECT 2", "column 11: expected the end of the statement, found 'SELECT 2'"),
        ("UPDATE t\nSET = 1", "line 2, column 5: expected a name, found '= 1'"),
        ("UPDATE t SET a =", "expected a value, found 'the end'"),
        ("DELETE t", "expected DELETE FROM, found 'DELETE t'"),
        ("MERGE INTO t USING s ON a = b", "expected WHEN"),
        ("MERGE INTO t USING (SELECT 1 ON a = b WHEN MATCHED THEN DELETE", "expected )"),
        ("MERGE INTO t USING s ON a WHEN MATCHED THEN INSERT *", "expected UPDATE or DELETE"),
        ("MERGE INTO t USING s ON a WHEN NOT MATCHED THEN UPDATE SET *", "expected INSERT"),
        (
            "MERGE INTO t USING s ON a WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *",
            "name the columns",
        ),
        (
            "MERGE INTO t USING s ON a WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)",
            "INSERT names 2 columns and has 1 value",
        ),
        ("INSERT INTO t REPLACE WHERE a SELECT 1", "use DELETE, then INSERT"),
        (
            "INSERT INTO t PARTITION (a = 1, a = 2) SELECT 1",
            "the partition column a is there twice",
        ),
        ("CREATE OR REPLACE TABLE t (a INT) USING hudi", "use DROP TABLE first"),
        ("CREATE TABLE t (a INT) USING hudi PARTITIONED BY (days(a))", "name a column"),
        ("CREATE TABLE t (a INT) USING hudi CLUSTERED BY (a) INTO 4 BUCKETS", "hoodie.index.type"),
        ("ALTER TABLE t CHANGE COLUMN a b INT", "use RENAME COLUMN"),
        ("ALTER TABLE t ADD COLUMN a INT NOT NULL", "expected COMMENT, FIRST or AFTER"),
        ("CALL f(a => b)", "expected a string, an integer, true, false or null, found 'b)'"),
        ("CALL f(a => 1, 2)", "expected name => value"),
        ("CALL f(a => 1, a => 2)", "the argument a is there twice"),
        ("DELETE FROM t WHERE a = 'x", "cannot be read"),
    ],
)
def test_parse_statement_error_says_where(sql: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_statement(sql)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("sql", "stored_in"),
    [
        ("SELECT 1", None),
        ("/* a comment */ create or replace temporary view v AS SELECT 1", "session"),
        ("-- a comment\nCREATE GLOBAL TEMP VIEW v AS SELECT 1", "session"),
        ("CACHE LAZY TABLE t AS SELECT 1", "session"),
        ("/* {'app': 'dbt'} */\ncreate or replace view v AS SELECT 1", "catalog"),
        ("CREATE VIEW IF NOT EXISTS v (a) AS SELECT 1", "catalog"),
        ("ALTER VIEW v AS SELECT 1", "catalog"),
        ("CREATE TABLE view USING parquet AS SELECT 1", None),
        ("CREATE TABLE t (a INT) USING parquet", None),
    ],
)
def test_parse_statement_knows_where_a_query_is_stored(sql: str, stored_in: str | None) -> None:
    statement = parse_statement(sql)
    assert isinstance(statement, Query)
    assert statement.stored_in == stored_in


@pytest.mark.parametrize(
    ("sql", "table"),
    [
        ("MERGE WITH SCHEMA EVOLUTION INTO a.t USING s", ("a", "t")),
        ("/* x */ insert overwrite table t PARTITION (a) IF NOT EXISTS SELECT 1", ("t",)),
        ("DELETE t", ("t",)),
        ("DROP TABLE IF EXISTS `t t` x y", ("t t",)),
        ("INSERT INTO", None),
        ("SELECT * FROM t", None),
        ("UPDATE t SET a = 'x", None),
    ],
)
def test_target_table_of_an_incomplete_statement(sql: str, table: tuple[str, ...] | None) -> None:
    assert target_table(sql) == (None if table is None else TableName(table))


def test_first_word_skips_comments() -> None:
    assert first_word("-- a\n/* b */ select 1") == "SELECT"
    assert first_word("SELECT 'x") == ""
