"""The record key and partition path of a row: the rules of a table's key generator.

The Rust core formats the strings, for whole columns. This module decides which generator a table
has, whether pyhudi supports it, and which format its keys have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from pyhudi import _native
from pyhudi.config.option_parsing import parse_bool
from pyhudi.config.property_names import (
    KEY_GENERATOR_CLASS,
    KEY_GENERATOR_TYPE,
    PARTITION_FIELDS,
    PARTITION_SPEC,
    SLASH_DATES,
)
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.schema.timestamp_keygen import TimeRules, render_times, time_properties, time_rules

SIMPLE = "SIMPLE"
COMPLEX = "COMPLEX"
NON_PARTITION = "NON_PARTITION"
TIMESTAMP = "TIMESTAMP"
CUSTOM = "CUSTOM"
GLOBAL_DELETE = "GLOBAL_DELETE"
"""Keys in the format of COMPLEX, and no partitions: for deletes by key only."""

GENERATORS = (SIMPLE, COMPLEX, NON_PARTITION, TIMESTAMP, CUSTOM, GLOBAL_DELETE)
"""Types of key generators that pyhudi writes with."""


_PREFIXED = (COMPLEX, GLOBAL_DELETE)
"""Generators with keys `field:value,…`; with one field it depends on the release."""

_HINT = "Write to this table with Apache Hudi."

_PLAIN_SINGLE_COMPLEX_KEYS = frozenset({6, 8})
"""Table versions whose first writer (0.15.0, 1.0.2) keeps a single complex key unprefixed."""


@dataclass(frozen=True)
class KeySpec:
    """The rules by which the rows of a table get their keys."""

    generator: str
    """One of `GENERATORS`."""
    key_fields: tuple[str, ...]
    """Empty if keys are generated."""
    partition_fields: tuple[str, ...]
    key_prefixed: bool
    """The key is `field:value,…`, else the plain value of the one field."""
    hive_style: bool
    url_encode: bool
    slash_dates: bool = False
    """`/` replaces each `-` in the path, if it has one field."""
    times: Mapping[str, TimeRules] | None = None
    """Rules of the partition fields that are timestamps."""

    @property
    def keys_are_generated(self) -> bool:
        """Rows have no key of their own, and get one that does not depend on their values."""
        return not self.key_fields


def check_key_generator(config: TableConfig) -> str:
    """Return the table's key generator, without a trailing `_AVRO`.

    Raises `UnsupportedTableFeature`, naming the property, for a generator that pyhudi does not
    write with.
    """
    generator = config.key_generator.removesuffix("_AVRO")
    one_key = len(config.record_key_fields) <= 1
    one_partition = len(config.partition_fields) == 1
    fits = {
        SIMPLE: one_key and one_partition,
        COMPLEX: bool(config.partition_fields),
        TIMESTAMP: one_key and one_partition,
        CUSTOM: True,
        NON_PARTITION: not config.partition_fields,
        GLOBAL_DELETE: not config.partition_fields,
    }
    if not fits.get(generator, False):
        msg = (
            f"{_generator_property(config)} is {config.key_generator} with the record key fields "
            f"{', '.join(config.record_key_fields) or '(none)'} and the partition fields "
            f"{', '.join(config.partition_fields) or '(none)'}: pyhudi does not support that "
            "combination"
        )
        raise UnsupportedTableFeature(msg, hint=_HINT)
    return generator


def _generator_property(config: TableConfig) -> str:
    named_by_class = "hoodie.table.keygenerator.class"
    return (
        named_by_class if named_by_class in config.properties else "hoodie.table.keygenerator.type"
    )


def key_spec(
    config: TableConfig, *, prefixed: bool | None, options: Mapping[str, str] | None = None
) -> KeySpec:
    """Return the rules of a table.

    prefixed: what stored rows show, if `depends_on_rows`; None without rows. options: what the
    writer adds to the table's properties: `PARTITION_SPEC` and those of
    `timestamp_keygen.TIME_OPTIONS`, which Hudi 0.15 does not store, and `SLASH_DATES`. Raises
    `UnsupportedTableFeature`, naming the property, for unknown or unsupported rules.
    """
    generator = check_key_generator(config)
    times = _times(config, generator, options or {})
    return KeySpec(
        generator=generator,
        key_fields=tuple(config.record_key_fields),
        partition_fields=tuple(config.partition_fields),
        key_prefixed=_has_field_prefix(config, generator, prefixed),
        hive_style=config.hive_style,
        url_encode=config.url_encode,
        slash_dates=_has_slashes(config, generator, options or {}, times),
        times=times,
    )


def _has_slashes(
    config: TableConfig, generator: str, options: Mapping[str, str], times: Mapping[str, TimeRules]
) -> bool:
    """Return whether dates in partition paths have slashes; Hudi stores it only with SQL."""
    stored, option = config.slash_separated_dates, parse_bool(options, SLASH_DATES, default=None)
    if option is not None and SLASH_DATES in config.properties and option != stored:
        msg = f"the option {SLASH_DATES} is {option}, the table has {stored}".lower()
        raise UnsupportedTableFeature(msg, hint="Leave the option out.")
    has_slashes = stored or bool(option)
    several = generator == CUSTOM and len(config.partition_fields) > 1
    if has_slashes and (times or several):
        # Hudi does not change times, and a custom generator handles each field by itself.
        msg = f"{SLASH_DATES} is true and the key generator is {generator}"
        raise UnsupportedTableFeature(
            msg, hint="Use it with one date column and the simple key generator."
        )
    return has_slashes


def _times(config: TableConfig, generator: str, options: Mapping[str, str]) -> dict[str, TimeRules]:
    """Return the rules of each partition field that is a timestamp."""
    if generator == TIMESTAMP:
        fields: Sequence[str] = config.partition_fields
    elif generator == CUSTOM:
        fields = _timestamp_fields(config, options)
    else:
        return {}
    if not fields:
        return {}
    set_options = time_properties(options)
    stored = time_properties(config.properties)
    for name, value in set_options.items():
        if stored.get(name, value) != value:
            msg = f"the option {name} is {value}, the table has {stored[name]}"
            raise UnsupportedTableFeature(msg, hint="Leave the option out.")
    rules = time_rules({**set_options, **stored})
    return dict.fromkeys(fields, rules)


def _timestamp_fields(config: TableConfig, options: Mapping[str, str]) -> list[str]:
    """Return fields of a custom key generator that are timestamps."""
    types = custom_types(config, options)
    unknown = [
        field_type for field_type in types.values() if field_type.upper() not in (SIMPLE, TIMESTAMP)
    ]
    if unknown:
        msg = f"{PARTITION_FIELDS} has the type {unknown[0]}; expected simple or timestamp"
        raise UnsupportedTableFeature(msg, hint=_HINT)
    return [field for field, field_type in types.items() if field_type.upper() == TIMESTAMP]


def custom_types(config: TableConfig, options: Mapping[str, str]) -> dict[str, str]:
    """Return the type of each partition field of a custom key generator, from `field:type,…`.

    Raises `UnsupportedTableFeature` if neither the table nor an option has it.
    """
    stored = config.properties.get(PARTITION_FIELDS, "")
    spec = stored if ":" in stored else options.get(PARTITION_SPEC, "")
    types = dict(part.strip().split(":", 1) for part in spec.split(",") if ":" in part)
    if list(types) != list(config.partition_fields):
        msg = f"{PARTITION_FIELDS} is {stored}: the types of a custom key generator are not stored"
        raise UnsupportedTableFeature(
            msg,
            hint=f'Pass options={{"{PARTITION_SPEC}": "field:type,field:type"}} to create_table or '
            "open_table.",
        )
    return types


def depends_on_rows(config: TableConfig) -> bool:
    """Return whether only a stored row shows the format of the keys.

    A complex generator with one key field writes `id:k1` or `k1`, depending on the Hudi release of
    the writer (0.14.1 to 1.0.2: `k1`). If no property names the generator, it may be that one.
    """
    if len(config.record_key_fields) != 1 or not config.populate_meta_fields:
        return False
    return check_key_generator(config) in _PREFIXED or not _is_named(config)


def _has_field_prefix(config: TableConfig, generator: str, stored: bool | None) -> bool:  # noqa: FBT001
    if len(config.record_key_fields) > 1:
        return True
    if stored is not None:
        return stored
    if generator not in _PREFIXED:
        return False
    return generator == GLOBAL_DELETE or config.version.code not in _PLAIN_SINGLE_COMPLEX_KEYS


def add_keys(
    rows: pa.Table,
    spec: KeySpec,
    *,
    instant: str | None = None,
    position: tuple[int, int] = (0, 0),
) -> pa.Table:
    """Return the rows with record key and partition path in front.

    instant: prefix of generated keys; None refuses to generate any. position: the number of the
    task and of its first row, which follow the prefix. Raises `SchemaMismatch` for a null or empty
    key, `UnsupportedTableFeature` for keys that would have to be generated.
    """
    if not spec.keys_are_generated:
        return _native_keys(rows, spec, spec.key_fields)
    if instant is None:
        msg = (
            "hoodie.table.recordkey.fields is not set: rows with generated keys cannot be looked up"
        )
        raise UnsupportedTableFeature(msg, hint="Add rows with insert.")
    keys = _generate_keys(instant, position, rows.num_rows)
    with_keys = _native_keys(rows.append_column(_GENERATED, keys), spec, (_GENERATED,))
    return with_keys.drop_columns([_GENERATED])


NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""Directory name of a null or empty value, from table version 5 on; before it was `default`."""

