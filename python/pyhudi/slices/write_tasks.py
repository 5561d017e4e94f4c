"""What a write's tasks are: the file groups they go to, what they share, and one a file to write.

Which tasks a write has is `write/file_assignment.py`'s part, carrying them out
`slices/write_base.py`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from pyhudi.config.merge_mode import BuiltInMode, MergeConfig
from pyhudi.config.meta_columns import RECORD_KEY
from pyhudi.config.table_version import TableVersion
from pyhudi.config.write_options import WriteOptions
from pyhudi.schema.internal_schema import Evolution
from pyhudi.schema.payloads import FieldMerge
from pyhudi.slices.cdc_format import ChangeLogForm
from pyhudi.slices.file_slice import FileSlice
from pyhudi.storage.storage import Storage

BASE_ROW = "_pyhudi_base_row"
"""Column of a log task's rows or deletes: the row of the base file with the same key."""


@dataclass(frozen=True)
class FileGroup:
    """A file group that a write may go to."""

    slice: FileSlice
    """The newest slice: log files are appended to it, its base file is what a rewrite replaces."""
    compaction: str | None = None
    """A pending compaction of the group."""
    clustering: str | None = None
    """A pending clustering that has the group among its inputs."""
    starts_with_log: bool = False
    """Where it has no file yet: its first rows go to a log file (else: to a base file)."""

    read: FileSlice | None = None
    """What a snapshot reads of the group, where a pending compaction makes that another slice."""

    @property
    def read_slice(self) -> FileSlice:
        """What a snapshot reads of the group."""
        return self.read or self.slice

    @property
    def is_new(self) -> bool:
        """It has no file yet."""
        return self.slice.base is None and not self.slice.logs and not self.slice.base_instant

    @property
    def next_log_version(self) -> int:
        """Of a log file named by the slice's base instant."""
        return max((log.version for log in self.slice.logs), default=0) + 1

    @property
    def takes_inserts(self) -> bool:
        """Whether a rewrite of its base file alone would be the whole group."""
        free = self.compaction is None and self.clustering is None
        return free and self.slice.base is not None and not self.slice.logs


class RowStream(Protocol):
    """Rows that can be read as an Arrow stream, each time anew.

    A table, or what makes its rows when they are asked for.
    """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """As the Arrow PyCapsule interface has it."""
        ...


@dataclass(frozen=True)
class WriteTarget:
    """What every task of one write shares."""

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
    """How two records of one key become one, where that is more than one of them winning."""
    change_log: ChangeLogForm | None = None
    """What change logs beside rewritten base files hold; None in a table without."""
    partial: bool = False
    """The rows have some of the table's columns; the others keep what is stored."""
    valid_instants: tuple[str, ...] | None = None
    """Committed instants, where log files can hold blocks of others."""
    timeline_start: str | None = None
    evolution: Evolution | None = None
    """How older files name the columns, where they do so otherwise."""
    virtual_keys: tuple[str, ...] = ()
    """The record key's columns, where rows have no stored key: the meta columns are null then."""
    two_threads: bool = False
    """A process has more than one processor for its tasks."""
    least_levels: int = 0
    """Folders of a partition path at least; 0 where none can lie within another."""

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that stored rows of one record are known by."""
        return self.virtual_keys or (RECORD_KEY,)

    @property
    def merge_mode(self) -> BuiltInMode:
        """Which of two records of one key wins."""
        mode = self.fields.mode if self.fields else self.merge.mode
        if mode == "CUSTOM":
            raise AssertionError(mode)
        return mode

    @property
    def merge_ordering(self) -> tuple[str, ...]:
        """The fields whose values decide in event-time mode."""
        own = self.fields.ordering_fields if self.fields else None
        return self.ordering_fields if own is None else own


@dataclass(frozen=True)
class BaseFileTask:
    """Write a base file: a new file group's first, or the next one of a group."""

    target: WriteTarget
    partition: str
    file_id: str
    previous: FileSlice | None
    rows: RowStream | None
    """With record key and partition path in front."""
    delete_keys: pa.Array[Any] | None = None
    merge_by_key: bool = True
    """Rows replace rows with their keys (else: they are added without a look at keys)."""
    inserts: int = 0
    """Rows that were not tagged to the group."""
    updates: int = 0
    """Rows or keys that were."""


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
    """Rows that were not looked for, or go to a new file group."""


WriteTask = BaseFileTask | LogFileTask
