"""`enable_sql`: statements on Hudi tables by `spark.sql` itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyspark
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

import pyhudi
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.spark import enable_sql, sql

pytestmark = [pytest.mark.spark35, pytest.mark.filterwarnings("ignore")]
on_spark4 = pytest.mark.skipif(
    pyspark.__version__ < "4", reason="PySpark 3.5 has no Python sources, which the catalog needs"
)

GLOBAL = "global_temp"
"""Spark's database of global temporary views."""


@pytest.fixture
def lake(spark: SparkSession) -> Iterator[str]:
    """A new database of an enabled session, with a table `trips` of two rows."""
    name = f"lake_{uuid4().hex[:8]}"
    with enable_sql(spark):
        spark.sql(f"CREATE DATABASE {name}")
        spark.sql(
            f"""/* a comment */ CREATE TABLE {name}.trips (id STRING, fare DOUBLE) USING hudi
            TBLPROPERTIES (primaryKey = 'id')"""
        )
        spark.sql(f"-- a comment\nINSERT INTO {name}.trips VALUES ('a', 1.5), ('b', 2)")
        yield name
        spark.sql(f"DROP TABLE IF EXISTS {name}.trips")
        spark.sql(f"DROP DATABASE {name} CASCADE")


def rows(spark: SparkSession, statement: str, **kwargs: Any) -> list[Any]:
    return sorted(tuple(row) for row in spark.sql(statement, **kwargs).collect())


def test_enable_sql_runs_statements_on_hudi_tables(spark: SparkSession, lake: str) -> None:
    (written,) = spark.sql(f"UPDATE {lake}.trips SET fare = 9 WHERE id = 'a'").collect()
    assert written.rows_updated == 1
    spark.sql(
        f"""/* {{"app": "dbt"}} */ merge into {lake}.trips as t using (select 'b' as id) as s
        on s.id = t.id when matched then delete"""
    )
    assert rows(spark, f"SELECT * FROM {lake}.trips") == [("a", 9.0)]
    spark.sql(f"CALL run_clean(table => '{lake}.trips')")
    assert spark.sql(f"DESCRIBE HISTORY {lake}.trips").count() >= 3


def test_enable_sql_leaves_other_statements_to_spark(spark: SparkSession, lake: str) -> None:
    """Also statements that pyhudi cannot parse, or would refuse for a Hudi table."""
    spark.sql(f"CREATE TABLE {lake}.plain (id STRING, n INT) USING parquet")
    spark.sql(f"INSERT INTO {lake}.plain SELECT id, 1 FROM {lake}.trips")
    spark.sql(f"ALTER TABLE {lake}.plain ALTER COLUMN n SET DEFAULT 5")
    assert rows(spark, f"SELECT * FROM {lake}.plain") == [("a", 1), ("b", 1)]
    assert rows(spark, "SELECT r'it' || \"s\" /* it's */") == [("its",)]
    assert rows(spark, "SELECT 1; ;") == [(1,)]
    for statement in ("SELECT * FROM nowhere", "CALL nowhere()", "DESCRIBE HISTORY nowhere"):
        with pytest.raises(PySparkException):
            spark.sql(statement)
    with pytest.raises(ConfigError, match="CHANGE COLUMN cannot rename fare"):
        spark.sql(f"ALTER TABLE {lake}.trips ALTER COLUMN fare SET DEFAULT 5")
    with pytest.raises(ConfigError, match="CREATE OR REPLACE TABLE is not supported"):
        spark.sql(f"CREATE OR REPLACE TABLE {lake}.trips (id STRING) USING hudi")


def test_enable_sql_takes_arguments_in_queries(spark: SparkSession, lake: str) -> None:
    by_name = f"SELECT fare FROM {lake}.trips WHERE id = :id"
    assert rows(spark, by_name, args={"id": "a"}) == [(1.5,)]
    more = spark.createDataFrame([("a", 1)], "id string, n int")
    joined = f"SELECT m.n FROM {lake}.trips t JOIN {{more}} m ON m.id = t.id"
    assert rows(spark, joined, more=more) == [(1,)]
    with pytest.raises(UnsupportedTableFeature, match="in DELETE, which pyhudi runs"):
        spark.sql(f"DELETE FROM {lake}.trips WHERE id = :id", args={"id": "a"})
    with pytest.raises(UnsupportedTableFeature, match="in INSERT, which pyhudi runs"):
        spark.sql(f"INSERT INTO {lake}.trips SELECT id, 1 FROM {{more}}", more=more)


