"""Writer of log files: a log task in, log files and their write statistics out.

Nothing here touches the timeline or assigns rows to files.

Rows that are marked as deletes become delete records, as in Hudi's writers. Its readers ignore the
table's own marker in data blocks of version 9: they would show the rows. They evaluate
`_hoodie_is_deleted`, but let this row replace a delete by key, so that it loses to an older row
where that delete did not (`BufferedRecordMergerFactory`, 1.2.0). Up to version 6 those rows stay in
data blocks all the same: Hudi 0.15 lets every delete record win, however late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.file_names import log_file_name
from pyhudi.config.meta_columns import IS_DELETED, PARTITION_PATH, RECORD_KEY
from pyhudi.config.write_options import LogBlocks
from pyhudi.engine.protocol import Attempt
from pyhudi.schema.delete_field import find_delete_markers
from pyhudi.schema.key_generator import column_at
from pyhudi.slices.meta_columns import make_partition, with_meta
from pyhudi.slices.partial_rows import fill_missing_columns
from pyhudi.slices.write_tasks import (
    BASE_ROW,
    LogFileTask,
    NewFiles,
    RowStream,
    WriteTarget,
)
from pyhudi.slices.write_tokens import token_of_write
from pyhudi.timeline.commit_metadata import RuntimeStats, WriteStat


def write_log_files(task: LogFileTask, attempt: Attempt) -> tuple[WriteStat, ...]:
    """Write the task's log file, and further ones if one would be too large."""
    target, slice_ = task.target, task.group.slice
    options = target.options
    if slice_.base is None and not slice_.logs:
        make_partition(target, task.partition)
    first_version, file_name = _file_naming(task, attempt)
    paths = NewFiles(target, task.partition, target.version.log_marker_type, file_name)
    new = task.rows
    if new is not None and target.partial:
        new = fill_missing_columns(target, pa.table(new), task.group.read_slice)
    if new is not None:
        new, task = _without_deletes(task, new)
    knows_rows = target.version.writes_positions and options.positions
    files = store_log_files(
        target,
        paths,
        avro_schema=target.avro_schema,
        rows=None if new is None else with_meta(new, target, attempt, task.file_id),
        delete_keys=task.delete_keys,
        blocks=options.log_blocks,
        base_instant=slice_.base.instant if knows_rows and slice_.base else None,
    )
    return tuple(
        _stat(task, files, at, first_version, paths.names[: at + 1]) for at in range(len(files))
    )


def _without_deletes(task: LogFileTask, rows: RowStream) -> tuple[RowStream, LogFileTask]:
    """Return the rows without those that the table's marker deletes; these become delete keys."""
    live, deletes = _separate_deletes(task.target, rows)
    if deletes is None:
        return rows, task
    delete_keys = task.delete_keys
    keys = (
        deletes
        if delete_keys is None
        else pa.concat_tables([delete_keys, deletes], promote_options="default")
    )
    # An operation that sets the marker counts its rows as updates.
    uncounted = max(keys.num_rows - task.deletes, 0)
    return live, replace(
        task,
        delete_keys=keys,
        updates=task.updates - uncounted,
        deletes=task.deletes + uncounted,
    )


def store_log_files(
    target: WriteTarget,
    next_path: Callable[[], str],
    *,
    avro_schema: str,
    rows: _native.BatchReader | pa.Table | None,
    delete_keys: pa.Table | None = None,
    blocks: LogBlocks | Literal["cdc"],
    base_instant: str | None = None,
) -> list[_native.LogFile]:
    """Write log files. All log files of a write are created here."""
    return _native.write_log_files(
        target.storage.native,
        next_path,
        instant=target.instant,
        avro_schema=avro_schema,
        rows=rows,
        delete_keys=delete_keys,
        block_bytes=target.options.log_block_bytes,
        file_bytes=target.options.log_file_bytes,
        blocks=blocks,
        codec=target.options.codec,
        old_lists=target.options.old_lists,
        base_instant=base_instant,
    )


def _file_naming(task: LogFileTask, attempt: Attempt) -> tuple[int, Callable[[int], str]]:
    """Return the version of the task's first log file, and the name of each file by its number."""
    instant, version, token = task.target.instant, 1, attempt.write_token
    if task.target.version.logs_named_by_base_instant:
        token = token_of_write(attempt, instant)
        instant, version = task.group.slice.base_instant, task.group.next_log_version
    return version, lambda number: log_file_name(task.file_id, instant, version + number, token)


def _stat(
    task: LogFileTask,
    files: list[_native.LogFile],
    at: int,
    first_version: int,
    names: Sequence[str],
) -> WriteStat:
    """Return the stat of one of the task's files. The task's counts are in the first one."""
    target, slice_, file = task.target, task.group.slice, files[at]
    # Readers of changes find the slice of the append by its stat.
    names_slice = target.version.logs_named_by_base_instant or target.change_log is not None
    before = [log.name for log in slice_.logs] if names_slice else []
    return WriteStat(
        file_id=task.file_id,
        path=file.path,
        prev_commit=slice_.base_instant if names_slice else target.instant,
        num_writes=task.updates + task.inserts if at == 0 else 0,
        num_inserts=task.inserts if at == 0 else 0,
        num_update_writes=task.updates if at == 0 else 0,
        num_deletes=task.deletes if at == 0 else 0,
        total_write_bytes=file.size,
        file_size_in_bytes=file.size,
        partition_path=task.partition,
        runtime_stats=RuntimeStats(),
        log_version=first_version + at,
        log_offset=0,
        base_file=slice_.base.name if names_slice and slice_.base else "",
        log_files=(*before, *names),
    )


