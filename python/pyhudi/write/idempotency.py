"""Idempotent writes: their commits contain an id, and a repeated write is detected by it.

The id is in the commit's extra metadata under `_pyhudi_commit_id`, so it is on the timeline
with the rows or not at all. A commit of several batches lists their ids under
`_pyhudi_commit_ids`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from pyhudi.clock import Clock, SystemClock
from pyhudi.config.actions import Instant
from pyhudi.config.extra_metadata import ROWS_REJECTED, commit_ids
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import HEARTBEAT_FOLDER
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.txn.result import WriteResult, result_of
from pyhudi.txn.zombie_commits import find_zombies
from pyhudi.write.table_opening import WritableTable


def find_commit_by_id(
    table: WritableTable,
    commit_id: str,
    clock: Clock | None = None,
    searched: SearchedCommits | None = None,
) -> WriteResult | None:
    """Return the result of the write with an id, archived or not; else None.

    Reads commits from the newest one back. searched: as in `find_commits_by_ids`.
    """
    return find_commits_by_ids(table, [commit_id], clock, searched).get(commit_id)


@dataclass
class SearchedCommits:
    """The commits that one writer has searched, so that it reads each of them once."""

    commits: set[tuple[str, str]] = field(default_factory=set)
    """Requested time and action."""
    hashes: set[int] = field(default_factory=set)
    """Hashes of the ids of these commits."""

    def may_have(self, ids: Collection[str]) -> bool:
        """Return whether one of the commits may have one of the ids."""
        return not self.hashes.isdisjoint(map(hash, ids))

    def has(self, instant: Instant) -> bool:
        """Return whether a commit was searched."""
        return (instant.requested, instant.action) in self.commits

    def add(self, instant: Instant, ids: Collection[str]) -> None:
        """Add a commit with its ids."""
        # The ids first: threads share it, and skip commits that it has.
        self.hashes.update(map(hash, ids))
        self.commits.add((instant.requested, instant.action))


def find_commits_by_ids(
    table: WritableTable,
    ids: Collection[str],
    clock: Clock | None = None,
    searched: SearchedCommits | None = None,
) -> dict[str, WriteResult]:
    """Return the results of the writes with some ids, as `find_commit_by_id` does for one.

    searched: commits that need not be read again, to which those read now are added.
    """
    missing, results = {*ids}, dict[str, WriteResult]()
    if not missing:
        return results
    searched = SearchedCommits() if searched is None else searched
    may_skip = not searched.may_have(ids)
    config = TableConfig.load(table.storage, clock or SystemClock())
    for instant, read in _valid_commits(table.storage, config):
        if may_skip and searched.has(instant):
            continue
        metadata = read()
        their_ids = commit_ids(metadata.extra_metadata, instant)
        searched.add(instant, their_ids)
        for commit_id in missing & their_ids:
            results[commit_id] = _result(instant, metadata)
            missing.remove(commit_id)
        if not missing:
            break
    return results


def newest_first(storage: Storage, config: TableConfig) -> Iterator[tuple[Instant, CommitMetadata]]:
    """All valid commits with their metadata, newest first, archived ones last."""
    return ((instant, read()) for instant, read in _valid_commits(storage, config))


def _valid_commits(
    storage: Storage, config: TableConfig
) -> Iterator[tuple[Instant, Callable[[], CommitMetadata]]]:
    """The same with functions that read the metadata."""
    # Before the timeline: a writer that revokes a commit removes its heartbeat last.
    beats = storage.list_dir(HEARTBEAT_FOLDER)[1]
    timeline = Timeline.load(storage, config)
    zombie = find_zombies(storage, timeline, beats)
    for instant in reversed(timeline.commits):
        if instant not in zombie:
            yield instant, partial(timeline.commit_metadata, instant)
    for instant in reversed(timeline.archive.commits()):
        yield instant, partial(timeline.archive.commit_metadata, instant)


def _result(instant: Instant, metadata: CommitMetadata) -> WriteResult:
    replaced = (metadata.partition_to_replace_file_ids or {}).values()
    result = result_of(
        instant.requested,
        instant.completed or "",
        metadata.operation_type or "",
        metadata.write_stats,
        file_groups_replaced=sum(map(len, replaced)),
    )
    rejected = int(metadata.extra_metadata.get(ROWS_REJECTED, "0"))
    return replace(result, was_written_before=True, rows_rejected=rejected)
