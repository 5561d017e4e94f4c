"""Whether a write may go on: alone, still its writer's own, on file groups that are as planned.

There is no lock yet. A writer shows its heartbeat and its requested instant first and looks for
others afterwards, so of two that begin together at least one sees the other. What readers of the
timeline cannot tell, an insert of the same new key by two writers, is ruled out by that alone.
Which instants touch which file groups is as in `ConcurrentOperation` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterator

from pyhudi.config.actions import (
    CLUSTERING,
    COMMIT_ACTIONS,
    COMPACTION,
    LOG_COMPACTION,
    RESTORE,
    ROLLBACK,
    Instant,
    State,
)
from pyhudi.errors import CommitConflict
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import CommitMetadata

_AGAIN = "Run the operation again."
_EXCLUSIVE = (*COMMIT_ACTIONS, COMPACTION, LOG_COMPACTION, CLUSTERING, RESTORE)

FileGroups = frozenset[tuple[str, str]]
"""Partition paths with file ids."""


def check_alone(timeline: Timeline, seen: Timeline, instant: str, *, looks_for_keys: bool) -> None:
    """Raises `CommitConflict` if others began or ended a write since this one was planned.

    timeline: of now, with this write's instant. seen: what the write was planned on.
    looks_for_keys: the write goes by which rows there are, so any commit since makes its plan
    stale.
    """
    known = {(one.requested, one.completed_action) for one in seen.instants}
    for other in timeline.pending(*_EXCLUSIVE):
        is_new = (other.requested, other.completed_action) not in known
        if is_new and other.requested != instant:
            raise CommitConflict(f"another writer has begun {other}", hint=_AGAIN)
    if looks_for_keys:
        for other in _completed_since(timeline, seen):
            raise CommitConflict(f"{other} was completed while this write began", hint=_AGAIN)


def check_own(timeline: Timeline, instant: str, action: str) -> None:
    """Raises `CommitConflict` unless a write is inflight still and nobody is taking it back.

    timeline: of now.
    """
    own = timeline.find(instant, action)
    states = {file.state for file in timeline.files(own)} if own is not None else set()
    if states != {State.REQUESTED, State.INFLIGHT}:
        what = "is complete already" if State.COMPLETED in states else "was taken back"
        raise CommitConflict(f"the {action} {instant} {what} by another writer", hint=_AGAIN)
    for rollback in timeline.pending(ROLLBACK):
        target = (timeline.plan(rollback) or {}).get("instantToRollback") or {}
        if target.get("commitTime") == instant:
            msg = f"another writer takes the {action} {instant} back as {rollback}"
            raise CommitConflict(msg, hint=_AGAIN)
    for restore in timeline.pending(RESTORE):
        raise CommitConflict(f"{restore} has begun", hint="Write again when it is complete.")


def check_file_groups(
    timeline: Timeline, seen: Timeline, instant: str, metadata: CommitMetadata
) -> None:
    """Raises `CommitConflict` naming a commit since the plan that has file groups of this write.

    metadata: what the write did. A compaction that was requested before the write is none: the
    write's files are above it.
    """
    mine = touched(metadata)
    for other in _completed_since(timeline, seen):
        theirs = timeline.commit_metadata(other)
        if theirs.operation_type == "COMPACT" and other.requested < instant:
            continue
        common = sorted(mine & touched(theirs))
        if common:
            partition, file_id = common[0]
            msg = f"{other} has changed file group {file_id} of partition {partition!r} meanwhile"
            raise CommitConflict(msg, hint=_AGAIN)


def touched(metadata: CommitMetadata) -> FileGroups:
    """The file groups that a commit writes to or takes away."""
    written = {
        (partition, stat.file_id)
        for partition, stats in metadata.partition_to_write_stats.items()
        for stat in stats
    }
    replaced = {
        (partition, file_id)
        for partition, ids in (metadata.partition_to_replace_file_ids or {}).items()
        for file_id in ids
    }
    return frozenset(written | replaced)


def _completed_since(timeline: Timeline, seen: Timeline) -> Iterator[Instant]:
    before = {one.requested for one in seen.commits}
    return (one for one in timeline.commits if one.requested not in before)
