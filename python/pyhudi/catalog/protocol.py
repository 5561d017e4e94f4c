"""The interface of a catalog: tables by database and name, and the partitions of each.

A catalog stores entries unchanged. `registration.py` defines the entry of a Hudi table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class Column:
    """A column, with its type in Hive."""

    name: str
    type: str
    comment: str = ""


@dataclass(frozen=True)
class CatalogTable:
    """A table's entry in a catalog."""

    name: str
    location: str
    columns: tuple[Column, ...]
    """Columns without the partition columns."""
    partition_keys: tuple[Column, ...] = ()
    input_format: str = ""
    output_format: str = ""
    serde: str = ""
    serde_parameters: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CatalogPartition:
    """A partition: a value for each partition key, and the location of its files."""

    values: tuple[str, ...]
    location: str


@runtime_checkable
class Catalog(Protocol):
    """A store of tables by name. Each method raises `StorageError` if the catalog fails.

    A class whose entries are only names and locations has the attribute `stores_columns = False`: a
    sync then creates and reads entries, and changes none.
    """

    def location_of(self, uri: str) -> str:
        """Return a table's location for this catalog's readers."""
        ...

    def base_parameters(self) -> Mapping[str, str]:
        """Return the parameters of every table in this catalog, as Hudi's sync to it sets them."""
        ...

    def has_database(self, database: str) -> bool:
        """Return whether a database of this name exists."""
        ...

    def create_database(self, database: str) -> None:
        """Create a database."""
        ...

    def get_table(self, database: str, name: str) -> CatalogTable | None:
        """Return a table, None if it does not exist."""
        ...

    def create_table(self, database: str, table: CatalogTable) -> None:
        """Register a new table."""
        ...

    def alter_table(self, database: str, table: CatalogTable, *, cascade: bool) -> None:
        """Change the table of this name to the given definition; other settings stay.

        cascade: also change its partitions' columns, if the catalog has them and its readers need
        them.
        """
        ...

    def get_partitions(self, database: str, name: str) -> list[CatalogPartition]:
        """Return all partitions of a table."""
        ...

    def add_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition], batch: int
    ) -> None:
        """Register partitions, except those that exist already."""
        ...

    def move_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition], batch: int
    ) -> None:
        """Set another location for partitions."""
        ...

    def drop_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition]
    ) -> None:
        """Remove partitions from the catalog; their files stay."""
        ...


@runtime_checkable
class NamespaceCatalog(Catalog, Protocol):
    """A catalog whose databases can be listed, and whose tables can be dropped and renamed."""

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        ...

    def list_databases(self) -> list[str]:
        """Return the names of all databases."""
        ...

    def database_location(self, database: str) -> str | None:
        """Return the location of a database, "" if it has none, None if it does not exist."""
        ...

    def create_database(self, database: str, location: str = "") -> None:
        """Create a database. location: where its new tables are created."""
        ...

    def list_tables(self, database: str) -> list[CatalogTable]:
        """Return all tables of a database, also those that are not Hudi tables."""
        ...

    def drop_table(self, database: str, name: str) -> None:
        """Remove a table from the catalog, if it exists; its files stay."""
        ...

    def rename_table(self, database: str, name: str, new_name: str) -> None:
        """Rename a table within its database; its files stay where they are."""
        ...
