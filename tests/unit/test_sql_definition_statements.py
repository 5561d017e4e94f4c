"""CREATE, DROP, ALTER, DESCRIBE and CALL without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import ConfigError, SchemaMismatch, UnsupportedTableFeature
from pyhudi.sql_statements.relations import Relations
from pyhudi.sql_statements.session import SqlSession


@pytest.fixture
def session() -> SqlSession:
    return SqlSession(Relations())


def create(session: SqlSession, base: Path, more: str = "", properties: str = "") -> HudiTable:
    table = session.run(
        f"""CREATE TABLE trips (id STRING NOT NULL, city STRING, n INT, `odd` DECIMAL(10, 2),
          "from" ARRAY<STRUCT<x: INT, y: TIMESTAMP>>) USING hudi
        PARTITIONED BY (city) LOCATION '{base}'
        TBLPROPERTIES (primaryKey = 'ID', orderingFields = 'n' {properties}) {more}"""
    )
    assert isinstance(table, HudiTable)
    return table


def rows(session: SqlSession, sql: str) -> list[tuple[Any, ...]]:
    found = session.run(sql)
    assert isinstance(found, pa.Table)
    return [tuple(row.values()) for row in found.to_pylist()]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_sql_creates_a_table_as_hudi_does(
    session: SqlSession, version: int, tmp_path: Path
) -> None:
    options = f", type = 'mor', 'hoodie.write.table.version' = '{version}'"
    table = create(session, tmp_path / "t", properties=options)
    assert (table.type, table.version) == ("mor", version)
    assert table.schema.names == ["id", "n", "odd", "from", "city"]
    assert not table.schema.field("id").nullable
    assert table.schema.field("from").type == pa.list_(
        pa.struct([("x", pa.int32()), ("y", pa.timestamp("us", "UTC"))])
    )
    assert table.config.record_key_fields == ("id",)
    assert table.config.ordering_fields == ("n",)
    session.run("INSERT INTO trips VALUES ('a', 1, 2.50, NULL, 'oslo')")
    assert rows(session, "SHOW PARTITIONS trips") == [("city=oslo",)]
    assert rows(session, "SELECT id, odd FROM trips") == [("a", pytest.approx(2.5))]


def test_sql_creates_a_table_once(session: SqlSession, tmp_path: Path) -> None:
    create(session, tmp_path / "t")
    again = f"CREATE TABLE IF NOT EXISTS Other (id INT) USING hudi LOCATION '{tmp_path}/t'"
    same = session.run(again)
    assert isinstance(same, HudiTable)
    assert same.schema.names == ["id", "n", "odd", "from", "city"]
    assert rows(session, "SHOW TABLES") == [("Other",), ("trips",)]
    with pytest.raises(ConfigError, match="a Hudi table exists"):
        create(session, tmp_path / "t")
    session.run(f"CREATE TABLE third USING hudi LOCATION '{tmp_path}/t'")
    assert rows(session, "SELECT count(*) FROM third") == [(0,)]


@pytest.mark.parametrize(
    ("named", "stored"),
    [("K", "K"), ("lake.k", "k"), ('"my table"', "my table"), ("hudi.`{uri}`", "nk")],
)
def test_sql_names_a_table_as_the_statement(
    session: SqlSession, tmp_path: Path, named: str, stored: str
) -> None:
    """The folder does not name the table, unless the statement has no other name."""
    uri = tmp_path / "nk"
    session.run(f"CREATE TABLE {named.format(uri=uri)} (id INT) USING hudi LOCATION '{uri}'")
    assert pyhudi.open_table(uri).name == stored


def test_sql_show_create_table_quotes_its_location(session: SqlSession, tmp_path: Path) -> None:
    """The statement can be run again."""
    create(session, tmp_path / "it''s")
    ((statement,),) = rows(session, "SHOW CREATE TABLE trips")
    session.run("DROP TABLE trips")
    session.run(statement)
    assert pyhudi.table_exists(tmp_path / "it's")


def test_sql_takes_the_table_name_of_tblproperties(session: SqlSession, tmp_path: Path) -> None:
    create(session, tmp_path / "t", properties=", 'hoodie.table.name' = 'rides'")
    assert pyhudi.open_table(tmp_path / "t").name == "rides"


def test_sql_keeps_the_table_of_a_name(session: SqlSession, tmp_path: Path) -> None:
    """A second table of the name would hide the first one from later statements."""
    first = create(session, tmp_path / "t")
    other = f"(id INT) USING hudi LOCATION '{tmp_path}/other'"
    with pytest.raises(ConfigError, match="Trips is the table at"):
        session.run(f"CREATE TABLE Trips {other}")
    kept = session.run(f"CREATE TABLE IF NOT EXISTS Trips {other}")
    assert isinstance(kept, HudiTable)
    assert kept.uri == first.uri
    assert session.run("CREATE TABLE IF NOT EXISTS trips (id INT) USING hudi") is not None
    assert not (tmp_path / "other").exists()


def test_sql_creates_a_table_of_a_query(session: SqlSession, tmp_path: Path) -> None:
    query = "SELECT 'oslo' AS city, range AS id, range * 1.5e0 AS fare FROM range(3)"
    session.run(
        f"CREATE TABLE t USING hudi PARTITIONED BY (City) LOCATION '{tmp_path}/t' "
        f"OPTIONS (primaryKey = 'id') AS {query}"
    )
    assert rows(session, "FROM t ORDER BY id") == [
        (0, 0.0, "oslo"),
        (1, 1.5, "oslo"),
        (2, 3.0, "oslo"),
    ]
    with pytest.raises(ConfigError, match="DuckDB"):
        session.run(f"CREATE TABLE u USING hudi LOCATION '{tmp_path}/u' AS SELECT * FROM nowhere")
    assert not pyhudi.table_exists(tmp_path / "u")


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("CREATE TABLE x (id INT) USING hudi", ConfigError, "has no location"),
        ("CREATE TABLE x USING hudi LOCATION '{base}/x'", ConfigError, "has no columns"),
        ("CREATE TABLE x (id BLURB) USING hudi LOCATION '{base}/x'", ConfigError, "BLURB"),
        (
            "CREATE TABLE x (id INT DEFAULT 1) USING hudi LOCATION '{base}/x'",
            ConfigError,
            "DEFAULT 1",
        ),
        (
            "CREATE TABLE x (id INT) USING hudi PARTITIONED BY (day) LOCATION '{base}/x'",
            ConfigError,
            "PARTITIONED BY names 'day'",
        ),
        (
            "CREATE TABLE x (id INT) USING hudi LOCATION '{base}/x' TBLPROPERTIES (color = 'red')",
            ConfigError,
            "TBLPROPERTIES has 'color'",
        ),
        ("CREATE TABLE x AS SELECT 1", ConfigError, "CREATE TABLE ... is not supported"),
        ("DROP TABLE x", ConfigError, "there is no table x"),
        ("ALTER TABLE trips ADD COLUMN (x BLURB)", ConfigError, "BLURB"),
        ("ALTER TABLE trips RENAME TO x", ConfigError, "ALTER TABLE ... is not supported"),
        ("ALTER TABLE trips DROP PARTITION (n = 1)", ConfigError, "PARTITION names n"),
        ("CALL run_clean(table => 'x')", ConfigError, "there is no table x"),
        ("CALL run_clea(table => 'trips')", ConfigError, "Did you mean run_clean"),
        ("SET hoodie.datasource.overwrite.mode = odd", ConfigError, "Choose one of"),
    ],
)
def test_sql_definition_errors_change_nothing(
    session: SqlSession, statement: str, error: type[Exception], message: str, tmp_path: Path
) -> None:
    table = create(session, tmp_path / "t")
    with pytest.raises(error, match=message):
        session.run(statement.replace("{base}", str(tmp_path)))
    assert not (tmp_path / "x").exists()
    assert table.refresh().schema.names == ["id", "n", "odd", "from", "city"]


def test_sql_changes_definitions(session: SqlSession, tmp_path: Path) -> None:
    table = create(session, tmp_path / "t")
    session.run("DROP INDEX IF EXISTS partition_stats ON trips")
    session.run("ALTER TABLE trips ADD COLUMNS (note STRING COMMENT 'x' AFTER ID, k INT)")
    session.run("ALTER TABLE trips ALTER COLUMN K TYPE BIGINT")
    session.run("ALTER TABLE trips RENAME COLUMN K TO total")
    session.run("ALTER TABLE trips DROP COLUMN odd")
    session.run("ALTER TABLE trips SET TBLPROPERTIES ('owner' = 'me')")
    assert rows(session, "DESCRIBE trips") == [
        ("id", "string", None),
        ("note", "string", None),
        ("n", "int", None),
        ("from", "array<struct<x:int,y:timestamp>>", None),
        ("city", "string", None),
        ("total", "bigint", None),
    ]
    assert ("owner", "me") in rows(session, "SHOW TBLPROPERTIES trips")
    assert not table.refresh().check().findings


def test_sql_creates_and_drops_indexes(session: SqlSession, tmp_path: Path) -> None:
    create(session, tmp_path / "t")
    session.run("CREATE INDEX by_n ON trips (N)")
    session.run("CREATE INDEX IF NOT EXISTS by_n ON trips (N)")
    assert any("by_n" in row[0] for row in rows(session, "SHOW INDEXES FROM trips"))
    session.run("DROP INDEX by_n ON trips")
    session.run("DROP INDEX IF EXISTS by_n ON trips")


def test_sql_drops_partitions_rows_and_tables(session: SqlSession, tmp_path: Path) -> None:
    create(session, tmp_path / "t")
    session.run(
        """INSERT INTO trips (id, city)
        VALUES ('a', 'oslo'), ('b', 'o''slo'), ('c', 'rome'), ('d', 'x')"""
    )
    session.run("ALTER TABLE trips DROP PARTITION (CITY = 'o''slo'), PARTITION (city = lower('X'))")
    assert rows(session, "SELECT id FROM trips ORDER BY id") == [("a",), ("c",)]
    session.run("TRUNCATE TABLE trips PARTITION (city = 'rome')")
    assert rows(session, "SELECT id FROM trips") == [("a",)]
    session.run("TRUNCATE TABLE trips")
    assert rows(session, "SELECT count(*) FROM trips") == [(0,)]
    session.run("DROP TABLE IF EXISTS other")
    session.run(f"DROP TABLE IF EXISTS hudi.`{tmp_path}/other`")
    session.run("DROP TABLE trips")
    assert not pyhudi.table_exists(tmp_path / "t")
    assert rows(session, "SHOW TABLES") == []


def test_sql_describes_a_table(session: SqlSession, tmp_path: Path) -> None:
    create(session, tmp_path / "t")
    session.run("INSERT INTO trips (id, city) VALUES ('a', 'oslo')")
    history = session.run("DESCRIBE HISTORY trips LIMIT 1")
    assert isinstance(history, pa.Table)
    assert history.num_rows == 1
    detail = session.run("DESCRIBE DETAIL trips")
    assert isinstance(detail, pa.Table)
    assert detail.to_pylist()[0]["recordKeys"] == ["id"]
    ((created,),) = rows(session, "SHOW CREATE TABLE trips")
    again = session.run(created.replace("trips", "twin").replace(f"{tmp_path}/t", f"{tmp_path}/u"))
    assert isinstance(again, HudiTable)
    assert again.schema.names == ["id", "n", "odd", "from", "city"]
    assert ("Location", f"{tmp_path}/t", "") in rows(session, "DESCRIBE EXTENDED trips")
    session.relations.add("src", pa.table({"x": [1]}))
    assert rows(session, "DESCRIBE src")[0][:2] == ("x", "BIGINT")


def test_sql_calls_procedures(session: SqlSession, tmp_path: Path) -> None:
    create(session, tmp_path / "t", properties=", type = 'mor'")
    session.run("INSERT INTO trips (id, n, city) VALUES ('a', 1, 'oslo')")
    session.run("UPDATE trips SET n = 2")
    ((service, *_),) = rows(session, "CALL run_compaction(op => 'run', table => 'trips')")
    assert service == "compact"
    (saved,) = rows(session, f"CALL create_savepoint(path => '{tmp_path}/t')")
    session.run("DELETE FROM trips")
    session.run(f"CALL rollback_to_savepoint('trips', '{saved[0]}')")
    session.relations.refresh()
    assert rows(session, "SELECT n FROM trips") == [(2,)]


def test_sql_set_decides_what_insert_does(session: SqlSession, tmp_path: Path) -> None:
    create(session, tmp_path / "t")
    session.run("INSERT INTO trips (id, n, city) VALUES ('a', 1, 'oslo'), ('b', 1, 'rome')")
    session.run("SET hoodie.spark.sql.insert.into.operation = 'UPSERT'")
    session.run("INSERT INTO trips (id, n, city) VALUES ('a', 2, 'oslo')")
    assert rows(session, "SELECT id, n FROM trips ORDER BY id") == [("a", 2), ("b", 1)]
    session.run("SET hoodie.datasource.overwrite.mode = dynamic")
    session.run("INSERT OVERWRITE trips (id, n, city) VALUES ('c', 3, 'oslo')")
    assert rows(session, "SELECT id, n FROM trips ORDER BY id") == [("b", 1), ("c", 3)]


def test_sql_definitions_refuse_what_the_table_cannot_have(
    session: SqlSession, tmp_path: Path
) -> None:
    create(session, tmp_path / "t")
    with pytest.raises(ConfigError, match="CREATE OR REPLACE"):
        session.run(f"CREATE OR REPLACE TABLE trips (id INT) USING hudi LOCATION '{tmp_path}/t'")
    with pytest.raises(SchemaMismatch, match="city"):
        session.run("ALTER TABLE trips RENAME COLUMN city TO town")
    with pytest.raises((ConfigError, UnsupportedTableFeature), match=r"hoodie\.table\.name"):
        session.run("ALTER TABLE trips SET TBLPROPERTIES ('hoodie.table.name' = 'x')")
