"""The pending operation of a writer, which the table's properties record while it runs.

Rebuilding a metadata table and changing a table's version first remove what they restore at the
end. One property records what to restore, from the step that removes it to the step that restores
it, so that the next writer can complete the operation of a failed writer. Apache Hudi keeps
properties that it does not know, and ignores them. `write/metadata_lifecycle.py` completes the
operation.
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
    Definitions,
    IndexDefinition,
    parse_definitions,
    read_definitions,
)
from pyhudi.metadata.partition_types.registry import in_order, kind_of
from pyhudi.storage.storage import Storage

_NO_RECORD = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class PendingOperation:
    """A pending operation. An empty one means that none is pending."""

    by: str = ""
    """The name of the heartbeat of the writer that runs it."""
    version: int = 0
    """The table version of the definitions."""
    partitions: tuple[str, ...] = ()
    """Partitions of the metadata table that must exist at the end."""
    definitions: Definitions = field(default_factory=dict)
    """Their index definitions."""
    removed: tuple[str, ...] = ()
    """Directories of the metadata table that may remain and belong to no partition."""
    moving: bool = False
    """A timeline in the other layout may remain, without an owner."""
    beside: bool = False
    """Other writers are active: while its writer is, the table counts as unchanged."""
    overtaken: int = 0
    """How often other writers have fenced its writer, which then fails at its last step."""

    def __bool__(self) -> bool:
        return bool(self.by)

    @classmethod
    def of(cls, config: TableConfig) -> PendingOperation:
        """Parse a table's properties. Raises `CorruptTable` for values that no writer stores."""
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
        """Return the property that records it."""
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
        """Return the table's properties that fence its writer, which may only be stalled.

        That writer's last step is to change the properties that it has read, if they are unchanged.
        """
        later = replace(self, overtaken=self.overtaken + 1)
        return config.update(storage, later.properties, clock)

    def partitions_for(self, version: TableVersion) -> tuple[str, ...]:
        """Return the partitions to build in a table of this version, without unsupported ones."""
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
        """Return the columns that get statistics, if that is known."""
        return parse_definitions(self.definitions).get(COLUMN_STATS)

    @property
    def by_partition(self) -> bool:
        """Return whether the record index is partitioned."""
        known = parse_definitions(self.definitions).get(RECORD_INDEX)
        return known is not None and known.is_partitioned

    @property
    def index_definitions(self) -> Definitions:
        """Return the definitions of indexes that have names of their own."""
        with_names = {
            name for name in self.partitions if (kind := kind_of(name)) is None or kind.has_names
        }
        return {
            name: definition for name, definition in self.definitions.items() if name in with_names
        }


def all_of(storage: Storage, config: TableConfig, by: str = "") -> PendingOperation:
    """Return a table's whole metadata table as an operation to redo, with what is pending."""
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
