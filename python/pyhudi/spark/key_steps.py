"""Steps on executors that add keys to rows, and combine rows with the same key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.errors import HudiError
from pyhudi.index import tagging
from pyhudi.slices.row_selection import SelectedRows
from pyhudi.slices.tagged_rows import group_values, row_numbers
from pyhudi.spark.executor_steps import RemoteContext, chunks, key_chunks, with_types
from pyhudi.spark.internal_columns import AT, BYTES, CROSSED, EXISTING, SEQ, STRETCH, TASK
from pyhudi.write import row_sizes
from pyhudi.write.duplicate_policy import drop_existing_keys
from pyhudi.write.partial_update import partial_rows
from pyhudi.write.partition_selection import paths_of
from pyhudi.write.row_sizes import RowRange
from pyhudi.write.write_context import WriteContext

_TASK_BITS = 40
_STRETCHES_OF_A_FILE = 8
_SAMPLE_BYTES = 1024 * 1024
_SAMPLES = 64
"""Number of rows of a chunk that are measured."""

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class KeyRows:
    """Adds record key, partition path and number to rows."""

    context: RemoteContext
    mode: str
    """The schema mode, or "partial" for rows with some of the columns."""
    instant: str | None = None
    """Prefix of generated keys."""

    @classmethod
    def of(
        cls, context: WriteContext, data: pa.Table, mode: str, *, generate: bool
    ) -> tuple[KeyRows, pa.Schema]:
        """Return the step for rows with the schema of an empty table, and the schema of its output.

        generate: rows may get generated keys. Raises as `add_keys` does.
        """
        remote = RemoteContext.of(context)
        instant = (
            context.key_instant() if generate and remote.key_spec().keys_are_generated else None
        )
        step = cls(remote, mode, instant)
        return step, step.add_keys(data, (0, 0)).schema

    def add_keys(self, data: pa.Table, row_position: tuple[int, int]) -> pa.Table:
        """Return some rows with their keys. Raises as `WriteContext.with_keys` does.

        row_position: its `place`.
        """
        if self.mode == "partial":
            return partial_rows(self.context, data)
        return self.context.with_keys(data, self.mode, instant=self.instant, position=row_position)

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield the rows with their keys."""
        task, first = task_number(), 0
        for data in chunks(batches):
            rows = self.add_keys(data, (task, first))
            yield add_sequence(rows, task, first)
            first += rows.num_rows


@dataclass(frozen=True)
class DeleteKeys:
    """Computes record keys and partition paths of rows to be deleted."""

    context: RemoteContext

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield the keys. Raises as `WriteContext.delete_keys` does."""
        task, first = task_number(), 0
        for data in chunks(batches):
            rows, _ = self.context.delete_keys(data)
            yield add_sequence(rows, task, first)
            first += rows.num_rows


@dataclass(frozen=True)
class PartitionPaths:
    """Computes partition paths of rows with the partition columns."""

    context: RemoteContext

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield each path about once. Raises as `paths_of` does."""
        for rows in chunks(batches):
            yield pa.table({PARTITION_PATH: pc.unique(paths_of(self.context, rows))})


