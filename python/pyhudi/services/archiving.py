"""Archiving: which completed instants leave the active timeline.

Sources: `TimelineArchiverV1`, `TimelineArchiverV2`, `ArchivalUtils` (Hudi 0.15.0, 1.2.0). So far
pyhudi archives the timelines of metadata tables alone; how instants get into the archive is
`timeline/archiving.py`'s part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyhudi.config.actions import CLEAN, COMMIT, COMMIT_ACTIONS, DELTA_COMMIT, ROLLBACK, Instant
from pyhudi.services.clean_policy import oldest_retained
from pyhudi.slices.table import Table
from pyhudi.timeline import Timeline
from pyhudi.timeline.archiving import archive as archive_instants


@dataclass(frozen=True)
class ArchivingPolicy:
    """What stays in the active timeline."""

    least: int
    """Commits that stay."""
    most: int
    """Commits beyond which instants go until the least are left."""
    retained: int
    """Commits whose file slices cleaning retains; they stay too."""
    compact_after: int
    """Delta commits from which the next compaction counts."""
    before: Callable[[], str | None] = lambda: None
    """Gives the instant from which on all stay; asked only where something may go."""


def archive(table: Table, policy: ArchivingPolicy) -> None:
    """Archives what is due."""
    timeline = table.timeline
    least, most = _bounds(timeline, policy)
    instants = _services(timeline, least, most)
    if len(timeline.commits) > most:
        instants += _commits(timeline, least, policy.compact_after)
    if not instants:
        return
    start = policy.before()
    chosen = [instant for instant in instants if start is None or instant.requested < start]
    if timeline.completes_in_names:
        last = max((instant.requested for instant in chosen), default="")
        others = timeline.completed(CLEAN, ROLLBACK)
        chosen += [instant for instant in others if instant.requested < last]
    chosen.sort(key=lambda instant: (instant.requested, instant.action))
    if chosen:
        archive_instants(table.storage, table.config, timeline, chosen)


def since_compaction(timeline: Timeline) -> list[Instant]:
    """Delta commits completed since the last compaction, all where there was none."""
    last = next((commit.requested for commit in reversed(timeline.completed(COMMIT))), "")
    named = timeline.completes_in_names
    deltas = timeline.completed(DELTA_COMMIT)
    return [
        delta for delta in deltas if ((delta.completed if named else delta.requested) or "") > last
    ]


def _bounds(timeline: Timeline, policy: ArchivingPolicy) -> tuple[int, int]:
    """Commits that stay, and how many are too many. All that cleaning retains stay."""
    least, most = policy.least, policy.most
    horizon = oldest_retained(timeline, policy.retained)
    if horizon is None:
        return least, most
    retained = sum(commit.requested > horizon.requested for commit in timeline.commits) + 2
    return (least, most) if least >= retained else (retained, retained + most - least)


def _services(timeline: Timeline, least: int, most: int) -> list[Instant]:
    """Cleans and rollbacks, which up to table version 6 are counted apart."""
    if timeline.completes_in_names:
        return []
    found: list[Instant] = []
    for action in (CLEAN, ROLLBACK):
        instants = timeline.completed(action)
        found += instants[: len(instants) - least] if len(instants) > most else ()
    return found


def _commits(timeline: Timeline, least: int, compact_after: int) -> list[Instant]:
    """The oldest commits, but for those that pending writes and the next compaction need."""
    bounds = [*_before_pending(timeline), *_for_compaction(timeline, compact_after)]
    commits = timeline.commits
    until = min(bounds, default=None)
    gone = [commit for commit in commits if until is None or commit.requested < until]
    return gone[: len(commits) - least]


def _before_pending(timeline: Timeline) -> list[str]:
    pending = [write for write in timeline.pending() if write.completed_action in COMMIT_ACTIONS]
    if not pending:
        return []
    first = min(instant.requested for instant in pending)
    before = [commit.requested for commit in timeline.commits if commit.requested < first]
    return [max(before, default=first)]


def _for_compaction(timeline: Timeline, compact_after: int) -> list[str]:
    """What the next compaction counts from (`getEarliestInstantToRetainForCompaction`)."""
    since = [instant.requested for instant in since_compaction(timeline)]
    if len(since) >= compact_after:
        return [since[-compact_after]]
    compactions = [instant.requested for instant in timeline.completed(COMMIT)]
    return compactions[-1:] or since[:1]
