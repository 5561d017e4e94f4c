"""What a kind of partition of the metadata table answers. Each kind is one file beside this one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from pyhudi.cached_property import cached_property
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.config.table_config import TableConfig, find_unsupported_merge
from pyhudi.config.table_version import TableVersion
from pyhudi.errors import ConfigError
from pyhudi.metadata.changed_slices import ChangedSlices
from pyhudi.metadata.index_definitions import IndexDefinition, index_definitions
from pyhudi.metadata.index_definitions_file import Definitions
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.initial_records import InitialPartition, Source
from pyhudi.metadata.pruning_context import Look, PruningContext
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.record_tasks import Recording, RecordTask
from pyhudi.schema.payloads import field_merge
from pyhudi.slices.listing import FileSource
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.storage.storage import Storage
from pyhudi.table.participants import Clean, Commit
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import CommitMetadata


@dataclass(frozen=True)
class Change:
    """A commit of the data table that the metadata table is about to keep step with."""

    data: TableSnapshot
    metadata_table: TableSnapshot
    commit: Commit
    schema: pa.Schema
    """The data table's with the commit, with meta fields."""
    rows: ChangedSlices
    """The file groups that it touches."""
    groups: Mapping[str, Sequence[FileGroup]]
    """The file groups of each partition of the metadata table, in the order of their numbers."""
    listing: FileSource
    """Has the files of the metadata table."""

    @cached_property
    def known(self) -> MetadataTable:
        """What the metadata table says before the commit."""
        return MetadataTable.beside(self.data, self.metadata_table, self.listing)

    @property
    def instant(self) -> str:
        """Of the commit."""
        return self.commit.instant

    @property
    def metadata(self) -> CommitMetadata:
        """What the commit says."""
        return self.commit.metadata

    @cached_property
    def definitions(self) -> Mapping[str, IndexDefinition]:
        """The table's index definitions by name."""
        return index_definitions(self.data.storage, self.data.config)

    @cached_property
    def recording(self) -> Recording:
        """What its tasks share; to be asked for once all file groups are known."""
        return Recording.of(self.data.storage, self.data.config.version, self.groups)


@dataclass(frozen=True)
class Cleaned:
    """A clean of the data table that the metadata table is about to keep step with."""

    data: TableSnapshot
    clean: Clean
    groups: Mapping[str, Sequence[FileGroup]]
    """The file groups of each partition of the metadata table, in the order of their numbers."""

    @cached_property
    def definitions(self) -> Mapping[str, IndexDefinition]:
        """The table's index definitions by name."""
        return index_definitions(self.data.storage, self.data.config)

    @cached_property
    def recording(self) -> Recording:
        """What its tasks share."""
        return Recording.of(self.data.storage, self.data.config.version, self.groups)


def check_log_support(config: TableConfig) -> str | None:
    """Why an index of rows cannot follow the log files of a table, None where it can."""
    if config.is_merge_on_read and field_merge(config) is None:
        return find_unsupported_merge(config)
    return None


@dataclass(frozen=True)
class PartitionRequest:
    """What a writer wants of a metadata table."""

    config: TableConfig
    options: MetadataOptions
    by_default: bool = False
    """A new table's record index needs no option."""
    schema: pa.Schema | None = None
    """The table's, with meta fields, once it is known."""


@dataclass(frozen=True)
class Known:
    """A table that the partitions are kept for."""

    config: TableConfig
    definitions: Mapping[str, IndexDefinition]
    schema: pa.Schema
    """With meta fields."""


Column: TypeAlias = "pa.Field[Any] | None"
Shown: TypeAlias = pa.RecordBatch | None


class PartitionLook(Protocol):
    """Which partitions of the data may match; None when the index turns out to know nothing."""

    def __call__(self, table: MetadataTable, *, paths: Sequence[str]) -> list[bool] | None:
        """A truth value for each path."""


