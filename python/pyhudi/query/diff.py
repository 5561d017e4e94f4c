"""From two snapshots of a table to tasks, one per file group that differs. No data is read here.

A record can have moved between groups (clustering, overwrites, a changed partition), so the
executor of the tasks pairs over all groups what one group's task cannot pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.cached_property import cached_property
from pyhudi.query.file_pruning import scan_slices
from pyhudi.query.row_pairing import MatchTask, bucket_count, image_schema, plan_side
from pyhudi.slices.file_slice import LOG_ORDER, FileSlice, LogFile
from pyhudi.slices.read_tasks import ReadTask, ScanRequest, key_columns, merge_rule
from pyhudi.slices.slice_builder import GroupKey
from pyhudi.table.table_snapshot import TableSnapshot


def plan_diff(
    before: TableSnapshot, after: TableSnapshot, buffer_bytes: int, log_bytes: int | None = None
) -> list[MatchTask]:
    """Return one task for each file group whose newest slice differs, or several for a large one.

    buffer_bytes: approximate memory of a task for the older side. log_bytes: memory for each side's
    log records, None for no limit.

    Raises `UnsupportedTableFeature` for slices with an unsupported merge rule, and for a table
    whose rows have no key.
    """
    old, new = _slices(before), _slices(after)
    touched = _Touched(before, after)
    keys = sorted({*old, *new})
    changed = (key for key in keys if _differs(key, old.get(key), new.get(key), touched))
    sides = _Sides(before, after, image_schema(after), log_bytes)
    return [
        task for key in changed for task in _tasks(sides, old.get(key), new.get(key), buffer_bytes)
    ]


def _slices(table: TableSnapshot) -> dict[GroupKey, FileSlice]:
    slices = scan_slices(table, ScanRequest(output=()))
    return {slice_.key: slice_ for slice_ in slices}


@dataclass(frozen=True)
class _Sides:
    """The settings that all tasks share: both snapshots, and the columns to read."""

    before: TableSnapshot
    after: TableSnapshot
    images: pa.Schema
    log_bytes: int | None

    def read(self, table: TableSnapshot, slice_: FileSlice | None) -> ReadTask | None:
        return plan_side(table, slice_, merge_rule(table), self.images.names, self.log_bytes)


def _tasks(
    sides: _Sides, old: FileSlice | None, new: FileSlice | None, buffer_bytes: int
) -> Iterator[MatchTask]:
    logs = _logs_that_differ(old, new)
    task = MatchTask(
        before=sides.read(sides.before, old),
        after=sides.read(sides.after, new),
        images=sides.images,
        compared=pa.schema([]),
        key_fields=key_columns(sides.after.config),
        touched_logs=None if logs is None else tuple(log.path for log in logs),
    )
    # Without the other side rows pass through; if only logs differ, their keys are buffered.
    buffered_bytes = old.size if old and new else 0
    if logs is not None:
        buffered_bytes = min(buffered_bytes, sum(log.size for log in logs))
    buckets = bucket_count(buffered_bytes, buffer_bytes)
    if buckets == 1:
        yield task
    for bucket in range(buckets) if buckets > 1 else ():
        yield replace(task, bucket=(bucket, buckets))


def _differs(
    key: GroupKey, old: FileSlice | None, new: FileSlice | None, touched: _Touched
) -> bool:
    if old is None or new is None:
        return True
    if _names(old) != _names(new):
        return True
    several = any(log.may_hold_several(old.base_instant) for log in old.logs)
    return several and key in touched


def _names(slice_: FileSlice) -> tuple[str | None, list[str]]:
    return slice_.base.name if slice_.base else None, [log.name for log in slice_.logs]


class _Touched:
    """Groups that a commit between two snapshots wrote to, computed on first use.

    Their files can be the same in both snapshots, and still have blocks of more commits.
    """

    def __init__(self, before: TableSnapshot, after: TableSnapshot) -> None:
        states = sorted((before, after), key=lambda table: table.timeline.bound or "")
        self._since, self._timeline = states[0].timeline.bound or "", states[1].timeline

    def __contains__(self, key: object) -> bool:
        return self._groups is None or key in self._groups

    @cached_property
    def _groups(self) -> set[GroupKey] | None:
        """The groups; None if the commits are no longer known."""
        if self._timeline.first_active is None or self._since < self._timeline.first_active:
            return None
        commits = (commit for commit in self._timeline.commits if commit.requested > self._since)
        metadata_of_commits = (self._timeline.commit_metadata(commit) for commit in commits)
        return {
            (partition, stat.file_id)
            for metadata in metadata_of_commits
            for partition, stats in metadata.partition_to_write_stats.items()
            for stat in stats
        }


def _logs_that_differ(old: FileSlice | None, new: FileSlice | None) -> list[LogFile] | None:
    """Return the log files that can make the difference, if the base file is the same."""
    if old is None or new is None or old.base is None or new.base is None:
        return None
    if old.base.name != new.base.name:
        return None
    both = {log.path for log in old.logs} & {log.path for log in new.logs}
    logs = {log.path: log for side in (old, new) for log in side.logs}
    touched = (
        log
        for log in logs.values()
        if log.path not in both or log.may_hold_several(new.base_instant)
    )
    return sorted(touched, key=LOG_ORDER)
