"""Steps on executors that give rows their keys, and make one row of those with one key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from pyhudi.errors import HudiError
from pyhudi.index import locate
from pyhudi.schema.record_keys import PARTITION_PATH, RECORD_KEY
from pyhudi.slices.tagged import row_numbers, split
from pyhudi.spark.columns import AT, CROSSED, SEQ, TASK
from pyhudi.spark.flow import pieces, runs, with_types
from pyhudi.spark.remote import RemoteContext
from pyhudi.write.partial_update import partial_rows
from pyhudi.write.partitions import paths_of
from pyhudi.write.write_context import WriteContext

_TASK_BITS = 40

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class KeyRows:
    """Gives rows record key, partition path and number."""

    context: RemoteContext
    mode: str
    """The schema mode, or "partial" for rows with some of the columns."""
    instant: str | None = None
    """What generated keys begin with."""

    @classmethod
    def of(
        cls, context: WriteContext, given: pa.Table, mode: str, *, generate: bool
    ) -> tuple[KeyRows, pa.Schema]:
        """The step for rows with the schema of an empty table, and the schema of what it gives.

        generate: rows may get generated keys. Raises as `keyed` does.
        """
        remote = RemoteContext.of(context)
        instant = (
            context.key_instant() if generate and remote.key_spec().keys_are_generated else None
        )
        step = cls(remote, mode, instant)
        return step, step.keyed(given, (0, 0)).schema

    def keyed(self, given: pa.Table, place: tuple[int, int]) -> pa.Table:
        """Some rows with their keys. place: as `add_keys` takes it. Raises as it does."""
        if self.mode == "partial":
            return partial_rows(self.context, given)
        return self.context.with_keys(given, self.mode, instant=self.instant, place=place)

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """The rows with their keys."""
        task, first = task_number(), 0
        for given in pieces(batches):
            rows = self.keyed(given, (task, first))
            yield numbered(rows, task, first)
            first += rows.num_rows


@dataclass(frozen=True)
class DeleteKeys:
    """Makes record keys and partition paths of what names rows."""

    context: RemoteContext

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """The keys. Raises as `WriteContext.delete_keys` does."""
        task, first = task_number(), 0
        for given in pieces(batches):
            rows, _ = self.context.delete_keys(given)
            yield numbered(rows, task, first)
            first += rows.num_rows


@dataclass(frozen=True)
class PartitionPaths:
    """Makes partition paths of rows that have the partition columns."""

    context: RemoteContext

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Each path about once. Raises as `paths_of` does."""
        for given in pieces(batches):
            yield pa.table({PARTITION_PATH: pc.unique(paths_of(self.context, given))})


@dataclass(frozen=True)
class Combine:
    """Makes one row of those with one key. They come sorted by key and number."""

    context: RemoteContext
    schema: pa.Schema
    """Of the rows, without number."""
    crossed: bool = False
    """Each row tells of those of its key that other partitions would have got."""

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """The rows that are left, with `CROSSED` on demand."""
        task, first = task_number(), 0
        for given in runs(batches, RECORD_KEY):
            rows = with_types(given, self.schema)
            kept = locate.combined(self.context, rows)
            left = numbered(kept, task, first)
            if self.crossed:
                counts = locate.cross_partition_duplicates(self.context, rows, kept)
                left = left.append_column(CROSSED, counts)
            yield left
            first += kept.num_rows


def numbered(rows: pa.Table, task: int, first: int) -> pa.Table:
    """The rows with `SEQ`. first: how many the Spark task has had before."""
    numbers = pc.add(row_numbers(rows.num_rows), (task << _TASK_BITS) + first)
    return rows.append_column(SEQ, numbers)


@dataclass(frozen=True)
class Count:
    """Numbers the rows of each partition path, but those that delete."""

    context: RemoteContext

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """The rows with `TASK` and `AT`, which is null for those that delete."""
        task = task_number()
        seen: dict[str, int] = {}
        for rows in pieces(batches):
            live = pc.indices_nonzero(pc.invert(self.context.marked_deleted(rows)))
            live = live.cast(pa.int64())
            places = [pa.array([], pa.int64())]
            numbers = [pa.array([], pa.int64())]
            paths = rows.column(PARTITION_PATH).combine_chunks()
            for path, of_path in split(paths.take(live), live):
                first = seen.get(path, 0)
                places.append(pc.add(row_numbers(len(of_path)), first))
                numbers.append(of_path)
                seen[path] = first + len(of_path)
            own = row_numbers(rows.num_rows)
            order = pc.index_in(own, value_set=pa.concat_arrays(numbers))
            tasks = pa.repeat(pa.scalar(task, pa.int64()), rows.num_rows)
            yield rows.append_column(TASK, tasks).append_column(
                AT, pa.concat_arrays(places).take(order)
            )


def task_number() -> int:
    """Number of the Spark task among those of its stage."""
    context = TaskContext.get()
    if context is None:
        raise HudiError("not inside a Spark task")
    number: int = context.partitionId()
    return number
