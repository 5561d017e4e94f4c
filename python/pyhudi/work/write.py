"""Writing one file of a transaction: task in, write statistics out. Runs on an engine's workers.

Before a data file come its partition's metadata file and its marker, so that whatever a dead task
leaves can be found. Nothing here touches the timeline or decides what goes where.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from pyhudi import _native
from pyhudi.plan.write import BaseFileTask, LogFileTask, WriteTarget, WriteTask
from pyhudi.timeline.metadata import NO_PREVIOUS_COMMIT, RuntimeStats, WriteStat
from pyhudi.txn import markers
from pyhudi.txn.markers import Marker
from pyhudi.view.names import base_file_name, log_file_name

if TYPE_CHECKING:
    from pyhudi.engine.protocol import Attempt
    from pyhudi.storage import Storage
    from pyhudi.view.slices import FileSlice

    Rows: TypeAlias = _native.BatchReader | pa.RecordBatchReader

PARTITION_METADATA = ".hoodie_partition_metadata"


def write_file(task: WriteTask, attempt: Attempt) -> WriteStat:
    """Writes the task's file under a name of this attempt."""
    if isinstance(task, LogFileTask):
        return _write_log_file(task, attempt)
    return _write_base_file(task, attempt)


# --- base files -----------------------------------------------------------------------------------


def _write_base_file(task: BaseFileTask, attempt: Attempt) -> WriteStat:
    target = task.target
    name = base_file_name(task.file_id, attempt.write_token, target.instant)
    if task.previous is None:
        _make_partition(target, task.partition)
    marker = Marker(task.partition, name, "CREATE" if task.previous is None else "MERGE")
    markers.create(target.storage, target.instant, marker)
    rows = None if task.rows is None else _with_meta(task.rows, target, attempt, name)
    if task.previous is None or not task.merge_by_key:
        written = store_base_file(target, marker.path, _appended(task, rows))
        return _base_stat(task, written, updated=0, deleted=0, inserted=task.inserts)
    merged, stats = _merged(task, task.previous, rows)
    written = store_base_file(target, marker.path, merged)
    return _base_stat(
        task, written, updated=stats.updated, deleted=stats.deleted, inserted=stats.inserted
    )


def _with_meta(
    rows: pa.Table, target: WriteTarget, attempt: Attempt, file_name: str
) -> _native.BatchReader:
    return _native.with_meta_columns(
        rows, instant=target.instant, task=attempt.task, first_row=0, file_name=file_name
    )


def _merged(
    task: BaseFileTask, previous: FileSlice, rows: _native.BatchReader | None
) -> tuple[_native.BatchReader, _native.MergeStats]:
    """The previous slice with the task's rows and deletes merged in as the newest."""
    target = task.target
    if target.merge.mode == "CUSTOM":
        raise AssertionError(target.merge.mode)
    return _native.read_slice(
        target.storage.native,
        base=previous.base.path if previous.base else None,
        logs=[log.path for log in previous.logs],
        schema=target.schema,
        columns=target.schema.names,
        merge_mode=target.merge.mode,
        ordering_fields=target.ordering_fields,
        delete_field=target.merge.delete_field,
        delete_marker=target.merge.delete_marker,
        incoming=rows,
        delete_keys=task.delete_keys,
        null_ordering_loses=True,
    )


def _appended(task: BaseFileTask, rows: _native.BatchReader | None) -> Rows:
    """The previous base file's rows, if there is one, and the task's rows after them."""
    if rows is None:
        raise AssertionError(task.file_id)
    if task.previous is None:
        return rows
    before, _ = _merged(task, task.previous, None)
    return pa.RecordBatchReader.from_batches(task.target.schema, _chain(before, rows))


def _chain(*readers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for reader in readers:
        yield from reader


def store_base_file(target: WriteTarget, path: str, rows: Rows) -> _native.BaseFile:
    """The one place where a write's base files come into being."""
    options = target.options
    return _native.write_base_file(
        target.storage.native,
        path,
        rows,
        avro_schema=target.avro_schema,
        file_name=path.rsplit("/", 1)[-1],
        codec=options.codec,
        row_group_bytes=options.row_group_bytes,
        bloom_entries=options.bloom_entries,
        bloom_fpp=options.bloom_fpp,
        bloom_max_entries=options.bloom_max_entries,
    )


def _base_stat(
    task: BaseFileTask, written: _native.BaseFile, *, updated: int, deleted: int, inserted: int
) -> WriteStat:
    base = task.previous.base if task.previous else None
    names_previous = not task.target.version.commit_metadata_as_json
    return WriteStat(
        file_id=task.file_id,
        path=written.path,
        prev_commit=base.instant if base else NO_PREVIOUS_COMMIT,
        prev_base_file=base.name if base and names_previous else None,
        num_writes=written.rows,
        num_inserts=inserted,
        num_update_writes=updated,
        num_deletes=deleted,
        total_write_bytes=written.size,
        file_size_in_bytes=written.size,
        partition_path=task.partition,
        runtime_stats=RuntimeStats(),
    )


# --- log files ------------------------------------------------------------------------------------


def _write_log_file(task: LogFileTask, attempt: Attempt) -> WriteStat:
    target, slice_ = task.target, task.group.slice
    by_base = target.version.logs_named_by_base_instant
    version = task.group.next_log_version if by_base else 1
    instant = slice_.base_instant if by_base else target.instant
    name = log_file_name(task.file_id, instant, version, attempt.write_token)
    marker = Marker(task.partition, name, target.version.log_marker_type)
    markers.create(target.storage, target.instant, marker)
    rows = None if task.rows is None else _with_meta(task.rows, target, attempt, task.file_id)
    written = store_log_file(target, marker.path, rows, task.delete_keys)
    before = [log.name for log in slice_.logs] if by_base else []
    return WriteStat(
        file_id=task.file_id,
        path=written.path,
        prev_commit=instant,
        num_writes=task.updates,
        num_update_writes=task.updates,
        num_deletes=task.deletes,
        total_write_bytes=written.size,
        file_size_in_bytes=written.size,
        partition_path=task.partition,
        runtime_stats=RuntimeStats(),
        log_version=version,
        log_offset=0,
        base_file=slice_.base.name if by_base and slice_.base else "",
        log_files=(*before, name),
    )


def store_log_file(
    target: WriteTarget,
    path: str,
    rows: Rows | None,
    delete_keys: pa.Table | None,
) -> _native.LogFile:
    """The one place where a write's log files come into being."""
    return _native.write_log_file(
        target.storage.native,
        path,
        instant=target.instant,
        avro_schema=target.avro_schema,
        rows=rows,
        delete_keys=delete_keys,
        block_bytes=target.options.log_block_bytes,
    )


def _make_partition(target: WriteTarget, partition: str) -> None:
    """Makes a folder a partition, unless it is one already."""
    storage: Storage = target.storage
    depth = partition.count("/") + 1 if partition else 0
    path = f"{partition}/{PARTITION_METADATA}" if partition else PARTITION_METADATA
    text = f"#partition metadata\ncommitTime={target.instant}\npartitionDepth={depth}\n"
    storage.put_if_absent(path, text.encode())
