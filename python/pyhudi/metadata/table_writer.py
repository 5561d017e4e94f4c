"""The metadata table as a table to write to: opened, its failed writes rolled back.

It is a merge-on-read table, so its timeline, file groups and rollbacks are those of any table.
`reader.py` reads its records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

import pyarrow as pa

from pyhudi import _native
from pyhudi.config.actions import DELTA_COMMIT, ROLLBACK, Instant, State
from pyhudi.config.metadata_names import FOLDER, PROPERTIES
from pyhudi.config.timeline_layout import META_FOLDER
from pyhudi.metadata.partitioned_record_index import check_numbers
from pyhudi.metadata.reader import load_metadata
from pyhudi.metadata.record_tasks import record_schema
from pyhudi.schema.table_schema import TableSchema
from pyhudi.slices.file_groups import file_groups
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.listing import FileSource
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.storage.storage import Storage
from pyhudi.table.locking import LockManager
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import instant_files
from pyhudi.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteStat, by_partition
from pyhudi.txn import rollback
from pyhudi.txn.pending_instant import PendingInstant

GroupsByPartition = dict[str, list[FileGroup]]


def open_metadata_table(data: TableSnapshot) -> TableSnapshot:
    """Open the metadata table of a data table, whose instants it uses.

    Raises `CorruptTable` if it is missing.
    """
    storage = data.storage.below(FOLDER)
    config, timeline = load_metadata(storage, data.config)
    schema = record_schema(config.version.metadata_schema)
    return replace(
        data,
        storage=storage,
        config=config,
        timeline=timeline,
        schema=TableSchema(_native.without_meta_fields(schema), pa.schema([])),
        columns=pa.schema([]),
        as_text=(),
        participants=(),
    )


def groups_by_partition(
    table: TableSnapshot, partitions: Collection[str], files: FileSource | None = None
) -> GroupsByPartition:
    """Return the file groups of its partitions, in the order in which keys are hashed to them.

    files: lists its files; None for storage.
    """
    view = FileSystemView(table.storage, table.config, table.timeline, set(partitions), files)
    groups_by_name: GroupsByPartition = {name: [] for name in partitions}
    for group in file_groups(table.timeline, view.iter_newest_slices(), view.slices()):
        groups_by_name[group.slice.partition].append(group)
    for name, groups in groups_by_name.items():
        groups.sort(key=lambda group: group.slice.file_id)
        check_numbers(name, groups)
    return groups_by_name


def observe(table: TableSnapshot) -> None:
    """Make new instants later than its timeline, whose services may be ahead of the clock.

    Completion times order log files: one that is smaller than a compaction's instant would put the
    file below it. Up to table version 6 the names of log files decide.
    """
    if table.timeline.completes_in_names:
        table.generator.observe(table.timeline)


def complete_delta_commit(delta: PendingInstant, operation: str, stats: Iterable[WriteStat]) -> str:
    """Complete a delta commit of the metadata table, and return the completion time.

    operation: Hudi's name of the operation.
    """
    table = delta.table
    metadata = CommitMetadata(
        by_partition(stats),
        extra_metadata={SCHEMA_KEY: table.schema.avro},
        operation_type=operation,
    )
    observe(table)
    content = metadata.encode(table.config.version, DELTA_COMMIT, table.clock)
    return delta.complete(content, metadata.paths)


def delta_commit(table: TableSnapshot, time: str) -> Instant | None:
    """Return its delta commit of an instant, in any state."""
    return table.timeline.find(time, DELTA_COMMIT)


def remove_metadata_table(data: Storage, lock_manager: LockManager) -> None:
    """Remove a metadata table in an order in which no reader uses a part of it.

    Without properties no reader opens it, and its instants, which are removed last, name the files
    that must exist. Raises `CommitConflict` if another writer may hold the lock and rebuild it.
    """
    lock_manager.check_held()
    data.delete(f"{FOLDER}/{PROPERTIES}")
    for folder in data.list_dir(FOLDER)[0]:
        if folder != f"{FOLDER}/{META_FOLDER}":
            lock_manager.check_held()
            data.delete_dir(folder)
    lock_manager.check_held()
    data.delete_dir(FOLDER)


def clear_partitions(data: Storage, names: Iterable[str], lock_manager: LockManager) -> None:
    """Remove the files of partitions that no property lists.

    Raises `CommitConflict` if another writer may hold the lock and rebuild them: files that are
    newer than the check of the lock stay.
    """
    for name in names:
        folder = f"{FOLDER}/{name}"
        orphans = data.list(folder)
        lock_manager.check_held()
        data.delete_all(entry.path for entry in orphans)
        if not orphans or not data.list(folder):
            data.delete_dir(folder)


def roll_back_delta_commit(table: TableSnapshot, target: str, time: str) -> None:
    """Roll back a delta commit with the rollback `time`, whether pending, completed or missing.

    A completed one is made pending first, so that readers never miss files of it.
    """
    pending = table.timeline.find(time, ROLLBACK)
    if pending is not None and pending.is_completed:
        return
    if delta_commit(table, target) is not None:
        instant_files.remove(
            table.config.layout, table.storage, target, DELTA_COMMIT, State.COMPLETED
        )
        table = table.reload()
    if pending is not None:
        rollback.resume(table, table.timeline, pending)
        return
    instant = delta_commit(table, target)
    if instant is not None:
        rollback.roll_back(table, table.timeline, instant, time=time)


def remove_delta_commit(table: TableSnapshot, target: str) -> None:
    """Remove a delta commit, in any state, that the data table does not know."""
    if delta_commit(table, target) is not None:
        observe(table)
        roll_back_delta_commit(table, target, table.generator.next())
