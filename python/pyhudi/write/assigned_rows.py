"""Assigned rows of this process: in memory, in local files, or computed when they are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.cached_property import cached_property
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine.local import choose_engine
from pyhudi.slices import write_tasks
from pyhudi.slices.write_base import write_file
from pyhudi.slices.write_tasks import BASE_ROW, BaseFileTask, FileGroup, WriteTask
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.txn.conflicts import FileGroups
from pyhudi.write.file_assignment import Counts, PlannedFile, Updates
from pyhudi.write.row_sizes import RowRange, SliceableRows, row_ranges
from pyhudi.write.write_context import WriteContext

WRITE_STAGE = 1
WRITE_LABEL = "write files"


@dataclass(frozen=True)
class GroupRows:
    """Rows assigned to one file group, with its partition path."""

    rows: write_tasks.RowStream
    count: int
    deletes: int = 0
    """Number of rows that delete their keys."""
    base_rows: pa.Array[Any] | None = None
    """For each row its number in the base file; null if unknown."""


@dataclass(frozen=True)
class DeletedKeys:
    """Record keys to delete from one file group."""

    keys: pa.Array[Any]
    base_rows: pa.Array[Any] | None = None


@dataclass(frozen=True)
class AssignedLocalRows:
    """Assigned rows in this process; see `row_protocols.AssignedRows`."""

    context: WriteContext
    groups: Sequence[FileGroup] = ()
    updates: Mapping[int, GroupRows] = field(default_factory=dict)
    """By file group number."""
    deletes: Mapping[int, DeletedKeys] = field(default_factory=dict)
    inserts: Mapping[str, SliceableRows] = field(default_factory=dict)
    """By partition path."""
    kept_in_partition: int = 0
    inserted_duplicates: int = 0
    cross_partition_duplicates: int = 0
    missing_keys: pa.Table | None = None
    groups_read: FileGroups = frozenset()

    @cached_property
    def counts(self) -> Counts:
        """The number of rows by target."""
        return Counts(
            self.groups,
            {number: Updates(part.count, part.deletes) for number, part in self.updates.items()},
            {number: len(deleted.keys) for number, deleted in self.deletes.items()},
            {partition: len(rows) for partition, rows in self.inserts.items()},
        )

    def with_partitions(self, partitions: Iterable[str]) -> AssignedLocalRows:
        """Return the rows with additional partitions that get no rows."""
        none = {path: pa.table({}) for path in partitions if path not in self.inserts}
        return replace(self, inserts={**self.inserts, **none})

    @property
    def deleted_keys(self) -> Mapping[int, pa.Array[Any] | None]:
        """Keys to delete by file group number."""
        return {number: deleted.keys for number, deleted in self.deletes.items()}

    def row_ranges(self) -> Mapping[str, Sequence[RowRange]]:
        """Return ranges of the new rows by partition path, with their bytes in base files."""
        return row_ranges(self.inserts, self.context.options)

    def write(self, files: Sequence[PlannedFile], instant: str) -> Iterable[tuple[WriteStat, ...]]:  # noqa: ARG002
        """Write the files with their assigned rows."""
        tasks = [self.fill_task(file) for file in files]
        size = sum(map(_size, tasks))
        engine = choose_engine(self.context.engine, self.context.storage, size=size)
        return engine.run(write_file, tasks, stage=WRITE_STAGE, label=WRITE_LABEL)

    def fill_task(self, file: PlannedFile) -> WriteTask:
        """Return the task of a planned file with its rows."""
        updates = deleted = None
        if file.group is not None:
            updates, deleted = self.updates.get(file.group), self.deletes.get(file.group)
        parts = [updates.rows] if updates else []
        if file.inserts:
            new = self.inserts[file.task.partition]
            parts.append(new.slice(file.inserts.start, len(file.inserts)))
        rows = _ConcatenatedRows(tuple(parts)) if len(parts) > 1 else parts[0] if parts else None
        return with_rows(file.task, rows, updates.base_rows if updates else None, deleted)


def _size(task: WriteTask) -> int:
    """Estimate the bytes that a task reads and writes."""
    rows = (task.inserts + task.updates) * task.target.options.record_size_estimate
    if isinstance(task, BaseFileTask) and task.previous is not None:
        return task.previous.size + rows
    return rows


def with_rows(
    task: WriteTask,
    rows: write_tasks.RowStream | None,
    base_rows: pa.Array[Any] | None = None,
    deleted: DeletedKeys | None = None,
) -> WriteTask:
    """Return a planned task with its rows. base_rows: see `GroupRows`; only if rows are a table."""
    if isinstance(task, BaseFileTask):
        return replace(task, rows=rows, delete_keys=deleted.keys if deleted else None)
    if rows is not None:
        rows = _by_base_row(rows, base_rows)
    if deleted is None:
        return replace(task, rows=rows)
    paths = pa.repeat(pa.scalar(task.partition), len(deleted.keys))
    deletes = pa.table({RECORD_KEY: deleted.keys, PARTITION_PATH: paths})
    return replace(task, rows=rows, delete_keys=_by_base_row(deletes, deleted.base_rows))


def _by_base_row(rows: Any, base_rows: pa.Array[Any] | None) -> Any:
    """Sort rows by their number in the base file and add that number as a column.

    Rows are returned unchanged if any number is unknown: a log block stores positions of all
    records or none.
    """
    if base_rows is None or base_rows.null_count:
        return rows
    order = pc.sort_indices(base_rows)
    return rows.append_column(BASE_ROW, base_rows).take(order)


def with_partition(rows: pa.Table, partition: str | pa.Array[Any]) -> pa.Table:
    """Replace the partition path of rows with that of their file groups."""
    index = rows.schema.get_field_index(PARTITION_PATH)
    paths = partition
    if isinstance(partition, str):
        paths = pa.repeat(pa.scalar(partition), rows.num_rows)
    return rows.set_column(index, rows.schema.field(index), paths)


@dataclass(frozen=True)
class _ConcatenatedRows:
    """The concatenated rows of several parts."""

    parts: tuple[write_tasks.RowStream, ...]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        readers = [pa.RecordBatchReader.from_stream(part) for part in self.parts]
        batches = (batch for reader in readers for batch in reader)
        all_rows = pa.RecordBatchReader.from_batches(readers[0].schema, batches)
        return all_rows.__arrow_c_stream__(requested_schema)
