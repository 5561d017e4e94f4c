"""Putting a new table on storage, and taking it away again when its making fails.

What a table is, and its first rows, are `create.py`'s part. Only what the failed call put there is
taken away: other files below the location stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi.clock import Clock, format_instant
from pyhudi.config.create import make_table
from pyhudi.config.file_names import is_partition_metadata, parse_base_name, parse_log_name
from pyhudi.config.properties_file import FILE, FOLDER
from pyhudi.config.table_config import TableConfig
from pyhudi.storage.storage import Entry, Storage
from pyhudi.timeline import Timeline


@contextmanager
def table_in_making(storage: Storage, config: TableConfig, clock: Clock) -> Iterator[None]:
    """Makes a table for the block to go on with; an error there takes the table away.

    Once a write is complete the table stays, whatever comes after.
    """
    earlier = {entry.path for entry in storage.list(FOLDER)}
    began = format_instant(clock.now_ms(), config.timezone)
    make_table(storage, config, clock)
    try:
        yield
    except BaseException as error:
        try:
            if not Timeline.load(storage, config).commits:
                _take_away(storage, earlier, began)
        except Exception as secondary:  # noqa: BLE001
            # What went wrong first is what the caller must hear.
            error.__context__ = secondary
        raise


def _take_away(storage: Storage, earlier: set[str], began: str) -> None:
    storage.delete(FILE)  # From here on there is no table.
    if earlier:
        for entry in storage.list(FOLDER):
            if entry.path not in earlier:
                storage.delete(entry.path)
    else:
        storage.delete_dir(FOLDER)
    emptied = set()
    for entry in storage.list():
        if _is_made_since(storage, entry, began):
            storage.delete(entry.path)
            emptied.add(entry.path.partition("/")[0])
    for folder in emptied:
        if not storage.list(folder):
            storage.delete_dir(folder)


def _is_made_since(storage: Storage, entry: Entry, began: str) -> bool:
    """Whether a file was written by a write that was requested since."""
    if is_partition_metadata(entry.name):
        return _written_at(storage.read_or_none(entry.path) or b"") >= began
    if not entry.name.endswith(".parquet") and ".log." not in entry.name:
        return False
    name = parse_base_name(entry.name) or parse_log_name(entry.name)
    return name is not None and name.instant >= began


def _written_at(partition_metadata: bytes) -> str:
    lines = partition_metadata.decode(errors="replace").splitlines()
    found = (line.removeprefix("commitTime=") for line in lines if line.startswith("commitTime="))
    return next(found, "")