@dataclass(frozen=True)
class Combine:
    """Combines rows with the same key, which come sorted by key and number."""

    context: RemoteContext
    schema: pa.Schema
    """Schema of the rows, without number."""
    crossed: bool = False
    """Whether combined rows get `CROSSED`."""

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield the combined rows, with `CROSSED` if requested."""
        task, first = task_number(), 0
        for chunk in key_chunks(batches, RECORD_KEY):
            rows = with_types(chunk, self.schema)
            combined = tagging.combine(self.context, rows)
            numbered = add_sequence(combined, task, first)
            if self.crossed:
                counts = tagging.cross_partition_duplicates(self.context, rows, combined)
                numbered = numbered.append_column(CROSSED, counts)
            yield numbered
            first += combined.num_rows


def add_sequence(rows: pa.Table, task: int, first: int) -> pa.Table:
    """Return the rows with `SEQ`. first: number of earlier rows in the Spark task."""
    numbers = pc.add(row_numbers(rows.num_rows), (task << _TASK_BITS) + first)
    return rows.append_column(SEQ, numbers)


@dataclass(frozen=True)
class Count:
    """Numbers and measures the rows of each partition path, except those that delete."""

    context: RemoteContext
    mark_existing: bool = False
    """Whether each row records if the table has its key."""

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield the rows with `COUNTED` and `MEASURED`; of rows that delete, only `TASK` is set."""
        task = task_number()
        counts: dict[str, int] = {}
        bytes_before: dict[str, int] = {}
        for rows in chunks(batches):
            live = pc.indices_nonzero(pc.invert(self.context.find_delete_markers(rows)))
            live = live.cast(pa.int64())
            positions_in_path = [pa.array([], pa.int64())]
            numbers = [pa.array([], pa.int64())]
            sizes = [pa.array([], pa.int64())]
            ends = [pa.array([], pa.int64())]
            paths = rows.column(PARTITION_PATH).combine_chunks()
            parts = dict(group_values(paths.take(live), live))
            for path, size in self._sizes(rows, parts).items():
                end = pc.add(pc.cumulative_sum(size), bytes_before.get(path, 0))
                sizes.append(size)
                ends.append(end)
                bytes_before[path] = end[-1].as_py()
            for path, of_path in parts.items():
                first = counts.get(path, 0)
                positions_in_path.append(pc.add(row_numbers(len(of_path)), first))
                numbers.append(of_path)
                counts[path] = first + len(of_path)
            positions = row_numbers(rows.num_rows)
            order = pc.index_in(positions, value_set=pa.concat_arrays(numbers))
            tasks = pa.repeat(pa.scalar(task, pa.int64()), rows.num_rows)
            flagged = with_existing(self.context, rows) if self.mark_existing else rows
            added = {
                TASK: tasks,
                AT: pa.concat_arrays(positions_in_path).take(order),
                STRETCH: pc.divide(pa.concat_arrays(ends), self._unit).take(order),
                BYTES: pa.concat_arrays(sizes).take(order),
            }
            names, columns = [*flagged.column_names, *added], [*flagged.columns, *added.values()]
            yield pa.Table.from_arrays(columns, names)

    @property
    def _unit(self) -> int:
        """Bytes of a stretch."""
        return max(self.context.options.max_file_size // _STRETCHES_OF_A_FILE, 1)

    def _sizes(
        self, rows: pa.Table, parts: Mapping[str, pa.Array[Any]]
    ) -> dict[str, pa.Array[Any]]:
        """Return the estimated size of each row of a part in a file."""
        data = rows.drop_columns([SEQ])
        selected = {path: SelectedRows(data, numbers) for path, numbers in parts.items()}
        measured = row_sizes.measure(
            selected, self.context.options, sample_bytes=_SAMPLE_BYTES, max_ranges=_SAMPLES
        )
        return {path: _row_sizes(row_ranges) for path, row_ranges in measured.items()}


def _row_sizes(row_ranges: Sequence[RowRange]) -> pa.Array[Any]:
    """Return the bytes of each row of the row_ranges."""
    sizes = [pa.repeat(pa.scalar(size // rows, pa.int64()), rows) for rows, size in row_ranges]
    return pa.concat_arrays(sizes)


@dataclass(frozen=True)
class DropExistingKeys:
    """Skips rows whose keys are in the table, or raises `SchemaMismatch` naming a key."""

    context: RemoteContext
    schema: pa.Schema
    """Schema of the rows, without number."""
    fail: bool

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Yield the rows that are not skipped."""
        task, first = task_number(), 0
        for chunk in chunks(batches):
            rows = with_types(chunk, self.schema)
            new_rows = drop_existing_keys(self.context, rows, fail=self.fail)
            yield add_sequence(new_rows, task, first)
            first += new_rows.num_rows


def with_existing(context: RemoteContext, rows: pa.Table) -> pa.Table:
    """Return the rows with `EXISTING`."""
    existing = tagging.find_existing_keys(context, rows.select([RECORD_KEY, PARTITION_PATH]))
    return rows.append_column(EXISTING, pc.is_in(row_numbers(rows.num_rows), value_set=existing))


def task_number() -> int:
    """Return the number of the Spark task within its stage."""
    context = TaskContext.get()
    if context is None:
        raise HudiError("not inside a Spark task")
    number: int = context.partitionId()
    return number
