"""Writes a new table to storage, and removes it again if its creation fails.

`create.py` decides what the table is, and its first rows. Only what the failed call wrote is
removed: other files and directories at the location stay.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyhudi.api.table_exists import has_table
from pyhudi.clock import Clock, format_instant
from pyhudi.config.file_names import (
    DATA_EXTENSIONS,
    is_partition_metadata,
    parse_base_name,
    parse_log_name,
)
from pyhudi.config.table_config import TableConfig
from pyhudi.storage.options import is_remote
from pyhudi.storage.properties_file import FILE, FOLDER
from pyhudi.storage.storage import Entry, Storage
from pyhudi.timeline import Timeline
from pyhudi.timeline.table_directories import make_table
from pyhudi.txn.heartbeat import Heartbeat


@contextmanager
def create_or_undo(storage: Storage, config: TableConfig, clock: Clock) -> Iterator[None]:
    """Create a table before the block, and remove it if the block fails before a commit completes.

    A heartbeat keeps other writers from overwriting the table while the block runs.
    """
    directories = NewDirectories(storage)
    earlier = {entry.path for entry in storage.list(FOLDER)}
    began = format_instant(clock.now_ms(), config.timezone)
    heartbeat = Heartbeat(storage, clock.uuid(), clock)
    with _undo_on_error(lambda: _remove_empty(storage, directories, heartbeat)):
        heartbeat.start()
        make_table(storage, config, clock)
    with _undo_on_error(
        lambda: _remove_table(storage, config, earlier, directories, heartbeat, began)
    ):
        yield
    with suppress(Exception):  # A leftover heartbeat expires in two minutes.
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


def _remove_empty(storage: Storage, directories: NewDirectories, heartbeat: Heartbeat) -> None:
    """Clean up after a failed creation, unless another writer created the table."""
    with suppress(Exception):
        heartbeat.stop()
    if not has_table(storage):
        directories.remove_empty()


def _remove_table(
    storage: Storage,
    config: TableConfig,
    earlier: set[str],
    directories: NewDirectories,
    heartbeat: Heartbeat,
    began: str,
) -> None:
    with suppress(Exception):
        heartbeat.stop()
    if Timeline.load(storage, config).commits:
        return
    storage.delete(FILE)  # The table does not exist any more after this.
    if earlier or directories.had(FOLDER):
        for entry in storage.list(FOLDER):
            if entry.path not in earlier:
                storage.delete(entry.path)
    else:
        storage.delete_dir(FOLDER)
    for entry in storage.list():
        if _was_written_since(storage, entry, began):
            storage.delete(entry.path)
    directories.remove_empty()


def _was_written_since(storage: Storage, entry: Entry, began: str) -> bool:
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


class NewDirectories:
    """Directories that are created at and above a location after the instance.

    Only empty ones are removed, by the system call that fails for others, so files that other
    writers add concurrently stay. Object stores have no directories; on HDFS empty ones stay.
    """

    def __init__(self, storage: Storage) -> None:
        """Record the existing directories."""
        self._base = None if is_remote(storage.uri) else Path(storage.native.uri)
        self._earlier = (
            set()
            if self._base is None
            else {*_existing_parents(self._base), *_subdirectories(self._base)}
        )

    def had(self, folder: str) -> bool:
        """Return whether a directory existed before, by its path within the location."""
        return self._base is not None and self._base / folder in self._earlier

    def remove_empty(self) -> None:
        """Remove directories that did not exist before and are empty."""
        if self._base is None:
            return
        for folder in (*_subdirectories(self._base), *_existing_parents(self._base)):
            if folder not in self._earlier:
                with suppress(OSError):
                    folder.rmdir()


def _subdirectories(base: Path) -> Iterator[Path]:
    """Yield the directories below one, the deepest first."""
    for folder, names, _ in os.walk(base, topdown=False):
        yield from (Path(folder, name) for name in names)


def _existing_parents(base: Path) -> Iterator[Path]:
    """Yield a directory and its parents if they exist, the deepest first."""
    return (folder for folder in (base, *base.parents) if folder.is_dir())
