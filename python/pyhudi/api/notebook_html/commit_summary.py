"""Summaries of instants: type of work and time. File names do not show the type."""

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
"""Operations of commits that change files and no rows, and their actions while pending."""

MAX_COMMITS = 500
"""Maximum number of commits whose metadata are read: the newest ones."""


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
        """Whether the commit changed files and no rows."""
        return self.operation.upper() in _SERVICES


def read_commits(table: TableSnapshot) -> list[Commit]:
    """Return the newest completed commits, oldest first."""
    timeline = table.timeline
    return [_commit(table, instant) for instant in timeline.commits[-MAX_COMMITS:]]


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
    """Return what an instant did: its action, or the service behind a completed commit.

    operation: that of a completed commit, None if it was not read.
    """
    if not instant.is_completed:
        return instant.action
    service = _SERVICES.get((operation or "").upper())
    if service is not None:
        return service
    # All other writes to a merge-on-read table make delta commits or replace commits.
    if merge_on_read and instant.action == COMMIT and not operation:
        return COMPACTION
    return instant.action


def time_of(instant: str | None) -> int | None:
    """Return the wall clock milliseconds of an instant; None if it is not a time."""
    try:
        return None if instant is None else parse_instant(instant, "UTC")
    except ConfigError:
        return None


def clock_text(ms: float, step: float) -> str:
    """Return the label of a time on an axis whose ticks are `step` milliseconds apart."""
    wall = datetime.fromtimestamp(ms / 1000, tz=timezone.utc)
    if step < 1000:
        return f"{wall:%H:%M:%S}.{wall.microsecond // 1000:03d}"
    if step < 60_000:
        return f"{wall:%H:%M:%S}"
    return f"{wall:%m-%d %H:%M}" if step < 86_400_000 else f"{wall:%Y-%m-%d}"
