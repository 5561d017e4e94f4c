"""From planned files to written ones: executors bring each file its rows.

The driver knows how many rows go where, and no row. Each file that is to be written is a route, and
the rows of one route meet in one Spark task. Which of several files a new row goes to depends on
the row alone, so that a task that runs again sends it the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import HudiError
from pyhudi.slices.tagged_rows import group_values, row_numbers
from pyhudi.slices.write_base import write_file
from pyhudi.slices.write_tasks import BASE_ROW, LogFileTask, WriteTask
from pyhudi.spark.executor_steps import pieces, with_types
from pyhudi.spark.internal_columns import (
    ACTION,
    AT,
    DESTINATION,
    GROUP,
    NEW,
    REMOVE,
    SEQ,
    TASK,
    UPDATE,
)
from pyhudi.spark.shuffle_balance import number_of
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.write.assigned_rows import LeavingKeys, in_partition, with_rows
from pyhudi.write.file_assignment import PlannedFile

ROUTE = "_pyhudi_route"
_HASHES = 1 << 20
"""Places of keys among the new rows of a partition."""


@dataclass(frozen=True)
class Route:
    """Says of each row which task writes it."""

    groups: Mapping[tuple[str, str], int]
    """Number of the task by `DESTINATION` and `GROUP`."""
    files: Mapping[str, tuple[tuple[int, int], ...]]
    """By partition path for each task that takes new rows: the place after its last, its number."""
    firsts: Mapping[tuple[str, int], int] | None = None
    """Place of the first new row by partition path and `TASK`; None to place rows by their keys."""
    names: tuple[str, ...] = ()
    """Of the tasks: see `shuffle_balance.py`."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """The rows with `ROUTE`."""
        names = pa.array(self.names, pa.string())
        for rows in pieces(batches):
            routes = self._to_new_files(rows) if self.firsts is not None else self._routes(rows)
            yield rows.append_column(ROUTE, names.take(routes))

    def _routes(self, rows: pa.Table) -> pa.Array[Any]:
        known = _to_dictionary(self.groups)
        to_group = _look_up(known, rows.column(DESTINATION), rows.column(GROUP))
        new = pc.equal(rows.column(ACTION), NEW)
        numbers = pc.indices_nonzero(new).cast(pa.int64())
        if not len(numbers):
            return to_group
        fresh = rows.take(numbers)
        hashed = _native.key_parts(fresh.column(RECORD_KEY).combine_chunks(), _HASHES)
        at = pc.index_in(row_numbers(rows.num_rows), value_set=numbers)
        destinations = fresh.column(DESTINATION).combine_chunks()
        to_new = self._new(destinations, hashed.cast(pa.int64()), by_hash=True)
        return pc.coalesce(to_group, to_new.take(at))

    def _to_new_files(self, rows: pa.Table) -> pa.Array[Any]:
        known = _to_dictionary(self.firsts or {})
        paths = rows.column(PARTITION_PATH).combine_chunks()
        first = _look_up(known, paths, rows.column(TASK).cast(pa.string()))
        places = pc.add(first, rows.column(AT).combine_chunks())
        return self._new(paths, places, by_hash=False)

    def _new(self, destinations: pa.Array[Any], places: pa.Array[Any], *, by_hash: bool) -> Any:
        """The task of each new row, by its place or hash."""
        numbers, routes = [pa.array([], pa.int64())], [pa.array([], pa.int64())]
        for path, of_path in group_values(destinations, row_numbers(len(destinations))):
            files = self.files[path]
            place = places.take(of_path)
            if by_hash:
                place = pc.shift_right(pc.multiply(place, files[-1][0]), 20)
            at = pa.repeat(pa.scalar(0, pa.int64()), len(of_path))
            for stop, _ in files:
                at = pc.add(at, pc.greater_equal(place, stop).cast(pa.int64()))
            numbers.append(of_path)
            routes.append(pa.array([number for _, number in files], pa.int64()).take(at))
        order = pc.sort_indices(pa.concat_arrays(numbers))
        return pa.concat_arrays(routes).take(order)


_BETWEEN = "\n"


def _to_dictionary(numbers: Mapping[tuple[str, Any], int]) -> tuple[pa.Array[Any], pa.Array[Any]]:
    names = [f"{path}{_BETWEEN}{name}" for path, name in numbers]
    return pa.array(names, pa.string()), pa.array(list(numbers.values()), pa.int64())


def _look_up(known: tuple[pa.Array[Any], pa.Array[Any]], paths: Any, names: Any) -> Any:
    both = pc.binary_join_element_wise(paths, names, _BETWEEN)
    at = pc.index_in(both, value_set=known[0])
    at = at.combine_chunks() if isinstance(at, pa.ChunkedArray) else at
    return known[1].take(at)


# --- writing --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Written:
    """What came of one route."""

    stats: tuple[WriteStat, ...]
    rows: int
    """Rows of the route."""


@dataclass(frozen=True)
class WriteRoute:
    """Writes the files of one route, with the rows that have come for it."""

    files: tuple[PlannedFile, ...]
    """By number of the route."""
    known: tuple[int, ...]
    """How many rows are not new, by route."""
    schema: pa.Schema
    """Of rows with record key and partition path, as the table has it."""
    order: tuple[str, ...] = ()
    """What the rows of a new file are sorted by."""

    def __call__(self, route: str, rows: pa.Table, attempt: Attempt) -> list[Written]:
        """As `Engine.exchange` has it."""
        number = number_of(route)
        order = [(name, "ascending") for name in (*self.order, SEQ)]
        rows = rows.take(pc.sort_indices(rows, sort_keys=order))
        task = self._fill_task(number, rows)
        # The task's number goes into names and sequence numbers, which one Spark task may make for
        # several files.
        return [Written(write_file(task, replace(attempt, task=number)), rows.num_rows)]

    def _fill_task(self, number: int, rows: pa.Table) -> WriteTask:
        file = self.files[number]
        if ACTION not in rows.column_names:
            return with_rows(_with_row_count(file, rows.num_rows), self._cast_rows(file, rows))
        hit, new, gone = (_only(rows, action) for action in (UPDATE, NEW, REMOVE))
        if hit.num_rows + gone.num_rows != self.known[number]:
            raise HudiError(
                "the rows changed between two jobs of one write",
                hint="Give a DataFrame that gives the same rows each time, or store it first.",
            )
        both, leaving = pa.concat_tables([hit, new]), None
        if gone.num_rows:
            keys, base_rows = (_column(gone, name) for name in (RECORD_KEY, BASE_ROW))
            leaving = LeavingKeys(keys, base_rows)
        typed = self._cast_rows(file, both) if both.num_rows else None
        return with_rows(
            _with_row_count(file, new.num_rows), typed, _column(both, BASE_ROW), leaving
        )

    def _cast_rows(self, file: PlannedFile, rows: pa.Table) -> pa.Table:
        return in_partition(with_types(rows, self.schema), file.task.partition)


def _only(rows: pa.Table, action: int) -> pa.Table:
    return rows.filter(pc.equal(rows.column(ACTION), action))


def _column(rows: pa.Table, name: str) -> pa.Array[Any]:
    return rows.column(name).combine_chunks()


def _with_row_count(file: PlannedFile, new: int) -> WriteTask:
    """The task with as many new rows as have come, which by hash are about as many as planned."""
    task = file.task
    if isinstance(task, LogFileTask):
        return task
    return replace(task, inserts=task.inserts + new - len(file.inserts))


def check_all_written(written: int, total: int) -> None:
    """Raises `HudiError` where not as many rows came to the files as were counted."""
    if written != total:
        raise HudiError(
            f"{total} rows were counted and {written} written: they changed between two jobs",
            hint="Give a DataFrame that gives the same rows each time, or store it first.",
        )
