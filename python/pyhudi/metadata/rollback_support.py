"""Decides whether a metadata table can roll back with its table.

It does so by rolling back the delta commits of the same instants. Records in base files cannot be
distinguished any more: those of a compaction, and of a partition that was built since. Then the
metadata table must be rebuilt. Hudi checks less: it deletes a metadata table whose oldest
compaction is not older than the savepoint, and rolls back younger compactions
(`BaseHoodieWriteClient.restoreToSavepoint`, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Collection

from pyhudi.clock import parse_instant
from pyhudi.config.actions import LOG_COMPACTION, RESTORE
from pyhudi.config.metadata_names import FILES
from pyhudi.errors import ConfigError, HistoryUnavailable
from pyhudi.metadata.table_writer import delta_commit, groups_by_partition, open_metadata_table
from pyhudi.table.table_snapshot import TableSnapshot


def can_roll_back(data: TableSnapshot, targets: Collection[str]) -> bool:
    """Return whether the metadata table can roll back commits of these instants; true without one.

    It cannot if another writer began to restore it, or has left delta commits of instants that the
    table no longer has.
    """
    partitions = data.config.metadata_partitions
    if FILES not in partitions or not targets:
        return True
    metadata_table = open_metadata_table(data)
    oldest = min(targets)
    existing = {instant.requested for instant in data.timeline.instants}
    if metadata_table.timeline.pending(RESTORE):
        return False
    if any(target not in existing and delta_commit(metadata_table, target) for target in targets):
        return False
    if _log_compactions_since(metadata_table, oldest):
        return False
    groups = groups_by_partition(metadata_table, partitions)
    base_instants = {
        group.slice.base_instant
        for groups_of_partition in groups.values()
        for group in groups_of_partition
    }
    return all(
        _was_complete(metadata_table, base_instant, oldest, data) for base_instant in base_instants
    )


def _log_compactions_since(metadata_table: TableSnapshot, time: str) -> bool:
    return any(
        file.action == LOG_COMPACTION
        for instant in metadata_table.timeline.instants
        if instant.requested > time
        for file in metadata_table.timeline.files(instant)
    )


def _was_complete(
    metadata_table: TableSnapshot, base_instant: str, time: str, data: TableSnapshot
) -> bool:
    """Return whether the slices of an instant were written before a time of the table.

    Up to table version 6 the name of a compaction shows it. The files' modification times, which
    can only grow, show it for instants that built a partition.
    """
    timeline = metadata_table.timeline
    try:
        completed = timeline.completion_time(base_instant) or timeline.archive.completion_time(
            base_instant
        )
        if timeline.completes_in_names:
            return completed < time
        written_at = parse_instant(completed, metadata_table.config.timezone)
        return base_instant < time and written_at < parse_instant(time, data.config.timezone)
    except (HistoryUnavailable, ConfigError):
        return False
