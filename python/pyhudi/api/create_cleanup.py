"""Putting a new table on storage, and taking it away again when its making fails.

What a table is, and its first rows, are `create.py`'s part. Only what the failed call put there is
taken away: other files and folders at the location stay.
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
    """Makes a table for the block to go on with; an error there takes the table away.

    Once a write is complete the table stays, whatever comes after. A heartbeat keeps others from
    overwriting it meanwhile.
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
    with suppress(Exception):  # The table is made; one that nobody removes is dead in two minutes.
        heartbeat.stop()


@contextmanager
def _undo_on_error(undo: Callable[[], None]) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        try:
            undo()
        except Exception as secondary:  # noqa: BLE001
            # What went wrong first is what the caller must hear.
            error.__context__ = secondary
        raise


def _remove_empty(storage: Storage, folders: MadeFolders, heartbeat: Heartbeat) -> None:
    """After a table could not be made at all; one that another has made needs its folders."""
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
    storage.delete(FILE)  # From here on there is no table.
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
    """Whether a file was written by a write that was requested since."""
    if is_partition_metadata(entry.name):
        return _commit_time_of(storage.read_or_none(entry.path) or b"") >= began
    if not entry.name.endswith(DATA_EXTENSIONS) and ".log." not in entry.name:
        return False
    name = parse_base_name(entry.name) or parse_log_name(entry.name)
    return name is not None and name.instant >= began


def _commit_time_of(partition_metadata: bytes) -> str:
    lines = partition_metadata.decode(errors="replace").splitlines()
    found = (line.removeprefix("commitTime=") for line in lines if line.startswith("commitTime="))
    return next(found, "")
