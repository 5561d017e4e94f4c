"""Savepoints: commits whose files the cleaner retains, so the table can be restored to them.

A savepoint has the instant of its commit. It has no requested file, an empty inflight file, and a
completed file with the names of the table's files after a restore to the commit. The next writer
removes the inflight file of a failed writer, which protects nothing. Source:
`SavepointActionExecutor` (1.2.0). Hudi lists the files as of the commit's requested time, although
its restores use completion times from table version 8 on, and even files that a clean is about to
delete; pyhudi rejects that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyhudi.config.actions import CLEAN, SAVEPOINT, Instant
from pyhudi.config.file_names import file_name_of
from pyhudi.errors import CommitConflict, ConfigError, HistoryUnavailable
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline, serde
from pyhudi.txn import zombie_commits
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.restore_target import file_system_view_after_restore, instants_to_revert

SAVED_BY = "pyhudi"


@dataclass(frozen=True)
class Savepoint:
    """A commit with a savepoint."""

    instant: str
    """The instant of the commit."""
    files: Mapping[str, tuple[str, ...]]
    """Names of base and log files by partition path."""
    comment: str = ""
    saved_by: str = ""
    saved_at_ms: int = 0
    """Epoch milliseconds."""

    @property
    def file_count(self) -> int:
        """The number of files that it protects."""
        return sum(map(len, self.files.values()))


def savepoints(timeline: Timeline) -> list[Savepoint]:
    """Return the savepoints of a timeline, oldest commit first."""
    return [
        _parse(savepoint, timeline.read(savepoint) or {})
        for savepoint in timeline.filter_completed(SAVEPOINT)
    ]


def find_saved_instants(timeline: Timeline) -> set[str]:
    """Return the commits with a savepoint."""
    return {savepoint.requested for savepoint in timeline.filter_completed(SAVEPOINT)}


def create(table: TableSnapshot, comment: str = "", instant: str | None = None) -> Savepoint:
    """Save a completed commit of the active timeline, by default the last one to complete.

    Up to table version 6, which stores no completion times, the default is the last one requested.
    Raises `HistoryUnavailable` for a missing commit and for one whose files may have been cleaned,
    `ConfigError` if it has a savepoint, `CommitConflict` if a pending clean is about to delete its
    files, and `LockTimeout` if another writer holds the table's lock.
    """
    with table.lock_manager.critical_section():
        table = table.with_timeline(zombie_commits.load_timeline(table))
        commit = _find_commit(table.timeline, instant)
        if commit.requested in find_saved_instants(table.timeline):
            msg = f"the commit {commit.requested} has a savepoint already"
            raise ConfigError(msg, hint="savepoints() lists the savepoints.")
        later = instants_to_revert(table, commit)
        if later:
            _check_not_cleaned(table.timeline, commit)
        files = _files(file_system_view_after_restore(table, commit, later))
        saved = Savepoint(commit.requested, files, comment, SAVED_BY, table.clock.now_ms())
        _check_not_to_be_cleaned(table.timeline, saved)
        savepoint = PendingInstant(table, saved.instant, SAVEPOINT)
        if not savepoint.is_inflight:
            savepoint.begin()
        record = _record(saved)
        savepoint.complete(serde.encode_container("HoodieSavepointMetadata", record, table.clock))
        return saved


def delete(table: TableSnapshot, instant: str) -> None:
    """Delete a savepoint, also the incomplete one of a failed writer.

    Raises `ConfigError` if it does not exist, `LockTimeout` if another writer holds the table's
    lock.
    """
    with table.lock_manager.critical_section():
        savepoint = zombie_commits.load_timeline(table).find(instant, SAVEPOINT)
        if savepoint is None:
            msg = f"there is no savepoint of {instant}"
            raise ConfigError(msg, hint="savepoints() lists the savepoints.")
        if savepoint.is_completed:
            PendingInstant(table, instant, SAVEPOINT).unpublish()
        PendingInstant(table, instant, SAVEPOINT).remove()


def remove_unfinished_savepoints(table: TableSnapshot, timeline: Timeline) -> None:
    """Remove incomplete savepoints, whose writers have failed."""
    for pending in timeline.pending(SAVEPOINT):
        PendingInstant(table, pending.requested, SAVEPOINT).remove()


# --- commit and files -----------------------------------------------------------------------------


def _find_commit(timeline: Timeline, instant: str | None) -> Instant:
    """Return the commit of an instant; None for the newest one, by the times that restores use."""
    if instant is not None:
        commit = next((c for c in timeline.commits if c.requested == instant), None)
    elif timeline.completes_in_names:
        commit = max(timeline.commits, key=lambda commit: commit.completed or "", default=None)
    else:
        commit = timeline.last_commit
    if commit is None:
        expected = "completed commit" if instant is None else f"completed commit {instant}"
        msg = f"the active timeline has no {expected}"
        raise HistoryUnavailable(msg, hint="inspect.commits() lists the commits.")
    return commit


def _check_not_cleaned(timeline: Timeline, commit: Instant) -> None:
    """Raise `HistoryUnavailable` for a commit that the newest clean does not retain."""
    earliest_retained = _oldest_uncleaned(timeline)
    if commit.requested < earliest_retained:
        msg = f"{commit.requested} is before {earliest_retained}: files of it may have been cleaned"
        raise HistoryUnavailable(msg, hint=f"Save {earliest_retained} or a later commit.")


def _oldest_uncleaned(timeline: Timeline) -> str:
    """Return the earliest retained commit; the last one before the clean if it records none."""
    clean = max(
        (instant for instant in timeline.instants if instant.action == CLEAN),
        key=lambda instant: instant.requested,
        default=None,
    )
    if clean is None:
        return timeline.commits[0].requested
    if clean.is_completed:
        earliest_retained = (timeline.read(clean) or {}).get("earliestCommitToRetain")
    else:
        plan = timeline.plan(clean) or {}
        earliest_retained = (plan.get("earliestInstantToRetain") or {}).get("timestamp")
    earlier = [
        commit.requested for commit in timeline.commits if commit.requested <= clean.requested
    ]
    return earliest_retained or max(earlier, default=timeline.commits[0].requested)


def _files(view: FileSystemView) -> dict[str, tuple[str, ...]]:
    """Return the names of the files that readers use, by partition path."""
    names_by_partition: dict[str, list[str]] = {path: [] for path in view.partitions}
    for slice_ in view.slices():
        names_by_partition[slice_.partition] += (file.name for file in slice_.files)
    return {path: tuple(names) for path, names in names_by_partition.items()}


def _check_not_to_be_cleaned(timeline: Timeline, saved: Savepoint) -> None:
    """Raise `CommitConflict` if a pending clean deletes a file of the savepoint."""
    for clean in timeline.pending(CLEAN):
        planned = (timeline.plan(clean) or {}).get("filePathsToBeDeletedPerPartition") or {}
        for path, files in planned.items():
            names = {file_name_of(file["filePath"]) for file in files}
            if not names.isdisjoint(saved.files.get(path, ())):
                msg = f"{clean} is about to delete files of {saved.instant}"
                raise CommitConflict(msg, hint="Save a later commit.")


# --- records --------------------------------------------------------------------------------------


def _record(saved: Savepoint) -> dict[str, Any]:
    return {
        "savepointedBy": saved.saved_by,
        "savepointedAt": saved.saved_at_ms,
        "comments": saved.comment,
        "partitionMetadata": {
            path: {"partitionPath": path, "savepointDataFile": list(names)}
            for path, names in saved.files.items()
        },
        "version": 1,
    }


def _parse(instant: Instant, record: Mapping[str, Any]) -> Savepoint:
    partitions = record.get("partitionMetadata") or {}
    return Savepoint(
        instant.requested,
        {path: tuple(part.get("savepointDataFile") or ()) for path, part in partitions.items()},
        record.get("comments") or "",
        record.get("savepointedBy") or "",
        int(record.get("savepointedAt") or 0),
    )
