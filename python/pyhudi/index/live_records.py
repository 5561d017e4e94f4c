"""Finds the locations of a key that have a current record of it.

In a merge-on-read table, a base file keeps a key that a log file has deleted, and an index that
reads the keys of files finds that location, too. A write to all locations of a key would restore
deleted rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine.protocol import Attempt
from pyhudi.index.protocol import IndexedTable, TagResult, group_numbers
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.read import read_task
from pyhudi.slices.read_tasks import ReadTask, ScanRequest, merge_rule, slice_tasks
from pyhudi.slices.tagged_rows import Tagged, flat, group_values, row_numbers
from pyhudi.slices.task_packing import engine_for_slices


@dataclass(frozen=True)
class LiveKeysTask:
    """Check which keys have records in one slice."""

    slice: ReadTask
    """The read of the slice, which returns record keys."""
    group: int
    """Number of the slice's file group."""
    rows: pa.Array[Any]
    """Numbers of the incoming rows that may be there."""
    keys: pa.Array[Any]
    """Their record keys."""


def find_live_keys(task: LiveKeysTask, _attempt: Attempt) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Return numbers of the task's rows with records in the slice, and the group's number."""
    tagger = _native.KeyTagger(task.keys)
    # Batch by batch, because a stream that fails in the core loses the cause.
    for batch in read_task(task.slice):
        tagger.probe(batch, 0)
    rows = task.rows.filter(pc.is_valid(tagger.locations()))
    return rows, pa.repeat(pa.scalar(task.group, pa.int64()), len(rows))


def tag_from_records(table: IndexedTable, rows: pa.Table, *, partitioned: bool) -> TagResult:
    """Return the locations of current records of the keys, by reading the records.

    rows: columns record key and partition path. partitioned: look for each row only in its own
    partition.
    """
    keys = flat(rows.column(RECORD_KEY))
    all_rows = row_numbers(len(keys))
    own = dict(group_values(flat(rows.column(PARTITION_PATH)), all_rows)) if partitioned else None
    groups, slices = table.groups(None if own is None else sorted(own))
    numbers = group_numbers(groups)
    requested = {
        numbers[slice_.key]: (slice_, all_rows if own is None else own[slice_.partition])
        for slice_ in slices
    }
    return TagResult(_tag_live(table, keys, requested), groups)


def drop_deleted_locations(table: IndexedTable, keys: pa.Table, tag_result: TagResult) -> TagResult:
    """Remove locations at which the keys have no current row. keys: with the column record key."""
    tagged, groups = tag_result.tagged, tag_result.groups
    if not _may_be_deleted(table, tag_result):
        return tag_result
    requested = {
        number: (groups[number].read_slice, rows)
        for number, rows in tagged.by_group()
        if groups[number].read_slice.logs
    }
    live = _tag_live(table, flat(keys.column(RECORD_KEY)), requested)
    others = pc.invert(pc.is_in(tagged.groups, value_set=pa.array([*requested], pa.int64())))
    is_live = pc.is_in(_pairs(tagged, len(groups)), value_set=_pairs(live, len(groups)))
    return replace(tag_result, tagged=tagged.only(pc.or_(others, is_live)))


def drop_deleted_duplicates(
    table: IndexedTable, keys: pa.Table, tag_result: TagResult
) -> TagResult:
    """Keep those of several locations of a key that have current rows, or one if none has.

    A deleted key that is written again goes to one of its old locations.
    """
    tagged = tag_result.tagged
    counts = pc.value_counts(tagged.rows)
    repeated_rows = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if not len(repeated_rows) or not _may_be_deleted(table, tag_result):
        return tag_result
    is_repeated = pc.is_in(tagged.rows, value_set=repeated_rows)
    live = drop_deleted_locations(
        table, keys, replace(tag_result, tagged=tagged.only(is_repeated))
    ).tagged
    is_deleted = pc.and_(is_repeated, pc.invert(pc.is_in(tagged.rows, value_set=live.rows)))
    deleted = tagged.only(is_deleted)
    first = pa.table({"row": deleted.rows, "group": deleted.groups}).group_by("row")
    chosen = first.aggregate([("group", "min")])
    kept = Tagged(*(flat(column) for column in chosen.columns))
    all_pairs = _pairs(tagged, len(tag_result.groups))
    kept_pairs = [_pairs(part, len(tag_result.groups)) for part in (live, kept)]
    is_kept = pc.is_in(all_pairs, value_set=pa.concat_arrays(kept_pairs))
    return replace(tag_result, tagged=tagged.only(pc.or_(pc.invert(is_repeated), is_kept)))


def _may_be_deleted(table: IndexedTable, tag_result: TagResult) -> bool:
    config = table.config
    if not config.is_merge_on_read or not config.populate_meta_fields:
        return False
    return any(group.read_slice.logs for group in tag_result.groups)


def _pairs(tagged: Tagged, groups: int) -> pa.Array[Any]:
    """Return one number for row and group, because Arrow looks up single columns only."""
    return pc.add(pc.multiply(tagged.rows, pa.scalar(groups, pa.int64())), tagged.groups)


def _tag_live(
    table: IndexedTable,
    keys: pa.Array[Any],
    requested: Mapping[int, tuple[FileSlice, pa.Array[Any]]],
) -> Tagged:
    """Return which rows have current records in which groups, of the pairs `requested`."""
    numbers = {slice_.key: number for number, (slice_, _) in requested.items()}
    request, rule = ScanRequest(output=(RECORD_KEY,)), merge_rule(table.table)
    slices = [slice_ for slice_, _ in requested.values()]
    tasks = []
    for slice_read in slice_tasks(table.table, request, slices, rule):
        number = numbers[slice_read.slice.key]
        rows = requested[number][1]
        tasks.append(
            LiveKeysTask(replace(slice_read, path_values=()), number, rows, keys.take(rows))
        )
    engine = engine_for_slices(table.engine, table.storage, slices)
    results = engine.run(find_live_keys, tasks, label="look for record keys")
    columns = (pa.chunked_array([part[at] for part in results], pa.int64()) for at in range(2))
    return Tagged(*map(flat, columns))
