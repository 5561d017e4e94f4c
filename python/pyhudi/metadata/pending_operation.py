"""What a writer has begun and not yet ended, kept in the table's properties while it is at work.

Making a metadata table anew and changing a table's version take away first what they give back
last. What there is to give back stands in one property from the step that takes it away to the
step that gives it back, so that the next writer can end the work of one that died. Apache Hudi
keeps properties that it does not know, and reads none of them. `write/metadata_lifecycle.py`
ends it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyhudi.clock import Clock
from pyhudi.config.metadata_names import COLUMN_STATS, RECORD_INDEX
from pyhudi.config.properties_file import FILE
from pyhudi.config.property_names import UNFINISHED
from pyhudi.config.table_config import TableConfig
from pyhudi.config.table_version import TableVersion
from pyhudi.errors import CorruptTable
from pyhudi.metadata.index_definitions import (
    IndexDefinition,
    parse_definitions,
    read_definitions,
)
from pyhudi.metadata.index_definitions_file import Definitions
from pyhudi.metadata.partition_types.registry import in_order, kind_of
from pyhudi.storage.storage import Storage

_NO_RECORD = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class PendingOperation:
    """Work that was begun. An empty one is none."""

    by: str = ""
    """Name of the heartbeat of whoever is at it."""
    version: int = 0
    """The table version that the definitions are of."""
    partitions: tuple[str, ...] = ()
    """Partitions of the metadata table that are to be there in the end."""
    definitions: Definitions = field(default_factory=dict)
    """Their index definitions."""
    removed: tuple[str, ...] = ()
    """Folders of the metadata table that may be left, and are nobody's."""
    moving: bool = False
    """A timeline in the other layout may be left, and is nobody's."""
    beside: bool = False
    """Others write meanwhile: while who began it is alive, the table is as if it was not begun."""
    overtaken: int = 0
    """How often others have gone on without who began it, whose last act is to fail then."""

    def __bool__(self) -> bool:
        return bool(self.by)

    @classmethod
    def of(cls, config: TableConfig) -> PendingOperation:
        """What a table's properties say. Raises `CorruptTable` for what no writer leaves there."""
        text = config.properties.get(UNFINISHED)
        if not text:
            return cls()
        try:
            return _parse(json.loads(text))
        except _NO_RECORD as error:
            msg = f"{FILE}: {UNFINISHED} is damaged: {error!r}"
            raise CorruptTable(msg, file=FILE, hint="Remove the property.") from error

    @property
    def properties(self) -> dict[str, str]:
        """The property that says so."""
        record = {
            "by": self.by,
            "version": self.version,
            "partitions": self.partitions,
            "definitions": self.definitions,
            "removed": self.removed,
            "moving": self.moving,
            **({"beside": True} if self.beside else {}),
            **({"overtaken": self.overtaken} if self.overtaken else {}),
        }
        return {UNFINISHED: json.dumps(record, separators=(",", ":"))}

    def fence(self, storage: Storage, config: TableConfig, clock: Clock) -> TableConfig:
        """Has whoever began it fail, who may only stand still: the table's new properties.

        That one's last act is to change the properties that it has read, if they still are those.
        """
        later = replace(self, overtaken=self.overtaken + 1)
        return config.update(storage, later.properties, clock)

    def partitions_for(self, version: TableVersion) -> tuple[str, ...]:
        """Those to be made in a table of this version: what it lacks, and pyhudi, are left out."""
        if not version.writable:
            return ()
        return in_order([name for name in self.partitions if self._stays(name, version)])

    def _stays(self, name: str, version: TableVersion) -> bool:
        kind = kind_of(name)
        if version.code != self.version and (kind is None or kind.has_names):
            return False
        if kind is None:
            return version.has_index_definitions
        return kind.exists_in(version, parse_definitions(self.definitions).get(name))

    @property
    def column_stats(self) -> IndexDefinition | None:
        """Which columns are to have statistics, where it is known which."""
        return parse_definitions(self.definitions).get(COLUMN_STATS)

    @property
    def by_partition(self) -> bool:
        """Whether the record index is one by data partition."""
        known = parse_definitions(self.definitions).get(RECORD_INDEX)
        return known is not None and known.is_partitioned

    @property
    def index_definitions(self) -> Definitions:
        """The definitions of indexes that have names of their own."""
        with_names = {
            name for name in self.partitions if (kind := kind_of(name)) is None or kind.has_names
        }
        return {
            name: definition for name, definition in self.definitions.items() if name in with_names
        }


def all_of(storage: Storage, config: TableConfig, by: str = "") -> PendingOperation:
    """All that a table has of a metadata table, as work to be done again; what is undone too."""
    before = PendingOperation.of(config)
    listed = config.metadata_partitions
    definitions = dict(before.definitions)
    if config.version.has_index_definitions:
        stored = read_definitions(storage, config)
        definitions.update({name: stored[name] for name in stored if name in listed})
    partitions = in_order({*before.partitions_for(config.version), *listed})
    return PendingOperation(by, config.version.code, partitions, definitions)


def _parse(record: Mapping[str, Any]) -> PendingOperation:
    definitions = dict(record["definitions"])
    parse_definitions(definitions)
    return PendingOperation(
        by=_name(record["by"]),
        version=int(record["version"]),
        partitions=_names(record["partitions"]),
        definitions=definitions,
        removed=_names(record["removed"]),
        moving=bool(record["moving"]),
        beside=bool(record.get("beside")),
        overtaken=int(record.get("overtaken", 0)),
    )


def _names(found: Iterable[Any]) -> tuple[str, ...]:
    return tuple(map(_name, found))


def _name(found: Any) -> str:
    """Names become parts of paths, below which files are deleted."""
    if not isinstance(found, str) or found.startswith(".") or not found or "/" in found:
        msg = f"{found!r} is no name"
        raise ValueError(msg)
    return found
