"""Which files a write makes: tagged rows and the table's file groups in, tasks out. Pure.

Updates follow their rows' file groups: copy-on-write writes a new base file, merge-on-read one log
file a group. Inserts fill up small base files and then go to new file groups; merge-on-read tables
put them into base files too, since the index that tags here does not see keys in logs of other
writers' indexes (as Hudi does with its SIMPLE index, `UpsertPartitioner` 1.2.0).

The words of a plan can be had from here too: tasks (`slices/write_tasks.py`), where rows are
(`slices/tagged.py`) and how new ones are packed (`file_sizing.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CommitConflict
from pyhudi.schema.record_keys import PARTITION_PATH, RECORD_KEY
from pyhudi.slices.row_selection import PickedRows
from pyhudi.slices.tagged import Tagged, row_numbers, split, untagged
from pyhudi.slices.write_tasks import (
    BASE_ROW,
    BaseFileTask,
    FileGroup,
    LogFileTask,
    Rows,
    WriteTarget,
    WriteTask,
)
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.write.file_sizing import pack, small_groups

__all__ = [
    "BASE_ROW",
    "BaseFileTask",
    "FileGroup",
    "Incoming",
    "LogFileTask",
    "Rows",
    "Tagged",
    "WriteTarget",
    "WriteTask",
    "by_base_row",
    "check_not_clustered",
    "pack",
    "plan_deletes",
    "plan_rows",
    "row_numbers",
    "small_groups",
    "split",
    "untagged",
    "workload_profile",
]


# --- upsert and insert ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Incoming:
    """Rows to be written, with what is known of them."""

    rows: pa.Table
    """With record key and partition path in front."""
    marked_deleted: pa.Array[Any]
    """For each row whether it deletes its key."""
    tagged: Tagged
    merge_by_key: bool = True


def plan_rows(
    target: WriteTarget,
    incoming: Incoming,
    groups: Sequence[FileGroup],
    *,
    row_bytes: int,
    new_file_id: Callable[[], str],
) -> list[WriteTask]:
    """The tasks that write rows.

    Deletes of keys that are nowhere fall away. row_bytes: estimated bytes of a row. Raises
    `CommitConflict` where an update meets a file group that is to be clustered.
    """
    updates = dict(incoming.tagged.by_group())
    leaving = incoming.tagged.leaving()
    check_not_clustered(groups[number] for number in {*updates, *leaving})
    base_rows = incoming.tagged.base_rows_by_group()
    new: list[WriteTask] = []
    additions: dict[int, pa.Array[Any]] = {}
    for partition, number, part in _placed(target, incoming, groups, row_bytes):
        if number is None:
            new.append(_new_group(target, incoming, partition, part, new_file_id()))
        else:
            additions[number] = part
    touched = sorted({*updates, *additions, *leaving})
    if touched:
        # One chunk, since taking rows from many goes through all of them for each group.
        incoming = replace(incoming, rows=incoming.rows.combine_chunks())
    existing = [
        _to_group(
            target,
            incoming,
            groups[number],
            updates.get(number),
            additions.get(number),
            leaving.get(number),
            base_rows.get(number),
        )
        for number in touched
    ]
    return [*existing, *new]


def _placed(
    target: WriteTarget, incoming: Incoming, groups: Sequence[FileGroup], row_bytes: int
) -> Iterator[tuple[str, int | None, pa.Array[Any]]]:
    """Numbers of the rows that are nowhere yet: (partition path, file group or a new one, rows)."""
    fresh = untagged(incoming.rows.num_rows, incoming.tagged)
    fresh = fresh.filter(pc.invert(incoming.marked_deleted.take(fresh)))
    paths = incoming.rows.column(PARTITION_PATH).combine_chunks().take(fresh)
    for partition, numbers in split(paths, fresh):
        small = small_groups(target, groups, partition)
        for number, part in pack(target, groups, small, numbers, row_bytes):
            yield partition, number, part


def _new_group(
    target: WriteTarget, incoming: Incoming, partition: str, numbers: pa.Array[Any], file_id: str
) -> WriteTask:
    return BaseFileTask(
        target,
        partition,
        file_id,
        None,
        PickedRows(incoming.rows, numbers),
        merge_by_key=incoming.merge_by_key,
        inserts=len(numbers),
    )


def _to_group(
    target: WriteTarget,
    incoming: Incoming,
    group: FileGroup,
    updates: pa.Array[Any] | None,
    inserts: pa.Array[Any] | None,
    leaving: pa.Array[Any] | None,
    base_rows: pa.Array[Any] | None,
) -> WriteTask:
    """The task of one file group that takes rows or loses keys.

    An existing one that takes inserts which fill it up gets a new base file, always.
    """
    slice_ = group.slice
    gone = None if leaving is None else incoming.rows.select([RECORD_KEY]).take(leaving)
    if updates is None and inserts is None:
        return _delete(target, gone if gone is not None else incoming.rows.slice(0, 0), group, None)
    numbers = pa.concat_arrays([part for part in (updates, inserts) if part is not None])
    rows = _in_partition(incoming.rows.take(numbers), slice_.partition)
    looked_for = incoming.merge_by_key and not group.is_new
    new_count = (0 if inserts is None else len(inserts)) + (
        0 if looked_for or updates is None else len(updates)
    )
    if group.is_new:
        group = replace(group, slice=replace(slice_, base_instant=target.instant))
    by_log = group.starts_with_log or slice_.base_instant != ""
    if target.merge_on_read and inserts is None and updates is not None and by_log:
        deletes = pc.sum(incoming.marked_deleted.take(updates)).as_py() or 0
        return LogFileTask(
            target,
            slice_.partition,
            slice_.file_id,
            group,
            by_base_row(rows, None if group.is_new else base_rows),
            None if gone is None else _with_path(gone, slice_.partition),
            updates=len(numbers) - new_count - deletes,
            deletes=deletes + (0 if gone is None else gone.num_rows),
            inserts=new_count,
        )
    return BaseFileTask(
        target,
        slice_.partition,
        slice_.file_id,
        slice_ if slice_.base_instant else None,
        rows,
        None if gone is None else gone.column(0).combine_chunks(),
        merge_by_key=incoming.merge_by_key,
        inserts=new_count,
        updates=len(numbers) - new_count + (0 if gone is None else gone.num_rows),
    )


def _in_partition(rows: pa.Table, partition: str) -> pa.Table:
    """The rows with the partition path of the file group that they go to."""
    at = rows.schema.get_field_index(PARTITION_PATH)
    paths = pa.repeat(pa.scalar(partition), rows.num_rows)
    return rows.set_column(at, rows.schema.field(at), paths)


def _with_path(keys: pa.Table, partition: str) -> pa.Table:
    paths = pa.repeat(pa.scalar(partition), keys.num_rows)
    return keys.select([0]).append_column(PARTITION_PATH, paths)


# --- delete ---------------------------------------------------------------------------------------


def plan_deletes(
    target: WriteTarget,
    keys: pa.Table,
    tagged: Tagged,
    groups: Sequence[FileGroup],
    anew: Collection[int] = (),
) -> list[WriteTask]:
    """The tasks that delete tagged keys (columns record key and partition path).

    The partition path of a key is that of the file group it was found in. anew: numbers of the file
    groups that get a new base file also in a merge-on-read table. Raises `CommitConflict` as
    `plan_rows` does.
    """
    hit = dict(tagged.by_group())
    check_not_clustered(groups[number] for number in hit)
    base_rows = tagged.base_rows_by_group()
    return [
        _delete(
            target,
            keys.take(numbers),
            groups[number],
            base_rows.get(number),
            anew=number in anew,
        )
        for number, numbers in hit.items()
    ]


def _delete(
    target: WriteTarget,
    keys: pa.Table,
    group: FileGroup,
    base_rows: pa.Array[Any] | None,
    *,
    anew: bool = False,
) -> WriteTask:
    slice_ = group.slice
    if target.merge_on_read and not anew:
        deletes = by_base_row(_with_path(keys, slice_.partition), base_rows)
        return LogFileTask(
            target, slice_.partition, slice_.file_id, group, None, deletes, deletes=keys.num_rows
        )
    return BaseFileTask(
        target,
        slice_.partition,
        slice_.file_id,
        slice_,
        None,
        keys.column(0).combine_chunks(),
        updates=keys.num_rows,
    )


def by_base_row(rows: pa.Table, base_rows: pa.Array[Any] | None) -> pa.Table:
    """The rows in the order of the base file's, whose numbers come along; as given without them.

    Only where all numbers are known: else a log block cannot tell positions.
    """
    if base_rows is None or base_rows.null_count:
        return rows
    order = pc.sort_indices(base_rows)
    return rows.append_column(BASE_ROW, base_rows).take(order)


# --- for both -------------------------------------------------------------------------------------


def check_not_clustered(groups: Iterable[FileGroup]) -> None:
    """Raises `CommitConflict` naming the pending clustering of the first group that has one."""
    for group in groups:
        if group.clustering is not None:
            msg = (
                f"the clustering {group.clustering} is pending and will replace the file group "
                f"{group.slice.file_id} in partition {group.slice.partition!r}, which this write "
                f"would change"
            )
            raise CommitConflict(
                msg, hint="Complete or roll back the clustering, then write again."
            )


def workload_profile(tasks: Iterable[WriteTask]) -> Mapping[str, tuple[WriteStat, ...]]:
    """What a write is about to do, as the inflight file says it (`WorkloadProfile`, 1.2.0).

    For every partition one stat without file id for all inserts, then one for each file group that
    is updated.
    """
    inserts: dict[str, int] = {}
    updates: dict[str, list[WriteStat]] = {}
    for task in tasks:
        inserts[task.partition] = inserts.get(task.partition, 0) + task.inserts
        slice_ = task.group.slice if isinstance(task, LogFileTask) else task.previous
        count = task.updates + (task.deletes if isinstance(task, LogFileTask) else 0)
        if slice_ is not None and count:
            stat = WriteStat(
                file_id=task.file_id, prev_commit=slice_.base_instant, num_update_writes=count
            )
            updates.setdefault(task.partition, []).append(stat)
    return {
        partition: (WriteStat(num_inserts=count), *updates.get(partition, ()))
        for partition, count in inserts.items()
    }
