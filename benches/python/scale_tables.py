"""Makes the tables of the scale benchmark: very large in one respect, and made directly.

A small table is begun by pyhudi itself, with a metadata table of files and a record index. Then the
rest is put beside it: empty data files of many file groups, base files of the metadata table that
name them, as a compaction would leave them, keys in the record index, and instants on the timeline
or in its history. No data file but the first holds rows: none of the others is ever read.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import pyhudi
from pyhudi import _native
from pyhudi.clock import SystemClock, format_instant
from pyhudi.config.actions import COMMIT, State
from pyhudi.config.retention_options import HistoryOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import LAYOUT_2
from pyhudi.metadata.record_tasks import RECORD_ROWS, record_schema
from pyhudi.storage.storage import Storage
from pyhudi.timeline.archive_lsm_write import ArchivedInstant, add_to_history, merge_and_clean
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("v", pa.int64())])
OPTIONS = {
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
"""What is measured stands alone: no service follows a commit."""

_START = 1_700_000_000_000
_GROUPS_OF_A_PARTITION = 1000
_BYTES = 1 << 20
"""Of a data file, all of them a hole."""
_BATCH = 500_000
_ROWS_OF_HISTORY = 1000
_NONE = pa.array([], pa.string())


@dataclass(frozen=True)
class Size:
    """How large a table is."""

    groups: int = 1000
    keys: int = 1000
    """In the record index, which has one file group: it stands for one of many."""
    active: int = 20
    """Commits on the timeline."""
    files: int = 1
    """Data files that each of those wrote, of as many file groups."""
    archived: int = 100
    """Commits in its history."""

    @property
    def partitions(self) -> int:
        """Of the data."""
        return max(1, self.groups // _GROUPS_OF_A_PARTITION)

    def written(self, commit: int) -> list[int]:
        """File groups of a commit on the timeline, by its number."""
        return [(commit * self.files + number) % self.groups for number in range(self.files)]


def partition(number: int) -> str:
    """Its path."""
    return f"p{number:05d}"


def key(number: int) -> str:
    """A record key; all are spread evenly over the index."""
    return f"{number * 0x9E3779B97F4A7C15 % (1 << 64):020d}"


def make(folder: Path, size: Size) -> None:
    """Makes the table; what was in the folder goes."""
    shutil.rmtree(folder, ignore_errors=True)
    table = pyhudi.create_table(
        str(folder), SCHEMA, key="id", partition_by="part", version=9, options=_creation()
    )
    table.upsert(_rows(["first"]))
    compacted = format_instant(SystemClock().now_ms(), "UTC")
    times = [
        format_instant(_START + 2 * number, "UTC") for number in range(size.archived + size.active)
    ]
    _data_files(folder, size, times)
    _timeline(folder, size, times)
    _metadata(folder, size, compacted)
    # By pyhudi again, on top of it all: what it cannot read, it says here.
    pyhudi.open_table(str(folder), options=_creation()).upsert(_rows(["last"]))


def _creation() -> dict[str, str]:
    one = "hoodie.metadata.global.record.level.index.{}.filegroup.count"
    return {**OPTIONS, one.format("min"): "1", one.format("max"): "1"}


def _rows(keys: list[str]) -> pa.Table:
    return pa.table({"id": keys, "part": ["own"] * len(keys), "v": [1] * len(keys)}, SCHEMA)


# --- data files -----------------------------------------------------------------------------------


def _file_name(group: int, time: str) -> str:
    return f"{group:08x}-0000-4000-8000-000000000000-0_0-1-2_{time}.parquet"


def file_id(group: int) -> str:
    """Of a file group by its number."""
    return f"{group:08x}-0000-4000-8000-000000000000-0"


def _data_files(folder: Path, size: Size, times: list[str]) -> None:
    """One file a group, of an archived commit, and those that active commits wrote."""
    for number in range(size.partitions):
        path = folder / partition(number)
        path.mkdir()
        (path / ".hoodie_partition_metadata").write_text("partitionDepth=1\n")
    for group in range(size.groups):
        _sparse(folder / _path(size, group, times[group % size.archived]))
    for number, time in enumerate(times[size.archived :]):
        for group in size.written(number):
            _sparse(folder / _path(size, group, time))


def _path(size: Size, group: int, time: str) -> str:
    return f"{partition(group % size.partitions)}/{_file_name(group, time)}"


def _sparse(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.ftruncate(descriptor, _BYTES)
    os.close(descriptor)


# --- instants -------------------------------------------------------------------------------------


def _timeline(folder: Path, size: Size, times: list[str]) -> None:
    """Active instants with three files each, and the history as its own writer makes it."""
    clock = SystemClock()
    timeline = folder / ".hoodie" / "timeline"
    for number, time in enumerate(times[size.archived :]):
        content = _commit(size, size.written(number), time).to_avro(clock)
        for state in State:
            name = LAYOUT_2.file_name(time, COMMIT, state, str(int(time) + 1))
            (timeline / name).write_bytes(content if state is State.COMPLETED else b"")
    storage = Storage(str(folder))
    config = TableConfig.load(storage)
    content = _commit(size, [0], times[0]).to_avro(clock)
    archived = [
        ArchivedInstant(time, str(int(time) + 1), COMMIT, content)
        for time in times[: size.archived]
    ]
    for first in range(0, len(archived), _ROWS_OF_HISTORY):
        part = archived[first : first + _ROWS_OF_HISTORY]
        add_to_history(storage, config.history_folder, part)
        merge_and_clean(storage, config.history_folder, HistoryOptions())


def _commit(size: Size, groups: list[int], time: str) -> CommitMetadata:
    stats: dict[str, tuple[WriteStat, ...]] = {}
    for group in groups:
        path = _path(size, group, time)
        stat = WriteStat(
            file_id=file_id(group),
            path=path,
            num_writes=1000,
            file_size_in_bytes=_BYTES,
            partition_path=path.split("/", 1)[0],
        )
        stats[stat.partition_path or ""] = (*stats.get(stat.partition_path or "", ()), stat)
    avro = _native.avro_schema(SCHEMA, "scale_record", "hoodie.scale")
    return CommitMetadata(
        partition_to_write_stats=stats,
        extra_metadata={"schema": avro},
        operation_type="UPSERT",
    )


# --- the metadata table ---------------------------------------------------------------------------


def _metadata(folder: Path, size: Size, compacted: str) -> None:
    """Base files of `files` and `record_index`, and the compaction that wrote them."""
    base = folder / ".hoodie" / "metadata"
    storage = Storage(str(folder)).below(".hoodie/metadata")
    config = TableConfig.load(Storage(str(folder)))
    schema = record_schema(config.version.metadata_schema)
    recorder = _native.MetadataRecorder(schema, {"files": 1, "record_index": 1})
    contents = {
        "files": _file_records(recorder, folder),
        "record_index": _key_records(recorder, size.keys),
    }
    stats = {}
    for name, batches in contents.items():
        (log,) = {path.name.split("_", 1)[0][1:] for path in (base / name).glob(".*.log.*")}
        path = f"{name}/{log}_0-1-2_{compacted}.hfile"
        rows = pa.RecordBatchReader.from_batches(RECORD_ROWS, batches)
        written = _native.write_metadata_base(storage.native, path, rows, avro_schema=schema)
        stats[name] = (WriteStat(file_id=log, path=path, file_size_in_bytes=written.size),)
    commit = CommitMetadata(partition_to_write_stats=stats, compacted=True)
    completed = str(int(compacted) + 1)
    done = LAYOUT_2.file_name(compacted, COMMIT, State.COMPLETED, completed)
    (base / ".hoodie" / "timeline" / done).write_bytes(commit.to_avro(SystemClock()))


def _file_records(recorder: _native.MetadataRecorder, folder: Path) -> Iterator[pa.RecordBatch]:
    """All files that are there; a partition at a time."""
    paths = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    known = [("__all_partitions__", path, 0, False) for path in paths]
    yield recorder.files(known, keys=["__all_partitions__"])
    for path in paths:
        with os.scandir(folder / path) as found:
            entries = [(path, one.name, one.stat().st_size, False) for one in found]
        data = [entry for entry in entries if entry[1].endswith(".parquet")]
        yield recorder.files(data, keys=[path])


def _key_records(recorder: _native.MetadataRecorder, keys: int) -> Iterator[pa.RecordBatch]:
    """A thousand keys lie together in a file group of the first partition."""
    for first in range(0, keys, _BATCH):
        added = pa.array([key(number) for number in range(first, min(keys, first + _BATCH))])
        yield recorder.locations(partition(0), file_id(0), _START, added=added, removed=_NONE)
