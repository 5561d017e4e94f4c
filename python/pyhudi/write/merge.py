"""Merge of a source into the table by record key, in one commit.

A small source and the rows that it changes are in memory; a large one spills to local files
(`large_merge.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.clock import Clock
from pyhudi.config.memory_size import MemorySize
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.spark_loader import is_spark_frame, spark
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.index import tagging
from pyhudi.index.protocol import TagResult
from pyhudi.input.batches import read_batches
from pyhudi.input.conform import data_schema
from pyhudi.slices.tagged_rows import Tagged, row_numbers
from pyhudi.slices.task_packing import engine_for_slices
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.txn.result import WriteResult
from pyhudi.write import input_rows
from pyhudi.write.assigned_rows import AssignedLocalRows, DeletedKeys
from pyhudi.write.commit_validation import (
    check_file_groups_unchanged,
    check_missing_keys,
    check_partitions_unchanged,
)
from pyhudi.write.execute import TAG_STAGE, UPSERT, write
from pyhudi.write.large_merge import LargeSource, row_bytes
from pyhudi.write.memory_rows import assign_rows
from pyhudi.write.merge_clauses import Clause
from pyhudi.write.merge_match import Matched, match_absent_rows, match_rows
from pyhudi.write.merge_planning import (
    Inserted,
    MergeClause,
    add_source_keys,
    build_inserts,
    check_clauses,
    check_once,
    match_task,
    tasks_for_groups,
)
from pyhudi.write.non_blocking import check_appends
from pyhudi.write.pending_clustering import check_update_allowed
from pyhudi.write.row_counters import RowCounters, with_row_counts
from pyhudi.write.row_protocols import AssignedRows
from pyhudi.write.table_opening import WritableTable
from pyhudi.write.update_delete import current_groups, plan_filter
from pyhudi.write.upsert import open_write
from pyhudi.write.write_context import WriteContext

_IN_MEMORY = 16
"""A source with its matching rows of the table is in memory up to this part of the limit."""


def merge(
    table: WritableTable,
    source: Any,
    clauses: Sequence[MergeClause],
    *,
    on: Sequence[str] | None = None,
    clock: Clock | None = None,
    memory_limit: MemorySize | None = None,
) -> WriteResult:
    """Execute a merge; see `pyhudi.api.merge_builder.Merge` for its meaning.

    on: see `check_on`, which runs again because the table may have been recreated. memory_limit:
    see `input_rows.memory_limit`.

    Raises `SchemaMismatch` for a source without key or partition columns, or with a duplicate key,
    and for values that do not fit; `ConfigError` for invalid clauses; otherwise as `upsert` does.
    """
    limit = input_rows.memory_limit(memory_limit, source)
    context = open_write(table, clock, limit)
    check_on(context.config, on)
    check_appends(context, "merge", appends=False)
    if isinstance(source, (list, tuple)) and not source:
        # Clauses cannot refer to columns of an empty list.
        source = context.input_types.empty_table()
        clauses = [clause for clause in clauses if clause.by_source]
    counters = None if is_spark_frame(source) else RowCounters()
    source_rows = source if counters is None else _read_source(context, source, limit, counters)
    by_source = any(clause.by_source for clause in clauses)
    if by_source and not isinstance(source_rows, pa.Table):
        raise UnsupportedTableFeature(
            "clauses for rows without a row of the source need a source in memory",
            hint="Raise memory_limit; on Spark, use the Delta-style API.",
        )
    with _merge_source(context, source_rows, clauses) as changes:
        commit_checks = [check_file_groups_unchanged(changes.groups_read)]
        if by_source:
            commit_checks = [check_partitions_unchanged(None)]
        missing_keys = check_missing_keys(changes)
        if isinstance(source_rows, LargeSource):
            missing_keys = source_rows.commit_checks
        return with_row_counts(
            write(
                changes,
                UPSERT,
                deletes=True,
                commit_checks=[*missing_keys, *commit_checks],
            ),
            counters,
        )


def check_on(config: TableConfig, on: Sequence[str] | None) -> None:
    """Raise `ConfigError` if the columns to match by are not the record key's."""
    fields = config.record_key_fields
    if on is not None and tuple(on) != tuple(fields):
        raise ConfigError(
            f"on is {list(on)}; a merge matches rows by the record key",
            hint=f"Leave `on` out; the key is {', '.join(fields)}.",
        )


