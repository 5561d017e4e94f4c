"""What an index has to answer, and what it may ask of a table. No rules here.

Each type of index is one class in a file beside this one; `selection.py` registers them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
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
from pyhudi.index.tag_result import TagResult
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline


class IndexedTable(Protocol):
    """A table as one write sees it: `write.write_context.WriteContext`."""

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
        """How records of one key are merged."""
        ...

    @property
    def index(self) -> Index: ...

    @property
    def key_source(self) -> KeySource:
        """How the keys of the table's files are read."""
        ...

    def combine(self, rows: pa.Table) -> pa.Table:
        """One row a key, by the table's merge rules."""
        ...

    def groups(self, partitions: Sequence[str] | None) -> tuple[list[FileGroup], list[FileSlice]]:
        """File groups of partitions (None for all), and of each the slice that is read."""
        ...

    @property
    def table(self) -> TableSnapshot:
        """What the write works on."""
        ...

    def new_file_id(self) -> str:
        """A file id that no file has."""
        ...


class KeyFilter(Protocol):
    """What tells without reading its keys that a base file has none of some keys."""

    def may_hold(self, slice_: FileSlice, keys: pa.Array[Any]) -> bool:
        """Whether the slice's base file may hold one of the keys."""
        ...


@dataclass(frozen=True)
class Index(ABC):
    """How one write finds rows by their keys. Travels to executors."""

    moves: bool = False
    """A row whose partition path changed moves to another partition."""

    kind: ClassVar[str]
    """Its `hoodie.index.type`."""
    is_global: ClassVar[bool] = False
    """A key is looked for in every partition."""
    is_record_index: ClassVar[bool] = False
    """The metadata table says where each key is, in one place of it."""
    has_buckets: ClassVar[bool] = False
    """The key alone says which file group of a partition its row goes to."""
    has_rings: ClassVar[bool] = False
    """Which file group that is, is stored for each partition."""
    without_stored_keys: ClassVar[bool] = False
    """It can be used where rows have no stored keys."""
    is_binding: ClassVar[bool] = False
    """Every writer must use it for a table that shows it."""
    moves_option: ClassVar[str] = ""
    """The option that says whether rows move."""

    @classmethod
    def detect(cls, traces: IndexDetector) -> bool:
        """Whether the table tells that it is written with such an index."""
        return False

    @classmethod
    def of(cls, traces: IndexDetector, options: IndexOptions) -> Index:
        """The index for a write.

        Raises `ConfigError` and `UnsupportedTableFeature` for a table that it cannot be used with.
        """
        return cls(moves=cls.moves_option in options.moves)

    @property
    def keeps_locations(self) -> bool:
        """Whether all found rows stay in their file groups, and new ones go to base files."""
        return not self.is_global and not self.has_buckets

    def finds_by_key(self, *, any_partition: bool) -> bool:
        """Whether keys are found without reading the keys of files."""
        return False

    def filters(self, table: IndexedTable) -> KeyFilter | None:
        """What tells which base files need not be read, None where nothing does."""
        return None

    @abstractmethod
    def find(self, table: IndexedTable, keys: pa.Table, *, any_partition: bool) -> TagResult:
        """Where the keys are. keys: columns record key and partition path.

        any_partition: whether they are looked for in others than their own, too.
        """

    def look_up(
        self, table: IndexedTable, keys: pa.Table, new: pa.Array[Any], *, anew: bool = False
    ) -> TagResult:
        """Where the keys are, or have to go.

        new: for each row whether it may get a new bucket. anew: all file groups of the keys'
        partitions go, so that every bucket is new.
        """
        return self.find(table, keys, any_partition=self.is_global)

    def identity(self, file_id: str) -> str:
        """What a file group is known by in its partition, made or not."""
        return file_id

    def place(self, slice_: FileSlice) -> tuple[str, str]:
        """Partition path and identity of a slice's file group."""
        return slice_.partition, self.identity(slice_.file_id)

    def with_new(
        self, table: IndexedTable, groups: list[FileGroup], places: Sequence[tuple[str, str]]
    ) -> list[FileGroup]:
        """File groups with those that are to be made. places: partition path and `identity`."""
        return groups