_GENERATED = "_hoodie_generated_key"


def _generate_keys(instant: str, position: tuple[int, int], count: int) -> pa.Array[Any]:
    """Generate `<instant>_<task>_<row>` (`AutoRecordGenWrapperKeyGenerator`, Hudi 1.2.0)."""
    task, first = position
    ones = pa.repeat(pa.scalar(1, pa.int64()), count)
    rows = pc.add(pc.cumulative_sum(ones), first - 1).cast(pa.string())
    return pc.binary_join_element_wise(pa.scalar(f"{instant}_{task}"), rows, "_")


def _native_keys(rows: pa.Table, spec: KeySpec, key_fields: Sequence[str]) -> pa.Table:
    for name in (*key_fields, *spec.partition_fields):
        _check_spelled(name, column_at(rows, name).type)
    for name in spec.partition_fields:
        _check_not_null_path(name, column_at(rows, name))
    return _native.add_keys(
        rows,
        key_fields=key_fields,
        key_prefixed=spec.key_prefixed,
        partition_fields=spec.partition_fields,
        hive_style=spec.hive_style,
        url_encode=spec.url_encode,
        slash_dates=spec.slash_dates,
        partition_columns=_partition_columns(rows, spec),
    )


def _check_spelled(name: str, data_type: pa.DataType) -> None:
    if at.is_nested(data_type) or at.is_binary(data_type) or at.is_fixed_size_binary(data_type):
        msg = f"column {name!r} of type {data_type} cannot be part of a key or partition path"
        field = (
            f"{name}.{data_type.field(0).name}"
            if at.is_struct(data_type) and data_type.num_fields
            else ""
        )
        hint = f"Name a field of it, such as {field!r}." if field else "Cast it to string."
        raise SchemaMismatch(msg, hint=hint)


