"""Removing a whole table, to put another in its place.

Nothing but a table's own files is ever removed: a file that is none of them is a refusal, before
anything is done. The table's lock is held, and its file stays, since it is what others wait for.
Data files go first and the properties last: a reader meets missing files but no other rows, and who
dies within it leaves a table that can be removed again.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyhudi.clock import Clock
from pyhudi.config.file_names import is_partition_metadata, parse_base_name, parse_log_name
from pyhudi.config.lock_options import LockOptions
from pyhudi.config.properties_file import BACKUP, FILE, FOLDER
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict, ConfigError, TableNotFound
from pyhudi.storage.storage import Entry, Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.txn.heartbeat import HEARTBEAT_FOLDER, live_instants
from pyhudi.txn.locks.file_lock import NAME
from pyhudi.txn.locks.foreign_locks import check_no_other_lock
from pyhudi.txn.locks.storage_lock import PATH
from pyhudi.txn.orphan_files import is_staged
from pyhudi.write.write_context import WritableTable, open_for_change

_INSTANT_DIGITS = (14, 17)
_HINT = "Choose another location, or remove the file."


def remove_table(handle: WritableTable, clock: Clock) -> None:
    """Removes a table's files.

    Raises `CommitConflict` while a writer is at work, `ConfigError` where there are files that are
    not the table's, `LockTimeout` where its lock cannot be had, and `UnsupportedTableFeature` for a
    table that pyhudi does not write to.
    """
    storage = handle.storage
    try:
        config = TableConfig.load(storage, clock)
    except TableNotFound:  # Another has just removed it.
        return
    # Who died while removing it may have left no timeline.
    timeline = Timeline.load(storage, config, may_be_missing=True)
    table = open_for_change(handle, clock, config, timeline)
    lock = LockOptions.of(table.options)
    with table.guard.critical_section():
        timeline = Timeline.load(storage, table.config, may_be_missing=True)
        check_no_other_lock(storage, table.config, timeline, lock, clock)
        _check_nobody_writes(table)
        folder = lock.file_path.removeprefix(storage.uri.rstrip("/")).strip("/") or FOLDER
        kept = (PATH, f"{folder}/{NAME}")
        _check_own(storage, kept)
        table.guard.check_held()
        _remove(storage, kept)


def check_no_files(storage: Storage) -> None:
    """Raises `ConfigError` where there is no table, but files that are none of a table's making."""
    for entry in storage.list():
        if not entry.path.startswith(f"{FOLDER}/"):
            msg = (
                f"{storage.uri} is not a Hudi table that can be overwritten: it contains "
                f"{entry.path}"
            )
            raise ConfigError(msg, hint=_HINT)


def _check_nobody_writes(table: TableSnapshot) -> None:
    """Also not at a metadata table, or at what else has no instant on the timeline."""
    names = {file.name for file in table.storage.list_dir(HEARTBEAT_FOLDER)[1]}
    for instant in live_instants(table.storage, names, table.clock):
        msg = f"another writer is active at instant {instant}"
        raise CommitConflict(
            msg, hint="Wait until it is done, or two minutes if it has failed, then retry."
        )


def _check_own(storage: Storage, kept: tuple[str, ...]) -> None:
    files = [file for file in storage.list() if not file.path.startswith(f"{FOLDER}/")]
    partitions = {_folder(file) for file in files if is_partition_metadata(file.name)}
    for file in files:
        is_own = _folder(file) in partitions and _is_of_table(file.name)
        if not is_own and not file.path.startswith(kept):
            msg = f"{storage.uri} is not overwritten: {file.path} is not a file of the table"
            raise ConfigError(msg, hint=_HINT)


def _folder(file: Entry) -> str:
    return file.path.rpartition("/")[0]


def _is_of_table(name: str) -> bool:
    if is_partition_metadata(name) or is_staged(name):
        return True
    if parse_log_name(name) is not None:
        return True
    # Names such as sales_eu_2024.parquet have the form of a base file's, too.
    base = parse_base_name(name)
    return base is not None and len(base.instant) in _INSTANT_DIGITS


def _remove(storage: Storage, kept: tuple[str, ...]) -> None:
    """kept: the lock's files, by how their paths begin."""
    folders, files = storage.list_dir()
    for folder in folders:
        if folder != FOLDER:
            _remove_folder(storage, folder, kept)
    _remove_files(storage, files, kept)
    folders, files = storage.list_dir(FOLDER)
    for folder in folders:
        _remove_folder(storage, folder, kept)
    _remove_files(storage, files, (*kept, FILE))
    storage.delete(BACKUP)
    storage.delete(FILE)


def _remove_folder(storage: Storage, folder: str, kept: tuple[str, ...]) -> None:
    if any(path.startswith(f"{folder}/") for path in kept):
        _remove_files(storage, storage.list(folder), kept)
    else:
        storage.delete_dir(folder)


def _remove_files(storage: Storage, files: Iterable[Entry], kept: tuple[str, ...]) -> None:
    for file in files:
        if not file.path.startswith(kept):
            storage.delete(file.path)
