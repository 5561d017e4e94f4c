"""Which instants completed rollbacks and restores name.

`txn/rollback.py` executes rollbacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyhudi.config.actions import RESTORE, ROLLBACK, Instant
from pyhudi.timeline.active import Timeline


def rollbacks_of(timeline: Timeline, target: str) -> Iterator[dict[str, Any]]:
    """Yield the records of the completed rollbacks of an instant."""
    for instant in timeline.filter_completed(ROLLBACK):
        record = timeline.read(instant) or {}
        if target in (record.get("commitsRollback") or ()):
            yield record


def was_rolled_back(timeline: Timeline, target: str) -> bool:
    """Return whether a rollback or a restore of the instant is complete."""
    if any(True for _ in rollbacks_of(timeline, target)):
        return True
    restores = (timeline.read(restore) or {} for restore in timeline.filter_completed(RESTORE))
    return any(target in (record.get("instantsToRollback") or ()) for record in restores)


def find_commits_after_rollback(timeline: Timeline) -> list[Instant]:
    """Return commits with a completed file only, which was written after their rollback.

    Archived commits do not count: their archiver failed while it removed their files, and the
    rollback was of an attempt at a compaction or clustering, which has the same instant in Hudi
    (`HoodieTable.rollbackInflightInstant`, 1.2.0).
    """
    if not timeline.filter_completed(ROLLBACK, RESTORE):
        return []
    only_completed = (commit for commit in timeline.commits if len(timeline.files(commit)) == 1)
    return [
        commit
        for commit in only_completed
        if was_rolled_back(timeline, commit.requested)
        and timeline.archive.find(commit.requested, commit.action) is None
    ]
