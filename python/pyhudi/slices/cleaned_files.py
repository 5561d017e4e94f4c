"""Whether a cleaner took files that were current at an earlier time, where only the files tell.

The newest clean says from which commit on nothing was taken (`timeline/time_travel.py`), if it
keeps commits. Those before it may have kept fewer, or versions of files; and one that is at work,
or died at it, says nothing yet. All name the files that they take: each must have been superseded
by the time asked for. Hudi shows the rows of what is left, those of older files among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from pyhudi.cached_property import cached_property
from pyhudi.config.actions import CLEAN, COMMIT, REPLACE_COMMIT, State
from pyhudi.config.file_names import CDC_SUFFIX, parse_base_name, parse_log_name
from pyhudi.config.table_version import TableVersion
from pyhudi.errors import HistoryUnavailable
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.slice_builder import GroupKey
from pyhudi.timeline import Instant, Timeline
from pyhudi.timeline.instant_range import InstantRange

_Version = tuple[str, str, str]
"""Instant of a file of a group, the clean that took it, and its name."""


def check_versions(
    timeline: Timeline, view: FileSystemView, wanted: Callable[[str], bool] | None
) -> None:
    """Raises `HistoryUnavailable` where files are gone that were current on a cut timeline.

    view: of that timeline. wanted: which partitions count, None for all.
    """
    if timeline.bound is not None:
        check_taken(timeline, view, timeline.bound, f"as_of {timeline.bound}", wanted)


def check_taken(
    timeline: Timeline,
    view: FileSystemView,
    since: str,
    asked: str,
    wanted: Callable[[str], bool] | None = None,
) -> None:
    """Raises `HistoryUnavailable` where files are gone that are current on a timeline.

    It lacks instants of the whole one. view: of the timeline. since: no clean that spared what is
    read as of this time took any of them. asked: what the files are wanted for. wanted: which
    partitions count, None for all.
    """
    taken: dict[GroupKey, set[_Version]] = {}
    written, planned = _Written(timeline), timeline.times_of_pending_compactions()
    for clean, partition, name in _files_of_cleans(timeline.uncut, since):
        group = _group(name)
        if group is None or (wanted and not wanted(partition)):
            continue
        file_id, instant = group
        # Up to version 6 log files since a compaction's plan bear its instant.
        if timeline.is_committed(instant) or (instant in planned and name in written):
            taken.setdefault((partition, file_id), set()).add((instant, clean, name))
    if not taken:
        return
    newest = {slice_.key: slice_.base_instant for slice_ in view.slices()}
    found = {
        key: _find_clean_of_newest(timeline, of, newest.get(key, ""), written)
        for key, of in taken.items()
    }
    lost = {key: clean for key, clean in found.items() if clean is not None}
    replaced = {*view.replaced, *(find_replaced_before_start(timeline) if lost else ())}
    for (partition, file_id), clean in sorted(lost.items()):
        if (partition, file_id) not in replaced:
            raise HistoryUnavailable(
                f"{asked}: the clean {clean} {_how(timeline, clean)} "
                f"files of file group {file_id} in {partition!r} that this snapshot needs",
                hint="Increase the cleaner's retention to read older snapshots.",
            )


def _find_clean_of_newest(
    timeline: Timeline, taken: Iterable[_Version], newest: str, written: _Written
) -> str | None:
    """The clean that took what is newer than the newest slice of a group; None if none did."""
    for instant, clean, name in sorted(taken, reverse=True):
        if instant < newest:
            break
        if not _only_compacted(timeline, instant, name, written):
            return clean
    return None


def is_spared(timeline: Timeline, name: str) -> bool:
    """Whether a clean took a current file that no reader needs: the slice before has the same rows.

    So after a restore to a savepoint that kept the slice before a compaction.
    """
    made = _group(name)
    if made is None or clean_of(timeline.uncut, name) is None:
        return False
    return _only_compacted(timeline, made[1], name, _Written(timeline))


def _only_compacted(timeline: Timeline, instant: str, name: str, written: _Written) -> bool:
    """Whether a file of a compaction's slice has no other rows than the slice before.

    That are base files, and log files up to version 6, which bear the compaction's instant, of
    writes that do not count.
    """
    made = timeline.find(instant, COMMIT)
    if made is None or not made.is_completed:
        return False
    if (timeline.commit_metadata(made).operation_type or "").upper() != "COMPACT":
        return False
    return parse_base_name(name) is not None or name not in written


class _Written:
    """Names of the files that commits which are not archived say they wrote, read when asked."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def __contains__(self, name: object) -> bool:
        return name in self._names

    @cached_property
    def _names(self) -> set[str]:
        known = map(self._timeline.commit_metadata, self._timeline.commits)
        return {_name(path) for metadata in known for path in metadata.paths}


