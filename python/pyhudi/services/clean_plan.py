"""The plan of a clean: turns a table and its retention into Hudi's plan record.

A slice is kept if a savepoint or a pending plan names one of its files; a replaced group with a
pending compaction is kept completely. Hudi differs: 1.0.2 removes log files of a pending
compaction; every release removes a replaced group with a pending compaction, and a partition's
directory with files of a savepoint in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any

from pyhudi.cached_property import cached_property
from pyhudi.config.actions import (
    CLEAN,
    CLUSTERING,
    COMPACTION,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    Instant,
    State,
)
from pyhudi.config.file_names import file_name_of, parse_log_name
from pyhudi.services.clean_policy import Retention
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.listing import LISTED_AT_ONCE, GivenFiles, list_files, walk_partitions
from pyhudi.slices.slice_builder import GroupKey, records_of_plan
from pyhudi.storage.storage import Entry, Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.txn.savepoint import find_saved_instants, savepoints

PLAN_VERSION = 2
"""Version of plan and record: paths as `HoodieCleanFileInfo`."""
SAVED_COMMITS = "savepointed_timestamps"
"""Key in a clean's extra metadata: the commits with a savepoint at that time."""

_MAX_FILES_IN_VIEW = 20_000
"""Approximate number of files that are loaded at a time."""

Files = dict[str, dict[str, int]]
"""Sizes by name, by partition path."""


@dataclass(frozen=True)
class CleanPlan:
    """The files that one clean removes."""

    retention: Retention
    files: Files = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    """Paths of partitions that become empty."""
    file_groups: int = 0

    def record(self, table: TableSnapshot) -> dict[str, Any]:
        """Return the record of the requested file."""
        root = table.storage.native.uri.rstrip("/")
        earliest_retained = self.retention.earliest_retained
        last = table.timeline.last_commit
        saved = sorted(find_saved_instants(table.timeline))
        return {
            "earliestInstantToRetain": earliest_retained
            and {
                "timestamp": earliest_retained.requested,
                "action": earliest_retained.action,
                "state": State.COMPLETED.value,
            },
            "lastCompletedCommitTimestamp": last.requested if last else "",
            "policy": self.retention.policy,
            "filesToBeDeletedPerPartition": {},
            "version": PLAN_VERSION,
            "filePathsToBeDeletedPerPartition": {
                partition: [
                    {
                        "filePath": "/".join(filter(None, (root, partition, name))),
                        "isBootstrapBaseFile": False,
                    }
                    for name in names
                ]
                for partition, names in self.files.items()
            },
            "partitionsToBeDeleted": list(self.partitions),
            "extraMetadata": {SAVED_COMMITS: ",".join(saved)} if saved else {},
        }


def clean_plan(
    table: TableSnapshot,
    retention: Retention,
    partitions: Collection[str] | None = None,
    view: FileSystemView | None = None,
) -> CleanPlan:
    """Plan the files to remove. partitions: only in these, None for all. view: of all files."""
    if partitions is not None and not partitions:
        return CleanPlan(retention)
    required = _RequiredFiles(table.timeline)
    removed: Files = {}
    groups: set[GroupKey] = set()
    emptied: list[str] = []
    views = _views(table, partitions) if view is None or partitions is not None else [view]
    for part in views:
        files: Files = {}
        for slice_ in _find_outdated_slices(part, retention, required):
            if not required.contains(slice_):
                sizes = {file.name: file.size for file in slice_.files}
                files.setdefault(slice_.partition, {}).update(sizes)
                groups.add(slice_.key)
        files = {partition: names for partition, names in files.items() if names}
        if table.config.partition_fields:
            # All of their data files are removed, committed or not.
            emptied += (path for path in files if part.count_files(path) == len(files[path]))
        removed |= files
    ordered = {partition: removed[partition] for partition in sorted(removed)}
    return CleanPlan(retention, ordered, tuple(sorted(emptied)), len(groups))


def _views(table: TableSnapshot, partitions: Collection[str] | None) -> Iterator[FileSystemView]:
    """Yield the table's files, a few partitions at a time to limit memory."""
    part: dict[str, list[Entry]] = {}
    files = 0
    for path, entries in _list_partitions(table.storage, partitions):
        part[path] = entries
        files += len(entries)
        if files >= _MAX_FILES_IN_VIEW:
            yield _view(table, part)
            part, files = {}, 0
    if part:
        yield _view(table, part)


def _view(table: TableSnapshot, files: Mapping[str, list[Entry]]) -> FileSystemView:
    listed, paths = GivenFiles(files), set(files)
    return FileSystemView(
        table.storage, table.config, table.timeline, paths, listed, change_logs=True
    )


