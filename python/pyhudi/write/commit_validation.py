"""Commit checks: whether the reads that a write depends on still return the same result.

Each raises `CommitConflict` if another write, completed since this one was planned, has changed the
result. So the operation has the same effect as after that write. The checks read the current rows,
and only those of file groups that other writers changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pyhudi.config.actions import Instant
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.errors import CommitConflict, retryable_conflict
from pyhudi.index import simple
from pyhudi.query.dml_rows import count_rows
from pyhudi.query.dml_scan import plan_select
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.hashing_metadata import file_id_of, read_committed_ring
from pyhudi.txn.conflicts import CommitCheck, ConcurrentCommits, FileGroups
from pyhudi.write.file_assignment import Counts
from pyhudi.write.row_protocols import AssignedRows
from pyhudi.write.write_context import WriteContext


def check_missing_keys(placed: AssignedRows, *, deletes: bool = False) -> list[CommitCheck]:
    """Return checks that no concurrent commit has added a key that was not found.

    deletes: such keys are to be deleted, and are dropped. If the missing keys are not in memory, no
    other write may have changed partitions with new rows, or any rows if keys may be dropped. New
    rows in a bucket index conflict by their buckets.
    """
    context, counts = placed.context, placed.counts
    if placed.missing_keys is not None:
        return [check_keys_still_missing(context, placed.missing_keys)]
    if deletes or context.config.merge.delete_field in context.schema.arrow.names:
        return [check_partitions_unchanged(None)]
    if context.index.has_buckets or not counts.inserts:
        return []
    return [check_partitions_unchanged(None if context.index.is_global else counts.inserts)]


def check_keys_still_missing(context: WriteContext, keys: pa.Table) -> CommitCheck:
    """Return a check that no concurrent commit has added one of some keys.

    keys: columns record key and partition path. Without the path they are looked up in every
    partition, as under a global index.
    """
    by_path = PARTITION_PATH in keys.column_names

    def check(since: ConcurrentCommits) -> None:
        if not keys.num_rows or not since.changes:
            return
        now = replace(context, table=since.table)
        slices = list(_find_changed_slices(now, since))
        anywhere = now.index.is_global or not by_path
        tagged = simple.tag(now.engine, now.key_source, keys, slices, any_partition=anywhere)
        if len(tagged.rows):
            key = keys.column(RECORD_KEY)[tagged.rows[0].as_py()].as_py()
            slice_ = slices[tagged.groups[0].as_py()]
            raise _conflict_error(_who_changed(since, slice_), f"a row of the key {key!r}")

    return check


def check_filter_finds_nothing(context: WriteContext, where: Any) -> CommitCheck:
    """Return a check that no concurrent commit changed rows that match the filter."""

    def check(since: ConcurrentCommits) -> None:
        if not since.changes:
            return
        table, changed = since.table, _groups(since)
        tasks = plan_select(table, where, (RECORD_KEY,), context.task_memory, context.virtual_keys)
        tasks = [task for task in tasks if (task.slice.partition, task.slice.file_id) in changed]
        counts = context.engine.run(count_rows, tasks, label="read concurrent writes")
        for task, count in zip(tasks, counts, strict=True):
            if count:
                raise _conflict_error(_who_changed(since, task.slice), "rows that match the filter")

    return check


def check_partitions_unchanged(partitions: Collection[str] | None) -> CommitCheck:
    """Return a check that no concurrent commit changed partitions, None for any."""

    def check(since: ConcurrentCommits) -> None:
        for instant, groups in since.changes:
            for partition, _ in sorted(groups):
                if partitions is None or partition in partitions:
                    raise _conflict_error(instant, f"rows in partition {partition!r}")

    return check


def check_file_groups_unchanged(seen: FileGroups) -> CommitCheck:
    """Return a check of file groups with rows that were read and left unchanged."""

    def check(since: ConcurrentCommits) -> None:
        for instant, groups in since.changes:
            for partition, _ in sorted(seen & groups):
                raise _conflict_error(instant, f"other values of rows in partition {partition!r}")

    return check


def check_buckets_not_taken(context: WriteContext, counts: Counts) -> CommitCheck:
    """Return a check that no concurrent commit created a bucket that this write creates."""
    index = context.index
    mine = {index.place(group.slice) for group in counts.groups if group.is_new}

    def check(since: ConcurrentCommits) -> None:
        for instant, groups in since.changes if mine else ():
            for partition, file_id in sorted(groups):
                if (partition, index.identity(file_id)) in mine:
                    raise _conflict_error(instant, f"file group {file_id} of the same bucket")
        if mine and index.has_rings and since.commits:
            _check_rings(since, mine)

    return check


def _check_rings(since: ConcurrentCommits, new_groups: Collection[tuple[str, str]]) -> None:
    """Check that new file groups match the current hashing metadata. new_groups: their keys."""
    table = since.table
    for partition in sorted({partition for partition, _ in new_groups}):
        ring = read_committed_ring(table.storage, table.timeline, partition)
        expected = {file_id_of(prefix) for _, prefix in ring.nodes} if ring else set()
        if not all(file_id in expected for path, file_id in new_groups if path == partition):
            raise _conflict_error(
                since.commits[-1][0], f"other hashing metadata to partition {partition!r}"
            )


def _find_changed_slices(context: WriteContext, since: ConcurrentCommits) -> Iterator[FileSlice]:
    """Return the current slices of file groups that other writers have changed."""
    changed = _groups(since)
    partitions = sorted({partition for partition, _ in changed})
    view = FileSystemView(context.storage, context.config, context.timeline, partitions)
    return (slice_ for slice_ in view.slices() if slice_.key in changed)


def _groups(since: ConcurrentCommits) -> FileGroups:
    return frozenset().union(*(groups for _, groups in since.changes))


def _who_changed(since: ConcurrentCommits, slice_: FileSlice) -> Instant:
    """Return the last write that changed a file group."""
    at = slice_.key
    return next(instant for instant, groups in reversed(since.changes) if at in groups)


def _conflict_error(other: Instant, what: str) -> CommitConflict:
    msg = f"{other} added {what} concurrently"
    return retryable_conflict(msg)
