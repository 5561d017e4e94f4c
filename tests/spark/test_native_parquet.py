"""Base files that Spark reads by itself: the same rows as by pyhudi's own reader, and no others."""

# ruff: noqa: SLF001 - whose reader it is only Spark's plan tells
from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

import pyhudi
from pyhudi.config.property_names import URL_ENCODE
from pyhudi.errors import HudiError
from pyhudi.schema import key_generator
from pyhudi.spark import read
from tests.spark.session import is_by_pyhudi, is_by_spark

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's own warnings are not ours to mend

OLD = dt.datetime.fromisoformat("1066-10-14T09:00:00.123")
"""Before the calendar that is in use now."""

SKIPPED = dt.datetime.fromisoformat("2024-03-10T02:30:00")
"""What no clock shows in the session's zone."""

ROWS = pa.table(
    {
        "id": ["a", "b", "c"],
        "part": ["x", "y", "x"],
        "small": pa.array([1, None, -(2**31)], pa.int32()),
        "long": pa.array([2**62, -1, None], pa.int64()),
        "single": pa.array([1.5, float("inf"), None], pa.float32()),
        "double": [float("-inf"), -0.0, None],
        "flag": [True, None, False],
        "bytes": [b"\x00\xff", b"", None],
        "day": [dt.date(1066, 10, 14), dt.date(9999, 12, 31), None],
        "micros": pa.array([OLD, None, OLD], pa.timestamp("us", "UTC")),
        "millis": pa.array([OLD, SKIPPED, None], pa.timestamp("ms", "UTC")),
        "local": pa.array([OLD, None, SKIPPED], pa.timestamp("us")),
        "price": pa.array([Decimal("-1.05"), None, Decimal("99999.99")], pa.decimal128(7, 2)),
        "large": pa.array([Decimal(10) ** 37, None, Decimal(-1)], pa.decimal128(38, 0)),
        "many": pa.array([[1, 2], [], None], pa.list_(pa.int64())),
    }
)
PLAIN = [name for name in ROWS.column_names if name != "many"]


def made(base: Path, rows: pa.Table = ROWS, **axes: Any) -> pyhudi.HudiTable:
    return pyhudi.create_table(base, rows, key="id", **axes)


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(str(row.asDict()) for row in frame.collect())


def rows_by_pyhudi(frame: Any, monkeypatch: pytest.MonkeyPatch, where: str = "true") -> list[str]:
    """The rows of the same frame, made anew without Spark's reader."""
    with monkeypatch.context() as patch:
        patch.setattr("pyhudi.spark.scan_frame.plain_files", lambda *_: None)
        again = read(frame.sparkSession, frame._origin.scan.table.storage.uri)
        again = again.select(*frame.columns)
        assert not is_by_spark(again)
        return rows_of(again.filter(where))


@pytest.mark.spark35
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_native_parquet_reads_every_plain_type(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, kind: Any
) -> None:
    """Also a merge-on-read table, as long as it has no log files."""
    made(tmp_path, partition_by="part", version=version, type=kind)
    frame = read(spark, tmp_path).select(*PLAIN)
    assert is_by_spark(frame)
    assert rows_of(frame) == rows_by_pyhudi(frame, monkeypatch)


def test_lists_are_read_by_pyhudi(spark: SparkSession, tmp_path: Path) -> None:
    """Their old form is one that readers have to guess."""
    made(tmp_path)
    assert not is_by_spark(read(spark, tmp_path))
    assert not is_by_spark(read(spark, tmp_path).select("id", "many"))
    assert is_by_spark(read(spark, tmp_path).select("id"))


def test_log_files_are_merged_by_pyhudi(spark: SparkSession, tmp_path: Path) -> None:
    rows = ROWS.select(PLAIN)
    table = made(tmp_path, rows, type="mor", partition_by="part")
    table.upsert(rows.slice(0, 1).set_column(2, "small", pa.array([7], pa.int32())))
    frame = read(spark, tmp_path)
    assert not is_by_spark(frame.where("part = 'x'"))
    assert frame.where("id = 'a'").first()["small"] == 7
    # The other partition has no log file.
    assert is_by_spark(frame.where("part = 'y'"))
    assert is_by_spark(read(spark, tmp_path, read_optimized=True))


