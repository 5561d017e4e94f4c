"""`TableSnapshot`: a table at one instant, with what operations on it need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from pyhudi.clock import Clock, SystemClock
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Engine
from pyhudi.schema.table_schema import TableSchema, readable_schema, table_schema
from pyhudi.storage.storage import Storage
from pyhudi.table.locking import LockManager, NoLock
from pyhudi.table.participants import CommitParticipant
from pyhudi.table.scan_columns import text_columns
from pyhudi.timeline import InstantGenerator, Timeline


@dataclass(frozen=True)
class TableSnapshot:
    """A data table or a metadata table at one instant.

    Pickled for another process it has an engine of one thread and no lock.
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    schema: TableSchema
    """The schema of its rows. A metadata table has the Avro schema only."""
    columns: pa.Schema
    """The columns of its files, meta columns first."""
    generator: InstantGenerator
    """The source of new instants of all operations on this snapshot."""
    clock: Clock = field(default_factory=SystemClock)
    engine: Engine = field(default_factory=LocalEngine)
    """Runs the tasks."""
    options: Mapping[str, str] = field(default_factory=dict)
    """`hoodie.…` options of the handle, as strings."""
    participants: tuple[CommitParticipant, ...] = ()
    """Its commit participants."""
    lock_manager: LockManager = field(default_factory=NoLock)
    """Excludes other writers; a metadata table has its data table's."""
    as_text: tuple[str, ...] = ()
    """Columns whose values scans return as strings."""

    @classmethod
    def open(
        cls,
        storage: Storage,
        config: TableConfig,
        clock: Clock,
        engine: Engine | None = None,
        options: Mapping[str, str] | None = None,
        participants: tuple[CommitParticipant, ...] = (),
        timeline: Timeline | None = None,
        lock_manager: LockManager | None = None,
    ) -> TableSnapshot:
        """Load a table for a writer: every column as stored, and a new source of instants.

        timeline: None to load it. lock_manager: None if no other writer exists.
        """
        from pyhudi.schema.virtual_keys import file_schema  # noqa: PLC0415 - not needed for reading

        timeline = timeline or Timeline.load(storage, config)
        schema = table_schema(storage, config, timeline)
        return cls(
            storage,
            config,
            timeline,
            schema,
            file_schema(schema, config),
            InstantGenerator(clock, config.timezone),
            clock,
            engine or LocalEngine(),
            options or {},
            participants,
            lock_manager or NoLock(),
        )

    def with_timeline(self, timeline: Timeline) -> TableSnapshot:
        """Return the snapshot with another timeline and the same schema."""
        return replace(self, timeline=timeline)

    def reload(self) -> TableSnapshot:
        """Return the snapshot with the current timeline."""
        return self.with_timeline(Timeline.load(self.storage, self.config))

    def with_schema(self, schema: TableSchema) -> TableSnapshot:
        """Return the snapshot with other columns, which its new files will have."""
        from pyhudi.schema.virtual_keys import file_schema  # noqa: PLC0415 - not needed for reading

        return replace(self, schema=schema, columns=file_schema(schema, self.config))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "engine": LocalEngine(1), "lock_manager": NoLock()}


def snapshot_at(
    storage: Storage, config: TableConfig, timeline: Timeline, options: Mapping[str, str]
) -> TableSnapshot:
    """Return the snapshot of a timeline."""
    stored_schema = table_schema(storage, config, timeline)
    schema = readable_schema(stored_schema.arrow, stored_schema.avro)
    as_text = text_columns(config, schema)
    clock = SystemClock()
    return TableSnapshot(
        storage,
        config,
        timeline,
        stored_schema,
        schema,
        InstantGenerator(clock, config.timezone),
        clock,
        options=options,
        as_text=as_text,
    )
