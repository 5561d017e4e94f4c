"""The target of a restore: the instants that it reverts and the files that remain.

A savepoint lists these files; pyhudi rejects a restore if some are missing. The reverted instants
follow the rule of Hudi 1.2.0 (`RestorePlanActionExecutor`, `RestoreInstantComparatorFactory`), up
to table version 6 that of 0.15.0, which needs no completion times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pyhudi.config.actions import (
    CLUSTERING,
    COMMIT,
    COMMIT_ACTIONS,
    COMPACTION,
    LOG_COMPACTION,
    Instant,
)
from pyhudi.slices.cleaned_files import check_not_cleaned
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.missing_files import check_complete
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline

_WRITES = (*COMMIT_ACTIONS, COMPACTION, LOG_COMPACTION, CLUSTERING)


def instants_to_revert(table: TableSnapshot, to: Instant) -> list[Instant]:
    """Return the commits and planned services that a restore to a completed commit reverts.

    Failed writes are not included; `recovery.py` rolls them back.
    """
    return [
        write for write in _writes(table.timeline) if write != to and _is_after(write, to, table)
    ]


def file_system_view_after_restore(
    table: TableSnapshot, to: Instant, reverted: Collection[Instant]
) -> FileSystemView:
    """Return the files of the table after a restore to a commit.

    reverted: the reverted instants. Raises `HistoryUnavailable` if a clean has deleted some of the
    files, and `MissingFile` if storage has lost some.
    """
    remaining = table.timeline.without(reverted)
    view = FileSystemView(table.storage, table.config, remaining)
    if reverted:
        # For a clean before them, the file groups that they replaced were current.
        oldest_reverted = min(instant.requested for instant in reverted)
        check_not_cleaned(remaining, view, oldest_reverted, f"as restored to {to.requested}")
    # Hudi 1.2.0 can cluster rows into the table's own directory, which hides all partitions until
    # the restore removes them.
    check_complete(
        table.with_timeline(remaining), view, past=bool(reverted), may_be_hidden=bool(reverted)
    )
    return view


def _writes(timeline: Timeline) -> Iterator[Instant]:
    for instant in timeline.instants:
        if instant.is_completed or instant.action not in COMMIT_ACTIONS:
            is_write = instant.action in _WRITES
        else:
            is_write = timeline.is_clustering(instant)
        if is_write:
            yield instant


def _is_after(instant: Instant, to: Instant, table: TableSnapshot) -> bool:
    """Return whether an instant is not part of the snapshot at which `to` completed.

    Compactions of merge-on-read tables and pending instants compare by requested time, since log
    files that were written concurrently apply to them.
    """
    by_request = instant.requested > to.requested
    if not table.timeline.completes_in_names or not instant.is_completed:
        return by_request
    if table.config.is_merge_on_read and instant.action == COMMIT:
        return by_request
    return (instant.completed or "") > (to.completed or "")
