"""Counts the rows of a slice that match a filter, reads their keys, or sets new values in them.

Rows whose keys have duplicates in the slice cannot be written by key. An engine's workers run this;
the results are small.
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
from pyhudi.input.row_rules import NO_RULES, RowRules
from pyhudi.schema.column_rules import leave_unchanged
from pyhudi.schema.computed_columns import SetValue, project
from pyhudi.schema.partial_update_checks import IgnoredUpdateValues
from pyhudi.slices.read import read_task
from pyhudi.slices.read_tasks import ReadTask

_KEYS_PER_SEARCH = 256 * 1024
"""Keys in memory per search for duplicates; each search reads the base file's keys."""


def count_rows(task: ReadTask, _attempt: Attempt) -> int:
    """Count the rows of the task."""
    return sum(batch.num_rows for batch in read_task(task))


@dataclass(frozen=True)
class FindTask:
    """Find the rows of one slice that an operation changes by their keys."""

    read: ReadTask
    """Reads their record keys."""
    duplicates_source: KeySource | None
    """Reads duplicates; None if keys are unique."""
    max_key_bytes: int | None = None
    """Maximum bytes of keys to return; None for any number."""


def count_updated(task: FindTask, _attempt: Attempt) -> int:
    """Count the rows to update.

    Raises `SchemaMismatch` if the base file has duplicates of their keys.
    """
    count = 0
    for keys in _key_batches(task.read, _KEYS_PER_SEARCH if task.duplicates_source else 1):
        count += len(keys)
        if task.duplicates_source is not None:
            duplicates = find_duplicate_keys(task.duplicates_source, task.read.slice, keys)
            if len(duplicates):
                raise duplicate_keys_error(
                    f"the table has duplicates of the key {duplicates[0].as_py()!r}"
                )
    return count


def keys_to_delete(task: FindTask, _attempt: Attempt) -> tuple[pa.Array[Any], bool] | None:
    """Return the keys of the rows to delete, each once, and whether there are duplicates.

    None if the keys have too many bytes. Raises `SchemaMismatch` if not all duplicates are to be
    deleted.
    """
    all_keys = _keys(task.read)
    keys = all_keys.unique()
    if task.max_key_bytes is not None and keys.nbytes > task.max_key_bytes:
        return None
    if task.duplicates_source is None:
        return keys, False
    duplicates = find_duplicate_keys(task.duplicates_source, task.read.slice, keys)
    if len(duplicates):
        _check_all_selected(task.read, all_keys, duplicates)
    return keys, len(duplicates) > 0


def _check_all_selected(read: ReadTask, selected: pa.Array[Any], duplicates: pa.Array[Any]) -> None:
    """Compare the visible rows, since log records replace some of the base file's rows."""
    live = _keys(replace(read, where=None))
    visible, deleted = (
        keys.filter(pc.is_in(keys, value_set=duplicates)) for keys in (live, selected)
    )
    signs = [pa.repeat(pa.scalar(1), len(visible)), pa.repeat(pa.scalar(-1), len(deleted))]
    rows = pa.table({"key": pa.concat_arrays([visible, deleted]), "rows": pa.concat_arrays(signs)})
    remaining = rows.group_by("key", use_threads=False).aggregate([("rows", "sum")])
    remaining = remaining.filter(pc.greater(remaining.column("rows_sum"), 0))
    if remaining.num_rows:
        key = remaining.column("key")[0].as_py()
        raise duplicate_keys_error(
            f"the table has duplicates of the key {key!r}, and only some of them are deleted"
        )


def _keys(read: ReadTask) -> pa.Array[Any]:
    """Return the record keys of a task that reads only this column."""
    batches = [batch.column(0).cast(pa.string()) for batch in read_task(read)]
    return pa.concat_arrays([pa.array([], pa.string()), *batches])


def _key_batches(read: ReadTask, min_count: int) -> Iterator[pa.Array[Any]]:
    """Yield the record keys in batches of at least `min_count`, except for the last."""
    buffered: list[pa.Array[Any]] = []
    for batch in read_task(read):
        buffered.append(batch.column(0).cast(pa.string()))
        if sum(map(len, buffered)) >= min_count:
            yield pa.concat_arrays(buffered)
            buffered = []
    if buffered:
        yield pa.concat_arrays(buffered)


def set_new_values(
    rows: pa.Table, schema: pa.Schema, changes: Mapping[str, SetValue], rules: RowRules
) -> pa.Table:
    """Return rows with new values in some columns.

    rows: record key, partition path, then the columns of `schema`. Raises `SchemaMismatch` for
    values that do not fit their columns.
    """
    new = project(rows, changes) if changes else rows
    columns = {name: (new if name in changes else rows).column(name) for name in schema.names}
    stored = set(schema.names) - set(changes)
    data = conform(pa.table(columns), schema, stored=stored, rules=rules)
    for position, name in enumerate((RECORD_KEY, PARTITION_PATH)):
        data = data.add_column(position, name, rows.column(name))
    return data.combine_chunks()


@dataclass(frozen=True)
class ChangedRows:
    """The rows of a read task, with other values in some columns: an Arrow stream.

    The task's columns are the record key, the partition path, then the table's columns.
    """

    task: ReadTask
    changes: Mapping[str, SetValue]
    rules: RowRules = NO_RULES
    """The rules for the new rows."""
    unchanged: tuple[str, ...] = ()
    """Columns with a merge rule: null leaves them as they are."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, one batch in memory at a time.

        Raises `SchemaMismatch` for values that do not fit their columns.
        """
        for batch in read_task(self.task):
            yield from self.apply(pa.Table.from_batches([batch])).to_batches()

    def apply(self, rows: pa.Table) -> pa.Table:
        """Return rows with the new values."""
        schema = data_schema(self.task.schema)
        return leave_unchanged(
            set_new_values(rows, schema, self.changes, self.rules), self.unchanged
        )

    def reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        empty = pa.schema([self.task.schema.field(name) for name in self.task.output])
        schema = self.apply(empty.empty_table()).schema
        return pa.RecordBatchReader.from_batches(schema, self.batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)


@dataclass(frozen=True)
class SettableRows:
    """Rows that get new values, and the values that the merge mode ignores."""

    rows: ChangedRows
    kept: IgnoredUpdateValues


def check_values(task: SettableRows, _attempt: Attempt) -> None:
    """Raise `UnsupportedTableFeature` for values that the merge mode would ignore."""
    for batch in read_task(task.rows.task):
        old = pa.Table.from_batches([batch])
        task.kept.check(old, task.rows.apply(old), task.rows.changes)
