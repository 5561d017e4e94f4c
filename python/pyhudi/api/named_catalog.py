"""A configured catalog: lists, opens, creates, registers, drops and renames tables by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pyhudi.api.create import create_table
from pyhudi.api.drop import drop_table
from pyhudi.api.table import HudiTable, open_table
from pyhudi.catalog.catalog_settings import CatalogSettings, settings_of
from pyhudi.catalog.named_table import NamedTable, database_location
from pyhudi.catalog.protocol import NamespaceCatalog
from pyhudi.catalog.registration import is_hudi, is_read_optimized
from pyhudi.clock import Moment
from pyhudi.config import argument_checks as arg
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Engine
from pyhudi.errors import ConfigError
from pyhudi.storage.storage import Storage

_PARTS = 2


@arg.check_arguments(name=arg.name)
def load_catalog(name: str, **settings: object) -> NamedCatalog:
    """Return a configured catalog.

    It is configured in `pyhudi.toml` or by environment variables: see docs/how-to/catalogs.md.

    Args:
        name: the catalog's name in the configuration.
        settings: entries that replace those of the configuration, or that are the only ones, such
            as `type="hive", uris="thrift://metastore:9083"`.

    Returns:
        The catalog. It connects on its first call.

    Raises:
        ConfigError: no catalog of this name is configured, or its configuration is wrong.
    """
    return NamedCatalog(settings_of(name, settings))


class NamedCatalog:
    """A catalog with its tables by name. Get one with `load_catalog`.

    Names of tables are `database.table`. Threads may share the object.
    """

    def __init__(self, settings: CatalogSettings) -> None:
        self._settings = settings
        self.store: NamespaceCatalog = settings.connect()
        """The catalog's entries, such as a `pyhudi.catalog.HiveCatalog`."""

    def __repr__(self) -> str:
        return f"NamedCatalog({self.name!r}, {self._settings.type!r})"

    @property
    def name(self) -> str:
        """The name in the configuration."""
        return self._settings.name

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        self.store.close()

    def list_databases(self) -> list[str]:
        """List the databases.

        Returns:
            Their names, in order.

        Raises:
            StorageError: the catalog fails.
        """
        return self.store.list_databases()

    @arg.check_arguments(database=arg.name)
    def list_tables(self, database: str) -> list[str]:
        """List the Hudi tables of a database, without read-optimized views.

        Args:
            database: name of the database.

        Returns:
            Names without the database, in order.

        Raises:
            ConfigError: the database does not exist.
            StorageError: the catalog fails.
        """
        database_location(self.name, self.store, database)
        tables = self.store.list_tables(database)
        return sorted(each.name for each in tables if is_hudi(each) and not is_read_optimized(each))

    @arg.check_arguments(database=arg.name)
    def create_database(self, database: str, *, location: str | None = None) -> None:
        """Create a database.

        Args:
            database: its name.
            location: where its new tables are created: a directory for each; by default where the
                Hive metastore or Polaris has its warehouse. In Glue a database without location
                has no new tables.

        Raises:
            ConfigError: the name is empty.
            StorageError: the database exists, or the catalog fails.
        """
        self.store.create_database(database, location or "")

    @arg.check_arguments(name=arg.name)
    def open_table(
        self,
        name: str,
        *,
        storage_options: Mapping[str, str] | None = None,
        options: Mapping[str, object] | None = None,
        engine: Engine | None = None,
        as_of: Moment | None = None,
    ) -> HudiTable:
        """Open a table.

        Each of its commits is followed by a sync of the catalog, unless
        `hoodie.datasource.meta.sync.enable` is false.

        Args:
            name: `database.table`.
            storage_options: as in `pyhudi.open_table`, added to those of the catalog.
            options: as in `pyhudi.open_table`, added to those of the catalog.
            engine: as in `pyhudi.open_table`.
            as_of: as in `pyhudi.open_table`.

        Returns:
            The handle.

        Raises:
            TableNotFound: the catalog has no Hudi table of this name, or its files do not exist.
            ConfigError: an option is wrong, or the table is a read-optimized view.
            StorageError: the storage or the catalog fails.
        """
        return open_table(
            self._table(name),
            storage_options=storage_options,
            options=options,
            engine=engine,
            as_of=as_of,
        )

    @arg.check_arguments(name=arg.name)
    def create_table(self, name: str, schema_or_data: Any, **arguments: Any) -> HudiTable:
        """Create a table in the directory of its name below its database's location.

        Args:
            name: `database.table`.
            schema_or_data: as in `pyhudi.create_table`.
            arguments: the other arguments of `pyhudi.create_table`.

        Returns:
            A handle, as `open_table` returns it.

        Raises:
            ConfigError: the table exists, the database does not exist or has no location, or
                what `pyhudi.create_table` raises.
            StorageError: the storage or the catalog fails.
        """
        return create_table(self._table(name), schema_or_data, **arguments)

    @arg.check_arguments(name=arg.name)
    def register_table(
        self,
        name: str,
        uri: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
        options: Mapping[str, object] | None = None,
    ) -> HudiTable:
        """Register a table that exists on storage, under a name of your choice.

        Args:
            name: `database.table`. A table at the same location may have it already.
            uri: location of the table, as in `pyhudi.open_table`.
            storage_options: as in `open_table`.
            options: as in `open_table`.

        Returns:
            A handle, as `open_table` returns it.

        Raises:
            ConfigError: the name belongs to another table, or the database does not exist.
            TableNotFound: there is no table at the location.
            UnsupportedTableFeature: the catalog cannot store the table.
            StorageError: the storage or the catalog fails.
        """
        named = self._table(name)
        named.check_database()
        access = named.access_at(os.fspath(uri), storage_options, options)
        storage = Storage(access.uri, access.storage_options)
        table = HudiTable(storage, LocalEngine(), access.options)
        named.sync(table.state)
        return table

    @arg.check_arguments(name=arg.name)
    def drop_table(self, name: str, *, purge: bool = False) -> None:
        """Remove a table from the catalog, with its views `_ro` and `_rt`.

        Args:
            name: `database.table`.
            purge: also remove the table with its history, as `pyhudi.drop_table` does.

        Raises:
            TableNotFound: the catalog has no Hudi table of this name.
            ConfigError: with `purge`, there are files that are not the table's.
            CommitConflict: with `purge`, a writer is active on the table.
            LockTimeout: with `purge`, the table's lock was not free in time.
            StorageError: the storage or the catalog fails.
        """
        named = self._table(name)
        if purge:
            drop_table(named)
        else:
            named.drop_entries(named.location())

    @arg.check_arguments(name=arg.name, new_name=arg.name)
    def rename_table(self, name: str, new_name: str) -> None:
        """Rename a table in the catalog, with its views `_ro` and `_rt`. Its files stay.

        The names change one after the other; you can repeat a call that failed.

        Args:
            name: `database.table`.
            new_name: `database.table` in the same database.

        Raises:
            TableNotFound: the catalog has no Hudi table of this name.
            ConfigError: the new name is in use, or in another database, or the catalog is Apache
                Polaris, which cannot rename tables.
            StorageError: the catalog fails.
        """
        self._table(name).rename(self._table(new_name))

    def _table(self, name: str) -> NamedTable:
        parts = name.split(".")
        if len(parts) != _PARTS or not all(parts):
            msg = f"{name!r} is not a table's name in the catalog {self.name!r}"
            raise ConfigError(msg, hint="Names are of the form database.table.")
        return NamedTable(self._settings, self.store, *parts)
