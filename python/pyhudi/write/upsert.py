"""The operations that add rows, and deletes by key. Each is one transaction of one writer.

All checks of the table and the data come before the first change on storage, including recovery
from failed writers; a stream larger than memory is read to its end first. `file_assignment.py`
plans the files, `index/` finds the locations of rows, and implementations of
`row_protocols.UnassignedRows` store them in the meantime. Operations that replace file groups are
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
from pyhudi.errors import PartitionChangeWarning
from pyhudi.index import tagging
from pyhudi.schema.evolution import SchemaMode
from pyhudi.txn.result import WriteResult
from pyhudi.write import input_rows, metadata_lifecycle
from pyhudi.write.commit_validation import check_missing_keys
from pyhudi.write.execute import (
    BULK_INSERT,
    DELETE,
    INSERT,
    UPSERT,
    write,
    write_buckets,
    write_new_files,
)
from pyhudi.write.existing_keys import should_count_existing_keys, warn_of_duplicates
from pyhudi.write.input_rows import read_delete_keys, read_rows
from pyhudi.write.non_blocking import check_appends
from pyhudi.write.partial_update import check_partial, check_read
from pyhudi.write.row_counters import RowCounters, with_row_counts
from pyhudi.write.row_protocols import AssignedRows
from pyhudi.write.sort_modes import SortMode, sort_order
from pyhudi.write.write_context import Handle, WritableTable, WriteContext


def upsert(
    table: WritableTable,
    data: Any,
    *,
    schema_mode: SchemaMode = "strict",
    partial: bool = False,
    clock: Clock | None = None,
    memory_limit: int | None = None,
) -> WriteResult:
    """Replace the rows whose keys the table has, add the others.

    Rows of one key in the data are combined first, by the table's merge mode, unless
    `hoodie.combine.before.upsert` disables it. memory_limit: bytes, a quarter of the machine's
    memory by default; larger data spills to local files. Raises `SchemaMismatch` for data that does
    not fit, `UnsupportedTableFeature` for a table that pyhudi does not write to, `CommitConflict`
    for one that it must not write to now. schema_mode: "strict" requires the table's columns,
    "merge" adds new columns, widens numbers, and fills missing columns with nulls. partial: columns
    may be missing; existing rows keep theirs, new rows get nulls. Such data must fit in memory.
    """
    limit = input_rows.memory_limit(memory_limit, data)
    context = open_write(table, clock, limit)
    check_appends(context, "a partial update", appends=not partial)
    tagging.check_mergeable(context)
    if partial:
        check_partial(context, schema_mode)
    with read_rows(context, data, limit, schema_mode=schema_mode, partial=partial) as source:
        rows = source.combine() if context.options.combine_upserts else source
        if partial and not context.index.keeps_locations:
            rows, partial = rows.fill_missing_columns(), False
        placed = rows.for_upsert()
        if partial:
            check_read(placed.context, placed.counts)
        result = write(placed, UPSERT, partial=partial, commit_checks=check_missing_keys(placed))
        result = replace(result, rows_moved=sum(placed.counts.deletes.values()))
        _warn_of_partitions(placed, source.counters)
        return with_row_counts(
            _with_kept_count(placed.context, result, placed.kept_in_partition), source.counters
        )


def insert(
    table: WritableTable,
    data: Any,
    *,
    schema_mode: SchemaMode = "strict",
    clock: Clock | None = None,
    memory_limit: int | None = None,
) -> WriteResult:
    """Add rows without checking whether the table has their keys.

    Duplicate keys in the data stay unless `hoodie.combine.before.insert` is true. Rows that fill up
    a small file stay next to rows of the same keys there, unless
    `hoodie.merge.allow.duplicate.on.inserts` is false. With `hoodie.datasource.insert.dup.policy`
    the table's keys are looked up all the same: "drop" drops such rows, "fail" raises for them.
    Raises as `upsert` does.
    """
    limit = input_rows.memory_limit(memory_limit, data)
    context = open_write(table, clock, limit)
    options = context.options
    check_appends(
        context, "insert that looks for keys", appends=options.insert_duplicates == "none"
    )
    with read_rows(context, data, limit, schema_mode=schema_mode, generate=True) as source:
        rows, policy = source, options.insert_duplicates
        if policy != "none" and not context.key_spec().keys_are_generated:
            rows = rows.without_existing_keys(fail=policy == "fail")
        looks = rows is not source
        if should_count_existing_keys(context):
            rows = rows.count_existing_keys()
        if options.combine_inserts:
            rows = rows.combine()
        placed = rows.for_insert()
        commit_checks = check_missing_keys(placed) if looks else ()
        result = write(
            placed, INSERT, merge_by_key=not options.allow_duplicates, commit_checks=commit_checks
        )
        _warn_of_partitions(placed, source.counters)
        warn_of_duplicates(context, (source.counters or placed).inserted_duplicates)
        return with_row_counts(result, source.counters)


def bulk_insert(
    table: WritableTable,
    data: Any,
    *,
    sort: SortMode = "none",
    sort_columns: Sequence[str] = (),
    schema_mode: SchemaMode = "strict",
    clock: Clock | None = None,
    memory_limit: int | None = None,
) -> WriteResult:
    """Add rows to new files, without checking whether the table has their keys.

    A row with an existing key becomes a duplicate. sort: "none" keeps the order of the data;
    "partition" sorts each run of rows in memory by partition, then by `sort_columns` or else the
    record key; "global" sorts all rows of a partition so. Duplicate keys in the data are combined
    only if `hoodie.combine.before.insert` is true. Under a bucket index rows go to their buckets,
    and rows for an existing bucket are merged into it as by `upsert`.

    Raises as `upsert` does, and `ConfigError` for an unknown sort mode or column, and for "global"
    if the data does not fit in a quarter of the memory limit.
    """
    limit = input_rows.memory_limit(memory_limit, data)
    context = open_write(table, clock, limit)
    check_appends(context, "bulk_insert", appends=False)
    order, whole = sort_order(sort, sort_columns, context.schema.arrow), sort == "global"
    with read_rows(context, data, limit, schema_mode=schema_mode, generate=True) as source:
        rows = source.count_existing_keys() if should_count_existing_keys(context) else source
        rows = rows.combine() if context.options.combine_inserts else rows
        if context.index.has_buckets:
            result = write_buckets(rows.for_insert(order, whole=whole), BULK_INSERT)
        else:
            placed = rows.for_new_files(order, whole=whole, counted=sort != "none")
            result = write_new_files(placed, BULK_INSERT)
            warn_of_duplicates(context, (source.counters or placed).inserted_duplicates)
        return with_row_counts(result, source.counters)


def delete_keys(
    table: WritableTable,
    keys: Any,
    *,
    clock: Clock | None = None,
    memory_limit: int | None = None,
) -> WriteResult:
    """Delete the rows with the given keys; keys that do not exist are ignored.

    keys: data with the table's key columns and, to search only their partitions, all partition
    columns. Other columns of the table are ignored. The keys must fit in memory. Raises as `upsert`
    does.
    """
    limit = input_rows.memory_limit(memory_limit, keys)
    context = open_write(table, clock, limit)
    with read_delete_keys(context, keys) as (placed, counters):
        commit_checks = check_missing_keys(placed, deletes=True)
        return with_row_counts(
            write(placed, DELETE, deletes=True, commit_checks=commit_checks), counters
        )


def open_write(table: WritableTable, clock: Clock | None, limit: int) -> WriteContext:
    """Open the table for one write of at most `limit` bytes of memory."""
    table = Handle.of(table, clock or SystemClock())
    with table.prefetch_open():
        config = metadata_lifecycle.before_write(table, clock)
        context = WriteContext.open(table, clock, config)
    share = max(limit // (2 * context.engine.tasks_per_process), 1)
    # A log block and a row group are in memory as a whole until they are written.
    max_block_bytes = max(share, input_rows.LEAST_MEMORY)
    options = replace(
        context.options,
        log_block_bytes=min(context.options.log_block_bytes, max_block_bytes),
        row_group_bytes=min(context.options.row_group_bytes, max_block_bytes),
    )
    return replace(context, task_memory=share, options=options)


def _warn_of_partitions(placed: AssignedRows, counters: RowCounters | None) -> None:
    """Warn about rows that combining dropped in favor of a row in another partition.

    Only if no option names the index whose keys are unique over all partitions.
    """
    context = placed.context
    dropped = (placed if counters is None else counters).cross_partition_duplicates
    if not dropped or INDEX_TYPE in context.handle_options:
        return
    warn(
        f"{context.storage.uri}: {count_text(dropped, 'row')} of the data were dropped, since rows "
        "of the same keys are for other partitions: with the table's record index a key is unique "
        f"over all partitions; create the table with {INDEX_TYPE}=SIMPLE to have a key once in "
        "each partition",
        PartitionChangeWarning,
    )


def _with_kept_count(
    context: WriteContext, result: WriteResult, kept_in_partition: int
) -> WriteResult:
    """Return the result with the number of updates that kept the partition of the stored row.

    Warns about them unless an option asks for this behavior.
    """
    if not kept_in_partition:
        return result
    option = context.index.moves_option
    if option not in context.handle_options:
        fields = ", ".join(context.config.partition_fields)
        warn(
            f"{context.storage.uri}: {count_text(kept_in_partition, 'row')} kept the partition of "
            f"the stored row, although the input has another value of {fields}; "
            f"the option {option}=true moves rows, false silences this warning",
            PartitionChangeWarning,
        )
    return replace(result, rows_kept_in_partition=kept_in_partition)
