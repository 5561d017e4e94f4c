"""Names of the timeline: actions, states, instants. File names and storage are not used here."""

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
"""All actions of the data timeline, Hudi 0.11 to 1.2."""

COMMIT_ACTIONS = (COMMIT, DELTA_COMMIT, REPLACE_COMMIT)
"""Completed actions that changed the table's rows or files."""

COMPLETED_ACTION = {
    COMPACTION: COMMIT,
    LOG_COMPACTION: DELTA_COMMIT,
    CLUSTERING: REPLACE_COMMIT,
}
"""Name of a completed action by its pending action, if they differ."""


class State(Enum):
    """How far an instant has progressed."""

    REQUESTED = "REQUESTED"
    INFLIGHT = "INFLIGHT"
    COMPLETED = "COMPLETED"

    def __init__(self, _: str) -> None:
        """Set the rank; members are defined in the order of the states."""
        self.rank: int = len(type(self).__members__)
        """Position in that order."""


@dataclass(frozen=True, slots=True)
class Instant:
    """One action on the table at one time, in its furthest state."""

    requested: str
    """The instant time; instants compare as text."""
    action: str
    """Action of the file's name: a pending compaction is `compaction`, a completed one `commit`."""
    state: State
    completed: str | None
    """Completion time, None while pending. In layout 1 it is the file's modification time, which a
    copy of the table changes, so nothing may depend on it there."""
    file_name: str
    """Name of the file of the furthest state, without its directory."""

    @property
    def completed_action(self) -> str:
        """Name of the action once it is completed."""
        return COMPLETED_ACTION.get(self.action, self.action)

    @property
    def is_completed(self) -> bool:
        """Whether the instant is completed."""
        return self.state is State.COMPLETED

    def __str__(self) -> str:
        return f"{self.requested}.{self.action} ({self.state.value.lower()})"
