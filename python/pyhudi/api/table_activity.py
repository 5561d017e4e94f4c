"""The activity of a table: pending work, lock, consumers, last commits.

`table_watch.py` observes it. These are plain data, which the command `top` prints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["active", "planned", "failed", "no heartbeat"]


@dataclass(frozen=True)
class PendingWork:
    """A pending instant: an active write or service, a plan, or what a failed writer left."""

    instant: str
    action: str
    operation: str | None
    """Hudi's name of a write's operation, None if its files do not have it."""
    state: str
    status: Status
    age_ms: int | None
    """Since the request; None if the instant is not a time."""
    heartbeat_age_ms: int | None
    process: int | None
    """Number of the writer's process, if it is one of this machine."""
    partitions: int | None
    file_groups: int | None
    """File groups of a plan, or that a write updates."""
    rows: int | None
    """Rows that a write inserts, updates and deletes."""


@dataclass(frozen=True)
class LockStatus:
    """The table's lock."""

    provider: str
    holder: str | None
    """None if the lock is free, or unknown: see `note`."""
    note: str | None = None
    """The reason why the holder is unknown."""


@dataclass(frozen=True)
class ConsumerLag:
    """How far one shard of a consumer is behind the table."""

    consumer: str
    shard: int
    shards: int
    position: str | None
    commits_behind: int | None
    """Later commits, without those of services; None if the position is of another order."""
    has_archived: bool
    """Whether archived commits may be later, too: then the number is a minimum."""
    lag_ms: int | None
    """Time since the first of these commits; None without one."""
    updated_age_ms: int


@dataclass(frozen=True)
class CommitSummary:
    """A completed commit."""

    instant: str
    completed: str | None
    action: str
    operation: str | None
    rows_inserted: int | None
    """None for a service, which changes no rows; as the two that follow."""
    rows_updated: int | None
    rows_deleted: int | None
    files: int
    bytes: int
    duration_ms: int | None
    """From the request to the completion; of a planned service from the plan."""
    age_ms: int | None
    small_files: int
    """Base files of less than 32 MiB."""
    base_files: int


@dataclass(frozen=True)
class FileHealth:
    """Figures of the timeline and of the last commits, which need no listing of data files."""

    active_instants: int
    commits_since_clean: int
    delta_commits_since_compaction: int
    """Each adds a log file to the file groups that it updates; 0 for copy-on-write."""
    small_files: int
    """Base files of less than 32 MiB, of those that the displayed commits wrote."""
    base_files: int
    """Base files that the displayed commits wrote."""


@dataclass(frozen=True)
class TableActivity:
    """The activity of a table at one time."""

    table: str
    """The location or name as the caller gave it."""
    at_ms: int
    error: str | None = None
    """The reason why the table could not be read; all that follows is then missing."""
    name: str | None = None
    type: str | None = None
    version: int | None = None
    lock: LockStatus | None = None
    pending: tuple[PendingWork, ...] = ()
    consumers: tuple[ConsumerLag, ...] = ()
    commits: tuple[CommitSummary, ...] = ()
    """The last ones, the newest first."""
    health: FileHealth | None = None