@pytest.mark.spark35
def test_native_parquet_reads_slices_without_logs_next_to_merged_ones(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only slices with log files go through Python workers."""
    rows = ROWS.select(PLAIN)
    table = made(tmp_path, rows, type="mor", partition_by="part")
    table.upsert(rows.slice(0, 1).set_column(2, "small", pa.array([7], pa.int32())))
    frame = read(spark, tmp_path).select(*PLAIN)
    assert is_by_spark(frame)
    assert is_by_pyhudi(frame)
    merged = rows_by_pyhudi(frame, monkeypatch)
    assert rows_of(frame) == merged
    assert len(frame.inputFiles()) == 1  # the other slice is merged
    assert [row["id"] for row in frame.where(frame["small"] == 7).collect()] == ["a"]
    assert sorted(
        row["n"] for row in frame.where("id > 'a'").selectExpr("length(id) n").collect()
    ) == [1, 1]
    assert len(frame.limit(2).collect()) == 2
    assert frame.join(frame.select("id", frame["long"].alias("again")), "id").count() == 3


def parts() -> list[Column]:
    """Aggregates that tasks begin."""
    return [
        sf.sum("small"),
        sf.count("small"),
        sf.count("*").alias("rows"),
        sf.min("long"),
        sf.max("day"),
        sf.sum("single"),
    ]


@pytest.mark.spark35
@pytest.mark.parametrize("where", ["true", "small > 0"])
@pytest.mark.parametrize("by", [[], ["flag"], ["part"]])
def test_native_parquet_aggregates_with_merged_slices(
    spark: SparkSession, tmp_path: Path, by: list[str], where: str
) -> None:
    rows = ROWS.select(PLAIN)
    table = made(tmp_path, rows, type="mor", partition_by="part")
    table.upsert(rows.slice(0, 1).set_column(2, "small", pa.array([7], pa.int32())))
    frame = read(spark, tmp_path)
    plain = spark.createDataFrame(frame.collect(), frame.schema)
    frame, plain = (side if where == "true" else side.where(where) for side in (frame, plain))
    expected = (plain.groupBy(*by) if by else plain).agg(*parts())
    aggregated = (frame.groupBy(*by) if by else frame).agg(*parts())
    # Spark 4 marks generated names in the metadata of fields.
    assert repr(aggregated.schema) == repr(expected.schema)
    assert rows_of(aggregated) == rows_of(expected)
    assert is_by_pyhudi(aggregated)
    assert is_by_spark(aggregated) == (where == "true")


def test_native_parquet_leaves_a_few_bytes_to_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second scan costs more tasks than it saves there."""
    rows = ROWS.select(PLAIN)
    table = made(tmp_path, rows, type="mor", partition_by="part")
    table.upsert(rows.slice(0, 1))
    monkeypatch.setattr("pyhudi.spark.native_parquet._MIN_SHARE", 1)
    assert not is_by_spark(read(spark, tmp_path))


def test_files_are_pyhudis_choice(spark: SparkSession, tmp_path: Path) -> None:
    """Older versions of a file group lie beside the newest."""
    rows = ROWS.select(PLAIN)
    table = made(tmp_path, rows, partition_by="part")
    before = read(spark, tmp_path)
    table.delete_keys(rows.select(["id", "part"]).slice(0, 1))
    frame = read(spark, tmp_path)
    assert is_by_spark(frame)
    assert is_by_spark(before)
    assert (before.count(), len(before.collect())) == (3, 3)
    assert (frame.count(), len(frame.collect())) == (2, 2)
    found = frame.filter("id = 'b'")
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "PushedFilters: [IsNotNull(id), EqualTo(id,b)]" in plan
    assert len(found.inputFiles()) == 1


@pytest.mark.parametrize(
    "name", ["a[b]{c}*?", "x=1", "a b", "100%", "p%20q", "_hidden", ".dot", "äö", "it's"]
)
def test_folders_of_any_name(spark: SparkSession, tmp_path: Path, name: str) -> None:
    base = tmp_path / "of a {table}%"
    rows = ROWS.select(PLAIN).set_column(1, "part", pa.array([name, "y", name]))
    # Without encoding, Hudi reads such names as others, so pyhudi refuses them.
    encoded = str(name in {"x=1", "p%20q"}).lower()
    made(base, rows, partition_by="part", options={URL_ENCODE: encoded})
    frame = read(spark, base)
    assert is_by_spark(frame)
    assert sorted((row["id"], row["part"]) for row in frame.collect()) == [
        ("a", name),
        ("b", "y"),
        ("c", name),
    ]


CONDITIONS = (
    "n > 5",
    "n >= 5",
    "n = 0",
    "n = -0.0D",
    "n <= 0",
    "n < 0",
    "n >= 0",
    "n != 0",
    "n IN (0.0D, 7.0D)",
    "n = double('NaN')",
    "n < double('NaN')",
    "n <=> 0.0D",
)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_filters_of_fractions(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: pa.DataType
) -> None:
    """To Spark NaN is the greatest, and both zeros are one.

    Bounds that pyarrow makes leave NaN out; pyhudi makes none beside it.
    """
    numbers = [1.0, float("nan"), -0.0, 0.0, 5.0, None, -0.0, -0.0]
    parts = ["nan", "nan", "zero", "other zero", "five", "five", "zeros", "zeros"]
    ids = [f"k{at}" for at in range(len(parts))]
    rows = pa.table({"id": ids, "part": parts, "n": pa.array(numbers, kind)})
    made(tmp_path, rows, partition_by="part", options={"hoodie.metadata.enable": "false"})
    check_filters(spark, tmp_path, monkeypatch)
    for file in tmp_path.glob("nan/*.parquet"):
        rewritten(file)
    check_filters(spark, tmp_path, monkeypatch, by_spark=False)


OTHERS = (
    "small < 0",
    "long IN (-1, 5)",
    "flag",
    "bytes = X'00ff'",
    "bytes >= X''",
    "day < DATE'1582-10-15'",
    "day = DATE'1066-10-14'",
    "micros <= TIMESTAMP'1582-10-15 00:00:00'",
    "millis < TIMESTAMP'2024-03-10 02:30:00'",
    "millis >= TIMESTAMP'2024-03-10 02:30:00'",
    "local = TIMESTAMP_NTZ'2024-03-10 02:30:00'",
    "price < -1",
    "large = -1",
    "id LIKE 'a%'",
    "part = 'x' AND price IS NOT NULL",
)


def test_filters_of_other_types(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of which Spark leaves out row groups and pages by itself."""
    made(tmp_path, ROWS.select(PLAIN), partition_by="part")
    check_filters(spark, tmp_path, monkeypatch, OTHERS)


def check_filters(
    spark: SparkSession,
    base: Path,
    monkeypatch: pytest.MonkeyPatch,
    conditions: Sequence[str] = CONDITIONS,
    *,
    by_spark: bool = True,
) -> None:
    frame = read(spark, base)
    assert is_by_pyhudi(frame) == (not by_spark)
    for condition in conditions:
        found = rows_of(frame.filter(condition))
        assert found == rows_by_pyhudi(frame, monkeypatch, condition), condition


PARTITIONS = {
    "numbers": pa.array([1, -2, 1], pa.int32()),
    "days": pa.array([dt.date(2024, 1, 1), dt.date(1066, 10, 14), dt.date(2024, 1, 1)]),
    "nulls": pa.array([None, "y", None], pa.string()),
    "empty texts": pa.array(["", "y", ""]),
}


@pytest.mark.parametrize("hive_style", [False, True])
@pytest.mark.parametrize("kind", PARTITIONS)
def test_values_of_partitions(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, hive_style: Any
) -> None:
    """They are those of the folder, and files that say otherwise are not Spark's to read."""
    rows = ROWS.select(PLAIN).set_column(1, "part", PARTITIONS[kind])
    options = {"hoodie.datasource.write.hive_style_partitioning": str(hive_style).lower()}
    with monkeypatch.context() as patch:
        patch.setattr(key_generator, "_check_not_null_path", lambda *_: None)  # As Hudi writes.
        made(tmp_path, rows, partition_by="part", options=options)
    frame = read(spark, tmp_path)
    assert is_by_pyhudi(frame) == (kind == "empty texts")
    assert rows_of(frame) == rows_by_pyhudi(frame, monkeypatch)


def test_older_files_without_a_column(spark: SparkSession, tmp_path: Path) -> None:
    rows = ROWS.select(["id", "part", "small"])
    table = made(tmp_path, rows, partition_by="part")
    more = pa.table({"id": ["b"], "part": ["y"], "small": pa.array([5], pa.int32()), "new": ["n"]})
    table.upsert(more, schema_mode="merge")
    frame = read(spark, tmp_path)
    assert is_by_pyhudi(frame)
    assert {row["id"]: row["new"] for row in frame.collect()} == {"a": None, "b": "n", "c": None}
    assert is_by_spark(frame.select("id", "small"))
    assert is_by_spark(frame.where("part = 'y'"))


def test_older_files_with_a_narrower_type(spark: SparkSession, tmp_path: Path) -> None:
    rows = ROWS.select(["id", "part", "small"])
    table = made(tmp_path, rows, partition_by="part")
    more = pa.table({"id": ["b"], "part": ["y"], "small": pa.array([2**40], pa.int64())})
    table.upsert(more, schema_mode="merge")
    frame = read(spark, tmp_path)
    assert is_by_pyhudi(frame)
    found = {row["id"]: row["small"] for row in frame.collect()}
    assert found == {"a": 1, "b": 2**40, "c": -(2**31)}


def rewritten(file: Path, **how: Any) -> None:
    """A base file as another writer would have made it, pyarrow."""
    metadata = how.pop("metadata", {})
    rows = pq.read_table(file)
    kept = {**(rows.schema.metadata or {}), **metadata}
    pq.write_table(rows.replace_schema_metadata(kept), file, **how)


@pytest.mark.parametrize(
    "how",
    [
        {"compression": "brotli"},
        {"use_dictionary": False, "column_encoding": {"id": "DELTA_BYTE_ARRAY"}},
        {"use_deprecated_int96_timestamps": True},
        {"metadata": {"org.apache.spark.legacyDateTime": ""}},
        {"metadata": {"org.apache.spark.version": "2.4.8"}},
    ],
    ids=["codec", "encoding", "INT96", "old calendar", "old Spark"],
)
def test_forms_that_readers_take_differently(
    spark: SparkSession, tmp_path: Path, how: dict[str, Any]
) -> None:
    old = "metadata" in how
    # Times before 1900 of the old calendar are refused, and its days were six behind by then.
    rows = ROWS.select(["id", "day"] if old else ["id", "day", "micros"])
    made(tmp_path, rows, options={"hoodie.metadata.enable": "false"})
    assert is_by_spark(read(spark, tmp_path))
    (file,) = tmp_path.glob("*.parquet")
    rewritten(file, **how)
    frame = read(spark, tmp_path)
    assert not is_by_spark(frame)
    assert sorted(row["id"] for row in frame.collect()) == ["a", "b", "c"]
    found = {row["id"]: row["day"] for row in frame.collect()}
    assert found["a"] == dt.date(1066, 10, 8 if old else 14)


def test_settings_that_hide_files_are_not_followed(spark: SparkSession, tmp_path: Path) -> None:
    made(tmp_path, ROWS.select(PLAIN), partition_by="part")
    settings = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
    for name in settings:
        spark.conf.set(name, "true")
    try:
        frame = read(spark, tmp_path).select("id")
        assert is_by_spark(frame)
        for file in tmp_path.glob("x/*.parquet"):
            data = file.read_bytes()
            file.write_bytes(data[: len(data) // 2])
        with pytest.raises(Exception, match=r"not a Parquet file|FAILED_READ_FILE"):
            frame.collect()
        for file in tmp_path.glob("x/*.parquet"):
            file.unlink()
        with pytest.raises(Exception, match=r"does not exist|FAILED_READ_FILE"):
            frame.collect()
    finally:
        for name in settings:
            spark.conf.unset(name)


def test_native_parquet_raises_for_file_missing_before_plan(
    spark: SparkSession, tmp_path: Path
) -> None:
    made(tmp_path, ROWS.select(PLAIN), partition_by="part")
    frame = read(spark, tmp_path)
    for file in tmp_path.glob("x/*.parquet"):
        file.unlink()
    with pytest.raises(HudiError):
        frame.collect()


def test_native_parquet_size_is_file_size(spark: SparkSession, tmp_path: Path) -> None:
    made(tmp_path, ROWS.select(PLAIN), partition_by="part")
    frame = read(spark, tmp_path)
    size = frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
    files = sum(file.stat().st_size for file in tmp_path.glob("*/*.parquet"))
    assert int(str(size)) == files
