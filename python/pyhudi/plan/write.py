"""Which files a write makes: tagged rows and the table's file groups in, tasks out. Pure.

Updates follow their rows' file groups: copy-on-write writes a new base file, merge-on-read one log
file a group. Inserts fill up small base files and then go to new file groups; merge-on-read tables
put them into base files too, since the index that tags here does not see keys in logs of other
writers' indexes (as Hudi does with its SIMPLE index, `UpsertPartitioner` 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CommitConflict
from pyhudi.keys import PARTITION_PATH, RECORD_KEY
from pyhudi.timeline.metadata import WriteStat

if TYPE_CHECKING:
    from pyhudi.config import MergeConfig
    from pyhudi.field_merge import FieldMerge
    from pyhudi.merge_config import BuiltInMode
    from pyhudi.plan.change_log import ChangeLogForm
    from pyhudi.storage import Storage
    from pyhudi.txn.options import WriteOptions
    from pyhudi.version import TableVersion
    from pyhudi.view.slices import FileSlice


BASE_ROW = "_pyhudi_base_row"
"""Column of a log task's rows or deletes: the row of the base file with the same key."""


@dataclass(frozen=True)
class FileGroup:
    """A file group that a write may go to."""

    slice: FileSlice
    """The newest slice: log files are appended to it, its base file is what a rewrite replaces."""
    compaction: str | None = None
    """A pending compaction of the group."""
    clustering: str | None = None
    """A pending clustering that has the group among its inputs."""
    starts_with_log: bool = False
    """Where it has no file yet: its first rows go to a log file (else: to a base file)."""

    read: FileSlice | None = None
    """What a snapshot reads of the group, where a pending compaction makes that another slice."""

    @property
    def is_new(self) -> bool:
        """It has no file yet."""
        return self.slice.base is None and not self.slice.logs and not self.slice.base_instant

    @property
    def next_log_version(self) -> int:
        """Of a log file named by the slice's base instant."""
        return max((log.version for log in self.slice.logs), default=0) + 1

    @property
    def takes_inserts(self) -> bool:
        """Whether a rewrite of its base file alone would be the whole group."""
        free = self.compaction is None and self.clustering is None
        return free and self.slice.base is not None and not self.slice.logs


class Rows(Protocol):
    """Rows that can be read as an Arrow stream, each time anew.

    A table, or what makes its rows when they are asked for.
    """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """As the Arrow PyCapsule interface has it."""
        ...


@dataclass(frozen=True)
class WriteTarget:
    """What every task of one write shares."""

    storage: Storage
    version: TableVersion
    instant: str
    merge_on_read: bool
    schema: pa.Schema
    """With meta fields."""
    avro_schema: str
    """With meta fields."""
    merge: MergeConfig
    ordering_fields: tuple[str, ...]
    options: WriteOptions
    task_memory: int | None = None
    """Bytes that a task may use for the records that it merges into a file; None: no limit."""
    fields: FieldMerge | None = None
    """How two records of one key become one, where that is more than one of them winning."""
    change_log: ChangeLogForm | None = None
    """What change logs beside rewritten base files hold; None in a table without."""
    partial: bool = False
    """The rows have some of the table's columns; the others keep what is stored."""
    valid_instants: tuple[str, ...] | None = None
    """Committed instants, where log files can hold blocks of others."""
    timeline_start: str | None = None

    @property
    def merge_mode(self) -> BuiltInMode:
        """Which of two records of one key wins."""
        mode = self.fields.mode if self.fields else self.merge.mode
        if mode == "CUSTOM":
            raise AssertionError(mode)
        return mode

    @property
    def merge_ordering(self) -> tuple[str, ...]:
        """The fields whose values decide in event-time mode."""
        own = self.fields.ordering_fields if self.fields else None
        return self.ordering_fields if own is None else own


@dataclass(frozen=True)
class BaseFileTask:
    """Write a base file: a new file group's first, or the next one of a group."""

    target: WriteTarget
    partition: str
    file_id: str
    previous: FileSlice | None
    rows: Rows | None
    """With record key and partition path in front."""
    delete_keys: pa.Array[Any] | None = None
    merge_by_key: bool = True
    """Rows replace rows with their keys (else: they are added without a look at keys)."""
    inserts: int = 0
    """Rows that were not tagged to the group."""
    updates: int = 0
    """Rows or keys that were."""


@dataclass(frozen=True)
class LogFileTask:
    """Append a log file to the newest slice of a file group."""

    target: WriteTarget
    partition: str
    file_id: str
    group: FileGroup
    rows: Rows | None
    delete_keys: pa.Table | None = None
    """Columns record key and partition path."""
    updates: int = 0
    """Rows that update."""
    deletes: int = 0
    """Rows that are marked as deletes, and delete keys."""
    inserts: int = 0
    """Rows that were not looked for, or go to a new file group."""


WriteTask = BaseFileTask | LogFileTask


