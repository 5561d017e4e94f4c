"""Selects the columns with statistics in the metadata table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.types as at

from pyhudi.config.formatting import names_text
from pyhudi.config.meta_columns import META_COLUMNS
from pyhudi.config.metadata_names import COLUMN_STATS, REBUILD_HINT, index_maintenance_error
from pyhudi.config.metadata_options import MAX_STATS_COLUMNS, STATS_COLUMNS, MetadataOptions
from pyhudi.config.option_parsing import parse_int
from pyhudi.config.property_names import METADATA_PARTITIONS
from pyhudi.config.table_config import TableConfig
from pyhudi.config.table_version import TableVersion
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.metadata.index_definitions import IndexDefinition
from pyhudi.schema.table_schema import field_at, within_collection

_ALWAYS = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
"""Meta columns that have statistics whatever columns are selected (from 1.0 on)."""


_DEFAULT_MAX_COLUMNS = MetadataOptions.max_stats_columns
_IDS_WITH_BOUNDS = frozenset(
    data_type.id
    for data_type in (
        *(pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
        *(pa.string(), pa.binary(), pa.date32()),
    )
)
_UNTYPED_DIGITS = 15
"""Maximum digits of a decimal before and after its point, if statistics have no types."""


def new_statistics_columns(
    schema: pa.Schema, options: MetadataOptions, *, typed: bool
) -> tuple[str, ...]:
    """Return the columns of new column statistics: meta columns, then named or first ones.

    schema: the table's, with meta fields (`HoodieTableMetadataUtil.getColumnsToIndex`, 1.2.0).
    typed: the statistics have the types of values (index version 2). Fields of structs have dotted
    paths. Raises `ConfigError` for a column that the table does not have, `UnsupportedTableFeature`
    for one that has no bounds.
    """
    with_bounds = [field.name for field in _columns_with_bounds(schema, typed=typed)]
    data_columns = [name for name in with_bounds if name not in META_COLUMNS]
    for name in options.stats_columns:
        field = field_at(schema, name)
        if field is None and not within_collection(schema, name):
            msg = f"{STATS_COLUMNS} names {name!r}, which is not a column of the table"
            raise ConfigError(msg, hint=f"Its columns are {names_text(data_columns)}.")
        if field is None or not _has_correct_bounds(field.type, typed=typed):
            msg = f"{STATS_COLUMNS} names {name!r}, which has no statistics"
            hint = "Name columns, or fields of structs, of a type without lists and maps."
            if not typed:
                hint += " Before version 9 times of milliseconds have none, nor have decimals of "
                hint += f"more than {_UNTYPED_DIGITS} digits before or after the point."
            raise UnsupportedTableFeature(msg, hint=hint)
    chosen = options.stats_columns or tuple(data_columns[: options.max_stats_columns])
    return tuple(dict.fromkeys((*(name for name in _ALWAYS if name in with_bounds), *chosen)))


def column_selection_properties(options: MetadataOptions) -> dict[str, str]:
    """Return the properties of a new definition for a selection of columns; none for Hudi's own.

    Hudi reads no options of this definition, and keeps them until its own selection differs, which
    it then stores without (`HoodieTableMetaClient.buildIndexDefinition`, 1.0.2 and 1.2.0).
    """
    if options.stats_columns:
        return {STATS_COLUMNS: ",".join(options.stats_columns)}
    if options.max_stats_columns != _DEFAULT_MAX_COLUMNS:
        return {MAX_STATS_COLUMNS: str(options.max_stats_columns)}
    return {}


def with_column_selection(
    definition: IndexDefinition, options: MetadataOptions, schema: pa.Schema, version: TableVersion
) -> MetadataOptions:
    """Return the options with the selection of a definition, perhaps of another version.

    Columns that the table lost or that cannot have statistics in this version are left out. schema:
    the table's, with meta fields.
    """
    max_columns = _max_first_columns(definition, schema)
    if max_columns is not None:
        return replace(options, max_stats_columns=max_columns)
    listed = definition.options.get(STATS_COLUMNS)
    named = listed.split(",") if listed else definition.columns
    fields = [(name, field_at(schema, name)) for name in named]
    # Writers of version 8 fail on the fields of structs.
    remaining = (
        name
        for name, field in fields
        if field is not None and _has_correct_bounds(field.type, typed=version.index_versions)
        if version.index_versions or "." not in name
    )
    return replace(options, stats_columns=tuple(remaining))


class UndefinedStatistics(UnsupportedTableFeature):
    """Nothing records which columns have statistics."""


def check_defined(config: TableConfig, definitions: Mapping[str, IndexDefinition]) -> None:
    """Raise `UndefinedStatistics` for statistics without the definition that they should have.

    Hudi's Java client writes none (only `SparkHoodieBackedTableMetadataWriter` does, 1.2.0).
    """
    if COLUMN_STATS not in config.metadata_partitions or COLUMN_STATS in definitions:
        return
    if config.version.has_index_definitions:
        msg = f"{METADATA_PARTITIONS} has {COLUMN_STATS}: the index definitions do not contain it"
        raise UndefinedStatistics(msg, hint=REBUILD_HINT)


def statistics_columns(definitions: Mapping[str, IndexDefinition], schema: pa.Schema) -> pa.Schema:
    """Return the columns of column statistics: those of the definition, else every one.

    A column is left out if the table lost it, if its name is that of a struct, list or map now, or
    if statistics cannot represent it. A column that is newer than the definition is included if the
    definition has the table's first columns, and not if a writer named them: Hudi's next writer
    lists it, and computes the bounds of a partition from the files that have its statistics
    (`HoodieTableMetadataUtil.getColumnsToIndex`, 1.2.0). The field of a struct has its dotted path
    as name. Raises `UnsupportedTableFeature` for what a list or map contains.
    """
    definition = definitions.get(COLUMN_STATS)
    if definition is None:
        return pa.schema(_columns_with_bounds(schema, typed=False))
    for name in definition.columns:
        if within_collection(schema, name):
            raise index_maintenance_error(
                COLUMN_STATS, f"it is of {name}, which is inside a list or map"
            )
    fields = [(name, field_at(schema, name)) for name in definition.columns]
    named = {
        name: field.with_name(name)
        for name, field in fields
        if field and not at.is_nested(field.type)
        if definition.version > 1 or not _is_wide(field.type)
    }
    max_columns = _max_first_columns(definition, schema) or 0
    first = _data_columns(schema, definition)[:max_columns]
    return pa.schema([*{**named, **{field.name: field for field in first}}.values()])


def columns_of_any_definition(
    definitions: Mapping[str, IndexDefinition], schema: pa.Schema
) -> tuple[str, ...]:
    """Return the columns whose statistics are stored with a file, whichever writer wrote them.

    Without a definition Hudi 0.15 also has some of millisecond timestamps and wide decimals.
    """
    if COLUMN_STATS in definitions:
        return tuple(statistics_columns(definitions, schema).names)
    return tuple(field.name for field in schema if has_bounds(field.type, typed=True))


def has_partition_statistics(column: str, definitions: Mapping[str, IndexDefinition]) -> bool:
    """Return whether each writer maintains a column's statistics of partitions.

    Without a definition Hudi 1.2.0 maintains three meta columns, pyhudi and Hudi 0.15 all of them.
    """
    return COLUMN_STATS in definitions or column in _ALWAYS or column not in META_COLUMNS


def _max_first_columns(definition: IndexDefinition, schema: pa.Schema) -> int | None:
    """Return how many first columns of the table a definition covers; None for named columns.

    A definition of Hudi does not record it: it covers the first ones if its columns are these.
    """
    if STATS_COLUMNS in definition.options:
        return None
    if MAX_STATS_COLUMNS not in definition.options:
        with_bounds = [field.name for field in _data_columns(schema, definition)]
        first = [name for name in definition.columns if name in with_bounds]
        if not first or first != with_bounds[: len(first)]:
            return None
    return parse_int(definition.options, MAX_STATS_COLUMNS, default=_DEFAULT_MAX_COLUMNS)


def _data_columns(schema: pa.Schema, definition: IndexDefinition) -> list[pa.Field[Any]]:
    with_bounds = _columns_with_bounds(schema, typed=definition.version > 1)
    return [field for field in with_bounds if field.name not in META_COLUMNS]


def _columns_with_bounds(schema: pa.Schema, *, typed: bool) -> list[pa.Field[Any]]:
    return [field for field in schema if _has_correct_bounds(field.type, typed=typed)]


def check_nested(config: TableConfig, columns: tuple[str, ...]) -> None:
    """Raise `UnsupportedTableFeature` if Hudi's writers fail on statistics of struct fields.

    1.0.2 supports none. 1.2.0 fails on a null struct that goes into a log file
    (`AvroRecordContext.getFieldValueFromIndexedRecord`).
    """
    nested = next((name for name in columns if "." in name), None)
    if nested and (config.is_merge_on_read or not config.version.index_versions):
        msg = f"{STATS_COLUMNS} names {nested!r}, a field of a struct: Hudi would fail to write"
        raise UnsupportedTableFeature(
            msg, hint="Name columns. Only copy-on-write tables of version 9 can have struct fields."
        )


def has_bounds(data_type: pa.DataType, *, typed: bool) -> bool:
    """Return whether a column of this type can have statistics.

    typed: they have the types of values (index version 2).
    """
    if at.is_timestamp(data_type):
        return data_type.unit in ("ms", "us")
    if at.is_decimal128(data_type):
        return typed or not _is_wide(data_type)
    return data_type.id in _IDS_WITH_BOUNDS


def _has_correct_bounds(data_type: pa.DataType, *, typed: bool) -> bool:
    """Return whether a column gets statistics: readers must interpret them correctly.

    If they have no types, Hudi 0.15.0 and 1.0.2 take milliseconds for microseconds.
    """
    is_millis = at.is_timestamp(data_type) and data_type.unit == "ms"
    return has_bounds(data_type, typed=typed) and (typed or not is_millis)


def _is_wide(data_type: pa.DataType) -> bool:
    """Return whether a decimal may have values that statistics without types cannot represent.

    As in `HoodieTableMetadataUtil.isColumnTypeSupported`, 1.0.2.
    """
    if not at.is_decimal128(data_type):
        return False
    before, after = data_type.precision - data_type.scale, data_type.scale
    return bool(max(before, after) > _UNTYPED_DIGITS)
