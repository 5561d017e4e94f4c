"""The rows that a filter finds in one slice: how many, their keys, or they with new values.

Runs on an engine's workers; what goes back to the caller is little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.engine.protocol import Attempt
from pyhudi.schema.computed import SetValue, project
from pyhudi.schema.conform import conform, data_schema
from pyhudi.schema.kept_values import KeptValues
from pyhudi.schema.record_keys import PARTITION_PATH, RECORD_KEY
from pyhudi.slices.read import read_task
from pyhudi.slices.read_tasks import ReadTask


def count_rows(task: ReadTask, _attempt: Attempt) -> int:
    """How many rows the task gives."""
    return sum(batch.num_rows for batch in read_task(task))


def distinct_rows(task: ReadTask, _attempt: Attempt) -> pa.Table:
    """The rows that the task gives, equal ones once. For a task of a few key columns."""
    schema = pa.schema([task.schema.field(name) for name in task.output])
    rows = pa.Table.from_batches(read_task(task), schema)
    return rows.group_by(list(task.output)).aggregate([]).combine_chunks()


@dataclass(frozen=True)
class ChangedRows:
    """The rows that a read task gives, with other values in some columns: an Arrow stream.

    The task's columns are the record key, the partition path, then the table's columns.
    """

    task: ReadTask
    changes: Mapping[str, SetValue]
    null_elements: bool = False
    """Lists that are set may have some."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, a batch in memory at a time.

        Raises `SchemaMismatch` for values that do not fit their columns.
        """
        for batch in read_task(self.task):
            yield from self.changed(pa.Table.from_batches([batch])).to_batches()

    def changed(self, rows: pa.Table) -> pa.Table:
        """Rows with the new values."""
        schema = data_schema(self.task.schema)
        new = project(rows, self.changes)
        columns = {
            name: (new if name in self.changes else rows).column(name) for name in schema.names
        }
        stored = set(schema.names) - set(self.changes)
        data = conform(pa.table(columns), schema, stored=stored, null_elements=self.null_elements)
        for place, name in enumerate((RECORD_KEY, PARTITION_PATH)):
            data = data.add_column(place, name, rows.column(name))
        return data.combine_chunks()

    def reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
        empty = pa.schema([self.task.schema.field(name) for name in self.task.output])
        schema = self.changed(empty.empty_table()).schema
        return pa.RecordBatchReader.from_batches(schema, self.batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)


@dataclass(frozen=True)
class SettableRows:
    """Rows that are to get other values, and those that they cannot get."""

    rows: ChangedRows
    kept: KeptValues


def count_settable(task: SettableRows, _attempt: Attempt) -> int:
    """How many rows get other values. Raises `UnsupportedTableFeature` where one would not."""
    count = 0
    for batch in read_task(task.rows.task):
        old = pa.Table.from_batches([batch])
        task.kept.check(old, task.rows.changed(old), task.rows.changes)
        count += batch.num_rows
    return count
