"""Completion of rows that have only some of a table's columns from stored rows of their keys.

Log blocks with some columns would avoid that, and Spark SQL writes them; but they do not lead to
the right row: readers merge this record with the base row that an earlier delete removed, and
fill its missing columns from late rows. Hudi's readers fail on them in commit-time order
(1.0.2 always, 1.2.0 if a record follows a delete), in tables with a column that marks deletes,
and in incremental queries (1.2.0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.meta_columns import META_COLUMNS, RECORD_KEY
from pyhudi.engine.protocol import Attempt
from pyhudi.slices.bootstrap import source_spec
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.merge_rules import field_rules
from pyhudi.slices.read import file_names
from pyhudi.slices.write_tasks import WriteTarget


def fill_missing_columns(target: WriteTarget, rows: pa.Table, stored: FileSlice | None) -> pa.Table:
    """Return the rows with all of the table's columns.

    stored: the slice that may have their keys. Rows with other keys get nulls. Columns with a merge
    rule get nulls in all rows, which leave them unchanged.
    """
    combined = target.merge.column_rules
    for name in (name for name, _ in combined if name not in rows.column_names):
        field = target.schema.field(name)
        rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    row_columns = frozenset((*rows.column_names, *META_COLUMNS))
    missing = [field for field in target.schema if field.name not in row_columns]
    if stored is None or not missing:
        return rows
    keys = rows.column(RECORD_KEY).combine_chunks()
    existing = _existing_values(target, stored, keys, [field.name for field in missing])
    at = pc.index_in(keys, value_set=existing.column(RECORD_KEY).combine_chunks())
    for field in missing:
        rows = rows.append_column(field.with_nullable(True), existing.column(field.name).take(at))
    return rows


@dataclass(frozen=True)
class CompletingTask:
    """Look up the missing columns of incoming rows in one slice."""

    target: WriteTarget
    slice: FileSlice
    numbers: pa.Array[Any]
    """Numbers of the incoming rows."""
    keys: pa.Array[Any]
    """Their record keys."""
    names: tuple[str, ...]
    """The columns."""


NUMBER = "_pyhudi_number"


def read_existing_columns(task: CompletingTask, _attempt: Attempt) -> pa.Table:
    """Return the columns of the task's rows that have a live record, with their numbers."""
    existing = _existing_values(task.target, task.slice, task.keys, list(task.names))
    at = pc.index_in(task.keys, value_set=existing.column(RECORD_KEY).combine_chunks())
    is_live = pc.is_valid(at)
    columns = existing.drop_columns([RECORD_KEY]).take(at.filter(is_live))
    return columns.append_column(NUMBER, task.numbers.filter(is_live))


def _existing_values(
    target: WriteTarget, stored: FileSlice, keys: pa.Array[Any], names: list[str]
) -> pa.Table:
    schema = pa.schema([target.schema.field(name) for name in (RECORD_KEY, *names)])
    reader = read_stored(target, stored, schema.names, keys)
    parts = [batch.filter(pc.is_in(batch.column(RECORD_KEY), value_set=keys)) for batch in reader]
    return pa.Table.from_batches(parts, schema)


def read_stored(
    target: WriteTarget, stored: FileSlice, columns: list[str], keys: pa.Array[Any]
) -> _native.BatchReader:
    """Read rows of a slice; those with other keys may be left out."""
    spec = slice_to_merge(target, stored, columns)
    spec["filters"] = [(RECORD_KEY, "in", keys)]
    return _native.read_slice(target.storage.native, **spec)[0]


def slice_to_merge(target: WriteTarget, stored: FileSlice, columns: list[str]) -> _native.SliceSpec:
    """Return the files of a slice and the merge rule of the table, for the core."""
    return {
        "base": stored.base.path if stored.base else None,
        "logs": [log.path for log in stored.logs],
        "schema": target.schema,
        "columns": columns,
        "merge_mode": target.merge_mode,
        "ordering_fields": target.merge_ordering,
        "delete_field": target.merge.delete_field,
        "delete_marker": target.merge.delete_marker,
        "field_rules": field_rules(target.fields, target.schema),
        "valid_instants": target.valid_instants,
        "timeline_start": target.timeline_start,
        "evolution": file_names(target.evolution, stored),
        "bootstrap": source_spec(target.storage, stored, target.schema, columns),
    }
