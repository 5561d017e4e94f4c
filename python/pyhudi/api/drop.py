"""Drops a table: removes its files and its history."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pyhudi.api.operation_events import as_location_operation, set_location
from pyhudi.api.table_exists import has_table
from pyhudi.clock import SystemClock
from pyhudi.config import argument_checks as arg
from pyhudi.config.options import check_options
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import TableNotFound
from pyhudi.storage.options import is_table_name
from pyhudi.storage.storage import Storage
from pyhudi.write.drop_table import remove_table
from pyhudi.write.table_opening import Handle


@arg.check_arguments()
@as_location_operation("drop_table")
def drop_table(
    uri: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
    filesystem: Any = None,
) -> None:
    """Remove a table with its history, under its lock.

    You cannot undo it. Data files are removed first and the table's properties last, so
    you can repeat a call that failed. The lock's file and its guard (`.guard`) stay, because other
    writers may wait for them.

    Args:
        uri: location of the table, or its name in a catalog, as in `open_table`. The names of a
            table that you pass by name are removed from the catalog, too.
        storage_options: access to the storage, as in `open_table`.
        options: `hoodie.…` options by name, such as those of the lock.
        filesystem: a filesystem object of pyarrow or fsspec, as in `open_table`.

    Raises:
        TableNotFound: there is no table.
        ConfigError: there are files that are not the table's; nothing was removed.
        CommitConflict: a writer is active on the table.
        LockTimeout: the table's lock was not free in time.
        UnsupportedTableFeature: pyhudi does not write to the table.
        StorageError: the storage fails.
    """
    if filesystem is not None:
        from pyhudi.storage.filesystems import with_filesystem  # noqa: PLC0415 - few calls pass one

        uri, storage_options = with_filesystem(uri, storage_options, filesystem)
    if is_table_name(uri):
        from pyhudi.catalog.named_table import find_table  # noqa: PLC0415 - most tables have a location

        named = find_table(uri)
        access = named.access(storage_options, options)
        set_location(access.uri, named.table)
        # A call that failed later may have removed the files.
        with suppress(TableNotFound):
            drop_table(access.uri, storage_options=access.storage_options, options=options)
        named.drop_entries(access.uri)
        return
    storage, clock = Storage(os.fspath(uri), storage_options), SystemClock()
    if not has_table(storage):
        raise TableNotFound(f"{storage.uri}: there is no Hudi table")
    set_location(storage.uri, TableConfig.load(storage, clock).name)
    remove_table(Handle(storage, LocalEngine(), check_options(options)), clock)
