"""Makes a table for the planning benchmark: very many file groups and instants, no rows.

Its base files are empty, since planning opens none. Timeline and metadata table are as Hudi leaves
them at table version 9: three files an instant, and a `files` partition compacted into one HFile.
"""

from __future__ import annotations

import argparse
import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import pyhudi
from pyhudi import _native
from pyhudi.clock import SystemClock, format_instant
from pyhudi.config.actions import COMMIT, DELTA_COMMIT, State
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import LAYOUT_2
from pyhudi.storage.storage import Storage
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat

SCHEMA = pa.schema([("id", pa.string()), ("fare", pa.float64()), ("day", pa.string())])
RECORD = """{"type": "record", "name": "HoodieMetadataRecord", "fields": [
  {"name": "key", "type": "string"}, {"name": "type", "type": "int"},
  {"name": "filesystemMetadata", "type": ["null", {"type": "map", "values": {
    "type": "record", "name": "HoodieMetadataFileInfo", "fields": [
      {"name": "size", "type": "long"}, {"name": "isDeleted", "type": "boolean"}]}}]}]}"""
START = 1_700_000_000_000
METADATA = ".hoodie/metadata"
_PROPERTIES = """hoodie.table.name=planning_metadata
hoodie.table.type=MERGE_ON_READ
hoodie.table.version=9
hoodie.timeline.layout.version=2
hoodie.table.base.file.format=HFILE
hoodie.table.timeline.timezone=UTC
"""


@dataclass(frozen=True)
class Size:
    """How large a table to make."""

    partitions: int = 1000
    groups: int = 100
    """In each partition."""
    instants: int = 10_000


def make(folder: Path, size: Size) -> None:
    """Makes the table; what was in the folder goes."""
    shutil.rmtree(folder, ignore_errors=True)
    own = {"hoodie.metadata.enable": "false"}
    pyhudi.create_table(str(folder), SCHEMA, key="id", partition_by="day", version=9, options=own)
    times = [format_instant(START + 2 * number, "UTC") for number in range(size.instants)]
    files = {f"day-{number:05d}": _names(number, size, times) for number in range(size.partitions)}
    for partition, names in files.items():
        path = folder / partition
        path.mkdir()
        (path / ".hoodie_partition_metadata").write_text("partitionDepth=1\n")
        for name in names:
            (path / name).touch()
    _commits(folder, times)
    _metadata_table(folder, times, files)


def _names(partition: int, size: Size, times: list[str]) -> list[str]:
    first = partition * size.groups
    return [
        f"{number:08x}-0000-4000-8000-000000000000-0_0-1-2_{times[number % len(times)]}.parquet"
        for number in range(first, first + size.groups)
    ]


def _commits(folder: Path, times: list[str]) -> None:
    avro = _native.avro_schema(SCHEMA, "planning_record", "hoodie.planning")
    commit = CommitMetadata(extra_metadata={"schema": avro}, operation_type="UPSERT")
    content = commit.to_avro(SystemClock())
    for time in times:
        _instant(folder / ".hoodie/timeline", time, COMMIT, content)


def _instant(timeline: Path, time: str, action: str, content: bytes) -> None:
    completion = str(int(time) + 1)
    for state in State:
        name = LAYOUT_2.file_name(time, action, state, completion)
        (timeline / name).write_bytes(content if state is State.COMPLETED else b"")


def _metadata_table(folder: Path, times: list[str], files: dict[str, list[str]]) -> None:
    base = folder / METADATA
    timeline, files_folder = base / ".hoodie/timeline", base / "files"
    timeline.mkdir(parents=True)
    files_folder.mkdir()
    (base / ".hoodie/hoodie.properties").write_text(_PROPERTIES)
    (files_folder / ".hoodie_partition_metadata").write_text("partitionDepth=1\n")
    clock = SystemClock()
    for time in times:
        _instant(timeline, time, DELTA_COMMIT, CommitMetadata().to_avro(clock))
    compaction = str(int(times[-1]) + 2)
    name = f"files-0000-0_0-1-2_{compaction}.hfile"
    data = _native.write_hfile(*_records(files), schema=RECORD)
    (files_folder / name).write_bytes(data)
    stat = WriteStat(file_id="files-0000-0", path=f"files/{name}", file_size_in_bytes=len(data))
    done = CommitMetadata(partition_to_write_stats={"files": (stat,)}, compacted=True)
    _instant(timeline, compaction, COMMIT, done.to_avro(clock))
    storage = Storage(str(folder))
    TableConfig.load(storage).update(storage, {"hoodie.table.metadata.partitions": "files"}, clock)


def _records(files: dict[str, list[str]]) -> tuple[list[str], list[bytes]]:
    records = {"__all_partitions__": _record(1, dict.fromkeys(files, 0))}
    for partition, names in files.items():
        records[partition] = _record(2, dict.fromkeys(names, 1))
    return sorted(records), [records[key] for key in sorted(records)]


def _record(kind: int, sizes: dict[str, int]) -> bytes:
    """One record in Avro: empty key, type, the map in one block."""
    out = bytearray(b"\x00") + _long(kind) + _long(1) + _long(len(sizes))
    for name, size in sizes.items():
        out += _long(len(name.encode())) + name.encode() + _long(size) + b"\x00"
    return bytes(out + b"\x00")


def _long(value: int) -> bytes:
    zigzag = value << 1
    out = bytearray()
    while zigzag >= 0x80:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    make(parser.parse_args().folder, Size())
