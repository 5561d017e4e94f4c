"""Recovery of a table before a new write: the leftovers of failed writers are completed or removed.

Recovery executes pending restores and rollbacks, rolls back failed writes, and removes savepoints
that were only started, leftover markers and staged files. Work of active writers stays. Liveness is
checked in the same critical section, in which no write can complete. But a stalled writer may
complete its write after it was rolled back. It undoes that itself, or, if it has failed, the next
writer does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from weakref import WeakKeyDictionary

from pyhudi.config.actions import (
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    Instant,
)
from pyhudi.errors import CommitConflict
from pyhudi.slices import markers
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.time_travel import incomplete_writes
from pyhudi.txn import conflicts, heartbeat, restore, rollback, savepoint, zombie_commits
from pyhudi.txn.attempt_files import remove_files_after_rollback, remove_unnamed_base_files
from pyhudi.txn.orphan_files import remove_orphan_files

_LOOKED: WeakKeyDictionary[Storage, int] = WeakKeyDictionary()
"""The time of the last search for files of failed writers, by the handle's storage."""
_LOOK_EVERY_MS = 60_000


def recover(
    table: TableSnapshot,
    check: Callable[[Timeline], None],
    timeline: Timeline | None = None,
    *,
    force: bool = False,
) -> Timeline:
    """Make the table ready for a new write and return its timeline.

    check: raises, with nothing changed, if pyhudi must not write. timeline: one that was just
    loaded. force: as in `restore.resume`. If there is something to roll back, it raises
    `LockTimeout` if another writer holds the lock, and `CommitConflict` if the properties changed.
    """
    if timeline is None:
        timeline = Timeline.load(table.storage, table.config)
    if table.lock_manager.is_held:
        timeline = zombie_commits.revoke_zombies(table, timeline)
    table.generator.observe(timeline)
    check(timeline)
    pending = [*timeline.pending(ROLLBACK), *find_failed_writes(timeline)]
    needs_rollback = bool(
        timeline.pending(SAVEPOINT, RESTORE)
        or _of_dead(table, pending)
        or rollback.find_commits_after_rollback(timeline)
    )
    if needs_rollback:
        with table.lock_manager.critical_section():
            # A rollback changes all partitions of the metadata table that the properties name.
            conflicts.check_config(table)
            timeline = _roll_back_failed(table, force=force)
            # A commit participant may have dropped indexes that a rollback made invalid.
            conflicts.check_config(table)
    if needs_rollback or _is_time_to_look(table):
        directories = remove_orphan_files(table.storage, timeline, table.clock)
        if markers.MARKER_FOLDER in directories:
            _remove_left_markers(table, timeline)
    return timeline


def _is_time_to_look(table: TableSnapshot) -> bool:
    """Return whether a search for orphaned files is due: not with each of many small commits."""
    now, last = table.clock.now_ms(), _LOOKED.get(table.storage)
    if last is not None and 0 <= now - last < _LOOK_EVERY_MS:
        return False
    _LOOKED[table.storage] = now
    return True


def _of_dead(table: TableSnapshot, pending: Collection[Instant]) -> list[Instant]:
    """Return the pending instants without an active writer, in their order."""
    times = {instant.requested for instant in pending}
    alive = heartbeat.live_instants(table.storage, times, table.clock)
    return [instant for instant in pending if instant.requested not in alive]


def _roll_back_failed(table: TableSnapshot, *, force: bool) -> Timeline:
    """Complete or undo the work of failed writers, in a critical section."""
    timeline = zombie_commits.load_timeline(table)
    if timeline.pending(SAVEPOINT):
        savepoint.remove_left(table, timeline)
        timeline = zombie_commits.load_timeline(table)
    for pending in timeline.pending(RESTORE):
        restore.resume(table, timeline, pending, force=force)
        timeline = zombie_commits.load_timeline(table)
    if timeline.pending(ROLLBACK) and timeline.filter_completed(RESTORE):
        restore.remove_left(table, timeline)
        timeline = zombie_commits.load_timeline(table)
    for pending in _of_dead(table, timeline.pending(ROLLBACK)):
        rollback.resume(table, timeline, pending)
        # Another rollback may be of the same write, requested by a writer that stalled.
        timeline = zombie_commits.load_timeline(table)
    failed, late = (
        _of_dead(table, find_failed_writes(timeline)),
        rollback.find_commits_after_rollback(timeline),
    )
    for instant in reversed(failed):
        rollback.roll_back(table, timeline, instant)
    for instant in late:
        rollback.reopen_instant(table, timeline, instant)
    return zombie_commits.load_timeline(table) if failed or late else timeline


def find_failed_writes(timeline: Timeline) -> list[Instant]:
    """Return the pending writes, oldest first, without pending compactions and clusterings."""
    return list(incomplete_writes(timeline))


def check_no_live_writer(table: TableSnapshot, timeline: Timeline) -> None:
    """Raise `CommitConflict` if another writer is active, for operations that must run alone.

    Hudi 1.2 gives a heartbeat to writes, compactions and rollbacks that run concurrently. Within a
    critical section, a zombie commit counts as an active writer.
    """
    if table.lock_manager.is_held:
        timeline = zombie_commits.revoke_zombies(table, timeline)
    pending = {instant.requested for instant in timeline.pending()}
    for instant in heartbeat.live_instants(table.storage, pending, table.clock):
        msg = f"another writer is active at instant {instant}"
        raise CommitConflict(
            msg, hint="Wait until it is done, or two minutes if it has failed, then retry."
        )


def _remove_left_markers(table: TableSnapshot, timeline: Timeline) -> None:
    """Remove markers of writers that failed after they had committed or rolled back.

    Also remove files of a write that was rolled back while one of its tasks went on: they would
    become visible once the timeline no longer reaches so far. And base files of a second attempt of
    a task that went on during the commit, which are visible immediately.
    """
    storage = table.storage
    marked = set(markers.instants_with_markers(storage))
    if not marked <= {instant.requested for instant in timeline.instants}:
        # A write that started since, or was withdrawn: a request comes before markers. Or one that
        # was rolled back and goes on: it deletes itself the files that its markers name.
        timeline = Timeline.load(table.storage, table.config)
        table.generator.observe(timeline)
    existing = {instant.requested for instant in timeline.instants}
    commits = {commit.requested: commit for commit in timeline.commits}
    marked -= {instant.requested for instant in timeline.pending()}
    marked -= {instant.requested for instant in zombie_commits.find_zombies(storage, timeline)}
    alive = heartbeat.live_instants(storage, marked, table.clock)
    for instant in sorted(marked):
        if instant in alive:
            continue
        # A writer that fails right after its commit: it removes the heartbeat before the markers.
        storage.delete(heartbeat.path_of(instant))
        if instant not in existing and not timeline.is_before_start(instant):
            with table.lock_manager.critical_section():
                now = Timeline.load(storage, table.config)
                remove_files_after_rollback(table, now, instant)
        elif instant in commits:
            remove_unnamed_base_files(storage, timeline, commits[instant])
        markers.delete_all(storage, instant)
