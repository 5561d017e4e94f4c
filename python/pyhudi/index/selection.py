"""Chooses the index of a write by the writer's options, the table's properties and its files.

A new index type needs an entry in `INDEXES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyhudi.config.constraints import read_generated_columns
from pyhudi.config.index_options import INDEX_TYPE, IndexOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError
from pyhudi.index.bloom import BloomIndex, GlobalBloomIndex
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.index.detection import IndexDetector
from pyhudi.index.protocol import Index
from pyhudi.index.record_index import PartitionedRecordIndex, RecordIndex
from pyhudi.index.simple import GlobalSimpleIndex, SimpleIndex
from pyhudi.metadata.index_definitions import IndexDefinition
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline

INDEXES: tuple[type[Index], ...] = (
    SimpleIndex,
    GlobalSimpleIndex,
    BloomIndex,
    GlobalBloomIndex,
    BucketIndex,
    RecordIndex,
    PartitionedRecordIndex,
)


def choose(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    options: IndexOptions,
    definitions: Mapping[str, IndexDefinition] | None = None,
) -> Index:
    """Return the index for a write.

    definitions: the table's, if the caller has read them. Raises `ConfigError` for an option that
    contradicts the table's files or its metadata table, and what `Index.of` raises.
    """
    detector = IndexDetector(storage, config, timeline, definitions)
    matching = [index for index in INDEXES if index.detect(detector)]
    chosen = index_from_options(options) or next(iter(matching), SimpleIndex)
    for index in matching:
        if index.is_binding and index is not chosen:
            msg = f"{INDEX_TYPE} is {chosen.index_type}, but the table's file groups are buckets"
            raise ConfigError(msg, hint=f"Leave the option out, or give {index.index_type}.")
    return chosen.of(detector, options)


def with_partition_moves(
    index: Index, config: TableConfig, handle_options: Mapping[str, str]
) -> Index:
    """Return the index that moves rows to their partitions, if a partition column is generated.

    A row in another partition would not be found by a filter on the source of the column. Raises
    `ConfigError` for an option that keeps rows where they are.
    """
    option = index.update_path_option
    if not option or index.updates_partition_path:
        return index
    fields = [field for field in config.partition_fields if field in read_generated_columns(config)]
    if not fields:
        return index
    if option in handle_options:
        msg = f"{option} is false, and the partition column {fields[0]!r} is generated"
        raise ConfigError(msg, hint="Leave the option out: rows move to their partitions.")
    return replace(index, updates_partition_path=True)


def index_from_options(options: IndexOptions) -> type[Index] | None:
    """Return the index type that options name. Raises `ConfigError` for an unknown one."""
    if options.index_type is None:
        return None
    index_type = next((index for index in INDEXES if index.index_type == options.index_type), None)
    if index_type is None:
        msg = f"{INDEX_TYPE} is {options.index_type!r}"
        raise ConfigError(
            msg, hint=f"Choose one of {', '.join(index.index_type for index in INDEXES)}."
        )
    return index_type
