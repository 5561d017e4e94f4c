"""Files of a deleted partition, which Hudi would list again once the partition returns.

The clean that deletes a partition deletes its record of `files` (Hudi 1.1 and later). If the
partition gets files again before the next compaction, Hudi 1.2.0 merges the new record with that of
the base file as if no delete were between them, and lists the deleted files. It does so after its
own writes too; if the new record deletes those files once more, it does not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from pyhudi.config.metadata_names import NO_PATH
from pyhudi.metadata.file_group import MetadataGroup, groups_of
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import NO_PREVIOUS_COMMIT, CommitMetadata, WriteStat


def find_removed_files(
    table: TableSnapshot, groups: Sequence[FileGroup], metadata: CommitMetadata
) -> Iterator[tuple[str, str, int, bool]]:
    """Return entries of `files` that a commit must add. groups: those of `files`."""
    returning = [
        partition or NO_PATH
        for partition, stats in metadata.partition_to_write_stats.items()
        if all(_may_begin_group(stat) for stat in stats)
    ]
    slices = [group.slice for group in groups]
    for newest in groups_of(table.storage, table.config, table.timeline, slices):
        if not returning or newest.base is None or not newest.logs:
            continue
        once = _read_listing(replace(newest, logs=()), returning)
        now = _read_listing(newest, once.keys()) if once else {}
        for partition in once.keys() - now.keys():
            yield from ((partition, name, 0, True) for name in once[partition])


def _may_begin_group(stat: WriteStat) -> bool:
    """Return whether a file can be the first of its file group, as all in a new partition are."""
    if stat.num_update_writes or stat.num_deletes:
        return False
    return stat.log_version is not None or stat.prev_commit == NO_PREVIOUS_COMMIT


def _read_listing(group: MetadataGroup, partitions: Collection[str]) -> dict[str, list[str]]:
    found = group.open().files(list(partitions))
    columns = (found[name].to_pylist() for name in ("partition", "name", "is_deleted"))
    listed: dict[str, list[str]] = {}
    for partition, name, deleted in zip(*columns, strict=True):
        if not deleted:
            listed.setdefault(partition, []).append(name)
    return listed
