"""What instants did, and when: the kind of work, which the names of their files do not tell."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from pyhudi.clock import parse_instant
from pyhudi.config.actions import (
    CLUSTERING,
    COMMIT,
    COMPACTION,
    LOG_COMPACTION,
    Instant,
)
from pyhudi.errors import ConfigError
from pyhudi.table.table_snapshot import TableSnapshot

_SERVICES = {"COMPACT": COMPACTION, "LOG_COMPACT": LOG_COMPACTION, "CLUSTER": CLUSTERING}
"""Operations of commits that change files and no rows, and what they are called while pending."""

COMMITS_MOST = 500
"""Commits whose metadata are read, the newest."""


@dataclass(frozen=True)
class Commit:
    """A completed commit and what it wrote."""

    instant: Instant
    operation: str
    inserted: int
    updated: int
    deleted: int
    files: int
    bytes: int

    @property
    def is_service(self) -> bool:
        """Whether it changed files and no rows."""
        return self.operation.upper() in _SERVICES


def read_commits(table: TableSnapshot) -> list[Commit]:
    """The newest completed commits, oldest first."""
    timeline = table.timeline
    return [_commit(table, instant) for instant in timeline.commits[-COMMITS_MOST:]]


def _commit(table: TableSnapshot, instant: Instant) -> Commit:
    metadata = table.timeline.commit_metadata(instant)
    stats = metadata.write_stats
    return Commit(
        instant,
        metadata.operation_type or "",
        sum(stat.num_inserts for stat in stats),
        sum(stat.num_update_writes for stat in stats),
        sum(stat.num_deletes for stat in stats),
        len(stats),
        sum(stat.total_write_bytes for stat in stats),
    )


def kind_of(instant: Instant, operation: str | None, *, merge_on_read: bool) -> str:
    """What an instant did: its action, but for services that are complete, whose names are lost.

    operation: of a completed commit, None where it was not read.
    """
    if not instant.is_completed:
        return instant.action
    service = _SERVICES.get((operation or "").upper())
    if service is not None:
        return service
    # All else that writes to such a table makes delta commits or replace commits.
    if merge_on_read and instant.action == COMMIT and not operation:
        return COMPACTION
    return instant.action


def time_of(instant: str | None) -> int | None:
    """Milliseconds of the wall clock that an instant tells; None where it is no time."""
    try:
        return None if instant is None else parse_instant(instant, "UTC")
    except ConfigError:
        return None


def clock_text(ms: float, step: float) -> str:
    """A time on an axis whose ticks are so many milliseconds apart."""
    wall = datetime.fromtimestamp(ms / 1000, tz=timezone.utc)
    if step < 1000:
        return f"{wall:%H:%M:%S}.{wall.microsecond // 1000:03d}"
    if step < 60_000:
        return f"{wall:%H:%M:%S}"
    return f"{wall:%m-%d %H:%M}" if step < 86_400_000 else f"{wall:%Y-%m-%d}"
