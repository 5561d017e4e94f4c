"""A table's properties as its handle shows them, and the verb that changes some. Thin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyhudi.config import argument_checks as arg
from pyhudi.config.table_config import TableConfig

if TYPE_CHECKING:  # Opening and reading a table needs none of it.
    from pyhudi.write.write_context import WritableTable


class TableProperties(Mapping[str, str]):
    """The content of `hoodie.properties` by name, for reading; `set_properties` changes some."""

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
    """What `HudiTable` tells of its table's properties, and changes."""

    @property
    def config(self) -> TableConfig:
        """The table's properties."""
        raise NotImplementedError

    def _reload(self, instant: str = "") -> None:
        """Has the handle look at the table after an act, which stands if that fails."""
        raise NotImplementedError

    def _writable(self) -> WritableTable:
        """The handle, if it may write."""
        raise NotImplementedError

    @property
    def properties(self) -> TableProperties:
        """What `hoodie.properties` says, by name: a mapping for reading that prints as lines."""
        return TableProperties(self.config.properties)

    @arg.check_arguments(properties=arg.by_name)
    def set_properties(self, properties: Mapping[str, object]) -> None:
        """Changes properties of the table, under its lock: all of those given, or none.

        What files, keys or folders of the table depend on is refused by name. These can change:
        `hoodie.table.cdc.enabled`, from then on; `hoodie.table.cdc.supplemental.logging.mode`, as
        long as no commit of the active timeline has noted changes; names of your own, which begin
        with neither `hoodie.` nor `pyhudi.`; and `hoodie.compaction.payload.class` of a
        copy-on-write table up to version 6 that names no class, as Hudi 0.15 leaves them: its
        writers are told each time. Other handles see it once they are refreshed.

        Args:
            properties: values by name; None removes a name of your own.

        Raises:
            ConfigError: a property stays as it is, the message says why; a value is none that it
                can have; or the handle was opened as of an earlier time.
            CommitConflict: a writer is at work.
            LockTimeout: the table's lock could not be had in time.
            UnsupportedTableFeature: pyhudi could not write to the table then.
        """
        from pyhudi.admin.table_properties import set_properties  # noqa: PLC0415 - reading needs none

        set_properties(self._writable(), properties)
        self._reload()
