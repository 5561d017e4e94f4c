"""A program that `test_connect.py` runs: reading and writing through Spark Connect.

python connect_job.py <folder of an empty table>

A process of its own, since PySpark has a classic session or one of Connect, never both.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pyhudi
from pyhudi.errors import CorruptTable
from pyhudi.spark import SparkEngine, read, register, register_source, sql
from pyhudi.spark.engine import SMALL_CALL_OPTION


def main(base: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.remote("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )

    def rows(first: int, stop: int, v: int) -> DataFrame:
        key = sf.format_string("k%03d", sf.col("id"))
        part = sf.concat(sf.lit("p"), sf.col("id") % 2)
        return spark.range(first, stop, 1, 2).select(
            key.alias("id"), part.alias("part"), sf.lit(v).cast("long").alias("v")
        )

    table = pyhudi.open_table(base)
    spark.conf.set(SMALL_CALL_OPTION, "0")
    table.bulk_insert(rows(0, 20, 1))
    before = table.refresh().state.timeline.commits[-1].requested
    table.upsert(rows(15, 30, 2))
    spark.conf.unset(SMALL_CALL_OPTION)
    table.delete_keys(rows(0, 2, 0).drop("v"))
    merge = table.merge(rows(28, 32, 3)).when_matched_update_all()
    merge.when_not_matched_insert_all().execute()
    now = table.refresh().state.timeline.commits[-1].requested
    expected = {1: 13, 2: 13, 3: 4}

    def counted(frame: DataFrame) -> dict[int, int]:
        grouped = frame.groupBy("v").count().collect()
        return {row["v"]: row["count"] for row in grouped}

    assert counted(read(spark, base)) == expected
    assert counted(read(spark, base, as_of=before)) == {1: 20}
    planned(read(spark, base))
    diff = pyhudi.open_table(base, engine=SparkEngine(spark)).diff(before, now).to_spark()
    found = {row["op"]: row["count"] for row in diff.groupBy("op").count().collect()}
    assert found == {"i": 12, "u": 5, "d": 2}, found
    register(spark, "things", base)
    (count,) = spark.sql("SELECT count(*) AS n FROM things WHERE v > 1").collect()
    assert count["n"] == 17
    (written,) = sql(spark, "UPDATE things SET v = v WHERE id IN (SELECT id FROM things)").collect()
    assert written["rows_updated"] == 30
    (count,) = sql(spark, "SELECT count(*) AS n FROM things t WHERE t.v > 1").collect()
    assert count["n"] == 17
    broken = SparkEngine(spark).scan(fail, [1], pa.schema([("v", pa.int64())]))
    with pytest.raises(CorruptTable) as caught:
        broken.groupBy("v").count().collect()
    assert caught.value.args == ("damaged",)
    assert (caught.value.file, caught.value.offset) == ("f", 3)
    register_source(spark)
    assert counted(spark.read.format("pyhudi").load(base)) == expected
    spark.stop()


def fail(_task: int) -> Iterator[pa.RecordBatch]:
    """Raise like a read of a damaged file."""
    raise CorruptTable("damaged", file="f", offset=3)


def planned(frame: DataFrame) -> None:
    """A frame of a scan reads less, and answers the same."""
    assert frame.count() == 30
    assert frame.filter(frame.v > 1).count() == frame.where("v > 1").count() == 17
    narrow = frame.filter((frame.v > 1) & (frame.part == "p1")).select("id")
    assert narrow.columns == ["id"]
    assert narrow.sort(frame.v.desc(), "id").first()[0] == "k029"
    assert frame.select("id", "v").agg(sf.sum("v")).first()[0] == 13 + 26 + 12
    grouped = frame.groupBy(frame.v).agg(sf.count("*").alias("n")).collect()
    assert {row["v"]: row["n"] for row in grouped} == {1: 13, 2: 13, 3: 4}
    joined = narrow.join(frame.select("id", "v"), "id")
    assert joined.count() == narrow.count()
    assert frame.select(sf.struct("*").alias("all")).first()[0].asDict().keys() == {
        "id",
        "part",
        "v",
    }


if __name__ == "__main__":
    main(sys.argv[1])
