"""Executes a read task: one file slice to record batches. Nothing is planned here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as at

from pyhudi import _native
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.input.type_tests import is_text
from pyhudi.schema.key_generator import add_keys, column_at
from pyhudi.schema.predicate_comparisons import conjuncts_for_footers
from pyhudi.schema.predicates import filter_rows
from pyhudi.schema.table_schema import narrow_column
from pyhudi.slices.bootstrap import source_spec
from pyhudi.slices.file_size_checks import check_slice_sizes
from pyhudi.slices.merge_rules import field_rules
from pyhudi.slices.row_counts import is_whole_base_file

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from pyhudi.engine.protocol import Attempt
    from pyhudi.schema.internal_schema import Evolution, FileNames
    from pyhudi.schema.key_generator import KeySpec
    from pyhudi.schema.predicates import Conjunct
    from pyhudi.slices.file_slice import FileSlice
    from pyhudi.slices.read_tasks import ReadTask
else:
    from pyhudi.schema import lazy_compute as pc

_MAX_LITERALS = 64
_ROW = ""
"""Name of the row number: no column of a table has this name."""


def read_task(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a slice that the task requests, in its output columns.

    Module-level and with a picklable task, so that every engine can run it.
    """
    remaining = task.limit
    reader = open_slice(task)
    try:
        for read in reader:
            batch = (_read_matches_as_stored if task.as_stored else _read_matches)(read, task)
            if remaining is not None:
                batch = batch.slice(0, remaining)
                remaining -= batch.num_rows
            if batch.num_rows:
                yield batch.select(list(task.output))
            if remaining == 0:
                return
    finally:
        reader.close()


def count_task(task: ReadTask, _attempt: Attempt) -> int:
    """Count the rows of `read_task`; by the footer, if the task reads a whole base file."""
    base = task.slice.base
    if base is None or not is_whole_base_file(task):
        return sum(batch.num_rows for batch in read_task(task))
    check_slice_sizes(task.storage, task.slice)
    return _native.base_file_rows(task.storage.native, base.path)


def _complete(task: ReadTask) -> ReadTask:
    """Return the task for the whole slice if a part of it cannot be read alone."""
    if task.whole is None:
        return task
    logs = [log.path for log in task.slice.logs]
    if not _native.has_partial_records(task.storage.native, logs):
        return task
    return replace(task, slice=task.whole.slice, merge=task.whole.merge)


def open_slice(task: ReadTask) -> _native.BatchReader:
    """Open the columns that a task needs, as stored: without filter, limit and path values."""
    return open_counted(task)[0]


def open_counted(task: ReadTask) -> tuple[_native.BatchReader, _native.MergeStats]:
    """Open a slice as `open_slice` does, with counters that are final at the reader's end."""
    return _native.read_slice(task.storage.native, **spec_of_matches(task))


def spec_of_matches(task: ReadTask) -> _native.SliceSpec:
    """Return `slice_spec` after a check of the task's files."""
    task = _complete(task)
    check_slice_sizes(task.storage, task.slice)
    return slice_spec(task)


def slice_spec(task: ReadTask) -> _native.SliceSpec:
    """Return the files of a task's slice and its merge rule, for the core."""
    merge = task.merge
    return {
        "base": task.slice.base.path if task.slice.base else None,
        "logs": [log.path for log in task.slice.logs],
        "schema": task.schema,
        "columns": _read_columns(task),
        "merge_mode": merge.mode,
        "ordering_fields": merge.ordering_fields,
        "key_fields": merge.key_fields,
        "delete_field": merge.delete_field,
        "delete_marker": merge.delete_marker,
        "max_instant": merge.max_instant,
        "valid_instants": merge.valid_instants,
        "timeline_start": merge.timeline_start,
        "drops_repeated": merge.drops_repeated,
        "filters": _pruning(task),
        "base_instant": task.slice.base.instant if task.slice.base else None,
        "field_rules": field_rules(task.merge.fields, task.schema),
        "memory_limit": task.memory_limit,
        "evolution": file_names(task.evolution, task.slice),
        "bootstrap": source_spec(task.storage, task.slice, task.schema, _read_columns(task)),
        "plain_key": merge.plain_key,
        "two_threads": task.two_threads,
        "base_part": task.base_part,
    }


