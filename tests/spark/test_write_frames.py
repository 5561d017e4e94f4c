"""The writing verbs with a DataFrame as the data: the same rows as with Arrow data in-process."""

from __future__ import annotations

import os
import random
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import PartitionChangeWarning, SchemaMismatch
from pyhudi.spark import SparkEngine, create_table, write
from pyhudi.spark.types import wire_schema
from pyhudi.txn.result import WriteResult
from tests.engine.faulty import FaultyEngine, Twice
from tests.engine.jobs import leave
from tests.helpers.table_builder import TableBuilder, numbered
from tests.spark.arrow import frame_of

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's own warnings are not ours to mend

Given = Callable[[pa.Table], Any]


TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered(6)),
        "part": (pa.string(), lambda number: f"p{number % 3}"),
        "v": (pa.int64(), 1),
        "at": (pa.timestamp("ms", "UTC"), lambda number: number * 1000),
        "tags": (pa.list_(pa.string()), lambda number: [f"t{number}"] if number % 2 else None),
        "_hoodie_is_deleted": (pa.bool_(), False),
    },
    partition_by="part",
)


def next_part(number: int) -> str:
    return f"p{(number + 1) % 3}"


def written(
    base: Path, given: Given, options: dict[str, str], *, new_files: bool, **how: Any
) -> Iterator[tuple[str, Any, list[dict[str, Any]]]]:
    """Name, counts and content of the table after each verb."""
    table = TABLE.make(base, order_by="v", options=options, **how)

    def after(name: str, result: WriteResult) -> tuple[str, Any, Any]:
        counts = (result.rows_inserted, result.rows_updated, result.rows_deleted)
        return name, (result.operation, *counts), content(table)

    yield after("insert", table.insert(given(TABLE.rows(range(40), v=1))))
    if new_files:
        result = table.bulk_insert(
            given(TABLE.rows(range(100, 130), v=1)), sort="global", sort_columns=["v", "id"]
        )
        yield after("bulk_insert", result)
    twice = [
        TABLE.rows(range(30, 50), v=3),
        TABLE.rows(range(30, 50), v=2),
        TABLE.rows(range(60, 61), v=1, _hoodie_is_deleted=True),
    ]
    moved = [
        TABLE.rows(range(6), v=5, part=next_part),
        TABLE.rows(range(6, 8), v=5, _hoodie_is_deleted=True),
    ]
    yield after("upsert", table.upsert(given(pa.concat_tables([*twice, *moved]))))
    source = given(
        pa.concat_tables([TABLE.rows(range(14, 44), v=9), TABLE.rows(range(200, 204), v=9)])
    )
    merge = table.merge(source).when_matched_update({"v": "source.v + 1"}, where="target.v = 1")
    merge = merge.when_matched_delete(where="target.id > 'k000040'")
    yield after("merge", merge.when_not_matched_insert_all(where="source.id > 'k000200'").execute())
    yield after(
        "delete keys",
        table.delete_keys(given(TABLE.rows(range(10, 13), v=0).select(["id", "part"]))),
    )
    if not new_files:
        return
    yield after(
        "delete anywhere", table.delete_keys(given(TABLE.rows(range(13, 16), v=0).select(["id"])))
    )
    yield after(
        "partitions", table.overwrite_partitions(given(TABLE.rows(range(5), v=5, part="p0")))
    )
    yield after("overwrite", table.overwrite(given(TABLE.rows(range(9), v=6))))
    yield after("at last", table.upsert(given(TABLE.rows(range(5, 14), v=8))))


def content(table: HudiTable) -> list[dict[str, Any]]:
    found = pyhudi.open_table(table.uri).scan(meta_fields=True).to_arrow()
    names = ["_hoodie_record_key", "_hoodie_partition_path", *TABLE.schema.names]
    ordered = found.select(names).sort_by([("id", "ascending"), ("part", "ascending")])
    rows_: list[dict[str, Any]] = ordered.to_pylist()
    return rows_


