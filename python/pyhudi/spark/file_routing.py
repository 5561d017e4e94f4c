"""Routes rows to planned files and writes them on executors.

The driver has the row counts of each destination, and no rows. Each planned file is a route, and
one Spark task gets all rows of a route. The file of a new row depends on the row only, so a retried
task sends it to the same file.
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
from pyhudi.spark.executor_steps import chunks, with_types
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
from pyhudi.spark.shuffle_balance import route_number
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.write.assigned_rows import DeletedKeys, with_partition, with_rows
from pyhudi.write.file_assignment import PlannedFile

ROUTE = "_pyhudi_route"
_HASHES = 1 << 20
"""Number of key hashes among which the new rows of a partition are divided."""


@dataclass(frozen=True)
class Route:
    """Returns the task that writes each row."""

    groups: Mapping[tuple[str, str], int]
    """Number of the task by `DESTINATION` and `GROUP`."""
    files: Mapping[str, tuple[tuple[int, int], ...]]
    """By partition path, for each task with new rows: the end of its range, and its number."""
    firsts: Mapping[tuple[str, int], int] | None = None
    """Offset of the first new row by partition path and `TASK`; None to assign rows by their
    keys."""
    names: tuple[str, ...] = ()
    """Names of the tasks: see `shuffle_balance.py`."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield the rows with `ROUTE`."""
        names = pa.array(self.names, pa.string())
        for rows in chunks(batches):
            routes = self._to_new_files(rows) if self.firsts is not None else self._routes(rows)
            yield rows.append_column(ROUTE, names.take(routes))

    def _routes(self, rows: pa.Table) -> pa.Array[Any]:
        group_numbers = _lookup_arrays(self.groups)
        to_group = _look_up(group_numbers, rows.column(DESTINATION), rows.column(GROUP))
        new = pc.equal(rows.column(ACTION), NEW)
        numbers = pc.indices_nonzero(new).cast(pa.int64())
        if not len(numbers):
            return to_group
        new_rows = rows.take(numbers)
        hashed = _native.key_parts(new_rows.column(RECORD_KEY).combine_chunks(), _HASHES)
        at = pc.index_in(row_numbers(rows.num_rows), value_set=numbers)
        destinations = new_rows.column(DESTINATION).combine_chunks()
        to_new = self._new(destinations, hashed.cast(pa.int64()), by_hash=True)
        return pc.coalesce(to_group, to_new.take(at))

    def _to_new_files(self, rows: pa.Table) -> pa.Array[Any]:
        first_rows = _lookup_arrays(self.firsts or {})
        paths = rows.column(PARTITION_PATH).combine_chunks()
        first = _look_up(first_rows, paths, rows.column(TASK).cast(pa.string()))
        offsets = pc.add(first, rows.column(AT).combine_chunks())
        return self._new(paths, offsets, by_hash=False)

    def _new(self, destinations: pa.Array[Any], positions: pa.Array[Any], *, by_hash: bool) -> Any:
        """Return the task of each new row, by its offset or hash."""
        numbers, routes = [pa.array([], pa.int64())], [pa.array([], pa.int64())]
        for path, of_path in group_values(destinations, row_numbers(len(destinations))):
            files = self.files[path]
            position = positions.take(of_path)
            if by_hash:
                position = pc.shift_right(pc.multiply(position, files[-1][0]), 20)
            at = pa.repeat(pa.scalar(0, pa.int64()), len(of_path))
            for stop, _ in files:
                at = pc.add(at, pc.greater_equal(position, stop).cast(pa.int64()))
            numbers.append(of_path)
            routes.append(pa.array([number for _, number in files], pa.int64()).take(at))
        order = pc.sort_indices(pa.concat_arrays(numbers))
        return pa.concat_arrays(routes).take(order)


_SEPARATOR = "\n"


def _lookup_arrays(numbers: Mapping[tuple[str, Any], int]) -> tuple[pa.Array[Any], pa.Array[Any]]:
    names = [f"{path}{_SEPARATOR}{name}" for path, name in numbers]
    return pa.array(names, pa.string()), pa.array(list(numbers.values()), pa.int64())


def _look_up(numbers: tuple[pa.Array[Any], pa.Array[Any]], paths: Any, names: Any) -> Any:
    both = pc.binary_join_element_wise(paths, names, _SEPARATOR)
    at = pc.index_in(both, value_set=numbers[0])
    at = at.combine_chunks() if isinstance(at, pa.ChunkedArray) else at
    return numbers[1].take(at)


# --- writing --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Written:
    """The result of one route."""

    stats: tuple[WriteStat, ...]
    rows: int
    """Rows of the route."""


@dataclass(frozen=True)
class WriteRoute:
    """Writes the files of one route, with the rows that were routed to it."""

    files: tuple[PlannedFile, ...]
    """Files by number of the route."""
    existing: tuple[int, ...]
    """Number of rows with existing keys, by route."""
    schema: pa.Schema
    """Schema of rows with record key and partition path, as in the table."""
    order: tuple[str, ...] = ()
    """Columns that sort the rows of a new file."""

    def __call__(self, route: str, rows: pa.Table, attempt: Attempt) -> list[Written]:
        """Write a route, as a function for `Engine.exchange`."""
        number = route_number(route)
        order = [(name, "ascending") for name in (*self.order, SEQ)]
        rows = rows.take(pc.sort_indices(rows, sort_keys=order))
        task = self._fill_task(number, rows)
        # Names and sequence numbers contain the task's number, and one Spark task may write several
        # files.
        return [Written(write_file(task, replace(attempt, task=number)), rows.num_rows)]

    def _fill_task(self, number: int, rows: pa.Table) -> WriteTask:
        file = self.files[number]
        if ACTION not in rows.column_names:
            return with_rows(_with_row_count(file, rows.num_rows), self._cast_rows(file, rows))
        hit, new, deleted = (_only(rows, action) for action in (UPDATE, NEW, REMOVE))
        if hit.num_rows + deleted.num_rows != self.existing[number]:
            raise HudiError(
                "the rows changed between two jobs of one write",
                hint="Give a DataFrame that gives the same rows each time, or store it first.",
            )
        both, leaving = pa.concat_tables([hit, new]), None
        if deleted.num_rows:
            keys, base_rows = (_column(deleted, name) for name in (RECORD_KEY, BASE_ROW))
            leaving = DeletedKeys(keys, base_rows)
        typed = self._cast_rows(file, both) if both.num_rows else None
        return with_rows(
            _with_row_count(file, new.num_rows), typed, _column(both, BASE_ROW), leaving
        )

    def _cast_rows(self, file: PlannedFile, rows: pa.Table) -> pa.Table:
        return with_partition(with_types(rows, self.schema), file.task.partition)


def _only(rows: pa.Table, action: int) -> pa.Table:
    return rows.filter(pc.equal(rows.column(ACTION), action))


def _column(rows: pa.Table, name: str) -> pa.Array[Any]:
    return rows.column(name).combine_chunks()


def _with_row_count(file: PlannedFile, new: int) -> WriteTask:
    """Return the task with its actual number of new rows; the plan estimates it by hash."""
    task = file.task
    if isinstance(task, LogFileTask):
        return task
    return replace(task, inserts=task.inserts + new - len(file.inserts))


def check_all_written(written: int, total: int) -> None:
    """Raise `HudiError` unless as many rows were written as were counted."""
    if written != total:
        raise HudiError(
            f"{total} rows were counted and {written} written: they changed between two jobs",
            hint="Give a DataFrame that gives the same rows each time, or store it first.",
        )
