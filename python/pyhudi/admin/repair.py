"""Removes files of failed writers that the timeline does not record; `check` finds them.

No commit lists these files, and no reader should read them: a file with the instant of a commit
that does not list it is read as a part of that commit. Files that may belong to an active writer
stay. If the metadata table lists missing files of rolled-back commits, it is rebuilt, since its
indexes have their rows too. A missing file that a commit lists is a loss, which a repair does not
hide.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyhudi.admin import run_service
from pyhudi.admin.check_files import (
    StoredTable,
    check_files,
    collect_recorded_files,
    find_stale_staged_files,
    list_table_files,
    logs_are_shared,
    was_committed,
)
from pyhudi.admin.check_findings import Finding
from pyhudi.admin.check_metadata import check_folders, check_listing, open_metadata
from pyhudi.clock import Clock, SystemClock
from pyhudi.config.file_names import parse_base_name, parse_log_name
from pyhudi.config.metadata_names import FILES
from pyhudi.metadata.table_writer import clear_partitions
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.txn import conflicts, heartbeat
from pyhudi.write import metadata_lifecycle
from pyhudi.write.table_opening import Handle, WritableTable


def repair(table: WritableTable, clock: Clock | None = None) -> tuple[Finding, ...]:
    """Remove orphaned files and directories, and return them.

    Failed writes are rolled back first, and the metadata table is rebuilt if it lists files of
    rolled-back commits. Raises `CommitConflict` if a restore has started, `LockTimeout` if other
    writers hold the table's lock.
    """
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    opened = run_service.open_for_service(handle, clock, changes=True)
    with opened.lock_manager.critical_section():
        # Files are listed first: a write is on the timeline before it has any.
        stored = list_table_files(opened.storage, opened.config)
        snapshot = opened.reload()
        conflicts.check_may_begin(snapshot.timeline)
        leftovers = tuple(_find_leftovers(snapshot, stored))
        for finding in leftovers:
            opened.lock_manager.check_held()
            _remove(snapshot, finding)
        listed = tuple(
            _find_stale_listings(snapshot, list_table_files(snapshot.storage, snapshot.config))
        )
        if listed:
            stale = {f"{finding.partition}/{finding.item}".lstrip("/") for finding in listed}
            metadata_lifecycle.rebuild(handle, clock, stale=stale)
    return (*leftovers, *listed)


def _find_stale_listings(table: TableSnapshot, stored: StoredTable) -> Iterator[Finding]:
    """Yield files of rolled-back commits that only the metadata table still lists."""
    if FILES not in table.config.metadata_partitions:
        return
    metadata, _ = open_metadata(table.storage, table.config, table.timeline)
    if metadata is None:
        return
    recorded = collect_recorded_files(table.timeline)
    for finding in check_listing(metadata, table.timeline, recorded, stored):
        log = parse_log_name(finding.item)
        base = parse_base_name(finding.item, table.config.base_extension)
        file = log or base
        path = f"{finding.partition}/{finding.item}".lstrip("/")
        if finding.kind != "metadata_extra_file" or file is None or path in recorded.written:
            continue
        if not was_committed(table.timeline, file.instant):
            yield finding


def _find_leftovers(table: TableSnapshot, stored: StoredTable) -> Iterator[Finding]:
    timeline = table.timeline
    yield from find_stale_staged_files(stored, table.clock)
    for finding in check_folders(table.storage, table.config):
        if finding.kind == "metadata_partition_unlisted":
            yield finding
    files = {(file.partition, file.name): file for file in stored.files.values()}
    times = {file.instant for file in files.values()}
    active = set(heartbeat.live_instants(table.storage, times, table.clock))
    for finding in check_files(timeline, collect_recorded_files(timeline), stored):
        file = files.get((finding.partition, finding.item))
        # Up to table version 6, this log file may have blocks that roll back those of other
        # writes.
        if file is None or (file.is_log and logs_are_shared(timeline)):
            continue
        if finding.kind in ("unnamed_file", "rolled_back_file") and file.instant not in active:
            yield finding


def _remove(table: TableSnapshot, finding: Finding) -> None:
    if finding.kind == "metadata_partition_unlisted":
        clear_partitions(table.storage, [finding.item], table.lock_manager)
    else:
        table.storage.delete(f"{finding.partition}/{finding.item}".lstrip("/"))
