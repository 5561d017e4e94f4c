"""Which files a write makes of rows that are sorted by where they go already. Pure.

`plan/write.py` sorts rows that are in memory. Here they come as one part for each file group that
is updated, and one for each partition that gets new rows, whether in memory or on a shelf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.plan.write import (
    BaseFileTask,
    FileGroup,
    LogFileTask,
    WriteTarget,
    WriteTask,
    pack,
    small_groups,
)
from pyhudi.shelf import ShelvedRows

if TYPE_CHECKING:
    from pyhudi.plan.write import Rows


@dataclass(frozen=True)
class UpdatePart:
    """Rows of one file group, those among them counted that delete their keys."""

    rows: Rows
    count: int
    deletes: int = 0


def plan_parts(
    target: WriteTarget,
    updates: Mapping[int, UpdatePart],
    inserts: Mapping[str, ShelvedRows],
    groups: Sequence[FileGroup],
    *,
    row_bytes: int,
    merge_by_key: bool,
    new_file_id: Callable[[], str],
) -> list[WriteTask]:
    """The tasks that write the parts, as `plan_rows` makes them.

    updates: by number of the file group. inserts: by partition path.
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
        _to_group(target, groups[number], updates.get(number), additions.get(number), merge_by_key)
        for number in sorted({*updates, *additions})
    ]
    return [*existing, *new]


def plan_updates(
    target: WriteTarget, updates: Mapping[int, UpdatePart], groups: Sequence[FileGroup]
) -> list[WriteTask]:
    """The tasks that update file groups and add no rows."""
    return [_update(target, groups[number], part) for number, part in updates.items()]


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
    if inserts is None and updates is not None:
        return _update(target, group, updates)
    parts = [part for part in (updates.rows if updates else None, inserts) if part is not None]
    slice_ = group.slice
    return BaseFileTask(
        target,
        slice_.partition,
        slice_.file_id,
        slice_,
        parts[0] if len(parts) == 1 else _Joined(tuple(parts)),
        merge_by_key=merge_by_key,
        inserts=inserts.num_rows if inserts is not None else 0,
        updates=updates.count if updates else 0,
    )


def _update(target: WriteTarget, group: FileGroup, part: UpdatePart) -> WriteTask:
    slice_ = group.slice
    if target.merge_on_read:
        return LogFileTask(
            target,
            slice_.partition,
            slice_.file_id,
            group,
            part.rows,
            updates=part.count - part.deletes,
            deletes=part.deletes,
        )
    return BaseFileTask(
        target, slice_.partition, slice_.file_id, slice_, part.rows, updates=part.count
    )


@dataclass(frozen=True)
class _Joined:
    """The rows of several parts, one after the other."""

    parts: tuple[Rows, ...]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        readers = [pa.RecordBatchReader.from_stream(part) for part in self.parts]
        batches = (batch for reader in readers for batch in reader)
        whole = pa.RecordBatchReader.from_batches(readers[0].schema, batches)
        return whole.__arrow_c_stream__(requested_schema)
