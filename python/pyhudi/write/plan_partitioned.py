"""Which files a write makes of rows that are sorted by where they go already. Pure.

`write/plan_rows.py` sorts rows that are in memory. Here they come as one part for each file group
that is updated, and one for each partition that gets new rows, whether in memory or on a shelf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pyhudi.engine.spill_by_route import ShelvedRows
from pyhudi.schema.record_keys import PARTITION_PATH, RECORD_KEY
from pyhudi.slices.write_tasks import (
    BaseFileTask,
    FileGroup,
    LogFileTask,
    Rows,
    WriteTarget,
    WriteTask,
)
from pyhudi.write.plan_rows import pack, small_groups


@dataclass(frozen=True)
class UpdatePart:
    """Rows of one file group, those among them counted that delete their keys."""

    rows: Rows | None
    count: int
    deletes: int = 0


_NOTHING = UpdatePart(None, 0)


def plan_parts(
    target: WriteTarget,
    updates: Mapping[int, UpdatePart],
    inserts: Mapping[str, ShelvedRows],
    groups: Sequence[FileGroup],
    *,
    leaving: Mapping[int, pa.Array[Any]],
    row_bytes: int,
    merge_by_key: bool,
    new_file_id: Callable[[], str],
) -> list[WriteTask]:
    """The tasks that write the parts, as `plan_rows` makes them.

    updates: by number of the file group. inserts: by partition path. leaving: keys to be deleted,
    by number of the file group.
    """
    additions: dict[int, ShelvedRows] = {}
    new: list[WriteTask] = []
    for partition, rows in inserts.items():
        small = small_groups(target, groups, partition)
        for number, part in pack(target, groups, small, rows, row_bytes):
            if number is None:
                new.append(_new_group(target, partition, part, new_file_id()))
            else:
                additions[number] = part
    existing = [
        with_deletes(
            _to_group(
                target, groups[number], updates.get(number), additions.get(number), merge_by_key
            ),
            leaving.get(number),
        )
        for number in sorted({*updates, *additions, *leaving})
    ]
    return [*existing, *new]


def plan_updates(
    target: WriteTarget, updates: Mapping[int, UpdatePart], groups: Sequence[FileGroup]
) -> list[WriteTask]:
    """The tasks that update file groups and add no rows."""
    return [
        _update(target, groups[number], part, merge_by_key=True) for number, part in updates.items()
    ]


def plan_new_files(
    target: WriteTarget,
    partitions: Mapping[str, Any],
    *,
    row_bytes: int,
    new_file_id: Callable[[], str],
) -> list[WriteTask]:
    """Tasks that write rows to new file groups alone: each a file of about the greatest size.

    partitions: rows by partition path, tables or on a shelf.
    """
    most = max(target.options.max_file_size // row_bytes, 1)
    return [
        _new_group(target, partition, part, new_file_id())
        for partition, rows in partitions.items()
        for part in _cut(rows, most)
    ]


def _cut(rows: Any, most: int) -> Iterator[Any]:
    """Equal parts of at most so many rows, so that no file is left with a few."""
    files = -(-rows.num_rows // most)
    share = -(-rows.num_rows // max(files, 1))
    for number in range(files):
        yield rows.slice(number * share, min(share, rows.num_rows - number * share))


def _new_group(target: WriteTarget, partition: str, rows: Any, file_id: str) -> BaseFileTask:
    return BaseFileTask(
        target, partition, file_id, None, rows, merge_by_key=False, inserts=rows.num_rows
    )


def _to_group(
    target: WriteTarget,
    group: FileGroup,
    updates: UpdatePart | None,
    inserts: ShelvedRows | None,
    merge_by_key: bool,  # noqa: FBT001 - passed on
) -> WriteTask:
    if inserts is None:
        return _update(target, group, updates or _NOTHING, merge_by_key=merge_by_key)
    slice_ = group.slice
    return BaseFileTask(
        target,
        slice_.partition,
        slice_.file_id,
        slice_,
        inserts if updates is None or updates.rows is None else _Joined((updates.rows, inserts)),
        merge_by_key=merge_by_key,
        inserts=inserts.num_rows,
        updates=updates.count if updates else 0,
    )


def _update(
    target: WriteTarget, group: FileGroup, part: UpdatePart, *, merge_by_key: bool
) -> WriteTask:
    """Of rows that were tagged to the group; to one without files they are new."""
    slice_ = group.slice
    new = part.count if group.is_new or not merge_by_key else 0
    by_log = target.merge_on_read and (group.starts_with_log or not group.is_new)
    if by_log:
        if group.is_new:
            group = replace(group, slice=replace(slice_, base_instant=target.instant))
        return LogFileTask(
            target,
            slice_.partition,
            slice_.file_id,
            group,
            part.rows,
            updates=0 if new else part.count - part.deletes,
            deletes=part.deletes,
            inserts=new - part.deletes if new else 0,
        )
    return BaseFileTask(
        target,
        slice_.partition,
        slice_.file_id,
        None if group.is_new else slice_,
        part.rows,
        merge_by_key=merge_by_key,
        inserts=new,
        updates=part.count - new,
    )


def with_deletes(task: WriteTask, keys: pa.Array[Any] | None) -> WriteTask:
    """The task, deleting some keys as well."""
    if keys is None:
        return task
    if isinstance(task, BaseFileTask):
        return replace(task, delete_keys=keys, updates=task.updates + len(keys))
    paths = pa.repeat(pa.scalar(task.partition), len(keys))
    gone = pa.table({RECORD_KEY: keys, PARTITION_PATH: paths})
    return replace(task, delete_keys=gone, deletes=task.deletes + len(keys))


@dataclass(frozen=True)
class _Joined:
    """The rows of several parts, one after the other."""

    parts: tuple[Rows, ...]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        readers = [pa.RecordBatchReader.from_stream(part) for part in self.parts]
        batches = (batch for reader in readers for batch in reader)
        whole = pa.RecordBatchReader.from_batches(readers[0].schema, batches)
        return whole.__arrow_c_stream__(requested_schema)