def test_enable_sql_is_undone_by_each_call(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    pyhudi.create_table(base, spark.sql("SELECT 1 AS n").toPandas(), key=None)
    count = f"SELECT count(*) AS n FROM hudi.`{base}`"
    enabled = enable_sql(spark)
    with enable_sql(spark, options={"hoodie.write.lock.wait_time_ms": 1}):
        assert rows(spark, count) == [(1,)]
    assert rows(spark, count) == [(1,)]
    enabled.disable()
    enabled.disable()
    with pytest.raises(AnalysisException):
        spark.sql(count)
    assert "sql" not in vars(spark)


def test_enable_sql_checks_its_settings(spark: SparkSession) -> None:
    with (
        pytest.raises(ConfigError, match=r"hoodie\.unknown"),
        enable_sql(spark, options={"hoodie.unknown": 1}),
    ):
        pass
    assert "sql" not in vars(spark)


def test_temporary_view_lasts_longer_than_its_statement(spark: SparkSession, lake: str) -> None:
    """With a comment in front of CREATE, too."""
    spark.sql(f"/* x */ CREATE OR REPLACE TEMP VIEW some AS SELECT id FROM {lake}.trips")
    assert rows(spark, "SELECT * FROM some") == [("a",), ("b",)]
    sql(spark, f"-- x\nCREATE OR REPLACE TEMPORARY VIEW some AS SELECT fare FROM {lake}.trips")
    assert rows(spark, "SELECT * FROM some") == [(1.5,), (2.0,)]
    spark.sql(f"/* x */ CACHE TABLE cached AS SELECT id FROM {lake}.trips")
    assert rows(spark, "SELECT * FROM cached") == [("a",), ("b",)]
    spark.sql("UNCACHE TABLE cached")
    spark.sql("DROP VIEW some")


@on_spark4
def test_create_table_enters_the_catalog(spark: SparkSession, lake: str, tmp_path: Path) -> None:
    names = f"SHOW TABLES IN {lake} LIKE 't*'"
    assert rows(spark, names) == [(lake, "trips", False)]
    (entry,) = spark.sql(f"SHOW TABLE EXTENDED IN {lake} LIKE 't*'").collect()
    assert "Provider: hudi\n" in entry.information
    assert " |-- fare: double" in entry.information
    details = dict(tuple(row)[:2] for row in spark.sql(f"DESCRIBE EXTENDED {lake}.trips").collect())
    assert (details["fare"], details["Provider"]) == ("double", "hudi")
    assert pyhudi.table_exists(details["Location"])
    with pytest.raises(ConfigError, match="there is a table or view"):
        spark.sql(f"CREATE TABLE {lake}.trips (id STRING) USING hudi LOCATION '{tmp_path}/x'")
    with pytest.raises(ConfigError, match="there is no database 'nowhere'"):
        spark.sql(f"CREATE TABLE nowhere.x (id STRING) USING hudi LOCATION '{tmp_path}/x'")
    assert not pyhudi.table_exists(tmp_path / "x")
    spark.sql(f"DROP TABLE {lake}.trips")
    assert rows(spark, names) == []
    assert not pyhudi.table_exists(details["Location"])


def test_sql_leaves_no_view_in_the_session(spark: SparkSession, lake: str) -> None:
    """Neither a statement that fails nor a temporary view, which reads a global one."""
    before = views(spark)
    hidden = f"SHOW VIEWS IN {GLOBAL} LIKE '_pyhudi_*'"
    hidden_before = spark.sql(hidden).count()
    trips = f"{lake}.trips"
    frame = spark.sql(f"SELECT id FROM {trips} WHERE fare > (SELECT min(fare) FROM {trips})")
    spark.sql(f"DELETE FROM {trips} WHERE id IN (SELECT concat(id, '!') FROM {trips})")
    for statement in (
        f"SELECT nothing FROM {trips}",
        f"CREATE TEMPORARY VIEW failed AS SELECT nothing FROM {trips}",
        f"UPDATE {trips} SET fare = 1 WHERE id IN (SELECT nothing FROM {trips})",
        f"INSERT INTO {trips} SELECT nothing FROM {trips}",
    ):
        with pytest.raises(AnalysisException):
            spark.sql(statement)
    assert spark.sql(hidden).count() == hidden_before
    spark.sql(f"CREATE TEMPORARY VIEW kept AS SELECT id FROM {trips}")
    assert views(spark) == {*before, "kept"}
    assert spark.sql(hidden).count() == hidden_before + 1
    assert [row.id for row in frame.collect()] == ["b"]
    assert rows(spark, "SELECT * FROM kept") == [("a",), ("b",)]
    spark.sql("DROP VIEW kept")


def views(spark: SparkSession) -> set[str]:
    """Return the temporary views of a session, by both ways to list them."""
    listed = {table.name for table in spark.catalog.listTables() if table.isTemporary}
    assert listed == {
        row.tableName for row in spark.sql("SHOW TABLES").collect() if row.isTemporary
    }
    return listed


@on_spark4
def test_catalog_names_a_table_for_other_sessions(
    spark: SparkSession, lake: str, tmp_path: Path
) -> None:
    pyhudi.create_table(tmp_path / "it's", spark.sql("SELECT 1 AS n").toPandas(), key="n")
    location = f"{tmp_path}/it\\'s"
    spark.sql(f"CREATE TABLE IF NOT EXISTS {lake}.others USING hudi LOCATION '{location}'")
    other = spark.newSession()
    assert [row.n for row in sql(other, f"SELECT n FROM {lake}.others").collect()] == [1]


@on_spark4
def test_view_in_the_catalog_reads_the_current_table(spark: SparkSession, lake: str) -> None:
    first = pyhudi.open_table(_location(spark, lake)).history().column("instant")[0].as_py()
    spark.sql(
        f"""/* x */ CREATE OR REPLACE VIEW {lake}.fares AS WITH a AS (SELECT * FROM {lake}.trips)
        SELECT a.id, trips.fare FROM a JOIN {lake}.trips ON a.id = trips.id"""
    )
    spark.sql(f"CREATE VIEW {lake}.old AS SELECT id FROM {lake}.trips VERSION AS OF {first}")
    assert len(rows(spark, f"SELECT * FROM {lake}.fares")) == 2
    spark.sql(f"INSERT INTO {lake}.trips VALUES ('c', 3)")
    assert rows(spark, f"SELECT * FROM {lake}.fares") == [("a", 1.5), ("b", 2.0), ("c", 3.0)]
    assert rows(spark, f"SELECT * FROM {lake}.old") == [("a",), ("b",)]


def _location(spark: SparkSession, lake: str) -> str:
    details = dict(tuple(row)[:2] for row in spark.sql(f"DESCRIBE EXTENDED {lake}.trips").collect())
    return str(details["Location"])
