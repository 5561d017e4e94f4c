"""`files`: the partitions and files of the data table (`HoodieMetadataPayload`, Hudi 1.2.0).

The clean that deletes a partition deletes its record of `files` (Hudi 1.1 and later). If the
partition gets files again before the next compaction, Hudi 1.2.0 merges the new record with that of
the base file as if no delete were between them, and lists the deleted files. It does so after its
own writes too; if the new record deletes those files once more, it does not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.config.file_names import file_name_of
from pyhudi.config.metadata_names import ALL_PARTITIONS, FILES, NO_PATH
from pyhudi.metadata.file_group_handle import FileGroupHandle, handles_of
from pyhudi.metadata.initial_records import InitialPartition, Source
from pyhudi.metadata.partition_types.base import (
    Change,
    CleanChange,
    DisplayRecords,
    MetadataPartitionType,
    PartitionRequest,
    StatisticsColumn,
)
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.record_tasks import RecordTask
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import NO_PREVIOUS_COMMIT, CommitMetadata, WriteStat


@dataclass(frozen=True)
class FileTask(RecordTask):
    """Records of `files`."""

    entries: tuple[tuple[str, str, int, bool], ...]
    """Key, name, size, and whether it is deleted."""
    keys: tuple[str, ...] = ()
    """Keys that have a record also without entries."""

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield a record for each key."""
        yield self.task_context.record_builder().files(self.entries, keys=self.keys)


class Files(MetadataPartitionType):
    """All files of completed commits, also replaced ones."""

    name = FILES

    def is_requested(self, request: PartitionRequest) -> bool:
        return True

    def initial(self, source: Source, name: str) -> InitialPartition:
        task_context = source.task_context({name: 1})
        files = source.files
        names = tuple((ALL_PARTITIONS, path or NO_PATH, 0, False) for path in files)
        tasks = [FileTask(task_context, names, keys=(ALL_PARTITIONS,))]
        for path, entries in files.items():
            key = path or NO_PATH
            listed = tuple((key, entry.name, entry.size, False) for entry in entries)
            tasks.append(FileTask(task_context, listed, keys=(key,)))
        return InitialPartition(name, 1, tasks)

    def on_commit(self, change: Change, name: str) -> Iterator[FileTask]:
        """Return the written files, and deleted ones that must not be listed again."""
        removed = find_removed_files(change.metadata_table, change.groups[name], change.metadata)
        yield FileTask(change.task_context, (*entries_of(change.metadata), *removed))

    def on_clean(self, cleaned: CleanChange, name: str) -> Iterator[FileTask]:
        """Return the deleted files, also of a dropped partition."""
        clean = cleaned.clean
        removed = [
            (path or NO_PATH, file, 0, True)
            for path, files in clean.files.items()
            for file in files
        ]
        removed += [(ALL_PARTITIONS, path or NO_PATH, 0, True) for path in clean.partitions]
        yield FileTask(cleaned.task_context, tuple(removed))

    def to_display(
        self, table: MetadataTable, name: str, column: StatisticsColumn
    ) -> DisplayRecords:
        return table.partition(name).files()


def entries_of(metadata: CommitMetadata) -> Iterator[tuple[str, str, int, bool]]:
    """Yield an entry for each changed partition and each written file."""
    for partition, stats in metadata.partition_to_write_stats.items():
        key = partition or NO_PATH
        yield (ALL_PARTITIONS, key, 0, False)
        for stat in stats:
            if stat.path:
                yield (key, file_name_of(stat.path), stat.file_size_in_bytes, False)
            for path, size in (stat.cdc_stats or {}).items():
                yield (key, file_name_of(path), size, False)


# --- files of a deleted partition -----------------------------------------------------------------


def find_removed_files(
    table: TableSnapshot, groups: Sequence[FileGroup], metadata: CommitMetadata
) -> Iterator[tuple[str, str, int, bool]]:
    """Return entries of `files` that a commit must add. groups: those of `files`."""
    reappearing = [
        partition or NO_PATH
        for partition, stats in metadata.partition_to_write_stats.items()
        if all(_may_begin_group(stat) for stat in stats)
    ]
    slices = [group.slice for group in groups]
    for newest in handles_of(table.storage, table.config, table.timeline, slices):
        if not reappearing or newest.base is None or not newest.logs:
            continue
        listed_before = _read_listing(replace(newest, logs=()), reappearing)
        listed_now = _read_listing(newest, listed_before.keys()) if listed_before else {}
        for partition in listed_before.keys() - listed_now.keys():
            yield from ((partition, name, 0, True) for name in listed_before[partition])


def _may_begin_group(stat: WriteStat) -> bool:
    """Return whether a file can be the first of its file group, as all in a new partition are."""
    if stat.num_update_writes or stat.num_deletes:
        return False
    return stat.log_version is not None or stat.prev_commit == NO_PREVIOUS_COMMIT


def _read_listing(group: FileGroupHandle, partitions: Collection[str]) -> dict[str, list[str]]:
    records = group.open().files(list(partitions))
    columns = (records[name].to_pylist() for name in ("partition", "name", "is_deleted"))
    listed: dict[str, list[str]] = {}
    for partition, name, deleted in zip(*columns, strict=True):
        if not deleted:
            listed.setdefault(partition, []).append(name)
    return listed
