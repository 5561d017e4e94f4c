"""From counts of rows to files: the driver plans with placeholders, executors fill in the rows.

The driver knows how many rows go where, and no row. It makes the same plan as an embedded write
(`write/plan_partitioned.py`); each file that is to be written is a route, and the rows of one route
meet in one Spark task. Which of several files a new row goes to depends on the row alone, so that a
task that runs again sends it the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import HudiError
from pyhudi.schema.record_keys import PARTITION_PATH, RECORD_KEY
from pyhudi.slices.tagged import row_numbers, split
from pyhudi.slices.write_base import write_file
from pyhudi.slices.write_tasks import BASE_ROW, BaseFileTask, LogFileTask, WriteTask
from pyhudi.spark.balance import number_of
from pyhudi.spark.columns import ACTION, AT, GROUP, HIT, HOME, LEAVES, NEW, SEQ, TASK
from pyhudi.spark.flow import pieces, with_types
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.write.plan_partitioned import with_deletes
from pyhudi.write.plan_rows import by_base_row

ROUTE = "_pyhudi_route"
_HASHES = 1 << 20
"""Places of keys among the new rows of a partition."""


@dataclass(frozen=True)
class Expected:
    """Rows that a plan is made for before they are there: some of a partition's new ones."""

    partition: str
    start: int
    stop: int

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return self.stop - self.start

    def __len__(self) -> int:
        return self.num_rows

    def slice(self, start: int, count: int | None = None) -> Expected:
        """Some of the rows, in their order."""
        first = min(self.start + start, self.stop)
        last = self.stop if count is None else min(first + count, self.stop)
        return Expected(self.partition, first, last)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """There are no rows here."""
        raise HudiError("rows of a Spark write were read on the driver")


