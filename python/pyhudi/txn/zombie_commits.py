"""Commits that came late: of a writer that stood still between its last look and its publication.

Its lock may have gone to others meanwhile, who went on and do not know of what it published. A
writer's heartbeat is there until it has looked once more. Whoever finds a commit that has one still
decides about it, within a section and before anything is planned on it, by the times that the
storage gives its files: where it took so long from the last heartbeat to the completed file that
the lock may have been lost in between, the commit came late, and is taken back; else it counts, and
the heartbeat goes. The writer itself takes back what nobody has decided about, and has its
heartbeat say so first: the file may have been named long after its time, which nobody else knows.
"""

from __future__ import annotations

from collections.abc import Collection

from pyhudi.config.actions import Instant
from pyhudi.config.log import logger
from pyhudi.storage.storage import Entry, Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.txn import heartbeat


def load_timeline(table: TableSnapshot) -> Timeline:
    """Within a section: the timeline as it is now, on which every commit counts.

    Raises `CommitConflict` where one came late, and this writer's lock was lost meanwhile.
    """
    folders = [table.config.layout.folder, heartbeat.HEARTBEAT_FOLDER]
    with table.storage.prefetch(folders=folders):
        return revoke_zombies(table, Timeline.load(table.storage, table.config))


def revoke_zombies(
    table: TableSnapshot, timeline: Timeline, known: Collection[str] = ()
) -> Timeline:
    """As `load`, of a timeline that was just loaded. known: times of commits that surely count."""
    storage = table.storage
    unknown = {one.requested: one for one in timeline.commits if one.requested not in known}
    beats = [beat for beat in heartbeat.files_of(storage, unknown) if beat.size]
    if not beats:
        return timeline
    late = find_zombies(storage, timeline, beats)
    table.guard.check_held()
    for commit in late:
        logger.info("%s: takes back %s, which came late", storage.uri, commit)
        storage.delete(timeline.path(commit))
    # The others count, whatever their writers think of it.
    times = {commit.requested for commit in late}
    storage.delete_all(beat.path for beat in beats if beat.name not in times)
    return Timeline.load(storage, table.config) if late else timeline


def find_zombies(
    storage: Storage, timeline: Timeline, beats: Collection[Entry] | None = None
) -> list[Instant]:
    """The commits that came late. beats: the heartbeats, where they were listed before."""
    commits = {one.requested: one for one in timeline.commits}
    if beats is None:
        beats = heartbeat.files_of(storage, commits)
    found = [(commits[beat.name], beat) for beat in beats if beat.name in commits]
    return [commit for commit, beat in found if _is_late(storage, timeline, commit, beat)]


def _is_late(storage: Storage, timeline: Timeline, commit: Instant, beat: Entry) -> bool:
    # First: whoever takes a commit back removes its heartbeat last.
    content = storage.read_or_none(beat.path)
    completed = storage.head(timeline.path(commit))
    if completed is None:
        return True
    late_ms = None if content is None else heartbeat.late_ms_of(content, beat)
    if late_ms is None:
        return False
    return completed.modified_ms - beat.modified_ms > late_ms or _was_taken_over(
        storage, timeline.commit_metadata(commit)
    )


def _was_taken_over(storage: Storage, metadata: CommitMetadata) -> bool:
    """Whether another process has the plan, and the heartbeat: it removes all files of the first.

    What is cleaned has been looked at before.
    """
    return any(not storage.exists(path) for path in sorted(metadata.paths)[:1])
