"""Execution of change tasks: files to change rows. Nothing is planned here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa

from pyhudi import _native
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
    """The changes of one file group in one commit: op, ts_ms, before, after.

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
    """The difference between two states of a file group: op, key, before, after, changed, place.

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