def _check_not_null_path(name: str, column: pa.ChunkedArray[Any]) -> None:
    """Raise `SchemaMismatch` for strings whose partition path is that of null.

    Hudi writes them, and reads them back as null (1.2.0).
    """
    if not (at.is_string(column.type) or at.is_large_string(column.type)):
        return
    null_paths = pa.array(["", NULL_PARTITION], column.type)
    matches = pc.index_in(column, null_paths)
    if matches.null_count < len(column):
        row = pc.index(pc.is_valid(matches), pa.scalar(value=True)).as_py()
        value = column[row].as_py()
        msg = f"row {row}: the partition column {name!r} is {value!r}, which is read back as null"
        raise SchemaMismatch(msg, hint="Write null, or another text.")


def _partition_columns(rows: pa.Table, spec: KeySpec) -> pa.Table | None:
    """Return the partition columns with timestamps as strings; None if no column needs it."""
    times = spec.times or {}
    if not any(field in times for field in spec.partition_fields):
        return None
    columns: dict[str, Any] = {}
    for field in spec.partition_fields:
        column = column_at(rows, field)
        columns[field] = render_times(column, times[field], field) if field in times else column
    return pa.table(columns)


def input_types(config: TableConfig, schema: pa.Schema) -> pa.Schema:
    """Return the columns whose input has the type that the table stores.

    Those of a timestamp generator may be strings, see `as_stored`.
    """
    if config.key_generator.removesuffix("_AVRO") != TIMESTAMP:
        return schema
    return pa.schema([field for field in schema if field.name not in config.partition_fields])


def as_stored(rows: pa.Table, config: TableConfig, schema: pa.Schema) -> pa.Table:
    """Return the rows with a timestamp generator's column as the number that the table stores.

    Reads return the column as the string of its number, and so may updates. Raises
    `SchemaMismatch` for other strings.
    """
    if config.key_generator.removesuffix("_AVRO") != TIMESTAMP:
        return rows
    for name in config.partition_fields:
        if name not in rows.column_names or name not in schema.names:
            continue
        stored_type, column = schema.field(name).type, rows.column(name)
        if pa.types.is_integer(stored_type) and pa.types.is_string(column.type):
            try:
                number = column.cast(stored_type)
            except pa.ArrowInvalid as error:
                msg = f"column {name!r} is a string, the table has {stored_type}: {error}"
                raise SchemaMismatch(msg) from error
            rows = rows.set_column(rows.column_names.index(name), name, number)
    return rows


def column_at(rows: pa.Table, path: str) -> pa.ChunkedArray[Any]:
    """Return the column of a name or dotted path. Raises `SchemaMismatch` if it does not exist."""
    names = [path] if path in rows.column_names else path.split(".")
    if names[0] not in rows.column_names:
        raise SchemaMismatch(f"there is no column {path!r}")
    column: pa.ChunkedArray[Any] = rows.column(names[0])
    for name in names[1:]:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            raise SchemaMismatch(f"there is no column {path!r}")
        column = pc.struct_field(column, name)
    return column


_PLAIN_GENERATORS = ("SIMPLE", "NON_PARTITION", "TIMESTAMP")


def _is_plain(config: TableConfig) -> bool:
    """Return whether a key of one field is certainly the field's plain value."""
    return _is_named(config) and config.key_generator.removesuffix("_AVRO") in _PLAIN_GENERATORS


def _is_named(config: TableConfig) -> bool:
    """Return whether a property names the table's key generator; else it is inferred."""
    return any(config.properties.get(name) for name in (KEY_GENERATOR_CLASS, KEY_GENERATOR_TYPE))


def plain_key(config: TableConfig, schema: pa.Schema) -> str | None:
    """Return the column whose string is every record key; None if that is not certain."""
    fields = config.record_key_fields
    if len(fields) != 1 or not _is_plain(config) or fields[0] not in schema.names:
        return None
    return fields[0] if at.is_string(schema.field(fields[0]).type) else None
