"""The commit of assigned rows, shared by all operations: plan, transaction, files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from pyhudi.config.extra_metadata import commit_metadata
from pyhudi.config.log import logger
from pyhudi.index.duplicate_keys import groups_to_rewrite, groups_with_duplicates
from pyhudi.index.replaced_buckets import NewFileIds, replace_hashing_metadata, with_new_file_ids
from pyhudi.schema.table_schema import table_schema
from pyhudi.services.table_compaction import has_too_many_log_files
from pyhudi.slices.hashing_metadata import confirm_hashing_metadata
from pyhudi.slices.nested_partitions import check_apart
from pyhudi.slices.write_tasks import BaseFileTask, WriteTask
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.txn.conflicts import CommitCheck
from pyhudi.txn.result import WriteResult, result_of
from pyhudi.txn.transaction import Transaction
from pyhudi.write import row_sizes
from pyhudi.write.checks import check_partition_paths
from pyhudi.write.commit_validation import check_buckets_not_taken
from pyhudi.write.file_assignment import (
    Counts,
    PlannedFile,
    plan_files,
    plan_new_files,
    workload_profile,
)
from pyhudi.write.key_uniqueness_claims import key_claims
from pyhudi.write.pending_clustering import check_update_allowed
from pyhudi.write.row_protocols import AssignedRows
from pyhudi.write.write_context import WriteContext

UPSERT = "UPSERT"
INSERT = "INSERT"
BULK_INSERT = "BULK_INSERT"
DELETE = "DELETE"

TAG_STAGE = 0

Replaced = Mapping[str, tuple[str, ...]]
"""Replaced file ids of a replace commit, by partition path."""


def write(
    assigned: AssignedRows,
    operation: str,
    *,
    merge_by_key: bool = True,
    partial: bool = False,
    deletes: bool = False,
    duplicates: Collection[int] | None = None,
    commit_checks: Iterable[CommitCheck] = (),
) -> WriteResult:
    """Write rows to their assigned file groups.

    merge_by_key: rows replace rows with their keys. partial: rows may have missing columns.
    deletes: a deleted key may have duplicates in its file group, which are deleted as well.
    duplicates: numbers of the file groups with such duplicates; None to find them. commit_checks:
    checks of the reads that assigned the rows. Raises `CommitConflict` if a changed file group has
    a pending clustering or was changed concurrently; `SchemaMismatch` if a partition would be
    inside another, or has a name that Hudi does not support.
    """
    context, counts = assigned.context, assigned.counts
    _check_partitions(context, counts)
    check_update_allowed(context, (counts.groups[number] for number in counts.changed_groups))
    rewrite: frozenset[int] = frozenset()
    if deletes and counts.deletes:
        if duplicates is None:
            duplicates = groups_with_duplicates(context, counts.groups, assigned.deleted_keys)
        rewrite = groups_to_rewrite(context, counts.groups, duplicates)
    shared = context.options.index.shares_buckets
    commit_checks = (
        commit_checks if shared else (check_buckets_not_taken(context, counts), *commit_checks)
    )
    with Transaction(
        context.table,
        operation,
        commit_checks=commit_checks,
        appends=shared,
        files=context.files,
    ) as txn:
        files = plan_files(
            replace(context.target(txn.instant), partial=partial),
            counts,
            row_bytes=_row_bytes(context, counts),
            merge_by_key=merge_by_key,
            rewrite=rewrite,
            new_file_id=context.new_file_id,
        )
        appended = {file.group for file in files if not isinstance(file.task, BaseFileTask)}
        txn.has_overgrown = any(
            has_too_many_log_files(counts.groups[number].slice)
            for number in appended
            if number is not None
        )
        return execute(context, txn, files, operation, write=assigned.write)


def write_new_files(
    assigned: AssignedRows,
    operation: str,
    replaced: Replaced | None = None,
    commit_checks: Iterable[CommitCheck] = (),
) -> WriteResult:
    """Write rows to new file groups, which replace the file groups of `replaced`."""
    context = assigned.context
    _check_partitions(context, assigned.counts)
    row_ranges = assigned.row_ranges()
    with Transaction(
        context.table, operation, commit_checks=commit_checks, files=context.files
    ) as txn:
        files = plan_new_files(
            context.target(txn.instant),
            row_ranges,
            new_file_id=context.new_file_id,
        )
        return execute(context, txn, files, operation, write=assigned.write, replaced=replaced)


def write_buckets(
    assigned: AssignedRows,
    operation: str,
    replaced: Replaced | None = None,
    commit_checks: Iterable[CommitCheck] = (),
) -> WriteResult:
    """Write rows to their buckets; new buckets start with base files.

    An existing bucket is written like an upsert, so no bucket has two file groups. Merge-on-read
    appends a log file, as in Hudi. Copy-on-write writes a new base file, where Hudi creates a
    second file group or raises an error (1.0.2, 1.2.0). replaced: creates all buckets again if it
    is set.
    """
    context, counts = assigned.context, assigned.counts
    _check_partitions(context, counts)
    groups = [replace(group, starts_with_log=False) for group in counts.groups]
    check_update_allowed(context, (groups[number] for number in counts.changed_groups))
    commit_checks = (check_buckets_not_taken(context, counts), *commit_checks)
    with Transaction(
        context.table, operation, commit_checks=commit_checks, files=context.files
    ) as txn:
        if replaced is not None:
            groups = with_new_file_ids(groups, new_hashing_metadata(context, txn, replaced))
        target = context.target(txn.instant)
        files = plan_files(
            target,
            replace(counts, groups=groups),
            row_bytes=_row_bytes(context, counts),
            # For a log file this flag only affects how its rows are counted.
            merge_by_key=not target.merge_on_read,
            new_file_id=context.new_file_id,
        )
        return execute(context, txn, files, operation, write=assigned.write, replaced=replaced)


def new_hashing_metadata(context: WriteContext, txn: Transaction, replaced: Replaced) -> NewFileIds:
    """Store hashing metadata for the new buckets, which is valid once the commit completes."""
    renewed = replace_hashing_metadata(context, replaced, txn.instant)
    if context.config.version.confirms_hashing_metadata:
        txn.on_completed(lambda: confirm_hashing_metadata(context.storage, renewed, txn.instant))
    return renewed


def _row_bytes(context: WriteContext, counts: Counts) -> int:
    return row_sizes.row_size(context.timeline, context.options) if counts.inserts else 1


def _check_partitions(context: WriteContext, counts: Counts) -> None:
    check_apart(counts.partitions)
    check_partition_paths(counts.growing_partitions, context.config)


def execute(
    context: WriteContext,
    txn: Transaction,
    files: Sequence[PlannedFile],
    operation: str,
    *,
    write: Callable[[Sequence[PlannedFile], str], Iterable[tuple[WriteStat, ...]]] | None = None,
    replaced: Replaced | None = None,
) -> WriteResult:
    """Write planned files and commit them, unless the commit would change nothing.

    write: see `AssignedRows`; None if there are no files.
    """
    txn.by_record_index = context.index.is_record_index
    txn.participants += key_claims(context, operation)
    tasks = [file.task for file in files]
    # Hudi's bulk insert has no profile.
    txn.start(None if operation == BULK_INSERT else workload_profile(tasks))
    written = write(files, txn.instant) if write is not None else ()
    stats = [stat for stats in written for stat in stats]
    instant, completion = txn.instant, ""
    if stats or any((replaced or {}).values()) or needs_commit(context):
        completion = txn.commit(stats, context.commit_schema, replaced)
    else:
        txn.withdraw()
        instant = ""
    result = result_of(
        instant,
        completion,
        operation,
        stats,
        rows_ignored=None
        if context.config.is_merge_on_read
        else rows_ignored((file.task for file in files if file.has_rows), stats),
        bytes_read=bytes_read(tasks),
        duration_ms=context.table.clock.ticks_ms() - context.started_ms,
        file_groups_replaced=sum(len(ids) for ids in (replaced or {}).values()),
    )
    if result.committed:
        logger.info("%s: committed %r", context.storage.uri, result)
    return result


def needs_commit(context: WriteContext) -> bool:
    """Return whether a write without files and replaced file groups must commit.

    It must if it changes the table's schema, if the handle's options add metadata to each commit,
    such as a stream's batch, if `hoodie.allow.empty.commit` is true, or if it has rejected rows.
    """
    if context.options.allow_empty_commit or commit_metadata(context.table.options):
        return True
    if any(participant.needs_commit for participant in context.table.participants):
        return True
    current = table_schema(context.storage, context.config, context.timeline)
    return (current.avro, current.history) != (context.schema.avro, context.schema.history)


def rows_ignored(tasks: Iterable[WriteTask], stats: Iterable[WriteStat]) -> int:
    """Count rows that lost to stored rows when they were merged into base files."""
    changed = {
        (stat.partition_path, stat.file_id): (
            stat.num_inserts + stat.num_update_writes + stat.num_deletes
        )
        for stat in stats
    }
    return sum(
        max(task.inserts + task.updates - changed.get((task.partition, task.file_id), 0), 0)
        for task in tasks
        if isinstance(task, BaseFileTask) and task.previous is not None
    )


def bytes_read(tasks: Iterable[WriteTask]) -> int:
    """Return the total size of the slices that the tasks rewrite."""
    previous = (task.previous for task in tasks if isinstance(task, BaseFileTask))
    return sum(slice_.size for slice_ in previous if slice_ is not None)
