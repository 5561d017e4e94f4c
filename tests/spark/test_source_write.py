"""The format "pyhudi" of Spark 4 appends to tables."""

from __future__ import annotations

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
from pyhudi.errors import HudiError, SchemaMismatch, UnsupportedTableFeature
from pyhudi.spark import register_source
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
    options = {"memory_limit": memory} if memory else {}
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
    with pytest.raises(SchemaMismatch, match="'id'"):
        append(no_key, tmp_path)
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


@pytest.mark.parametrize(
    ("how", "options", "message"),
    [
        ({}, {"operation": "upsert"}, "shuffle"),
        ({}, {"as_of": "2023"}, "as_of"),
        ({}, {"hoodie.combine.before.insert": "true"}, "hoodie.combine.before.insert"),
        ({"options": {"hoodie.index.type": "BUCKET"}}, {"hoodie.index.type": "BUCKET"}, "BUCKET"),
    ],
)
def test_append_refuses_writes_that_need_shuffle(
    source: SparkSession, tmp_path: Path, how: Any, options: dict[str, str], message: str
) -> None:
    table = created(tmp_path, **how)
    with pytest.raises(HudiError, match=message):
        append(frame(source, 0, 3, 1), tmp_path, **options)
    with pytest.raises(UnsupportedTableFeature, match="overwrite"):
        frame(source, 0, 3, 1).write.format("pyhudi").mode("overwrite").save(str(tmp_path))
    assert table.refresh().inspect.timeline().num_rows == 0


def test_append_refuses_streams(source: SparkSession, tmp_path: Path) -> None:
    created(tmp_path / "t")
    stream = source.readStream.format("rate").load().writeStream.format("pyhudi")
    stream = stream.option("checkpointLocation", str(tmp_path / "c"))
    with pytest.raises(UnsupportedTableFeature, match="cannot shuffle"):
        stream.start(str(tmp_path / "t")).awaitTermination()
