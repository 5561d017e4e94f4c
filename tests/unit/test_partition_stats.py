"""Statistics of partitions: tight ones, made of those of files that the metadata table knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.clock import SystemClock
from pyhudi.config.actions import COMPACTION
from pyhudi.config.file_names import base_file_name
from pyhudi.config.metadata_names import COLUMN_STATS, PARTITION_STATS
from pyhudi.config.table_config import TableConfig
from pyhudi.metadata.index_definitions import index_definitions
from pyhudi.metadata.initialize import PartitionBuild
from pyhudi.metadata.partition_types.file_stats import (
    MAX_LOOK_UP_TASKS,
    FileStatsTask,
    TightTask,
    tight_tasks,
)
from pyhudi.metadata.partition_types.partition_stats import OtherFiles
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.record_tasks import RECORD_ROWS, RecordTaskContext, derive_rows
from pyhudi.metadata.statistics_columns import statistics_columns
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.listing import StorageListing
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline, serde
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat
from tests.helpers.metadata_records import decode, stored_records
from tests.helpers.tables import GoldenTables, unpack
from tests.unit.test_metadata_records import Both, files_of

TABLES = ["v9_cow_all_stats", "v9_mor_all_stats", "v9_mor_part_avro"]


def stats(partition: _native.MetadataPartition, field: pa.Field) -> dict[str, dict[str, Any]]:
    rows = partition.all_stats(field.name, field.type).to_pylist()
    return {row.pop("file_name"): row for row in rows}


@pytest.mark.parametrize("name", TABLES)
def test_tight_statistics_are_those_that_hudi_wrote(
    name: str, golden: GoldenTables, tmp_path: Path
) -> None:
    both = Both(golden.unpack(name), tmp_path)
    columns = statistics_columns(index_definitions(both.storage, both.config), both.schema)
    tasks = []
    for path in {one.partition for one in both.slices}:
        files = [file for one in both.slices if one.partition == path for file in files_of(one)]
        task = FileStatsTask(
            both.task_context,
            path,
            tuple(files[:1]),
            columns=columns,
            value_types=True,
            partition_stats=True,
            bloom_filters=False,
            instant="1",
            other_files=tuple(files[1:]),
        )
        tasks.append(task)
    together = TightTask(
        both.task_context, tuple(tasks), tuple(both.hudi.file_groups(COLUMN_STATS))
    )
    rows = pa.Table.from_batches(derive_rows(together), RECORD_ROWS)
    rows = rows.filter(pc.starts_with(rows["route"], PARTITION_STATS))
    mine = both.written(PARTITION_STATS, rows)
    compared = 0
    for field in columns:
        ours = stats(mine, field)
        for path, theirs in stats(both.hudi.partition(PARTITION_STATS), field).items():
            assert ours[path] == theirs, (path, field)
            compared += 1
    assert compared >= 9


@pytest.mark.parametrize("name", TABLES)
def test_records_are_hudis_to_the_field(name: str, tmp_path: Path) -> None:
    unpack(name, tmp_path)
    both = Both(tmp_path / name, tmp_path / "scratch")
    columns = statistics_columns(index_definitions(both.storage, both.config), both.schema)
    tasks = [
        FileStatsTask(
            both.task_context,
            path,
            tuple(file for one in both.slices if one.partition == path for file in files_of(one)),
            columns=columns,
            value_types=True,
            partition_stats=True,
            bloom_filters=False,
            instant="1",
            other_files=(),
        )
        for path in {one.partition for one in both.slices}
    ]
    rows = pa.Table.from_batches([r for task in tasks for r in derive_rows(task)], RECORD_ROWS)
    keys = [key.encode() for key in rows["key"].to_pylist()]
    pairs = zip(keys, rows["value"].to_pylist(), strict=True)
    mine = dict(decode(both.task_context.avro_schema, pairs))
    compared = set()
    for partition in (COLUMN_STATS, PARTITION_STATS):
        folder = tmp_path / name / ".hoodie/metadata" / partition
        # The newest of a key comes last.
        for key, theirs in dict(stored_records(folder)).items():
            if key in mine:
                assert mine[key] == theirs
                compared.add((partition, theirs["ColumnStatsMetadata"]["columnName"]))
    assert compared == {(p, c) for p in (COLUMN_STATS, PARTITION_STATS) for c in columns.names}


def test_open_handle_keeps_statistics_of_files(tmp_path: Path) -> None:
    """They are those that a handle finds which is opened for each commit, beside other writers."""

    def rows(turn: int) -> pa.Table:
        return pa.table({"id": [f"k{turn % 4}", "z"], "p": ["a", "b"], "v": [turn * 7 % 10, -turn]})

    axes: dict[str, Any] = {"key": "id", "partition_by": "p", "type": "mor"}
    kept, opened = tmp_path / "kept", tmp_path / "opened"
    table = pyhudi.create_table(kept, rows(0), **axes)
    pyhudi.create_table(opened, rows(0), **axes)
    other = pyhudi.open_table(kept)
    for turn in range(1, 9):
        (table if turn % 3 else other).upsert(rows(turn))
        pyhudi.open_table(opened).upsert(rows(turn))
        if turn == 5:
            other.compact()
            pyhudi.open_table(opened).compact()
        assert bounds(kept) == bounds(opened)
    values = [value for value, _ in table.storage.cache._values.values()]
    (stats_of_files,) = [value for value in values if isinstance(value, _native.KeptStats)]
    table.upsert(rows(8))
    count = len(stats_of_files)
    table.upsert(rows(8))
    # Of its two log files; it looks up no other.
    assert len(stats_of_files) == count + 2


def bounds(base: Path) -> dict[str, Any]:
    opened = pyhudi.open_table(base)
    index = MetadataTable(opened.storage, opened.config, opened.state.timeline)
    fields = [pa.field("id", pa.string()), pa.field("v", pa.int64())]
    return {field.name: stats(index.partition(PARTITION_STATS), field) for field in fields}


def test_bounds_of_a_partition_become_narrower(tmp_path: Path) -> None:
    unpack("v9_cow_all_stats", tmp_path)
    base = tmp_path / "v9_cow_all_stats"
    age = pyhudi.open_table(str(base)).schema.field("age")
    rows = pyhudi.open_table(str(base)).scan().to_arrow()
    before = stats(Both(base, tmp_path).hudi.partition(PARTITION_STATS), age)
    assert set(before) == set(rows["city"].to_pylist())
    most = pc.max(rows["age"])
    pyhudi.open_table(str(base)).delete(pc.field("age") == most)
    rows = pyhudi.open_table(str(base)).scan().to_arrow()
    found = stats(Both(base, tmp_path).hudi.partition(PARTITION_STATS), age)
    assert found != before
    for city in set(rows["city"].to_pylist()):
        ages = rows.filter(pc.equal(rows["city"], city))["age"]
        bounds = pc.min_max(ages).as_py()
        assert (found[city]["min"], found[city]["max"]) == (bounds["min"], bounds["max"])


def test_partition_stats_keep_appends_after_compaction_plan(tmp_path: Path) -> None:
    unpack("v9_mor_compaction", tmp_path)
    base = tmp_path / "v9_mor_compaction"
    (completed,) = (base / ".hoodie/timeline").glob("*.commit")
    completed.unlink()
    storage, clock = Storage(str(base)), SystemClock()
    config = TableConfig.load(storage, clock)
    timeline = Timeline.load(storage, config)
    (planned,) = timeline.pending(COMPACTION)
    slices = FileSystemView(storage, config, timeline).slices()
    (newer,) = [log for one in slices for log in one.logs if log.instant > planned.requested]
    name = base_file_name(newer.file_id, "0-0-0", planned.requested, "parquet")
    stat = WriteStat(file_id=newer.file_id, path=f"{newer.partition}/{name}")
    table = TableSnapshot.open(storage, config, clock)
    known = MetadataTable(storage, config, timeline)
    commit = CommitMetadata({newer.partition: (stat,)})
    other_files = OtherFiles(table, known, commit, StorageListing(storage))
    left = [path for path, _ in other_files.of(newer.partition) if newer.file_id in path]
    assert left == [newer.path]


def test_writes_read_a_plan_as_often_for_many_partitions_as_for_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write beside a planned compaction and the compaction took the square of the partitions."""
    decoded: list[str] = []
    decode = serde.decode

    def noted(data: bytes, path: str) -> dict[str, Any] | None:
        decoded.append(path)
        return decode(data, path)

    monkeypatch.setattr(serde, "decode", noted)

    def reads(partitions: int, verb: str) -> int:
        base = tmp_path / f"{verb}{partitions}"
        names = [f"p{number}" for number in range(partitions)]
        rows = pa.table({"id": names, "p": names})
        table = pyhudi.create_table(base, rows, key="id", partition_by="p", type="mor")
        table.upsert(rows)
        table.compact(execute=False)
        decoded.clear()
        table.upsert(rows) if verb == "upsert" else table.compact(schedule=False)
        return sum(path.endswith(".compaction.requested") for path in decoded)

    for verb in ("upsert", "compact"):
        few = reads(2, verb)
        assert few == reads(9, verb) > 0


