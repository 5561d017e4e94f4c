"""Ranges of time and the completed commits in them, including archived ones.

Ranges are requested times below table version 8 and completion times from 8 on. This module reads
the commit metadata; queries decide which parts they need. Sources: `IncrementalQueryAnalyzer` and
`TimelineUtils.handleHollowCommitIfNeeded` (Hudi 1.2.0).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal
from zlib import crc32

from pyhudi.clock import Moment, instant_of
from pyhudi.errors import ConfigError, HistoryUnavailable
from pyhudi.suggestions import did_you_mean
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import CommitMetadata, Instant
from pyhudi.timeline.instant_range import InstantRange
from pyhudi.timeline.named_instants import PlainTime, check_complete, order_time
from pyhudi.timeline.time_travel import check_after_first_commit, first_incomplete_commit

HollowCommits = Literal["fail", "block", "transition_time"]
"""The policy below table version 8 for a pending write that is older than completed ones."""

_EARLIEST = re.compile("earliest|0+", re.IGNORECASE)


@dataclass(frozen=True)
class Shard:
    """A part of the file groups; each group is in one of `count` shards, in every process."""

    number: int
    count: int

    def has(self, file_id: str) -> bool:
        """Return whether the shard has a file group."""
        return crc32(file_id.encode()) % self.count == self.number


@dataclass(frozen=True)
class IncrementalRange:
    """The range of an incremental query, in instants of the table."""

    start: str | None
    """Exclusive; None from the beginning."""
    end: str | None
    """Inclusive; None to the last commit."""
    hollow_commits: HollowCommits = "fail"
    fallback_full_scan: bool | None = None
    """None as Hudi 1.2.0: from table version 8 on."""
    shard: Shard | None = None
    """The file groups to read; None for all."""


@dataclass(frozen=True)
class Selection:
    """The completed commits of a range, by requested time, and their metadata."""

    commits: tuple[Instant, ...]
    metadata: tuple[CommitMetadata, ...]
    exact: bool
    """Rows are selected by membership of their commit in the selection (else: by its range)."""

    @property
    def instants(self) -> tuple[str, ...]:
        """Requested times of the commits."""
        return tuple(commit.requested for commit in self.commits)


def by_completion_times(table: TableSnapshot, hollow_commits: str = "fail") -> bool:
    """Return whether ranges of the table use completion times (else: requested times)."""
    by_completion = table.config.version.incremental_by_completion_time
    return by_completion or hollow_commits == "transition_time"


def range_start(
    table: TableSnapshot, timestamp: Moment | None, *, by_completion: bool
) -> str | None:
    """Return the time after which a range begins; None, "earliest" and zeros are the beginning."""
    if timestamp is None or (isinstance(timestamp, str) and _EARLIEST.fullmatch(timestamp.strip())):
        return None
    check_word(timestamp, ["earliest"])
    return _bound(table, timestamp, by_completion=by_completion)


def check_word(timestamp: Moment, words: Sequence[str]) -> None:
    """Raise `ConfigError` for a word in place of a time that resembles one of these words."""
    word = timestamp.strip().lower() if isinstance(timestamp, str) else ""
    if word.isalpha() and word not in words:
        hint = did_you_mean(word, words)
        if hint:
            raise ConfigError(f"{timestamp!r} is not a time", hint=hint)


def range_bounds(
    table: TableSnapshot, start: Moment | None, end: Moment | None, *, by_completion: bool
) -> tuple[str | None, str | None]:
    """Return the times of a range's start and end, None if it is open.

    A bound that is exactly the requested or the completion time of an instant means that instant.

    Raises `ConfigError` for an invalid time, and for a range that ends before it begins;
    `HistoryUnavailable` for a bound that is an instant which is not complete.
    """
    after = range_start(table, start, by_completion=by_completion)
    until = None if end is None else _bound(table, end, by_completion=by_completion)
    if after is not None and until is not None and until < after:
        raise ConfigError(
            f"the range ends at {until}, before it begins at {after}",
            hint="The range excludes `start` and includes `end`: swap them.",
        )
    return after, until


def _bound(table: TableSnapshot, timestamp: Moment, *, by_completion: bool) -> str:
    time = instant_of(timestamp, table.config.timezone)
    if isinstance(timestamp, PlainTime):
        return time
    named = order_time(table.timeline, time, by_completion=by_completion)
    if named == time:
        check_complete(table.timeline, time, by_completion=by_completion)
    return named


def check_range_end(table: TableSnapshot, until: str | None, *, by_completion: bool) -> None:
    """Raise `HistoryUnavailable` for a range that ends before the table's first commit."""
    if until is not None:
        instant_range = InstantRange(until=until, by_completion=by_completion)
        check_after_first_commit(table.timeline, instant_range, f"the range's end {until}")


def select_commits(table: TableSnapshot, incremental_range: IncrementalRange) -> Selection:
    """Return the completed commits of a range, including archived ones.

    Raises `HistoryUnavailable` for a hollow commit under the policy "fail".
    """
    commits = commits_with_readers(table, incremental_range)
    return Selection(
        tuple(commit for commit, _ in commits),
        tuple(read(commit) for commit, read in commits),
        by_completion_times(table, incremental_range.hollow_commits),
    )


