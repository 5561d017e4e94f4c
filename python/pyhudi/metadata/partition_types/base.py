"""The interface of a partition type. Each type is one module of this package."""

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
from pyhudi.metadata.index_definitions import Definitions, IndexDefinition, index_definitions
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.initial_records import InitialPartition, Source
from pyhudi.metadata.pruning_context import PruningContext, SliceLookup
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.record_tasks import RecordTask, RecordTaskContext
from pyhudi.schema.payloads import field_merge
from pyhudi.slices.listing import FileSource
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.storage.storage import Storage
from pyhudi.table.participants import Clean, Commit
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import CommitMetadata


@dataclass(frozen=True)
class Change:
    """A commit of the data table that the metadata table is about to record."""

    data: TableSnapshot
    metadata_table: TableSnapshot
    commit: Commit
    schema: pa.Schema
    """The data table's schema with the commit, with meta fields."""
    rows: ChangedSlices
    """The file groups that it changes."""
    groups: Mapping[str, Sequence[FileGroup]]
    """The file groups of each partition of the metadata table, in the order of their numbers."""
    listing: FileSource
    """The files of the metadata table."""

    @cached_property
    def metadata_reader(self) -> MetadataTable:
        """The metadata table before the commit."""
        return MetadataTable.of_snapshots(self.data, self.metadata_table, self.listing)

    @property
    def instant(self) -> str:
        """The instant of the commit."""
        return self.commit.instant

    @property
    def metadata(self) -> CommitMetadata:
        """The commit's metadata."""
        return self.commit.metadata

    @cached_property
    def definitions(self) -> Mapping[str, IndexDefinition]:
        """The table's index definitions by name."""
        return index_definitions(self.data.storage, self.data.config)

    @cached_property
    def task_context(self) -> RecordTaskContext:
        """The arguments that its tasks share; valid once all file groups are known."""
        return RecordTaskContext.of(self.data.storage, self.metadata_table.config, self.groups)


@dataclass(frozen=True)
class CleanChange:
    """A clean of the data table that the metadata table is about to record."""

    data: TableSnapshot
    clean: Clean
    task_context: RecordTaskContext
    """The arguments that its tasks share."""

    @cached_property
    def definitions(self) -> Mapping[str, IndexDefinition]:
        """The table's index definitions by name."""
        return index_definitions(self.data.storage, self.data.config)


def check_log_support(config: TableConfig) -> str | None:
    """Return why an index of records cannot cover a table's log files; None if it can."""
    if config.is_merge_on_read and field_merge(config) is None:
        return find_unsupported_merge(config)
    return None


@dataclass(frozen=True)
class PartitionRequest:
    """The metadata table that a writer's options request."""

    config: TableConfig
    options: MetadataOptions
    by_default: bool = False
    """A new table's record index needs no option."""
    schema: pa.Schema | None = None
    """The table's schema, with meta fields, once it is known."""


@dataclass(frozen=True)
class DefinitionContext:
    """The table whose partitions are maintained."""

    config: TableConfig
    definitions: Mapping[str, IndexDefinition]
    schema: pa.Schema
    """With meta fields."""


StatisticsColumn: TypeAlias = "pa.Field[Any] | None"
DisplayRecords: TypeAlias = pa.RecordBatch | None


class PartitionLookup(Protocol):
    """Finds data partitions that may match; returns None if the index has no information."""

    def __call__(self, table: MetadataTable, *, paths: Sequence[str]) -> list[bool] | None:
        """Return a boolean for each path."""


