"""Small DataFrames are fetched by one query and written by the driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pyhudi
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.spark import SparkEngine, SparkHudiTable
from pyhudi.spark.engine import SMALL_CALL_OPTION
from pyhudi.spark.small_frames import MAX_ROWS, fetch_if_small

pytestmark = pytest.mark.filterwarnings("ignore")  # of PySpark 3.5

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")


@pytest.fixture(autouse=True)
def defaults(spark: SparkSession, small_calls: None) -> None:  # noqa: ARG001 - runs before
    spark.conf.unset(SMALL_CALL_OPTION)


def rows(spark: SparkSession, *keys: int, name: str = "new") -> DataFrame:
    return spark.createDataFrame(
        [(key, key % 3, name) for key in keys], "id long, p int, name string"
    )


def create(spark: SparkSession, path: Path, table_type: Any) -> pyhudi.HudiTable:
    many = spark.range(1000).selectExpr("id", "cast(id % 3 as int) as p", "'old' as name")
    engine = SparkEngine(spark)
    return pyhudi.create_table(
        str(path / "t"), many, key="id", partition_by="p", type=table_type, engine=engine
    )


def jobs_of(spark: SparkSession, group: str) -> int:
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))


@pytest.mark.spark35
@pytest.mark.parametrize("table_type", TYPES)
def test_small_writes_run_two_jobs_at_most(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    table = create(spark, tmp_path, table_type)
    changes: dict[str, Callable[[], Any]] = {
        "upsert": lambda: table.upsert(rows(spark, 1, 2000)),
        "insert": lambda: table.insert(rows(spark, 2001)),
        "bulk_insert": lambda: table.bulk_insert(rows(spark, 2002)),
        "delete_keys": lambda: table.delete_keys(rows(spark, 3)),
        "merge": lambda: (
            table.merge(rows(spark, 4, 2003))
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        ),
    }
    for operation, change in changes.items():
        group = f"{operation} {table.uri}"
        spark.sparkContext.setJobGroup(group, operation)
        change()
        assert 1 <= jobs_of(spark, group) <= 2, operation
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    found = pyhudi.open_table(table.uri).scan(columns=["id", "name"]).to_arrow().to_pylist()
    names = {row["id"]: row["name"] for row in found}
    assert len(names) == len(found) == 1000 - 1 + 4
    assert {key for key, name in names.items() if name == "new"} == {1, 4, 2000, 2001, 2002, 2003}
    assert 3 not in names


@pytest.mark.parametrize("table_type", TYPES)
def test_update_of_one_row_runs_two_jobs_at_most(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    table = create(spark, tmp_path, table_type)
    spark_table = SparkHudiTable.forPath(spark, table.uri)
    spark.sparkContext.setJobGroup(table.uri, "update")
    spark_table.update("id = 7", {"name": "concat(name, '!')"})
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert 1 <= jobs_of(spark, table.uri) <= 2
    found = pyhudi.open_table(table.uri).scan(where="name <> 'old'").to_arrow()
    assert found.select(["id", "name"]).to_pylist() == [{"id": 7, "name": "old!"}]


def test_rows_beyond_limit_stay_on_executors(spark: SparkSession) -> None:
    engine = SparkEngine(spark)
    fetched = fetch_if_small(engine, spark.range(MAX_ROWS).toDF("id"))
    assert fetched is not None
    assert fetched.column("id").sort().to_pylist() == list(range(MAX_ROWS))
    assert fetch_if_small(engine, spark.range(MAX_ROWS + 1).toDF("id")) is None


def test_wide_rows_stay_on_executors(spark: SparkSession) -> None:
    wide = spark.range(100).select("id", sf.expr("repeat('x', 1000000)").alias("text"))
    assert fetch_if_small(SparkEngine(spark), wide) is None


def test_empty_frame_is_small(spark: SparkSession) -> None:
    fetched = fetch_if_small(SparkEngine(spark), rows(spark, 1).where("id > 5"))
    assert fetched is not None
    assert fetched.num_rows == 0
    assert fetched.schema.field("name").type == pa.string()


def test_filter_of_many_rows_may_be_small(spark: SparkSession) -> None:
    few = spark.range(100_000_000).where("id < 5")
    fetched = fetch_if_small(SparkEngine(spark), few)
    assert fetched is not None
    assert fetched.num_rows == 5


def test_large_shuffled_frame_is_not_computed(spark: SparkSession) -> None:
    """Finding out that it is large would take as long as the write's own first job."""
    spark.sparkContext.setJobGroup("large frame", "")
    large = spark.range(100_000_000).repartition(3)
    assert fetch_if_small(SparkEngine(spark), large) is None
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert jobs_of(spark, "large frame") == 0


def test_small_call_bytes_of_session_decide(spark: SparkSession) -> None:
    engine = SparkEngine(spark)
    spark.conf.set(SMALL_CALL_OPTION, "0")
    assert fetch_if_small(engine, rows(spark, 1)) is None
    spark.conf.set(SMALL_CALL_OPTION, "few")
    with pytest.raises(ConfigError, match=r"spark\.pyhudi\.smallCallBytes is 'few'"):
        _ = engine.small_call_bytes


@pytest.mark.parametrize("where", ["driver", "executors"])
def test_errors_are_equal_on_driver_and_executors(
    spark: SparkSession, tmp_path: Path, where: str
) -> None:
    table = pyhudi.create_table(
        str(tmp_path / "t"),
        pa.schema([("id", pa.int64()), ("at", pa.timestamp("us"))]),
        key="id",
        engine=LocalEngine(),
    )
    if where == "executors":
        spark.conf.set(SMALL_CALL_OPTION, "0")
    at = spark.sql("SELECT 1L AS id, timestamp'2024-01-01 00:00:00' AS at")
    with pytest.raises(SchemaMismatch, match="timestamps of the session's time zone"):
        table.upsert(at)
    no_key = spark.sql("SELECT CAST(NULL AS BIGINT) AS id, timestamp_ntz'2024-01-01' AS at")
    with pytest.raises(SchemaMismatch, match="null"):
        table.upsert(no_key)
