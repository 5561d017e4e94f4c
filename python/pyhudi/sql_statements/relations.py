"""The tables of a session without Spark: Hudi tables and other rows by the names of statements."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pyhudi.api.table import HudiTable, open_table
from pyhudi.errors import ConfigError
from pyhudi.input.batches import read_batches
from pyhudi.input.lazy_rows import LazyRows
from pyhudi.sql_statements.statements import TableName
from pyhudi.sql_statements.target_reads import TargetReads
from pyhudi.suggestions import did_you_mean


class Relations:
    """Hudi tables, and rows that queries may read, by name; names are not case-sensitive."""

    def __init__(
        self,
        tables: Mapping[str, Any] | None = None,
        storage_options: Mapping[str, str] | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        """Take over the tables of a caller: handles, locations, or rows in any form.

        storage_options, options: of the tables that a statement names by location. Raises
        `ConfigError` for names that differ only in case.
        """
        self.storage_options = storage_options
        self.options = options
        self.target_reads = TargetReads()
        """The snapshots that the current statement read of the table that it changes."""
        self._by_name: dict[str, tuple[str, Any]] = {}
        for name, relation in (tables or {}).items():
            if name.lower() in self._by_name:
                raise ConfigError(
                    f"two tables are called {name!r}", hint="Names are not case-sensitive."
                )
            self.add(name, relation)

    def add(self, name: str, relation: Any) -> None:
        """Add a relation, or replace the one of this name."""
        if isinstance(relation, (str, os.PathLike)):
            relation = self.open(os.fspath(relation))
        self._by_name[name.lower()] = (name, relation)

    def remove(self, table: HudiTable) -> None:
        """Forget all names of a table."""
        self._by_name = {
            key: pair
            for key, pair in self._by_name.items()
            if not (isinstance(pair[1], HudiTable) and pair[1].uri == table.uri)
        }

    @property
    def names(self) -> list[str]:
        """The names, as the caller writes them, in order."""
        return sorted(name for name, _ in self._by_name.values())

    def open(self, uri: str) -> HudiTable:
        """Open the table at a location."""
        return open_table(uri, storage_options=self.storage_options, options=self.options)

    def refresh(self) -> None:
        """Reload the tables, so that statements see later commits."""
        for _, relation in self._by_name.values():
            if isinstance(relation, HudiTable) and relation.as_of is None:
                relation.refresh()

    def find(self, table: TableName) -> Any:
        """Return a handle, or rows as an Arrow table, dataset or `LazyRows`; None if unknown.

        Raises `TableNotFound` for a location without a table.
        """
        if table.path is not None:
            return self.open(table.path)
        key = ".".join(table.parts).lower()
        if key not in self._by_name:
            return None
        name, relation = self._by_name[key]
        rows = _as_rows(relation)
        self._by_name[key] = (name, rows)
        return rows

    def table(self, table: TableName) -> HudiTable:
        """Return the handle of a Hudi table.

        Raises `ConfigError` if the name is unknown or belongs to other rows.
        """
        relation = self.find(table)
        if relation is None:
            raise self.not_found(table)
        if not isinstance(relation, HudiTable):
            raise ConfigError(f"{table} is not a Hudi table", hint="A statement can only read it.")
        return relation

    def not_found(self, table: TableName) -> ConfigError:
        """Return the error for an unknown name."""
        known = ", ".join(self.names) or "none"
        meant = did_you_mean(".".join(table.parts), self.names)
        hint = f"{meant} The tables are {known}; hudi.`/path` names one by its location."
        return ConfigError(f"there is no table {table}", hint=hint.strip())


def _as_rows(relation: Any) -> Any:
    """Return rows in a form that can be read several times."""
    is_dataset = any(base.__module__ == "pyarrow._dataset" for base in type(relation).__mro__)
    if isinstance(relation, (pa.Table, LazyRows)) or is_dataset:
        return relation
    schema, batches = read_batches(relation)
    table = pa.Table.from_batches(batches, schema)
    # Columns of dicts are in alphabetical order, and an INSERT takes them by position.
    first = relation[0] if isinstance(relation, (list, tuple)) and relation else None
    names = [*first] if isinstance(first, Mapping) else []
    return table.select([*names, *(name for name in table.column_names if name not in names)])
