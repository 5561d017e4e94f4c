"""Measures steps by one engine in one Spark session: `job.py ENGINE TYPE CORES TABLES INPUTS`.

Prints a line of JSON for each measurement: seconds that passed, processor seconds of this process,
its JVM and the JVM's Python workers, and the answer, which must be the same for all engines. The
clock starts before the input file is opened, or before the table is, and stops after the commit, or
when the answer is there. A small table is written and read first, and each query runs once before
it is measured.

The folder TABLES keeps the table after each write, so that a later run can measure single steps.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from steps import CONDITION, ENGINES, STEPS, TYPES, WRITES, Write

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import rows
from spark_writes import RELEASE, needed, options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COLUMNS = rows.SCHEMA.names
_KEY = rows.keys(rows.numbers(8))[5].as_py()
_PLACE = "row_number() over (partition by driver order by ts desc, id) as place"


def _digest(frame: DataFrame) -> Any:
    """Read every column of every row: the digest needs them all."""
    digest = f"sum(cast(xxhash64({', '.join(_COLUMNS)}) as decimal(38)))"
    return frame.selectExpr("count(*) as rows", f"{digest} as digest").collect()


QUERIES: dict[str, Callable[[DataFrame], Any]] = {
    "incremental": _digest,
    "count": lambda frame: frame.count(),
    "sum": lambda frame: frame.agg(sf.sum("distance")).collect(),
    "groups": lambda frame: (
        frame.groupBy("city").agg(sf.sum("distance"), sf.max("ts")).orderBy("city").collect()
    ),
    "many": lambda frame: (
        frame.groupBy("driver")
        .agg(sf.sum("distance").alias("far"), sf.count("distance").alias("trips"))
        .orderBy(sf.desc("far"), "driver")
        .limit(10)
        .collect()
    ),
    "columns": _digest,
    "key": lambda frame: frame.where(sf.col("id") == _KEY).select("rider", "ts").collect(),
    "partition": lambda frame: (
        frame.where(sf.col("city") == "denver").agg(sf.sum("distance")).collect()
    ),
    "join": lambda frame: (
        frame.join(_riders(frame.sparkSession), "rider")
        .groupBy("band")
        .agg(sf.sum("distance"))
        .orderBy("band")
        .collect()
    ),
    "window": lambda frame: (
        frame.selectExpr("distance", _PLACE).where("place <= 3").agg(sf.sum("distance")).collect()
    ),
}


def _riders(spark: SparkSession) -> DataFrame:
    return spark.range(200_000).selectExpr("concat('rider-', id) as rider", "id % 50 as band")


class Engine(Protocol):
    """One way to write and read with Spark."""

    def write(self, table: str, verb: str, frame: DataFrame) -> None:
        """Commit once; the first commit creates the table."""
        ...

    def delete(self, table: str, condition: str) -> None:
        """Delete the rows that match a condition of Spark SQL."""
        ...

    def read(self, table: str, start: str | None) -> DataFrame:
        """Return the rows; with `start`, those of commits that completed after it."""
        ...


class Pyhudi:
    """pyhudi: nothing but the wheel."""

    def __init__(self, spark: SparkSession, kind: str, settings: dict[str, str]) -> None:
        self._spark = spark
        self._kind = kind
        # The others are arguments here, or say how Spark shuffles.
        used = ("hoodie.metadata.", "hoodie.parquet.")
        self._options = {name: settings[name] for name in settings if name.startswith(used)}

    def write(self, table: str, verb: str, frame: DataFrame) -> None:
        import pyhudi  # noqa: PLC0415

        if verb == "bulk_insert":
            created = pyhudi.create_table(
                table,
                rows.SCHEMA,
                key=rows.KEY,
                partition_by=rows.PARTITION,
                order_by=rows.ORDERING,
                type=self._kind,
                options=self._options,
            )
            created.bulk_insert(frame)
            return
        opened = pyhudi.open_table(table, options=self._options)
        if verb == "delete":
            opened.delete_keys(frame.select(rows.KEY, rows.PARTITION))
        else:
            opened.upsert(frame)

    def delete(self, table: str, condition: str) -> None:
        from pyhudi.spark import SparkHudiTable  # noqa: PLC0415

        SparkHudiTable.forPath(self._spark, table).delete(condition)

    def read(self, table: str, start: str | None) -> DataFrame:
        from pyhudi.spark import read, read_incremental  # noqa: PLC0415

        if start is None:
            return read(self._spark, table)
        return read_incremental(self._spark, table, start=start, columns=_COLUMNS)


class Hudi:
    """Apache Hudi by its own bundle."""

    def __init__(self, spark: SparkSession, _kind: str, settings: dict[str, str]) -> None:
        self._spark = spark
        self._options = settings

    def write(self, table: str, verb: str, frame: DataFrame) -> None:
        writer = frame.write.format("hudi").options(**self._options)
        writer = writer.option("hoodie.datasource.write.operation", verb)
        writer.mode("append").save(table)

    def delete(self, table: str, condition: str) -> None:
        self.write(table, "delete", self.read(table, None).where(condition).select(*_COLUMNS))

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
        return reader.load(table)


class Parquet:
    """Plain files of the rows that the others must return. Only the first write is a fair one."""

    def __init__(self, spark: SparkSession, _kind: str, _settings: dict[str, str]) -> None:
        self._spark = spark
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", "static")

    def write(self, table: str, verb: str, frame: DataFrame) -> None:
        target = Path(table)
        if not target.exists():
            frame.write.partitionBy(rows.PARTITION).parquet(table)
            return
        stored = self.read(table, None).select(*_COLUMNS)
        if verb == "delete":
            result = stored.join(frame.select(rows.KEY), rows.KEY, "left_anti")
        else:
            numbered = stored.withColumn("commit", sf.lit(1)).unionByName(
                frame.withColumn("commit", sf.lit(2))
            )
            newest = "row_number() over (partition by id order by ts desc, commit desc) as place"
            result = numbered.selectExpr("*", newest).where("place = 1").select(*_COLUMNS)
        self._replace(target, result)

    def delete(self, table: str, condition: str) -> None:
        self._replace(Path(table), self.read(table, None).where(f"not ({condition})"))

    def _replace(self, target: Path, result: DataFrame) -> None:
        replacement = target.with_name(f"{target.name}-new")
        result.write.partitionBy(rows.PARTITION).parquet(str(replacement))
        shutil.rmtree(target)
        replacement.rename(target)

    def read(self, table: str, _start: str | None) -> DataFrame:
        return self._spark.read.parquet(table)


def main() -> None:
    """Warm up, then measure the steps one by one."""
    arguments = _arguments()
    spark = _session(arguments)
    make = {"pyhudi": Pyhudi, "hudi": Hudi, "parquet": Parquet}[arguments.engine]
    settings = options if arguments.bare else needed
    engine: Engine = make(spark, arguments.type, settings(arguments.type, arguments.codec))
    bench = Bench(spark, engine, arguments)
    bench.warm_up()
    for step in STEPS:
        if step in WRITES:
            bench.write(step)
        elif step in arguments.steps:
            bench.read(step)
    spark.stop()


class Bench:
    """The measurements of one session."""

    def __init__(self, spark: SparkSession, engine: Engine, arguments: argparse.Namespace) -> None:
        self._spark = spark
        self._engine = engine
        self._steps = arguments.steps
        self._repeat = arguments.repeat
        self._tables: Path = arguments.tables
        self._read: Path = arguments.read or arguments.tables
        self._inputs: Path = arguments.inputs
        self._is_parquet = arguments.engine == "parquet"

    def warm_up(self) -> None:
        """Write and read a small table."""
        table = self._tables / "warm"
        shutil.rmtree(table, ignore_errors=True)
        verbs = ["bulk_insert", "upsert", "delete"] if {*WRITES} & {*self._steps} else []
        for verb in verbs:
            self._engine.write(str(table), verb, self._input("u1"))
            if verb != "delete":
                _digest(self._engine.read(str(table), None))
        shutil.rmtree(table, ignore_errors=True)

    def write(self, step: str) -> None:
        """Measure a write, or only do it if later steps need the table that it leaves."""
        write, kept = WRITES[step], self._tables / step
        is_measured = step in self._steps
        is_last = all(other.before != step for other in WRITES.values())
        if not is_measured and (kept.exists() or is_last):
            return
        # Plain files are rewritten as a whole, for the answers only.
        repeat = self._repeat if is_measured and not (self._is_parquet and write.before) else 1
        for number in range(repeat):
            table = self._tables / f"{step}-new{number}"
            shutil.rmtree(table, ignore_errors=True)
            if write.before:
                shutil.copytree(self._tables / write.before, table)

            def commit(table: Path = table) -> None:
                if write.source:
                    self._engine.write(str(table), write.verb, self._rows_of(write))
                else:
                    self._engine.delete(str(table), CONDITION)

            def answer(table: Path = table, number: int = number) -> Any:
                return None if number else _digest(self._engine.read(str(table), None))

            self._measure(step, commit, answer, is_measured)
            if number + 1 < repeat:
                shutil.rmtree(table)
        shutil.rmtree(kept, ignore_errors=True)
        table.rename(kept)

    def read(self, step: str) -> None:
        """Measure a query."""
        start, table = None, self._read / "u20"
        if step == "incremental":
            if self._is_parquet:
                return
            start, table = _completed(self._read / "bulk"), self._read / "u1"
        QUERIES[step](self._engine.read(str(table), start))
        for _ in range(self._repeat):
            answers: list[Any] = []
            self._measure(
                step,
                lambda answers=answers: answers.append(
                    QUERIES[step](self._engine.read(str(table), start))
                ),
                lambda answers=answers: answers[0],
            )

    def _rows_of(self, write: Write) -> DataFrame:
        frame = self._input(write.source)
        is_chosen = sf.pmod(sf.hash(rows.KEY), sf.lit(write.one_of)) == 0
        return frame if write.one_of == 1 else frame.where(is_chosen)

    def _input(self, name: str) -> DataFrame:
        return self._spark.read.parquet(str(self._inputs / f"{name}.parquet"))

    def _measure(
        self,
        step: str,
        act: Callable[[], object],
        answer: Callable[[], Any],
        is_measured: bool = True,
    ) -> None:
        self._spark._jvm.java.lang.System.gc()  # noqa: SLF001 - the heap of other steps
        start, used = time.perf_counter(), processor_seconds()
        act()
        used, seconds = processor_seconds() - used, time.perf_counter() - start
        if is_measured:
            line = {"step": step, "elapsed": seconds, "processor": used, "answer": str(answer())}
            print(json.dumps(line), flush=True)


def processor_seconds() -> float:
    """Return the processor seconds of this process and its descendants, ended ones included."""
    ticks: dict[int, int] = {}
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(") ")[2].split()
        except OSError:  # it ended
            continue
        process = int(folder.name)
        parents[process] = int(fields[1])
        ticks[process] = sum(map(int, fields[11:15]))
    own = os.getpid()
    total = 0
    for process, used in ticks.items():
        at = process
        while at != own and at in parents:
            at = parents[at]
        total += used if at == own else 0
    return total / os.sysconf("SC_CLK_TCK")


def _completed(table: Path) -> str:
    """Return when the newest commit of a table of version 9 completed."""
    names = (table / ".hoodie" / "timeline").glob("*_*commit")
    return max(path.name.split("_")[1].split(".")[0] for path in names)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("type", choices=TYPES)
    parser.add_argument("cores", type=int)
    parser.add_argument("tables", type=Path)
    parser.add_argument("inputs", type=Path)
    parser.add_argument("--steps", nargs="+", default=list(STEPS), choices=list(STEPS))
    parser.add_argument("--repeat", type=int, default=3, help="measurements of each step")
    parser.add_argument("--read", type=Path, help="read the tables of this folder")
    parser.add_argument("--codec", default="own")
    parser.add_argument("--bare", action="store_true", help="the simple index, no metadata table")
    parser.add_argument("--memory", default="6g", help="of the JVM")
    return parser.parse_args()


def _session(arguments: argparse.Namespace) -> SparkSession:
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master(f"local[{arguments.cores}]")
        .config("spark.driver.memory", arguments.memory)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.default.parallelism", "4")
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    )
    if arguments.engine == "hudi":
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
