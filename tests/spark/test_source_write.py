"""The format "pyhudi" of Spark 4 writes to tables."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.config.extra_metadata import STREAM_BATCHES
from pyhudi.errors import SchemaMismatch
from pyhudi.spark import read, register, register_source, sink, write
from tests.spark.arrow import frame_of

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # PySpark's own warnings are not ours to mend
    pytest.mark.skipif(
        int(pyspark.__version__.split(".")[0]) < 4, reason="Spark 3.5 has no data sources in Python"
    ),
]

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("v", pa.int64())])


@pytest.fixture(scope="module")
def source(spark: SparkSession) -> SparkSession:
    register_source(spark)
    return spark


def created(base: Path, **how: Any) -> HudiTable:
    how = {"key": "id", "order_by": "v", **how}
    return pyhudi.create_table(base, SCHEMA, partition_by="part", **how)


def frame(spark: SparkSession, first: int, count: int, v: int) -> DataFrame:
    numbers = range(first, first + count)
    columns = {"id": [f"k{n:05}" for n in numbers], "part": [f"p{n % 3}" for n in numbers]}
    return frame_of(spark, pa.table({**columns, "v": [v] * count}, schema=SCHEMA)).repartition(3)


def append(rows: DataFrame, base: Path, **options: str) -> None:
    rows.write.format("pyhudi").options(**options).mode("append").save(str(base))


def values(base: Path) -> dict[str, int]:
    found = pyhudi.open_table(base).scan().to_arrow().to_pylist()
    assert len(found) == len({row["id"] for row in found})
    return {row["id"]: row["v"] for row in found}


@pytest.mark.parametrize(
    ("kind", "version", "memory"), [("mor", 9, "1048576"), ("cow", 6, "100000000"), ("cow", 8, "")]
)
def test_rows_are_appended(
    source: SparkSession, tmp_path: Path, kind: str, version: int, memory: str
) -> None:
    table = created(tmp_path, type=kind, version=version)
    options = {"operation": "bulk_insert"} | ({"memory_limit": memory} if memory else {})
    append(frame(source, 0, 30_000, 1), tmp_path, **options)
    append(frame(source, 30_000, 20, 2), tmp_path, operation="bulk_insert")
    [first, second] = table.refresh().inspect.timeline().to_pylist()
    assert first["state"] == second["state"] == "COMPLETED"
    table.upsert(pa.table({"id": ["k00007", "x"], "part": ["p1", "p0"], "v": [9, 9]}))
    wanted = {f"k{n:05}": 1 + (n >= 30_000) for n in range(30_020)}
    assert values(tmp_path) == {**wanted, "k00007": 9, "x": 9}
    assert table.refresh().check().ok
    tokens = {path.name.split("_")[1].split("-")[0] for path in tmp_path.rglob("*.parquet")}
    assert len(tokens) >= 9, "files of one commit share their numbers"


def test_generated_keys_differ(source: SparkSession, tmp_path: Path) -> None:
    created(tmp_path, key=[], order_by=[])
    append(frame(source, 0, 900, 1), tmp_path)
    append(frame(source, 0, 900, 1), tmp_path)
    found = pyhudi.open_table(tmp_path).scan(meta_fields=True).to_arrow()
    assert found.num_rows == 1800
    assert len(found.column("_hoodie_record_key").unique()) == 1800
    assert len(found.column("_hoodie_commit_seqno").unique()) == 1800


def test_failed_append_is_rolled_back(source: SparkSession, tmp_path: Path) -> None:
    table = created(tmp_path)
    append(frame(source, 0, 30, 1), tmp_path)
    before = set(tmp_path.rglob("*.parquet"))
    no_key = frame(source, 30, 300, 1).withColumn(
        "id", sf.when(sf.col("id") != "k00100", sf.col("id"))
    )
    with pytest.raises(SchemaMismatch, match="no record key"):
        append(no_key, tmp_path, operation="bulk_insert")
    states = {row["state"] for row in table.refresh().inspect.timeline().to_pylist()}
    assert states == {"COMPLETED"}
    append(frame(source, 30, 300, 1), tmp_path)
    assert len(values(tmp_path)) == 330
    # A task may go on for seconds; the write after its end takes away what it left.
    turn, left = 0, {"unknown"}
    while left and turn < 20:
        append(frame(source, 400 + turn, 1, 1), tmp_path)
        files = {path.name for path in set(tmp_path.rglob("*.parquet")) - before}
        commits = {row["requested"] for row in table.refresh().inspect.timeline().to_pylist()}
        left = {name.split("_")[-1].removesuffix(".parquet") for name in files} - commits
        turn += 1
        time.sleep(0.5)
    assert not left
    assert len(values(tmp_path)) == 330 + turn


def test_empty_append_makes_no_commit(source: SparkSession, tmp_path: Path) -> None:
    table = created(tmp_path)
    append(frame(source, 0, 0, 1), tmp_path)
    assert table.refresh().inspect.timeline().num_rows == 0
    assert values(tmp_path) == {}
    append(frame(source, 0, 2, 1), tmp_path)
    assert len(values(tmp_path)) == 2


W = "hoodie.datasource.write."
TRIPS = {
    "hoodie.table.name": "trips",
    W + "recordkey.field": "id",
    W + "partitionpath.field": "part",
    W + "precombine.field": "v",
}


def save(rows: DataFrame, base: Path, options: dict[str, str], mode: str = "append") -> None:
    rows.write.format("pyhudi").options(**options).mode(mode).save(str(base))


def staged(base: Path) -> list[Path]:
    return list(base.glob(".hoodie/.temp/*"))


@pytest.mark.parametrize(
    ("table_type", "operations"),
    [
        ("COPY_ON_WRITE", ("upsert", "delete", "insert_overwrite")),
        ("MERGE_ON_READ", ("insert", "bulk_insert", "delete_partition")),
    ],
)
def test_operations_equal_those_of_write(
    source: SparkSession, tmp_path: Path, table_type: str, operations: tuple[str, ...]
) -> None:
    """One history, by the format and by `pyhudi.spark.write`; test_staged_rows.py has more."""
    own, theirs = tmp_path / "own", tmp_path / "theirs"
    options = {**TRIPS, W + "table.type": table_type}
    for number, operation in enumerate(("", *operations)):
        rows = frame(source, number, 6 - number, number).coalesce(1)
        named = {**options, W + "operation": operation} if operation else options
        save(rows, own, named)
        write(rows, theirs, named, mode="append")
    found, wanted = (
        pyhudi.open_table(base).scan().to_arrow().sort_by([("id", "ascending"), ("v", "ascending")])
        for base in (own, theirs)
    )
    assert found == wanted
    assert not staged(own)


def test_overwrite_recreates_table_from_its_own_rows(source: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    save(frame(source, 0, 5, 1), base, TRIPS, "overwrite")
    save(frame(source, 0, 1, 2), base, TRIPS)
    rows = source.read.format("pyhudi").load(str(base)).selectExpr("id", "part", "v + 10 v")
    save(rows, base, TRIPS, "overwrite")
    assert sorted(values(base).values()) == [11, 11, 11, 11, 12]
    assert pyhudi.open_table(base).history().num_rows == 1
    keyless = frame(source, 0, 3, 1).withColumn("id", sf.when(sf.col("id") != "k00001", "x"))
    with pytest.raises(Exception, match="no record key"):
        save(keyless, base, TRIPS, "overwrite")
    assert len(values(base)) == 5
    assert not staged(base)


def test_failed_job_leaves_no_rows(source: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    failing = frame(source, 0, 30, 1).selectExpr(
        "id", "part", "if(assert_true(id <> 'k00020') is null, v, 0) v"
    )
    with pytest.raises(Exception, match="is not true"):
        save(failing, base, TRIPS)
    turn = 0
    while staged(base) and turn < 20:  # A task may go on for seconds.
        time.sleep(0.5)
        turn += 1
    assert not [path for path in base.rglob("*") if path.is_file()]
    save(frame(source, 0, 3, 1), base, TRIPS)
    assert len(values(base)) == 3


def test_save_as_table_needs_path(source: SparkSession) -> None:
    with pytest.raises(Exception, match="no path was given"):
        frame(source, 0, 3, 1).write.format("pyhudi").options(**TRIPS).saveAsTable("trips_by_name")


def test_spark_refuses_modes_and_partitioning(source: SparkSession, tmp_path: Path) -> None:
    """The page names these errors: if Spark lets Python sources have them, it must change."""
    writer = frame(source, 0, 3, 1).write.format("pyhudi").options(**TRIPS)
    for mode in ("ignore", "errorifexists"):
        with pytest.raises(Exception, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
            writer.mode(mode).save(str(tmp_path / "t"))
    with pytest.raises(Exception, match="partitioning"):
        writer.mode("append").partitionBy("part").save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


def test_format_keeps_global_record_index(source: SparkSession, tmp_path: Path) -> None:
    """`pyhudi.spark.write` removes it with a warning, which no user of the format would see."""
    table = created(tmp_path)
    save(frame(source, 0, 3, 1), tmp_path, {})
    save(frame(source, 0, 3, 2).withColumn("part", sf.lit("p9")), tmp_path, {})
    assert set(values(tmp_path).values()) == {2}
    assert "record_index" in table.refresh().config.metadata_partitions


def test_time_zone_of_session_does_not_fit_bare_timestamps(
    source: SparkSession, tmp_path: Path
) -> None:
    fields = [("id", pa.string()), ("t", pa.timestamp("us"))]
    table = pyhudi.create_table(tmp_path, pa.schema(fields), key="id")
    rows = source.createDataFrame([("a",)], "id string")
    rows = rows.withColumn("t", sf.expr("timestamp'2024-01-01 00:00:00'"))
    for operation in ("bulk_insert", "upsert"):
        with pytest.raises(SchemaMismatch):
            append(rows, tmp_path, operation=operation)
    assert table.refresh().count() == 0
    append(rows.withColumn("t", sf.col("t").cast("timestamp_ntz")), tmp_path)
    assert str(table.refresh().scan().to_arrow()["t"][0]) == "2024-01-01 00:00:00"


def test_variants_are_written(source: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "t"
    rows = source.range(1).selectExpr("string(id) id", "parse_json('{\"a\": 1}') v")
    for _ in range(2):
        save(rows, base, {W + "recordkey.field": "id"})
    [row] = read(source, base).selectExpr("id", "to_json(v) v").collect()
    assert (row["id"], row["v"]) == ("0", '{"a":1}')


def test_register_adds_name_hudi(source: SparkSession, tmp_path: Path) -> None:
    register(source, hudi=True)
    rows = frame(source, 0, 3, 1)
    rows.write.format("hudi").options(**TRIPS).mode("append").save(str(tmp_path / "t"))
    found = source.read.format("hudi").load(str(tmp_path / "t"))
    assert found.count() == 3
    with pytest.raises(pyhudi.errors.ConfigError, match="neither"):
        register(source, "trips")  # type: ignore[call-overload]


def stream(source: SparkSession, files: Path, base: Path, checkpoint: Path, **options: str) -> None:
    rows = source.readStream.schema("id string, part string, v long").json(str(files))
    query = rows.writeStream.format("pyhudi").options(**TRIPS).options(**options)
    query = query.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query.start(str(base)).awaitTermination()


def test_stream_writes_each_batch_once(source: SparkSession, tmp_path: Path) -> None:
    base, files, checkpoint = (tmp_path / name for name in ("trips", "files", "checkpoint"))
    frame(source, 0, 6, 1).write.json(str(files))
    stream(source, files, base, checkpoint)
    assert len(values(base)) == 6
    frame(source, 4, 4, 2).write.mode("append").json(str(files))
    stream(source, files, base, checkpoint)
    # Spark repeats a batch if its driver fails between the table's commit and the checkpoint's.
    (checkpoint / "commits" / "1").unlink()
    (checkpoint / "commits" / ".1.crc").unlink()
    stream(source, files, base, checkpoint)
    assert sorted(values(base).values()) == [1] * 4 + [2] * 4
    table = pyhudi.open_table(base)
    entries = [
        json.loads(table.state.timeline.commit_metadata(commit).extra_metadata[STREAM_BATCHES])
        for commit in table.state.timeline.commits
    ]
    assert [list(entry.values()) for entry in entries] == [["0"], ["1"]]
    assert not staged(base)
    with pytest.raises(Exception, match="another identifier"):
        stream(source, files, base, tmp_path / "other")
    stream(source, files, base, tmp_path / "third", identifier="third")
    assert len(pyhudi.open_table(base).state.timeline.commits) == 3


def test_sink_continues_stream_of_format(source: SparkSession, tmp_path: Path) -> None:
    base, files, checkpoint = (tmp_path / name for name in ("trips", "files", "checkpoint"))
    frame(source, 0, 6, 1).write.json(str(files))
    stream(source, files, base, checkpoint)
    frame(source, 6, 1, 1).write.mode("append").json(str(files))
    rows = source.readStream.schema("id string, part string, v long").json(str(files))
    query = rows.writeStream.foreachBatch(sink(base)).trigger(availableNow=True)
    query.option("checkpointLocation", str(checkpoint)).start().awaitTermination()
    assert len(values(base)) == 7
    assert len(pyhudi.open_table(base).state.timeline.commits) == 2
