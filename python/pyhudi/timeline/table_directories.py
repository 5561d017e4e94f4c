"""Creates the directories and the properties of a new table."""

from __future__ import annotations

from pyhudi.clock import Clock
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import KEEPER
from pyhudi.storage.storage import Storage


def make_table(storage: Storage, config: TableConfig, clock: Clock) -> None:
    """Create an empty table; the properties are written last, because they make it a table."""
    make_timeline(storage, config, clock)
    config.save_new(storage, clock)


def make_timeline(storage: Storage, config: TableConfig, clock: Clock) -> None:
    """Create the directories of a timeline without instants, active and archived."""
    for folder in (config.history_folder, config.timeline_path):
        _make_folder(storage, folder, clock)


def _make_folder(storage: Storage, folder: str, clock: Clock) -> None:
    """Create a directory, empty if the storage supports that: Hudi 1.x lists the timeline's.

    On object storage a directory exists while it contains something. Java creates an object whose
    name ends in a slash, which not all clients can do.
    """
    path = f"{folder}/.{clock.uuid()}"
    storage.put(path, b"")
    storage.delete(path)
    above, _, _ = folder.rpartition("/")
    if folder not in storage.list_dir(above)[0]:
        storage.put(f"{folder}/{KEEPER}", b"")
