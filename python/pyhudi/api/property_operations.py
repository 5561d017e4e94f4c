"""A table's properties as its handle returns them, and the method that changes some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyhudi.config import argument_checks as arg
from pyhudi.config.table_config import TableConfig

if TYPE_CHECKING:  # Opening and reading a table needs none of it.
    from pyhudi.write.write_context import WritableTable


class TableProperties(Mapping[str, str]):
    """The content of `hoodie.properties` by name, read-only; `set_properties` changes some."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = dict(sorted(properties.items()))

    def __getitem__(self, name: str) -> str:
        return self._properties[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._properties)

    def __len__(self) -> int:
        return len(self._properties)

    def __repr__(self) -> str:
        width = max(map(len, self._properties), default=0)
        return "\n".join(f"{name:{width}}  {value}" for name, value in self._properties.items())

    def _repr_html_(self) -> str:
        from pyhudi.api.display.html import facts  # noqa: PLC0415 - only notebooks need it
        from pyhudi.api.display.style import fragment  # noqa: PLC0415 - as above

        return fragment(facts(self._properties))


class PropertyVerbs:
    """Property methods of `HudiTable`."""

    @property
    def config(self) -> TableConfig:
        """The table's properties."""
        raise NotImplementedError

    def _reload(self, instant: str = "") -> None:
        """Reload the handle after an operation, which stays successful if reloading fails."""
        raise NotImplementedError

    def _writable(self) -> WritableTable:
        """Return the handle if it may write."""
        raise NotImplementedError

    @property
    def properties(self) -> TableProperties:
        """The content of `hoodie.properties` by name: a read-only mapping that prints as lines."""
        return TableProperties(self.config.properties)

    @arg.check_arguments(properties=arg.by_name)
    def set_properties(self, properties: Mapping[str, object]) -> None:
        """Change properties of the table, under its lock: all of them, or none.

        A property that files, keys or partition paths of the table depend on cannot change; the
        error names it. You can change

        - `hoodie.table.cdc.enabled`, for later commits;
        - `hoodie.table.cdc.supplemental.logging.mode`, while no commit of the active timeline has
          recorded changes;
        - your own properties, whose names begin with neither `hoodie.` nor `pyhudi.`;
        - `hoodie.compaction.payload.class` of a copy-on-write table up to version 6 that names no
          class, as Hudi 0.15 leaves it: each of its writers passes the class.

        Other handles see the change after a refresh.

        Args:
            properties: values by name; None removes a property of your own.

        Raises:
            ConfigError: a property cannot change (the message says why), a value is invalid, or the
                handle was opened as of an earlier time.
            CommitConflict: another writer is active.
            LockTimeout: the table's lock was not free in time.
            UnsupportedTableFeature: pyhudi could not write to the table after the change.
        """
        from pyhudi.admin.table_properties import set_properties  # noqa: PLC0415 - not needed for reading

        set_properties(self._writable(), properties)
        self._reload()
