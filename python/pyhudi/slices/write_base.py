"""Writer of base files and log files: task in, write statistics out. Runs on an engine's workers.

A partition's metadata file and a marker come before a data file, so that the files of a failed task
can be found. Nothing here touches the timeline or assigns rows to files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypedDict

import pyarrow as pa

from pyhudi import _native
from pyhudi.config.file_names import base_file_name, file_name_of
from pyhudi.config.meta_columns import FILE_NAME, RECORD_KEY
from pyhudi.config.write_options import BloomType, Codec
from pyhudi.engine.protocol import Attempt
from pyhudi.schema.delete_field import find_delete_markers
from pyhudi.slices import markers
from pyhudi.slices.cdc_writer import ChangeRecorder
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.markers import Marker
from pyhudi.slices.meta_columns import make_partition, with_meta
from pyhudi.slices.partial_rows import fill_missing_columns, slice_to_merge
from pyhudi.slices.write_log import write_log_files
from pyhudi.slices.write_tasks import BaseFileTask, LogFileTask, WriteTarget, WriteTask
from pyhudi.timeline.commit_metadata import NO_PREVIOUS_COMMIT, RuntimeStats, WriteStat

_Reader: TypeAlias = _native.BatchReader | pa.RecordBatchReader
# Fewer rows are not worth a row group of their own, because scans open each of them.
KEPT_ROWS = 1000
# For a file that joins many files, each with at least one row group.
JOINED_ROWS = 20_000

Batches: TypeAlias = _native.BatchReader | Iterator[pa.RecordBatch]


def write_file(task: WriteTask, attempt: Attempt) -> tuple[WriteStat, ...]:
    """Write the task's files under names of this attempt.

    Several log files if one would be too large; no file that counts if a change log would be empty.
    """
    with _preserve_errors(task) as checked:
        if isinstance(checked, LogFileTask):
            return write_log_files(checked, attempt)
        return _write_base_file(checked, attempt)


# --- base files -----------------------------------------------------------------------------------


def _write_base_file(task: BaseFileTask, attempt: Attempt) -> tuple[WriteStat, ...]:
    target = task.target
    name = base_file_name(
        task.file_id, attempt.write_token, target.instant, target.options.extension
    )
    if task.previous is None:
        make_partition(target, task.partition)
    marker = Marker(task.partition, name, "CREATE" if task.previous is None else "MERGE")
    markers.create(target.storage, target.instant, marker)
    new = task.rows
    if new is not None and target.partial:
        new = fill_missing_columns(target, pa.table(new), task.previous)
    rows = None if new is None else with_meta(new, target, attempt, name)
    if task.previous is None:
        written = store_base_file(target, marker.path, _as_reader(rows))
        return (_base_stat(task, written, Counts(inserted=task.inserts)),)
    recorder = _change_recorder(task)
    if recorder is None:
        return (_base_stat(task, *_rewritten(task, task.previous, marker.path, rows)),)
    if task.merge_by_key:
        merged, stats = _native.read_slice(
            target.storage.native, **_slice(task, task.previous, rows)
        )
        written = store_base_file(target, marker.path, _record_changes(target, recorder, merged))
        counts = Counts(stats.updated, stats.deleted, stats.inserted)
    else:
        before, _ = _native.read_slice(target.storage.native, **_slice(task, task.previous, None))
        both = _chain(before, _as_reader(rows))
        written = store_base_file(target, marker.path, _record_changes(target, recorder, both))
        counts = Counts(inserted=task.inserts)
    stored: _native.SliceSpec = {**_slice(task, task.previous, None), "delete_keys": None}
    logs = recorder.write(task.previous, stored, attempt)
    # Hudi's readers fail on a rewritten file without change log; unchanged rows need no new file.
    return (_base_stat(task, written, counts, logs),) if logs else ()


@dataclass(frozen=True)
class Counts:
    """Row counts of a base file by operation."""

    updated: int = 0
    deleted: int = 0
    inserted: int = 0


def _as_reader(rows: _native.BatchReader | None) -> _native.BatchReader:
    if rows is None:
        raise AssertionError
    return rows


def _change_recorder(task: BaseFileTask) -> ChangeRecorder | None:
    """Return the recorder of changes, in a table with change logs."""
    target = task.target
    if target.change_log is None:
        return None
    keys = [] if task.delete_keys is None else [task.delete_keys]
    deletes = list(keys)
    if task.rows is not None:
        rows = pa.table(task.rows)
        own = rows.column(RECORD_KEY).combine_chunks()
        marked = find_delete_markers(rows, target.merge.delete_field, target.merge.delete_marker)
        keys.append(own)
        deletes.append(own.filter(marked))
    return ChangeRecorder(
        task, target.change_log, pa.concat_arrays(keys), pa.concat_arrays(deletes)
    )


def _rewritten(
    task: BaseFileTask, previous: FileSlice, path: str, rows: _native.BatchReader | None
) -> tuple[_native.BaseFile, Counts]:
    """Rewrite the previous slice with the task's rows and deletes as a new base file."""
    target = task.target
    merged = _slice(task, previous, rows if task.merge_by_key else None)
    if not target.virtual_keys:
        # Every file gets its own name.
        merged["columns"] = [name for name in target.schema.names if name != FILE_NAME]
    if task.merge_by_key:
        written, stats = rewrite_base_file(target, path, merged)
        return written, Counts(stats.updated, stats.deleted, stats.inserted)
    written, _ = rewrite_base_file(
        target, path, merged, appended=_as_reader(rows), new_rows=task.inserts
    )
    return written, Counts(inserted=task.inserts)


