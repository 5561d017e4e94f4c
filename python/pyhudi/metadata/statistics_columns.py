"""Which columns have statistics in the metadata table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.types as at

from pyhudi.config.formatting import names_text
from pyhudi.config.meta_columns import META_COLUMNS
from pyhudi.config.metadata_names import COLUMN_STATS, MAKE_ANEW, not_kept
from pyhudi.config.metadata_options import MOST_STATS_COLUMNS, STATS_COLUMNS, MetadataOptions
from pyhudi.config.option_parsing import parse_int
from pyhudi.config.property_names import METADATA_PARTITIONS
from pyhudi.config.table_config import TableConfig
from pyhudi.config.table_version import TableVersion
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.metadata.index_definitions import IndexDefinition
from pyhudi.schema.table_schema import field_at, within_collection

_ALWAYS = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
"""Columns of Hudi's own that have statistics whatever columns are chosen (from 1.0 on)."""


_MOST = MetadataOptions.most_stats_columns
_UNTYPED_DIGITS = 15
"""So many may a decimal have before and after its point, where statistics name no types."""


def new_statistics_columns(
    schema: pa.Schema, options: MetadataOptions, *, typed: bool
) -> tuple[str, ...]:
    """The columns of new column statistics: Hudi's own, then those named or the first ones.

    schema: the table's, with meta fields (`HoodieTableMetadataUtil.getColumnsToIndex`, 1.2.0).
    typed: the statistics will name the types of values (index version 2). Fields of structs are
    named by dotted paths. Raises `ConfigError` for a column that the table lacks,
    `UnsupportedTableFeature` for one that has no bounds.
    """
    able = [field.name for field in _able(schema, typed=typed)]
    data_columns = [name for name in able if name not in META_COLUMNS]
    for name in options.stats_columns:
        field = field_at(schema, name)
        if field is None and not within_collection(schema, name):
            msg = f"{STATS_COLUMNS} names {name!r}, which is not a column of the table"
            raise ConfigError(msg, hint=f"Its columns are {names_text(data_columns)}.")
        if field is None or not _is_told_rightly(field.type, typed=typed):
            msg = f"{STATS_COLUMNS} names {name!r}, which has no statistics"
            hint = "Name plain columns, or fields of structs."
            if not typed:
                hint += " Before version 9 times of milliseconds have none, nor have decimals of "
                hint += f"more than {_UNTYPED_DIGITS} digits before or after the point."
            raise UnsupportedTableFeature(msg, hint=hint)
    chosen = options.stats_columns or tuple(data_columns[: options.most_stats_columns])
    return tuple(dict.fromkeys((*(name for name in _ALWAYS if name in able), *chosen)))


def column_choice_of(options: MetadataOptions) -> dict[str, str]:
    """What a new definition says of how its columns were chosen: nothing where as Hudi does.

    Hudi reads no options of this definition, and leaves them until its own choice is another one,
    which then comes without (`HoodieTableMetaClient.buildIndexDefinition`, 1.0.2 and 1.2.0).
    """
    if options.stats_columns:
        return {STATS_COLUMNS: ",".join(options.stats_columns)}
    if options.most_stats_columns != _MOST:
        return {MOST_STATS_COLUMNS: str(options.most_stats_columns)}
    return {}


def with_column_choice(
    definition: IndexDefinition, options: MetadataOptions, schema: pa.Schema, version: TableVersion
) -> MetadataOptions:
    """The options with columns chosen as those of a definition were, of another version perhaps.

    Those are left out that the table lost or that can have no statistics in this version. schema:
    the table's, with meta fields.
    """
    most = _most_first(definition, schema)
    if most is not None:
        return replace(options, most_stats_columns=most)
    text = definition.options.get(STATS_COLUMNS)
    named = text.split(",") if text else definition.columns
    found = [(name, field_at(schema, name)) for name in named]
    # Writers of version 8 fail on the fields of structs.
    left = (
        name
        for name, field in found
        if field is not None and _is_told_rightly(field.type, typed=version.index_versions)
        if version.index_versions or "." not in name
    )
    return replace(options, stats_columns=tuple(left))


class UndefinedStatistics(UnsupportedTableFeature):
    """Nothing tells which columns the statistics of a table are of."""


