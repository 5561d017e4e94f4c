"""Names of the timeline: actions, states, instants. No file names, no storage."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

COMMIT = "commit"
DELTA_COMMIT = "deltacommit"
REPLACE_COMMIT = "replacecommit"
COMPACTION = "compaction"
LOG_COMPACTION = "logcompaction"
CLUSTERING = "clustering"
CLEAN = "clean"
ROLLBACK = "rollback"
SAVEPOINT = "savepoint"
RESTORE = "restore"
INDEXING = "indexing"

ACTIONS = frozenset(
    {
        COMMIT,
        DELTA_COMMIT,
        REPLACE_COMMIT,
        COMPACTION,
        LOG_COMPACTION,
        CLUSTERING,
        CLEAN,
        ROLLBACK,
        SAVEPOINT,
        RESTORE,
        INDEXING,
    }
)
"""Every action of the data timeline, Hudi 0.11 to 1.2."""

COMMIT_ACTIONS = (COMMIT, DELTA_COMMIT, REPLACE_COMMIT)
"""Completed actions that changed the table's rows or files."""

COMPLETED_ACTION = {
    COMPACTION: COMMIT,
    LOG_COMPACTION: DELTA_COMMIT,
    CLUSTERING: REPLACE_COMMIT,
}
"""What a pending action is called once it is complete, where that differs."""


class State(Enum):
    """How far an instant has come."""

    REQUESTED = "REQUESTED"
    INFLIGHT = "INFLIGHT"
    COMPLETED = "COMPLETED"

    def __init__(self, _: str) -> None:
        """Members are made in the order of the states."""
        self.rank: int = len(type(self).__members__)
        """Its place in that order."""


@dataclass(frozen=True, slots=True)
class Instant:
    """One action on the table at one time, in the furthest state it has reached."""

    requested: str
    """The instant time; instants compare as text."""
    action: str
    """As in the file's name: a pending compaction is `compaction`, a completed one `commit`."""
    state: State
    completed: str | None
    """Completion time, None while pending. In layout 1 it is the file's modification time, which a
    copy of the table changes, so nothing may depend on it there."""
    file_name: str
    """Name, without folder, of the file of the furthest state."""

    @property
    def completed_action(self) -> str:
        """What the action is called once complete."""
        return COMPLETED_ACTION.get(self.action, self.action)

    @property
    def is_completed(self) -> bool:
        """Whether it is complete."""
        return self.state is State.COMPLETED

    def __str__(self) -> str:
        return f"{self.requested}.{self.action} ({self.state.value.lower()})"