TABLES = [
    pytest.param("mor", 9, "SIMPLE", marks=pytest.mark.spark35),
    pytest.param("cow", 6, "RECORD_INDEX", marks=pytest.mark.spark35),
    ("mor", 8, "GLOBAL_BLOOM"),
    ("mor", 6, "BUCKET"),
    ("cow", 9, "BUCKET"),
    ("mor", 8, "RING"),
    ("cow", 8, "BLOOM"),
    ("cow", 9, "GLOBAL_SIMPLE"),
]
OPTIONS = {
    "BUCKET": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"},
    "RING": {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.bucket.index.num.buckets": "3",
    },
    "GLOBAL_BLOOM": {"hoodie.bloom.index.update.partition.path": "true"},
    "GLOBAL_SIMPLE": {"hoodie.simple.index.update.partition.path": "false"},
    "RECORD_INDEX": {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.record.index.update.partition.path": "true",
    },
}

NEW_FILES = ("SIMPLE", "BUCKET", "RING")


@pytest.mark.parametrize(("kind", "version", "index"), TABLES)
def test_verbs_write_the_same_as_in_this_process(
    tmp_path: Path, spark: SparkSession, kind: str, version: int, index: str
) -> None:
    options = {"hoodie.index.type": index, **OPTIONS.get(index, {})}
    how: dict[str, Any] = {"kind": kind, "version": version, "new_files": index in NEW_FILES}
    local = list(written(tmp_path / "local", lambda table: table, options, **how))
    frames = written(tmp_path / "spark", partial(frame, spark), options, **how)
    for wanted, found in zip(local, frames, strict=True):
        assert found == wanted


def frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    return frame_of(spark, table.cast(wire_schema(table.schema))).repartition(2)


@pytest.mark.spark35
@pytest.mark.parametrize("fault", [Twice, "DiesOnce"], ids=["twice", "lost"])
def test_tasks_that_run_again_leave_nothing(
    tmp_path: Path, spark: SparkSession, fault: Any
) -> None:
    table = TABLE.make(tmp_path / "table", order_by="v", metadata=False, first=range(30))
    chosen = partial(DiesOnce, str(tmp_path)) if fault == "DiesOnce" else fault
    faulty: Any = FaultyEngine(SparkEngine(spark), chosen)
    handle = pyhudi.open_table(table.uri, engine=faulty)
    result = handle.upsert(frame(spark, TABLE.rows(range(20, 40), v=2)))
    assert (result.rows_inserted, result.rows_updated, result.files_written) == (10, 10, 3)
    assert [row["v"] for row in content(table)] == [1] * 20 + [2] * 20
    files = {path.name for path in (tmp_path / "table").rglob("*.parquet")}
    assert len(files) == 6
    assert fault is Twice or (tmp_path / "died").exists()


@dataclass(frozen=True)
class DiesOnce:
    """The first run of all writes its files and takes its process along."""

    folder: str
    work: Any

    def __call__(self, route: str, table: pa.Table, attempt: Attempt) -> Any:
        results = self.work(route, table, attempt)
        if table.num_rows and leave(self.folder, "died"):
            os._exit(3)
        return results