def check_defined(config: TableConfig, definitions: Mapping[str, IndexDefinition]) -> None:
    """Raises `UndefinedStatistics` for statistics without the definition that they should have.

    Hudi's Java client writes none (`SparkHoodieBackedTableMetadataWriter` alone does, 1.2.0).
    """
    if COLUMN_STATS not in config.metadata_partitions or COLUMN_STATS in definitions:
        return
    if config.version.has_index_definitions:
        msg = f"{METADATA_PARTITIONS} has {COLUMN_STATS}: the index definitions do not contain it"
        raise UndefinedStatistics(msg, hint=MAKE_ANEW)


def statistics_columns(definitions: Mapping[str, IndexDefinition], schema: pa.Schema) -> pa.Schema:
    """The columns of column statistics: those of the definition, else every one.

    A column that the table lost is left out, one whose name a struct, list or map has by now, and
    one that the statistics have no form for. One that came after the definition was made is there
    where the definition has the table's first columns, and not because a writer named them: Hudi's
    next writer lists it, and takes the bounds of a partition from the files that have statistics of
    it (`HoodieTableMetadataUtil.getColumnsToIndex`, 1.2.0). The field of a struct has its dotted
    path as name. Raises `UnsupportedTableFeature` for what a list or map holds.
    """
    definition = definitions.get(COLUMN_STATS)
    if definition is None:
        return pa.schema(_able(schema, typed=False))
    for name in definition.columns:
        if within_collection(schema, name):
            raise not_kept(COLUMN_STATS, f"it is of {name}, which a list or map holds")
    found = [(name, field_at(schema, name)) for name in definition.columns]
    named = {
        name: field.with_name(name)
        for name, field in found
        if field and not at.is_nested(field.type)
        if definition.version > 1 or not _is_wide(field.type)
    }
    most = _most_first(definition, schema) or 0
    first = _data_columns(schema, definition)[:most]
    return pa.schema([*{**named, **{field.name: field for field in first}}.values()])


def columns_of_any_definition(
    definitions: Mapping[str, IndexDefinition], schema: pa.Schema
) -> tuple[str, ...]:
    """The columns whose statistics go with a file, whoever wrote them.

    Without a definition Hudi 0.15 has some of times of milliseconds and of wide decimals, too.
    """
    if COLUMN_STATS in definitions:
        return tuple(statistics_columns(definitions, schema).names)
    return tuple(field.name for field in schema if has_bounds(field.type, typed=True))


def _most_first(definition: IndexDefinition, schema: pa.Schema) -> int | None:
    """Of how many first columns of the table a definition is; None where others were named.

    One of Hudi does not say so: it has the first ones where they are.
    """
    if STATS_COLUMNS in definition.options:
        return None
    if MOST_STATS_COLUMNS not in definition.options:
        able = [field.name for field in _data_columns(schema, definition)]
        first = [name for name in definition.columns if name in able]
        if not first or first != able[: len(first)]:
            return None
    return parse_int(definition.options, MOST_STATS_COLUMNS, default=_MOST)


def _data_columns(schema: pa.Schema, definition: IndexDefinition) -> list[pa.Field[Any]]:
    able = _able(schema, typed=definition.version > 1)
    return [field for field in able if field.name not in META_COLUMNS]


def _able(schema: pa.Schema, *, typed: bool) -> list[pa.Field[Any]]:
    return [field for field in schema if _is_told_rightly(field.type, typed=typed)]


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


def has_bounds(kind: pa.DataType, *, typed: bool) -> bool:
    """Whether a column of this type can have statistics.

    typed: they name the types of values (index version 2).
    """
    if at.is_timestamp(kind):
        return kind.unit in ("ms", "us")
    if at.is_decimal128(kind):
        return typed or not _is_wide(kind)
    numbers = (at.is_boolean, at.is_int32, at.is_int64, at.is_float32, at.is_float64)
    return any(test(kind) for test in (*numbers, at.is_string, at.is_binary, at.is_date32))


def _is_told_rightly(kind: pa.DataType, *, typed: bool) -> bool:
    """Whether a column is given statistics: readers must take them for what they are.

    Where they name no types, Hudi 0.15.0 and 1.0.2 take milliseconds for microseconds.
    """
    is_millis = at.is_timestamp(kind) and kind.unit == "ms"
    return has_bounds(kind, typed=typed) and (typed or not is_millis)


def _is_wide(kind: pa.DataType) -> bool:
    """Whether a decimal may have values that statistics without types cannot hold.

    So `HoodieTableMetadataUtil.isColumnTypeSupported`, 1.0.2.
    """
    if not at.is_decimal128(kind):
        return False
    before, after = kind.precision - kind.scale, kind.scale
    return bool(max(before, after) > _UNTYPED_DIGITS)