class MetadataPartitionType(ABC):
    """One kind of partition. What a kind does not define, it does not need."""

    name: str
    """That of its partition; with `has_names`, what the names of its partitions begin with."""
    has_names = False
    """A table may have several, each with a name and a definition of its own."""
    asked_as: str | None = None
    """What `create_index` calls it, unless it is one over a function."""
    needs: str | None = None
    """The partition without which it is of no use."""
    goes_along = False
    """It is dropped with the one that it needs."""
    bars_replacing = False
    """No file groups are replaced in a table that has it."""
    by_column_names = False
    """It is of no use where older files name columns otherwise."""
    lookup_cost = 0
    """Place among those that are asked what a scan can leave out: cheap ones come first."""
    of_parquet = False
    """Hudi makes it of Parquet files alone."""
    needs_definitions = False
    """It is none in tables without index definitions (before table version 8)."""

    def owns(self, name: str) -> bool:
        """Whether a partition is of this kind."""
        return name.startswith(self.name) if self.has_names else name == self.name

    def check_base_files(self, config: TableConfig) -> str | None:
        """Why a table's base files are none for it, None where they are."""
        other = config.not_parquet if self.of_parquet else None
        return other and f"{other}: Hudi makes it of Parquet files alone"

    # --- which there are to be ---

    def is_wanted(self, wish: PartitionRequest) -> bool:
        """Whether a metadata table has it that is made by a writer's options.

        Raises `UnsupportedTableFeature` or `ConfigError` for what the table cannot have.
        """
        return False

    def options_for_create_index(
        self, options: MetadataOptions, asked: IndexRequest
    ) -> MetadataOptions:
        """The options by which `create_index` makes it, and nothing that does not belong to it."""
        if asked.columns:
            msg = f"the index {self.name} is over the record key: it takes no columns"
            raise ConfigError(msg)
        options = replace(options, column_stats=False, partition_stats=None)
        return replace(options, bloom_filters=False, record_index=False)

    def definition(self, wish: PartitionRequest) -> Definitions:
        """The index definition that comes with it, where it has one but no name."""
        return {}

    def define(self, storage: Storage, config: TableConfig, asked: IndexRequest) -> Definitions:
        """The definition of an index that has a name, by the name of its partition.

        Raises as `IndexRequest.name_for`, and `ConfigError` for a table without what it needs.
        """
        raise NotImplementedError

    def exists_in(self, version: TableVersion, definition: IndexDefinition | None) -> bool:
        """Whether tables of a version can have it."""
        return version.has_index_definitions or not self.needs_definitions

    def refusal(self, name: str, table: Known) -> str | None:
        """Why a partition cannot be made or kept up to date, None where it can."""
        return None

    # --- what it holds ---

    @abstractmethod
    def initial(self, source: Source, name: str) -> InitialPartition:
        """Size and content of a new partition."""

    @abstractmethod
    def on_commit(self, change: Change, name: str) -> Iterable[RecordTask]:
        """What a commit changes in a partition."""

    def on_clean(self, cleaned: Cleaned, name: str) -> Iterable[RecordTask]:
        """What a clean changes in a partition."""
        return ()

    def catch_up(
        self, before: Source, now: Source, name: str, groups: Sequence[FileGroup]
    ) -> Sequence[RecordTask]:
        """What makes a partition of an earlier moment one of now.

        groups: its file groups, in order. Tasks may give records of other partitions, too, which
        are left out.
        """
        raise NotImplementedError

    def new_groups(
        self,
        definition: IndexDefinition | None,
        groups: Sequence[FileGroup],
        paths: Iterable[str],
        instant: str,
    ) -> Sequence[FileGroup]:
        """File groups, still to be made, that a partition needs more.

        definition: of the index, None without one. groups: those that it has, in order. paths:
        of the data partitions that it is to know.
        """
        return ()

    # --- what it tells ---

    def partition_lookups(
        self, question: PruningContext, name: str
    ) -> Iterable[tuple[str, PartitionLook]]:
        """What a partition tells of partitions of the data, each with its name for people."""
        return ()

    def lookups(self, question: PruningContext, name: str) -> Iterable[tuple[str, Look]]:
        """What a partition tells of file slices, each with its name for people."""
        return ()

    def to_display(self, table: MetadataTable, name: str, column: Column) -> Shown:
        """What a partition says, for people; None where that has no form as a table.

        column: of statistics, the one that they are of.
        """
        return None
