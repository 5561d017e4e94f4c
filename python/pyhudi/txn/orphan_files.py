"""Removal of files that failed writers left and that nothing on the timeline names.

No reader uses these files, and an active writer needs none of them for longer than a moment.
Therefore their age decides:

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
"""Age from which such a file is that of a failed writer."""

_STAGED = re.compile(r".\.\d+-\d+\.tmp$")


def remove_orphan_files(storage: Storage, timeline: Timeline, clock: Clock) -> Paths:
    """Remove orphaned files next to the timeline and the properties.

    timeline: as it has just been listed. Returns the directories next to the properties.
    """
    directories, files = timeline.beside
    if timeline.folder != META_FOLDER:
        remove_staged(storage, files, clock)
        directories, files = storage.list_dir(META_FOLDER)
    remove_staged(storage, files, clock)
    if any(file.path == BACKUP and is_old(file, clock) for file in files):
        recover_config(storage, clock)
    if HEARTBEAT_FOLDER in directories:
        _remove_heartbeats(storage, timeline, clock)
    return directories


def _remove_heartbeats(storage: Storage, timeline: Timeline, clock: Clock) -> None:
    old = [file for file in storage.list_dir(HEARTBEAT_FOLDER)[1] if is_old(file, clock)]
    if old:
        needed = {*timeline.pending(), *find_zombies(storage, timeline, old)}
        times = {instant.requested for instant in needed}
        storage.delete_all(file.path for file in old if file.name not in times)


def remove_staged(storage: Storage, files: Iterable[Entry], clock: Clock, dead: str = "") -> None:
    """Remove staged copies among files. dead: a failed write's instant, removed at any age."""
    staged = (file for file in files if is_staged(file.name))
    storage.delete_all(
        file.path for file in staged if is_old(file, clock) or (dead and f"_{dead}." in file.name)
    )


def remove_staged_of(storage: Storage, partitions: Iterable[str], dead: str, clock: Clock) -> None:
    """Remove staged copies in partitions that belong to a failed write, or are old."""
    for partition in sorted(partitions):
        remove_staged(storage, storage.list_dir(partition)[1], clock, dead=dead)


def is_staged(name: str) -> bool:
    """Return whether a file is a staged copy, by its name."""
    return _STAGED.search(name) is not None


def is_old(file: Entry, clock: Clock) -> bool:
    """Return whether such a file belongs to a failed writer, by its age."""
    return clock.now_ms() - file.modified_ms >= OLD_MS