def file_names(evolution: Evolution | None, slice_: FileSlice) -> FileNames | None:
    """Return the column names in the files of a slice, for the core."""
    if evolution is None:
        return None
    return evolution.maps, evolution.versions, slice_.base.instant if slice_.base else ""


def _read_columns(task: ReadTask) -> list[str]:
    """Return the columns to read from files: at least one, to count the rows."""
    from_path = set() if task.as_stored else {name for name, _ in task.path_values}
    return [n for n in task.columns if n not in from_path] or [
        narrow_column(task.schema, from_path)
    ]


def _pruning(task: ReadTask) -> list[tuple[str, str, pa.Array]]:
    """Return the filter's conjuncts on stored values, for row groups and base rows."""
    converted_columns = {*task.as_text, *(name for name, _ in task.path_values)}
    conjuncts = task.where.conjuncts if task.where else ()
    stored = [conjunct for conjunct in conjuncts if conjunct[0] not in converted_columns]
    bounded = conjuncts_for_footers(stored)
    return [bounds for conjunct in bounded for bounds in _ends_of_long_lists(conjunct)]


def _ends_of_long_lists(conjunct: Conjunct) -> tuple[Conjunct, ...]:
    """Replace a long list by its bounds, since each value costs a pass over the rows.

    The filter itself is applied afterwards.
    """
    name, op, values = conjunct
    if op != "in" or len(values) <= _MAX_LITERALS or not _is_tested_one_by_one(values.type):
        return (conjunct,)
    minimum, maximum = (pa.array([end], values.type) for end in (pc.min(values), pc.max(values)))
    return (name, ">=", minimum), (name, "<=", maximum)


def _is_tested_one_by_one(data_type: pa.DataType) -> bool:
    """Strings are looked up, floating-point numbers are not tested in rows."""
    return not is_text(data_type) and not at.is_floating(data_type)


def _read_matches(read: pa.RecordBatch, task: ReadTask) -> pa.RecordBatch:
    """Return the rows that match the filter, as a scan returns them."""
    batch = _as_scanned(read, task)
    if task.where is None:
        return batch
    matches = filter_rows(pa.Table.from_batches([batch]), task.where).combine_chunks()
    batches = matches.to_batches()
    return batches[0] if batches else batch.slice(0, 0)


def _read_matches_as_stored(read: pa.RecordBatch, task: ReadTask) -> pa.RecordBatch:
    """Return the rows that match the filter of a scan, with stored values."""
    from pyhudi.slices.tagged_rows import row_numbers  # noqa: PLC0415 - it imports pyarrow.compute

    stored = _as_scanned(read, replace(task, path_values=(), as_text=()))
    if task.where is None:
        return stored
    projected = pa.Table.from_batches([_as_scanned(read, replace(task, generated_keys=None))])
    filter_columns = projected.select(list(task.where.columns)).append_column(
        _ROW, row_numbers(read.num_rows)
    )
    return stored.take(filter_rows(filter_columns, task.where).column(_ROW).combine_chunks())


def _generate_keys(
    batch: pa.RecordBatch, task: ReadTask, keys: KeySpec, name: str
) -> pa.Array[Any]:
    """Return record keys or partition paths of rows without stored ones."""
    if name == PARTITION_PATH:
        return pa.repeat(pa.scalar(task.slice.partition), batch.num_rows)
    rows = pa.Table.from_batches([batch])
    columns = {field: column_at(rows, field) for field in keys.key_fields}
    keyed = add_keys(pa.table(columns), replace(keys, partition_fields=()))
    return pa.concat_arrays([pa.array([], pa.string()), *keyed.column(RECORD_KEY).chunks])


def _as_scanned(batch: pa.RecordBatch, task: ReadTask) -> pa.RecordBatch:
    """Return the needed columns with the values that a scan returns."""
    from_path = dict(task.path_values)
    arrays, fields = [], []
    for name in task.columns:
        field = task.schema.field(name)
        if name in from_path:
            array = pa.repeat(from_path[name], batch.num_rows)
        elif name in (RECORD_KEY, PARTITION_PATH) and task.generated_keys is not None:
            array = _generate_keys(batch, task, task.generated_keys, name)
        elif name in task.as_text:
            field = field.with_type(pa.string())
            array = _native.shown_text(batch.column(name), name)
        else:
            field, array = batch.schema.field(name), batch.column(name)
        arrays.append(array)
        fields.append(field)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
