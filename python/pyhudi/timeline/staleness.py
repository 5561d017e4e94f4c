"""Staleness of a handle: whether a table has changed since its timeline was loaded.

A handle reads a snapshot. It does not contain later writes, and its files may be cleaned or rolled
back: then the handle must be reloaded. A listing alone does not show that, because it only omits
the deleted files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from pyhudi.config.actions import CLEAN, CLUSTERING, COMMIT_ACTIONS, COMPACTION, Instant, State
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import HistoryUnavailable
from pyhudi.storage.storage import Storage
from pyhudi.timeline.active import Timeline

_AGAIN = "Open the table again, or call refresh() on the handle."


def newer_timeline(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    applied: Collection[str] = frozenset(),
) -> Timeline | None:
    """Return the current timeline, None if nothing was completed since `timeline` was loaded.

    A rolled back commit leaves a rollback instant, so it is detected too. So is an empty timeline.

    applied: times of writes that the metadata table has already. A write that was started since and
    is still pending is detected as well: the metadata table is ahead of the table by it.
    """
    current = Timeline.load(storage, config)
    previous = {
        (instant.requested, instant.action) for instant in timeline.uncut.filter_completed()
    }
    completed = {(instant.requested, instant.action) for instant in current.filter_completed()}
    if completed - previous or (previous and not completed):
        return current
    started = {instant.requested for instant in current.pending()}
    started -= {instant.requested for instant in timeline.uncut.pending()}
    return current if started.intersection(applied) else None


def check_listing_complete(storage: Storage, config: TableConfig, opened: Timeline) -> None:
    """Raise `HistoryUnavailable` if a listing may miss files of the snapshot `opened`.

    Call it after the listing: unlike the metadata table, a listing does not show whether other
    writers have committed.
    """
    check_snapshot_readable(opened, Timeline.load(storage, config))


def check_snapshot_readable(opened: Timeline, current: Timeline) -> None:
    """Raise `HistoryUnavailable` if files of the snapshot `opened` may be deleted in `current`.

    opened: may be cut for time travel; then files that were missing at load are not detected.
    """
    commits = opened.uncut.published_commits
    lost = next((commit for commit in commits if not current.is_committed(commit.requested)), None)
    if lost is None and commits and not _was_archived(commits[-1], current):
        lost = commits[-1]
    if lost is not None:
        raise HistoryUnavailable(
            f"{lost} is no longer on the timeline: after you opened the table, the commit was "
            "rolled back, or the table was recreated, upgraded or downgraded",
            hint=_AGAIN,
        )
    early = next(_early_writes(opened, current), None)
    if early is not None:
        raise HistoryUnavailable(
            f"after you opened the table, a writer that had stalled continued at {early}, which is "
            "older than the timeline, so the snapshot may contain its files",
            hint=_AGAIN,
        )
    until = opened.bound or (opened.last_commit.requested if opened.last_commit else None)
    if until is None:
        return
    counted = min([until, *_newly_completed(opened, current)])
    for earliest_retained, clean in _later_cleans(opened, current, until):
        if earliest_retained is None or earliest_retained > counted:
            raise HistoryUnavailable(
                f"after you opened the table, the clean {clean} removed files that the snapshot "
                f"of {until} may need",
                hint=_AGAIN,
            )


def _was_archived(commit: Instant, current: Timeline) -> bool:
    """Return False if a commit should be archived and is not: the table was recreated since."""
    active = current.find(commit.requested, commit.action) is not None
    return active or current.archive.find(commit.requested, commit.action) is not None


def _newly_completed(opened: Timeline, current: Timeline) -> Iterator[str]:
    """Yield the times of instants that were pending then and are completed now.

    They are not part of the snapshot. But a clean counts their file slices as newer than those of
    the snapshot, although their requested times may be older.
    """
    for pending in opened.uncut.pending(*COMMIT_ACTIONS, COMPACTION, CLUSTERING):
        time, action = pending.requested, pending.completed_action
        instant = current.find(time, action)
        if instant is None and current.is_before_start(time):
            instant = current.archive.find(time, action)
        if instant is not None and instant.is_completed:
            yield time


def _early_writes(opened: Timeline, current: Timeline) -> Iterator[str]:
    """Yield the times of writes that are new although older than the start of the timeline.

    Their writer lost the lock just before it requested them. Their files count as archived on the
    timeline that was opened.
    """
    known, start = opened.uncut, opened.first_active or ""
    for instant in current.instants:
        if instant.requested >= start:
            break
        is_known = known.find(instant.requested, instant.action) is not None
        if instant.completed_action in COMMIT_ACTIONS and not is_known:
            yield instant.requested
    for requested in current.rolled_back_writes - known.rolled_back_writes:
        if requested < start and requested not in known.pending_times:
            yield requested


def _later_cleans(
    opened: Timeline, current: Timeline, until: str
) -> Iterator[tuple[str | None, str]]:
    """Yield the times of later cleans, also inflight, each with the earliest commit it retains.

    The clean retains the snapshots from that commit on; None if it has no such commit, as with a
    number of file versions. If cleans may have been archived, the newest of those suffices: the
    earliest retained commit only increases.
    """
    # A clean that was planned before removes no file of the snapshot, but of an earlier one.
    earlier = {
        clean.requested
        for clean in opened.uncut.instants
        if clean.action == CLEAN and (opened.bound is None or clean.state is not State.REQUESTED)
    }
    for clean in current.instants:
        if clean.action == CLEAN and clean.requested not in earlier:
            yield from _earliest_retained_by(current, clean)
    archived = current.archive.last_clean() if current.is_before_start(until) else None
    if archived is not None and archived.requested > max(
        earlier, default=opened.first_active or ""
    ):
        yield from _earliest_retained_in(current.archive.read(archived), archived.requested)


def _earliest_retained_by(current: Timeline, clean: Instant) -> Iterator[tuple[str | None, str]]:
    if clean.is_completed:
        yield from _earliest_retained_in(current.read(clean), clean.requested)
    elif clean.state is State.INFLIGHT:
        plan = current.plan(clean) or {}
        retained = plan.get("earliestInstantToRetain") or {}
        yield retained.get("timestamp"), clean.requested


def _earliest_retained_in(
    clean: dict[str, Any] | None, time: str
) -> Iterator[tuple[str | None, str]]:
    clean = clean or {}
    earliest_retained = clean.get("earliestCommitToRetain") or None
    if earliest_retained is not None or clean.get("totalFilesDeleted", 1):
        yield earliest_retained, time
