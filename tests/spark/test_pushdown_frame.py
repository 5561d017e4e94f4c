"""Frames of a scan answer as Spark does, and read no more than they must."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

import pyhudi
from pyhudi.spark import read, scan_frame

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's own warnings are not ours to mend

COUNT = 300
KINDS = ("cow", "mor")
ROWS = pa.table(
    {
        "id": [f"k{n:03}" for n in range(COUNT)],
        "part": [f"p{n % 3}" for n in range(COUNT)],
        "n": pa.array([None if n % 7 == 0 else n - 100 for n in range(COUNT)], pa.int64()),
        "x": [float("nan") if n % 11 == 0 else n / 8 for n in range(COUNT)],
        "day": [dt.date(2024, 1, 1) + dt.timedelta(n % 40) for n in range(COUNT)],
        "flag": [None if n % 5 == 0 else n % 2 == 0 for n in range(COUNT)],
    }
)


Tables = dict[str, tuple[Path, DataFrame]]


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """A table of each type, and the same rows in a frame that Spark alone has made."""
    return {kind: made(spark, tmp_path_factory.mktemp(kind), kind) for kind in KINDS}


def made(spark: SparkSession, base: Path, kind: Any) -> tuple[Path, DataFrame]:
    options = {"hoodie.metadata.enable": "false"}
    held = pyhudi.create_table(
        base, ROWS, key="id", partition_by="part", type=kind, options=options
    )
    held.upsert(ROWS.slice(20, 60).set_column(2, "n", pa.array(range(1000, 1060))))
    found = read(spark, base)
    return base, spark.createDataFrame(found.collect(), found.schema)


@pytest.fixture
def table(tables: Tables) -> Path:
    return tables["mor"][0]


def rows_of(found: Any) -> Any:
    if isinstance(found, DataFrame) or hasattr(found, "collect"):
        return found.columns, sorted(map(str, found.collect()))
    return found


def labels(frame: DataFrame) -> DataFrame:
    """The other side of a join: two of three parts, with columns of its own."""
    texts = ("concat('p', id) AS part", "concat('l', id) AS label", "id AS code")
    return frame.sparkSession.range(2).selectExpr(*texts)


def by_column_of_a_join(frame: DataFrame) -> DataFrame:
    joined = frame.join(labels(frame), "part")
    return joined.filter(joined["code"] == 1).select(joined["label"], frame["n"], joined.id)


QUERIES: dict[str, Callable[[Any], Any]] = {
    "all": lambda f: f,
    "count": lambda f: f.count(),
    "select": lambda f: f.select("n", "id"),
    "select of columns": lambda f: f.select(f.n, f["id"], sf.col("x")),
    "select of other case": lambda f: f.select("ID", "N"),
    "star": lambda f: f.select("*", sf.col("n").alias("m")),
    "computed": lambda f: f.select(sf.upper("id"), (sf.col("n") * 2).alias("twice"), "part"),
    "selectExpr": lambda f: f.selectExpr("n + 1 AS more", "struct(*) AS everything"),
    "drop": lambda f: f.drop("x", "day"),
    "filter": lambda f: f.filter("n > 50"),
    "filter count": lambda f: f.filter("n > 50").count(),
    "filter of two": lambda f: f.where("n > 50 AND part = 'p1'").select("id").count(),
    "filter by column": lambda f: f.filter(f.n <= 3).select("id"),
    "filter by columns": lambda f: f[(f.n > 3) & (f.part == "p2")].count(),
    "filter by what was not selected": lambda f: f.select("id").filter("n > 10"),
    "counted by what was not selected": lambda f: f.select("id").filter("n > 10").count(),
    "or": lambda f: f.filter("n > 50 OR part = 'p1'").count(),
    "not": lambda f: f.filter(~(sf.col("part") == "p1")).count(),
    "in": lambda f: f.filter(sf.col("part").isin("p1", "p9")).count(),
    "null": lambda f: f.filter("n IS NULL").count(),
    "no null": lambda f: f.filter(f.n.isNotNull()).count(),
    "not equal": lambda f: f.filter("n != 3").count(),
    "text beside a number": lambda f: f.filter("n = '5'").count(),
    "NaN": lambda f: f.filter("x > 5").count(),
    "date": lambda f: f.filter(sf.col("day") < dt.date(2024, 1, 9)).count(),
    "day as text": lambda f: f.filter("day < '2024-01-09'").count(),
    "flag": lambda f: f.filter("flag = true").count(),
    "flag alone": lambda f: f.filter("flag").count(),
    "between": lambda f: f.filter("n BETWEEN 3 AND 40").count(),
    "aggregates": lambda f: f.agg(sf.sum("n"), sf.min("x"), sf.max("x"), sf.count("*")),
    "parts of whole numbers": lambda f: f.agg(
        sf.sum("n"),
        sf.min("n").alias("least"),
        sf.max("n"),
        sf.count("n"),
        sf.count("*").alias("c"),
    ),
    "parts of dates": lambda f: f.agg(sf.min("day"), sf.max("day"), sf.count("flag").alias("f")),
    "parts of fractions": lambda f: f.filter("n > 20 AND n < 60").agg(sf.sum("x"), sf.count("x")),
    "parts of nothing": lambda f: f.filter("n > 90000").agg(
        sf.sum("n"), sf.count("n"), sf.max("day"), sf.count("*").alias("c")
    ),
    "parts by a null": lambda f: f.groupBy("flag").agg(sf.sum("n"), sf.count("*").alias("c")),
    "parts by two": lambda f: f.groupBy(["part", "flag"]).agg({"n": "sum", "day": "max"}),
    "parts by each row": lambda f: f.groupBy("id").agg(sf.sum("n"), sf.count("x"), sf.min("day")),
    "parts by a column": lambda f: (
        f.groupBy(f.part).agg(sf.sum("n").alias("s")).select(f.part, "s")
    ),
    "parts of one by name": lambda f: f.groupBy("part").agg({"n": "sum"}),
    "parts joined": lambda f: (
        f.groupBy("part").sum("n").join(f.groupBy("part").agg(sf.min("day").alias("d")), "part")
    ),
    "parts twice": lambda f: f.agg(sf.sum("n").alias("a"), sf.sum("n").alias("b")),
    "aggregates by name": lambda f: f.agg({"n": "max", "day": "min"}),
    "only counted": lambda f: f.agg(sf.count("*")),
    "distinct": lambda f: f.agg(sf.countDistinct("part", "flag")),
    "distinct of one": lambda f: f.agg(
        sf.countDistinct("part"), sf.countDistinct("part").alias("c"), sf.sum_distinct("n")
    ),
    "distinct as text": lambda f: f.groupBy("flag").agg(
        sf.expr("count(distinct part)").alias("c"), sf.expr("sum(DISTINCT n)")
    ),
    "distinct rows": lambda f: f.agg(sf.expr("count(DISTINCT *)").alias("c")),
    "some of a group": lambda f: f.agg(
        sf.expr("sum(n) FILTER (WHERE flag)").alias("s"),
        sf.expr("count(n) FILTER (WHERE flag)"),
        sf.expr("max(n) FILTER (WHERE flag)"),
    ),
    "groups": lambda f: f.groupBy("part").agg(sf.sum("n"), sf.max(sf.col("x"))),
    "groups of a column": lambda f: f.filter(f.n > 3).groupBy(f.part).count(),
    "sums of groups": lambda f: f.groupBy("part").sum("n"),
    "all sums": lambda f: f.groupBy("part").max(),
    "pivot": lambda f: f.groupBy("part").pivot("flag", [True, False]).count(),
    "sorted": lambda f: f.select("id").sort(sf.col("n").desc_nulls_last(), "id").limit(1),
    "window": lambda f: f.select(
        "id", sf.row_number().over(Window.partitionBy("part").orderBy("id")).alias("r")
    ),
    "joined with itself": lambda f: f.select("id", "n").join(f.select("id", "x"), "id"),
    "join": lambda f: f.join(labels(f), "part").groupBy("label").agg(sf.sum("n"), sf.max("code")),
    "join of all columns": lambda f: f.join(labels(f), "part"),
    "join and filters": lambda f: (
        f.join(labels(f), ["part"], "left").filter("n > 50").filter("label IS NULL").select("id")
    ),
    "filter and join": lambda f: f.filter("n > 50").join(labels(f), "part").agg(sf.sum("code")),
    "join of what is not there": lambda f: f.join(labels(f), "part", "left_anti").count(),
    "join of what is there": lambda f: f.join(labels(f), "part", "semi").filter("n > 9").count(),
    "join of both sides": lambda f: f.join(labels(f), "part", "full").filter("n > 9").count(),
    "join by a column": by_column_of_a_join,
    "join of two": lambda f: (
        f.select("id", "n", "part")
        .join(labels(f), "part")
        .join(labels(f).selectExpr("label", "code AS again"), "label")
        .select("again", "n")
    ),
    "join and sort": lambda f: f.join(labels(f), "part").select("label", "id").sort("n", "id"),
    "join, first rows": lambda f: f.join(labels(f), "part").filter("n > 9").limit(7).count(),
    "join of one name twice": lambda f: f.join(
        labels(f).withColumnRenamed("code", "N"), "part"
    ).select("label", "id"),
    "join and drop": lambda f: f.join(labels(f), "part").drop("code", "x", "day"),
    "join and star": lambda f: f.join(labels(f), "part").selectExpr("label", "*"),
    "join and window": lambda f: f.join(labels(f), "part").selectExpr(
        "id", "row_number() OVER (PARTITION BY label ORDER BY id) AS r"
    ),
    "names of a join": lambda f: f.join(labels(f), "part").select("label", "n").dtypes,
    "joined by columns": lambda f: (
        f.filter(f.n > 100)
        .join(f.select("id", "day").withColumnRenamed("id", "other"), f.id == sf.col("other"))
        .select(f.n, "other")
    ),
    "column of a wider one": lambda f: f.select("id", "n").groupBy("n").count().select(f.n),
    "limit": lambda f: f.filter("n >= 0").limit(7).count(),
    "limit and filter": lambda f: f.limit(1000).filter("n > 50").count(),
    "union": lambda f: f.select("id").union(f.select("part")).distinct(),
    "withColumn": lambda f: f.select("id", "n").withColumn("n", sf.col("n") + 1).filter("n > 9"),
    "names": lambda f: (f.columns, f.select("x").columns, f.select("x").schema, f.dtypes),
    "empty": lambda f: (f.filter("n > 99999").isEmpty(), f.filter("n > 99999").first()),
    "toPandas": lambda f: str(f.select("id", "n").sort("id").toPandas().to_dict()),
}


BOTH = (
    *("count", "filter count", "filter of two", "aggregates", "limit"),
    *("distinct of one", "distinct as text", "distinct rows", "some of a group"),
)
CASES = [
    (name, kind)
    for at, name in enumerate(QUERIES)
    for kind in (KINDS if name in BOTH else (KINDS[at % 2],))
]


@pytest.mark.spark35
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_answers_as_spark_does(spark: SparkSession, tables: Tables, name: str, kind: str) -> None:
    query = QUERIES[name]
    if name == "toPandas":
        pytest.importorskip("pandas")
    base, plain = tables[kind]
    assert rows_of(query(read(spark, base))) == rows_of(query(plain))


def test_kept_rows_are_used(spark: SparkSession, table: Path) -> None:
    frame = read(spark, table).cache()
    assert frame.count() == COUNT
    narrow = frame.select("id").filter("id > 'k1'")
    plan = narrow._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001
    assert "InMemoryTableScan" in plan
    frame.unpersist()


def test_wrong_names_are_told_at_once(spark: SparkSession, table: Path) -> None:
    from pyspark.errors import AnalysisException

    frame = read(spark, table)
    wrongs: list[Callable[[], Any]] = [
        lambda: frame.select("nope"),
        lambda: frame.filter("nope > 1"),
        lambda: frame.groupBy("nope").count(),
        lambda: frame.select("id").agg(sf.sum("n")),
    ]
    for wrong in wrongs:
        with pytest.raises(AnalysisException):
            wrong()


def read_columns(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What leaves read, in a list that grows."""
    found: list[tuple[str, ...]] = []
    real = scan_frame.ScanSource.scan_of

    def noted(self: Any, columns: Any, *more: Any) -> Any:
        found.append(tuple(sorted(columns)))
        return real(self, columns, *more)

    monkeypatch.setattr(scan_frame.ScanSource, "scan_of", noted)
    return found


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        (lambda f: f.agg(sf.sum("n")), ("n",)),
        (lambda f: f.select("id", "n").filter("x > 1"), ("id", "n", "x")),
        (lambda f: f.select("id", "n").agg(sf.max(sf.col("n") * 2)), ("n",)),
        (lambda f: f.filter("part = 'p1'").selectExpr("n + 1"), ("n", "part")),
        (lambda f: f.drop("x", "day", "flag"), ("id", "n", "part")),
        (lambda f: f.join(labels(f), "part").groupBy("label").agg(sf.sum("n")), ("n", "part")),
        (lambda f: f.join(labels(f), "part").select("label", "id"), ("id", "part")),
    ],
    ids=["sum", "filter", "expression", "selectExpr", "drop", "join", "join and select"],
)
def test_reads_only_what_is_needed(
    spark: SparkSession,
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
    query: Any,
    columns: tuple[str, ...],
) -> None:
    found = read_columns(monkeypatch)
    query(read(spark, table)).collect()
    assert found[-1] == columns


def test_pushdown_frame_prunes_files_by_filter(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans: list[Any] = []
    real = scan_frame.ScanSource.scan_of

    def noted(self: Any, *given: Any) -> Any:
        scans.append(real(self, *given))
        return scans[-1]

    monkeypatch.setattr(scan_frame.ScanSource, "scan_of", noted)
    frame = read(spark, table)
    assert frame.filter(frame.part == "p1").count() == COUNT // 3
    assert {task.slice.partition for task in scans[-1].tasks} == {"p1"}


def test_rows_are_those_of_when_the_frame_was_made(spark: SparkSession, tmp_path: Path) -> None:
    held = pyhudi.create_table(tmp_path, ROWS, key="id", partition_by="part")
    frame = read(spark, tmp_path)
    held.delete_keys(ROWS.select(["id", "part"]).slice(0, 50))
    assert frame.count() == frame.select("id").count() == frame.filter("id >= 'k'").count() == COUNT
    assert read(spark, tmp_path).count() == COUNT - 50
