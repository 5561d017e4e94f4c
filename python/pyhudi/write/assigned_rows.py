"""Rows of this process by where they go: in memory, in local files, or made when they are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.cached_property import cached_property
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine.local import choose_io_engine
from pyhudi.slices import write_tasks
from pyhudi.slices.write_base import write_file
from pyhudi.slices.write_tasks import BASE_ROW, BaseFileTask, FileGroup, WriteTask
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.txn.conflicts import FileGroups
from pyhudi.write.file_assignment import Counts, PlannedFile, Updates
from pyhudi.write.row_sizes import CutRows, Stretch, stretches
from pyhudi.write.write_context import WriteContext

WRITE_STAGE = 1


@dataclass(frozen=True)
class GroupRows:
    """Rows of one file group, with its partition path."""

    rows: write_tasks.RowStream
    count: int
    deletes: int = 0
    """Those among them that delete their keys."""
    base_rows: pa.Array[Any] | None = None
    """For each the row of the group's base file; null where that is not known."""


@dataclass(frozen=True)
class LeavingKeys:
    """Record keys to be deleted from one file group."""

    keys: pa.Array[Any]
    base_rows: pa.Array[Any] | None = None


@dataclass(frozen=True)
class PlacedRows:
    """See `rows.AssignedRows`."""

    context: WriteContext
    groups: Sequence[FileGroup] = ()
    updates: Mapping[int, GroupRows] = field(default_factory=dict)
    """By number of the file group."""
    leaving: Mapping[int, LeavingKeys] = field(default_factory=dict)
    inserts: Mapping[str, CutRows] = field(default_factory=dict)
    """By partition path."""
    kept_away: int = 0
    known: int = 0
    cross_partition_duplicates: int = 0
    absent: pa.Table | None = None
    seen: FileGroups = frozenset()

    @cached_property
    def counts(self) -> Counts:
        """How many rows go where."""
        return Counts(
            self.groups,
            {number: Updates(part.count, part.deletes) for number, part in self.updates.items()},
            {number: len(gone.keys) for number, gone in self.leaving.items()},
            {partition: len(rows) for partition, rows in self.inserts.items()},
        )

    def also_in(self, partitions: Iterable[str]) -> PlacedRows:
        """With partitions that get no rows, besides those that get some."""
        none = {path: pa.table({}) for path in partitions if path not in self.inserts}
        return replace(self, inserts={**self.inserts, **none})

    @property
    def leaving_keys(self) -> Mapping[int, pa.Array[Any] | None]:
        """Keys to be deleted by number of the file group."""
        return {number: gone.keys for number, gone in self.leaving.items()}

    def stretches(self) -> Mapping[str, Sequence[Stretch]]:
        """The new rows by partition path, with their bytes in base files."""
        return stretches(self.inserts, self.context.options)

    def write(self, files: Sequence[PlannedFile], instant: str) -> Iterable[tuple[WriteStat, ...]]:
        """Writes the files, each with the rows that it takes."""
        tasks = [self.fill_task(file) for file in files]
        label = f"write files of {instant}"
        size = sum(map(_size, tasks))
        engine = choose_io_engine(self.context.engine, self.context.storage, size)
        return engine.run(write_file, tasks, stage=WRITE_STAGE, label=label)

    def fill_task(self, file: PlannedFile) -> WriteTask:
        """The task of a file with its rows."""
        updates = gone = None
        if file.group is not None:
            updates, gone = self.updates.get(file.group), self.leaving.get(file.group)
        parts = [updates.rows] if updates else []
        if file.inserts:
            new = self.inserts[file.task.partition]
            parts.append(new.slice(file.inserts.start, len(file.inserts)))
        rows = _Joined(tuple(parts)) if len(parts) > 1 else parts[0] if parts else None
        return with_rows(file.task, rows, updates.base_rows if updates else None, gone)


def _size(task: WriteTask) -> int:
    """Bytes that a task reads and writes, at a guess."""
    rows = (task.inserts + task.updates) * task.target.options.record_size_estimate
    if isinstance(task, BaseFileTask) and task.previous is not None:
        return task.previous.size + rows
    return rows


def with_rows(
    task: WriteTask,
    rows: write_tasks.RowStream | None,
    base_rows: pa.Array[Any] | None = None,
    gone: LeavingKeys | None = None,
) -> WriteTask:
    """A planned task with what it writes. base_rows: as of `GroupRows`, of tables alone."""
    if isinstance(task, BaseFileTask):
        return replace(task, rows=rows, delete_keys=gone.keys if gone else None)
    if rows is not None:
        rows = _by_base_row(rows, base_rows)
    if gone is None:
        return replace(task, rows=rows)
    paths = pa.repeat(pa.scalar(task.partition), len(gone.keys))
    deletes = pa.table({RECORD_KEY: gone.keys, PARTITION_PATH: paths})
    return replace(task, rows=rows, delete_keys=_by_base_row(deletes, gone.base_rows))


def _by_base_row(rows: Any, base_rows: pa.Array[Any] | None) -> Any:
    """The rows in the order of the base file's, whose numbers come along; as given without them.

    Only where all numbers are known: else a log block cannot tell positions.
    """
    if base_rows is None or base_rows.null_count:
        return rows
    order = pc.sort_indices(base_rows)
    return rows.append_column(BASE_ROW, base_rows).take(order)


def in_partition(rows: pa.Table, partition: str | pa.Array[Any]) -> pa.Table:
    """The rows with the partition path, or one path each, of the file groups that they go to."""
    at = rows.schema.get_field_index(PARTITION_PATH)
    paths = partition
    if isinstance(partition, str):
        paths = pa.repeat(pa.scalar(partition), rows.num_rows)
    return rows.set_column(at, rows.schema.field(at), paths)


@dataclass(frozen=True)
class _Joined:
    """The rows of several parts, one after the other."""

    parts: tuple[write_tasks.RowStream, ...]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        readers = [pa.RecordBatchReader.from_stream(part) for part in self.parts]
        batches = (batch for reader in readers for batch in reader)
        whole = pa.RecordBatchReader.from_batches(readers[0].schema, batches)
        return whole.__arrow_c_stream__(requested_schema)
