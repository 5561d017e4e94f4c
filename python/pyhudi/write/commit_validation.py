"""What a write went by besides the file groups that it changes, looked at again at its commit.

Each of these raises `CommitConflict` where another write, complete since this one was planned, has
changed the answer. So what a verb did is what it would have done after that write. Other writers'
rows are read as they stand now, and only those of file groups that they changed.
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
from pyhudi.slices.hashing_metadata import file_id_of
from pyhudi.slices.hashing_metadata_files import read_committed_ring
from pyhudi.txn.conflicts import CommitCheck, ConcurrentCommits, FileGroups
from pyhudi.write.file_assignment import Counts
from pyhudi.write.rows import AssignedRows
from pyhudi.write.write_context import WriteContext


def check_missing_keys(placed: AssignedRows, *, deletes: bool = False) -> list[CommitCheck]:
    """No other write has brought a key that was looked for and not found.

    deletes: such keys are to be deleted, and fall away. Where nobody has those keys, no other write
    has changed partitions of new rows, or any rows where keys may fall away; of new rows in a
    bucket index the buckets tell.
    """
    context, counts = placed.context, placed.counts
    if placed.absent is not None:
        return [check_keys_still_missing(context, placed.absent)]
    if deletes or context.config.merge.delete_field in context.schema.arrow.names:
        return [check_partitions_unchanged(None)]
    if context.index.has_buckets or not counts.inserts:
        return []
    return [check_partitions_unchanged(None if context.index.is_global else counts.inserts)]


def check_keys_still_missing(context: WriteContext, keys: pa.Table) -> CommitCheck:
    """No other write has brought one of some keys: columns record key and partition path.

    Without the path they are looked for in every partition, as under a global index.
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
    """No row that a filter finds is in what other writes have changed."""

    def check(since: ConcurrentCommits) -> None:
        if not since.changes:
            return
        table, changed = since.table, _groups(since)
        tasks = plan_select(table, where, (RECORD_KEY,), context.task_memory, context.made_keys)
        tasks = [task for task in tasks if (task.slice.partition, task.slice.file_id) in changed]
        counts = context.engine.run(count_rows, tasks, label="read concurrent writes")
        for task, count in zip(tasks, counts, strict=True):
            if count:
                raise _conflict_error(_who_changed(since, task.slice), "rows that the filter finds")

    return check


def check_partitions_unchanged(partitions: Collection[str] | None) -> CommitCheck:
    """No other write has changed partitions, None for any."""

    def check(since: ConcurrentCommits) -> None:
        for instant, groups in since.changes:
            for partition, _ in sorted(groups):
                if partitions is None or partition in partitions:
                    raise _conflict_error(instant, f"rows in partition {partition!r}")

    return check


def check_file_groups_unchanged(seen: FileGroups) -> CommitCheck:
    """No other write has changed file groups with rows that were looked at and left alone."""

    def check(since: ConcurrentCommits) -> None:
        for instant, groups in since.changes:
            for partition, _ in sorted(seen & groups):
                raise _conflict_error(instant, f"another state of rows in partition {partition!r}")

    return check


def check_buckets_not_taken(context: WriteContext, counts: Counts) -> CommitCheck:
    """No other write has begun a bucket that this one begins."""
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


def _check_rings(since: ConcurrentCommits, made: Collection[tuple[str, str]]) -> None:
    """File groups that are made are of the rings of now. made: partition paths with file ids."""
    table = since.table
    for partition in sorted({partition for partition, _ in made}):
        ring = read_committed_ring(table.storage, table.timeline, partition)
        known = {file_id_of(prefix) for _, prefix in ring.nodes} if ring else set()
        if not all(file_id in known for path, file_id in made if path == partition):
            raise _conflict_error(
                since.commits[-1][0], f"other hashing metadata to partition {partition!r}"
            )


def _find_changed_slices(context: WriteContext, since: ConcurrentCommits) -> Iterator[FileSlice]:
    """The slices that are read now of what others have changed."""
    changed = _groups(since)
    partitions = sorted({partition for partition, _ in changed})
    view = FileSystemView(context.storage, context.config, context.timeline, partitions)
    return (slice_ for slice_ in view.slices() if slice_.key in changed)


def _groups(since: ConcurrentCommits) -> FileGroups:
    return frozenset().union(*(groups for _, groups in since.changes))


def _who_changed(since: ConcurrentCommits, slice_: FileSlice) -> Instant:
    """The last write that changed a file group."""
    at = slice_.key
    return next(instant for instant, groups in reversed(since.changes) if at in groups)


def _conflict_error(other: Instant, what: str) -> CommitConflict:
    msg = f"{other} added {what} concurrently"
    return retryable_conflict(msg)