class MetadataPartitionType(ABC):
    """One partition type. The defaults of its methods do nothing."""

    name: str
    """The name of its partition; with `has_names`, the prefix of the names of its partitions."""
    has_names = False
    """A table may have several, each with its own name and definition."""
    index_type_name: str | None = None
    """Its name in `create_index`, unless it is an index over a function."""
    needs: str | None = None
    """The partition without which it is useless."""
    is_dropped_with_needed = False
    """It is dropped together with the partition that it needs."""
    prevents_replace = False
    """File groups cannot be replaced in a table that has it."""
    depends_on_column_names = False
    """It is useless if older files have other column names."""
    lookup_cost = 0
    """Position in the order in which a scan uses indexes: cheap ones come first."""
    needs_parquet = False
    """Hudi builds it from Parquet files only."""
    needs_definitions = False
    """Tables without index definitions (before table version 8) do not have it."""

    def owns(self, name: str) -> bool:
        """Return whether a partition is of this type."""
        return name.startswith(self.name) if self.has_names else name == self.name

    def check_base_files(self, config: TableConfig) -> str | None:
        """Return why a table's base files do not support it; None if they do."""
        other = config.not_parquet if self.needs_parquet else None
        return other and f"{other}: Hudi builds it from Parquet files only"

    # --- which partitions a table has ---

    def is_requested(self, request: PartitionRequest) -> bool:
        """Return whether a metadata table that is built by a writer's options has it.

        Raises `UnsupportedTableFeature` or `ConfigError` for one that the table cannot have.
        """
        return False

    def options_for_create_index(
        self, options: MetadataOptions, request: IndexRequest
    ) -> MetadataOptions:
        """Return the options with which `create_index` builds it, and no other partition."""
        if request.columns:
            msg = f"the index {self.name} is over the record key: it takes no columns"
            raise ConfigError(msg)
        options = replace(options, column_stats=False, partition_stats=None)
        return replace(options, bloom_filters=False, record_index=False)

    def definition(self, request: PartitionRequest) -> Definitions:
        """Return its index definition, if it has one and no name of its own."""
        return {}

    def define(self, storage: Storage, config: TableConfig, request: IndexRequest) -> Definitions:
        """Return the definition of a named index, by the name of its partition.

        Raises as `IndexRequest.name_for` does, and `ConfigError` for a table without what it needs.
        """
        raise NotImplementedError

    def exists_in(self, version: TableVersion, definition: IndexDefinition | None) -> bool:
        """Return whether tables of a version can have it."""
        return version.has_index_definitions or not self.needs_definitions

    def find_unsupported(self, name: str, table: DefinitionContext) -> str | None:
        """Return why a partition cannot be built or maintained; None if it can."""
        return None

    # --- records ---

    @abstractmethod
    def initial(self, source: Source, name: str) -> InitialPartition:
        """Return size and content of a new partition."""

    @abstractmethod
    def on_commit(self, change: Change, name: str) -> Iterable[RecordTask]:
        """Return what a commit changes in a partition."""

    def on_clean(self, cleaned: CleanChange, name: str) -> Iterable[RecordTask]:
        """Return what a clean changes in a partition."""
        return ()

    def catch_up(
        self, before: Source, now: Source, name: str, groups: Sequence[FileGroup]
    ) -> Sequence[RecordTask]:
        """Return the tasks that update a partition of an earlier snapshot to the current one.

        groups: its file groups, in order. Tasks may return records of other partitions too, which
        are ignored.
        """
        raise NotImplementedError

    def new_groups(
        self,
        definition: IndexDefinition | None,
        groups: Sequence[FileGroup],
        paths: Iterable[str],
        instant: str,
    ) -> Sequence[FileGroup]:
        """Return additional file groups that a partition needs.

        definition: of the index, None without one. groups: the existing ones, in order. paths: of
        the data partitions that it must cover.
        """
        return ()

    # --- lookups ---

    def partition_lookups(
        self, context: PruningContext, name: str
    ) -> Iterable[tuple[str, PartitionLookup]]:
        """Return the lookups of data partitions that it supports, each with a name for users."""
        return ()

    def lookups(self, context: PruningContext, name: str) -> Iterable[tuple[str, SliceLookup]]:
        """Return the lookups of file slices that it supports, each with a name for users."""
        return ()

    def to_display(
        self, table: MetadataTable, name: str, column: StatisticsColumn
    ) -> DisplayRecords:
        """Return a partition's records as a table for users; None if they cannot be a table.

        column: of statistics, the one that they cover.
        """
        return None
