"""The rows that a filter finds in one slice: how many, their keys, or they with new values.

Where the slice has other rows of their keys, what is to be written by key cannot be.

Runs on an engine's workers; what goes back to the caller is little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine.protocol import Attempt
from pyhudi.index.duplicate_keys import duplicate_keys_error, find_duplicate_keys
from pyhudi.index.key_reader import KeySource
from pyhudi.input.conform import conform, data_schema
from pyhudi.schema.computed_columns import SetValue, project
from pyhudi.schema.partial_update_checks import IgnoredUpdateValues
from pyhudi.slices.read import read_task
from pyhudi.slices.read_tasks import ReadTask

_KEYS_AT_ONCE = 256 * 1024
"""Keys in memory while copies of them are looked for; each time the base file's are read."""


def count_rows(task: ReadTask, _attempt: Attempt) -> int:
    """How many rows the task gives."""
    return sum(batch.num_rows for batch in read_task(task))


@dataclass(frozen=True)
class FindTask:
    """Find the rows of one slice that a verb changes by their keys."""

    read: ReadTask
    """Gives their record keys."""
    copies: KeySource | None
    """How copies are looked for; None where keys do not repeat."""


def count_updated(task: FindTask, _attempt: Attempt) -> int:
    """How many rows are to be updated.

    Raises `SchemaMismatch` where the base file has several rows of a key of theirs.
    """
    count = 0
    for keys in _some_keys(task.read, _KEYS_AT_ONCE if task.copies else 1):
        count += len(keys)
        if task.copies is not None:
            several = find_duplicate_keys(task.copies, task.read.slice, keys)
            if len(several):
                raise duplicate_keys_error(
                    f"the table has duplicates of the key {several[0].as_py()!r}"
                )
    return count


def keys_to_delete(task: FindTask, _attempt: Attempt) -> tuple[pa.Array[Any], bool]:
    """The keys of the rows that are to be deleted, each once, and whether one has several rows.

    Raises `SchemaMismatch` where not all of these are to be deleted.
    """
    found = _keys(task.read)
    keys = found.unique()
    if task.copies is None:
        return keys, False
    several = find_duplicate_keys(task.copies, task.read.slice, keys)
    if len(several):
        _check_all_found(task.read, found, several)
    return keys, len(several) > 0


def _check_all_found(read: ReadTask, found: pa.Array[Any], several: pa.Array[Any]) -> None:
    """Counts what can be seen, since log records stand for some of the base file's rows."""
    live = _keys(replace(read, where=None))
    seen, asked = (keys.filter(pc.is_in(keys, value_set=several)) for keys in (live, found))
    ones = [pa.repeat(pa.scalar(1), len(seen)), pa.repeat(pa.scalar(-1), len(asked))]
    rows = pa.table({"key": pa.concat_arrays([seen, asked]), "rows": pa.concat_arrays(ones)})
    left = rows.group_by("key", use_threads=False).aggregate([("rows", "sum")])
    left = left.filter(pc.greater(left.column("rows_sum"), 0))
    if left.num_rows:
        key = left.column("key")[0].as_py()
        raise duplicate_keys_error(
            f"the table has duplicates of the key {key!r}, and only some of them are deleted"
        )


def _keys(read: ReadTask) -> pa.Array[Any]:
    """What a task gives whose one column is the record key."""
    batches = [batch.column(0).cast(pa.string()) for batch in read_task(read)]
    return pa.concat_arrays([pa.array([], pa.string()), *batches])


def _some_keys(read: ReadTask, least: int) -> Iterator[pa.Array[Any]]:
    """As `_keys`, at least so many at a time but for the last."""
    held: list[pa.Array[Any]] = []
    for batch in read_task(read):
        held.append(batch.column(0).cast(pa.string()))
        if sum(map(len, held)) >= least:
            yield pa.concat_arrays(held)
            held = []
    if held:
        yield pa.concat_arrays(held)


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
            yield from self.apply(pa.Table.from_batches([batch])).to_batches()

    def apply(self, rows: pa.Table) -> pa.Table:
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
        schema = self.apply(empty.empty_table()).schema
        return pa.RecordBatchReader.from_batches(schema, self.batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)


@dataclass(frozen=True)
class SettableRows:
    """Rows that are to get other values, and those that they cannot get."""

    rows: ChangedRows
    kept: IgnoredUpdateValues


def check_values(task: SettableRows, _attempt: Attempt) -> None:
    """Raises `UnsupportedTableFeature` for values that would not stand."""
    for batch in read_task(task.rows.task):
        old = pa.Table.from_batches([batch])
        task.kept.check(old, task.rows.apply(old), task.rows.changes)
