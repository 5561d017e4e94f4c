"""Archiving the metadata table's timeline: what the data table's has left behind leaves it too.

Sources: `TimelineArchiverV1`, `TimelineArchiverV2`, `ArchivalUtils`, `HoodieMetadataWriteUtils`
(Hudi 0.15.0, 1.2.0). The data table's own timeline is not archived here.
"""

from __future__ import annotations

from pyhudi.config.actions import CLEAN, COMMIT, COMMIT_ACTIONS, ROLLBACK, Instant
from pyhudi.config.service_options import ServiceOptions
from pyhudi.metadata.cleaning import oldest_retained
from pyhudi.metadata.compaction import since_compaction
from pyhudi.timeline import Timeline
from pyhudi.timeline.archiving import archive as archive_instants
from pyhudi.txn.table import Table


def archive(own: Table, data: Table, options: ServiceOptions) -> None:
    """Archives what is due."""
    least, most = _bounds(own.timeline, options)
    instants = _services(own.timeline, least, most)
    if len(own.timeline.commits) > most:
        instants += _commits(own.timeline, least, options.compact_after)
    if not instants:
        return
    start = _start(Timeline.load(data.storage, data.config))
    chosen = [one for one in instants if start is None or one.requested < start]
    if own.timeline.completes_in_names:
        last = max((one.requested for one in chosen), default="")
        others = own.timeline.completed(CLEAN, ROLLBACK)
        chosen += [one for one in others if one.requested < last]
    chosen.sort(key=lambda one: (one.requested, one.action))
    if chosen:
        archive_instants(own.storage, own.config, own.timeline, chosen)


def _bounds(timeline: Timeline, options: ServiceOptions) -> tuple[int, int]:
    """Commits that stay, and how many are too many. All that cleaning retains stay."""
    least, most = options.keep_commits + 1, options.archive_after + 1
    horizon = oldest_retained(timeline)
    if horizon is None:
        return least, most
    retained = sum(one.requested > horizon.requested for one in timeline.commits) + 2
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
    gone = [one for one in commits if until is None or one.requested < until]
    return gone[: len(commits) - least]


def _before_pending(timeline: Timeline) -> list[str]:
    pending = [one for one in timeline.pending() if one.completed_action in COMMIT_ACTIONS]
    if not pending:
        return []
    first = min(one.requested for one in pending)
    before = [one.requested for one in timeline.commits if one.requested < first]
    return [max(before, default=first)]


def _for_compaction(timeline: Timeline, compact_after: int) -> list[str]:
    """What the next compaction counts from (`getEarliestInstantToRetainForCompaction`)."""
    since = [one.requested for one in since_compaction(timeline)]
    if len(since) >= compact_after:
        return [since[-compact_after]]
    compactions = [one.requested for one in timeline.completed(COMMIT)]
    return compactions[-1:] or since[:1]


def _start(timeline: Timeline) -> str | None:
    """The data table's oldest commit or pending instant: rollbacks may ask for its delta commit."""
    times = [one.requested for one in (*timeline.commits, *timeline.pending())]
    return min(times, default=None)