def _read_source(
    context: WriteContext, source: Any, limit: int, counters: RowCounters
) -> pa.Table | LargeSource:
    """Return the source in memory, or in chunks if it is too large for that."""
    schema, batches = read_batches(source)
    chunks = counters.count_chunks(input_rows.chunks(schema, batches, limit))
    width = row_bytes(data_schema(context.schema.arrow))
    buffered: list[pa.Table] = []
    size = 0
    for chunk in chunks:
        buffered.append(chunk)
        size += max(chunk.nbytes, chunk.num_rows * width)
        if size > limit // _IN_MEMORY:
            return LargeSource(schema, input_rows.drain(buffered, chunks), limit)
    return pa.concat_tables(buffered)


def _merge_source(
    context: WriteContext, source: Any, clauses: Sequence[MergeClause]
) -> AbstractContextManager[AssignedRows]:
    """Merge a source into the recovered table and yield the changes."""
    if is_spark_frame(source):
        merged: AbstractContextManager[AssignedRows] = spark("merge_steps").merge_by_key(
            context, source, clauses
        )
        return merged
    if isinstance(source, LargeSource):
        return source.merge_parts(context, clauses)
    return merge_in_memory(context, source, clauses)


@contextmanager
def merge_in_memory(
    context: WriteContext, source: pa.Table, clauses: Sequence[MergeClause]
) -> Iterator[AssignedRows]:
    """Run the clauses for a source in memory and yield the changes, in the recovered table.

    Raises as `merge` does.
    """
    keyed = add_source_keys(context, source)
    check_once(context, keyed)
    on_match = check_clauses(context, source, clauses, matched=True)
    on_absence = check_clauses(context, source, clauses, matched=False)
    by_source = check_clauses(context, source, clauses, matched=True, by_source=True)
    context = context.recover()
    deletes = any(clause.values is None for clause in on_match)
    tag_result = tagging.tag_merge(context, keyed, deletes=deletes)
    groups = tag_result.groups
    matches = {n: rows for n, rows in tag_result.tagged.by_group() if not groups[n].is_new}
    check_update_allowed(context, (groups[number] for number in matches))
    results = _match(context, source, keyed, matches, groups, on_match)
    matched = [rows.take(results[number].matched) for number, rows in matches.items()]
    all_matched = pa.concat_arrays([pa.array([], pa.int64()), *matched])
    numbers = row_numbers(keyed.num_rows)
    unmatched = numbers.filter(pc.invert(pc.is_in(numbers, value_set=all_matched)))
    inserted = build_inserts(context, source, keyed, unmatched, on_absence)
    if by_source:
        groups = [*groups]
        results = _match_absent(context, source, keyed, by_source, groups, results)
    deleted_keys = {
        n: DeletedKeys(result.deleted.column(RECORD_KEY).combine_chunks())
        for n, result in results.items()
        if result.deleted.num_rows
    }
    # After a concurrent write the clauses may change rows that they leave unchanged now.
    groups_read = frozenset((groups[n].slice.partition, groups[n].slice.file_id) for n in matches)
    changes = _assign_rows(context, results, inserted, replace(tag_result, groups=groups))
    yield replace(changes, deletes=deleted_keys, missing_keys=keyed, groups_read=groups_read)


def _match(
    context: WriteContext,
    source: pa.Table,
    keyed: pa.Table,
    matches: Mapping[int, pa.Array[Any]],
    groups: Sequence[FileGroup],
    clauses: tuple[Clause, ...],
) -> dict[int, Matched]:
    """Match the source's rows with the file groups of their keys; results by group number."""
    reads = tasks_for_groups(context, [groups[number] for number in matches])
    keys = keyed.column(RECORD_KEY)
    tasks = [
        match_task(context, read, keys.take(rows).combine_chunks(), source.take(rows), clauses)
        for read, rows in zip(reads, matches.values(), strict=True)
    ]
    engine = engine_for_slices(context.engine, context.storage, (read.slice for read in reads))
    results = engine.run(match_rows, tasks, stage=TAG_STAGE, label="match rows")
    return dict(zip(matches, results, strict=True))