@dataclass(frozen=True)
class Tagged:
    """Where incoming rows are already: pairs of row number and number of a file group.

    A key that several file groups hold has several pairs, and all of them are updated, as Hudi
    does.
    """

    rows: pa.Array[Any]
    groups: pa.Array[Any]
    left_rows: pa.Array[Any] = field(default_factory=lambda: pa.array([], pa.int64()))
    """Rows that go elsewhere, and whose keys are to be deleted from `left_groups`."""
    left_groups: pa.Array[Any] = field(default_factory=lambda: pa.array([], pa.int64()))

    base_rows: pa.Array[Any] | None = None
    """For each pair the row of the group's base file; null where that is not known."""

    def leaving(self) -> dict[int, pa.Array[Any]]:
        """Row numbers of the keys that leave each file group."""
        return dict(split(self.left_groups, self.left_rows))

    def only(self, mask: pa.Array[Any]) -> Tagged:
        """The pairs that a mask keeps, and none of the rows that go elsewhere."""
        base_rows = None if self.base_rows is None else self.base_rows.filter(mask)
        return Tagged(self.rows.filter(mask), self.groups.filter(mask), base_rows=base_rows)

    def base_rows_by_group(self) -> dict[int, pa.Array[Any]]:
        """The base rows of each file group, in the order of the rows that `by_group` gives."""
        return {} if self.base_rows is None else dict(split(self.groups, self.base_rows))

    def by_group(self) -> Iterator[tuple[int, pa.Array[Any]]]:
        """Row numbers of each file group that was hit."""
        yield from split(self.groups, self.rows)


def split(keys: pa.Array[Any], values: pa.Array[Any]) -> Iterator[tuple[Any, pa.Array[Any]]]:
    """The values of each key, in their order; keys ascending."""
    order = pc.sort_indices(keys)
    runs = pc.run_end_encode(keys.take(order)) if len(keys) else None
    ordered = values.take(order)
    start = 0
    for key, end in zip(runs.values, runs.run_ends, strict=True) if runs is not None else ():
        yield key.as_py(), ordered.slice(start, end.as_py() - start)
        start = end.as_py()


def untagged(row_count: int, tagged: Tagged) -> pa.Array[Any]:
    """Numbers of the rows that are in no file group, ascending."""
    numbers = row_numbers(row_count)
    return numbers.filter(pc.invert(pc.is_in(numbers, value_set=tagged.rows)))


def row_numbers(count: int) -> pa.Array[Any]:
    """0 to `count` - 1."""
    return pc.indices_nonzero(pa.repeat(pa.scalar(value=True), count)).cast(pa.int64())


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
    fresh = untagged(incoming.rows.num_rows, incoming.tagged)
    fresh = fresh.filter(pc.invert(incoming.marked_deleted.take(fresh)))
    new: list[WriteTask] = []
    additions: dict[int, pa.Array[Any]] = {}
    for partition, numbers in split(
        incoming.rows.column(PARTITION_PATH).combine_chunks().take(fresh), fresh
    ):
        small = small_groups(target, groups, partition)
        for number, part in pack(target, groups, small, numbers, row_bytes):
            if number is None:
                rows = incoming.rows.take(part)
                new.append(
                    BaseFileTask(
                        target,
                        partition,
                        new_file_id(),
                        None,
                        rows,
                        merge_by_key=incoming.merge_by_key,
                        inserts=len(part),
                    )
                )
            else:
                additions[number] = part
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
        for number in sorted({*updates, *additions, *leaving})
    ]
    return [*existing, *new]


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


def small_groups(target: WriteTarget, groups: Sequence[FileGroup], partition: str) -> list[int]:
    """Numbers of the file groups of a partition that take inserts, smallest first."""
    options = target.options
    small = [
        number
        for number, group in enumerate(groups)
        if group.slice.partition == partition
        and group.takes_inserts
        and group.slice.size < options.small_file_limit
    ]
    small.sort(key=lambda number: (groups[number].slice.size, groups[number].slice.file_id))
    return small[: options.small_slices_per_partition] if target.merge_on_read else small


def pack(
    target: WriteTarget,
    groups: Sequence[FileGroup],
    small: Iterable[int],
    numbers: Any,
    row_bytes: int,
) -> Iterator[tuple[int | None, Any]]:
    """Slices of rows for each small file group while it has room, then for new ones (None).

    numbers: the rows, or their numbers.
    """
    room_of_new = max(target.options.max_file_size // row_bytes, 1)
    start = 0
    for number in small:
        room = max(target.options.max_file_size - groups[number].slice.size, 0) // row_bytes
        if room and start < len(numbers):
            yield number, numbers.slice(start, room)
            start += room
    while start < len(numbers):
        yield None, numbers.slice(start, room_of_new)
        start += room_of_new


# --- delete ---------------------------------------------------------------------------------------


def plan_deletes(
    target: WriteTarget, keys: pa.Table, tagged: Tagged, groups: Sequence[FileGroup]
) -> list[WriteTask]:
    """The tasks that delete tagged keys (columns record key and partition path).

    The partition path of a key is that of the file group it was found in. Raises `CommitConflict`
    as `plan_rows` does.
    """
    hit = dict(tagged.by_group())
    check_not_clustered(groups[number] for number in hit)
    base_rows = tagged.base_rows_by_group()
    return [
        _delete(target, keys.take(numbers), groups[number], base_rows.get(number))
        for number, numbers in hit.items()
    ]


def _delete(
    target: WriteTarget, keys: pa.Table, group: FileGroup, base_rows: pa.Array[Any] | None
) -> WriteTask:
    slice_ = group.slice
    if target.merge_on_read:
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
