"""Rollbacks of commits that the metadata table has in base files: compacted, or built with them.

Rolling back the delta commit does not remove such records. Their files are deleted from `files` by
name. Every other partition depends on rows that the commit changed (a key it deleted has no record
index entry any more, statistics cover its files), so these partitions are dropped, and the next
writer rebuilds them. Hudi 1.2.0 fails this rollback and leaves it pending
(`HoodieBackedTableMetadataWriter.update`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pyhudi.config import property_names as names
from pyhudi.config.file_names import file_name_of
from pyhudi.config.metadata_names import FILES, NO_PATH
from pyhudi.metadata.index_definitions import change_definitions
from pyhudi.metadata.partition_types.registry import in_order
from pyhudi.metadata.pending_operation import PendingOperation, full_rebuild
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.rollback_support import can_roll_back
from pyhudi.metadata.table_writer import clear_partitions
from pyhudi.slices.listing import ListedOnce
from pyhudi.table.participants import Rollback
from pyhudi.table.table_snapshot import TableSnapshot


def has_merged_records(
    table: TableSnapshot, metadata_table: TableSnapshot, rollback: Rollback
) -> bool:
    """Return whether `files` lists files of a rollback without the delta commit of that write.

    Raises `CorruptTable` if the metadata table is damaged or behind.
    """
    if can_roll_back(table, {rollback.target}):
        return False
    # The write is pending already: its own delta commit does not count.
    listed = MetadataTable.of_snapshots(
        table.reload(), metadata_table, ListedOnce(metadata_table.storage)
    )
    partitions = rollback.record["partitionMetadata"]
    paths = {entry.path for entries in listed.data_files(partitions).values() for entry in entries}
    return any(
        f"{path}/{name}".lstrip("/") in paths
        for path, part in partitions.items()
        for name in names_of_deleted_files(part)
    )


def file_deletions(rollback: Rollback) -> Iterator[tuple[str, str, int, bool]]:
    """Return entries of `files` for all files that a rollback deletes, on storage or not."""
    for path, part in rollback.record["partitionMetadata"].items():
        yield from ((path or NO_PATH, name, 0, True) for name in names_of_deleted_files(part))


def names_of_deleted_files(part: Mapping[str, Any]) -> Iterator[str]:
    """Return names of the files that a rollback deletes in one partition."""
    return (file_name_of(file) for file in part["successDeleteFiles"])


def drop_indexes(table: TableSnapshot) -> TableSnapshot:
    """Drop all partitions but `files`, which the next writer rebuilds; return the new snapshot.

    Raises `CommitConflict` if the table's properties have changed.
    """
    config, storage = table.config, table.storage
    dropped = [name for name in config.metadata_partitions if name != FILES]
    if not dropped:
        return table
    before = PendingOperation.of(config)
    rebuilt = full_rebuild(storage, config, before.heartbeat or table.generator.next())
    # A writer that builds an index has read rows of the write: it fails at its last step.
    rebuilt = replace(
        rebuilt,
        removed=in_order({*before.removed, *dropped}),
        changes_layout=before.changes_layout,
        is_concurrent=before.is_concurrent,
        times_fenced=before.times_fenced + 1,
    )
    changes = {names.METADATA_PARTITIONS: FILES, **rebuilt.properties}
    config = config.update(storage, changes, table.clock)
    change_definitions(storage, config, {}, removed=dropped)
    clear_partitions(storage, dropped, table.lock_manager)
    return replace(table, config=config)
