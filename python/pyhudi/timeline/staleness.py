"""Whether a table has moved on since a timeline was loaded, and whether its files are still there.

A handle shows the table as it was. What was written since does not count for it, and what it counts
may have been cleaned away or taken back: then it has to be loaded again. Storage does not tell that
of itself, since a file that is gone is merely not listed.
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
    """The timeline as it is now, None when nothing was completed since `timeline` was loaded.

    A commit that is taken back leaves a rollback, so that is told too. An empty timeline is told.

    applied: times of writes that the metadata table has by now. One that was begun since and is not
    complete yet is told as well: the metadata table is ahead of the table by it.
    """
    now = Timeline.load(storage, config)
    known = {(instant.requested, instant.action) for instant in timeline.uncut.filter_completed()}
    done = {(instant.requested, instant.action) for instant in now.filter_completed()}
    if done - known or (known and not done):
        return now
    begun = {instant.requested for instant in now.pending()}
    begun -= {instant.requested for instant in timeline.uncut.pending()}
    return now if begun.intersection(applied) else None


def check_listing_complete(storage: Storage, config: TableConfig, then: Timeline) -> None:
    """Raises `HistoryUnavailable` where files that were current `then` may lack in a listing.

    Storage does not tell whether others have written since, as the metadata table does; so this
    comes after the listing.
    """
    check_snapshot_readable(then, Timeline.load(storage, config))


def check_snapshot_readable(then: Timeline, now: Timeline) -> None:
    """Raises `HistoryUnavailable` where files that were current `then` may be gone `now`.

    then: cut for time travel, or whole. What of a cut one was gone when it was loaded is not told.
    """
    commits = then.uncut.commits
    lost = next((commit for commit in commits if not now.is_committed(commit.requested)), None)
    if lost is None and commits and not _was_archived(commits[-1], now):
        lost = commits[-1]
    if lost is not None:
        raise HistoryUnavailable(
            f"{lost} is no longer on the timeline: after you opened the table, the commit was "
            "rolled back, or the table was recreated, upgraded or downgraded",
            hint=_AGAIN,
        )
    until = then.bound or (then.last_commit.requested if then.last_commit else None)
    if until is None:
        return
    counted = min([until, *_newly_completed(then, now)])
    for horizon, clean in _later_cleans(then, now, until):
        if horizon is None or horizon > counted:
            raise HistoryUnavailable(
                f"after you opened the table, the clean {clean} removed files that the snapshot "
                f"of {until} may need",
                hint=_AGAIN,
            )


def _was_archived(commit: Instant, now: Timeline) -> bool:
    """False where a commit counts as archived and is not: the table was made anew since."""
    active = now.find(commit.requested, commit.action) is not None
    return active or now.archive.find(commit.requested, commit.action) is not None


def _newly_completed(then: Timeline, now: Timeline) -> Iterator[str]:
    """Times of what was pending then and is complete now.

    It does not count then, but to a clean it has replaced what did, and may be older than that.
    """
    for pending in then.uncut.pending(*COMMIT_ACTIONS, COMPACTION, CLUSTERING):
        time, action = pending.requested, pending.completed_action
        found = now.find(time, action)
        if found is None and now.is_before_start(time):
            found = now.archive.find(time, action)
        if found is not None and found.is_completed:
            yield time


def _later_cleans(then: Timeline, now: Timeline, until: str) -> Iterator[tuple[str | None, str]]:
    """What cleans since then have spared, those that are at work too, and their times.

    Spared is what is read as of an instant and later ones; None where a clean has no such horizon,
    as when it keeps a number of file versions. Where cleans may have been archived, the newest of
    those tells enough: horizons only rise.
    """
    # One that was planned by then takes nothing that was current then, but of an earlier time.
    known = {
        clean.requested
        for clean in then.uncut.instants
        if clean.action == CLEAN and (then.bound is None or clean.state is not State.REQUESTED)
    }
    for clean in now.instants:
        if clean.action == CLEAN and clean.requested not in known:
            yield from _horizon_of(now, clean)
    archived = now.archive.last_clean() if now.is_before_start(until) else None
    if archived is not None and archived.requested > max(known, default=then.first_active or ""):
        yield from _horizon(now.archive.read(archived), archived.requested)


def _horizon_of(now: Timeline, clean: Instant) -> Iterator[tuple[str | None, str]]:
    if clean.is_completed:
        yield from _horizon(now.read(clean), clean.requested)
    elif clean.state is State.INFLIGHT:
        plan = now.plan(clean) or {}
        retained = plan.get("earliestInstantToRetain") or {}
        yield retained.get("timestamp"), clean.requested


def _horizon(clean: dict[str, Any] | None, time: str) -> Iterator[tuple[str | None, str]]:
    clean = clean or {}
    horizon = clean.get("earliestCommitToRetain") or None
    if horizon is not None or clean.get("totalFilesDeleted", 1):
        yield horizon, time
