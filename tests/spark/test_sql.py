"""SQL statements on Hudi tables: `pyhudi.spark.sql`."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

import pyhudi
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.spark import register, sql
from pyhudi.spark.sql_tables import register_name

pytestmark = [pytest.mark.spark35, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def trips(spark: SparkSession, tmp_path: Path) -> Path:
    """A table `trips` with two rows; its name is in the session."""
    base = tmp_path / "trips"
    sql(
        spark,
        f"""CREATE TABLE trips (id STRING, city STRING, fare DOUBLE, n INT)
        USING hudi PARTITIONED BY (city) TBLPROPERTIES (primaryKey = 'id', type = 'mor')
        LOCATION '{base}'""",
    )
    sql(spark, "INSERT INTO trips VALUES ('a', 1.5, 1, 'oslo'), ('b', 2, 2, 'rome')")
    return base


def rows(spark: SparkSession, statement: str) -> list[Any]:
    return sorted(tuple(row) for row in sql(spark, statement).collect())


def test_sql_create_table_has_hudis_layout(spark: SparkSession, trips: Path) -> None:
    table = pyhudi.open_table(trips)
    assert table.schema.names == ["id", "fare", "n", "city"]
    assert (table.type, table.config.record_key_fields) == ("mor", ("id",))
    assert {path.name for path in trips.iterdir()} == {".hoodie", "city=oslo", "city=rome"}
    assert rows(spark, "SELECT * FROM trips") == [("a", 1.5, 1, "oslo"), ("b", 2.0, 2, "rome")]


def test_sql_names_a_table_as_the_statement(spark: SparkSession, tmp_path: Path) -> None:
    sql(spark, f"CREATE TABLE k (id INT) USING hudi LOCATION '{tmp_path}/nk'")
    assert pyhudi.open_table(tmp_path / "nk").name == "k"
    sql(spark, f"CREATE TABLE hudi.`{tmp_path}/path` (id INT) USING hudi")
    assert pyhudi.open_table(tmp_path / "path").name == "path"


def test_sql_merge_runs_all_clauses(spark: SparkSession, trips: Path) -> None:
    written = sql(
        spark,
        """MERGE INTO trips AS t
        USING (SELECT * FROM VALUES ('a', 'oslo', 9), ('b', 'rome', 0), ('c', 'oslo', 3)
               AS v(id, city, fare)) s
        ON t.id = s.id
        WHEN MATCHED AND s.fare = 0 THEN DELETE
        WHEN MATCHED THEN UPDATE SET t.fare = s.fare + CASE WHEN t.n = 1 THEN 0.5 ELSE 0 END
        WHEN NOT MATCHED THEN INSERT (id, city, fare) VALUES (s.id, s.city, s.fare);""",
    )
    row = written.collect()[0]
    assert (row.rows_inserted, row.rows_updated, row.rows_deleted) == (1, 1, 1)
    assert rows(spark, "SELECT id, fare, n FROM trips") == [("a", 9.5, 1), ("c", 3.0, None)]


def test_sql_merge_takes_tables_and_conditions_on_any_column(
    spark: SparkSession, trips: Path
) -> None:
    sql(spark, f"CREATE TABLE news USING hudi LOCATION '{trips.parent}/news' AS SELECT 1 AS n")
    sql(spark, "MERGE INTO trips USING news ON trips.n = news.n WHEN MATCHED THEN DELETE")
    assert rows(spark, "SELECT id FROM trips") == [("b",)]
    sql(
        spark,
        """MERGE INTO trips t USING news s ON t.n = s.n
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET fare = t.fare * 10""",
    )
    assert rows(spark, "SELECT id, fare FROM trips") == [("b", 20.0)]


def test_sql_value_is_cast_for_its_clause_only(spark: SparkSession, trips: Path) -> None:
    sql(
        spark,
        """MERGE INTO trips t USING (SELECT 'a' AS id, 0 AS d UNION ALL SELECT 'b', 2) s
        ON t.id = s.id WHEN MATCHED AND s.d = 0 THEN UPDATE SET n = CAST(7 AS BIGINT)
        WHEN MATCHED THEN UPDATE SET n = 10 DIV s.d, fare = 12.25""",
    )
    assert rows(spark, "SELECT id, n, fare FROM trips") == [("a", 7, 1.5), ("b", 5, 12.25)]


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("UPDATE trips SET n = 'seven'", SchemaMismatch, "the values do not match the table"),
        ("UPDATE trips SET nn = 7", SchemaMismatch, "the table has no column 'nn'"),
        ("UPDATE trips SET n = 1, trips.n = 2", ConfigError, "sets the column 'n' twice"),
        ("SELECT * FROM trips TIMESTAMP AS OF now()", ConfigError, "expected a number"),
        ("UPDATE trips SET id = 'z'", ConfigError, "key or partition columns"),
        ("INSERT INTO trips VALUES ('z', 1)", SchemaMismatch, "the query has 2 columns for id, "),
        ("INSERT INTO trips (id, x) VALUES ('z', 1)", SchemaMismatch, "no column 'x'"),
        ("INSERT INTO trips PARTITION (n = 1) SELECT 1", ConfigError, "PARTITION names n"),
        ("ALTER TABLE trips DROP PARTITION (n = 1)", ConfigError, "PARTITION names n"),
        ("CALL run_clear(table => 'trips')", ConfigError, "Did you mean run_clean?"),
        ("CALL run_clean(table => 'trips', retain => 1)", ConfigError, "no argument 'retain'"),
        ("CALL run_clean()", ConfigError, "needs table or path"),
        ("CALL run_clean(table => 'nowhere')", ConfigError, "nowhere is not a Hudi table"),
        ("DESCRIBE HISTORY nowhere", ConfigError, "nowhere is not a Hudi table"),
        ("SELECT * FROM as_of('trips')", ConfigError, "as_of needs a table, and a time"),
        ("SELECT * FROM as_of('nowhere', '2026')", ConfigError, "nowhere is not a Hudi table"),
        ("SELECT * FROM hudi_table_changes('trips', 'x', 'y')", ConfigError, "latest_state or cdc"),
    ],
)
def test_sql_error_names_the_cause(
    spark: SparkSession,
    trips: Path,  # noqa: ARG001 - the table's name is in the session
    statement: str,
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message.replace("?", r"\?")):
        sql(spark, statement)


def test_sql_reads_earlier_snapshots_and_changes(spark: SparkSession, trips: Path) -> None:
    first = pyhudi.open_table(trips).history().column("instant")[0].as_py()
    sql(spark, "DELETE FROM trips WHERE id = 'a'")
    assert rows(spark, f"SELECT id FROM trips TIMESTAMP AS OF '{first}' t") == [("a",), ("b",)]
    assert rows(spark, f"SELECT id FROM hudi.`{trips}` VERSION AS OF {first}") == [("a",), ("b",)]
    before = f"SELECT a.id FROM as_of('trips', {first}) a WHERE a.n < (SELECT max(n) FROM trips)"
    assert rows(spark, before) == [("a",)]
    assert rows(spark, f"SELECT id FROM as_of('{trips}', '{first}')") == [("a",), ("b",)]
    assert rows(spark, f"SELECT trips.id FROM trips JOIN hudi.`{trips}` x ON x.id = trips.id") == [
        ("b",)
    ]
    changes = f"SELECT id FROM hudi_table_changes('{trips}', 'latest_state', 'earliest')"
    assert rows(spark, changes) == [("b",)]
    (timeline,) = sql(spark, "SELECT count(*) AS n FROM hudi_query_timeline('trips')").collect()
    assert timeline.n >= 2
    (view,) = sql(spark, "SELECT count(*) AS n FROM hudi_filesystem_view('trips')").collect()
    assert view.n >= 2


def test_sql_describes_a_table(spark: SparkSession, trips: Path) -> None:
    assert rows(spark, "SHOW PARTITIONS trips") == [("city=oslo",), ("city=rome",)]
    assert ("n", "int", None) in rows(spark, "DESCRIBE trips")
    (created,) = sql(spark, "SHOW CREATE TABLE trips").collect()[0]
    again = created.replace(str(trips), f"{trips}2").replace("TABLE trips", "TABLE trips2")
    sql(spark, again)
    assert pyhudi.open_table(f"{trips}2").schema == pyhudi.open_table(trips).schema
    assert sql(spark, "DESCRIBE HISTORY trips LIMIT 1").count() == 1
    assert sql(spark, "DESCRIBE DETAIL trips").collect()[0].type == "mor"
    assert ("hoodie.table.type", "MERGE_ON_READ") in rows(spark, "SHOW TBLPROPERTIES trips")


def test_sql_alters_columns(spark: SparkSession, trips: Path) -> None:
    sql(spark, "ALTER TABLE trips ADD COLUMNS (tags ARRAY<STRING> COMMENT 'x' AFTER id, k INT)")
    sql(spark, "DROP INDEX partition_stats ON trips")  # it depends on names of columns
    sql(spark, "ALTER TABLE trips ALTER COLUMN n TYPE BIGINT")
    sql(spark, "ALTER TABLE trips RENAME COLUMN fare TO price")
    sql(spark, "ALTER TABLE trips DROP COLUMN k")
    assert pyhudi.open_table(trips).schema.names == ["id", "tags", "price", "n", "city"]


def test_sql_drop_partition_ignores_missing_ones(spark: SparkSession, trips: Path) -> None:
    """As Hudi does, with IF EXISTS and without."""
    sql(spark, "ALTER TABLE trips DROP PARTITION (city = 'none')")
    sql(spark, "ALTER TABLE trips DROP IF EXISTS PARTITION (city = 'none')")
    sql(spark, "ALTER TABLE trips DROP PARTITION (city = 'none'), PARTITION (city = 'rome')")
    assert rows(spark, "SELECT id FROM trips") == [("a",)]
    assert not pyhudi.open_table(trips).check().findings


def test_sql_creates_and_drops_indexes(spark: SparkSession, trips: Path) -> None:
    sql(spark, "CREATE INDEX IF NOT EXISTS by_n ON trips (n)")
    sql(spark, "CREATE INDEX IF NOT EXISTS by_n ON trips (n)")
    assert any("by_n" in row[0] for row in rows(spark, "SHOW INDEXES FROM trips"))
    sql(spark, "ALTER TABLE trips SET TBLPROPERTIES ('hoodie.table.cdc.enabled' = 'true')")
    assert pyhudi.open_table(trips).properties["hoodie.table.cdc.enabled"] == "true"
    sql(spark, "DROP INDEX by_n ON trips")
    sql(spark, "DROP INDEX IF EXISTS by_n ON trips")
    assert not any("by_n" in row[0] for row in rows(spark, "SHOW INDEXES FROM trips"))


def test_sql_calls_procedures(spark: SparkSession, trips: Path) -> None:
    sql(spark, "UPDATE trips SET n = 9")
    (compacted,) = sql(spark, "CALL run_compaction(op => 'run', table => 'trips')").collect()
    assert compacted.service == "compact"
    sql(spark, f"CALL run_compaction(op => 'scheduleAndExecute', path => '{trips}')")
    (saved,) = sql(spark, "CALL create_savepoint('trips', comments => 'before')").collect()
    sql(spark, "DELETE FROM trips")
    sql(spark, f"CALL rollback_to_savepoint('trips', '{saved.instant}')")
    assert rows(spark, "SELECT id, n FROM trips") == [("a", 9), ("b", 9)]
    for procedure in ("run_clean", "run_clustering", "archive_commits", "show_commits"):
        assert sql(spark, f"CALL system.{procedure}(table => 'trips')").count() > 0
    assert sql(spark, "CALL help()").count() > 20


def test_sql_drop_table_removes_it(spark: SparkSession, trips: Path) -> None:
    register(spark, "trips", trips)
    sql(spark, "DROP TABLE trips")
    assert not pyhudi.table_exists(trips)
    assert not spark.catalog.tableExists("trips")
    sql(spark, "DROP TABLE IF EXISTS trips")


def test_sql_finds_registered_tables_and_the_warehouse(spark: SparkSession, trips: Path) -> None:
    register(spark, "rides", trips)
    sql(spark, "DELETE FROM rides WHERE id = 'a'")
    assert rows(spark, "SELECT id FROM rides") == [("b",)]
    name = f"trips_{uuid4().hex}"
    sql(spark, f"CREATE TABLE {name} USING hudi AS SELECT 1 AS n")
    register_name(spark, name, None)
    assert rows(spark, f"SELECT n FROM default.{name}") == [(1,)]
    sql(spark, f"DROP TABLE {name}")


def test_sql_leaves_other_tables_to_spark(spark: SparkSession, trips: Path) -> None:
    sql(spark, "CREATE OR REPLACE TEMP VIEW oslo AS SELECT id FROM trips WHERE city = 'oslo'")
    assert rows(spark, "SELECT * FROM oslo") == [("a",)]
    sql(spark, "WITH trips AS (SELECT 'x' AS id) SELECT id FROM trips")
    assert rows(spark, "WITH trips AS (SELECT 'x' AS id) SELECT id FROM trips") == [("x",)]
    assert rows(spark, f"SELECT count(*) FROM parquet.`{trips}/city=oslo/*.parquet`") == [(1,)]