def test_tight_statistics_read_the_index_in_few_tasks(tmp_path: Path) -> None:
    """Each reads what `column_stats` has of its partitions' other files at once."""
    task_context = RecordTaskContext(Storage(str(tmp_path)), "{}", {})
    one, other = (pa.schema([(name, pa.int64())]) for name in "ab")
    parts = [
        FileStatsTask(task_context, f"p{n}", (), "1", columns=other if n == 7 else one)
        for n in range(3 * MAX_LOOK_UP_TASKS)
    ]
    tasks = list(tight_tasks(parts, (), 1 << 30))
    assert len(tasks) == MAX_LOOK_UP_TASKS + 1
    assert len(list(tight_tasks(parts, (), 1 << 10))) == 2
    assert all(len({part.columns for part in task.parts}) == 1 for task in tasks)
    assert sorted(part.partition for task in tasks for part in task.parts) == sorted(
        part.partition for part in parts
    )


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_partition_stats_count_nulls_of_missing_column(
    tmp_path: Path, version: int, kind: Any
) -> None:
    """Also in partitions that get it by a later commit; and a new partition has no such files."""
    base = tmp_path / "t"
    table = pyhudi.create_table(
        base, late_rows("abc"), key="id", partition_by=["p", "q"], type=kind, version=version,
        index="bucket", options={**STATISTICS, "hoodie.bucket.index.num.buckets": 1},
    )  # fmt: skip
    for partitions in ("a", "b", "d"):
        new = late_rows(partitions).append_column("x", pa.array([5] * len(partitions)))
        table.upsert(new, schema_mode="merge")
        assert not [one for one in table.check(deep=True) if one.severity == "error"]
    found = stats(Both(base, tmp_path).hudi.partition(PARTITION_STATS), pa.field("x", pa.int64()))
    whole = {"a/1": 1, "b/1": 1, "d/1": 0} if kind == "mor" else {"a/1": 0, "b/1": 0, "d/1": 0}
    assert {path: one["null_count"] for path, one in found.items()} == whole
    assert {(one["min"], one["max"]) for one in found.values()} == {(5, 5)}
    assert table.refresh().scan(where="x IS NULL").count() == 1


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(
    ("old", "new", "least"),
    [
        (pa.int32(), pa.int64(), 2**40),
        (pa.int64(), pa.float64(), 3.5),
        (pa.float32(), pa.float64(), 1e300),
    ],
)
def test_bounds_of_a_widened_column_are_all_of_its_new_type(
    tmp_path: Path, kind: Any, old: pa.DataType, new: pa.DataType, least: float
) -> None:
    """Also in a partition that is written later. Hudi cannot merge bounds of two types."""

    def rows(ids: str, values: list[float], kind: pa.DataType) -> pa.Table:
        columns = {"id": [*ids], "p": [one.lower() for one in ids], "x": pa.array(values, kind)}
        return pa.table(columns)

    base = tmp_path / "t"
    table = pyhudi.create_table(
        base, rows("ab", [-2, -3], old), key="id", partition_by="p", type=kind, version=8,
        options={**STATISTICS, "hoodie.metadata.compact.max.delta.commits": 3},
    )  # fmt: skip
    table.upsert(rows("AB", [4, 5], old))
    table.upsert(rows("a", [least], new), schema_mode="merge")
    for ids in ("b", "AB", "AB"):
        table.upsert(rows(ids, [least] * len(ids), new))
    assert not [one for one in table.check(deep=True) if one.severity == "error"]
    assert list((base / ".hoodie/metadata" / PARTITION_STATS).glob("*.hfile"))


