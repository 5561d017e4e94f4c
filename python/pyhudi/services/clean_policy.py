"""Retention: the rules of Hudi's cleaning policies on timelines and slices. No storage access.

Source: `CleanPlanner`, `CleanerUtils.getEarliestCommitToRetain` (Hudi 0.15.0, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyhudi.clock import Zone, format_instant
from pyhudi.config.actions import COMMIT_ACTIONS, INDEXING, Instant
from pyhudi.config.retention_options import KEEP_COMMITS, KEEP_HOURS, KEEP_VERSIONS, CleanOptions
from pyhudi.slices.file_slice import FileSlice
from pyhudi.timeline import Timeline

_HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Retention:
    """The slices that a clean retains."""

    policy: str = KEEP_COMMITS
    earliest_retained: Instant | None = None
    """Earliest commit to retain, whose snapshot stays readable; None if slices are counted."""
    versions: int = 0
    """Number of slices to retain per file group, if slices are counted."""

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
        if self.earliest_retained is None:
            # The slices that a compaction needs count as one.
            return free[max(self.versions - (planned_from is not None), 0) :]
        return [
            slice_
            for slice_ in slices_before(slices, self.earliest_retained.requested)
            if slice_ in free
        ]

    def takes_replaced(self, replaced: str) -> bool:
        """Return whether a file group that was replaced at an instant is removed."""
        return self.earliest_retained is None or replaced < self.earliest_retained.requested


def retention(timeline: Timeline, options: CleanOptions, since: str) -> Retention | None:
    """Return the retention by the options, None to retain all slices.

    since: KEEP_LATEST_BY_HOURS retains all slices from this time on.
    """
    if options.policy == KEEP_VERSIONS:
        # A running index build may need more versions.
        indexing = timeline.pending(INDEXING)
        return None if indexing else Retention(options.policy, versions=options.versions)
    if options.policy == KEEP_HOURS:
        recent = (commit for commit in timeline.commits if commit.requested >= since)
        # Hudi ignores pending writes here, which replace slices once they complete.
        earliest_retained = _commit_before(
            timeline, next(recent, None), pending_readers_of_past(timeline)
        )
    else:
        earliest_retained = oldest_retained(timeline, options.commits)
    return None if earliest_retained is None else Retention(options.policy, earliest_retained)


def hours_before(ms: int, hours: int, zone: Zone) -> str:
    """Return the instant `hours` before a time; "" if all instants are later."""
    since_ms = ms - hours * _HOUR_MS
    return format_instant(since_ms, zone) if since_ms > 0 else ""


def oldest_retained(timeline: Timeline, retained: int) -> Instant | None:
    """Return the earliest commit to retain; None with few commits.

    retained: number of commits to retain, in addition to those that pending writes may need.
    """
    commits = timeline.commits
    if len(commits) <= retained:
        return None
    return _commit_before(timeline, commits[-retained], pending_readers_of_past(timeline))


def _commit_before(
    timeline: Timeline, earliest_retained: Instant | None, pending: Sequence[Instant]
) -> Instant | None:
    """Return the older of `earliest_retained` and the commit before the oldest pending instant."""
    if earliest_retained is None or not pending:
        return earliest_retained
    oldest_pending = pending[0].requested
    earlier = [commit for commit in timeline.commits if commit.requested < oldest_pending]
    return (
        min((earliest_retained, earlier[-1]), key=lambda commit: commit.requested)
        if earlier
        else None
    )


def pending_readers_of_past(timeline: Timeline) -> list[Instant]:
    """Return pending writes and indexings, oldest first.

    A concurrent index build reads the snapshot at which it began.
    """
    return [
        pending
        for pending in timeline.pending()
        if pending.completed_action in COMMIT_ACTIONS or pending.action == INDEXING
    ]


def slices_before(slices: Iterable[FileSlice], earliest_retained: str) -> list[FileSlice]:
    """Return slices of one group, newest first, that no query of this commit or later reads."""
    newest, *superseded = slices
    older = [other for other in superseded if other.base_instant < earliest_retained]
    # A query at that commit reads the first of them, or the newest slice.
    return older if newest.base_instant < earliest_retained else older[1:]
