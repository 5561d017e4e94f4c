"""The partition types that pyhudi builds and maintains. A new type is one more entry."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa

from pyhudi.config.metadata_names import index_creation_error
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.metadata.index_definitions import Definitions
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.partition_types.base import (
    Change,
    CleanChange,
    MetadataPartitionType,
    PartitionRequest,
    StatisticsColumn,
)
from pyhudi.metadata.partition_types.bloom_filters import BloomFilters
from pyhudi.metadata.partition_types.column_stats import ColumnStats
from pyhudi.metadata.partition_types.expression_index import ExpressionIndex
from pyhudi.metadata.partition_types.files import Files
from pyhudi.metadata.partition_types.partition_stats import PartitionStats
from pyhudi.metadata.partition_types.record_index import RecordIndex
from pyhudi.metadata.partition_types.secondary_index import SecondaryIndex
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.record_tasks import RecordTask
from pyhudi.slices.write_tasks import FileGroup

_EXPRESSION_INDEX = ExpressionIndex()

PARTITION_TYPES: tuple[MetadataPartitionType, ...] = (
    Files(),
    ColumnStats(),
    BloomFilters(),
    RecordIndex(),
    PartitionStats(),
    _EXPRESSION_INDEX,
    SecondaryIndex(),
)
"""In the order in which partitions are built (`MetadataPartitionType`, 1.2.0)."""


def partition_type_of(name: str) -> MetadataPartitionType | None:
    """Return the type of a partition; None for one that pyhudi does not maintain."""
    return next(
        (partition_type for partition_type in PARTITION_TYPES if partition_type.owns(name)), None
    )


def partition_types_of(names: Iterable[str]) -> list[tuple[MetadataPartitionType, str]]:
    """Return known partitions with their types, in build order."""
    return [
        (partition_type, name)
        for partition_type in PARTITION_TYPES
        for name in sorted(names)
        if partition_type.owns(name)
    ]


def in_order(names: Collection[str]) -> tuple[str, ...]:
    """Return partitions in build order, unknown ones last."""
    known = [name for _, name in partition_types_of(names)]
    return (*known, *sorted(set(names) - {*known}))


def select_partitions(request: PartitionRequest) -> tuple[str, ...]:
    """Return the metadata partitions that a writer's options request, in build order.

    Raises `ConfigError` and `UnsupportedTableFeature` for one that the table cannot have.
    """
    requested_types = tuple(
        partition_type for partition_type in PARTITION_TYPES if partition_type.is_requested(request)
    )
    for partition_type in requested_types:
        reason = partition_type.check_base_files(request.config)
        if reason:
            raise index_creation_error(partition_type.name, reason)
    return tuple(partition_type.name for partition_type in requested_types)


def new_definitions(names: Iterable[str], request: PartitionRequest) -> Definitions:
    """Return the definitions of new partitions whose type has one partition only.

    Raises as `new_statistics_columns` does if the request has a schema.
    """
    partition_types = partition_types_of(names)
    return {
        name: definition
        for partition_type, _ in partition_types
        for name, definition in partition_type.definition(request).items()
    }


def commit_tasks(change: Change) -> list[RecordTask]:
    """Return the tasks that record a commit in all partitions."""
    return [
        task
        for partition_type, name in partition_types_of(change.groups)
        for task in partition_type.on_commit(change, name)
    ]


def clean_tasks(cleaned: CleanChange) -> list[RecordTask]:
    """Return the tasks that record a clean in all partitions."""
    partition_types = partition_types_of(cleaned.task_context.groups)
    return [
        task
        for partition_type, name in partition_types
        for task in partition_type.on_clean(cleaned, name)
    ]


def new_groups(change: Change) -> list[FileGroup]:
    """Return additional file groups that a commit needs."""
    stats_by_path, groups = change.metadata.partition_to_write_stats, change.groups
    paths = [path for path, stats in stats_by_path.items() if stats]
    return [
        group
        for partition_type, name in partition_types_of(groups)
        for group in partition_type.new_groups(
            change.definitions.get(name), groups[name], paths, change.instant
        )
    ]


def to_display(table: MetadataTable, name: str, column: StatisticsColumn) -> pa.RecordBatch:
    """Return a partition's records for users. column: whose statistics to return.

    Raises `CorruptTable` if the table has no such partition, `ConfigError` if it cannot be
    displayed as a table.
    """
    table.check_groups(name)
    partition_type = partition_type_of(name)
    records = None if partition_type is None else partition_type.to_display(table, name, column)
    if records is None:
        msg = f"the metadata table's partition {name} cannot be displayed"
        raise ConfigError(msg, hint="Name the column whose statistics to display.")
    return records


def type_to_build(request: IndexRequest) -> MetadataPartitionType:
    """Return the type that `create_index` builds. Raises `UnsupportedTableFeature` for another."""
    buildable = {
        partition_type.index_type_name: partition_type
        for partition_type in PARTITION_TYPES
        if partition_type.index_type_name
    }
    if request.index_type not in buildable:
        msg = (
            f"hoodie.table.metadata.partitions: pyhudi does not build the index type "
            f"{request.index_type!r}"
        )
        raise UnsupportedTableFeature(msg, hint=f"Choose one of {', '.join(buildable)}.")
    return _EXPRESSION_INDEX if request.function is not None else buildable[request.index_type]


def partitions_to_build(
    partition_type: MetadataPartitionType, request: PartitionRequest
) -> tuple[str, ...]:
    """Return the partitions that `create_index` builds for a type without names.

    Raises `ConfigError` for a table that cannot use it, and as `select_partitions` does.
    """
    requested_types = select_partitions(request)
    if partition_type.name not in requested_types:
        msg = f"the table has no partition columns: {partition_type.name} would be empty"
        raise ConfigError(msg, hint="column_stats has statistics of its files.")
    return requested_types


def check_can_build(names: Iterable[str]) -> None:
    """Raise `UnsupportedTableFeature` for a partition that pyhudi does not build."""
    for name in names:
        if partition_type_of(name) is None:
            msg = (
                f"hoodie.table.metadata.partitions has {name}: pyhudi does not maintain that index"
            )
            raise UnsupportedTableFeature(msg, hint="Drop it first, or build it with Apache Hudi.")
