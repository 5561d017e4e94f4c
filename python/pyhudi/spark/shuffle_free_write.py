"""A bulk insert without a shuffle: each Spark task writes its rows to its own new files."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pyarrow as pa
from pyspark.sql import DataFrame

from pyhudi.config.file_names import plain_file_id
from pyhudi.slices.write_base import write_file
from pyhudi.spark.engine import attempt_of
from pyhudi.spark.executor_steps import RemoteContext, collect, map_batches
from pyhudi.spark.internal_columns import SEQ
from pyhudi.spark.key_steps import Batches, KeyRows
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.txn.conflicts import FileGroups
from pyhudi.write.assigned_rows import WRITE_LABEL, WRITE_STAGE
from pyhudi.write.file_assignment import Counts, PlannedFile, plan_new_files
from pyhudi.write.input_rows import buffer_rows
from pyhudi.write.row_counters import RowCounters
from pyhudi.write.row_sizes import RowRange
from pyhudi.write.write_context import WriteContext

_FILE_BITS = 14
"""A file's number is its task's number, followed by its number in the task in this many bits."""
_STATS = pa.schema([("stats", pa.binary())])


@dataclass(frozen=True)
class UnshuffledRows:
    """Rows that each task writes to its own files, not counted before (see `AssignedRows`)."""

    context: WriteContext
    data: DataFrame
    step: WriteWithoutShuffle
    counts: Counts = field(default_factory=lambda: Counts(()))
    kept_in_partition: int = 0
    cross_partition_duplicates: int = 0
    existing_counts: list[int] = field(default_factory=list)
    """For each finished task, the number of its rows whose keys are in the table."""
    deleted_keys: Mapping[int, pa.Array[Any] | None] = field(default_factory=dict)
    missing_keys: pa.Table | None = None
    groups_read: FileGroups = frozenset()

    @property
    def inserted_duplicates(self) -> int:
        """Number of rows with existing keys, available once the rows are written."""
        return sum(self.existing_counts)

    def count_existing_keys(self) -> UnshuffledRows:
        """Return the rows with a count of those whose keys are in the table."""
        return replace(self, step=replace(self.step, count_existing=True))

    def after_recovery(self) -> UnshuffledRows:
        """Return the rows after the recovery that precedes a write."""
        return replace(self, context=self.context.recover())

    def row_ranges(self) -> Mapping[str, Sequence[RowRange]]:
        """Return no row_ranges: no plan is made with them."""
        return {}

    def write(self, files: Sequence[PlannedFile], instant: str) -> list[tuple[WriteStat, ...]]:  # noqa: ARG002
        """Write the rows to as many files as they need; no file is planned."""
        step = self.step.in_write(self.context, instant)
        frame = map_batches(self.data, step, _STATS)
        written = collect(frame, WRITE_LABEL, self.context.engine, _unpickle_stats)
        self.existing_counts.extend(existing for _, existing in written)
        return [stats for stats, _ in written]


def _unpickle_stats(row: Any) -> Any:
    return pickle.loads(row[0])  # noqa: S301  our own tasks made it


def _file_ids(instant: str, task: int) -> Iterator[str]:
    """Yield the same ids for each attempt of a task: leftover files belong to the same groups."""
    for number in count():
        yield plain_file_id(str(uuid5(NAMESPACE_URL, f"{instant}/{task}/{number}")))


@dataclass(frozen=True)
class WriteWithoutShuffle:
    """Adds keys to rows and writes them; the result is pickled statistics."""

    context: RemoteContext
    keys: KeyRows
    schema: pa.Schema
    """Schema of keyed rows."""
    memory_limit: int
    instant: str = ""
    """Instant of the write."""
    count_existing: bool = False
    """Count rows whose keys are in the table."""

    @classmethod
    def of(
        cls, context: WriteContext, empty: pa.Table, schema_mode: str, memory_limit: int
    ) -> WriteWithoutShuffle:
        """Return the step for rows with an empty table's schema. Raises as `KeyRows.of` does."""
        keys, schema = KeyRows.of(context, empty, schema_mode, generate=True)
        return cls(keys.context, keys, schema, memory_limit)

    def in_write(self, context: WriteContext, instant: str) -> WriteWithoutShuffle:
        """Return the step in a started write, after the recovery."""
        remote = RemoteContext.of(context, None if self.count_existing else ())
        return replace(self, context=remote, instant=instant)

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Write the rows, as a step of `map_batches`."""
        yield pa.table({"stats": [pickle.dumps(self.write_rows(batches))]}, schema=_STATS)

    def write_rows(self, batches: Batches) -> tuple[tuple[WriteStat, ...], int]:
        """Write the rows of one Spark task; also returns how many have keys in the table."""
        keyed = (rows.drop_columns([SEQ]) for rows in self.keys(batches))
        with ExitStack() as stack:
            chunks = chain([self.schema.empty_table()], keyed)
            counters = RowCounters()
            rows = buffer_rows(stack, self.context, chunks, self.memory_limit, counters)
            assigned = (rows.count_existing_keys() if self.count_existing else rows).for_new_files()
            attempt = attempt_of(WRITE_STAGE)
            files = plan_new_files(
                self.context.target(self.instant),
                assigned.row_ranges(),
                new_file_id=partial(next, _file_ids(self.instant, attempt.task)),
            )
            first = attempt.task << _FILE_BITS
            stats = tuple(
                stat
                for number, file in enumerate(files)
                for stat in write_file(
                    assigned.fill_task(file), replace(attempt, task=first + number)
                )
            )
            return stats, counters.inserted_duplicates