def _list_partitions(
    storage: Storage, partitions: Collection[str] | None
) -> Iterator[tuple[str, list[Entry]]]:
    if partitions is None:
        yield from walk_partitions(storage)
        return
    paths = sorted(partitions)
    for first in range(0, len(paths), LISTED_AT_ONCE):
        yield from list_files(storage, paths[first : first + LISTED_AT_ONCE])


def _find_outdated_slices(
    view: FileSystemView, retention: Retention, required: _RequiredFiles
) -> Iterator[FileSlice]:
    planned_from = required.planned_from
    versions = view.slices_of_versions(planned_from)
    for key, slices in groupby(versions, key=attrgetter("key")):
        yield from retention.select_outdated(list(slices), planned_from.get(key))
    for key, replaced in sorted(view.replaced.items()):
        if key not in planned_from and retention.takes_replaced(replaced):
            yield from view.slices_of(key)


class _RequiredFiles:
    """Files that plans and savepoints need, regardless of the policy."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.planned_from: dict[GroupKey, str] = {}
        """Base instants of slices with a pending compaction."""
        self._planned: set[tuple[str, str]] = set()
        for pending in timeline.pending(COMPACTION, LOG_COMPACTION, CLUSTERING, REPLACE_COMMIT):
            for planned in records_of_plan(timeline.plan(pending)):
                self._add(planned, from_base=pending.action in (COMPACTION, LOG_COMPACTION))

    def _add(self, planned: Mapping[str, Any], *, from_base: bool) -> None:
        partition = planned["partitionPath"] or ""
        if from_base:
            key, base = (partition, planned["fileId"]), planned["baseInstantTime"]
            self.planned_from[key] = min(base, self.planned_from.get(key, base))
        paths = (planned.get("dataFilePath"), *(planned.get("deltaFilePaths") or ()))
        self._planned |= {(partition, file_name_of(path)) for path in paths if path}

    @cached_property
    def _saved(self) -> set[tuple[str, str]]:
        return {
            (partition, name)
            for saved in savepoints(self._timeline)
            for partition, names in saved.files.items()
            for name in names
        }

    def contains(self, slice_: FileSlice) -> bool:
        """Return whether a plan or a savepoint needs a file of the slice."""
        names = {(slice_.partition, file.name) for file in slice_.files}
        return not (names.isdisjoint(self._planned) and names.isdisjoint(self._saved))


# --- partitions to check --------------------------------------------------------------------------


def partitions_since(timeline: Timeline, retention: Retention) -> set[str] | None:
    """Return partitions with files to remove since the last clean; None if unknown.

    A slice can be removed once the base file after it is older than the earliest commit to retain.
    Replaced groups are checked until their commit is archived, because the commit may have
    completed, or a plan that names the group may have ended, after a clean with a later limit.
    """
    last = last_clean(timeline)
    since = (last or {}).get("earliestCommitToRetain") or ""
    if retention.earliest_retained is None or not since.strip() or timeline.is_before_start(since):
        return None
    saved_before = ((last or {}).get("extraMetadata") or {}).get(SAVED_COMMITS) or ""
    if not find_saved_instants(timeline).issuperset(filter(None, saved_before.split(","))):
        return None
    until = retention.earliest_retained.requested
    replaces = (c for c in timeline.filter_completed(REPLACE_COMMIT) if c.requested < since)
    replaced = {path for c in replaces for path, _ in timeline.commit_metadata(c).replaced}
    changed = (c for c in timeline.commits if since <= c.requested < until)
    return replaced | _partitions_of_commits(timeline, changed)


def _partitions_of_commits(timeline: Timeline, commits: Iterable[Instant]) -> set[str]:
    partitions: set[str] = set()
    for commit in commits:
        metadata = timeline.commit_metadata(commit)
        for partition, stats in metadata.partition_to_write_stats.items():
            if not all(map(is_log_append, stats)):
                partitions.add(partition)
        partitions |= (metadata.partition_to_replace_file_ids or {}).keys()
    return partitions


def is_log_append(stat: WriteStat) -> bool:
    """Return whether a commit wrote a log file, which ends no file slice."""
    return parse_log_name((stat.path or "").rpartition("/")[2]) is not None


def last_clean(timeline: Timeline) -> dict[str, Any] | None:
    """Return the record of the newest completed clean of the active timeline, or None."""
    cleans = timeline.filter_completed(CLEAN)
    return timeline.read(cleans[-1]) if cleans else None
