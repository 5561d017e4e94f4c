"""Which columns have statistics in the metadata table."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.types as at

from pyhudi.config.metadata_names import COLUMN_STATS, not_kept
from pyhudi.config.metadata_options import STATS_COLUMNS, MetadataOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.metadata.definitions import IndexDefinition
from pyhudi.schema.record_keys import META_COLUMNS
from pyhudi.schema.table_schema import field_at, within_collection

_ALWAYS = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
"""Columns of Hudi's own that have statistics whatever columns are chosen (from 1.0 on)."""


def new_statistics_columns(schema: pa.Schema, options: MetadataOptions) -> tuple[str, ...]:
    """The columns of new column statistics: Hudi's own, then those named or the first ones.

    schema: the table's, with meta fields (`HoodieTableMetadataUtil.getColumnsToIndex`, 1.2.0).
    Fields of structs are named by dotted paths. Raises `ConfigError` for a column that the table
    lacks, `UnsupportedTableFeature` for one that has no bounds.
    """
    able = [field.name for field in schema if has_bounds(field.type)]
    data_columns = [name for name in able if not name.startswith("_hoodie_")]
    for name in options.stats_columns:
        field = field_at(schema, name)
        if field is None and not within_collection(schema, name):
            msg = f"{STATS_COLUMNS} names {name!r}, which is no column of the table"
            raise ConfigError(msg)
        if field is None or not has_bounds(field.type):
            msg = f"{STATS_COLUMNS} names {name!r}, which has no statistics"
            raise UnsupportedTableFeature(msg, hint="Name plain columns, or fields of structs.")
    chosen = options.stats_columns or tuple(data_columns[: options.most_stats_columns])
    return tuple(dict.fromkeys((*(name for name in _ALWAYS if name in able), *chosen)))


def statistics_columns(definitions: Mapping[str, IndexDefinition], schema: pa.Schema) -> pa.Schema:
    """The columns of column statistics: those of the definition, else every one.

    A column that the table lost is left out, and one whose name a struct, list or map has by now.
    One that came after the definition was made is there where the definition has the table's first
    columns: Hudi's next writer lists it, and takes the bounds of a partition from the files that
    have statistics of it (`HoodieTableMetadataUtil.getColumnsToIndex`, 1.2.0). The field of a
    struct has its dotted path as name. Raises `UnsupportedTableFeature` for what a list or map
    holds.
    """
    definition = definitions.get(COLUMN_STATS)
    able = [field for field in schema if has_bounds(field.type)]
    if definition is None:
        return pa.schema(able)
    for name in definition.columns:
        if within_collection(schema, name):
            raise not_kept(COLUMN_STATS, f"it is of {name}, which a list or map holds")
    found = [(name, field_at(schema, name)) for name in definition.columns]
    plain = [(name, field) for name, field in found if field and not at.is_nested(field.type)]
    named = [field.with_name(name) for name, field in plain]
    first = [field.name for field in named if field.name not in META_COLUMNS]
    data_columns = [field for field in able if field.name not in META_COLUMNS]
    if first and first == [field.name for field in data_columns[: len(first)]]:
        named += data_columns[len(first) : MetadataOptions.most_stats_columns]
    return pa.schema(named)


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


def has_bounds(kind: pa.DataType) -> bool:
    """Whether a column of this type can have statistics."""
    if at.is_timestamp(kind):
        return kind.unit in ("ms", "us")
    numbers = (at.is_boolean, at.is_int32, at.is_int64, at.is_float32, at.is_float64)
    others = (at.is_string, at.is_binary, at.is_date32, at.is_decimal128)
    return any(test(kind) for test in (*numbers, *others))