def test_driver_results_do_not_grow_with_rows(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    kind = type(spark.range(1))
    collect = kind.collect

    def counted(self: DataFrame) -> Any:
        found = collect(self)
        taken[-1] += len(cloudpickle.dumps([tuple(row) for row in found]))
        return found

    monkeypatch.setattr(kind, "collect", counted)
    table = TABLE.make(tmp_path, order_by="v")
    for count in (300, 30_000):
        taken.append(0)
        table.upsert(frame(spark, TABLE.rows(range(count), v=count)))
    assert len(content(table)) == 30_000
    few, many = taken
    assert 0 < many < 2 * few


def test_frame_writes_use_its_session_and_name_jobs(tmp_path: Path, spark: SparkSession) -> None:
    table = TABLE.make(tmp_path, order_by="v")
    table.insert(frame(spark, TABLE.rows(range(3), v=1)))
    tracker = spark.sparkContext.statusTracker()
    assert tracker.getJobIdsForGroup(f"pyhudi insert: {table.uri}")
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None


def test_jobs_stay_in_the_group_that_the_caller_may_cancel(
    tmp_path: Path, spark: SparkSession
) -> None:
    table = TABLE.make(tmp_path, order_by="v")
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", "of a query")
    try:
        table.insert(frame(spark, TABLE.rows(range(3), v=1)))
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    tracker = spark.sparkContext.statusTracker()
    assert tracker.getJobIdsForGroup("of a query")
    assert not tracker.getJobIdsForGroup(f"pyhudi insert: {table.uri}")


@pytest.mark.spark35
@pytest.mark.parametrize(
    ("verb", "error"),
    [
        (lambda t, f: t.merge(f.union(f)).when_matched_delete().execute(), SchemaMismatch),
        (
            lambda t, f: t.merge(f.select("*", "v")).when_matched_update({"v": "1"}).execute(),
            SchemaMismatch,
        ),
        (lambda t, f: t.upsert(f.drop("v")), SchemaMismatch),
        (lambda t, f: t.upsert(f.withColumn("id", sf.lit(None).cast("string"))), SchemaMismatch),
    ],
    ids=["twice", "repeated", "column", "key"],
)
def test_unsupported_frames_are_refused_before_writing(
    tmp_path: Path, spark: SparkSession, verb: Any, error: type[Exception]
) -> None:
    table = TABLE.make(tmp_path, order_by="v")
    with pytest.raises(error):
        verb(table, frame(spark, TABLE.rows(range(3), v=1)))
    assert table.refresh().inspect.timeline().num_rows == 0


@pytest.mark.parametrize(
    ("ddl", "value", "where"),
    [
        ("at timestamp_ntz", "{0}", "at"),
        ("s struct<at: timestamp_ntz>", "named_struct('at', {0})", "s.at"),
        ("l array<timestamp_ntz>", "array({0})", "l.element"),
        ("m map<string, timestamp_ntz>", "map('a', {0})", "m.value"),
    ],
)
def test_moments_do_not_lose_the_zone_that_the_session_shows_them_in(
    spark: SparkSession, tmp_path: Path, ddl: str, value: str, where: str
) -> None:
    create_table(spark, tmp_path, f"id string, {ddl}", key="id")
    name = ddl.split(maxsplit=1)[0]

    def given(kind: str) -> DataFrame:
        made = value.format(f"{kind} '2024-01-01 12:00:00'")
        return spark.sql(f"SELECT 'a' id, {made} {name}")

    table = pyhudi.open_table(tmp_path, engine=SparkEngine(spark))
    moments = given("TIMESTAMP")
    merge = table.merge(moments)
    verbs: list[Callable[[], object]] = [
        lambda: table.upsert(moments),
        lambda: table.insert(moments, schema_mode="merge"),
        lambda: table.bulk_insert(moments),
        lambda: table.overwrite(moments),
        lambda: merge.when_not_matched_insert_all().execute(),
        lambda: merge.when_matched_update({name: f"source.{name}"}).execute(),
        lambda: write(moments, tmp_path, {}, mode="append"),
    ]
    for verb in verbs:
        with pytest.raises(SchemaMismatch, match=rf"(?s)'{re.escape(where)}'.*timestamp_ntz"):
            verb()
    assert table.history().num_rows == 0
    table.upsert(given("TIMESTAMP_NTZ"))
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        assert table.upsert(given("TIMESTAMP")).rows_updated == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))
    assert "2024, 1, 1, 12" in str(pyhudi.open_table(tmp_path).scan().to_arrow().to_pylist())


def test_moments_name_no_keys_without_a_zone(spark: SparkSession, tmp_path: Path) -> None:
    create_table(spark, tmp_path, "at timestamp_ntz, v long", key="at")
    table = pyhudi.open_table(tmp_path, engine=SparkEngine(spark))
    moments = spark.sql("SELECT TIMESTAMP '2024-01-01 12:00:00' at, 1L v")
    with pytest.raises(SchemaMismatch, match="'at' has timestamps"):
        table.delete_keys(moments.select("at"))
    with pytest.raises(SchemaMismatch, match="'at' has timestamps"):
        table.merge(moments).when_matched_update({"v": "source.v"}).execute()