def commits_with_readers(
    table: TableSnapshot, incremental_range: IncrementalRange
) -> list[tuple[Instant, Callable[[Instant], CommitMetadata]]]:
    """Return what `select_commits` selects, each with what reads its metadata, which is not read.

    Raises as `select_commits`.
    """
    timeline, by_completion = (
        table.timeline,
        by_completion_times(table, incremental_range.hollow_commits),
    )
    times = InstantRange(incremental_range.start, incremental_range.end, by_completion)
    active = _readable(table, incremental_range.hollow_commits)
    in_range = {instant.requested: instant for instant in active if times.contains(instant)}
    archived = {
        instant.requested: instant
        for instant in _read_archived_commits(table, times)
        if instant.requested not in in_range and timeline.is_committed(instant.requested)
    }
    return [
        (
            commit,
            timeline.archive.commit_metadata
            if commit.requested in archived
            else timeline.commit_metadata,
        )
        for _, commit in sorted({**in_range, **archived}.items())
    ]


def next_start(table: TableSnapshot, incremental_range: IncrementalRange) -> str | None:
    """Return the `start` of the range that follows: no commit is in both, and none is omitted.

    None while there is no commit. Raises `HistoryUnavailable` for a hollow commit under the policy
    "fail", `ConfigError` for a table as of an earlier time: later commits are missing from it that
    completed before some of its own.
    """
    order = InstantRange(by_completion=by_completion_times(table, incremental_range.hollow_commits))
    if table.timeline.bound is not None and order.by_completion:
        raise ConfigError(
            f"the table was opened as of {table.timeline.bound}: it has no later commits to read",
            hint="Open the table without as_of.",
        )
    commits = _readable(table, incremental_range.hollow_commits)
    newest = max((order.time_of(commit) or "" for commit in commits), default="")
    if incremental_range.end is not None:
        newest = min(newest, incremental_range.end)
    return max(newest, incremental_range.start or "") or None


def _readable(table: TableSnapshot, policy: HollowCommits) -> Sequence[Instant]:
    """Return the completed active commits that a range may include."""
    if table.config.version.incremental_by_completion_time:
        return table.timeline.commits
    return without_hollow(table, policy)


def without_hollow(table: TableSnapshot, policy: HollowCommits) -> Sequence[Instant]:
    """Return the completed commits that a range by requested times may include."""
    commits = table.timeline.commits
    pending = first_incomplete_commit(table.timeline)
    if policy == "transition_time" or pending is None:
        return commits
    if policy == "fail":
        _check_not_hollow(
            commits,
            pending,
            "give hollow_commits='block' (only commits before it) or 'transition_time' (ranges of "
            "completion times)",
        )
    return [commit for commit in commits if commit.requested < pending.requested]


def check_no_hollow(table: TableSnapshot, until: str | None) -> None:
    """Raise `HistoryUnavailable` if rows may still be added to a range by requested times.

    until: its end, inclusive; None if it is open.
    """
    pending = first_incomplete_commit(table.timeline)
    if pending is not None and (until is None or until >= pending.requested):
        hint = f"end the range before {pending.requested}"
        _check_not_hollow(table.timeline.commits, pending, hint)


def _check_not_hollow(commits: Sequence[Instant], pending: Instant, alternative: str) -> None:
    if commits and commits[-1].requested > pending.requested:
        raise HistoryUnavailable(
            f"the write {pending} is incomplete, and later ones are complete: a range of requested "
            "times could change once it completes",
            hint=f"Wait until it is done or rolled back, or {alternative}.",
        )


def _read_archived_commits(table: TableSnapshot, times: InstantRange) -> Sequence[Instant]:
    """Return archived commits of a range. The archive is read only if it can have any.

    Raises `HistoryUnavailable` for a range of completion times that were not stored (Hudi before
    0.14): commits archived then are in a range without a start, and are not in one that starts
    after the end of the archive.
    """
    timeline, after = table.timeline, times.after
    reaches_back = after is None or timeline.is_before_start(after)
    if not times.by_completion:
        return timeline.archive.commits(times) if reaches_back else ()
    dated = timeline.archive.commits(times)
    if not reaches_back or table.config.layout.completion_in_name:
        return dated
    undated = [
        i for i in timeline.archive.commits(InstantRange(until=times.until)) if i.completed is None
    ]
    if undated and after is not None:
        raise HistoryUnavailable(
            f"the completion time of the archived commit {undated[-1].requested} is not recorded",
            hint="Give no start, or hollow_commits='block', which uses requested times.",
        )
    return (*undated, *dated)


def check_no_commit_missing(
    table: TableSnapshot, incremental_range: IncrementalRange, selection: Selection
) -> None:
    """Check that the timelines have all commits of the range that later ones depend on.

    Raises `HistoryUnavailable` naming a commit that is on neither timeline.
    """
    instants = {*selection.instants, *(instant.requested for instant in table.timeline.instants)}
    for metadata in selection.metadata:
        for before in {stat.prev_commit for stat in metadata.write_stats} - instants:
            in_range = before.isdecimal() and (
                incremental_range.start is None or before > incremental_range.start
            )
            if in_range and table.timeline.is_before_start(before):
                raise HistoryUnavailable(
                    f"the commit {before} is in the requested range, but neither on the active nor "
                    f"on the archived timeline in {table.timeline.archive.folder}",
                )
