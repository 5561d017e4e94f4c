"""Removing what writers that died have left beside other files, where nothing else tells of it.

Nobody reads these files, and a writer that lives needs none of them for longer than a moment, so
their age decides:

- staged copies of small files, `<name>.<process>-<number>.tmp`, of a local file system;
- `hoodie.properties.backup`, of a change of the properties;
- heartbeats of work that is not pending.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyhudi.clock import Clock
from pyhudi.config.properties_file import BACKUP, recover_config
from pyhudi.config.timeline_layout import META_FOLDER
from pyhudi.storage.storage import Entry, Paths, Storage
from pyhudi.timeline import Timeline
from pyhudi.txn.heartbeat import HEARTBEAT_FOLDER
from pyhudi.txn.zombie_commits import find_zombies

OLD_MS = 600_000
"""Age from which such a file is a dead writer's."""

_STAGED = re.compile(r".\.\d+-\d+\.tmp$")


def remove_orphan_files(storage: Storage, timeline: Timeline, clock: Clock) -> Paths:
    """Removes what was left beside the timeline and the properties; gives the folders of those.

    timeline: as it has just been listed.
    """
    folders, files = timeline.beside
    if timeline.folder != META_FOLDER:
        remove_staged(storage, files, clock)
        folders, files = storage.list_dir(META_FOLDER)
    remove_staged(storage, files, clock)
    if any(file.path == BACKUP and is_old(file, clock) for file in files):
        recover_config(storage, clock)
    if HEARTBEAT_FOLDER in folders:
        _remove_heartbeats(storage, timeline, clock)
    return folders


def _remove_heartbeats(storage: Storage, timeline: Timeline, clock: Clock) -> None:
    old = [file for file in storage.list_dir(HEARTBEAT_FOLDER)[1] if is_old(file, clock)]
    if old:
        kept = {*timeline.pending(), *find_zombies(storage, timeline, old)}
        times = {instant.requested for instant in kept}
        storage.delete_all(file.path for file in old if file.name not in times)


def remove_staged(storage: Storage, files: Iterable[Entry], clock: Clock, dead: str = "") -> None:
    """Removes the staged copies among files. dead: an instant whose writer is dead, at any age."""
    staged = (file for file in files if is_staged(file.name))
    storage.delete_all(
        file.path for file in staged if is_old(file, clock) or (dead and f"_{dead}." in file.name)
    )


def remove_staged_of(storage: Storage, partitions: Iterable[str], dead: str, clock: Clock) -> None:
    """Removes the staged copies in partitions that are a dead write's, or old."""
    for partition in sorted(partitions):
        remove_staged(storage, storage.list_dir(partition)[1], clock, dead=dead)


def is_staged(name: str) -> bool:
    """Whether a file is such a copy, by its name."""
    return _STAGED.search(name) is not None


def is_old(file: Entry, clock: Clock) -> bool:
    """Whether such a file is a dead writer's, by its age."""
    return clock.now_ms() - file.modified_ms >= OLD_MS
