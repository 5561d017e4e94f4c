"""A table on HDFS, written and read by the tasks of a Spark session; `make test-hdfs` runs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import pyhudi
from pyhudi import HudiTable
from pyhudi.spark import SparkEngine, native_parquet, read
from tests.helpers.hdfs.server import HdfsServer
from tests.spark.session import is_by_pyhudi, is_by_spark

pytestmark = [pytest.mark.hdfs, pytest.mark.filterwarnings("ignore")]

COUNT = 300


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = HdfsServer(tmp_path_factory.mktemp("hdfs"))
    server.tell("mode 777 /")
    yield f"{server.url}/lake"
    server.close()


@pytest.fixture(scope="module")
def rows(uri: str, spark: SparkSession) -> DataFrame:
    frame = spark.range(COUNT).selectExpr("concat('k', id) AS id", "concat('p', id % 3) AS part")
    return frame.selectExpr("*", "1L AS v")


def made(uri: str, spark: SparkSession, rows: DataFrame) -> HudiTable:
    table = pyhudi.create_table(
        uri,
        pa.schema([("id", pa.string()), ("part", pa.string()), ("v", pa.int64())]),
        key="id",
        partition_by="part",
        type="mor",
        engine=SparkEngine(spark),
    )
    table.bulk_insert(rows)
    return table.refresh()


def test_written_and_read_by_tasks(uri: str, spark: SparkSession, rows: DataFrame) -> None:
    table = made(f"{uri}/tasks", spark, rows)
    few = rows.where("id IN ('k1', 'k2', 'k3')")
    table.upsert(few.selectExpr("id", "part", "7L AS v"))
    frame = read(spark, table.uri)
    assert is_by_pyhudi(frame)
    assert frame.agg({"v": "sum"}).first()[0] == COUNT + 3 * 6
    assert table.refresh().compact().instants
    table.refresh().delete_keys(few.where("id = 'k1'").select("id", "part"))
    assert sorted(row["v"] for row in read(spark, table.uri).where("v > 1").collect()) == [7, 7]
    assert pyhudi.open_table(table.uri).scan().count() == COUNT - 1


def test_base_files_are_read_by_spark(uri: str, spark: SparkSession, rows: DataFrame) -> None:
    table = made(f"{uri}/a b%20[c]", spark, rows)
    frame = read(spark, table.uri)
    assert is_by_spark(frame)
    assert frame.where("part = 'p1'").count() == COUNT // 3
    assert frame.agg({"v": "sum"}).first()[0] == COUNT


def test_pyhudi_reads_files_spark_cannot_reach(
    uri: str, spark: SparkSession, rows: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(f"{uri}/elsewhere", spark, rows)
    elsewhere = "hdfs://no-such-name-service/lake"
    real = native_parquet.PlainFiles.split

    def split(self: Any, scan: Any) -> Any:
        paths, tasks = real(self, scan)
        return [path.replace(uri, elsewhere) for path in paths], tasks

    monkeypatch.setattr(native_parquet.PlainFiles, "split", split)
    frame = read(spark, table.uri)
    assert is_by_pyhudi(frame)
    assert len(frame.collect()) == COUNT
