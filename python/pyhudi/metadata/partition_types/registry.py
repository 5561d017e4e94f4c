"""The partition types that pyhudi builds and maintains. A new type is one more entry."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa

from pyhudi.config.metadata_names import not_made
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.metadata.index_definitions import Definitions
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.partition_types.base import (
    Change,
    Cleaned,
    Column,
    MetadataPartitionType,
    PartitionRequest,
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

_OVER_FUNCTIONS = ExpressionIndex()

KINDS: tuple[MetadataPartitionType, ...] = (
    Files(),
    ColumnStats(),
    BloomFilters(),
    RecordIndex(),
    PartitionStats(),
    _OVER_FUNCTIONS,
    SecondaryIndex(),
)
"""In the order in which partitions are built (`MetadataPartitionType`, 1.2.0)."""


def kind_of(name: str) -> MetadataPartitionType | None:
    """Return the type of a partition; None for one that pyhudi does not maintain."""
    return next((kind for kind in KINDS if kind.owns(name)), None)


def kinds_of(names: Iterable[str]) -> list[tuple[MetadataPartitionType, str]]:
    """Return the partitions with their types, in build order, without unknown ones."""
    return [(kind, name) for kind in KINDS for name in sorted(names) if kind.owns(name)]


def in_order(names: Collection[str]) -> tuple[str, ...]:
    """Return partitions in build order; unknown ones come last."""
    kept = [name for _, name in kinds_of(names)]
    return (*kept, *sorted(set(names) - {*kept}))


def select_partitions(wish: PartitionRequest) -> tuple[str, ...]:
    """Return the partitions of a metadata table that a writer's options ask for, in build order.

    Raises `ConfigError` and `UnsupportedTableFeature` for one that the table cannot have.
    """
    wanted = tuple(kind for kind in KINDS if kind.is_wanted(wish))
    for kind in wanted:
        reason = kind.check_base_files(wish.config)
        if reason:
            raise not_made(kind.name, reason)
    return tuple(kind.name for kind in wanted)


def new_definitions(names: Iterable[str], wish: PartitionRequest) -> Definitions:
    """Return the definitions of new partitions without names of their own.

    Raises as `new_statistics_columns` does if the schema is known.
    """
    kinds = kinds_of(names)
    return {name: made for kind, _ in kinds for name, made in kind.definition(wish).items()}


def commit_tasks(change: Change) -> list[RecordTask]:
    """Yield what a commit changes in all partitions."""
    return [task for kind, name in kinds_of(change.groups) for task in kind.on_commit(change, name)]


def clean_tasks(cleaned: Cleaned) -> list[RecordTask]:
    """Yield what a clean changes in all partitions."""
    kinds = kinds_of(cleaned.recording.groups)
    return [task for kind, name in kinds for task in kind.on_clean(cleaned, name)]


def new_groups(change: Change) -> list[FileGroup]:
    """Return additional file groups that a commit needs."""
    written, groups = change.metadata.partition_to_write_stats, change.groups
    paths = [path for path, stats in written.items() if stats]
    return [
        group
        for kind, name in kinds_of(groups)
        for group in kind.new_groups(
            change.definitions.get(name), groups[name], paths, change.instant
        )
    ]


def to_display(table: MetadataTable, name: str, column: Column) -> pa.RecordBatch:
    """Return a partition's records for users. column: of statistics, the one that they cover.

    Raises `CorruptTable` if the table has no such partition, `ConfigError` if it has no form as a
    table.
    """
    table.check_groups(name)
    kind = kind_of(name)
    found = None if kind is None else kind.to_display(table, name, column)
    if found is None:
        msg = f"the metadata table's partition {name} cannot be displayed"
        raise ConfigError(msg, hint="Name the column whose statistics to show.")
    return found


def kind_asked(asked: IndexRequest) -> MetadataPartitionType:
    """Return the type that `create_index` builds. Raises `UnsupportedTableFeature` for another."""
    made = {kind.asked_as: kind for kind in KINDS if kind.asked_as}
    if asked.kind not in made:
        msg = (
            f"hoodie.table.metadata.partitions: pyhudi does not build the index type {asked.kind!r}"
        )
        raise UnsupportedTableFeature(msg, hint=f"Choose one of {', '.join(made)}.")
    return _OVER_FUNCTIONS if asked.function is not None else made[asked.kind]


def partitions_asked(kind: MetadataPartitionType, wish: PartitionRequest) -> tuple[str, ...]:
    """Return the partitions that `create_index` builds for a type without names.

    Raises `ConfigError` for a table that cannot use it, and as `select_partitions` does.
    """
    wanted = select_partitions(wish)
    if kind.name not in wanted:
        msg = f"the table has no partition columns: {kind.name} would be empty"
        raise ConfigError(msg, hint="column_stats has statistics of its files.")
    return wanted


def check_makeable(names: Iterable[str]) -> None:
    """Raise `UnsupportedTableFeature` for a partition that pyhudi does not build."""
    for name in names:
        if kind_of(name) is None:
            msg = (
                f"hoodie.table.metadata.partitions has {name}: pyhudi does not maintain that index"
            )
            raise UnsupportedTableFeature(msg, hint="Drop it first, or build it with Apache Hudi.")
