"""`files`: the partitions and files of the data table (`HoodieMetadataPayload`, Hudi 1.2.0)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.config.metadata_names import ALL_PARTITIONS, FILES, NO_PATH
from pyhudi.metadata.dropped_partition_files import find_removed_files
from pyhudi.metadata.initial_records import InitialPartition, Source
from pyhudi.metadata.partition_types.base import (
    Change,
    Cleaned,
    Column,
    MetadataPartitionType,
    PartitionRequest,
    Shown,
)
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.record_tasks import RecordTask
from pyhudi.timeline.commit_metadata import CommitMetadata


@dataclass(frozen=True)
class FileTask(RecordTask):
    """Records of `files`."""

    entries: tuple[tuple[str, str, int, bool], ...]
    """Key, name, size, and whether it is deleted."""
    keys: tuple[str, ...] = ()
    """Keys that have a record also without entries."""

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield a record for each key."""
        yield self.recording.recorder().files(self.entries, keys=self.keys)


class Files(MetadataPartitionType):
    """All files of completed commits, also replaced ones."""

    name = FILES

    def is_wanted(self, wish: PartitionRequest) -> bool:
        return True

    def initial(self, source: Source, name: str) -> InitialPartition:
        recording = source.recording({name: 1})
        found = source.files
        names = tuple((ALL_PARTITIONS, path or NO_PATH, 0, False) for path in found)
        tasks = [FileTask(recording, names, keys=(ALL_PARTITIONS,))]
        for path, entries in found.items():
            key = path or NO_PATH
            listed = tuple((key, entry.name, entry.size, False) for entry in entries)
            tasks.append(FileTask(recording, listed, keys=(key,)))
        return InitialPartition(name, 1, tasks)

    def on_commit(self, change: Change, name: str) -> Iterator[FileTask]:
        """Return the written files, and deleted ones that must not be listed again."""
        removed = find_removed_files(change.metadata_table, change.groups[name], change.metadata)
        yield FileTask(change.recording, (*entries_of(change.metadata), *removed))

    def on_clean(self, cleaned: Cleaned, name: str) -> Iterator[FileTask]:
        """The deleted files, also of a dropped partition (`dropped_partition_files.py`)."""
        clean = cleaned.clean
        gone = [
            (path or NO_PATH, file, 0, True)
            for path, files in clean.files.items()
            for file in files
        ]
        gone += [(ALL_PARTITIONS, path or NO_PATH, 0, True) for path in clean.partitions]
        yield FileTask(cleaned.recording, tuple(gone))

    def to_display(self, table: MetadataTable, name: str, column: Column) -> Shown:
        return table.partition(name).files()


def entries_of(metadata: CommitMetadata) -> Iterator[tuple[str, str, int, bool]]:
    """Yield each changed partition and each written file."""
    for partition, stats in metadata.partition_to_write_stats.items():
        key = partition or NO_PATH
        yield (ALL_PARTITIONS, key, 0, False)
        for stat in stats:
            if stat.path:
                yield (key, _name(stat.path), stat.file_size_in_bytes, False)
            for path, size in (stat.cdc_stats or {}).items():
                yield (key, _name(path), size, False)


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
