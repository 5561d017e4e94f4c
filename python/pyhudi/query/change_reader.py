"""Execution of change tasks: files to change rows. Nothing is planned here.

Inserts and deletes of single file groups are spilled, and paired by key after all groups: a record
moved if one group deletes it and another inserts it. Memory is bounded: rows above the limit go to
a local file, which is read once per bucket of keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.engine.spill import IN_MEMORY, Spill
from pyhudi.errors import HistoryUnavailable
from pyhudi.query.cdc_files import ChangeTask
from pyhudi.query.row_pairing import MatchTask
from pyhudi.schema.predicates import Where, filter_rows
from pyhudi.slices.read import open_slice
from pyhudi.slices.read_tasks import ReadTask

Task = TypeVar("Task")

LOCATION = "place"
"""Column of the partition path in the rows of `diff_task`."""


def change_task(task: ChangeTask) -> Iterator[pa.RecordBatch]:
    """Yield the changes of one file group in one commit: op, ts_ms, before, after.

    Raises `HistoryUnavailable` for files that were removed since the planning.
    """
    remaining = task.limit
    for read in _rows(_change_logs if task.change_logs else _infer_changes, task):
        times = pa.repeat(pa.scalar(task.instant), read.num_rows)
        columns = [read["op"], times, read["before"], read["after"]]
        batch = pa.RecordBatch.from_arrays(columns, ["op", "ts_ms", "before", "after"])
        batch = _filter_batch(batch, task.where)
        if remaining is not None:
            batch = batch.slice(0, remaining)
            remaining -= batch.num_rows
        if batch.num_rows:
            yield batch
        if remaining == 0:
            return


def diff_task(task: MatchTask) -> Iterator[pa.RecordBatch]:
    """Yield what differs in a file group of two snapshots.

    The columns are op, key, before, after, changed, place.

    An insert or a delete may be half of a record that moved from or to another file group.
    """
    side = task.after or task.before
    partition = side.slice.partition if side else ""
    for read in _rows(match_sides, task):
        yield read.append_column(LOCATION, pa.repeat(pa.scalar(partition), read.num_rows))


def match_sides(task: MatchTask) -> _native.BatchReader:
    """Return the changes between the two sides of a task, from their files."""
    side = task.after or task.before
    logs = None
    if task.touched_logs is not None and side is not None:
        store = side.storage.native
        logs = _native.read_log_keys(store, task.touched_logs, key_fields=task.key_fields)
    return _native.match_changes(
        _open_side(task.before),
        _open_side(task.after),
        schema=task.schema,
        images=len(task.images),
        key_fields=task.key_fields,
        constants=_constants(side),
        only_keys=logs,
        bucket=task.bucket,
        as_json=task.as_json,
    )


def _infer_changes(task: ChangeTask) -> _native.BatchReader:
    return match_sides(task.match)


def _change_logs(task: ChangeTask) -> _native.BatchReader:
    match = task.match
    return _native.read_cdc(
        task.storage.native,
        task.change_logs,
        schema=match.images,
        before=_open_side(match.before),
        after=_open_side(match.after),
        as_json=match.as_json,
    )


def _open_side(side: ReadTask | None) -> _native.BatchReader | None:
    return None if side is None else open_slice(side)


def _constants(side: ReadTask | None) -> list[tuple[str, pa.Array]]:
    """Return columns whose value the partition path determines: the same on both sides."""
    return [(name, pa.array([value])) for name, value in (side.path_values if side else ())]


def _rows(opened: Callable[[Task], _native.BatchReader], task: Task) -> Iterator[pa.RecordBatch]:
    try:
        reader = opened(task)
        try:
            yield from reader
        finally:
            reader.close()
    except FileNotFoundError as error:
        raise HistoryUnavailable(
            f"a file is missing: {error}", hint="The cleaner deletes old files: start later."
        ) from error


def _filter_batch(batch: pa.RecordBatch, where: Where | None) -> pa.RecordBatch:
    if where is None:
        return batch
    matches = filter_rows(pa.Table.from_batches([batch]), where).combine_chunks().to_batches()
    return matches[0] if matches else batch.slice(0, 0)


_KEY = "key"

_SPILL = 4
"""A spill buffers this part of the memory before it writes."""

# Names that no data column has.
_KEY_COLUMN = "_hoodie_record_key"
_LOCATION_COLUMN = "_hoodie_partition_path"


def pair_moved_rows(rows: pa.RecordBatchReader, buffer_bytes: int) -> Iterator[pa.RecordBatch]:
    """Return the rows of `diff_task` over all groups, with moved records as updates or omitted.

    A record that is the same in another file group is not a change.

    buffer_bytes: approximate memory for spilled rows.
    """
    in_memory = min(buffer_bytes // _SPILL, IN_MEMORY)
    deleted, inserted = Spill(rows.schema, in_memory), Spill(rows.schema, in_memory)
    try:
        for batch in rows:
            yield from _rows_of_operation(batch, "u")
            for op, spill in (("d", deleted), ("i", inserted)):
                for part in _rows_of_operation(batch, op):
                    spill.add(part)
        if deleted.size and inserted.size:
            yield from _match_moved_rows(deleted, inserted, buffer_bytes)
        else:
            yield from deleted.read()
            yield from inserted.read()
    finally:
        rows.close()
        deleted.close()
        inserted.close()


def _rows_of_operation(batch: pa.RecordBatch, op: str) -> Sequence[pa.RecordBatch]:
    rows = batch.filter(pc.equal(batch["op"], op))
    return [rows] if rows.num_rows else []


def _match_moved_rows(
    deleted: Spill, inserted: Spill, buffer_bytes: int
) -> Iterator[pa.RecordBatch]:
    images = pa.schema(list(deleted.schema.field("before").type))
    buckets = -(-(deleted.size + inserted.size) // buffer_bytes)
    for bucket in range(buckets):
        reader = _native.match_changes(
            _flat(deleted, "before", images),
            _flat(inserted, "after", images),
            schema=images,
            images=len(images),
            key_fields=[_KEY_COLUMN],
            place=_LOCATION_COLUMN,
            bucket=(bucket, buckets) if buckets > 1 else None,
        )
        for batch in reader:
            yield batch.append_column(LOCATION, pa.nulls(batch.num_rows, pa.string()))


def _flat(spill: Spill, side: str, images: pa.Schema) -> pa.RecordBatchReader:
    """Return the images of one side as columns, with key and location."""
    schema = pa.schema([*images, (_KEY_COLUMN, pa.string()), (_LOCATION_COLUMN, pa.string())])

    def batches() -> Iterable[pa.RecordBatch]:
        for batch in spill.read():
            columns = [*batch[side].flatten(), batch[_KEY], batch[LOCATION]]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
