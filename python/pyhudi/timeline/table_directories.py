"""The folders and the properties of a new table."""

from __future__ import annotations

from pyhudi.clock import Clock
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import KEEPER
from pyhudi.storage.storage import Storage


def make_table(storage: Storage, config: TableConfig, clock: Clock) -> None:
    """Puts an empty table on storage; the properties come last, since they make it a table."""
    make_timeline(storage, config, clock)
    config.save_new(storage, clock)


def make_timeline(storage: Storage, config: TableConfig, clock: Clock) -> None:
    """Leaves the folders of a timeline without instants, active and archived."""
    for folder in (config.history_folder, config.timeline_path):
        _make_folder(storage, folder, clock)


def _make_folder(storage: Storage, folder: str, clock: Clock) -> None:
    """Leaves a folder, empty where storage has such: Hudi 1.x wants to list the timeline's.

    In a bucket a folder is there while something is in it. Java leaves an object whose name ends in
    a slash, which not all clients can make.
    """
    path = f"{folder}/.{clock.uuid()}"
    storage.put(path, b"")
    storage.delete(path)
    above, _, _ = folder.rpartition("/")
    if folder not in storage.list_dir(above)[0]:
        storage.put(f"{folder}/{KEEPER}", b"")
