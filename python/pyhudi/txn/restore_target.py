"""What a restore to a commit leaves of a table: which instants go, which files are read then.

A savepoint names the files of that state; a restore refuses to bring about one that lacks files.
Which instants go is Hudi 1.2.0's rule (`RestorePlanActionExecutor`,
`RestoreInstantComparatorFactory`), up to table version 6 that of 0.15.0, which needs no completion
times.
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
from pyhudi.slices.cleaned_files import check_taken
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.missing_files import check_complete
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline

_WRITES = (*COMMIT_ACTIONS, COMPACTION, LOG_COMPACTION, CLUSTERING)


def instants_to_revert(table: TableSnapshot, to: Instant) -> list[Instant]:
    """Commits and planned services that a restore to a completed commit takes back.

    What failed writes have left is not among them; that is `recovery.py`'s part.
    """
    return [
        write for write in _writes(table.timeline) if write != to and _is_after(write, to, table)
    ]


def file_system_view_after_restore(
    table: TableSnapshot, to: Instant, gone: Collection[Instant]
) -> FileSystemView:
    """The files of the table as a restore to a commit leaves it, which takes instants back.

    Raises `HistoryUnavailable` where a clean has taken some of them, `MissingFile` where storage
    has lost some.
    """
    left = table.timeline.without(gone)
    view = FileSystemView(table.storage, table.config, left)
    if gone:
        # To a clean before them, what they have replaced was current.
        since = min(instant.requested for instant in gone)
        check_taken(left, view, since, f"as restored to {to.requested}")
    check_complete(table.with_timeline(left), view, past=bool(gone))
    return view


def _writes(timeline: Timeline) -> Iterator[Instant]:
    for instant in timeline.instants:
        if instant.is_completed or instant.action not in COMMIT_ACTIONS:
            wanted = instant.action in _WRITES
        else:
            wanted = timeline.is_clustering(instant)
        if wanted:
            yield instant


def _is_after(instant: Instant, to: Instant, table: TableSnapshot) -> bool:
    """Whether an instant is no part of the table as it was when `to` was completed.

    Compactions of merge-on-read tables, and what is pending, go by their requested times: log files
    that were written meanwhile are above them.
    """
    by_request = instant.requested > to.requested
    if not table.timeline.completes_in_names or not instant.is_completed:
        return by_request
    if table.config.is_merge_on_read and instant.action == COMMIT:
        return by_request
    return (instant.completed or "") > (to.completed or "")
