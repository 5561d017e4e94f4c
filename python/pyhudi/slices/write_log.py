"""Writer of log files: a log task in, log files and their write statistics out.

Nothing here touches the timeline or assigns rows to files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import pyarrow as pa

from pyhudi import _native
from pyhudi.config.file_names import log_file_name
from pyhudi.config.write_options import LogBlocks
from pyhudi.engine.protocol import Attempt
from pyhudi.slices import markers
from pyhudi.slices.delete_markers import apart
from pyhudi.slices.markers import Marker
from pyhudi.slices.meta_columns import make_partition, with_meta
from pyhudi.slices.partial_rows import fill_missing_columns
from pyhudi.slices.write_tasks import LogFileTask, RowStream, WriteTarget
from pyhudi.slices.write_tokens import token_of_write
from pyhudi.timeline.commit_metadata import RuntimeStats, WriteStat


def write_log_files(task: LogFileTask, attempt: Attempt) -> tuple[WriteStat, ...]:
    """Write the task's log file, and further ones if one would be too large."""
    target, slice_ = task.target, task.group.slice
    options = target.options
    if slice_.base is None and not slice_.logs:
        make_partition(target, task.partition)
    names = _Names(task, attempt)
    new = task.rows
    if new is not None and target.partial:
        new = fill_missing_columns(target, pa.table(new), task.group.read_slice)
    if new is not None:
        new, task = _without_deletes(task, new)
    knows_rows = target.version.writes_positions and options.positions
    files = store_log_files(
        target,
        names,
        avro_schema=target.avro_schema,
        rows=None if new is None else with_meta(new, target, attempt, task.file_id),
        delete_keys=task.delete_keys,
        blocks=options.log_blocks,
        base_instant=slice_.base.instant if knows_rows and slice_.base else None,
    )
    return tuple(_stat(task, files, at, names) for at in range(len(files)))


def _without_deletes(task: LogFileTask, rows: RowStream) -> tuple[RowStream, LogFileTask]:
    """Return the rows without those that the table's marker deletes; these become delete keys."""
    live, deletes = apart(task.target, rows)
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


class _Names:
    """Returns the path of the next log file, after creating its marker."""

    def __init__(self, task: LogFileTask, attempt: Attempt) -> None:
        self._task = task
        by_base = task.target.version.logs_named_by_base_instant
        self.instant = task.group.slice.base_instant if by_base else task.target.instant
        self.first_version = task.group.next_log_version if by_base else 1
        self._token = attempt.write_token
        if by_base:
            self._token = token_of_write(attempt, task.target.instant)
        self.given: list[str] = []

    def __call__(self) -> str:
        task, target = self._task, self._task.target
        version = self.first_version + len(self.given)
        name = log_file_name(task.file_id, self.instant, version, self._token)
        marker = Marker(task.partition, name, target.version.log_marker_type)
        markers.create(target.storage, target.instant, marker)
        self.given.append(name)
        return marker.path


def _stat(task: LogFileTask, files: list[_native.LogFile], at: int, names: _Names) -> WriteStat:
    """Return the stat of one of the task's files. The task's counts are in the first one."""
    target, slice_, file = task.target, task.group.slice, files[at]
    # Readers of changes find the slice of the append by its stat.
    tells_slice = target.version.logs_named_by_base_instant or target.change_log is not None
    before = [log.name for log in slice_.logs] if tells_slice else []
    return WriteStat(
        file_id=task.file_id,
        path=file.path,
        prev_commit=slice_.base_instant if tells_slice else target.instant,
        num_writes=task.updates + task.inserts if at == 0 else 0,
        num_inserts=task.inserts if at == 0 else 0,
        num_update_writes=task.updates if at == 0 else 0,
        num_deletes=task.deletes if at == 0 else 0,
        total_write_bytes=file.size,
        file_size_in_bytes=file.size,
        partition_path=task.partition,
        runtime_stats=RuntimeStats(),
        log_version=names.first_version + at,
        log_offset=0,
        base_file=slice_.base.name if tells_slice and slice_.base else "",
        log_files=(*before, *names.given[: at + 1]),
    )
