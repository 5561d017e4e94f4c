"""Removal of a whole table, to create another one in its place.

A file that is not the table's raises an error before anything is deleted. The lock is held, and its
file stays because other writers wait for it. Data files are deleted first and the properties last,
so a reader may miss files but gets no wrong rows, and the removal can be repeated after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyhudi.clock import Clock
from pyhudi.config.file_names import is_partition_metadata, parse_base_name, parse_log_name
from pyhudi.config.lock_options import LockOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import HEARTBEAT_FOLDER
from pyhudi.errors import ConfigError, TableNotFound
from pyhudi.storage.properties_file import BACKUP, FILE, FOLDER
from pyhudi.storage.storage import Entry, Storage
from pyhudi.timeline import Timeline
from pyhudi.txn.locks.file_lock import NAME
from pyhudi.txn.locks.foreign_locks import check_no_other_lock
from pyhudi.txn.locks.storage_lock import PATH
from pyhudi.txn.orphan_files import is_staged
from pyhudi.txn.recovery import check_none_active
from pyhudi.write.table_opening import WritableTable, open_for_change

_INSTANT_DIGITS = (14, 17)
_HINT = "Choose another location, or remove the file."


def remove_table(handle: WritableTable, clock: Clock) -> None:
    """Remove a table's files.

    Raises `CommitConflict` if a writer is active, `ConfigError` for files that are not the table's,
    `LockTimeout` if the lock is not available in time, and `UnsupportedTableFeature` for a table
    that pyhudi does not write to.
    """
    storage = handle.storage
    try:
        config = TableConfig.load(storage, clock)
    except TableNotFound:  # Another writer has just removed it.
        return
    # A writer that failed while removing the table may have left no timeline.
    timeline = Timeline.load(storage, config, may_be_missing=True)
    table = open_for_change(handle, clock, config, timeline)
    lock = LockOptions.of(table.options)
    with table.lock_manager.critical_section():
        timeline = Timeline.load(storage, table.config, may_be_missing=True)
        check_no_other_lock(storage, table.config, timeline, lock, clock)
        # All heartbeats, including those of the metadata table and of table upgrades.
        check_none_active(table, {file.name for file in storage.list_dir(HEARTBEAT_FOLDER)[1]})
        folder = lock.file_path.removeprefix(storage.uri.rstrip("/")).strip("/") or FOLDER
        lock_files = (PATH, f"{folder}/{NAME}")
        _check_own(storage, lock_files)
        table.lock_manager.check_held()
        _remove(storage, lock_files)


def check_no_files(storage: Storage) -> None:
    """Raise `ConfigError` if there are files that do not belong to a table's metadata."""
    for entry in storage.list():
        if not entry.path.startswith(f"{FOLDER}/"):
            msg = (
                f"{storage.uri} is not a Hudi table that can be overwritten: it contains "
                f"{entry.path}"
            )
            raise ConfigError(msg, hint=_HINT)


def _check_own(storage: Storage, lock_files: tuple[str, ...]) -> None:
    files = [file for file in storage.list() if not file.path.startswith(f"{FOLDER}/")]
    partitions = {_folder(file) for file in files if is_partition_metadata(file.name)}
    for file in files:
        is_own = _folder(file) in partitions and _is_of_table(file.name)
        if not is_own and not file.path.startswith(lock_files):
            msg = f"{storage.uri} is not overwritten: {file.path} is not a file of the table"
            raise ConfigError(msg, hint=_HINT)


def _folder(file: Entry) -> str:
    return file.path.rpartition("/")[0]


def _is_of_table(name: str) -> bool:
    if is_partition_metadata(name) or is_staged(name):
        return True
    if parse_log_name(name) is not None:
        return True
    # A foreign file such as sales_eu_2024.parquet has the format of a base file name, too.
    base = parse_base_name(name)
    return base is not None and len(base.instant) in _INSTANT_DIGITS


def _remove(storage: Storage, lock_files: tuple[str, ...]) -> None:
    """lock_files: path prefixes of the lock's files."""
    folders, files = storage.list_dir()
    for folder in folders:
        if folder != FOLDER:
            _remove_folder(storage, folder, lock_files)
    _remove_files(storage, files, lock_files)
    folders, files = storage.list_dir(FOLDER)
    for folder in folders:
        _remove_folder(storage, folder, lock_files)
    _remove_files(storage, files, (*lock_files, FILE))
    storage.delete(BACKUP)
    storage.delete(FILE)
    for file in files:  # Such as the guard of the properties, which a local file system has.
        if file.path.startswith(FILE) and file.path not in {FILE, BACKUP}:
            storage.delete(file.path)


def _remove_folder(storage: Storage, folder: str, lock_files: tuple[str, ...]) -> None:
    if any(path.startswith(f"{folder}/") for path in lock_files):
        _remove_files(storage, storage.list(folder), lock_files)
    else:
        storage.delete_dir(folder)


def _remove_files(storage: Storage, files: Iterable[Entry], lock_files: tuple[str, ...]) -> None:
    for file in files:
        if not file.path.startswith(lock_files):
            storage.delete(file.path)
