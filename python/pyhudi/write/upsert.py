"""The operations that add rows, and deletes by key. Each is one transaction.

All checks of the table and the data precede the first change on storage, including the recovery
from failed writers. A stream larger than memory is spilled to its end first. `index/` finds the
locations of rows and `file_assignment.py` plans the files. Operations that replace file groups are
in `overwrite.py`, those that read values in `update_delete.py` and `merge.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyhudi.clock import Clock, SystemClock
from pyhudi.config.formatting import count_text
from pyhudi.config.index_options import INDEX_TYPE
from pyhudi.config.log import warn
from pyhudi.config.memory_size import MemorySize
from pyhudi.errors import PartitionChangeWarning
from pyhudi.index import tagging
from pyhudi.schema.evolution import SchemaMode
from pyhudi.txn.result import WriteResult
from pyhudi.write import input_rows, metadata_lifecycle
from pyhudi.write.commit_validation import check_missing_keys
from pyhudi.write.duplicate_policy import should_count_existing_keys, warn_of_duplicates
from pyhudi.write.execute import (
    BULK_INSERT,
    DELETE,
    INSERT,
    UPSERT,
    write,
    write_buckets,
    write_new_files,
)
from pyhudi.write.input_rows import read_delete_keys, read_rows
from pyhudi.write.non_blocking import check_appends
from pyhudi.write.partial_update import (
    check_no_truncated_logs,
    check_partial,
    needs_whole_rows,
)
from pyhudi.write.rejected_rows import RejectedRows
from pyhudi.write.row_counters import RowCounters, with_row_counts
from pyhudi.write.row_protocols import AssignedRows
from pyhudi.write.sort_modes import SortMode, sort_order
from pyhudi.write.table_opening import Handle, WritableTable
from pyhudi.write.write_context import WriteContext


def upsert(
    table: WritableTable,
    data: Any,
    *,
    schema_mode: SchemaMode = "strict",
    partial: bool = False,
    rejected: RejectedRows | None = None,
    clock: Clock | None = None,
    memory_limit: MemorySize | None = None,
) -> WriteResult:
    """Replace the rows whose keys the table has, add the others.

    Input rows of one key are combined first by the table's merge mode, unless
    `hoodie.combine.before.upsert` is false.

    schema_mode: "strict" requires the table's columns; "merge" adds new columns, widens numbers and
    fills missing columns with nulls. partial: columns may be missing; existing rows keep their
    values, new rows get nulls, and the data must fit in memory. rejected: gets rows that break a
    rule of the table, as in each operation that has it. memory_limit: bytes, by default a
    quarter of the machine's memory; larger data spills to local files.

    Raises `SchemaMismatch` for data that does not match the table, `UnsupportedTableFeature` for a
    table that pyhudi does not write to, and `CommitConflict` for a conflict with another writer.
    """
    limit = input_rows.memory_limit(memory_limit, data)
    context = open_write(table, clock, limit)
    check_appends(context, "a partial update", appends=not partial)
    tagging.check_mergeable(context)
    if partial:
        check_partial(context, schema_mode)
    with read_rows(
        context, data, limit, schema_mode=schema_mode, partial=partial, rejected=rejected
    ) as source:
        combines = context.options.combine_upserts or context.config.merge.column_rules
        rows = source.combine() if combines else source
        if partial and not (context.index.keeps_locations and not needs_whole_rows(context)):
            rows, partial = rows.fill_missing_columns(), False
        assigned = rows.for_upsert()
        if partial:
            check_no_truncated_logs(assigned.context, assigned.counts)
        result = write(
            assigned, UPSERT, partial=partial, commit_checks=check_missing_keys(assigned)
        )
        result = replace(result, rows_moved=sum(assigned.counts.deletes.values()))
        _warn_of_partitions(assigned, source.counters)
        return with_row_counts(
            with_count_kept_in_partition(assigned.context, result, assigned.kept_in_partition),
            source.counters,
        )


def insert(
    table: WritableTable,
    data: Any,
    *,
    schema_mode: SchemaMode = "strict",
    rejected: RejectedRows | None = None,
    clock: Clock | None = None,
    memory_limit: MemorySize | None = None,
) -> WriteResult:
    """Add rows without checking whether the table has their keys.

    Duplicate keys in the data are kept unless `hoodie.combine.before.insert` is true. Rows that
    fill up a small file do not replace its rows of the same keys, unless
    `hoodie.merge.allow.duplicate.on.inserts` is false. `hoodie.datasource.insert.dup.policy` makes
    the insert look keys up: "drop" drops rows with existing keys, "fail" raises for them. Raises as
    `upsert` does.
    """
    limit = input_rows.memory_limit(memory_limit, data)
    context = open_write(table, clock, limit)
    options = context.options
    check_appends(
        context, "insert that looks for keys", appends=options.insert_duplicates == "none"
    )
    with read_rows(
        context, data, limit, schema_mode=schema_mode, generate=True, rejected=rejected
    ) as source:
        rows, policy = source, options.insert_duplicates
        if policy != "none" and not context.key_spec().keys_are_generated:
            rows = rows.without_existing_keys(fail=policy == "fail")
        looks_up_keys = rows is not source
        if should_count_existing_keys(context):
            rows = rows.count_existing_keys()
        if options.combine_inserts:
            rows = rows.combine()
        assigned = rows.for_insert()
        commit_checks = check_missing_keys(assigned) if looks_up_keys else ()
        result = write(
            assigned, INSERT, merge_by_key=not options.allow_duplicates, commit_checks=commit_checks
        )
        _warn_of_partitions(assigned, source.counters)
        warn_of_duplicates(context, (source.counters or assigned).inserted_duplicates)
        return with_row_counts(result, source.counters)


def bulk_insert(
    table: WritableTable,
    data: Any,
    *,
    sort: SortMode = "none",
    sort_columns: Sequence[str] = (),
    schema_mode: SchemaMode = "strict",
    rejected: RejectedRows | None = None,
    clock: Clock | None = None,
    memory_limit: MemorySize | None = None,
) -> WriteResult:
    """Add rows to new files, without checking whether the table has their keys.

    A row with an existing key becomes a duplicate. Duplicate keys in the data are combined only if
    `hoodie.combine.before.insert` is true. With a bucket index, rows for an existing bucket are
    merged into it as in `upsert`.

    sort: "none" keeps the order of the data; "partition" sorts each run of rows in memory by
    partition, then by `sort_columns`, by default the record key; "global" sorts all rows of a
    partition.

    Raises as `upsert` does, and `ConfigError` for an unknown sort mode or column, and for "global"
    if the data does not fit in a quarter of the memory limit.
    """
    limit = input_rows.memory_limit(memory_limit, data)
    context = open_write(table, clock, limit)
    check_appends(context, "bulk_insert", appends=False)
    order, is_global = sort_order(sort, sort_columns, context.schema.arrow), sort == "global"
    with read_rows(
        context, data, limit, schema_mode=schema_mode, generate=True, rejected=rejected
    ) as source:
        rows = source.count_existing_keys() if should_count_existing_keys(context) else source
        rows = rows.combine() if context.options.combine_inserts else rows
        if context.index.has_buckets:
            result = write_buckets(rows.for_insert(order, is_global=is_global), BULK_INSERT)
        else:
            assigned = rows.for_new_files(order, is_global=is_global, counted=sort != "none")
            result = write_new_files(assigned, BULK_INSERT)
            warn_of_duplicates(context, (source.counters or assigned).inserted_duplicates)
        return with_row_counts(result, source.counters)


def delete_keys(
    table: WritableTable,
    keys: Any,
    *,
    clock: Clock | None = None,
    memory_limit: MemorySize | None = None,
) -> WriteResult:
    """Delete the rows with these keys; ignore keys that do not exist.

    keys: data with the key columns and, to search only their partitions, all partition columns.
    Other columns of the table are ignored. The keys must fit in memory. Raises as `upsert` does.
    """
    limit = input_rows.memory_limit(memory_limit, keys)
    context = open_write(table, clock, limit)
    with read_delete_keys(context, keys) as (assigned, counters):
        commit_checks = check_missing_keys(assigned, deletes=True)
        return with_row_counts(
            write(assigned, DELETE, deletes=True, commit_checks=commit_checks), counters
        )


def open_write(table: WritableTable, clock: Clock | None, limit: int) -> WriteContext:
    """Open the table for one write of at most `limit` bytes of memory."""
    table = Handle.of(table, clock or SystemClock())
    with table.prefetch_open():
        config = metadata_lifecycle.before_write(table, clock)
        context = WriteContext.open(table, clock, config)
    task_memory = max(limit // (2 * context.engine.tasks_per_process), 1)
    # A log block or row group is complete in memory before it is written.
    max_block_bytes = max(task_memory, input_rows.MIN_MEMORY)
    options = replace(
        context.options,
        log_block_bytes=min(context.options.log_block_bytes, max_block_bytes),
        row_group_bytes=min(context.options.row_group_bytes, max_block_bytes),
    )
    return replace(context, task_memory=task_memory, options=options)


def _warn_of_partitions(assigned: AssignedRows, counters: RowCounters | None) -> None:
    """Warn about rows that lost to a row of another partition when they were combined.

    An option that sets the index silences the warning.
    """
    context = assigned.context
    dropped = (assigned if counters is None else counters).cross_partition_duplicates
    if not dropped or INDEX_TYPE in context.handle_options:
        return
    warn(
        f"{context.storage.uri}: dropped {count_text(dropped, 'row')} of the data, since rows "
        "of the same keys are for other partitions: with the table's record index a key is unique "
        f"over all partitions; create the table with {INDEX_TYPE}=SIMPLE to have a key once in "
        "each partition",
        PartitionChangeWarning,
    )


def with_count_kept_in_partition(
    context: WriteContext, result: WriteResult, kept_in_partition: int
) -> WriteResult:
    """Return the result with the number of updates that kept the partition of the stored row.

    Warns about them unless an option asks for this behavior.
    """
    if not kept_in_partition:
        return result
    option = context.index.update_path_option
    if option not in context.handle_options:
        fields = ", ".join(context.config.partition_fields)
        warn(
            f"{context.storage.uri}: {count_text(kept_in_partition, 'row')} kept the partition of "
            f"the stored row, although the input has another value of {fields}; "
            f"the option {option}=true moves rows, false silences this warning",
            PartitionChangeWarning,
        )
    return replace(result, rows_kept_in_partition=kept_in_partition)
