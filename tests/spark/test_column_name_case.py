"""`spark.sql.caseSensitive` decides for the names of a DataFrame's columns, in every path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import pyhudi
from pyhudi import HudiTable, SchemaMismatch
from pyhudi.spark import create_table, read, sql

pytestmark = [pytest.mark.spark35, pytest.mark.filterwarnings("ignore")]

CASE = "spark.sql.caseSensitive"
WRITES: dict[str, Callable[[HudiTable, DataFrame], Any]] = {
    "upsert": lambda table, rows: table.upsert(rows),
    "upsert_merge": lambda table, rows: table.upsert(rows, schema_mode="merge"),
    "insert": lambda table, rows: table.insert(rows),
    "bulk_insert": lambda table, rows: table.bulk_insert(rows),
    "overwrite_partitions": lambda table, rows: table.overwrite_partitions(rows),
    "merge": lambda table, rows: table.merge(rows).when_not_matched_insert_all().execute(),
}


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[HudiTable]:
    ddl = "Id STRING, Fare DOUBLE, City STRING"
    yield create_table(spark, tmp_path / "t", ddl, key="Id", partition_by="City")
    spark.conf.set(CASE, "false")


def rows(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT 'a' AS id, 2D AS fare, 'x' AS city")


@pytest.mark.parametrize("write", WRITES)
def test_write_follows_the_session(write: str, spark: SparkSession, table: HudiTable) -> None:
    spark.conf.set(CASE, "true")
    with pytest.raises(SchemaMismatch) as error:
        WRITES[write](table, rows(spark))
    assert any(f"'{name}'" in str(error.value) for name in ("Id", "id", "Fare", "City"))
    spark.conf.set(CASE, "false")
    WRITES[write](table, rows(spark))
    names = ["Id", "Fare", "City"]
    assert pyhudi.open_table(table.uri).scan(names).to_arrow().to_pylist() == [
        dict(zip(names, ("a", 2.0, "x"), strict=True))
    ]


def test_reads_and_deletes_follow_the_session(spark: SparkSession, table: HudiTable) -> None:
    table.upsert(rows(spark))
    for query in (read(spark, table.uri, columns=["fare"]), read(spark, table.uri).select("fare")):
        assert [tuple(row) for row in query.collect()] == [(2.0,)]
    assert read(spark, table.uri, columns=["fare"]).columns == ["Fare"]
    result = table.delete_keys(rows(spark).select("id", "city"))
    assert result.rows_deleted == 1
    spark.conf.set(CASE, "true")
    with pytest.raises(SchemaMismatch, match="Did you mean 'Fare'"):
        read(spark, table.uri, columns=["fare"])
    with pytest.raises(SchemaMismatch, match="Did you mean 'Id'"):
        table.delete_keys(rows(spark).select("id", "city"))


def test_merge_clauses_name_the_columns_of_the_source(
    spark: SparkSession, table: HudiTable
) -> None:
    table.upsert(rows(spark))
    merge = table.merge(spark.sql("SELECT 'a' AS id, 5D AS fare, 'x' AS CITY"))
    merge.when_matched_update({"Fare": "source.fare + target.Fare"}).execute()
    assert read(spark, table.uri, columns=["Fare"]).collect()[0][0] == 7.0


def test_write_refuses_two_columns_of_one_name(spark: SparkSession, table: HudiTable) -> None:
    both = rows(spark).selectExpr("id", "city", "fare", "fare AS FARE")
    with pytest.raises(SchemaMismatch, match="'fare', 'FARE' are both 'Fare' in the table"):
        table.upsert(both)


def test_sql_follows_the_session(spark: SparkSession, tmp_path: Path) -> None:
    base = str(tmp_path / "t")
    sql(
        spark,
        f"""CREATE TABLE cases (Id INT, Fare DOUBLE, City STRING) USING hudi
        PARTITIONED BY (city) LOCATION '{base}' TBLPROPERTIES (primaryKey = 'ID')""",
    )
    sql(spark, "INSERT INTO cases (ID, FARE, CITY) VALUES (1, 1, 'x'), (2, 2, 'y')")
    sql(spark, "UPDATE cases SET fare = fare + 1 WHERE id = 1")
    sql(spark, "ALTER TABLE cases ALTER COLUMN fare COMMENT 'of a ride'")
    sql(spark, "ALTER TABLE cases ADD COLUMNS (n INT AFTER FARE)")
    sql(spark, "ALTER TABLE cases DROP PARTITION (CITY = 'y')")
    table = pyhudi.open_table(base)
    assert table.config.record_key_fields == ("Id",)
    assert table.scan().to_arrow().to_pylist() == [{"Id": 1, "Fare": 2.0, "n": None, "City": "x"}]
