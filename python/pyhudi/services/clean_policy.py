"""Retention: the rules of Hudi's cleaning policies on timelines and slices. No storage access.

Source: `CleanPlanner`, `CleanerUtils.getEarliestCommitToRetain` (Hudi 0.15.0, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyhudi.clock import Zone, format_instant
from pyhudi.config.actions import COMMIT_ACTIONS, INDEXING, Instant
from pyhudi.config.clean_options import KEEP_COMMITS, KEEP_HOURS, KEEP_VERSIONS, CleanOptions
from pyhudi.slices.file_slice import FileSlice
from pyhudi.timeline import Timeline

_HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Retention:
    """The slices that a clean retains."""

    policy: str = KEEP_COMMITS
    horizon: Instant | None = None
    """Earliest commit to retain: snapshots from it on stay readable; None if slices are counted."""
    versions: int = 0
    """Slices per file group, if they are counted."""

    def select_outdated(
        self, slices: Sequence[FileSlice], planned_from: str | None = None
    ) -> list[FileSlice]:
        """Return slices of one file group, newest first, that may be removed.

        planned_from: base instant from which on a pending compaction needs them.
        """
        free = [
            slice_
            for slice_ in slices
            if planned_from is None or slice_.base_instant < planned_from
        ]
        if self.horizon is None:
            # The slices that a compaction needs count as one.
            return free[max(self.versions - (planned_from is not None), 0) :]
        return [
            slice_ for slice_ in slices_before(slices, self.horizon.requested) if slice_ in free
        ]

    def takes_replaced(self, replaced: str) -> bool:
        """Return whether a file group that was replaced at an instant is removed."""
        return self.horizon is None or replaced < self.horizon.requested


def retention(timeline: Timeline, options: CleanOptions, since: str) -> Retention | None:
    """Return the retention by the options, None if all slices stay.

    since: the time from which on KEEP_LATEST_BY_HOURS keeps all.
    """
    if options.policy == KEEP_VERSIONS:
        # Their number does not show which versions a running index build needs.
        indexing = timeline.pending(INDEXING)
        return None if indexing else Retention(options.policy, versions=options.versions)
    if options.policy == KEEP_HOURS:
        recent = (commit for commit in timeline.commits if commit.requested >= since)
        # Hudi ignores pending writes, and what they replace once they are complete.
        horizon = _before(timeline, next(recent, None), needing_the_past(timeline))
    else:
        horizon = oldest_retained(timeline, options.commits)
    return None if horizon is None else Retention(options.policy, horizon)


def hours_before(ms: int, hours: int, zone: Zone) -> str:
    """Return the instant `hours` before a time; "" if all instants are later."""
    since_ms = ms - hours * _HOUR_MS
    return format_instant(since_ms, zone) if since_ms > 0 else ""


def oldest_retained(timeline: Timeline, retained: int) -> Instant | None:
    """Return the oldest commit whose slices stay in any clean; None with few commits.

    retained: number of commits that stay, besides those that pending writes may need.
    """
    commits = timeline.commits
    if len(commits) <= retained:
        return None
    return _before(timeline, commits[-retained], needing_the_past(timeline))


def _before(
    timeline: Timeline, horizon: Instant | None, pending: Sequence[Instant]
) -> Instant | None:
    """Return the commit, or the one before the oldest pending instant if that is older."""
    if horizon is None or not pending:
        return horizon
    first = pending[0].requested
    before = [commit for commit in timeline.commits if commit.requested < first]
    return min((horizon, before[-1]), key=lambda commit: commit.requested) if before else None


def needing_the_past(timeline: Timeline) -> list[Instant]:
    """Return pending writes and indexings, oldest first.

    A concurrent index build reads the table as it was when the build began.
    """
    return [
        pending
        for pending in timeline.pending()
        if pending.completed_action in COMMIT_ACTIONS or pending.action == INDEXING
    ]


def slices_before(slices: Iterable[FileSlice], horizon: str) -> list[FileSlice]:
    """Return slices of one group, newest first, that no query from `horizon` on reads."""
    newest, *superseded = slices
    older = [other for other in superseded if other.base_instant < horizon]
    # The first of them is read by a query at the horizon, unless the newest one is.
    return older if newest.base_instant < horizon else older[1:]
