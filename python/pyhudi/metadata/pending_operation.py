"""The pending operation of a writer, recorded in the table's properties while it runs.

A rebuild of the metadata table and a change of the table's version first remove what they restore
at the end. In between, one property records what to restore, so the next writer can complete the
operation of a failed writer (`write/metadata_lifecycle.py`). Apache Hudi keeps and ignores
properties that it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyhudi.clock import Clock
from pyhudi.config.metadata_names import COLUMN_STATS, RECORD_INDEX
from pyhudi.config.property_names import PENDING_OPERATION
from pyhudi.config.table_config import TableConfig
from pyhudi.config.table_version import TableVersion
from pyhudi.errors import CorruptTable
from pyhudi.metadata.index_definitions import (
    Definitions,
    IndexDefinition,
    parse_definitions,
    read_definitions,
)
from pyhudi.metadata.partition_types.registry import in_order, partition_type_of
from pyhudi.storage.properties_file import FILE
from pyhudi.storage.storage import Storage

_PARSE_ERRORS = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class PendingOperation:
    """A pending operation. An empty object means that no operation is pending."""

    heartbeat: str = ""
    """The name of the heartbeat of the writer that runs it."""
    version: int = 0
    """The table version of the definitions."""
    partitions: tuple[str, ...] = ()
    """Partitions of the metadata table that must exist at the end."""
    definitions: Definitions = field(default_factory=dict)
    """Their index definitions."""
    removed: tuple[str, ...] = ()
    """Directories of the metadata table that may remain and belong to no partition."""
    changes_layout: bool = False
    """Whether it changes the timeline's layout, so files of the other layout may remain."""
    is_concurrent: bool = False
    """Whether other writers go on: the table counts as unchanged while its writer is active."""
    times_fenced: int = 0
    """How often other writers have fenced its writer, which then fails at its last step."""

    def __bool__(self) -> bool:
        return bool(self.heartbeat)

    @classmethod
    def of(cls, config: TableConfig) -> PendingOperation:
        """Parse a table's properties. Raises `CorruptTable` for an invalid record."""
        json_text = config.properties.get(PENDING_OPERATION)
        if not json_text:
            return cls()
        try:
            return _parse(json.loads(json_text))
        except _PARSE_ERRORS as error:
            msg = f"{FILE}: {PENDING_OPERATION} is damaged: {error!r}"
            raise CorruptTable(msg, file=FILE, hint="Remove the property.") from error

    @property
    def properties(self) -> dict[str, str]:
        """Return the property that records it."""
        record = {
            "by": self.heartbeat,
            "version": self.version,
            "partitions": self.partitions,
            "definitions": self.definitions,
            "removed": self.removed,
            "moving": self.changes_layout,
            **({"beside": True} if self.is_concurrent else {}),
            **({"overtaken": self.times_fenced} if self.times_fenced else {}),
        }
        return {PENDING_OPERATION: json.dumps(record, separators=(",", ":"))}

    def fence(self, storage: Storage, config: TableConfig, clock: Clock) -> TableConfig:
        """Fence its writer, which may only be stalled, and return the table's new properties.

        That writer's last step changes the properties only if they are unchanged since its read.
        """
        later = replace(self, times_fenced=self.times_fenced + 1)
        return config.update(storage, later.properties, clock)

    def partitions_for(self, version: TableVersion) -> tuple[str, ...]:
        """Return the partitions to build that a table of this version supports."""
        if not version.writable:
            return ()
        return in_order([name for name in self.partitions if self._exists_in(name, version)])

    def _exists_in(self, name: str, version: TableVersion) -> bool:
        partition_type = partition_type_of(name)
        if version.code != self.version and (partition_type is None or partition_type.has_names):
            return False
        if partition_type is None:
            return version.has_index_definitions
        return partition_type.exists_in(version, parse_definitions(self.definitions).get(name))

    @property
    def column_stats(self) -> IndexDefinition | None:
        """The definition of the columns with statistics, if it is recorded."""
        return parse_definitions(self.definitions).get(COLUMN_STATS)

    @property
    def has_partitioned_record_index(self) -> bool:
        """Whether the record index is partitioned."""
        definition = parse_definitions(self.definitions).get(RECORD_INDEX)
        return definition is not None and definition.is_partitioned

    @property
    def index_definitions(self) -> Definitions:
        """The definitions of secondary and expression indexes, which have names."""
        named = {
            name
            for name in self.partitions
            if (partition_type := partition_type_of(name)) is None or partition_type.has_names
        }
        return {name: definition for name, definition in self.definitions.items() if name in named}


def full_rebuild(storage: Storage, config: TableConfig, heartbeat: str = "") -> PendingOperation:
    """Return the operation that rebuilds the whole metadata table, including pending partitions."""
    pending = PendingOperation.of(config)
    existing = config.metadata_partitions
    definitions = dict(pending.definitions)
    if config.version.has_index_definitions:
        current = read_definitions(storage, config)
        definitions.update({name: current[name] for name in current if name in existing})
    partitions = in_order({*pending.partitions_for(config.version), *existing})
    return PendingOperation(heartbeat, config.version.code, partitions, definitions)


def _parse(record: Mapping[str, Any]) -> PendingOperation:
    definitions = dict(record["definitions"])
    parse_definitions(definitions)
    return PendingOperation(
        heartbeat=_name(record["by"]),
        version=int(record["version"]),
        partitions=_names(record["partitions"]),
        definitions=definitions,
        removed=_names(record["removed"]),
        changes_layout=bool(record["moving"]),
        is_concurrent=bool(record.get("beside")),
        times_fenced=int(record.get("overtaken", 0)),
    )


def _names(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(map(_name, values))


def _name(name: Any) -> str:
    """Check a name, since files are deleted below a path with that name."""
    if not isinstance(name, str) or name.startswith(".") or not name or "/" in name:
        msg = f"{name!r} is not a valid name"
        raise ValueError(msg)
    return name
