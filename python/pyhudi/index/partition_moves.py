"""Rows whose partition path changed, under an index that finds keys in every partition.

If rows may move, the old record is deleted and the row goes to its new partition, unless the old
record wins by the ordering fields: then the row goes to the old partition and loses there. A row
that deletes goes to the old partition. If rows may not move, they go to the old partition. Records
that log files have deleted do not exist. Sources:
`HoodieIndexUtils.tagGlobalLocationBackToRecords`, `mergeForPartitionUpdatesIfNeeded`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.merge_mode import BuiltInMode, MergeConfig
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine.protocol import Attempt
from pyhudi.index.key_reader import KeySource
from pyhudi.index.protocol import IndexedTable, TagResult
from pyhudi.slices.bootstrap import source_spec
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.tagged_rows import Tagged, flat, group_values
from pyhudi.slices.task_packing import engine_for_slices

_COMMIT_TIME = "_hoodie_commit_time"
_INCOMING_TIME = "99999999999999999"
"""Commit time of incoming rows in the comparison; later than all others."""

_EXISTS = 1
"""The record exists, and the incoming row wins over it."""
_WINS = 2
"""The record exists, and wins over the incoming row."""


@dataclass(frozen=True)
class CompareRecordsTask:
    """Check which records of a slice exist, and which of them win over incoming rows."""

    source: KeySource
    slice: FileSlice
    merge: MergeConfig
    merge_mode: BuiltInMode
    ordering_fields: tuple[str, ...]
    group: int
    numbers: pa.Array[Any]
    """Numbers of the incoming rows."""
    rows: pa.Table
    """The rows, with record key and partition path in front."""
    compare: bool
    """Whether the result depends on which one wins."""


def resolve_moves(
    table: IndexedTable,
    rows: pa.Table,
    marked_deleted: pa.Array[Any],
    tag_result: TagResult,
    *,
    updates_partition_path: bool,
    is_exact: bool,
) -> TagResult:
    """Decide for each tagged row whether it stays in the old partition or moves.

    rows: the incoming rows with all columns. is_exact: every tagged key exists at its location, and
    only there.
    """
    if is_exact and _are_in_own_partition(rows, tag_result):
        return tag_result
    pairs = pa.table({"row": tag_result.tagged.rows, "group": tag_result.tagged.groups})
    pairs = _with_partition_flags(pairs, rows, marked_deleted, tag_result)
    by_time = table.merge_mode == "EVENT_TIME_ORDERING" and bool(table.config.ordering_fields)
    needs_read = _needs_read(
        pairs, updates_partition_path=updates_partition_path, is_exact=is_exact, by_time=by_time
    )
    states = _read_states(
        table,
        rows,
        pairs.filter(needs_read),
        tag_result,
        compare=updates_partition_path and by_time,
    )
    pairs = pairs.append_column("state", _states_of(pairs, needs_read, states))
    return replace(
        tag_result, tagged=_decide_moves(pairs, updates_partition_path=updates_partition_path)
    )


def _are_in_own_partition(rows: pa.Table, tag_result: TagResult) -> bool:
    """Return whether no row changes its partition, as a rule."""
    tagged = tag_result.tagged
    paths = pa.array([group.slice.partition for group in tag_result.groups], pa.string())
    own = flat(rows.column(PARTITION_PATH)).dictionary_encode()
    groups_of = pc.index_in(paths, value_set=own.dictionary)
    same = pc.equal(own.indices.take(tagged.rows), groups_of.take(tagged.groups))
    return bool(pc.all(pc.fill_null(same, fill_value=False)).as_py())


def _with_partition_flags(
    pairs: pa.Table, rows: pa.Table, marked_deleted: pa.Array[Any], tag_result: TagResult
) -> pa.Table:
    """Add the columns in_own_partition, deletes and has_duplicates.

    has_duplicates: several file groups have the key.
    """
    paths = pa.array([group.slice.partition for group in tag_result.groups], pa.string())
    own = rows.column(PARTITION_PATH).combine_chunks().take(pairs.column("row"))
    counts = pairs.group_by("row").aggregate([("group", "count")])
    repeated_rows = counts.filter(pc.greater(counts.column("group_count"), 1)).column("row")
    return (
        pairs.append_column("in_own_partition", pc.equal(own, paths.take(pairs.column("group"))))
        .append_column("deletes", marked_deleted.take(pairs.column("row")))
        .append_column(
            "has_duplicates", pc.is_in(pairs.column("row"), repeated_rows.combine_chunks())
        )
    )


def _needs_read(
    pairs: pa.Table, *, updates_partition_path: bool, is_exact: bool, by_time: bool
) -> Any:
    """Return the pairs whose records must be read."""
    in_other_partition = pc.invert(pairs.column("in_own_partition"))
    if is_exact:
        return pc.and_(in_other_partition, pa.scalar(updates_partition_path and by_time))
    return pc.or_(in_other_partition, pairs.column("has_duplicates"))


def _read_states(
    table: IndexedTable, rows: pa.Table, pairs: pa.Table, tag_result: TagResult, *, compare: bool
) -> pa.Table:
    """Return columns row, group and state of the pairs whose record exists."""
    if table.merge_mode is None or pairs.num_rows == 0:
        return _NO_STATES
    _, slices = table.groups(
        sorted({_partition(tag_result, group) for group, _ in _by_group(pairs)})
    )
    readable = {slice_.key: slice_ for slice_ in slices}
    tasks = []
    for group, numbers in _by_group(pairs):
        slice_ = tag_result.groups[group].slice
        task = CompareRecordsTask(
            source=table.key_source,
            slice=readable[slice_.key],
            merge=table.config.merge,
            merge_mode=table.merge_mode,
            ordering_fields=table.config.ordering_fields,
            group=group,
            numbers=numbers,
            rows=rows.take(numbers),
            compare=compare,
        )
        tasks.append(task)
    engine = engine_for_slices(table.engine, table.storage, (task.slice for task in tasks))
    return pa.concat_tables(engine.run(find_existing_records, tasks, label="read existing records"))


_NO_STATES = pa.table(
    {name: pa.array([], pa.int64()) for name in ("row", "group", "state")},
)


def _partition(tag_result: TagResult, group: int) -> str:
    return tag_result.groups[group].slice.partition


def _by_group(pairs: pa.Table) -> Iterator[tuple[int, pa.Array[Any]]]:
    return group_values(
        pairs.column("group").combine_chunks(), pairs.column("row").combine_chunks()
    )


def _states_of(pairs: pa.Table, was_read: Any, states: pa.Table) -> pa.Array[Any]:
    """Return the state of each pair; 0 if the record does not exist."""
    group_count = 1 + (pc.max(pairs.column("group")).as_py() or 0)

    def code(table: pa.Table) -> Any:
        # One number for both, because Arrow looks up single columns only.
        code = pc.add(pc.multiply(table.column("row"), group_count), table.column("group"))
        return code.combine_chunks()

    at = pc.index_in(code(pairs), value_set=code(states))
    states_of_pairs = pc.fill_null(states.column("state").combine_chunks().take(at), 0)
    return pc.if_else(was_read.combine_chunks(), states_of_pairs, pa.scalar(_EXISTS, pa.int64()))


def _decide_moves(pairs: pa.Table, *, updates_partition_path: bool) -> Tagged:
    state, in_own_partition = pairs.column("state"), pairs.column("in_own_partition")
    exists = pc.greater(state, 0)
    stays = in_own_partition
    if updates_partition_path:
        stays = pc.or_(stays, pc.or_(pairs.column("deletes"), pc.equal(state, _WINS)))
    else:
        stays = pc.or_(stays, exists)
    kept = pairs.filter(pc.and_(exists, stays))
    moved = pairs.filter(pc.and_(exists, pc.invert(stays)))
    # A key without any record may go to its old location again, in its own partition.
    has_record = pc.is_in(pairs.column("row"), pairs.filter(exists).column("row").combine_chunks())
    restored = pairs.filter(pc.and_(in_own_partition, pc.invert(has_record)))
    restored = (
        restored.group_by("row").aggregate([("group", "min")]).rename_columns(["row", "group"])
    )
    kept = pa.concat_tables([kept.select(["row", "group"]), restored.select(["row", "group"])])
    return Tagged(*map(flat, (*kept.columns, moved.column("row"), moved.column("group"))))


# --- on workers -----------------------------------------------------------------------------------


def find_existing_records(task: CompareRecordsTask, _attempt: Attempt) -> pa.Table:
    """Return columns row, group and state of the task's rows whose record exists in the slice."""
    keys = task.rows.column(RECORD_KEY).combine_chunks()
    existing_keys = (
        _merge_records(task, None, keys, [RECORD_KEY]).column(RECORD_KEY).combine_chunks()
    )
    exists = pc.is_in(keys, value_set=existing_keys)
    states = pc.if_else(exists, pa.scalar(_EXISTS, pa.int64()), pa.scalar(0, pa.int64()))
    if task.compare and len(existing_keys):
        winners = _merge_records(
            task, _with_incoming_meta_columns(task.rows), keys, [RECORD_KEY, _COMMIT_TIME]
        )
        winners = winners.filter(pc.not_equal(winners.column(_COMMIT_TIME), _INCOMING_TIME))
        wins = pc.is_in(keys, value_set=winners.column(RECORD_KEY).combine_chunks())
        states = pc.if_else(pc.and_(exists, wins), pa.scalar(_WINS, pa.int64()), states)
    result = pa.table(
        {
            "row": task.numbers,
            "group": pa.repeat(pa.scalar(task.group, pa.int64()), len(keys)),
            "state": states,
        }
    )
    return result.filter(exists)


