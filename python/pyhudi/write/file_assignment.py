"""File assignment: turns counts of rows and the table's file groups into write tasks. Pure.

Updates go to the file groups of their rows: copy-on-write writes a new base file, merge-on-read one
log file per group. Inserts fill up small base files, then go to new file groups. They go to base
files in merge-on-read tables, too, as in Hudi with an index that does not read keys in logs
(`UpsertPartitioner`, 1.2.0). Hudi rewrites any small file; pyhudi rewrites one for inserts only in
proportion to them.

A planned file states which rows it takes; `row_protocols.AssignedRows` supplies them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyhudi.config.write_options import TINY
from pyhudi.slices.write_tasks import BaseFileTask, FileGroup, LogFileTask, WriteTarget, WriteTask
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.write.row_sizes import RowRange


@dataclass(frozen=True)
class Updates:
    """Number of rows for a file group, and of those that delete their keys."""

    rows: int
    deletes: int = 0


_NONE = Updates(0)
_NO_INSERTS = range(0)


@dataclass(frozen=True)
class Counts:
    """Numbers of rows by target."""

    groups: Sequence[FileGroup]
    """File groups with updates or deletes, and those that may take new rows."""
    updates: Mapping[int, Updates] = field(default_factory=dict)
    """By file group number."""
    deletes: Mapping[int, int] = field(default_factory=dict)
    """Keys to delete by file group number."""
    inserts: Mapping[str, int] = field(default_factory=dict)
    """Inserts by partition path; 0 if the input has only deletes for the partition."""

    @property
    def changed_groups(self) -> list[int]:
        """Numbers of the file groups with updates or deletes."""
        return sorted({*self.updates, *self.deletes})

    @property
    def partitions(self) -> list[str]:
        """Paths of the partitions that get rows."""
        updated = {self.groups[number].slice.partition for number in self.updates}
        return sorted(updated | set(self.inserts))

    @property
    def growing_partitions(self) -> list[str]:
        """Paths of the partitions that get inserts or new file groups."""
        new_slices = (
            self.groups[number].slice for number in self.updates if self.groups[number].is_new
        )
        grown = {path for path, rows in self.inserts.items() if rows}
        return sorted(grown.union(slice_.partition for slice_ in new_slices))


@dataclass(frozen=True)
class PlannedFile:
    """A file to write, and the rows that it takes."""

    task: WriteTask
    """The task, without rows."""
    group: int | None = None
    """Number of the file group whose updates and deletes it writes."""
    inserts: range = _NO_INSERTS
    """Range of the partition's inserts that it writes."""
    has_rows: bool = True
    """Whether it writes rows and not only deletes keys."""


def plan_files(
    target: WriteTarget,
    counts: Counts,
    *,
    row_bytes: int,
    merge_by_key: bool,
    rewrite: Collection[int] = (),
    new_file_id: Callable[[], str],
) -> list[PlannedFile]:
    """Plan the files of a write to existing and new file groups.

    row_bytes: estimated bytes of a row. merge_by_key: rows replace rows with their keys. rewrite:
    numbers of file groups that get a new base file even in a merge-on-read table.
    """
    additions: dict[int, range] = {}
    new: list[PlannedFile] = []
    for partition, count in counts.inserts.items():
        for number, part in _bin_pack_inserts(target, counts, partition, count, row_bytes):
            if number is None:
                new.append(_new_group(target, partition, part, new_file_id()))
            else:
                additions[number] = part
    existing = []
    for number in sorted({*counts.changed_groups, *additions}):
        part = additions.get(number, _NO_INSERTS)
        task = _to_group(
            target, counts, number, len(part), merge_by_key=merge_by_key, rewrite=number in rewrite
        )
        existing.append(PlannedFile(task, number, part, number in counts.updates or bool(part)))
    return [*existing, *new]


def plan_new_files(
    target: WriteTarget,
    inserts: Mapping[str, Sequence[RowRange]],
    *,
    new_file_id: Callable[[], str],
) -> list[PlannedFile]:
    """Plan files of new file groups only, of at most about the maximum size.

    The files of a partition have equal sizes, so none is tiny. inserts: by partition path.
    """
    return [
        _new_group(target, partition, part, new_file_id())
        for partition, row_ranges in inserts.items()
        for part in _equal_parts(row_ranges, target.options.max_file_size)
    ]