@pytest.mark.on_executors
def test_rows_that_lose_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    """A null ordering value counts as 0."""
    table = TABLE.make(tmp_path, order_by="v", first=TABLE.rows(range(9), v=5))
    data = pa.concat_tables(
        [
            TABLE.rows(range(2), v=4),
            TABLE.rows(range(2, 5), v=6),
            TABLE.rows(range(5, 8), v=0),
            TABLE.rows(range(20, 22), v=0),
        ]
    )
    null = pa.array([None if v == 0 else v for v in data["v"].to_pylist()], pa.int64())
    given = data.set_column(data.schema.get_field_index("v"), "v", null)
    result = pyhudi.open_table(tmp_path, engine=SparkEngine(spark)).upsert(frame(spark, given))
    assert (result.rows_updated, result.rows_inserted, result.rows_ignored) == (3, 2, 5)
    assert (result.rows_in, result.duplicates_dropped) == (None, None)
    found = {row["id"]: row["v"] for row in table.refresh().scan().to_arrow().to_pylist()}
    assert [found[f"k{n:06}"] for n in range(9)] == [5, 5, 6, 6, 6, 5, 5, 5, 5]


@pytest.mark.parametrize("index", ["simple", "bucket"])
def test_partitions_of_deletes_alone_are_overwritten(
    spark: SparkSession, tmp_path: Path, index: str
) -> None:
    TABLE.make(tmp_path, index=index, first=TABLE.rows(range(9), v=5))
    table = pyhudi.open_table(tmp_path, engine=SparkEngine(spark))
    gone = TABLE.rows([1, 31, 61], v=6, _hoodie_is_deleted=True)
    table.overwrite_partitions(
        frame(spark, pa.concat_tables([TABLE.rows([2], v=6), gone, TABLE.rows([62], v=6)]))
    )
    found = pyhudi.open_table(tmp_path).scan(columns=["id", "v"]).to_arrow().sort_by("id")
    assert found["id"].to_pylist() == [f"k{n:06}" for n in (0, 2, 3, 6, 62)]
    assert found["v"].to_pylist() == [5, 6, 5, 5, 6]
    assert table.refresh().check(deep=True).ok


@pytest.mark.parametrize("verb", ["upsert", "bulk_insert"])
@pytest.mark.parametrize("outer_first", [True, False])
def test_nested_partition_is_refused(
    spark: SparkSession, tmp_path: Path, verb: str, outer_first: bool
) -> None:
    first, second = ("a", "a/b") if outer_first else ("a/b", "a")
    TABLE.make(tmp_path, first=TABLE.rows([1], part=first))
    table = pyhudi.open_table(tmp_path, engine=SparkEngine(spark))
    refused = re.escape("the partition 'a/b' would be inside the partition 'a'")
    both = pa.concat_tables([TABLE.rows([2], part=first), TABLE.rows([3], part=second)])
    for given in (TABLE.rows([4], part=second), both):
        with pytest.raises(SchemaMismatch, match=refused):
            getattr(table, verb)(frame(spark, given))
    table.rebuild_metadata()
    assert pyhudi.open_table(tmp_path).count() == 1


@pytest.mark.parametrize("verb", ["upsert", "insert", "bulk_insert", "overwrite_partitions"])
def test_empty_frame_makes_no_commit(spark: SparkSession, tmp_path: Path, verb: str) -> None:
    TABLE.make(tmp_path, first=TABLE.rows(range(9), v=5))
    table = pyhudi.open_table(tmp_path, engine=SparkEngine(spark))
    before = table.inspect.timeline().num_rows
    assert not getattr(table, verb)(frame(spark, TABLE.rows(range(0), v=0))).committed
    assert table.refresh().inspect.timeline().num_rows == before
    assert pyhudi.open_table(tmp_path).scan().count() == 9


