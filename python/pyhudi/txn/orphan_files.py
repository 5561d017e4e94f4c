"""Removal of leftover files of failed writers that no instant of the timeline names.

Readers do not use these files, and an active writer uses each only briefly. So pyhudi removes old
ones:

- staged copies of small files, `<name>.<process>-<number>.tmp`, of a local file system;
- `hoodie.properties.backup`, of a change of the properties;
- heartbeats of work that is not pending.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyhudi.clock import Clock
from pyhudi.config.timeline_layout import HEARTBEAT_FOLDER, META_FOLDER
from pyhudi.storage.properties_file import BACKUP, recover_config
from pyhudi.storage.storage import Entry, Paths, Storage
from pyhudi.timeline import Timeline
from pyhudi.txn.zombie_commits import find_zombies

OLD_MS = 600_000
"""Age from which a file belongs to a failed writer."""

_STAGED = re.compile(r".\.\d+-\d+\.tmp$")


def remove_orphan_files(storage: Storage, timeline: Timeline, clock: Clock) -> Paths:
    """Remove orphaned files next to the timeline and the properties.

    timeline: just loaded. Returns the directories next to the properties.
    """
    directories, files = timeline.other_entries
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
    expired = [file for file in storage.list_dir(HEARTBEAT_FOLDER)[1] if is_old(file, clock)]
    if expired:
        kept = {*timeline.pending(), *find_zombies(storage, timeline, expired)}
        times = {instant.requested for instant in kept}
        storage.delete_all(file.path for file in expired if file.name not in times)


def remove_staged(
    storage: Storage, files: Iterable[Entry], clock: Clock, failed_instant: str = ""
) -> None:
    """Remove old staged copies among files, and all of a failed write."""
    staged = (file for file in files if is_staged(file.name))
    storage.delete_all(
        file.path
        for file in staged
        if is_old(file, clock) or (failed_instant and f"_{failed_instant}." in file.name)
    )


def remove_staged_of(
    storage: Storage, partitions: Iterable[str], failed_instant: str, clock: Clock
) -> None:
    """Remove old staged copies in partitions, and all of a failed write."""
    for partition in sorted(partitions):
        remove_staged(storage, storage.list_dir(partition)[1], clock, failed_instant=failed_instant)


def is_staged(name: str) -> bool:
    """Return whether a file name is that of a staged copy."""
    return _STAGED.search(name) is not None


def is_old(file: Entry, clock: Clock) -> bool:
    """Return whether a file is old enough to belong to a failed writer."""
    return clock.now_ms() - file.modified_ms >= OLD_MS
