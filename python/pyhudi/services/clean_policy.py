"""What a cleaner takes: the rules of Hudi's policies over plain facts. Nothing here reads storage.

Source: `CleanPlanner`, `CleanerUtils.getEarliestCommitToRetain` (Hudi 0.15.0, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyhudi.config.actions import COMMIT_ACTIONS, Instant
from pyhudi.config.clean_options import KEEP_COMMITS, KEEP_HOURS, KEEP_VERSIONS, CleanOptions
from pyhudi.slices.file_slice import FileSlice
from pyhudi.timeline import Timeline


@dataclass(frozen=True)
class Retention:
    """What stays of a table."""

    policy: str = KEEP_COMMITS
    horizon: Instant | None = None
    """What is read as of this commit or a later one; None where slices are counted."""
    versions: int = 0
    """Slices of each file group, where they are counted."""

    def outdated(
        self, slices: Sequence[FileSlice], planned_from: str | None = None
    ) -> list[FileSlice]:
        """Slices of one file group, newest first, that may go.

        planned_from: base instant from which on a pending compaction needs them.
        """
        free = [
            slice_
            for slice_ in slices
            if planned_from is None or slice_.base_instant < planned_from
        ]
        if self.horizon is None:
            # The slices that a compaction needs count for one.
            return free[max(self.versions - (planned_from is not None), 0) :]
        return [
            slice_ for slice_ in slices_before(slices, self.horizon.requested) if slice_ in free
        ]

    def takes_replaced(self, replaced: str) -> bool:
        """Whether a file group goes that was replaced at an instant."""
        return self.horizon is None or replaced < self.horizon.requested


def retention(timeline: Timeline, options: CleanOptions, since: str) -> Retention | None:
    """What stays by the options, None where all does.

    since: the time from which on KEEP_LATEST_BY_HOURS keeps all.
    """
    if options.policy == KEEP_VERSIONS:
        return Retention(options.policy, versions=options.versions)
    if options.policy == KEEP_HOURS:
        recent = (commit for commit in timeline.commits if commit.requested >= since)
        horizon = next(recent, None)
    else:
        horizon = oldest_retained(timeline, options.commits)
    return None if horizon is None else Retention(options.policy, horizon)


def oldest_retained(timeline: Timeline, retained: int) -> Instant | None:
    """The oldest commit whose slices stay, whenever they are cleaned; None with few commits.

    retained: so many commits stay, and those that pending writes may need.
    """
    commits = timeline.commits
    if len(commits) <= retained:
        return None
    horizon = commits[-retained]
    pending = [
        write.requested for write in timeline.pending() if write.completed_action in COMMIT_ACTIONS
    ]
    if not pending:
        return horizon
    before = [commit for commit in commits if commit.requested < min(pending)]
    return min((horizon, before[-1]), key=lambda commit: commit.requested) if before else None


def slices_before(slices: Iterable[FileSlice], horizon: str) -> list[FileSlice]:
    """Slices of one file group, newest first, that no query as of the horizon or later reads."""
    newest, *others = slices
    older = [other for other in others if other.base_instant < horizon]
    # The first of them is what a query as of the horizon reads, unless the newest one is.
    return older if newest.base_instant < horizon else older[1:]