def test_null_list_element_is_refused_before_writing(spark: SparkSession, tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", first=TABLE.rows(range(9), v=5))
    bad = TABLE.rows(range(2), v=6).drop_columns(["tags"])
    bad = bad.append_column("tags", pa.array([["x"], ["y", None]], pa.list_(pa.string())))
    given = frame(spark, bad)
    before = sorted(tmp_path.rglob("*"))
    for verb in ("upsert", "insert", "overwrite"):
        with pytest.raises(SchemaMismatch, match=r"'tags'.*null element"):
            getattr(table, verb)(given)
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(SchemaMismatch, match=r"'tags'.*null element"):
        pyhudi.create_table(tmp_path / "new", given, key="id", partition_by="part")
    assert not (tmp_path / "new" / ".hoodie").exists()


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_rows_that_stay_in_their_partition_are_told_and_counted(
    spark: SparkSession, tmp_path: Path, kind: Any
) -> None:
    """As without Spark: neither rows that move, nor new ones, nor deletes."""
    moved = TABLE.rows(range(4), v=6, part=next_part)
    data = pa.concat_tables(
        [
            moved,
            TABLE.rows(range(4, 6), v=6),
            TABLE.rows(range(20, 22), v=6, part=next_part),
            TABLE.rows(range(6, 8), v=6, part=next_part, _hoodie_is_deleted=True),
        ]
    )
    option = "hoodie.record.index.update.partition.path"

    def counted(name: str, given: Given, **options: str) -> tuple[int, int]:
        base = tmp_path / name
        TABLE.make(base, kind=kind, first=TABLE.rows(range(9), v=5))
        result = pyhudi.open_table(base, options=options).upsert(given(data))
        return result.rows_kept_in_partition, result.rows_moved

    for name, given in (("arrow", lambda one: one), ("spark", partial(frame, spark))):
        with pytest.warns(PartitionChangeWarning, match=f"4 rows .*{option}"):
            assert counted(name, given) == (4, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("error", PartitionChangeWarning)
            assert counted(f"{name} said", given, **{option: "false"}) == (4, 0)
            assert counted(f"{name} moves", given, **{option: "true"}) == (0, 4)


@pytest.mark.parametrize("index", ["SIMPLE", "RECORD_INDEX"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_deletes_take_every_copy_in_a_file(
    spark: SparkSession, tmp_path: Path, kind: Any, index: str
) -> None:
    options = {"hoodie.index.type": index}
    data = TABLE.rows(range(6), v=1, part="p0")
    table = TABLE.make(tmp_path, kind=kind, options=options)
    table.bulk_insert(pa.concat_tables([data, data]))
    table = pyhudi.open_table(tmp_path, options=options, engine=SparkEngine(spark))

    def left() -> list[str]:
        found = pyhudi.open_table(tmp_path).scan(columns=["id"]).to_arrow()
        return sorted(found["id"].to_pylist())

    table.delete_keys(frame(spark, TABLE.rows(range(2), v=1, part="p0").select(["id", "part"])))
    assert left() == [f"k{n:06}" for n in (2, 2, 3, 3, 4, 4, 5, 5)]
    merge = table.merge(frame(spark, TABLE.rows(range(2, 5), v=7, part="p0")))
    merge.when_matched_delete(where="id < 'k000004'").execute()
    assert left() == [f"k{n:06}" for n in (4, 4, 5, 5)]
    with pytest.raises(SchemaMismatch, match="duplicates of the key"):
        merge.when_matched_update({"v": "9"}).execute()
    assert left() == [f"k{n:06}" for n in (4, 4, 5, 5)]


@pytest.mark.parametrize("verb", ["overwrite", "bulk_insert"])
def test_file_sizes_are_near_the_option_where_rows_grow(
    spark: SparkSession, tmp_path: Path, verb: str
) -> None:
    """Nearly all bytes are in the last tenth of the rows."""
    noise, most = random.Random(1), 256 * 1024
    texts = ["s"] * 5000 + [noise.randbytes(2048).hex() for _ in range(600)]
    data = pa.table({"id": list(range(len(texts))), "t": texts})
    options = {"hoodie.parquet.max.file.size": most, "hoodie.parquet.small.file.limit": 0}
    pyhudi.create_table(tmp_path / "t", data.schema, key="id", options=options)
    table = pyhudi.open_table(tmp_path / "t", options=options, engine=SparkEngine(spark))
    getattr(table, verb)(frame(spark, data))
    sizes = [file.stat().st_size for file in (tmp_path / "t").glob("*.parquet")]
    assert max(sizes) < 1.6 * most
    assert sum(sizes) > 0.5 * most * len(sizes)
    assert pyhudi.open_table(tmp_path / "t").count() == len(texts)