def _match_absent(
    context: WriteContext,
    source: pa.Table,
    keyed: pa.Table,
    clauses: tuple[Clause, ...],
    groups: list[FileGroup],
    results: Mapping[int, Matched],
) -> dict[int, Matched]:
    """Run the clauses for the table's rows without a row of the source.

    groups: the known file groups, to which changed ones are added. Returns the results with those
    of these rows.
    """
    columns = (RECORD_KEY, PARTITION_PATH, *data_schema(context.schema.arrow).names)
    reads = plan_filter(context, "true", columns)
    reads = [replace(read, where=None) for read in reads]
    tasks = [
        match_task(context, read, _keys_in(context, keyed, read.slice.partition), source, clauses)
        for read in reads
    ]
    engine = engine_for_slices(context.engine, context.storage, (read.slice for read in reads))
    outcomes = engine.run(match_absent_rows, tasks, stage=TAG_STAGE, label="match rows")
    changed = [
        (read.slice, outcome)
        for read, outcome in zip(reads, outcomes, strict=True)
        if outcome.updated.num_rows or outcome.deleted.num_rows
    ]
    numbers = {group.slice.key: n for n, group in enumerate(groups) if not group.is_new}
    merged = dict(results)
    changed_groups = current_groups(context, [slice_ for slice_, _ in changed])
    for group, (slice_, outcome) in zip(changed_groups, changed, strict=True):
        number = numbers.get(slice_.key)
        if number is None:
            number = len(groups)
            groups.append(group)
        merged[number] = _join(merged.get(number), outcome)
    return merged


def _keys_in(context: WriteContext, keyed: pa.Table, partition: str) -> pa.Array[Any]:
    """Return the keys of the source that a partition's rows match."""
    if not context.index.is_global:
        keyed = keyed.filter(pc.equal(keyed.column(PARTITION_PATH), partition))
    return keyed.column(RECORD_KEY).combine_chunks()


def _join(matched: Matched | None, other: Matched) -> Matched:
    if matched is None:
        return other
    return Matched(
        matched.matched,
        pa.concat_tables([matched.updated, other.updated]),
        pa.concat_tables([matched.deleted, other.deleted]),
    )


def _assign_rows(
    context: WriteContext, results: Mapping[int, Matched], inserted: Inserted, tag_result: TagResult
) -> AssignedLocalRows:
    """Assign inserted and updated rows to their targets."""
    rows = [inserted.rows, *(result.updated for result in results.values())]
    counts = [part.num_rows for part in rows]
    numbers = row_numbers(sum(counts)).slice(counts[0])
    groups = [pa.repeat(pa.scalar(n, pa.int64()), results[n].updated.num_rows) for n in results]
    all_rows = pa.concat_tables(rows).combine_chunks()
    insert_tags = _tag_inserts(inserted, tag_result)
    tagged = Tagged(
        pa.concat_arrays([insert_tags.rows, numbers]),
        pa.concat_arrays([insert_tags.groups, *groups]),
    )
    marked = context.find_delete_markers(all_rows)
    return assign_rows(context, all_rows, marked, TagResult(tagged, tag_result.groups))


def _tag_inserts(inserted: Inserted, tag_result: TagResult) -> Tagged:
    """Tag inserts that go to their buckets, or to the previous location of their keys.

    A deleted key may still be in log files of several groups; its row goes to one of them in its
    partition.
    """
    tagged = tag_result.tagged
    tag_numbers = pc.index_in(tagged.rows, value_set=inserted.numbers)
    paths = pa.array([group.slice.partition for group in tag_result.groups], pa.string())
    partitions = inserted.rows.column(PARTITION_PATH).combine_chunks().take(tag_numbers)
    is_same = pc.fill_null(pc.equal(partitions, paths.take(tagged.groups)), fill_value=False)
    pairs = pa.table(
        {
            "row": tag_numbers.filter(is_same).cast(pa.int64()),
            "group": tagged.groups.filter(is_same),
        }
    )
    lowest = pairs.group_by("row").aggregate([("group", "min")])
    none = pa.array([], pa.int64())
    return Tagged(*(pa.concat_arrays([none, *column.chunks]) for column in lowest.columns))