def _slice(
    task: BaseFileTask, previous: FileSlice, rows: _native.BatchReader | None
) -> _native.SliceSpec:
    """Return the previous slice, with the task's deletes and these rows as its newest records."""
    target = task.target
    return {
        **slice_to_merge(target, previous, target.schema.names),
        "key_fields": target.key_columns,
        "incoming": rows,
        "delete_keys": task.delete_keys,
        "null_ordering_loses": True,
        "memory_limit": target.task_memory,
        "two_threads": target.two_threads,
    }


def _record_changes(
    target: WriteTarget, recorder: ChangeRecorder, rows: Batches
) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(target.schema, recorder.record_from(iter(rows)))


def _chain(*readers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for reader in readers:
        yield from reader


def store_base_file(target: WriteTarget, path: str, rows: _Reader) -> _native.BaseFile:
    """Write one base file. All base files that a write creates one by one come from here."""
    return _native.write_base_file(
        target.storage.native,
        path,
        rows,
        file_name=_file_name(target, path),
        **_file_settings(target),
    )


def _file_name(target: WriteTarget, path: str) -> str | None:
    return None if target.virtual_keys else file_name_of(path)


def rewrite_base_file(
    target: WriteTarget,
    path: str,
    merged: _native.SliceSpec,
    *,
    appended: _native.BatchReader | None = None,
    new_rows: int = 0,
) -> tuple[_native.BaseFile, _native.MergeStats]:
    """Write a slice as a new base file, with rows appended; unchanged row groups are copied."""
    return _native.rewrite_base_file(
        target.storage.native,
        path,
        merged,
        {"appended": appended, "new_rows": new_rows, "kept_rows": KEPT_ROWS},
        file_name=_file_name(target, path),
        **_file_settings(target),
    )


def store_base_files(
    target: WriteTarget, next_path: Callable[[], str], rows: _Reader, max_bytes: int
) -> list[_native.BaseFile]:
    """Write the rows in files of a maximum size, whose paths are requested one by one."""
    return _native.write_base_files(
        target.storage.native,
        next_path,
        rows,
        max_bytes,
        file_name=None if target.virtual_keys else "",
        **_file_settings(target),
    )


def join_base_files(
    target: WriteTarget,
    next_path: Callable[[], str],
    slices: Sequence[_native.SliceSpec],
    max_bytes: int,
) -> tuple[list[_native.BaseFile], list[_native.MergeStats]]:
    """Join slices into base files, as `store_base_files` does; unchanged row groups are copied."""
    return _native.join_base_files(
        target.storage.native,
        next_path,
        slices,
        max_bytes,
        JOINED_ROWS,
        file_name=None if target.virtual_keys else "",
        **_file_settings(target),
    )


class _FileSettings(TypedDict):
    avro_schema: str
    key_column: str | None
    codec: Codec
    row_group_bytes: int
    bloom_entries: int
    bloom_by_keys: bool
    bloom_fpp: float
    bloom_max_entries: int
    bloom_type: BloomType | None
    page_bytes: int
    dictionary: bool
    old_lists: bool
    two_threads: bool


def _file_settings(target: WriteTarget) -> _FileSettings:
    """Return the settings of all base files of a write."""
    options = target.options
    return {
        "avro_schema": target.avro_schema,
        "key_column": None if target.virtual_keys else RECORD_KEY,
        "codec": options.codec,
        "row_group_bytes": options.row_group_bytes,
        "bloom_entries": options.bloom_entries,
        "bloom_by_keys": options.bloom_by_keys,
        "bloom_fpp": options.bloom_fpp,
        "bloom_max_entries": options.bloom_max_entries,
        "bloom_type": None if target.virtual_keys else options.bloom_type,
        "page_bytes": options.page_bytes,
        "dictionary": options.dictionary,
        "old_lists": options.old_lists,
        "two_threads": target.two_threads,
    }


def _base_stat(
    task: BaseFileTask,
    written: _native.BaseFile,
    counts: Counts,
    change_logs: Mapping[str, int] | None = None,
) -> WriteStat:
    base = task.previous.base if task.previous else None
    names_previous = not task.target.version.commit_metadata_as_json
    return WriteStat(
        file_id=task.file_id,
        path=written.path,
        prev_commit=base.instant if base else NO_PREVIOUS_COMMIT,
        prev_base_file=base.name if base and names_previous else None,
        num_writes=written.rows,
        num_inserts=counts.inserted,
        num_update_writes=counts.updated,
        num_deletes=counts.deleted,
        cdc_stats=change_logs,
        total_write_bytes=written.size,
        file_size_in_bytes=written.size,
        partition_path=task.partition,
        runtime_stats=RuntimeStats(),
    )


# --- errors of computed rows ----------------------------------------------------------------------


@contextmanager
def _preserve_errors(task: WriteTask) -> Iterator[WriteTask]:
    """Yield the task with rows that store their error, which the block then raises."""
    if not hasattr(task.rows, "reader"):
        yield task
        return
    rows = _RecordedErrors(task.rows)
    try:
        yield replace(task, rows=rows)
    except Exception as error:
        if rows.failure is None:
            raise
        raise rows.failure from error


class _RecordedErrors:
    """Rows of an object with `reader`, which returns a `pyarrow.RecordBatchReader`."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows
        self.failure: Exception | None = None

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = self._rows.reader()
        checked = pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader))
        return checked.__arrow_c_stream__(requested_schema)

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except Exception as error:
            self.failure = error
            raise