def _with_incoming_meta_columns(rows: pa.Table) -> _native.BatchReader:
    return _native.with_meta_columns(
        rows, instant=_INCOMING_TIME, task=0, first_row=0, file_name=""
    )


def _merge_records(
    task: CompareRecordsTask,
    incoming: _native.BatchReader | None,
    keys: pa.Array[Any],
    columns: Sequence[str],
) -> pa.Table:
    """Return the slice's merged records of these keys, with the incoming ones among them."""
    source, slice_ = task.source, task.slice
    read = (*columns, *task.ordering_fields)
    reader, _ = _native.read_slice(
        source.storage.native,
        base=slice_.base.path if slice_.base else None,
        logs=[log.path for log in slice_.logs],
        schema=source.schema,
        columns=columns,
        merge_mode=task.merge_mode,
        ordering_fields=task.ordering_fields,
        delete_field=task.merge.delete_field,
        delete_marker=task.merge.delete_marker,
        valid_instants=source.valid_instants,
        timeline_start=source.timeline_start,
        incoming=incoming,
        null_ordering_loses=True,
        bootstrap=source_spec(source.storage, slice_, source.schema, read),
    )
    batches = [batch.filter(pc.is_in(batch.column(0), value_set=keys)) for batch in reader]
    schema = pa.schema([source.schema.field(name) for name in columns])
    return pa.Table.from_batches(batches, schema)
