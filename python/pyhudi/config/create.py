"""The folders and the properties of a new table."""

from __future__ import annotations

from pyhudi.clock import Clock
from pyhudi.config.table_config import TableConfig
from pyhudi.storage.storage import Storage


def make_table(storage: Storage, config: TableConfig, clock: Clock) -> None:
    """Puts an empty table on storage; the properties come last, since they make it a table."""
    for folder in (config.timeline_path, config.history_folder):
        _make_folder(storage, folder, clock)
    config.save_new(storage, clock)


def _make_folder(storage: Storage, folder: str, clock: Clock) -> None:
    """Leaves an empty folder where storage has folders: Hudi 1.x wants to list the timeline's."""
    path = f"{folder}/.{clock.uuid()}"
    storage.put(path, b"")
    storage.delete(path)
