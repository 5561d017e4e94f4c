"""The interface of an index, and of the table that it uses.

Each index type is one class in a module of this package; `selection.py` registers them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from pyhudi.config.index_options import IndexOptions
from pyhudi.config.merge_mode import BuiltInMode
from pyhudi.config.table_config import TableConfig
from pyhudi.config.write_options import WriteOptions
from pyhudi.engine.protocol import Engine
from pyhudi.index.detection import IndexDetector
from pyhudi.index.key_reader import KeySource
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.tagged_rows import Tagged
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline

NO_LOCATIONS = Tagged(pa.array([], pa.int64()), pa.array([], pa.int64()))


@dataclass(frozen=True)
class TagResult:
    """The locations of incoming rows, existing or new."""

    tagged: Tagged
    groups: list[FileGroup]
    """The groups by their numbers in `tagged`. Some may not exist yet."""


def group_numbers(groups: Sequence[FileGroup]) -> Mapping[tuple[str, str], int]:
    """Return the number of each group by partition path and file id."""
    return {(group.slice.partition, group.slice.file_id): n for n, group in enumerate(groups)}


class IndexedTable(Protocol):
    """The table of a write: `write.write_context.WriteContext`."""

    @property
    def engine(self) -> Engine: ...

    @property
    def storage(self) -> Storage: ...

    @property
    def config(self) -> TableConfig: ...

    @property
    def timeline(self) -> Timeline:
        """The timeline that the write builds on."""
        ...

    @property
    def options(self) -> WriteOptions: ...

    @property
    def merge_mode(self) -> BuiltInMode | None:
        """The merge mode of records with one key."""
        ...

    @property
    def index(self) -> Index: ...

    @property
    def key_source(self) -> KeySource:
        """How to read the keys of the table's files."""
        ...

    def combine(self, rows: pa.Table) -> pa.Table:
        """Return one row for each key, by the table's merge rules."""
        ...

    def groups(self, partitions: Sequence[str] | None) -> tuple[list[FileGroup], list[FileSlice]]:
        """Return file groups of partitions (None for all), and for each the slice to read."""
        ...

    @property
    def table(self) -> TableSnapshot:
        """The table of the write."""
        ...

    def new_file_id(self) -> str:
        """Return a file id that no file has."""
        ...


class KeyFilter(Protocol):
    """Rules out base files without reading their keys."""

    def may_contain(self, slice_: FileSlice, keys: pa.Array[Any]) -> bool:
        """Return whether the slice's base file may contain one of the keys."""
        ...


@dataclass(frozen=True)
class Index(ABC):
    """How one write finds rows by their keys. It is sent to executors."""

    updates_partition_path: bool = False
    """A row whose partition path changed moves to another partition."""

    index_type: ClassVar[str]
    """Its `hoodie.index.type`."""
    is_global: ClassVar[bool] = False
    """A key is looked up in every partition."""
    is_record_index: ClassVar[bool] = False
    """The metadata table has one location of each key."""
    has_buckets: ClassVar[bool] = False
    """The key alone selects the file group of a partition."""
    has_consistent_hashing: ClassVar[bool] = False
    """The hash ranges of the file groups are stored for each partition."""
    supports_virtual_keys: ClassVar[bool] = False
    """It works for rows without stored keys (Hudi: virtual keys)."""
    is_binding: ClassVar[bool] = False
    """Every writer of a table in which it is detected must use it."""
    update_path_option: ClassVar[str] = ""
    """The option that allows rows to move to another partition."""

    @classmethod
    def detect(cls, detector: IndexDetector) -> bool:
        """Return whether the table is written with this type of index."""
        return False

    @classmethod
    def of(cls, detector: IndexDetector, options: IndexOptions) -> Index:
        """Return the index for a write.

        Raises `ConfigError` and `UnsupportedTableFeature` for a table that it cannot be used with.
        """
        return cls(updates_partition_path=cls.update_path_option in options.updates_partition_path)

    @property
    def keeps_locations(self) -> bool:
        """Return whether existing rows stay in their file groups and new ones go to base files."""
        return not self.is_global and not self.has_buckets

    def finds_by_key(self, *, any_partition: bool) -> bool:
        """Return whether it finds keys without reading the keys of files."""
        return False

    def filters(self, table: IndexedTable) -> KeyFilter | None:
        """Return the filter that rules out base files; None without one."""
        return None

    @abstractmethod
    def find(self, table: IndexedTable, keys: pa.Table, *, any_partition: bool) -> TagResult:
        """Return the locations of keys. keys: columns record key and partition path.

        any_partition: look in all partitions, not only in the key's own.
        """

    def look_up(
        self, table: IndexedTable, keys: pa.Table, new: pa.Array[Any], *, rewrite: bool = False
    ) -> TagResult:
        """Return the locations of keys, and of rows that do not have one yet.

        new: for each row whether it may get a new bucket. rewrite: the write replaces all file
        groups of the keys' partitions, so every bucket is new.
        """
        return self.find(table, keys, any_partition=self.is_global)

    def identity(self, file_id: str) -> str:
        """Return the identity of a file group in its partition, whether or not it exists."""
        return file_id

    def location_of(self, slice_: FileSlice) -> tuple[str, str]:
        """Return partition path and identity of a slice's file group."""
        return slice_.partition, self.identity(slice_.file_id)

    def with_new_groups(
        self, table: IndexedTable, groups: list[FileGroup], locations: Sequence[tuple[str, str]]
    ) -> list[FileGroup]:
        """Return the file groups with those to create.

        locations: partition paths and `identity` values.
        """
        return groups
