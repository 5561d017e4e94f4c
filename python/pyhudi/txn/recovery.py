"""Recovery of a table before a new write: completes or removes the work of failed writers.

Recovery executes pending restores and rollbacks, rolls back failed writes, and removes incomplete
savepoints, leftover markers and staged files. It checks in the same critical section that the
writers are not active. A stalled writer may still complete its write after the rollback. It then
undoes the write itself; if it fails, the next writer does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar
from weakref import WeakKeyDictionary

from pyhudi.config.actions import RESTORE, ROLLBACK, SAVEPOINT, Instant
from pyhudi.errors import CommitConflict
from pyhudi.slices import markers
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.rollbacks import find_commits_after_rollback
from pyhudi.timeline.time_travel import incomplete_writes
from pyhudi.txn import conflicts, heartbeat, restore, rollback, savepoint, zombie_commits
from pyhudi.txn.attempt_files import remove_files_after_rollback, remove_unnamed_base_files
from pyhudi.txn.orphan_files import remove_orphan_files

_LAST_SEARCH: WeakKeyDictionary[Storage, int] = WeakKeyDictionary()
"""The time of the last search for orphaned files, by the handle's storage."""
_SEARCH_INTERVAL_MS = 60_000


Opened = TypeVar("Opened")


def open_recovered(open_table: Callable[[], Opened]) -> Opened:
    """Return what `open_table` opens and recovers, for operations that are not retried.

    A recovery that drops indexes changes the properties and raises a conflict. The table is then
    opened again.
    """
    try:
        return open_table()
    except CommitConflict as error:
        if not error.retry:
            raise
    return open_table()


def recover(
    table: TableSnapshot,
    check: Callable[[Timeline], None],
    timeline: Timeline | None = None,
    *,
    force: bool = False,
) -> Timeline:
    """Recover the table for a new write and return its timeline.

    check: raises, before any change, if pyhudi must not write. timeline: if it was just loaded.
    force: see `restore.resume`. A rollback raises `LockTimeout` if another writer holds the lock,
    and `CommitConflict` if the properties changed.
    """
    if timeline is None:
        timeline = Timeline.load(table.storage, table.config)
    if table.lock_manager.is_held:
        timeline = zombie_commits.revoke_zombies(table, timeline)
    table.generator.observe(timeline)
    check(timeline)
    pending = [*timeline.pending(ROLLBACK), *incomplete_writes(timeline)]
    needs_rollback = bool(
        timeline.pending(SAVEPOINT, RESTORE)
        or _without_active_writer(table, pending)
        or find_commits_after_rollback(timeline)
    )
    if needs_rollback:
        with table.lock_manager.critical_section():
            # A rollback updates the metadata table's partitions, which the properties name.
            conflicts.check_config(table)
            timeline = _roll_back_failed(table, force=force)
            # A commit participant may have dropped indexes that the rollback invalidated.
            conflicts.check_config(table)
    if needs_rollback or _is_search_due(table):
        directories = remove_orphan_files(table.storage, timeline, table.clock)
        if markers.MARKER_FOLDER in directories:
            _remove_leftover_markers(table, timeline)
    return timeline


def _is_search_due(table: TableSnapshot) -> bool:
    """Return whether a search for orphaned files is due; not every small commit needs one."""
    current, last = table.clock.now_ms(), _LAST_SEARCH.get(table.storage)
    if last is not None and 0 <= current - last < _SEARCH_INTERVAL_MS:
        return False
    _LAST_SEARCH[table.storage] = current
    return True


def _without_active_writer(table: TableSnapshot, pending: Collection[Instant]) -> list[Instant]:
    """Return the pending instants without an active writer, in the same order."""
    times = {instant.requested for instant in pending}
    active = heartbeat.live_instants(table.storage, times, table.clock)
    return [instant for instant in pending if instant.requested not in active]


def _roll_back_failed(table: TableSnapshot, *, force: bool) -> Timeline:
    """Complete or undo the work of failed writers, in a critical section."""
    timeline = zombie_commits.load_timeline(table)
    if timeline.pending(SAVEPOINT):
        savepoint.remove_unfinished_savepoints(table, timeline)
        timeline = zombie_commits.load_timeline(table)
    for pending in timeline.pending(RESTORE):
        restore.resume(table, timeline, pending, force=force)
        timeline = zombie_commits.load_timeline(table)
    if timeline.pending(ROLLBACK) and timeline.filter_completed(RESTORE):
        restore.remove_rollbacks_of_restores(table, timeline)
        timeline = zombie_commits.load_timeline(table)
    for pending in _without_active_writer(table, timeline.pending(ROLLBACK)):
        rollback.resume(table, timeline, pending)
        # A stalled writer may have requested another rollback of the same write.
        timeline = zombie_commits.load_timeline(table)
    failed = _without_active_writer(table, [*incomplete_writes(timeline)])
    for instant in reversed(failed):
        rollback.roll_back(table, timeline, instant)
    if failed:
        # A stalled writer may have published its commit during the rollback.
        timeline = zombie_commits.load_timeline(table)
    return timeline


def check_no_live_writer(table: TableSnapshot, timeline: Timeline) -> None:
    """Raise `CommitConflict` if another writer is active, for operations that must run alone.

    In Hudi 1.2, concurrent writes, compactions and rollbacks have a heartbeat. Within a critical
    section, zombie commits are revoked first.
    """
    if table.lock_manager.is_held:
        timeline = zombie_commits.revoke_zombies(table, timeline)
    check_none_active(table, {instant.requested for instant in timeline.pending()})


def check_none_active(table: TableSnapshot, instants: Collection[str]) -> None:
    """Raise `CommitConflict` if one of these instants has an active writer."""
    for instant in heartbeat.live_instants(table.storage, instants, table.clock):
        msg = f"another writer is active at instant {instant}"
        raise CommitConflict(
            msg, hint="Wait until it is done, or two minutes if it has failed, then retry."
        )


def _remove_leftover_markers(table: TableSnapshot, timeline: Timeline) -> None:
    """Remove markers of writers that failed after a commit or a rollback, with files they name.

    These are files that a task wrote after its write was rolled back, which would become visible
    once the instant is archived; and base files of a task's second attempt that ended after the
    commit, which are visible immediately.
    """
    storage = table.storage
    marked = set(markers.instants_with_markers(storage))
    if not marked <= {instant.requested for instant in timeline.instants}:
        # The other markers belong to a write that started after the timeline was loaded, or was
        # withdrawn, or was rolled back and is still running: it deletes its files itself.
        timeline = Timeline.load(table.storage, table.config)
        table.generator.observe(timeline)
    existing = {instant.requested for instant in timeline.instants}
    commits = {commit.requested: commit for commit in timeline.commits}
    marked -= {instant.requested for instant in timeline.pending()}
    marked -= {instant.requested for instant in zombie_commits.find_zombies(storage, timeline)}
    active = heartbeat.live_instants(storage, marked, table.clock)
    for instant in sorted(marked):
        if instant in active:
            continue
        # The writer failed right after its commit: it removes the heartbeat before the markers.
        storage.delete(heartbeat.path_of(instant))
        if instant not in existing and not timeline.is_before_start(instant):
            with table.lock_manager.critical_section():
                current = Timeline.load(storage, table.config)
                remove_files_after_rollback(table, current, instant)
        elif instant in commits:
            remove_unnamed_base_files(storage, timeline, commits[instant])
        markers.delete_all(storage, instant)
