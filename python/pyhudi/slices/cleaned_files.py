"""Detects that files of an earlier snapshot were cleaned, if only the files show it.

The newest clean records the earliest commit that it retained (`timeline/time_travel.py`), if it
keeps commits. Earlier cleans may have kept fewer commits, or a number of file versions; and an
active or failed clean has no record yet. All name the files that they remove: each must have been
superseded at the requested time. Hudi shows the rows of the remaining files, including older ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from pyhudi.cached_property import cached_property
from pyhudi.config.actions import CLEAN, COMMIT, REPLACE_COMMIT, State
from pyhudi.config.file_names import (
    CDC_SUFFIX,
    file_name_of,
    parse_base_name,
    parse_log_name,
)
from pyhudi.config.table_version import TableVersion
from pyhudi.errors import HistoryUnavailable
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.slice_builder import GroupKey
from pyhudi.timeline import Instant, Timeline
from pyhudi.timeline.instant_range import InstantRange

_Version = tuple[str, str, str]
"""Instant of a file of a group, the clean that removed it, and its name."""


def check_versions(
    timeline: Timeline, view: FileSystemView, is_selected: Callable[[str], bool] | None
) -> None:
    """Raise `HistoryUnavailable` if files that are current on a cut timeline were removed.

    view: of that timeline. is_selected: a test of partitions, None for all.
    """
    if timeline.bound is not None:
        check_not_cleaned(timeline, view, timeline.bound, f"as_of {timeline.bound}", is_selected)


def check_not_cleaned(
    timeline: Timeline,
    view: FileSystemView,
    since: str,
    purpose: str,
    is_selected: Callable[[str], bool] | None = None,
) -> None:
    """Raise `HistoryUnavailable` if files that are current on a timeline were removed.

    timeline: without some instants of the whole one. view: of that timeline. since: cleans that
    retain snapshots from this time on removed none of them. purpose: for the message.
    is_selected: a test of partitions, None for all.
    """
    removed: dict[GroupKey, set[_Version]] = {}
    written, planned = _Written(timeline), timeline.times_of_pending_compactions()
    for clean, partition, name in _files_of_cleans(timeline.uncut, since):
        group = _group(name)
        if group is None or (is_selected and not is_selected(partition)):
            continue
        file_id, instant = group
        # Up to version 6 log files written since a compaction's plan bear its instant.
        if timeline.is_committed(instant) or (instant in planned and name in written):
            removed.setdefault((partition, file_id), set()).add((instant, clean, name))
    if not removed:
        return
    newest = {slice_.key: slice_.base_instant for slice_ in view.slices()}
    cleans = {
        key: _find_clean_of_newest(timeline, of, newest.get(key, ""), written)
        for key, of in removed.items()
    }
    lost = {key: clean for key, clean in cleans.items() if clean is not None}
    replaced = {*view.replaced, *(find_replaced_before_start(timeline) if lost else ())}
    for (partition, file_id), clean in sorted(lost.items()):
        if (partition, file_id) not in replaced:
            raise HistoryUnavailable(
                f"{purpose}: the clean {clean} {_how(timeline, clean)} "
                f"files of file group {file_id} in {partition!r} that this snapshot needs",
                hint="Increase the cleaner's retention to read older snapshots.",
            )


def _find_clean_of_newest(
    timeline: Timeline, removed: Iterable[_Version], newest: str, written: _Written
) -> str | None:
    """Return the clean that removed files newer than the newest slice of a group, or None."""
    for instant, clean, name in sorted(removed, reverse=True):
        if instant < newest:
            break
        if not _only_compacted(timeline, instant, name, written):
            return clean
    return None


def is_not_needed(timeline: Timeline, name: str) -> bool:
    """Return whether a removed current file is not needed: the slice before has the same rows.

    That happens after a restore to a savepoint that kept the slice before a compaction.
    """
    group = _group(name)
    if group is None or clean_of(timeline.uncut, name) is None:
        return False
    return _only_compacted(timeline, group[1], name, _Written(timeline))


def _only_compacted(timeline: Timeline, instant: str, name: str, written: _Written) -> bool:
    """Return whether a file of a compaction's slice has no other rows than the slice before.

    Those are base files and, up to version 6, log files with the compaction's instant of writes
    that are not committed.
    """
    compaction = timeline.find(instant, COMMIT)
    if compaction is None or not compaction.is_completed:
        return False
    if (timeline.commit_metadata(compaction).operation_type or "").upper() != "COMPACT":
        return False
    return parse_base_name(name) is not None or name not in written


class _Written:
    """Names of the files that active commits wrote, read on demand."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def __contains__(self, name: object) -> bool:
        return name in self._names

    @cached_property
    def _names(self) -> set[str]:
        commits = map(self._timeline.commit_metadata, self._timeline.commits)
        return {file_name_of(path) for metadata in commits for path in metadata.paths}


