"""A driver that writes batches until it is killed: a program that `drivers.py` starts.

    python driver.py <table> <folder> <name>

The next batch stands in the folder, and moves on once it is written. A driver that begins anew, or
beside one that stands still, writes it again: under the same `commit_id`, or, if it is called
"sink", as the same batch of a stream.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pyhudi
from pyhudi.engine.local import SMALL_CALL_BYTES
from pyhudi.errors import CommitConflict, HistoryUnavailable, LockTimeout
from pyhudi.spark.engine import SMALL_CALL_OPTION
from pyhudi.spark.stream_sink import SinkMethod, sink

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("v", pa.int64())])
ROWS = 40
"""New rows of a batch; an upsert has the driver's own row and one of all drivers beside."""
SHORT = {"hoodie.write.lock.storage.validity.timeout.secs": 10}
"""The shortest lock there is: who dies with it keeps the others waiting so long."""


def main(base: str, folder: str, name: str) -> None:
    spark = session()
    Path(folder, f"{name}.ready").write_text(str(os.getpid()))
    while True:
        number = next_batch(folder, name)
        try:
            write(spark, base, name, number)
        except (CommitConflict, LockTimeout, HistoryUnavailable):
            continue
        told = Path(folder, f"{name}.{os.getpid()}")
        told.write_text(str(max(number + 1, next_batch(folder, name))))
        told.replace(Path(folder, name))


def session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[2,8]")  # workers are killed
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.memory", "512m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )


def next_batch(folder: str, name: str) -> int:
    told = Path(folder, name)
    return int(told.read_text()) if told.exists() else 0


def write(spark: SparkSession, base: str, name: str, number: int) -> None:
    """In one of two ways that write a batch once, on executors and on the driver in turn."""
    spark.conf.set(SMALL_CALL_OPTION, str(number % 2 * SMALL_CALL_BYTES))
    rows = batch(spark, name, number)
    verb: SinkMethod = "bulk_insert"
    if number % 3 < 2:
        both = spark.createDataFrame([(name,), ("shared",)], "id string").select(
            "id", sf.lit("rome").alias("city"), sf.lit(number).cast("long").alias("v")
        )
        rows, verb = rows.unionByName(both), "upsert"
    if name == "sink":
        sink(base, verb, identifier=name, options=SHORT)(rows, number)
        return
    table = pyhudi.open_table(base, options=SHORT)
    getattr(table, verb)(rows, commit_id=f"{name}/{number}")


def batch(spark: SparkSession, name: str, number: int) -> DataFrame:
    return spark.range(0, ROWS, 1, 2).select(
        sf.format_string(f"{name}-{number}-%d", sf.col("id")).alias("id"),
        sf.element_at(
            sf.array(sf.lit("rome"), sf.lit("oslo"), sf.lit("lima")),
            (sf.col("id") % 3 + 1).cast("int"),
        ).alias("city"),
        sf.lit(number).cast("long").alias("v"),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
