"""What a catalog is: tables by database and name, and the partitions of each.

A catalog keeps what it is given. What a table of Hudi is there, `registration.py` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class Column:
    """A column, by its type in Hive's words."""

    name: str
    type: str
    comment: str = ""


@dataclass(frozen=True)
class CatalogTable:
    """A table as a catalog has it."""

    name: str
    location: str
    columns: tuple[Column, ...]
    """Without those that it is partitioned by."""
    partition_keys: tuple[Column, ...] = ()
    input_format: str = ""
    output_format: str = ""
    serde: str = ""
    serde_parameters: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CatalogPartition:
    """A partition: a value for each partition key, and where its files lie."""

    values: tuple[str, ...]
    location: str


@runtime_checkable
class Catalog(Protocol):
    """Keeps tables by name. Each method raises `StorageError` where the catalog fails."""

    def location_of(self, uri: str) -> str:
        """A table's location as this catalog's readers take it."""
        ...

    def base_parameters(self) -> Mapping[str, str]:
        """What every table of this catalog has in its parameters, as Hudi's sync to it sets."""
        ...

    def has_database(self, database: str) -> bool:
        """Whether there is a database of this name."""
        ...

    def create_database(self, database: str) -> None:
        """Makes a database."""
        ...

    def get_table(self, database: str, name: str) -> CatalogTable | None:
        """A table, None where there is none of the name."""
        ...

    def create_table(self, database: str, table: CatalogTable) -> None:
        """Registers a new table."""
        ...

    def alter_table(self, database: str, table: CatalogTable, *, cascade: bool) -> None:
        """Makes the table of that name what is given; what is not told here stays.

        cascade: its partitions get its columns, too, where the catalog has columns of partitions
        and its readers need them.
        """
        ...

    def get_partitions(self, database: str, name: str) -> list[CatalogPartition]:
        """Every partition of a table."""
        ...

    def add_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition], batch: int
    ) -> None:
        """Registers partitions, those that are there already excepted."""
        ...

    def move_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition], batch: int
    ) -> None:
        """Gives partitions another location."""
        ...

    def drop_partitions(
        self, database: str, name: str, partitions: Sequence[CatalogPartition]
    ) -> None:
        """Takes partitions out of the catalog; their files stay."""
        ...
