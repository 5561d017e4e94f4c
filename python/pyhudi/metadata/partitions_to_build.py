"""Which partitions a metadata table is to have: by option, by table version, by what can be kept.

Pure rules. What each partition then holds is `initial.py`'s part.
"""

from __future__ import annotations

import pyarrow as pa

from pyhudi.config.metadata_names import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
)
from pyhudi.config.metadata_options import (
    COLUMN_STATS_ENABLE,
    PARTITION_STATS_ENABLE,
    PARTITIONED_RECORD_INDEX_ENABLE,
    RECORD_INDEX_ENABLE,
    STATS_COLUMNS,
    MetadataOptions,
)
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.metadata import expression, secondary
from pyhudi.metadata.checks_before_write import MAINTAINED, has_bounds
from pyhudi.schema.table_schema import field_at, within_collection

_ALWAYS = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
"""Columns of Hudi's own that have statistics whatever columns are chosen (from 1.0 on)."""

ORDER = (FILES, COLUMN_STATS, BLOOM_FILTERS, RECORD_INDEX, PARTITION_STATS)
"""In which order partitions are made (`MetadataPartitionType`, 1.2.0)."""


def wanted_partitions(
    config: TableConfig, options: MetadataOptions, *, index_by_default: bool
) -> tuple[str, ...]:
    """The partitions of a metadata table that is made with these options, in the order of making.

    index_by_default: a record index is among them where no option says so. Raises
    `UnsupportedTableFeature` for one that the table's version or pyhudi does not have.
    """
    found = {FILES}
    stats = options.column_stats
    if stats if stats is not None else config.version.column_stats_by_default:
        found.add(COLUMN_STATS)
        if options.stats_columns and not config.version.has_index_definitions:
            msg = f"{STATS_COLUMNS}: tables of version {config.version.code} do not store it"
            raise UnsupportedTableFeature(msg, hint="There all columns have some.")
        check_nested(config, options.stats_columns)
        if _partition_stats(config, options):
            found.add(PARTITION_STATS)
    elif options.partition_stats:
        msg = f"{PARTITION_STATS_ENABLE} without {COLUMN_STATS_ENABLE}"
        raise ConfigError(msg, hint="Turn both on.")
    if options.bloom_filters:
        found.add(BLOOM_FILTERS)
    if _record_index(config, options, by_default=index_by_default):
        found.add(RECORD_INDEX)
    return in_order(found)


def in_order(names: set[str]) -> tuple[str, ...]:
    """Partitions in the order of making; those that only their own makers know come last."""
    return (*(name for name in ORDER if name in names), *sorted(names - set(ORDER)))


def check_nested(config: TableConfig, columns: tuple[str, ...]) -> None:
    """Refuses statistics of the fields of structs where writers of Apache Hudi fail on them.

    1.0.2 takes none. 1.2.0 dies of a null struct that goes into a log file
    (`AvroRecordContext.getFieldValueFromIndexedRecord`).
    """
    nested = next((name for name in columns if "." in name), None)
    if nested and (config.is_merge_on_read or not config.version.index_versions):
        msg = f"{STATS_COLUMNS} names {nested!r}, a field of a struct: Hudi would fail to write"
        raise UnsupportedTableFeature(
            msg, hint="They are for copy-on-write tables of version 9. Name plain columns."
        )


def _partition_stats(config: TableConfig, options: MetadataOptions) -> bool:
    """Statistics of partitions, where the table's version has them."""
    kept = config.version.has_index_definitions
    if options.partition_stats and not kept:
        msg = f"{PARTITION_STATS_ENABLE}: not in tables of version {config.version.code}"
        raise UnsupportedTableFeature(msg, hint="Leave the option out.")
    return kept and options.partition_stats is not False and bool(config.partition_fields)


def _record_index(config: TableConfig, options: MetadataOptions, *, by_default: bool) -> bool:
    by_partition = options.record_index and options.record_index_by_partition
    if by_partition and not config.version.index_versions:
        name = PARTITIONED_RECORD_INDEX_ENABLE
        msg = f"{name}: not in tables of version {config.version.code}"
        raise UnsupportedTableFeature(msg, hint="Upgrade the table first.")
    if options.record_index is None:
        return by_default and bool(config.record_key_fields) and config.populate_meta_fields
    if options.record_index and not config.record_key_fields:
        msg = f"{RECORD_INDEX_ENABLE[0]}: the table's keys are generated, nothing looks for them"
        raise ConfigError(msg, hint="Leave the option out.")
    return options.record_index


def check_makeable(names: tuple[str, ...]) -> None:
    """Raises `UnsupportedTableFeature` for a partition that pyhudi does not make."""
    for name in names:
        if name not in MAINTAINED and not name.startswith((secondary.PREFIX, expression.PREFIX)):
            msg = f"hoodie.table.metadata.partitions has {name}: pyhudi does not make such an index"
            raise UnsupportedTableFeature(msg, hint="Drop it first, or make it with Apache Hudi.")


def stats_columns(schema: pa.Schema, options: MetadataOptions) -> tuple[str, ...]:
    """The columns of new column statistics: Hudi's own, then those named or the first ones.

    schema: the table's, with meta fields (`HoodieTableMetadataUtil.getColumnsToIndex`, 1.2.0).
    Fields of structs are named by dotted paths. Raises `ConfigError` for a column that the table
    lacks, `UnsupportedTableFeature` for one that has no bounds.
    """
    able = [field.name for field in schema if has_bounds(field.type)]
    own = [name for name in able if not name.startswith("_hoodie_")]
    for name in options.stats_columns:
        field = field_at(schema, name)
        if field is None and not within_collection(schema, name):
            msg = f"{STATS_COLUMNS} names {name!r}, which is no column of the table"
            raise ConfigError(msg)
        if field is None or not has_bounds(field.type):
            msg = f"{STATS_COLUMNS} names {name!r}, which has no statistics"
            raise UnsupportedTableFeature(msg, hint="Name plain columns, or fields of structs.")
    chosen = options.stats_columns or tuple(own[: options.most_stats_columns])
    return tuple(dict.fromkeys((*(name for name in _ALWAYS if name in able), *chosen)))
