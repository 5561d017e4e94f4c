"""Table handles for operations: how a table is opened for a write or another change."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Protocol

from pyhudi.clock import Clock
from pyhudi.config.lock_options import LOCK_OPTIONS
from pyhudi.config.options import CHECK_SIZES
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import META_FOLDER
from pyhudi.config.write_options import OLD_LISTS
from pyhudi.engine.protocol import Engine
from pyhudi.index.replaced_buckets import HashingMetadataParticipant
from pyhudi.metadata.commit_participant import MetadataParticipant
from pyhudi.metadata.index_definitions import definitions_path
from pyhudi.storage import properties_file
from pyhudi.storage.storage import Storage
from pyhudi.table.locking import LockManager, NoLock
from pyhudi.table.participants import CommitParticipant, SchemaHistoryFile
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.active import has_known_archive
from pyhudi.txn.lock_manager import lock_manager_for
from pyhudi.write import checks

_PARTICIPANTS = (SchemaHistoryFile(), HashingMetadataParticipant(), MetadataParticipant())


class WritableTable(Protocol):
    """The interface of a table handle for operations."""

    @property
    def storage(self) -> Storage:
        """The storage of the table."""

    @property
    def engine(self) -> Engine:
        """The engine that runs the tasks."""

    @property
    def options(self) -> Mapping[str, str]:
        """`hoodie.…` options of the handle."""


def list_opening_directories(config: TableConfig) -> set[str]:
    """Return the directories that are listed to open a table: its timeline and locks."""
    return {config.layout.folder, META_FOLDER}


def list_directories_of_write(storage: Storage, config: TableConfig) -> set[str]:
    """Return the directories that are listed to open a table for a write."""
    is_listed = config.metadata_partitions and not has_known_archive(storage, config.history_folder)
    archive = {config.history_folder} if is_listed else set[str]()
    return {*list_opening_directories(config), *archive}


def list_definition_files(config: TableConfig) -> list[str]:
    """Return the file of the index definitions, if the table can have one."""
    return [definitions_path(config)] if config.metadata_partitions else []


def open_for_change(
    handle: WritableTable,
    clock: Clock,
    config: TableConfig | None = None,
    timeline: Timeline | None = None,
) -> TableSnapshot:
    """Open a table with its commit participants, for timeline changes that write no rows.

    The caller enters a critical section of its lock manager and reloads the timeline there. config,
    timeline: if they were just read. Raises `UnsupportedTableFeature` for a table that pyhudi does
    not write to.
    """
    config = (config or TableConfig.load(handle.storage, clock)).with_delete_marks(handle.options)
    checks.check_config(config)
    return TableSnapshot.open(
        handle.storage,
        config,
        clock,
        handle.engine,
        handle.options,
        _PARTICIPANTS + (handle.participants if isinstance(handle, Handle) else ()),
        timeline,
        Handle.of(handle, clock).lock_manager,
    )


@dataclass(frozen=True)
class Handle:
    """A table handle for one operation, whose steps share a lock manager."""

    storage: Storage
    engine: Engine
    options: Mapping[str, str] = field(default_factory=dict)
    lock_manager: LockManager = field(default_factory=NoLock)
    previous_config: TableConfig | None = None
    """The table's properties when they were last read."""
    participants: tuple[CommitParticipant, ...] = ()
    """Commit participants of the operation, in addition to those of each table."""

    @classmethod
    def of(cls, table: WritableTable, clock: Clock) -> Handle:
        """Return the handle with the lock manager that its options request."""
        if isinstance(table, Handle) and not isinstance(table.lock_manager, NoLock):
            return table
        lock_manager = lock_manager_for(table.storage, table.options, clock)
        if isinstance(table, Handle):
            return replace(table, lock_manager=lock_manager)
        return cls(table.storage, table.engine, table.options, lock_manager)

    def prefetch_open(self) -> AbstractContextManager[None]:
        """A block that opens the table for a write; its reads are prefetched."""
        if self.previous_config is None:
            return nullcontext()
        files = [properties_file.FILE, *list_definition_files(self.previous_config)]
        folders = list_directories_of_write(self.storage, self.previous_config)
        return self.storage.prefetch(files=files, folders=folders)

    def without_index_options(self) -> Handle:
        """Return the handle without index options, which the table may not support yet."""
        needed = {*LOCK_OPTIONS, OLD_LISTS, CHECK_SIZES}
        remaining = {name: value for name, value in self.options.items() if name in needed}
        return replace(self, options=remaining)
