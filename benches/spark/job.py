"""All steps by one engine in one Spark session: `job.py ENGINE TYPE CORES TABLE INPUTS`.

Prints one line of JSON for each step, its seconds among it, and then waits for a line on its
standard input, so that the table can be looked at between steps. What is timed begins with the
input file, or the call that reads, and ends with the commit, or with the last row digested. A small
table of the same kind is written and read first.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyspark
from pyspark.sql import SparkSession
from steps import ENGINES, READS, STEPS, TYPES

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import rows
from spark_writes import RELEASE, needed, options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DIGEST = f"sum(cast(xxhash64({', '.join(rows.SCHEMA.names)}) as decimal(38)))"


class Engine(Protocol):
    """One way to write and read with Spark."""

    def write(self, table: str, verb: str, frame: DataFrame) -> None:
        """One commit; the first makes the table."""
        ...

    def read(self, table: str, start: str | None) -> DataFrame:
        """The rows of the schema; with `start`, those of commits that completed after it."""
        ...


class Pyhudi:
    """pyhudi: nothing but the wheel."""

    def __init__(self, spark: SparkSession, kind: str, given: dict[str, str]) -> None:
        self._spark = spark
        self._kind = kind
        # The others are arguments here, or say how Spark shuffles.
        told = ("hoodie.metadata.", "hoodie.parquet.")
        self._options = {name: given[name] for name in given if name.startswith(told)}

    def write(self, table: str, verb: str, frame: DataFrame) -> None:
        import pyhudi  # noqa: PLC0415

        if verb == "bulk_insert":
            held = pyhudi.create_table(
                table,
                rows.SCHEMA,
                key=rows.KEY,
                partition_by=rows.PARTITION,
                order_by=rows.ORDERING,
                type=self._kind,
                options=self._options,
            )
            held.bulk_insert(frame)
        else:
            pyhudi.open_table(table, options=self._options).upsert(frame)

    def read(self, table: str, start: str | None) -> DataFrame:
        from pyhudi.spark import read, read_incremental  # noqa: PLC0415

        columns = rows.SCHEMA.names
        if start is None:
            return read(self._spark, table, columns=columns)
        return read_incremental(self._spark, table, start=start, columns=columns)


class Hudi:
    """Apache Hudi by its own bundle."""

    def __init__(self, spark: SparkSession, _kind: str, given: dict[str, str]) -> None:
        self._spark = spark
        self._options = given

    def write(self, table: str, verb: str, frame: DataFrame) -> None:
        writer = frame.write.format("hudi").options(**self._options)
        writer = writer.option("hoodie.datasource.write.operation", verb)
        writer.mode("append").save(table)

    def read(self, table: str, start: str | None) -> DataFrame:
        reader = self._spark.read.format("hudi").options(
            **{
                name: self._options[name]
                for name in self._options
                if name.endswith("metadata.enable")
            }
        )
        if start is not None:
            reader = reader.option("hoodie.datasource.query.type", "incremental")
            reader = reader.option("hoodie.datasource.read.begin.instanttime", start)
        return reader.load(table).select(*rows.SCHEMA.names)


def main() -> None:
    """Warms up, then does the steps one by one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("type", choices=TYPES)
    parser.add_argument("cores", type=int)
    parser.add_argument("table", type=Path)
    parser.add_argument("inputs", type=Path)
    parser.add_argument("--codec", default="own")
    parser.add_argument("--bare", action="store_true", help="the simple index, no metadata table")
    parser.add_argument("--memory", default="6g", help="of the JVM")
    given = parser.parse_args()
    spark = _session(given)
    make = {"pyhudi": Pyhudi, "hudi": Hudi}[given.engine]
    told = options(given.type, given.codec) if given.bare else needed(given.type, given.codec)
    engine: Engine = make(spark, given.type, told)
    _warm_up(spark, engine, given)
    begun = ""
    for step in STEPS:
        start = time.perf_counter()
        found = _step(spark, engine, given, step, begun)
        seconds = time.perf_counter() - start
        print(json.dumps({"step": step, "seconds": seconds, **found}), flush=True)
        sys.stdin.readline()
        begun = begun or _completed(given.table)
    spark.stop()


def _step(
    spark: SparkSession, engine: Engine, given: argparse.Namespace, step: str, begun: str
) -> dict[str, str]:
    if step in READS:
        start = begun if step == "incremental" else None
        return _digest(engine.read(str(given.table), start))
    verb = "bulk_insert" if step == "bulk" else "upsert"
    engine.write(str(given.table), verb, spark.read.parquet(str(given.inputs / f"{step}.parquet")))
    return {}


def _digest(frame: DataFrame) -> dict[str, str]:
    """Reads every column of every row: the digest needs them all."""
    row = frame.selectExpr("count(*) as rows", f"{_DIGEST} as digest").first()
    assert row is not None
    return {"rows": str(row["rows"]), "digest": str(row["digest"])}


def _completed(table: Path) -> str:
    """When the newest commit of a table of version 9 completed."""
    names = (table / ".hoodie" / "timeline").glob("*_*commit")
    return max(path.name.split("_")[1].split(".")[0] for path in names)


def _warm_up(spark: SparkSession, engine: Engine, given: argparse.Namespace) -> None:
    warm = given.table.with_name(f"{given.table.name}-warm")
    shutil.rmtree(warm, ignore_errors=True)
    frame = spark.read.parquet(str(given.inputs / "u1.parquet"))
    for verb in ("bulk_insert", "upsert"):
        engine.write(str(warm), verb, frame)
    _digest(engine.read(str(warm), None))
    _digest(engine.read(str(warm), "0"))
    shutil.rmtree(warm)


def _session(given: argparse.Namespace) -> SparkSession:
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master(f"local[{given.cores}]")
        .config("spark.driver.memory", given.memory)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.default.parallelism", "4")
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    )
    if given.engine == "hudi":
        from tests.helpers.oracle.client import oracle_home  # noqa: PLC0415

        jar = oracle_home() / "jars" / f"hudi-spark3.5-bundle_2.12-{RELEASE}.jar"
        builder = (
            builder.config("spark.jars", str(jar))
            .config("spark.driver.extraClassPath", str(jar))
            .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
            .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
            .config(
                "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog"
            )
        )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


if __name__ == "__main__":
    main()
