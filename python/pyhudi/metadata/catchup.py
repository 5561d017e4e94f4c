"""Adds missing commits to a metadata table that another writer did not keep in sync.

The files of each commit go into `files`, as its metadata names them. The other partitions would
need the rows of the table from before the commit: they are dropped, and the next writer rebuilds
them.
"""

from __future__ import annotations

from pyhudi.config.actions import CLEAN, RESTORE, ROLLBACK
from pyhudi.config.file_names import parse_log_name
from pyhudi.config.metadata_names import FILES
from pyhudi.metadata.commit_participant import DeltaCommit
from pyhudi.metadata.compacted_rollbacks import drop_indexes
from pyhudi.metadata.consistency import missing_commits
from pyhudi.metadata.partition_types.files import FileTask, entries_of
from pyhudi.metadata.table_writer import delta_commit, open_metadata_table, remove_delta_commit
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Instant


def catch_up(table: TableSnapshot) -> bool:
    """Add missing commits in a critical section; return whether that was possible.

    It is not possible if a clean, a restore or a rollback of a commit completed since, because the
    metadata table would miss it too, or if a commit names no files. Raises `CommitConflict` if the
    table's properties have changed.
    """
    if FILES not in table.config.metadata_partitions:
        return True
    table = table.reload()
    missing = _missing(table)
    if missing is None:
        return False
    if missing:
        table = drop_indexes(table)
    for commit in missing:
        metadata_table = open_metadata_table(table)
        if delta_commit(metadata_table, commit.requested) is not None:
            # A writer failed before it completed its delta commit.
            remove_delta_commit(metadata_table, commit.requested)
            metadata_table = metadata_table.reload()
        _remove_orphans(metadata_table, commit.requested)
        delta = DeltaCommit(table, metadata_table, commit.requested)
        task_context = delta.task_context
        entries = tuple(entries_of(table.timeline.commit_metadata(commit)))
        delta.write(table.engine, [FileTask(task_context, entries)])
    return True


def _remove_orphans(metadata_table: TableSnapshot, instant: str) -> None:
    """Remove log files of a delta commit that is not on the timeline: they would count."""
    if not metadata_table.timeline.completes_in_names:
        return
    storage = metadata_table.storage
    for file in storage.list_dir(FILES)[1]:
        log = parse_log_name(file.name)
        if log is not None and log.instant == instant:
            storage.delete(file.path)


def _missing(table: TableSnapshot) -> list[Instant] | None:
    """Return the missing commits by completion time; None if others may be missing too."""
    timeline, metadata_table = table.timeline, open_metadata_table(table)
    times = set(missing_commits(timeline, metadata_table.timeline))
    commits = [commit for commit in timeline.commits if commit.requested in times]
    commits.sort(key=lambda commit: commit.completed or commit.requested)
    if not commits:
        return []
    first = min(times)
    if any(other.requested > first for other in timeline.filter_completed(CLEAN, RESTORE)):
        return None
    for instant in timeline.filter_completed(ROLLBACK):
        targets = (timeline.read(instant) or {}).get("commitsRollback") or ()
        if instant.requested > first and any(delta_commit(metadata_table, t) for t in targets):
            return None
    return None if any(timeline.read(commit) is None for commit in commits) else commits
