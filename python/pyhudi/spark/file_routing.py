"""Routes rows to planned files and writes them on executors.

The driver has the row counts of each destination, and no rows. Each planned file is a route, and
one Spark task gets all rows of a route. The file of a new row depends on the row only, so a retried
task sends it to the same file.

Spark assigns a route to a partition by the hash of its name, and a few names seldom have hashes of
different partitions: one task would write three of four files. `route_names` looks for names with
suitable hashes. If Spark changed its hash, only the balance would be lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pyhudi import _native
from pyhudi.config.formatting import count_text
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
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.write.assigned_rows import DeletedKeys, with_partition, with_rows
from pyhudi.write.file_assignment import PlannedFile

DIGITS = 8
"""Digits of the route's number at the beginning of its name."""
_TRIES = 16
_SEED = 42
_BITS = 0xFFFFFFFF


def shuffle_partitions(spark: SparkSession) -> int:
    """Return the number of shuffle partitions, before Spark joins small ones."""
    configured = spark.conf.get("spark.sql.shuffle.partitions")
    first = spark.conf.get("spark.sql.adaptive.coalescePartitions.initialPartitionNum", None)
    return int(first or configured or 1)


def route_names(count: int, partitions: int) -> tuple[str, ...]:
    """Return a name for each route, in their order."""
    loads = [0] * partitions
    names = []
    for number in range(count):
        tries = [f"{number:0{DIGITS}d}{salt:04d}" for salt in range(_TRIES)]
        slots = [spark_hash(name.encode()) % partitions for name in tries]
        chosen = min(range(_TRIES), key=lambda at: loads[slots[at]])
        loads[slots[chosen]] += 1
        names.append(tries[chosen])
    return tuple(names)


def route_number(name: str) -> int:
    """Return the number of a route."""
    return int(name[:DIGITS])


def spark_hash(data: bytes) -> int:
    """Return Spark's hash of whole words as a signed integer (`Murmur3_x86_32`, 3.5 and 4)."""
    result = _SEED
    for start in range(0, len(data), 4):
        word = int.from_bytes(data[start : start + 4], "little")
        word = _rotate(word * 0xCC9E2D51 & _BITS, 15) * 0x1B873593 & _BITS
        result = (_rotate(result ^ word, 13) * 5 + 0xE6546B64) & _BITS
    result ^= len(data)
    result = (result ^ result >> 16) * 0x85EBCA6B & _BITS
    result = (result ^ result >> 13) * 0xC2B2AE35 & _BITS
    result ^= result >> 16
    return result - (result >> 31 << 32)


def _rotate(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & _BITS


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
    """Names of the tasks: see `route_names`."""

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
        both, deleted_keys = pa.concat_tables([hit, new]), None
        if deleted.num_rows:
            keys, base_rows = (_column(deleted, name) for name in (RECORD_KEY, BASE_ROW))
            deleted_keys = DeletedKeys(keys, base_rows)
        typed = self._cast_rows(file, both) if both.num_rows else None
        return with_rows(
            _with_row_count(file, new.num_rows), typed, _column(both, BASE_ROW), deleted_keys
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
            f"counted {count_text(total, 'row')}, wrote {written}: they changed between two jobs",
            hint="Give a DataFrame that gives the same rows each time, or store it first.",
        )
