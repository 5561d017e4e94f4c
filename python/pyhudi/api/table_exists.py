"""Whether there is a table, and whether it is what was asked for where one was to be made."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyhudi.config import argument_checks as arg
from pyhudi.config import property_names as names
from pyhudi.config.properties_file import BACKUP, FILE
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError
from pyhudi.storage.storage import Storage


def has_table(storage: Storage) -> bool:
    """Whether there is a table, also while its properties are being changed."""
    return storage.exists(FILE) or storage.exists(BACKUP)


@arg.check_arguments(uri=arg.location, storage_options=arg.optional(arg.by_name))
def table_exists(
    uri: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None
) -> bool:
    """Whether there is a table at a location. Nothing of it is read.

    Args:
        uri: as `open_table` takes it.
        storage_options: how a bucket is reached, as in `open_table`.

    Returns:
        True where `open_table` finds one.

    Raises:
        ConfigError: an option is wrong.
        StorageError: storage fails.
    """
    return has_table(Storage(os.fspath(uri), storage_options))


def check_same(storage: Storage, found: TableConfig, asked: TableConfig) -> None:
    """Raises `ConfigError` naming the property where key, partition fields or type differ."""
    has, wanted = _read_properties(found), _read_properties(asked)
    specs = [config.properties.get(names.PARTITION_FIELDS, "") for config in (found, asked)]
    if all(":" in spec for spec in specs):  # Version 6 does not store the types.
        has[names.PARTITION_FIELDS], wanted[names.PARTITION_FIELDS] = specs
    for name, value in wanted.items():
        if has[name] != value:
            msg = f"{name} is {has[name]!r} in the table at {storage.uri}, not {value!r}"
            raise ConfigError(msg, hint="Use the table's setting, or choose another location.")


def _read_properties(config: TableConfig) -> dict[str, str]:
    return {
        names.TABLE_TYPE: config.table_type,
        names.RECORD_KEY_FIELDS: ",".join(config.record_key_fields),
        names.PARTITION_FIELDS: ",".join(config.partition_fields),
    }