@dataclass(frozen=True)
class Route:
    """Says of each row which task writes it."""

    groups: Mapping[tuple[str, str], int]
    """Number of the task by `HOME` and `GROUP`."""
    files: Mapping[str, tuple[tuple[int, int], ...]]
    """By partition path for each task that takes new rows: the place after its last, its number."""
    firsts: Mapping[tuple[str, int], int] | None = None
    """Place of the first new row by partition path and `TASK`; None to place rows by their keys."""
    names: tuple[str, ...] = ()
    """Of the tasks: see `balance.py`."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """The rows with `ROUTE`."""
        names = pa.array(self.names, pa.string())
        for rows in pieces(batches):
            routes = self._to_new_files(rows) if self.firsts is not None else self._routes(rows)
            yield rows.append_column(ROUTE, names.take(routes))

    def _routes(self, rows: pa.Table) -> pa.Array[Any]:
        known = _named(self.groups)
        to_group = _looked_up(known, rows.column(HOME), rows.column(GROUP))
        new = pc.equal(rows.column(ACTION), NEW)
        numbers = pc.indices_nonzero(new).cast(pa.int64())
        if not len(numbers):
            return to_group
        fresh = rows.take(numbers)
        hashed = _native.key_parts(fresh.column(RECORD_KEY).combine_chunks(), _HASHES)
        at = pc.index_in(row_numbers(rows.num_rows), value_set=numbers)
        homes = fresh.column(HOME).combine_chunks()
        to_new = self._new(homes, hashed.cast(pa.int64()), by_hash=True)
        return pc.coalesce(to_group, to_new.take(at))

    def _to_new_files(self, rows: pa.Table) -> pa.Array[Any]:
        known = _named(self.firsts or {})
        paths = rows.column(PARTITION_PATH).combine_chunks()
        first = _looked_up(known, paths, rows.column(TASK).cast(pa.string()))
        places = pc.add(first, rows.column(AT).combine_chunks())
        return self._new(paths, places, by_hash=False)

    def _new(self, homes: pa.Array[Any], places: pa.Array[Any], *, by_hash: bool) -> Any:
        """The task of each new row, by its place or hash."""
        numbers, routes = [pa.array([], pa.int64())], [pa.array([], pa.int64())]
        for path, of_path in split(homes, row_numbers(len(homes))):
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


def _named(numbers: Mapping[tuple[str, Any], int]) -> tuple[pa.Array[Any], pa.Array[Any]]:
    names = [f"{path}{_BETWEEN}{name}" for path, name in numbers]
    return pa.array(names, pa.string()), pa.array(list(numbers.values()), pa.int64())


def _looked_up(known: tuple[pa.Array[Any], pa.Array[Any]], paths: Any, names: Any) -> Any:
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

    tasks: tuple[WriteTask, ...]
    """Without rows, by number of the route."""
    known: tuple[int, ...]
    """How many rows are not new, by route."""
    added: tuple[int, ...]
    """How many new rows each task was planned with."""
    schema: pa.Schema
    """Of rows with record key and partition path, as the table has it."""
    order: tuple[str, ...] = ()
    """What the rows of a new file are sorted by."""

    def __call__(self, route: str, rows: pa.Table, attempt: Attempt) -> list[Written]:
        """As `Engine.exchange` has it."""
        number = number_of(route)
        order = [(name, "ascending") for name in (*self.order, SEQ)]
        rows = rows.take(pc.sort_indices(rows, sort_keys=order))
        task = self._filled(number, rows)
        # The task's number goes into names and sequence numbers, which one Spark task may make for
        # several files.
        return [Written(write_file(task, replace(attempt, task=number)), rows.num_rows)]

    def _filled(self, number: int, rows: pa.Table) -> WriteTask:
        task = self.tasks[number]
        if ACTION not in rows.column_names:
            return self._with_rows(task, rows, None, new=rows.num_rows, planned=self.added[number])
        hit, new, gone = (_only(rows, action) for action in (HIT, NEW, LEAVES))
        if hit.num_rows + gone.num_rows != self.known[number]:
            raise HudiError(
                "the rows changed between two jobs of one write",
                hint="Give a DataFrame that gives the same rows each time, or store it first.",
            )
        both = pa.concat_tables([hit, new])
        base_rows = both.column(BASE_ROW).combine_chunks()
        if both.num_rows:
            task = self._with_rows(
                task, both, base_rows, new=new.num_rows, planned=self.added[number]
            )
        return _with_deletes(task, gone) if gone.num_rows else task

    def _with_rows(
        self,
        task: WriteTask,
        rows: pa.Table,
        base_rows: pa.Array[Any] | None,
        *,
        new: int,
        planned: int,
    ) -> WriteTask:
        table = with_types(rows, self.schema)
        at = table.schema.get_field_index(PARTITION_PATH)
        paths = pa.repeat(pa.scalar(task.partition), table.num_rows)
        table = table.set_column(at, table.schema.field(at), paths)
        if isinstance(task, LogFileTask):
            known = None if task.group.is_new else base_rows
            return replace(task, rows=by_base_row(table, known))
        return replace(task, rows=table, inserts=task.inserts + new - planned)


def _only(rows: pa.Table, action: int) -> pa.Table:
    return rows.filter(pc.equal(rows.column(ACTION), action))


def _with_deletes(task: WriteTask, gone: pa.Table) -> WriteTask:
    """The task, whose counts have them already, with the keys to delete."""
    keys = gone.column(RECORD_KEY).combine_chunks()
    if isinstance(task, BaseFileTask):
        return replace(task, delete_keys=keys)
    paths = pa.repeat(pa.scalar(task.partition), len(keys))
    deletes = pa.table({RECORD_KEY: keys, PARTITION_PATH: paths})
    return replace(task, delete_keys=by_base_row(deletes, gone.column(BASE_ROW).combine_chunks()))


# --- on the driver --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Routes:
    """The tasks of a write by number, and what tells rows theirs."""

    tasks: tuple[WriteTask, ...]
    files: Mapping[str, tuple[tuple[int, int], ...]]
    added: tuple[int, ...]
    numbers: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By partition path and file id."""

    @classmethod
    def of(cls, tasks: Sequence[WriteTask]) -> Routes:
        """Of tasks that were planned with `Expected` rows."""
        files: dict[str, list[tuple[int, int]]] = {}
        added = []
        for number, task in enumerate(tasks):
            parts = list(_expected(task))
            for part in parts:
                files.setdefault(part.partition, []).append((part.stop, number))
            added.append(sum(part.num_rows for part in parts))
        bare = [replace(task, rows=None, delete_keys=None) for task in tasks]
        return cls(
            tuple(bare),
            {path: tuple(sorted(stops)) for path, stops in files.items()},
            tuple(added),
            {(task.partition, task.file_id): number for number, task in enumerate(tasks)},
        )


def check_all_written(written: int, total: int) -> None:
    """Raises `HudiError` where not as many rows came to the files as were counted."""
    if written != total:
        raise HudiError(
            f"{total} rows were counted and {written} written: they changed between two jobs",
            hint="Give a DataFrame that gives the same rows each time, or store it first.",
        )


def _expected(task: WriteTask) -> Iterable[Expected]:
    rows: Any = task.rows
    for part in getattr(rows, "parts", (rows,)):
        if isinstance(part, Expected) and part.stop >= 0:
            yield part


TAGGED_ROWS = Expected("", -1, -1)
"""Stands for rows of a file group, which are counted elsewhere."""


def counted_deletes(task: WriteTask, count: int) -> WriteTask:
    """The task with so many deletes of keys counted, which executors bring."""
    task = with_deletes(task, pa.array([], pa.string()))
    if isinstance(task, BaseFileTask):
        return replace(task, updates=task.updates + count)
    return replace(task, deletes=task.deletes + count)
