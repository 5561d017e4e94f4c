"""A program that `test_connect.py` runs: reading and writing through Spark Connect.

python connect_job.py <folder of an empty table>

A process of its own, since PySpark has a classic session or one of Connect, never both.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pyhudi
from pyhudi.api.table import HudiTable
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
        .config("spark.connect.progress.reportInterval", "100ms")
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
    follow_and_stop(table, rows(0, 20, 1), Path(base).with_name("others"))
    stop_by_tag(table, rows(0, 20, 1))
    write_without_messages(table, rows(0, 20, 1))
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


class StoppedError(Exception):
    """The exception of a callback that stops a write."""


def hold_second_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the rows of the first of two tasks, and never end the second one."""
    yield from batches
    context = TaskContext.get()
    while context is not None and context.partitionId():
        time.sleep(0.01)


def follow_and_stop(table: HudiTable, frame: DataFrame, others: Path) -> None:
    """A callback gets the steps of a running job, and its exception interrupts only that job."""
    spark = frame.sparkSession

    def wait(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        others.touch()
        while others.exists():
            time.sleep(0.01)
        yield pa.record_batch({"id": pa.array([7], pa.int64())})

    def stop(step: pyhudi.Step) -> None:
        if step.finished == 1:
            others.unlink()
            raise StoppedError(step.label, step.total)

    with ThreadPoolExecutor(1) as thread:
        other = thread.submit(spark.range(0, 1, 1, 1).mapInArrow(wait, "id long").collect)
        while not others.exists():
            time.sleep(0.01)
        with pytest.raises(StoppedError, match=r"write files.*2"):
            table.bulk_insert(frame.mapInArrow(hold_second_task, frame.schema), progress=stop)
        assert [row["id"] for row in other.result()] == [7]
    check_stopped(table, spark)


def stop_by_tag(table: HudiTable, frame: DataFrame) -> None:
    """A user interrupts a write by its tag, which is the operation and the table."""
    spark = frame.sparkSession
    interrupted: list[str] = []

    def interrupt() -> None:
        while not interrupted:
            interrupted.extend(spark.interruptTag(f"pyhudi bulk insert of {table.name}"))
            time.sleep(0.1)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(interrupt)
        with pytest.raises(Exception, match="OPERATION_CANCELED"):
            table.bulk_insert(frame.mapInArrow(hold_second_task, frame.schema))
    check_stopped(table, spark)


def write_without_messages(table: HudiTable, frame: DataFrame) -> None:
    """A session without progress handlers, as on PySpark 3.5, tells begin and end of each stage."""
    steps: list[pyhudi.Step] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(type(frame.sparkSession), "registerProgressHandler")
        table.bulk_insert(frame, progress=steps.append)
    ends = [(step.label, step.finished == step.total > 0) for step in steps]
    assert ("write files", False) in ends
    assert ends[-1] == ("write metadata", True)


def check_stopped(table: HudiTable, spark: SparkSession) -> None:
    """A write that was stopped leaves a sound table and no tag."""
    assert table.refresh().count() == 0
    assert not table.check(deep=True).findings
    assert not spark.getTags()


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
