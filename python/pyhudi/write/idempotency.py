"""Idempotent writes: their commits contain an id, and a repeated write is detected by it.

The id is in the commit's extra metadata under `_pyhudi_commit_id`, so it is on the timeline
with the rows or not at all. A commit of several batches lists their ids under
`_pyhudi_commit_ids`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from pyhudi.clock import Clock, SystemClock
from pyhudi.config.actions import Instant
from pyhudi.config.extra_metadata import commit_ids
from pyhudi.config.table_config import TableConfig
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.txn.heartbeat import HEARTBEAT_FOLDER
from pyhudi.txn.result import WriteResult, result_of
from pyhudi.txn.zombie_commits import find_zombies
from pyhudi.write.write_context import WritableTable


def find_commit_by_id(
    table: WritableTable, commit_id: str, clock: Clock | None = None
) -> WriteResult | None:
    """Return the result of the write with an id, archived or not; None if there is none.

    Reads commits from the newest one back.
    """
    return find_commits_by_ids(table, [commit_id], clock).get(commit_id)


def find_commits_by_ids(
    table: WritableTable, ids: Collection[str], clock: Clock | None = None
) -> dict[str, WriteResult]:
    """Return the results of the writes with some ids, as `find_commit_by_id` does for one."""
    missing, results = {*ids}, dict[str, WriteResult]()
    if not missing:
        return results
    config = TableConfig.load(table.storage, clock or SystemClock())
    for instant, metadata in newest_first(table.storage, config):
        for commit_id in missing & commit_ids(metadata.extra_metadata, instant):
            results[commit_id] = _result(instant, metadata)
            missing.remove(commit_id)
        if not missing:
            break
    return results


def newest_first(storage: Storage, config: TableConfig) -> Iterator[tuple[Instant, CommitMetadata]]:
    """All valid commits with their metadata, newest first, archived ones last."""
    # Before the timeline: a writer that revokes a commit removes its heartbeat last.
    beats = storage.list_dir(HEARTBEAT_FOLDER)[1]
    timeline = Timeline.load(storage, config)
    zombie = find_zombies(storage, timeline, beats)
    for instant in reversed(timeline.commits):
        if instant not in zombie:
            yield instant, timeline.commit_metadata(instant)
    for instant in reversed(timeline.archive.commits()):
        yield instant, timeline.archive.commit_metadata(instant)


def _result(instant: Instant, metadata: CommitMetadata) -> WriteResult:
    replaced = (metadata.partition_to_replace_file_ids or {}).values()
    result = result_of(
        instant.requested,
        instant.completed or "",
        metadata.operation_type or "",
        metadata.write_stats,
        file_groups_replaced=sum(map(len, replaced)),
    )
    return replace(result, was_written_before=True)
