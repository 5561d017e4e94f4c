"""Whether a location has a table, and whether it is the one that a caller wanted to create."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pyhudi.config import argument_checks as arg
from pyhudi.config import property_names as names
from pyhudi.config.column_rules import MERGE_RULES, format_rules
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError
from pyhudi.storage.options import is_table_name
from pyhudi.storage.properties_file import BACKUP, FILE
from pyhudi.storage.storage import Storage


def has_table(storage: Storage) -> bool:
    """Return whether there is a table, even while its properties are being changed."""
    return storage.exists(FILE) or storage.exists(BACKUP)


@arg.check_arguments()
def table_exists(
    uri: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    filesystem: Any = None,
) -> bool:
    """Return whether a location has a Hudi table. Nothing of the table is read.

    Args:
        uri: location, or a name in a catalog, as in `open_table`.
        storage_options: access to the storage, as in `open_table`.
        filesystem: a filesystem object of pyarrow or fsspec, as in `open_table`.

    Returns:
        True if `open_table` would find a table.

    Raises:
        ConfigError: an option is wrong, or the catalog is not configured.
        StorageError: the storage or the catalog fails.
    """
    if filesystem is not None:
        from pyhudi.storage.filesystems import with_filesystem  # noqa: PLC0415 - few calls pass one

        uri, storage_options = with_filesystem(uri, storage_options, filesystem)
    if is_table_name(uri):
        from pyhudi.catalog.named_table import find_table  # noqa: PLC0415 - most tables have a location

        named = find_table(uri)
        location = named.find_location()
        if location is None:
            return False
        storage_options = named.merge_storage_options(location, storage_options)
        return has_table(Storage(location, storage_options))
    return has_table(Storage(os.fspath(uri), storage_options))


def check_same(storage: Storage, existing: TableConfig, requested: TableConfig) -> None:
    """Raise `ConfigError` with the first of key, partition fields and type that differs."""
    actual, expected = _read_properties(existing), _read_properties(requested)
    specs = [config.properties.get(names.PARTITION_FIELDS, "") for config in (existing, requested)]
    if all(":" in spec for spec in specs):  # Version 6 does not store the types.
        actual[names.PARTITION_FIELDS], expected[names.PARTITION_FIELDS] = specs
    for name, value in expected.items():
        if actual[name] != value:
            msg = f"{name} is {actual[name]!r} in the table at {storage.uri}, not {value!r}"
            raise ConfigError(msg, hint="Use the table's setting, or choose another location.")


def _read_properties(config: TableConfig) -> dict[str, str]:
    return {
        names.TABLE_TYPE: config.table_type,
        names.RECORD_KEY_FIELDS: ",".join(config.record_key_fields),
        names.PARTITION_FIELDS: ",".join(config.partition_fields),
        MERGE_RULES: format_rules(dict(config.merge.column_rules)),
    }
