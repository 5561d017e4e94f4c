"""The tasks of a write: their target file groups, their shared settings, one task per file.

`write/file_assignment.py` plans the tasks, `slices/write_base.py` executes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from pyhudi.config.merge_mode import BuiltInMode, MergeConfig
from pyhudi.config.meta_columns import RECORD_KEY
from pyhudi.config.table_version import TableVersion
from pyhudi.config.write_options import WriteOptions
from pyhudi.schema.internal_schema import Evolution
from pyhudi.schema.payloads import FieldMerge
from pyhudi.slices import markers
from pyhudi.slices.cdc_format import ChangeLogFormat
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.markers import Marker, MarkerType
from pyhudi.storage.storage import Storage

BASE_ROW = "_pyhudi_base_row"
"""Column of a log task's rows or deletes: the row of the base file with the same key."""


@dataclass(frozen=True)
class FileGroup:
    """A file group that a write may use."""

    slice: FileSlice
    """The newest slice: log files are appended to it, a rewrite replaces its base file."""
    compaction: str | None = None
    """A pending compaction of the group."""
    clustering: str | None = None
    """A pending clustering that has the group among its inputs."""
    starts_with_log: bool = False
    """If it has no file yet: its first rows go to a log file (else: to a base file)."""

    read: FileSlice | None = None
    """The slice that a snapshot reads, if a pending compaction makes that another one."""

    @property
    def read_slice(self) -> FileSlice:
        """The slice that a snapshot reads of the group."""
        return self.read or self.slice

    @property
    def is_new(self) -> bool:
        """It has no file yet."""
        return self.slice.base is None and not self.slice.logs and not self.slice.base_instant

    @property
    def next_log_version(self) -> int:
        """The next version of a log file named by the slice's base instant."""
        return max((log.version for log in self.slice.logs), default=0) + 1

    @property
    def takes_inserts(self) -> bool:
        """Whether a rewrite of its base file rewrites the whole group."""
        free = self.compaction is None and self.clustering is None
        return free and self.slice.base is not None and not self.slice.logs


class RowStream(Protocol):
    """Rows that can be read repeatedly as an Arrow stream.

    A table, or an object that computes its rows on demand.
    """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """See the Arrow PyCapsule interface."""
        ...


@dataclass(frozen=True)
class WriteTarget:
    """The settings that all tasks of one write share."""

    storage: Storage
    version: TableVersion
    instant: str
    merge_on_read: bool
    schema: pa.Schema
    """With meta fields."""
    avro_schema: str
    """With meta fields."""
    merge: MergeConfig
    ordering_fields: tuple[str, ...]
    options: WriteOptions
    task_memory: int | None = None
    """Bytes that a task may use for the records that it merges into a file; None: no limit."""
    fields: FieldMerge | None = None
    """The rule for combining two records of one key, if not just one of them wins."""
    change_log: ChangeLogFormat | None = None
    """The format of change logs next to rewritten base files; None in a table without."""
    partial: bool = False
    """The rows have some of the table's columns; the others keep their stored values."""
    valid_instants: tuple[str, ...] | None = None
    """Committed instants, if log files can have blocks of others."""
    timeline_start: str | None = None
    evolution: Evolution | None = None
    """The column names in older files, if they differ."""
    virtual_keys: tuple[str, ...] = ()
    """The record key's columns, if rows have no stored key: the meta columns are then null."""
    two_threads: bool = False
    """A process has more than one processor for its tasks."""
    min_levels: int = 0
    """Minimum number of directories in a partition path; 0 if none can be inside another."""

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that identify stored rows of one record."""
        return self.virtual_keys or (RECORD_KEY,)

    @property
    def merge_mode(self) -> BuiltInMode:
        """The rule that decides which of two records of one key wins."""
        mode = self.fields.mode if self.fields else self.merge.mode
        if mode == "CUSTOM":
            raise AssertionError(mode)
        return mode

    @property
    def merge_ordering(self) -> tuple[str, ...]:
        """The fields whose values decide in event-time mode."""
        own = self.fields.ordering_fields if self.fields else None
        return self.ordering_fields if own is None else own


class NewFiles:
    """Paths of the new files of a task, one per call."""

    def __init__(
        self,
        target: WriteTarget,
        partition: str,
        marker_type: MarkerType,
        name: Callable[[int], str],
    ) -> None:
        """name: returns the name of a file by its number, from 0."""
        self._target = target
        self._partition = partition
        self._marker_type = marker_type
        self._name = name
        self.names: list[str] = []
        """The names of the files so far."""

    def __call__(self) -> str:
        """Create the marker of the next file, and return the path of the file."""
        name = self._name(len(self.names))
        self.names.append(name)
        marker = Marker(self._partition, name, self._marker_type)
        markers.create(self._target.storage, self._target.instant, marker)
        return marker.path


@dataclass(frozen=True)
class BaseFileTask:
    """Write a base file: a new file group's first, or the next one of a group."""

    target: WriteTarget
    partition: str
    file_id: str
    previous: FileSlice | None
    rows: RowStream | None
    """Record key and partition path are the first columns."""
    delete_keys: pa.Array[Any] | None = None
    merge_by_key: bool = True
    """Rows replace rows with their keys (else: they are added without a lookup)."""
    inserts: int = 0
    """Rows that were not tagged to the group."""
    updates: int = 0
    """Rows or keys that were tagged to the group."""


@dataclass(frozen=True)
class LogFileTask:
    """Append a log file to the newest slice of a file group."""

    target: WriteTarget
    partition: str
    file_id: str
    group: FileGroup
    rows: RowStream | None
    delete_keys: pa.Table | None = None
    """Columns record key and partition path."""
    updates: int = 0
    """Rows that update."""
    deletes: int = 0
    """Rows that are marked as deletes, and delete keys."""
    inserts: int = 0
    """Rows that were not looked up, or go to a new file group."""


WriteTask = BaseFileTask | LogFileTask
