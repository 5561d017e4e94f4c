"""Grouping of the files of a file group into slices: rules on plain data, no storage.

The two ways in which a log file finds its slice are the largest difference between table versions:
up to 6 its name has the slice's base instant; from 8 on it belongs to the newest slice whose base
instant is not after the log's completion (`HoodieFileGroup`, `AbstractTableFileSystemView`, Hudi
1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from pyhudi.config.file_names import BASE_EXTENSION, PARSED, parse_base_name, parse_log_name
from pyhudi.slices.file_slice import LOG_ORDER, BaseFile, FileSlice, LogFile
from pyhudi.storage.storage import Entry

GroupKey = tuple[str, str]
"""Partition path and file id."""


@dataclass(frozen=True)
class TimelineState:
    """The properties of the timeline that slices depend on."""

    logs_named_by_base_instant: bool
    is_committed: Callable[[str], bool]
    completion_time: Callable[[str], str]
    """Returns when a committed instant was completed. Called only if the result matters."""
    pending_compactions: Mapping[GroupKey, str]
    """Groups with a pending compaction, with its requested time."""
    slice_starts: dict[tuple[str, ...], dict[str, str | None]] = field(default_factory=dict)
    """Cache of `_slice_start`: many groups are opened and written by the same instants."""


@dataclass(frozen=True, slots=True)
class GroupFiles:
    """All files of one file group, committed or not."""

    partition: str
    file_id: str
    bases: list[BaseFile] = field(default_factory=list)
    logs: list[LogFile] = field(default_factory=list)

    @property
    def key(self) -> GroupKey:
        """The key of the group."""
        return (self.partition, self.file_id)


def group_files(
    partition: str,
    entries: Iterable[Entry],
    groups: dict[GroupKey, GroupFiles],
    extension: str | None = BASE_EXTENSION,
    *,
    appended: bool = False,
    change_logs: bool = False,
) -> None:
    """Add a partition's data files to `groups`; other files are ignored.

    appended: whether commits append to existing log files. change_logs: include change logs in the
    log files.

    Raises `UnsupportedTableFeature` for a base file in another format than `extension`.
    """
    for entry in entries:
        file = _data_file(partition, entry.name, entry.size, extension, appended=appended)
        if file is None:
            continue
        key = (partition, file.file_id)
        group = groups.get(key)
        if group is None:
            group = groups[key] = GroupFiles(partition, file.file_id)
        if isinstance(file, BaseFile):
            group.bases.append(file)
        elif change_logs or not file.suffix:
            group.logs.append(file)


@lru_cache(PARSED)
def _data_file(
    partition: str, name: str, size: int, extension: str | None, *, appended: bool
) -> BaseFile | LogFile | None:
    base = parse_base_name(name, extension)
    if base is not None:
        return BaseFile(partition, name, base.file_id, base.instant, base.write_token, size)
    log = parse_log_name(name)
    if log is None:
        return None
    return LogFile(
        partition=partition,
        name=name,
        file_id=log.file_id,
        instant=log.instant,
        version=log.version,
        write_token=log.write_token,
        suffix=log.suffix,
        size=size,
        appended=appended,
    )


def find_committed_slices(group: GroupFiles, state: TimelineState) -> list[FileSlice]:
    """Return the group's committed slices, newest first.

    A pending compaction opens a slice without base file, which may have no log files yet.
    """
    bases = {
        base.instant: base
        for base in sorted(group.bases, key=lambda base: base.name)
        if state.is_committed(base.instant)
    }
    logs = (
        _logs_by_name(group, state, bases)
        if state.logs_named_by_base_instant
        else _logs_by_completion(group, state, bases)
    )
    instants = {*bases, *logs}
    compaction = state.pending_compactions.get(group.key)
    if compaction is not None:
        instants.add(compaction)
    return [
        FileSlice(
            group.partition,
            group.file_id,
            instant,
            bases.get(instant),
            tuple(logs.get(instant, ())),
        )
        for instant in sorted(instants, reverse=True)
    ]


def _logs_by_name(
    group: GroupFiles, state: TimelineState, bases: Iterable[str]
) -> dict[str, list[LogFile]]:
    """Return log files by the base instant in their name, for committed slices and compactions.

    Oldest first, as in `_logs_by_completion`.

    A log file here has blocks of several commits; its reader checks whether each is committed. In a
    table that was downgraded from version 8 or 9 an old log file is named by its own instant: no
    slice has that, and it belongs to the one before.
    """
    compaction = state.pending_compactions.get(group.key)
    openings = {*bases, *([] if compaction is None else [compaction])}
    logs: dict[str, list[LogFile]] = {}
    for log in sorted(group.logs, key=LOG_ORDER):
        if log.instant == compaction or state.is_committed(log.instant):
            earlier = (opening for opening in openings if opening <= log.instant)
            start = max(earlier, default=log.instant)
            openings.add(start)
            logs.setdefault(start, []).append(log)
    return logs


def _logs_by_completion(
    group: GroupFiles, state: TimelineState, bases: Iterable[str]
) -> dict[str, list[LogFile]]:
    """Return log files of committed instants by the base instant of their slice, oldest first."""
    compaction = state.pending_compactions.get(group.key)
    openings = _newest_first({*bases, *([] if compaction is None else [compaction])})
    slice_starts = state.slice_starts.setdefault(openings, {})
    logs: dict[str, list[LogFile]] = {}
    for log in sorted(group.logs, key=LOG_ORDER):
        if log.instant not in slice_starts:
            slice_starts[log.instant] = _slice_start(log.instant, openings, state)
        start = slice_starts[log.instant]
        if start is None:
            continue
        if start not in openings:
            openings = _newest_first([*openings, start])
            slice_starts = state.slice_starts.setdefault(openings, {})
        logs.setdefault(start, []).append(log)
    return logs


def _newest_first(instants: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(instants, reverse=True))


def _slice_start(instant: str, openings: Sequence[str], state: TimelineState) -> str | None:
    """Return the base instant, from `openings` newest first, of the slice that a log joins.

    None if the log's instant is not committed. If none matches, the log opens a slice at its own
    instant. Times of different lengths do not compare, so there the log's instant replaces its
    completion time. A log file from before an upgrade is named by the base instant itself, which
    may not be in any archive: Hudi's downgrades leave none (1.2.0).
    """
    if not state.is_committed(instant):
        return None
    if instant in openings:
        return instant
    for opening in openings:
        if opening <= instant:
            return opening
        if len(opening) == len(instant):
            completion = state.completion_time(instant)
            if len(completion) == len(opening) and opening <= completion:
                return opening
    return instant


def snapshot_slice(slices: Sequence[FileSlice], compaction: str | None) -> FileSlice | None:
    """Return the slice that a snapshot reads of a group: the newest one with files.

    slices: newest first. Until a pending compaction is done, its slice has no base file, so the
    slice before is joined with it.
    """
    filled = [slice_ for slice_ in slices if slice_.base is not None or slice_.logs]
    if not filled:
        return None
    newest = filled[0]
    if newest.base_instant != compaction or newest.base is not None or len(filled) == 1:
        return newest
    before = filled[1]
    logs = sorted((*before.logs, *newest.logs), key=LOG_ORDER)
    return replace(before, logs=tuple(logs))


def base_slice(slices: Sequence[FileSlice]) -> FileSlice | None:
    """Return the slice of a read-optimized query: the newest base file alone, or None."""
    newest = next((slice_ for slice_ in slices if slice_.base is not None), None)
    return None if newest is None else replace(newest, logs=())


def groups_of_plan(plan: Mapping[str, Any] | None) -> Iterator[GroupKey]:
    """The file groups in the plan of a compaction or clustering; none for other plans."""
    slices = records_of_plan(plan)
    return ((slice_["partitionPath"] or "", slice_["fileId"]) for slice_ in slices)


def records_of_plan(plan: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    """The file slices in such a plan, as records."""
    plan = plan or {}
    yield from plan.get("operations") or ()
    for group in (plan.get("clusteringPlan") or {}).get("inputGroups") or ():
        yield from group.get("slices") or ()
