"""Removing what dead writers left that nothing on the timeline tells of; `check` finds the same.

No commit names what goes, and nobody reads it, or should: a file that bears the instant of a commit
which does not name it is read as a part of it. What may be a living writer's stays.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyhudi.admin import services
from pyhudi.admin.check_files import (
    StoredTable,
    check_files,
    logs_are_shared,
    named_files,
    staged_files,
    stored_table,
)
from pyhudi.admin.check_findings import Finding
from pyhudi.admin.check_metadata import check_folders
from pyhudi.clock import Clock, SystemClock
from pyhudi.metadata.table_writer import clear_partitions
from pyhudi.slices.table import Table
from pyhudi.txn import conflicts, heartbeat
from pyhudi.write.write_context import Handle, WritableTable


def repair(table: WritableTable, clock: Clock | None = None) -> tuple[Finding, ...]:
    """Removes files and folders that are nobody's, and gives them.

    Failed writes are rolled back first. Raises `CommitConflict` where a restore has begun,
    `LockTimeout` where others hold the table's lock.
    """
    clock = clock or SystemClock()
    opened = services.open_for_service(Handle.of(table, clock), clock, changes=True)
    with opened.guard.section():
        # Files come first: a write is on the timeline before it has any.
        stored = stored_table(opened.storage, opened.config)
        now = opened.reloaded()
        conflicts.check_may_begin(now.timeline)
        found = tuple(_left(now, stored))
        for finding in found:
            opened.guard.check()
            _remove(now, finding)
    return found


def _left(table: Table, stored: StoredTable) -> Iterator[Finding]:
    timeline = table.timeline
    yield from staged_files(stored, table.clock)
    for finding in check_folders(table.storage, table.config):
        if finding.kind == "metadata_partition_unlisted":
            yield finding
    files = {(file.partition, file.name): file for file in stored.files.values()}
    times = {file.instant for file in files.values()}
    alive = set(heartbeat.live_instants(table.storage, times, table.clock))
    for finding in check_files(timeline, named_files(timeline), stored):
        file = files.get((finding.partition, finding.item))
        # Up to table version 6 such a log file may hold what calls blocks of others off.
        if file is None or (file.is_log and logs_are_shared(timeline)):
            continue
        if finding.kind in ("unnamed_file", "rolled_back_file") and file.instant not in alive:
            yield finding


def _remove(table: Table, finding: Finding) -> None:
    if finding.kind == "metadata_partition_unlisted":
        clear_partitions(table.storage, [finding.item], table.guard)
    else:
        table.storage.delete(f"{finding.partition}/{finding.item}".lstrip("/"))
