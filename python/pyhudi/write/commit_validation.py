"""Commit checks: a write's reads must return the same result at its commit.

A check raises `CommitConflict` if a write that completed since the plan has changed the result. So
the operation has the same effect as if it ran after that write. The checks read current rows of
file groups that other writers changed, and no others.
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
from pyhudi.slices.hashing_metadata import file_id_of, read_committed_hashing_metadata
from pyhudi.txn.conflicts import CommitCheck, ConcurrentCommits, FileGroups
from pyhudi.write.file_assignment import Counts
from pyhudi.write.row_protocols import AssignedRows
from pyhudi.write.write_context import WriteContext


def check_missing_keys(assigned: AssignedRows, *, deletes: bool = False) -> list[CommitCheck]:
    """Return checks that no concurrent commit has added a key that the lookup did not find.

    If the missing keys are not in memory, no concurrent commit may have changed a partition with
    inserts, or the table if deletes of missing keys were dropped. Inserts under a bucket index
    conflict by bucket. deletes: the write deletes keys.
    """
    context, counts = assigned.context, assigned.counts
    if assigned.missing_keys is not None:
        return [check_keys_still_missing(context, assigned.missing_keys)]
    if deletes or context.config.merge.delete_field in context.schema.arrow.names:
        return [check_partitions_unchanged(None)]
    if context.index.has_buckets or not counts.inserts:
        return []
    return [check_partitions_unchanged(None if context.index.is_global else counts.inserts)]


def check_keys_still_missing(context: WriteContext, keys: pa.Table) -> CommitCheck:
    """Return a check that no concurrent commit has added one of these keys.

    keys: columns record key and partition path. Without the path they are looked up in every
    partition, as under a global index.
    """
    by_path = PARTITION_PATH in keys.column_names

    def check(concurrent: ConcurrentCommits) -> None:
        if not keys.num_rows or not concurrent.changes:
            return
        current = replace(context, table=concurrent.table)
        slices = list(_find_changed_slices(current, concurrent))
        anywhere = current.index.is_global or not by_path
        tagged = simple.tag(
            current.engine, current.key_source, keys, slices, any_partition=anywhere
        )
        if len(tagged.rows):
            key = keys.column(RECORD_KEY)[tagged.rows[0].as_py()].as_py()
            slice_ = slices[tagged.groups[0].as_py()]
            raise _conflict_error(_last_writer(concurrent, slice_), f"a row of the key {key!r}")

    return check


def check_filter_finds_nothing(context: WriteContext, where: Any) -> CommitCheck:
    """Return a check that no concurrent commit changed rows that match the filter."""

    def check(concurrent: ConcurrentCommits) -> None:
        if not concurrent.changes:
            return
        table, changed = concurrent.table, _groups(concurrent)
        tasks = plan_select(table, where, (RECORD_KEY,), context.task_memory, context.virtual_keys)
        tasks = [task for task in tasks if (task.slice.partition, task.slice.file_id) in changed]
        counts = context.engine.run(count_rows, tasks, label="read concurrent writes")
        for task, count in zip(tasks, counts, strict=True):
            if count:
                raise _conflict_error(
                    _last_writer(concurrent, task.slice), "rows that match the filter"
                )

    return check


def check_partitions_unchanged(partitions: Collection[str] | None) -> CommitCheck:
    """Return a check that no concurrent commit changed these partitions, None for all."""

    def check(concurrent: ConcurrentCommits) -> None:
        for instant, groups in concurrent.changes:
            for partition, _ in sorted(groups):
                if partitions is None or partition in partitions:
                    raise _conflict_error(instant, f"rows in partition {partition!r}")

    return check


def check_file_groups_unchanged(groups_read: FileGroups) -> CommitCheck:
    """Return a check that no concurrent commit changed file groups whose rows were read."""

    def check(concurrent: ConcurrentCommits) -> None:
        for instant, groups in concurrent.changes:
            for partition, _ in sorted(groups_read & groups):
                raise _conflict_error(instant, f"other values of rows in partition {partition!r}")

    return check


def check_buckets_not_taken(context: WriteContext, counts: Counts) -> CommitCheck:
    """Return a check that no concurrent commit created a bucket that this write creates, too."""
    index = context.index
    new_buckets = {index.location_of(group.slice) for group in counts.groups if group.is_new}

    def check(concurrent: ConcurrentCommits) -> None:
        for instant, groups in concurrent.changes if new_buckets else ():
            for partition, file_id in sorted(groups):
                if (partition, index.identity(file_id)) in new_buckets:
                    raise _conflict_error(instant, f"file group {file_id} of the same bucket")
        if new_buckets and index.has_consistent_hashing and concurrent.commits:
            _check_hashing_metadata(concurrent, new_buckets)

    return check


def _check_hashing_metadata(
    concurrent: ConcurrentCommits, new_groups: Collection[tuple[str, str]]
) -> None:
    """Check that new file groups match the current hashing metadata. new_groups: their keys."""
    table = concurrent.table
    for partition in sorted({partition for partition, _ in new_groups}):
        metadata = read_committed_hashing_metadata(table.storage, table.timeline, partition)
        expected = {file_id_of(prefix) for _, prefix in metadata.nodes} if metadata else set()
        if not all(file_id in expected for path, file_id in new_groups if path == partition):
            raise _conflict_error(
                concurrent.commits[-1][0], f"other hashing metadata to partition {partition!r}"
            )


def _find_changed_slices(
    context: WriteContext, concurrent: ConcurrentCommits
) -> Iterator[FileSlice]:
    """Return the current slices of file groups that other writers have changed."""
    changed = _groups(concurrent)
    partitions = sorted({partition for partition, _ in changed})
    view = FileSystemView(context.storage, context.config, context.timeline, partitions)
    return (slice_ for slice_ in view.slices() if slice_.key in changed)


def _groups(concurrent: ConcurrentCommits) -> FileGroups:
    return frozenset().union(*(groups for _, groups in concurrent.changes))


def _last_writer(concurrent: ConcurrentCommits, slice_: FileSlice) -> Instant:
    """Return the last write that changed a file group."""
    key = slice_.key
    return next(instant for instant, groups in reversed(concurrent.changes) if key in groups)


def _conflict_error(instant: Instant, change: str) -> CommitConflict:
    msg = f"{instant} added {change} concurrently"
    return retryable_conflict(msg)
