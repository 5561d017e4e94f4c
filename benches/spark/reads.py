"""Reads by pyhudi beside Apache Hudi's, in turns in one Spark session, with defaults on both sides.

    reads.py FOLDER [--rows 1000000] [--runs 5] [--types cow mor]

pyhudi writes a table of the write benchmark's rows into the folder, merge-on-read with an upsert of
1 % in log files. Each query is asked of both readers once before anything is timed. What they
answer is compared. Prints the medians of the rounds and their ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import rows

import pyhudi
from pyhudi.spark import read
from tests.helpers.oracle.client import oracle_home

RELEASE = "1.2.0"
MOST = 0.8
"""Of Hudi's time, that is wanted of each query but the last."""

QUERIES: dict[str, Callable[[DataFrame], Any]] = {
    "count()": lambda frame: frame.count(),
    "sum of one column": lambda frame: frame.agg(sf.sum("distance")).collect(),
    "sum of groups": lambda frame: (
        frame.groupBy(rows.PARTITION).agg(sf.sum("distance")).orderBy(rows.PARTITION).collect()
    ),
    "a filter by key": lambda frame: (
        frame.where(sf.col("id") == _KEY).select("id", "rider", "distance").collect()
    ),
    "a count of a filter": lambda frame: frame.where("distance < 1000").count(),
    "every column digested": lambda frame: frame.agg(
        sf.sum(sf.xxhash64(*rows.SCHEMA.names).cast("decimal(38)"))
    ).collect(),
}
_KEY = rows.keys(rows.numbers(8))[5].as_py()


def main() -> None:
    """Makes the tables, asks and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of the tables; emptied first")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--types", nargs="+", default=["cow", "mor"], choices=["cow", "mor"])
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    for kind in given.types:
        _make(given.folder / kind, kind, given.rows)
    spark = _session()
    found = {kind: _measured(spark, given.folder / kind, given.runs) for kind in given.types}
    for kind, of_kind in found.items():
        print(f"\n{kind:24}{'pyhudi':>10}{'hudi':>10}   ratio")
        for name, (ours, theirs) in of_kind.items():
            print(f"{name:24}{ours:10.3f}{theirs:10.3f}   {ours / theirs:.2f}")
    print(json.dumps(found))
    spark.stop()


def _make(folder: Path, kind: Any, count: int) -> None:
    numbers = rows.numbers(count)
    ts = numbers.cast("int64")
    table = pyhudi.create_table(
        folder,
        rows.SCHEMA,
        key=rows.KEY,
        partition_by=rows.PARTITION,
        order_by=rows.ORDERING,
        type=kind,
    )
    table.bulk_insert(rows.make_rows(numbers, ts, 1))
    if kind == "mor":
        some = numbers.take(rows.numbers(count // 100))
        table.refresh().upsert(rows.make_rows(some, some.cast("int64"), 2))


def _measured(spark: SparkSession, folder: Path, runs: int) -> dict[str, tuple[float, float]]:
    readers = {
        "pyhudi": lambda: read(spark, folder),
        "hudi": lambda: spark.read.format("hudi").load(str(folder)),
    }
    seconds: dict[str, dict[str, list[float]]] = {
        name: {reader: [] for reader in readers} for name in QUERIES
    }
    for number in range(runs + 1):
        for name, query in QUERIES.items():
            answers = {}
            for reader, make in readers.items():
                start = time.perf_counter()
                answers[reader] = query(make())
                if number:
                    seconds[name][reader].append(time.perf_counter() - start)
            if len(set(map(str, answers.values()))) > 1:
                sys.exit(f"{name}: the answers differ: {answers}")
    return {
        name: (statistics.median(of["pyhudi"]), statistics.median(of["hudi"]))
        for name, of in seconds.items()
    }


def _session() -> SparkSession:
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    jar = oracle_home() / "jars" / f"hudi-spark3.5-bundle_2.12-{RELEASE}.jar"
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "4g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.jars", str(jar))
        .config("spark.driver.extraClassPath", str(jar))
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
        .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog"
        )
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


if __name__ == "__main__":
    main()
