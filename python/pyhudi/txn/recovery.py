"""Making a table fit for a new write: what dead writers left is ended or removed.

Pending restores and rollbacks are carried out, failed writes rolled back, savepoints that were only
begun, left markers and staged files removed; what a living writer has begun stays. Who is dead is
looked at within the section in which that is done, and no write can be completed meanwhile. But one
that stood still may complete its write after that was rolled back: it takes that back itself, or,
where it has died, the next one does.
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
from pyhudi.config.file_names import parse_base_name, parse_log_name
from pyhudi.errors import CommitConflict
from pyhudi.slices import markers
from pyhudi.slices.log_blocks import block_instants, is_torn
from pyhudi.slices.write_tokens import may_be_token_of
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.time_travel import incomplete_writes
from pyhudi.txn import conflicts, heartbeat, restore, rollback, savepoint, zombie_commits
from pyhudi.txn.orphan_files import remove_orphan_files

_LOOKED: WeakKeyDictionary[Storage, int] = WeakKeyDictionary()
"""When it was last looked for files that dead writers left, by the handle's storage."""
_LOOK_EVERY_MS = 60_000


def recover(
    table: TableSnapshot,
    check: Callable[[Timeline], None],
    timeline: Timeline | None = None,
    *,
    force: bool = False,
) -> Timeline:
    """Makes the table fit for a new write and gives its timeline.

    check: raises, with nothing changed, where pyhudi must not write. timeline: where it was loaded
    a moment ago. force: as in `restore.resume`. Where there is something to take back it raises
    `LockTimeout` if others hold the lock, and `CommitConflict` if the properties have changed.
    """
    if timeline is None:
        timeline = Timeline.load(table.storage, table.config)
    if table.guard.is_held:
        timeline = zombie_commits.revoke_zombies(table, timeline)
    table.generator.observe(timeline)
    check(timeline)
    left = [*timeline.pending(ROLLBACK), *find_failed_writes(timeline)]
    has_dead = bool(
        timeline.pending(SAVEPOINT, RESTORE)
        or _of_dead(table, left)
        or rollback.find_commits_after_rollback(timeline)
    )
    if has_dead:
        with table.guard.critical_section():
            # What is taken back is so in all partitions of the metadata table that there are.
            conflicts.check_config(table)
            timeline = _roll_back_failed(table, force=force)
            # A companion may have dropped indexes that a rollback has made wrong.
            conflicts.check_config(table)
    if has_dead or _is_time_to_look(table):
        folders = remove_orphan_files(table.storage, timeline, table.clock)
        if markers.MARKER_FOLDER in folders:
            _remove_left_markers(table, timeline)
    return timeline


def _is_time_to_look(table: TableSnapshot) -> bool:
    """Files that nobody reads are not looked for with each of many small commits."""
    now, last = table.clock.now_ms(), _LOOKED.get(table.storage)
    if last is not None and 0 <= now - last < _LOOK_EVERY_MS:
        return False
    _LOOKED[table.storage] = now
    return True


def _of_dead(table: TableSnapshot, pending: Collection[Instant]) -> list[Instant]:
    """Those of pending instants that nobody is at work on, in their order."""
    times = {instant.requested for instant in pending}
    alive = heartbeat.live_instants(table.storage, times, table.clock)
    return [instant for instant in pending if instant.requested not in alive]


def _roll_back_failed(table: TableSnapshot, *, force: bool) -> Timeline:
    """Within a section: ends what the dead have left, as it is now."""
    timeline = _load(table)
    if timeline.pending(SAVEPOINT):
        savepoint.remove_left(table, timeline)
        timeline = _load(table)
    for pending in timeline.pending(RESTORE):
        restore.resume(table, timeline, pending, force=force)
        timeline = _load(table)
    if timeline.pending(ROLLBACK) and timeline.filter_completed(RESTORE):
        restore.remove_left(table, timeline)
        timeline = _load(table)
    for pending in _of_dead(table, timeline.pending(ROLLBACK)):
        rollback.resume(table, timeline, pending)
        # Another may be of the same write, where somebody stood still as it was requested.
        timeline = _load(table)
    failed, late = (
        _of_dead(table, find_failed_writes(timeline)),
        rollback.find_commits_after_rollback(timeline),
    )
    for instant in reversed(failed):
        rollback.roll_back(table, timeline, instant)
    for instant in late:
        rollback.reopen_instant(table, timeline, instant)
    return _load(table) if failed or late else timeline


def _load(table: TableSnapshot) -> Timeline:
    timeline = zombie_commits.load_timeline(table)
    table.generator.observe(timeline)
    return timeline


def find_failed_writes(timeline: Timeline) -> list[Instant]:
    """Pending writes, oldest first; pending compactions and clusterings are none."""
    return list(incomplete_writes(timeline))