def was_cleaned(timeline: Timeline, name: str) -> bool:
    """Return whether a clean removes or has removed a file of that name."""
    return clean_of(timeline, name) is not None


def clean_of(timeline: Timeline, name: str) -> str | None:
    """Return the clean that removes or has removed a file of that name, None without one.

    If commits come fast, the clean is archived before a slow writer looks for it.
    """
    for clean in timeline.pending(CLEAN):
        planned = files_of_plan(timeline.plan(clean) or {})
        if any(name in names for names in planned.values()):
            return clean.requested
    group = _group(name)
    archived = timeline.archive.instants(InstantRange(after=group[1])) if group else ()
    cleans = [instant for instant in archived if instant.action == CLEAN]
    done = chain(
        ((clean, timeline.read(clean)) for clean in reversed(timeline.filter_completed(CLEAN))),
        ((clean, timeline.archive.read(clean)) for clean in reversed(cleans)),
    )
    for clean, record in done:
        if any(removed == name for _, removed in _files_of_record(record or {})):
            return clean.requested
    return None


def was_never_committed(timeline: Timeline, version: TableVersion, name: str) -> bool:
    """Return whether a file belongs to a write that never completed, so that it may be withdrawn.

    Or to an attempt at a plan that was rolled back, and retried with other files. Log file names up
    to version 6 have their slice's instant and not their own; there an active commit has to name
    the file.
    """
    log = parse_log_name(name)
    parsed = log or parse_base_name(name)
    if parsed is None:
        return False
    if not timeline.is_committed(parsed.instant):
        return True
    by_slice = log is not None and version.logs_named_by_base_instant
    if by_slice or any(commit.requested == parsed.instant for commit in timeline.commits):
        return name not in _Written(timeline)
    return False


def files_of_plan(plan: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the names of the files that a clean is to remove, by partition path.

    The table may have been moved since the plan. Source files of bootstrapped ones, which are
    outside of the table, are left out.
    """
    names_by_partition: dict[str, list[str]] = {}
    for partition, paths in (plan.get("filesToBeDeletedPerPartition") or {}).items():
        names_by_partition.setdefault(partition, []).extend(map(file_name_of, paths))
    for partition, infos in (plan.get("filePathsToBeDeletedPerPartition") or {}).items():
        inside = [info for info in infos if not info.get("isBootstrapBaseFile")]
        names_by_partition.setdefault(partition, []).extend(
            file_name_of(info["filePath"]) for info in inside
        )
    return names_by_partition


def _how(timeline: Timeline, clean: str) -> str:
    is_pending = any(instant.requested == clean for instant in timeline.uncut.pending(CLEAN))
    return "is removing" if is_pending else "removed"


def _files_of_cleans(timeline: Timeline, since: str) -> Iterator[tuple[str, str, str]]:
    """Yield the files that cleans removed after a time: clean, partition and file name.

    Cleans that removed no file current at that time are left out.
    """
    for pending in timeline.pending(CLEAN):
        if pending.state is State.INFLIGHT:
            for partition, names in files_of_plan(timeline.plan(pending) or {}).items():
                yield from ((pending.requested, partition, name) for name in names)
    active = timeline.filter_completed(CLEAN)
    later = [instant for instant in active if instant.requested > since]
    for instant in later:
        yield from _files(instant, timeline.read(instant), since)
    if len(later) < len(active):
        return
    for instant in timeline.archive.instants(InstantRange(after=since)):
        if instant.action == CLEAN:
            yield from _files(instant, timeline.archive.read(instant), since)


def _files(
    clean: Instant, metadata: dict[str, Any] | None, since: str
) -> Iterator[tuple[str, str, str]]:
    record = metadata or {}
    earliest_retained = record.get("earliestCommitToRetain") or None
    if earliest_retained is not None and earliest_retained <= since:
        return
    for partition, name in _files_of_record(record):
        yield clean.requested, partition, name


def _files_of_record(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield partition paths and names of the files that a clean has removed."""
    for partition, part in (record.get("partitionMetadata") or {}).items():
        for path in part["successDeleteFiles"]:
            yield partition, file_name_of(path)


def _group(name: str) -> tuple[str, str] | None:
    """Return file id and instant of a base file or log file, None for other files."""
    parsed = parse_base_name(name) or parse_log_name(name)
    if parsed is None or name.endswith(CDC_SUFFIX):
        return None
    return parsed.file_id, parsed.instant


def find_replaced_before_start(timeline: Timeline) -> set[GroupKey]:
    """Return groups that archived replace commits replaced."""
    archive = timeline.archive
    return {
        key
        for instant in archive.commits(InstantRange(until=timeline.bound))
        if instant.action == REPLACE_COMMIT
        for key in archive.commit_metadata(instant).replaced
    }
