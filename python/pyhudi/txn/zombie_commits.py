"""Zombie commits: published by a writer that stalled between its last check and its publication.

Another writer may then have taken the lock without seeing the commit. So a writer keeps its
heartbeat until it has checked once more after the publication. A writer that finds a commit with a
heartbeat decides in a critical section, before it plans on the commit, by the modification times of
the files. If the lock may have expired between the last heartbeat and the completed file, the
commit is a zombie and is revoked. Otherwise it counts, and the heartbeat is removed. A commit that
was published after its rollback is a zombie without a heartbeat.

The stalled writer revokes its own commit if no other writer has decided. It first marks its
heartbeat, because only this writer knows that the completed file may have become visible long after
its modification time.
"""

from __future__ import annotations

from collections.abc import Collection

from pyhudi.config.actions import Instant
from pyhudi.config.log import logger
from pyhudi.config.timeline_layout import HEARTBEAT_FOLDER
from pyhudi.storage.storage import Entry, Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.rollbacks import find_commits_after_rollback
from pyhudi.txn import heartbeat


def load_timeline(table: TableSnapshot) -> Timeline:
    """Load the timeline in a critical section and revoke its zombie commits.

    The snapshot's generator then returns instants later than all times of the timeline. Raises
    `CommitConflict` if there is a zombie commit and this writer has lost its lock.
    """
    folders = [table.config.layout.folder, HEARTBEAT_FOLDER]
    with table.storage.prefetch(folders=folders):
        timeline = revoke_zombies(table, Timeline.load(table.storage, table.config))
    table.generator.observe(timeline)
    return timeline


def revoke_zombies(
    table: TableSnapshot, timeline: Timeline, verified: Collection[str] = ()
) -> Timeline:
    """Revoke the zombie commits of a timeline. verified: times of commits checked before."""
    storage = table.storage
    unverified = {
        commit.requested: commit for commit in timeline.commits if commit.requested not in verified
    }
    beats = [beat for beat in heartbeat.files_of(storage, unverified) if beat.size]
    rolled_back = find_commits_after_rollback(timeline)
    rolled_back = [commit for commit in rolled_back if commit.requested in unverified]
    if not (beats or rolled_back):
        return timeline
    zombies = dict.fromkeys([*find_zombies(storage, timeline, beats), *rolled_back])
    table.lock_manager.check_held()
    for commit in zombies:
        logger.info("%s: revoking zombie commit %s", storage.uri, commit)
        storage.delete(timeline.path(commit))
    # Without heartbeats the other commits count, even if their writers want to revoke them.
    times = {commit.requested for commit in zombies}
    storage.delete_all(beat.path for beat in beats if beat.name not in times)
    return Timeline.load(storage, table.config) if zombies else timeline


def find_zombies(
    storage: Storage, timeline: Timeline, beats: Collection[Entry] | None = None
) -> list[Instant]:
    """Return the zombie commits with a heartbeat. beats: the heartbeats, if already listed."""
    commits = {commit.requested: commit for commit in timeline.commits}
    if beats is None:
        beats = heartbeat.files_of(storage, commits)
    beating = [(commits[beat.name], beat) for beat in beats if beat.name in commits]
    return [commit for commit, beat in beating if _is_late(storage, timeline, commit, beat)]


def _is_late(storage: Storage, timeline: Timeline, commit: Instant, beat: Entry) -> bool:
    # Read first, because a writer that revokes its commit removes the heartbeat last.
    content = storage.read_or_none(beat.path)
    completed = storage.head(timeline.path(commit))
    if completed is None:
        return True
    late_ms = None if content is None else heartbeat.late_ms_of(content, beat)
    if late_ms is None:
        return False
    if completed.modified_ms - beat.modified_ms > late_ms:
        return True
    # Another process may have taken plan and heartbeat over and removed the files of the commit.
    paths = sorted(timeline.commit_metadata(commit).paths)
    return bool(paths) and not storage.exists(paths[0])