def was_taken(timeline: Timeline, name: str) -> bool:
    """Whether a clean removes or has removed a file of that name."""
    return clean_of(timeline, name) is not None


def clean_of(timeline: Timeline, name: str) -> str | None:
    """The clean that removes or has removed a file of that name, None without one.

    Where commits come fast, it is archived before a slow writer asks.
    """
    for clean in timeline.pending(CLEAN):
        planned = files_of_plan(timeline.plan(clean) or {})
        if any(name in names for names in planned.values()):
            return clean.requested
    made = _group(name)
    archived = timeline.archive.instants(InstantRange(after=made[1])) if made else ()
    cleans = [instant for instant in archived if instant.action == CLEAN]
    done = chain(
        ((clean, timeline.read(clean)) for clean in reversed(timeline.filter_completed(CLEAN))),
        ((clean, timeline.archive.read(clean)) for clean in reversed(cleans)),
    )
    for clean, record in done:
        if any(found == name for _, found in _files_of_record(record or {})):
            return clean.requested
    return None


def was_never_committed(timeline: Timeline, version: TableVersion, name: str) -> bool:
    """Whether a file of that name is of a write that never completed, so that it may be withdrawn.

    Or of an attempt at a plan that was taken back, and made again with other files. Names of log
    files up to version 6 bear their slice's instant and not their own; there a commit that is not
    archived yet has to name the file.
    """
    log = parse_log_name(name)
    made = log or parse_base_name(name)
    if made is None:
        return False
    if not timeline.is_committed(made.instant):
        return True
    by_slice = log is not None and version.logs_named_by_base_instant
    if by_slice or any(commit.requested == made.instant for commit in timeline.commits):
        return name not in _Written(timeline)
    return False


def files_of_plan(plan: Mapping[str, Any]) -> dict[str, list[str]]:
    """Names of the files that a clean is to remove, by partition path.

    The table may have been moved since it was planned. Source files of bootstrapped ones, which lie
    outside of the table, are none.
    """
    found: dict[str, list[str]] = {}
    for partition, paths in (plan.get("filesToBeDeletedPerPartition") or {}).items():
        found.setdefault(partition, []).extend(map(_name, paths))
    for partition, infos in (plan.get("filePathsToBeDeletedPerPartition") or {}).items():
        inside = [info for info in infos if not info.get("isBootstrapBaseFile")]
        found.setdefault(partition, []).extend(_name(info["filePath"]) for info in inside)
    return found


def _how(timeline: Timeline, clean: str) -> str:
    begun = any(one.requested == clean for one in timeline.uncut.pending(CLEAN))
    return "is removing" if begun else "removed"


def _files_of_cleans(timeline: Timeline, since: str) -> Iterator[tuple[str, str, str]]:
    """The files that cleans removed after a time: the clean, the partition and the file's name.

    None of a clean that took nothing that was current then.
    """
    for begun in timeline.pending(CLEAN):
        if begun.state is State.INFLIGHT:
            for partition, names in files_of_plan(timeline.plan(begun) or {}).items():
                yield from ((begun.requested, partition, name) for name in names)
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
    horizon = record.get("earliestCommitToRetain") or None
    if horizon is not None and horizon <= since:
        return
    for partition, name in _files_of_record(record):
        yield clean.requested, partition, name


def _files_of_record(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Partition paths and names of the files that a clean has removed."""
    for partition, part in (record.get("partitionMetadata") or {}).items():
        for path in part["successDeleteFiles"]:
            yield partition, _name(path)


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _group(name: str) -> tuple[str, str] | None:
    """File id and instant of a base file or log file, None for other files."""
    found = parse_base_name(name) or parse_log_name(name)
    if found is None or name.endswith(CDC_SUFFIX):
        return None
    return found.file_id, found.instant


def find_replaced_before_start(timeline: Timeline) -> set[GroupKey]:
    """Groups that archived replace commits took away."""
    archive = timeline.archive
    return {
        key
        for instant in archive.commits(InstantRange(until=timeline.bound))
        if instant.action == REPLACE_COMMIT
        for key in archive.commit_metadata(instant).replaced
    }
