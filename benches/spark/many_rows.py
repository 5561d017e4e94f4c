"""Upserts many rows with a small driver, and prints the peak memory of each kind of process.

    many_rows.py FOLDER [--rows 20000000] [--heap 1g] [--payload 0] [--one-of 1] [--type cow]

A cluster on this machine (`local-cluster`) has driver and executor in processes of their own. A
bulk_insert creates the table; an upsert then brings one of `--one-of` rows again with another
value. With `--payload 1024`, 20 million rows make a table of 20 GB. Once a second the program reads
the memory of the processes (Linux only): the driver's Python and JVM, the executor's JVM, and the
largest of its Python workers. Fails unless exactly the upserted rows have the new value.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pyhudi
from pyhudi.spark import SparkEngine, read

_CORES = 2
_PARTITIONS = 4


def main() -> None:
    """Writes twice, reads, and prints a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of the table; emptied first")
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--heap", default="1g", help="of the driver's JVM")
    parser.add_argument("--payload", type=int, default=0, help="bytes per row that do not compress")
    parser.add_argument("--one-of", type=int, default=1, help="upsert one of so many rows")
    parser.add_argument("--type", default="cow", choices=["cow", "mor"])
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    spark = _session(given.heap)
    watch = Watch()
    engine = SparkEngine(spark)
    rows = _rows(spark, given, 1)
    table = pyhudi.create_table(
        str(given.folder),
        rows.limit(0),
        key="id",
        partition_by="part",
        order_by="v",
        type=given.type,
        engine=engine,
    )
    _timed(watch, "bulk_insert", lambda: table.bulk_insert(rows))
    size = sum(file.stat().st_size for file in given.folder.rglob("*.parquet"))
    print(json.dumps({"table MiB": size >> 20}), flush=True)
    changed = _rows(spark, given, 2, given.one_of)
    _timed(watch, "upsert", lambda: table.refresh().upsert(changed))
    found: dict[int, int] = {}

    def count() -> None:
        frame = read(spark, str(given.folder), columns=["v"])
        found.update(row.asDict().values() for row in frame.groupBy("v").count().collect())

    _timed(watch, "count by value", count)
    new = -(-given.rows // given.one_of)
    expected = {2: new, 1: given.rows - new} if given.one_of > 1 else {2: new}
    assert found == expected, found
    spark.stop()
    shutil.rmtree(given.folder)


def _rows(spark: SparkSession, given: argparse.Namespace, value: int, one_of: int = 1) -> DataFrame:
    number, count = sf.col("id"), given.rows
    digests = [
        sf.unhex(sf.sha2(sf.concat(number.cast("string"), sf.lit(f"-{part}")), 512))
        for part in range(given.payload // 64)
    ]
    payload = [sf.concat(*digests).alias("payload")] if digests else []
    return spark.range(0, count, one_of, 16).select(
        sf.concat(sf.lit("key-"), sf.lpad((number * 7919 % count).cast("string"), 12, "0")).alias(
            "id"
        ),
        sf.concat(sf.lit("p"), number % _PARTITIONS).alias("part"),
        sf.lit(value).cast("long").alias("v"),
        sf.xxhash64(number, sf.lit(value)).alias("a"),
        sf.rand(value).alias("b"),
        *payload,
    )


def _timed(watch: Watch, step: str, act: Callable[[], object]) -> None:
    watch.peaks.clear()
    start = time.perf_counter()
    act()
    seconds = round(time.perf_counter() - start, 1)
    mebibytes = {name: peak >> 20 for name, peak in sorted(watch.peaks.items())}
    print(json.dumps({"step": step, "seconds": seconds, "peak MiB": mebibytes}), flush=True)


class Watch:
    """The peak resident size of each kind of process, read once a second."""

    def __init__(self) -> None:
        self.peaks: dict[str, int] = {}
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            for name, size in _sizes():
                self.peaks[name] = max(self.peaks.get(name, 0), size)
            time.sleep(1)


def _sizes() -> list[tuple[str, int]]:
    """Of this process and those that it started."""
    own = os.getpid()
    parents: dict[int, int] = {}
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "status").read_text()
            command = (folder / "cmdline").read_text()
        except OSError:  # it ended
            continue
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        process = int(folder.name)
        parents[process] = int(fields["PPid"])
        resident = int(fields.get("VmRSS", "0 kB").split()[0]) << 10
        found.append((process, command, resident))
    sizes = []
    for process, command, resident in found:
        if process == own:
            sizes.append(("driver's Python", resident))
        elif _descends(process, own, parents):
            sizes.append((_kind(command), resident))
    return sizes


def _descends(process: int, from_process: int, parents: dict[int, int]) -> bool:
    while process in parents and process != from_process:
        process = parents[process]
    return process == from_process


def _kind(command: str) -> str:
    if "CoarseGrainedExecutorBackend" in command:
        return "executor's JVM"
    return "driver's JVM" if "SparkSubmit" in command else "a Python worker"


def _session(heap: str) -> SparkSession:
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(f"local-cluster[1,{_CORES},4096]")
        .config("spark.driver.memory", heap)
        .config("spark.executor.memory", "4g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "16")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


if __name__ == "__main__":
    main()