# --- rows that are marked as deletes --------------------------------------------------------------


_ORDERING = "_pyhudi_ordering"


def _is_wrapped(data_type: Any) -> bool:
    """Return whether `DecimalWrapper`, of 30 digits with a scale of 15, fits all its values."""
    fits = (
        pa.types.is_decimal(data_type)
        and data_type.scale <= 15
        and data_type.precision - data_type.scale <= 15
    )
    return bool(fits)


_ORDERING_TYPES: tuple[tuple[Any, pa.DataType], ...] = (
    (pa.types.is_int64, pa.int64()),
    (pa.types.is_integer, pa.int32()),
    (pa.types.is_date32, pa.int32()),
    (pa.types.is_timestamp, pa.int64()),
    (pa.types.is_time32, pa.int32()),
    (pa.types.is_time64, pa.int64()),
    (pa.types.is_float32, pa.float32()),
    (pa.types.is_floating, pa.float64()),
    (pa.types.is_string, pa.string()),
    (pa.types.is_boolean, pa.bool_()),
    (_is_wrapped, pa.decimal128(30, 15)),
)
"""Types of ordering values in delete records."""


def _separate_deletes(target: WriteTarget, rows: RowStream) -> tuple[RowStream, pa.Table | None]:
    """Return rows without deletes, and the deletes as keys with ordering values.

    The keys are in memory; a stream of rows stays one. None if there are no deletes.
    """
    if not _may_delete(target) or _ordering(target) is None:
        return rows, None
    if isinstance(rows, pa.Table):
        marked = _find_marked(target, rows)
        live: RowStream = rows.filter(pc.invert(marked))
        deletes = _deletes(target, rows.filter(marked))
    else:
        reader = pa.RecordBatchReader.from_stream(rows)
        tables = (pa.Table.from_batches([batch]) for batch in reader)
        marked_rows = [table.filter(_find_marked(target, table)) for table in tables]
        live = _Live(target, rows)
        deletes = _deletes(target, pa.concat_tables([reader.schema.empty_table(), *marked_rows]))
    return (live, deletes) if deletes.num_rows else (rows, None)


def _may_delete(target: WriteTarget) -> bool:
    names = target.schema.names
    by_flag = IS_DELETED in names and not target.version.logs_named_by_base_instant
    return by_flag or target.merge.delete_field in names


def _find_marked(target: WriteTarget, rows: pa.Table) -> pa.Array[Any]:
    return find_delete_markers(rows, target.merge.delete_field, target.merge.delete_marker)


def _ordering(target: WriteTarget) -> dict[str, pa.DataType] | None:
    """Return the fields of the deletes' ordering value with types; None if unsupported."""
    # Up to version 6 readers compare the ordering values of log records in every mode.
    in_every_mode = target.version.logs_named_by_base_instant
    if target.merge_mode != "EVENT_TIME_ORDERING" and not in_every_mode:
        return {}
    stored_types = {}
    for name in target.merge_ordering:
        column_type = column_at(target.schema.empty_table(), name).type
        stored_type = next(
            (stored_type for test, stored_type in _ORDERING_TYPES if test(column_type)), None
        )
        if stored_type is None:
            return None
        stored_types[name] = stored_type
    return stored_types


def _deletes(target: WriteTarget, rows: pa.Table) -> pa.Table:
    deletes = rows.select([RECORD_KEY, PARTITION_PATH])
    for number, (name, stored_type) in enumerate((_ordering(target) or {}).items()):
        column = column_at(rows, name)
        if pa.types.is_timestamp(column.type):
            timestamp_type = pa.timestamp(_unit(target, column.type), column.type.tz)
            column = column.cast(timestamp_type, safe=False)
        deletes = deletes.append_column(f"{_ORDERING}_{number}", column.cast(stored_type))
    if BASE_ROW in rows.column_names:
        deletes = deletes.append_column(BASE_ROW, rows.column(BASE_ROW))
    return deletes


def _unit(target: WriteTarget, data_type: Any) -> Literal["ms", "us"]:
    """Return the unit of timestamps.

    Hudi 0.15 compares milliseconds with those of the column. 1.2.0 accepts either for a column in
    UTC, and only microseconds for one without a zone, as 1.0.2 does for both.
    """
    old = target.version.logs_named_by_base_instant
    return "ms" if old and data_type == pa.timestamp("ms", "UTC") else "us"


@dataclass(frozen=True)
class _Live:
    """The rows that are not deletes, filtered on each read."""

    target: WriteTarget
    rows: RowStream

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pa.RecordBatchReader.from_stream(self.rows)
        live = pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader))
        return live.__arrow_c_stream__(requested_schema)

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for batch in reader:
            marked = _find_marked(self.target, pa.Table.from_batches([batch]))
            yield batch.filter(pc.invert(marked))