def check_no_live_writer(table: TableSnapshot, timeline: Timeline) -> None:
    """Raises `CommitConflict` where another writer is at work, for what has to be alone.

    Hudi 1.2 gives a heartbeat to what it writes, compacts and rolls back beside others. Within a
    section a commit that came late is one of a writer at work.
    """
    if table.guard.is_held:
        timeline = zombie_commits.revoke_zombies(table, timeline)
    pending = {instant.requested for instant in timeline.pending()}
    for instant in heartbeat.live_instants(table.storage, pending, table.clock):
        msg = f"another writer is active at instant {instant}"
        raise CommitConflict(
            msg, hint="Wait until it is done, or two minutes if it has failed, then retry."
        )


def _remove_left_markers(table: TableSnapshot, timeline: Timeline) -> None:
    """Removes markers of writers that died after they had committed or rolled back.

    With files of a write that was rolled back while a task of it went on: once the timeline no
    longer reaches so far, they would count. And with base files of a second attempt of a task that
    went on while the write was committed, which count at once.
    """
    storage = table.storage
    found = set(markers.instants_with_markers(storage))
    if not found <= {instant.requested for instant in timeline.instants}:
        # A write that has begun since, or one that was withdrawn: a request comes before markers.
        # Or one that was rolled back and goes on: it takes back itself what its markers name.
        timeline = Timeline.load(table.storage, table.config)
        table.generator.observe(timeline)
    known = {instant.requested for instant in timeline.instants}
    commits = {commit.requested: commit for commit in timeline.commits}
    found -= {instant.requested for instant in timeline.pending()}
    found -= {instant.requested for instant in zombie_commits.find_zombies(storage, timeline)}
    alive = heartbeat.live_instants(storage, found, table.clock)
    for instant in sorted(found):
        if instant in alive:
            continue
        # What a writer leaves that dies once it is done: the heartbeat goes before the markers.
        storage.delete(heartbeat.path_of(instant))
        if instant not in known and not timeline.is_before_start(instant):
            with table.guard.critical_section():
                # What is planned meanwhile would name what goes.
                remove_marked_files(storage, Timeline.load(storage, table.config), instant)
        elif instant in commits:
            _remove_unnamed(storage, timeline, commits[instant])
        markers.delete_all(storage, instant)


def _remove_unnamed(storage: Storage, timeline: Timeline, commit: Instant) -> None:
    named = timeline.commit_metadata(commit).paths
    marked = markers.read_all(storage, commit.requested) or ()
    bases = (marker for marker in marked if parse_base_name(marker.name) is not None)
    storage.delete_all(
        marker.path
        for marker in bases
        if marker.path not in named and f"_{commit.requested}." in marker.name
    )


def remove_marked_files(storage: Storage, timeline: Timeline, instant: str) -> None:
    """Within a section: removes the files of a write that the timeline does not have any more.

    Before table version 8 others may have written to a log file of an older name.
    """
    found = [marker.path for marker in markers.read_all(storage, instant) or ()]
    own = {path for path in found if f"_{instant}." in path.rsplit("/", 1)[-1]}
    others = {*found} - own - rollback.log_files_to_keep(timeline, instant)
    storage.delete_all([*own, *(path for path in others if _holds_only(storage, path, instant))])


def _holds_only(storage: Storage, path: str, instant: str) -> bool:
    is_log = parse_log_name(path.rsplit("/", 1)[-1]) is not None
    if not is_log or not storage.exists(path) or is_torn(storage, path):
        return False
    return block_instants(storage, path) == [instant]


def files_after_rollback(
    table: TableSnapshot,
    timeline: Timeline,
    instant: str,
    records: Collection[rollback.Record] | None = None,
) -> set[str]:
    """Files of a write that came after its rollback, whose task had begun them before.

    In the partitions that the rollback tells of, as their markers were there. A task that writes a
    large file, and whose driver has died, needs no stand for that. records: of all its completed
    rollbacks, where they were read before.
    """
    if timeline.is_committed(instant):
        return set()
    if records is None:
        records = list(rollback.rollbacks_of(timeline, instant))
    called_off = rollback.find_rolled_back_log_files(records)
    partitions = {path for record in records for path in record["partitionMetadata"]}
    found = {file.path for path in partitions for file in table.storage.list_dir(path)[1]}
    return {path for path in found - called_off if _is_of(table, path, instant)}


def _is_of(table: TableSnapshot, path: str, instant: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    base, log = parse_base_name(name, table.config.base_extension), parse_log_name(name)
    if base is not None or log is None:
        return base is not None and base.instant == instant
    if not table.config.version.logs_named_by_base_instant:
        return log.instant == instant
    # They bear the instant of their slice, which others append to.
    may_be = log.instant == instant or may_be_token_of(log.write_token, instant)
    return may_be and _holds_only(table.storage, path, instant)
