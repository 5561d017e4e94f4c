"""The verbs that bring rows, and deleting by key. Each is one transaction of one writer.

All checks of the table and the data come before the first change on storage, the clean-up after
dead writers included; of a stream that is larger than memory, the data are read to their end first.
Which files a write makes is `plan/`'s part, where rows are already is `index/`'s. Verbs that take
file groups away are in `overwrite.py`, those that look at values in `update_delete.py`
and `merge.py`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pyhudi.clock import Clock
from pyhudi.config.index_options import (
    BUCKET,
    GLOBAL_BLOOM,
    GLOBAL_SIMPLE,
    MOVE_BLOOM,
    MOVE_RECORD,
    MOVE_SIMPLE,
    RECORD_INDEX,
)
from pyhudi.errors import PartitionChangeWarning
from pyhudi.index import locate
from pyhudi.index.copies import groups_with_copies
from pyhudi.schema.conform import marked_deleted
from pyhudi.schema.evolution import SchemaMode
from pyhudi.schema.record_keys import RECORD_KEY
from pyhudi.txn.result import WriteResult
from pyhudi.txn.transaction import Transaction
from pyhudi.write import (
    buckets,
    incoming,
    metadata_lifecycle,
    out_of_core,
    plan_partitioned,
    row_sizes,
)
from pyhudi.write import plan_rows as plan
from pyhudi.write.bulk_insert import SortMode, plan_bulk, sort_order
from pyhudi.write.execute import BULK_INSERT, DELETE, INSERT, UPSERT, carry_out
from pyhudi.write.incoming import Intake
from pyhudi.write.known_keys import without_known
from pyhudi.write.partial_update import check_partial, check_read, partial_rows, whole_rows
from pyhudi.write.plan_rows import Incoming
from pyhudi.write.write_context import Session, WritableTable


def upsert(
    table: WritableTable,
    data: Any,
    *,
    schema_mode: SchemaMode = "strict",
    partial: bool = False,
    clock: Clock | None = None,
    memory_limit: int | None = None,
) -> WriteResult:
    """Replaces the rows whose keys the table has, adds the others.

    Rows of one key among the data are combined first, by the table's merge mode, unless
    `hoodie.combine.before.upsert` says otherwise. memory_limit: bytes, a quarter of the machine's
    by default; larger data go through local files. Raises `SchemaMismatch` for data that do not
    fit, `UnsupportedTableFeature` for a table that pyhudi does not write to, `CommitConflict` for
    one that it must not write to now. schema_mode: "strict" wants the table's columns, "merge"
    gives the table new ones and wider numbers, and nulls to columns that the data lack. partial:
    the data may lack columns; rows that the table has keep theirs, new rows get nulls. Such data
    must fit in memory.
    """
    limit = incoming.memory_limit(memory_limit)
    session = opened(table, clock, limit)
    if partial:
        return _upsert_partial(session, data, schema_mode)
    session, taken = incoming.take(session, data, limit, schema_mode=schema_mode)
    combine = session.options.combine_upserts
    if taken.whole is None:
        locate.check_mergeable(session)
        return _upsert_large(session, taken, combine=combine)
    rows = locate.combined(session, taken.whole) if combine else taken.whole
    return _write_rows(session.recovered(), rows, UPSERT)


def insert(
    table: WritableTable,
    data: Any,
    *,
    schema_mode: SchemaMode = "strict",
    clock: Clock | None = None,
    memory_limit: int | None = None,
) -> WriteResult:
    """Adds rows without looking whether the table has their keys.

    Rows of one key among the data stay as they are unless `hoodie.combine.before.insert` is true.
    Rows that are added to a small file stand beside rows of their keys there, unless
    `hoodie.merge.allow.duplicate.on.inserts` is false. With `hoodie.datasource.insert.dup.policy`
    the table's keys are looked for all the same: "drop" leaves such rows out, "fail" refuses them.
    Raises as `upsert` does.
    """
    limit = incoming.memory_limit(memory_limit)
    session = opened(table, clock, limit)
    session, taken = incoming.take(session, data, limit, schema_mode=schema_mode, generate=True)
    taken = without_known(session, taken)
    combine = session.options.combine_inserts
    if taken.whole is None:
        return _insert_large(session, taken, combine=combine)
    rows = locate.combined(session, taken.whole) if combine else taken.whole
    return _write_rows(session.recovered(), rows, INSERT)


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
    """Adds rows to new files, without looking whether the table has their keys.

    A row whose key is there stands beside the one that has it. sort: "none" keeps the order of the
    data; "partition" sorts each run of rows that is in memory at once by partition, then by
    `sort_columns` or else the record key; "global" sorts all rows of a partition so. Data with one
    row a key are not combined unless `hoodie.combine.before.insert` is true. Under a bucket index
    rows go to their buckets, and what goes to one that is there is merged with its rows as by
    `upsert`.

    Raises as `upsert` does, and `ConfigError` for a sort mode or column that is none, and for
    "global" where the data do not fit in a quarter of the memory limit.
    """
    limit = incoming.memory_limit(memory_limit)
    session = opened(table, clock, limit)
    order = sort_order(sort, sort_columns, session.schema.arrow)
    session, taken = incoming.take(session, data, limit, schema_mode=schema_mode, generate=True)
    if session.index.kind == BUCKET:
        return buckets.bulk_insert(session, taken, sort=sort, order=order)
    with ExitStack() as stack:
        rows = plan_bulk(stack, session, taken, sort=sort, order=order)
        session = session.recovered()
        with Transaction(session.table, BULK_INSERT) as txn:
            tasks = plan_partitioned.plan_new_files(
                session.target(txn.instant),
                rows,
                row_bytes=row_sizes.sampled_row_size(rows.values(), session.options),
                new_file_id=session.new_file_id,
            )
            return carry_out(session, txn, tasks, BULK_INSERT)


def delete_keys(
    table: WritableTable,
    keys: Any,
    *,
    clock: Clock | None = None,
    memory_limit: int | None = None,
) -> WriteResult:
    """Removes the rows with the given keys; keys that the table lacks are passed over.

    keys: data with the table's key columns and, to look in their partitions only, all partition
    columns. Other columns of the table are ignored. The keys must fit in memory. Raises as `upsert`
    does.
    """
    session = opened(table, clock, incoming.memory_limit(memory_limit))
    given, in_partitions = session.delete_keys(keys)
    session = session.recovered()
    located = locate.for_delete(session, given, in_partitions=in_partitions)
    tagged, groups = located.tagged, located.groups
    plan.check_not_clustered(groups[number] for number, _ in tagged.by_group())
    texts = given.column(RECORD_KEY).combine_chunks()
    hit = {number: texts.take(rows) for number, rows in tagged.by_group()}
    anew = groups_with_copies(session, groups, hit)
    with Transaction(session.table, DELETE) as txn:
        tasks = plan.plan_deletes(session.target(txn.instant), given, tagged, groups, anew)
        return carry_out(session, txn, tasks, DELETE)


def opened(table: WritableTable, clock: Clock | None, limit: int) -> Session:
    """The table for one write of at most so many bytes of memory."""
    config = metadata_lifecycle.before_write(table, clock)
    session = Session.open(table, clock, config)
    share = max(limit // (2 * session.engine.tasks_per_process), 1)
    # A log block and a row group are in memory whole until they are written.
    most = max(share, incoming.LEAST_MEMORY)
    options = replace(
        session.options,
        log_block_bytes=min(session.options.log_block_bytes, most),
        row_group_bytes=min(session.options.row_group_bytes, most),
    )
    return replace(session, task_memory=share, options=options)


# --- in memory ------------------------------------------------------------------------------------


def _upsert_partial(session: Session, data: Any, schema_mode: SchemaMode) -> WriteResult:
    check_partial(session, schema_mode)
    locate.check_mergeable(session)
    rows = partial_rows(session, data)
    if session.options.combine_upserts:
        rows = locate.combined(session, rows)
    session = session.recovered()
    if locate.keeps_places(session):
        return _write_rows(session, rows, UPSERT, partial=True)
    return _write_rows(session, whole_rows(session, rows), UPSERT)


def _write_rows(
    session: Session, rows: pa.Table, operation: str, *, partial: bool = False
) -> WriteResult:
    marked = marked_deleted(
        rows, session.config.merge.delete_field, session.config.merge.delete_marker
    )
    find = locate.for_upsert if operation == UPSERT else locate.for_insert
    located = find(session, rows, marked)
    tagged, groups = located.tagged, located.groups
    incoming = Incoming(
        rows,
        marked,
        tagged,
        merge_by_key=operation == UPSERT or not session.options.allow_duplicates,
    )
    plan.check_not_clustered(
        groups[number] for number in {*dict(tagged.by_group()), *tagged.leaving()}
    )
    if partial:
        touched = [groups[number] for number, _ in tagged.by_group()]
        check_read(session, [group.read or group.slice for group in touched])
    kept_away = locate.kept_away(session, rows, marked, located) if operation == UPSERT else 0
    with Transaction(session.table, operation) as txn:
        tasks = plan.plan_rows(
            replace(session.target(txn.instant), partial=partial),
            incoming,
            groups,
            row_bytes=row_sizes.row_size(session.timeline, session.options),
            new_file_id=session.new_file_id,
        )
        result = carry_out(session, txn, tasks, operation)
    return told_kept(session, result, kept_away)


_LETS_MOVE = {GLOBAL_SIMPLE: MOVE_SIMPLE, GLOBAL_BLOOM: MOVE_BLOOM, RECORD_INDEX: MOVE_RECORD}


def told_kept(session: Session, result: WriteResult, kept_away: int) -> WriteResult:
    """The result with the number of rows that kept another partition than they say.

    With a warning of them, where no option says that they shall.
    """
    if not kept_away:
        return result
    option = _LETS_MOVE[session.index.kind]
    if option not in session.given_options:
        warnings.warn(
            f"{session.storage.uri}: {kept_away} rows have their keys in another partition than "
            f"{', '.join(session.config.partition_fields)} says, and stay there, with its values; "
            f"with the option {option}=true they move, with false nothing is said of them",
            PartitionChangeWarning,
            stacklevel=2,
        )
    return replace(result, rows_kept_in_partition=kept_away)


# --- larger than memory ---------------------------------------------------------------------------


def _upsert_large(session: Session, taken: Intake, *, combine: bool) -> WriteResult:
    with ExitStack() as stack:
        shelved = out_of_core.by_key(stack, taken)
        session = session.recovered()
        placed = out_of_core.by_location(
            stack, session, shelved, taken.memory_limit, combine=combine
        )
        return _write_large(session, placed, UPSERT)


def _insert_large(session: Session, taken: Intake, *, combine: bool) -> WriteResult:
    with ExitStack() as stack:
        if session.index.kind == BUCKET:
            shelved = out_of_core.by_key(stack, taken)
            session = session.recovered()
            limit = taken.memory_limit
            placed = out_of_core.by_location(
                stack, session, shelved, limit, combine=combine, deletes=False
            )
            return _write_large(session, placed, INSERT)
        rows = out_of_core.by_partition(stack, session, taken, combine=combine)
        session = session.recovered()
        groups, _ = session.groups(list(rows))
        return _write_large(session, out_of_core.Parts({}, rows, groups, {}), INSERT)


def _write_large(session: Session, placed: out_of_core.Parts, operation: str) -> WriteResult:
    with Transaction(session.table, operation) as txn:
        tasks = plan_partitioned.plan_parts(
            session.target(txn.instant),
            placed.updates,
            placed.inserts,
            placed.groups,
            leaving=placed.leaving,
            row_bytes=row_sizes.row_size(session.timeline, session.options),
            merge_by_key=operation == UPSERT or not session.options.allow_duplicates,
            new_file_id=session.new_file_id,
        )
        result = carry_out(session, txn, tasks, operation)
    return told_kept(session, result, placed.kept_away)
