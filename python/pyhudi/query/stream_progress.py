"""Progress of a stream of commits, and its next step. Pure except for commit metadata.

A stream uses completion times from table version 8 on and requested times below, where it stops
before a pending write: in both cases, later commits come only after those that were read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

from pyhudi.query.cdc import changes_rows
from pyhudi.query.commit_range import (
    IncrementalRange,
    by_completion_times,
    commits_with_readers,
    next_start,
    select_commits,
)
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import CommitMetadata, Instant

_DELETES = frozenset({"DELETE", "DELETE_PREPPED"})


@dataclass(frozen=True)
class StepLimit:
    """Limit of one step of a stream, which always reads at least one commit."""

    instants: int | None = None
    size: int | None = None
    """Bytes of the files that the commits wrote."""

    def is_reached(self, instants: int, size: int) -> bool:
        """Return whether this many commits with this many bytes exceed the limit."""
        over = self.instants is not None and instants > self.instants
        return over or (self.size is not None and size > self.size)


def order_of(table: TableSnapshot) -> str:
    """Return the type of the stream's times: "completion" or "requested"."""
    return "completion" if by_completion_times(table) else "requested"


def newest_time(table: TableSnapshot) -> str | None:
    """Return the time up to which a stream can read; None in a table without commits."""
    return next_start(table, IncrementalRange(None, None, "block"))


def next_time(
    table: TableSnapshot, after: str | None, until: str | None, limit: StepLimit | None
) -> str | None:
    """Return the time up to which the next step reads, `after` if there is nothing to read.

    after: exclusive, None from the beginning. until: the maximum. limit: None for all.
    """
    newest = newest_time(table)
    if newest is not None and until is not None:
        newest = min(newest, until)
    if not newest or (after is not None and newest <= after):
        return after
    if limit is None:
        return newest
    selection = select_commits(table, IncrementalRange(after, newest, "block"))
    steps = sorted(
        (_time(table, commit), sum(stat.file_size_in_bytes for stat in metadata.write_stats))
        for commit, metadata in zip(selection.commits, selection.metadata, strict=True)
    )
    size, last = 0, None
    for number, (time, bytes_) in enumerate(steps, 1):
        size += bytes_
        if last is not None and limit.is_reached(number, size):
            return last
        last = time
    return newest


@dataclass(frozen=True)
class CommitStep:
    """A step of one commit; of several if they have the same time."""

    after: str | None
    """Exclusive; None from the beginning."""
    time: str
    commits: tuple[tuple[Instant, Callable[[Instant], CommitMetadata]], ...]
    """Each with what reads its metadata."""

    @property
    def instants(self) -> tuple[str, ...]:
        """Requested times of the commits."""
        return tuple(commit.requested for commit, _ in self.commits)

    def has_rows(self, table: TableSnapshot, *, changes: bool) -> bool:
        """Return whether an incremental query of the step may have rows, from the metadata.

        The commit of a service has none, and neither does one without files. changes: the query is
        one of changes.
        """
        return any(_has_rows(table, commit, read, changes) for commit, read in self.commits)


def _has_rows(
    table: TableSnapshot,
    commit: Instant,
    read: Callable[[Instant], CommitMetadata],
    changes: bool,  # noqa: FBT001 - of its one caller
) -> bool:
    metadata = read(commit)
    if not changes_rows(table, commit, metadata):
        return False
    if changes and metadata.replaced:
        return True
    is_delete = (metadata.operation_type or "").upper() in _DELETES
    return (changes or not is_delete) and any(stat.path for stat in metadata.write_stats)


def commit_steps(
    table: TableSnapshot, after: str | None, until: str | None = None
) -> Iterator[CommitStep]:
    """Return a step for each commit after a time, in the order of the stream.

    until: inclusive; None for all. No metadata is read.
    """
    newest = newest_time(table)
    if newest is not None and until is not None:
        newest = min(newest, until)
    if not newest or (after is not None and newest <= after):
        return
    commits = commits_with_readers(table, IncrementalRange(after, newest, "block"))
    timed = sorted(((_time(table, each[0]), each) for each in commits), key=lambda pair: pair[0])
    for time, of_time in groupby(timed, key=lambda pair: pair[0]):
        yield CommitStep(after, time, tuple(each for _, each in of_time))
        after = time


def _time(table: TableSnapshot, commit: Instant) -> str:
    return (commit.completed or "") if order_of(table) == "completion" else commit.requested
