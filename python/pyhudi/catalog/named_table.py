"""A table's name in a configured catalog: its entries, and the arguments that open the table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.catalog.catalog_settings import CatalogSettings, UnknownCatalog, settings_of
from pyhudi.catalog.protocol import CatalogTable, NamespaceCatalog
from pyhudi.catalog.registration import hudi_entry, is_hudi, local_path
from pyhudi.catalog.table_sync import is_same_location, sync_table
from pyhudi.config.catalog_sync_options import (
    CONFIGURED,
    DATABASE,
    ENABLE,
    HIVE_ENABLE,
    SNAPSHOT_BY_NAME,
    TABLE,
    TOOLS,
    URIS,
    SyncOptions,
)
from pyhudi.config.options import check_options
from pyhudi.errors import ConfigError, TableNotFound
from pyhudi.storage.options import is_remote, mask_credentials
from pyhudi.storage.properties import DATABASE_NAME
from pyhudi.suggestions import did_you_mean
from pyhudi.table.table_snapshot import TableSnapshot

_VIEWS = ("_rt", "_ro", "")
"""Ends of the names under which a table is registered; the name itself is the last."""
_DECIDED = (DATABASE, TABLE, TOOLS, URIS)
"""Options that a name decides."""


@dataclass(frozen=True)
class TableAccess:
    """The location of a table, and how it is opened there."""

    uri: str
    storage_options: dict[str, str] | None
    options: dict[str, str]
    """Checked options, with those that sync the catalog after a commit."""


def find_table(name: str | os.PathLike[str]) -> NamedTable:
    """Return the table of a name, for which `is_table_name` is true.

    Raises `ConfigError` if its catalog is not configured.
    """
    if isinstance(name, NamedTable):
        return name
    text = os.fspath(name)
    catalog, database, table = text.split(".")
    try:
        settings = settings_of(catalog)
    except UnknownCatalog as error:
        error.hint = f"{error.hint} Write a directory as ./{text}.".strip()
        raise
    return NamedTable(settings, settings.connect(), database, table)


class NamedTable(os.PathLike[str]):
    """A table's name in a catalog. Functions that take a location take it, too."""

    is_table_name = True

    def __init__(
        self, settings: CatalogSettings, store: NamespaceCatalog, database: str, table: str
    ) -> None:
        self.settings = settings
        self.store = store
        self.database = database
        self.table = table

    def __fspath__(self) -> str:
        return f"{self.settings.name}.{self.database}.{self.table}"

    @property
    def name(self) -> str:
        """The name with that of its catalog."""
        return self.__fspath__()

    # --- lookup -----------------------------------------------------------------------------------

    def location(self) -> str:
        """Return the location of the table.

        Raises `TableNotFound` if the catalog has no Hudi table of this name, and `ConfigError` for
        a read-optimized view.
        """
        try:
            entry = hudi_entry(self.store, self.database, self.table, self.name)
        except TableNotFound as error:
            error.hint = self._suggest()
            raise
        return local_path(entry.location)

    def find_location(self) -> str | None:
        """Return the location of the table, None if the catalog has no Hudi table of this name."""
        entry = self.store.get_table(self.database, self.table)
        return None if entry is None or not is_hudi(entry) else local_path(entry.location)

    def check_database(self) -> str:
        """Return the location of the database. Raises `ConfigError` if it does not exist."""
        return database_location(self.settings.name, self.store, self.database)

    def _suggest(self) -> str:
        """Return a question for a name like this one, or ""."""
        if self.store.database_location(self.database) is None:
            databases = self.store.list_databases()
            return did_you_mean(self.database, databases) or (
                f"There is no database {self.database!r}; there are {', '.join(databases)}."
            )
        names = sorted(each.name for each in self.store.list_tables(self.database) if is_hudi(each))
        return did_you_mean(self.table, names)

    # --- access -----------------------------------------------------------------------------------

    def access(
        self, storage_options: Mapping[str, str] | None, options: Mapping[str, object] | None
    ) -> TableAccess:
        """Return what opens the table. Raises what `location` raises."""
        return self.access_at(self.location(), storage_options, options)

    def access_at(
        self,
        location: str,
        storage_options: Mapping[str, str] | None,
        options: Mapping[str, object] | None,
    ) -> TableAccess:
        """Return what opens the table at a location. Raises `ConfigError` for a wrong option."""
        checked = check_options(self.merge_options(options))
        return TableAccess(
            location,
            self.merge_storage_options(location, storage_options),
            self.with_sync(checked, location),
        )

    def merge_options(self, options: Mapping[str, object] | None) -> dict[str, object]:
        """Return the options of the catalog, and those of a call instead of them."""
        merged = {**self.settings.options, **(options or {})}
        for name in _DECIDED:
            if name in merged:
                msg = f"{name} is set, but the name {self.name!r} decides it"
                raise ConfigError(msg, hint="Leave the option out.")
        return merged

    def merge_storage_options(
        self, location: str, options: Mapping[str, str] | None
    ) -> dict[str, str] | None:
        """Return the storage options of the catalog, which local paths do not have, and a call."""
        own = self.settings.storage_options if is_remote(location) else {}
        passed = {name.lower() for name in options or {}}
        inherited = {name: value for name, value in own.items() if name.lower() not in passed}
        return {**inherited, **(options or {})} or None

    def with_sync(self, options: Mapping[str, str], location: str) -> dict[str, str]:
        """Return options with those that sync the table with this name after each commit."""
        base, is_registered = self._base_name(location)
        defaults = {} if HIVE_ENABLE in options else {ENABLE: "true"}
        if not is_registered:
            defaults[SNAPSHOT_BY_NAME] = "false"
        return {
            **defaults,
            **options,
            DATABASE: self.database,
            TABLE: base,
            CONFIGURED: self.settings.to_json(),
        }

    def _base_name(self, location: str) -> tuple[str, bool]:
        """Return the name without the end of a view, and whether it is to be registered itself."""
        base = self.table.removesuffix("_rt")
        if base != self.table:
            views = [view for view in ("", "_ro") if self._entry(base + view, location)]
            if views:
                return base, "" in views
        return self.table, True

    # --- changes ----------------------------------------------------------------------------------

    def new_table(
        self,
        mode: str,
        storage_options: Mapping[str, str] | None,
        options: Mapping[str, object] | None,
    ) -> tuple[str, dict[str, str] | None, dict[str, object]]:
        """Return location, storage options and options of a table that is to be created.

        Raises `ConfigError` if the name is in use and `mode` is "error", or if the database does
        not exist or has no location.
        """
        entry = self.store.get_table(self.database, self.table)
        if entry is None:
            parent = self.check_database()
            if not parent:
                raise ConfigError(
                    f"the database {self.database!r} of the catalog {self.settings.name!r} has no "
                    "location, in which to create a table",
                    hint="Set its location, or create the table at a path and register it.",
                )
            location = f"{local_path(parent).rstrip('/')}/{self.table}"
        elif not is_hudi(entry):
            raise ConfigError(f"{self.name!r} exists and is not a Hudi table")
        elif mode == "error":
            raise ConfigError(
                f"the table {self.name!r} exists at {mask_credentials(entry.location)}",
                hint='Open it with open_table, or pass mode="ignore" or mode="overwrite".',
            )
        else:
            location = local_path(entry.location)
        merged = {DATABASE_NAME: self.database, **self.merge_options(options)}
        return location, self.merge_storage_options(location, storage_options), merged

    def sync(self, table: TableSnapshot) -> None:
        """Register a table under this name, or update it there. Raises what `sync_table` raises.

        table: a snapshot with the options of `with_sync`.
        """
        sync_table(table, self.store, SyncOptions.of(table.options))

    def drop_entries(self, location: str) -> None:
        """Remove the names of the table at a location from the catalog; you can repeat a call."""
        base, _ = self._base_name(location)
        for view in _VIEWS:
            if self._entry(base + view, location):
                self.store.drop_table(self.database, base + view)

    def rename(self, other: NamedTable) -> None:
        """Rename the table, with its views: see `NamedCatalog.rename_table`."""
        if other.database != self.database:
            raise ConfigError(
                f"{self.name!r} cannot be renamed to {other.name!r}, of another database",
                hint="Register it under the new name, then drop the old name.",
            )
        location = self.location()
        names = [view for view in _VIEWS if self._entry(self.table + view, location)]
        for view in names:
            if self.store.get_table(self.database, other.table + view) is not None:
                raise ConfigError(f"{other.name}{view} exists", hint="Choose another name.")
        for view in names:
            self.store.rename_table(self.database, self.table + view, other.table + view)

    def _entry(self, table: str, location: str) -> CatalogTable | None:
        """Return the entry of a name if it belongs to the table at a location."""
        entry = self.store.get_table(self.database, table)
        is_same = entry is not None and is_same_location(local_path(entry.location), location)
        return entry if is_same else None


def database_location(catalog: str, store: NamespaceCatalog, database: str) -> str:
    """Return the location of a database, "" if it has none. Raises `ConfigError` if it is unknown.

    catalog: the catalog's name.
    """
    location = store.database_location(database)
    if location is None:
        hint = did_you_mean(database, store.list_databases()) or (
            f"Create it with load_catalog({catalog!r}).create_database({database!r})."
        )
        raise ConfigError(f"the catalog {catalog!r} has no database {database!r}", hint=hint)
    return location