def _equal_parts(row_ranges: Sequence[RowRange], max_bytes: int) -> Iterator[range]:
    """Split rows into as few parts of about equal size as possible, of `max_bytes` each at most."""
    total = sum(row_range.size for row_range in row_ranges)
    parts = max(-(-total // max_bytes), 1)
    start = row = passed = 0
    for rows, size in row_ranges:
        for part in range(-(-passed * parts // total) if total else 0, parts):
            # The next part starts this many bytes into the range.
            beyond = total * part // parts - passed
            if beyond >= size:
                break
            stop = row + round(rows * beyond / size)
            if stop > start:
                yield range(start, stop)
                start = stop
        row += rows
        passed += size
    if row > start:
        yield range(start, row)


# --- assignment of new rows -----------------------------------------------------------------------


def _bin_pack_inserts(
    target: WriteTarget, counts: Counts, partition: str, count: int, row_bytes: int
) -> Iterator[tuple[int | None, range]]:
    """Assign ranges of inserts to small file groups with room, then to new ones (None)."""
    options, groups = target.options, counts.groups
    start = 0
    for number in _small_file_groups(target, counts, partition, count * row_bytes):
        room = max(options.max_file_size - groups[number].slice.size, 0) // row_bytes
        if room and start < count:
            yield number, range(start, min(start + room, count))
            start += room
    room_of_new = options.insert_split_rows or max(options.max_file_size // row_bytes, 1)
    for first in range(start, count, room_of_new):
        yield None, range(first, min(first + room_of_new, count))


def _small_file_groups(
    target: WriteTarget, counts: Counts, partition: str, added: int
) -> list[int]:
    """Return the numbers of a partition's file groups that take inserts, smallest first.

    added: bytes of the inserts.
    """
    options, groups = target.options, counts.groups
    # Copy-on-write rewrites these in any case.
    rewritten = frozenset[int]() if target.merge_on_read else frozenset(counts.changed_groups)
    max_rewrite = max(added * options.rewrite_factor, TINY) if options.rewrite_factor else None
    small = [
        number
        for number, group in enumerate(groups)
        if group.slice.partition == partition
        and group.takes_inserts
        and group.slice.size < options.small_file_limit
        and (max_rewrite is None or number in rewritten or group.slice.size <= max_rewrite)
    ]
    small.sort(key=lambda number: (groups[number].slice.size, groups[number].slice.file_id))
    return small[: options.small_slices_per_partition] if target.merge_on_read else small


# --- tasks ----------------------------------------------------------------------------------------


def _new_group(target: WriteTarget, partition: str, part: range, file_id: str) -> PlannedFile:
    task = BaseFileTask(
        target, partition, file_id, None, None, merge_by_key=False, inserts=len(part)
    )
    return PlannedFile(task, inserts=part)


def _to_group(
    target: WriteTarget,
    counts: Counts,
    number: int,
    added: int,
    *,
    merge_by_key: bool,
    rewrite: bool,
) -> WriteTask:
    """Return the task of one file group.

    added: number of inserts that fill it up; it then gets a new base file in any case.
    """
    group, part = counts.groups[number], counts.updates.get(number, _NONE)
    delete_count, slice_ = counts.deletes.get(number, 0), group.slice
    common = (target, slice_.partition, slice_.file_id)
    is_merged = merge_by_key and not group.is_new
    takes_log = group.starts_with_log or not group.is_new
    if target.merge_on_read and takes_log and not added and not rewrite:
        live = part.rows - part.deletes
        if group.is_new:
            group = replace(group, slice=replace(slice_, base_instant=target.instant))
        return LogFileTask(
            *common,
            group,
            None,
            updates=live if is_merged else 0,
            deletes=part.deletes + delete_count,
            inserts=0 if is_merged else live,
        )
    return BaseFileTask(
        *common,
        None if group.is_new else slice_,
        None,
        merge_by_key=merge_by_key,
        inserts=added + (0 if is_merged else part.rows),
        updates=(part.rows if is_merged else 0) + delete_count,
    )


def workload_profile(tasks: Iterable[WriteTask]) -> Mapping[str, tuple[WriteStat, ...]]:
    """Return the planned writes in the format of the inflight file (`WorkloadProfile`, 1.2.0).

    Each partition has one stat without file id for all inserts, then one for each updated file
    group.
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
