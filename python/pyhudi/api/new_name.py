"""The name of a new table in a catalog: where the table is created, and its registration."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyhudi.api.table import HudiTable
from pyhudi.api.table_exists import has_table
from pyhudi.storage.options import is_table_name
from pyhudi.storage.storage import Storage

if TYPE_CHECKING:  # Most tables have a location.
    from pyhudi.catalog.named_table import NamedTable


@dataclass(frozen=True)
class NewName:
    """The location of a new table, and its name in a catalog if it has one."""

    uri: str | os.PathLike[str]
    storage_options: Mapping[str, str] | None
    options: Mapping[str, object] | None
    named: NamedTable | None
    mode: str

    @classmethod
    def of(
        cls,
        uri: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None,
        options: Mapping[str, object] | None,
        mode: str,
    ) -> NewName:
        """Return the target of a `create_table`. Raises what `NamedTable.new_table` raises."""
        if not is_table_name(uri):
            return cls(uri, storage_options, options, None, mode)
        from pyhudi.catalog.named_table import find_table  # noqa: PLC0415 - most tables have a location

        named = find_table(uri)
        return cls(*named.new_table(mode, storage_options, options), named, mode)

    def register(self, table: HudiTable) -> HudiTable:
        """Register a table under its name; return a handle whose commits are synced to it."""
        if self.named is None:
            return table
        if self.mode == "overwrite":
            # Entries of the removed table may have other columns.
            self.named.drop_entries(table.uri)
        options = self.named.with_sync(table.options, table.uri)
        table = HudiTable(table.storage, table.engine, options)
        self.named.sync(table.state)
        return table

    @contextmanager
    def unregister_on_error(self, storage: Storage) -> Iterator[None]:
        """Remove the names of the table from the catalog if the block fails and leaves no table."""
        try:
            yield
        except BaseException:
            with suppress(Exception):  # The caller must see the first error.
                if self.named is not None and not has_table(storage):
                    self.named.drop_entries(storage.uri)
            raise
