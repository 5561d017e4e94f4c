"""Writes a new table to storage, and removes it again if its creation fails.

`create.py` decides what the table is, and its first rows. Only what the failed call wrote is
removed: other files and directories at the location stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pyhudi.api.table_exists import has_table
from pyhudi.clock import Clock, format_instant
from pyhudi.config.file_names import (
    DATA_EXTENSIONS,
    is_partition_metadata,
    parse_base_name,
    parse_log_name,
)
from pyhudi.config.properties_file import FILE, FOLDER
from pyhudi.config.table_config import TableConfig
from pyhudi.storage.empty_directories import MadeFolders
from pyhudi.storage.storage import Entry, Storage
from pyhudi.timeline import Timeline
from pyhudi.timeline.table_directories import make_table
from pyhudi.txn.heartbeat import Heartbeat


@contextmanager
def table_in_making(storage: Storage, config: TableConfig, clock: Clock) -> Iterator[None]:
    """Create a table for the duration of the block; an error in the block removes the table.

    The table stays once a write is complete, even if the block fails later. A heartbeat keeps other
    writers from overwriting the table while the block runs.
    """
    folders = MadeFolders(storage)
    earlier = {entry.path for entry in storage.list(FOLDER)}
    began = format_instant(clock.now_ms(), config.timezone)
    heartbeat = Heartbeat(storage, clock.uuid(), clock)
    with _undo_on_error(lambda: _remove_empty(storage, folders, heartbeat)):
        heartbeat.start()
        make_table(storage, config, clock)
    with _undo_on_error(lambda: _take_away(storage, config, earlier, folders, heartbeat, began)):
        yield
    with suppress(Exception):  # A heartbeat that stays behind expires in two minutes.
        heartbeat.stop()


@contextmanager
def _undo_on_error(undo: Callable[[], None]) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        try:
            undo()
        except Exception as secondary:  # noqa: BLE001
            # The caller must see the first error.
            error.__context__ = secondary
        raise


def _remove_empty(storage: Storage, folders: MadeFolders, heartbeat: Heartbeat) -> None:
    """Clean up after a failed creation; a table of another writer keeps its directories."""
    with suppress(Exception):
        heartbeat.stop()
    if not has_table(storage):
        folders.remove_empty()


def _take_away(
    storage: Storage,
    config: TableConfig,
    earlier: set[str],
    folders: MadeFolders,
    heartbeat: Heartbeat,
    began: str,
) -> None:
    with suppress(Exception):
        heartbeat.stop()
    if Timeline.load(storage, config).commits:
        return
    storage.delete(FILE)  # The table does not exist any more after this.
    if earlier or folders.has(FOLDER):
        for entry in storage.list(FOLDER):
            if entry.path not in earlier:
                storage.delete(entry.path)
    else:
        storage.delete_dir(FOLDER)
    for entry in storage.list():
        if _is_made_since(storage, entry, began):
            storage.delete(entry.path)
    folders.remove_empty()


def _is_made_since(storage: Storage, entry: Entry, began: str) -> bool:
    """Return whether a write that was requested since `began` wrote the file."""
    if is_partition_metadata(entry.name):
        return _commit_time_of(storage.read_or_none(entry.path) or b"") >= began
    if not entry.name.endswith(DATA_EXTENSIONS) and ".log." not in entry.name:
        return False
    name = parse_base_name(entry.name) or parse_log_name(entry.name)
    return name is not None and name.instant >= began


def _commit_time_of(partition_metadata: bytes) -> str:
    lines = partition_metadata.decode(errors="replace").splitlines()
    times = (line.removeprefix("commitTime=") for line in lines if line.startswith("commitTime="))
    return next(times, "")