STATISTICS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
}


def late_rows(partitions: str) -> pa.Table:
    count = len(partitions)
    return pa.table({"id": [*partitions], "p": [*partitions], "q": ["1"] * count})


def bytes_rows(key: str, value: bytes) -> pa.Table:
    return pa.table({"id": [key], "p": ["a"], "x": [value]})


def bounds_of_bytes(base: Path) -> list[tuple[str, str, bool]]:
    """Of each record of a partition's column `x`; characters stand for bytes."""
    records = stored_records(base / ".hoodie/metadata" / PARTITION_STATS)
    found = [record["ColumnStatsMetadata"] for _, record in records]
    return [
        (one["minValue"]["value"], one["maxValue"]["value"], one.get("isTightBound", False))
        for one in found
        if one["columnName"] == "x"
    ]


@pytest.mark.parametrize("compacts", [2, 100])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_bounds_of_bytes_are_never_widened(tmp_path: Path, kind: Any, compacts: int) -> None:
    """Hudi would take the least and greatest of signed bytes, by which 0x80 is before 0."""
    base = tmp_path / "t"
    options = {
        **STATISTICS,
        "hoodie.metadata.compact.max.delta.commits": compacts,
        "hoodie.parquet.small.file.limit": 0,
    }
    table = pyhudi.create_table(
        base,
        bytes_rows("1", b"m"),
        key="id",
        partition_by="p",
        type=kind,
        version=8,
        options=options,
    )
    for key, value in [("2", b"\xee"), ("3", b"z"), ("3", b"\x80")]:
        table.upsert(bytes_rows(key, value))
    found = bounds_of_bytes(base)
    assert all(least <= greatest for least, greatest, _ in found)
    assert ("m", "\xee", True) in found
    assert not [one for one in table.check(deep=True) if one.severity == "error"]
    assert not list((base / ".hoodie/metadata" / PARTITION_STATS).glob("*.hfile")) or compacts == 2


