"""Commits that came late: of a writer that stood still between its last look and its publication.

Its lock may have gone to others meanwhile, who went on and do not know of what it published. By the
times that the storage gives its files everybody tells such a commit: from the writer's last
heartbeat to the completed file it took so long that the lock may have been lost in between. Whoever
finds one takes it back, within a section and before anything is planned on it; so does its writer
as soon as it goes on. A writer's heartbeat is there until it has looked: a commit without one
counts.
"""

from __future__ import annotations

from collections.abc import Collection

from pyhudi.config.actions import Instant
from pyhudi.config.log import logger
from pyhudi.slices.table import Table
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.txn import heartbeat
from pyhudi.txn.open_instant import OpenInstant


def load(table: Table) -> Timeline:
    """Within a section: the timeline as it is now, on which every commit counts.

    Raises `CommitConflict` where one came late, and this writer's lock was lost meanwhile.
    """
    folders = [table.config.layout.folder, heartbeat.HEARTBEAT_FOLDER]
    with table.storage.ahead(folders=folders):
        return taken_back(table, Timeline.load(table.storage, table.config))


def taken_back(table: Table, timeline: Timeline, known: Collection[str] = ()) -> Timeline:
    """As `load`, of a timeline that was just loaded. known: times of commits that surely count."""
    found = come_late(table.storage, timeline, known)
    for commit in found:
        table.guard.check()
        logger.info("%s: takes back %s, which came late", table.storage.uri, commit)
        OpenInstant(table, commit.requested, timeline.files(commit)[0].action).unpublish()
    return Timeline.load(table.storage, table.config) if found else timeline


def come_late(storage: Storage, timeline: Timeline, known: Collection[str] = ()) -> list[Instant]:
    """The commits that came late, of those that are not known to count."""
    unknown = {one.requested: one for one in timeline.commits if one.requested not in known}
    found = []
    for beat in heartbeat.files_of(storage, unknown):
        commit = unknown[beat.name]
        completed = storage.head(timeline.path(commit))
        late_ms = heartbeat.late_ms_of(storage, beat)
        if completed is None or late_ms is None:
            continue
        if completed.modified_ms - beat.modified_ms > late_ms:
            found.append(commit)
    return found