def test_files_whose_bytes_have_statistics_are_not_looked_at(tmp_path: Path) -> None:
    options = {**STATISTICS, "hoodie.parquet.small.file.limit": 0}
    table = pyhudi.create_table(
        tmp_path, bytes_rows("1", b"1"), key="id", partition_by="p", version=8, options=options
    )
    (file,) = tmp_path.glob("a/*.parquet")
    file.write_bytes(bytes(file.stat().st_size))
    table.insert(bytes_rows("2", b"2"))
    assert ("1", "2", True) in bounds_of_bytes(tmp_path)


def test_bounds_of_bytes_that_are_made_beside_a_writer_are_those_of_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.parquet.small.file.limit": 0,
    }
    table = pyhudi.create_table(
        tmp_path, bytes_rows("1", b"m"), key="id", partition_by="p", version=8, options=options
    )
    write_files = PartitionBuild.write_files

    def and_others_write(self: PartitionBuild) -> list[WriteStat]:
        monkeypatch.undo()
        made = write_files(self)
        pyhudi.open_table(tmp_path, options=options).insert(bytes_rows("2", b"\xee"))
        return made

    monkeypatch.setattr(PartitionBuild, "write_files", and_others_write)
    table.create_index("partition_stats", concurrently=True)
    assert ("m", "\xee", True) in bounds_of_bytes(tmp_path)


@pytest.mark.parametrize(
    ("service", "version"), [("compact", 9), ("cluster", 8), ("log_compact", 9)]
)
def test_planned_service_runs_after_column_is_widened(
    service: str, version: int, tmp_path: Path
) -> None:
    """Its files have the older type; the other files of the partition have the wider one."""

    def rows(keys: list[str], value: int, kind: pa.DataType) -> pa.Table:
        columns = {"id": keys, "p": ["a"] * len(keys), "ts": [value] * len(keys)}
        return pa.table({**columns, "v": pa.array([value] * len(keys), kind)})

    table = pyhudi.create_table(
        tmp_path / "t",
        rows(["1", "2"], 1, pa.int32()),
        key="id",
        partition_by="p",
        order_by="ts",
        type="mor",
        version=version,
        index="simple",
        options={"hoodie.metadata.index.column.stats.enable": "true"},
    )
    assert PARTITION_STATS in table.config.metadata_partitions
    for value in (2, 3):
        table.upsert(rows(["1"], value, pa.int32()))
    more: dict[str, Any] = {"cluster": {"sort_by": ["v"]}, "log_compact": {"min_log_files": 2}}
    planned = getattr(table, service)(execute=False, **more.get(service, {}))
    table.insert(rows(["3"], 1 << 40, pa.int64()), schema_mode="merge")
    done = getattr(table, service)(schedule=False)
    assert done.instants == planned.scheduled
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [1, 3, 1 << 40]
    assert table.scan(where="v > 5").to_arrow()["id"].to_pylist() == ["3"]
    found = table.check(deep=True)
    assert not found.findings, str(found)
