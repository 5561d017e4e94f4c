"""Checks names and types of columns before a table or column is created.

The Rust core builds the Avro schema, `exact_casts.py` checks values. A column that no table can
have raises an error with its path, and with what to do instead.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from pyhudi import _native
from pyhudi.config.file_names import ORC_EXTENSION
from pyhudi.config.meta_columns import IS_DELETED, META_COLUMNS
from pyhudi.config.property_names import BASE_FILE_FORMAT
from pyhudi.config.write_options import WriteOptions
from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.input.decode_encodings import check_depth
from pyhudi.input.type_tests import is_list, is_text
from pyhudi.input.vectors import is_vector
from pyhudi.schema.table_schema import OPERATION_FIELD

OWN_PREFIX = "_pyhudi_"
"""Prefix of the names of internal columns during a write."""

MAX_DIGITS = 38
"""Maximum digits of Spark's decimals, and so of Hudi's."""

_MAX_LEVELS = 30
"""Maximum nesting of structs: deeper Avro JSON cannot be read back."""
_OWN = frozenset({*META_COLUMNS, OPERATION_FIELD, IS_DELETED})
"""Hudi's own columns, in lower case."""

_LETTERS = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo"})
_DIGITS = "Nd"
_LAST = "\uffff"
"""Java checks UTF-16 code units; letters beyond this one have two, and neither is a letter."""


def avro_schema(schema: pa.Schema, name: str, namespace: str) -> str:
    """Return the Avro schema of new columns, as a record of this name.

    Raises `SchemaMismatch` for an invalid name and `UnsupportedTableFeature` for an unsupported
    type.
    """
    for field in schema:
        check_depth(field, _MAX_LEVELS)
    _check_fields(schema, "")
    return _native.avro_schema(schema, name, namespace)


def check_reserved(new: Iterable[pa.Field[Any]]) -> None:
    """Raise `SchemaMismatch` for new columns with a name of Hudi's or pyhudi's, in any case.

    new: as in the input. Meta columns that were read from a table are strings, and are dropped.
    """
    for field in new:
        if field.name.startswith(OWN_PREFIX):
            msg = f"column {field.name!r}: names that begin with {OWN_PREFIX} are reserved"
            raise SchemaMismatch(msg, hint="Rename it.")
        if field.name == OPERATION_FIELD or (
            field.name in META_COLUMNS and not pa.types.is_string(field.type)
        ):
            msg = f"column {field.name!r}: the name is a meta column of Hudi"
            raise SchemaMismatch(msg, hint="Rename it.")
        if field.name.lower() in _OWN and field.name not in _OWN:
            msg = f"column {field.name!r}: {field.name.lower()!r} is a meta column of Hudi"
            raise SchemaMismatch(msg, hint="Spark does not tell such columns apart: rename it.")
        if field.name == IS_DELETED and not pa.types.is_boolean(field.type):
            msg = f"column {field.name!r} is {field.type}: it marks deleted rows"
            raise SchemaMismatch(msg, hint="Make it bool, or rename it.")


def check_written(schema: pa.Schema, options: WriteOptions) -> None:
    """Raise `UnsupportedTableFeature` for a table with columns that cannot be written."""
    for field in schema:
        if field.name.startswith(OWN_PREFIX):
            msg = f"column {field.name!r}: names that begin with {OWN_PREFIX} are reserved"
            raise UnsupportedTableFeature(msg, hint="Write to this table with Apache Hudi.")
        if options.old_lists:
            _check_lists(field)
        if options.extension == ORC_EXTENSION:
            _check_times(field)
            if is_vector(field):
                msg = f"{BASE_FILE_FORMAT} is ORC: column {field.name!r} is a VECTOR"
                raise UnsupportedTableFeature(msg, hint="Make a table of Parquet files.")


def _check_times(column: pa.Field[Any]) -> None:
    """Refuse times in ORC: Hudi's readers interpret them differently."""
    for path, data_type in _types_in(column.name, column.type):
        if pa.types.is_timestamp(data_type) or pa.types.is_time(data_type):
            msg = f"{BASE_FILE_FORMAT} is ORC: column {path!r} is {data_type}"
            hint = "Hudi's releases disagree on times in ORC. Use Parquet files."
            raise UnsupportedTableFeature(msg, hint=hint)


def _check_lists(column: pa.Field[Any]) -> None:
    """Refuse lists that the Parquet library does not read back from the two-level form."""
    for path, data_type in _types_in(column.name, column.type):
        inner = data_type.value_type if is_list(data_type) else data_type
        if inner is not data_type and is_list(inner) and is_list(inner.value_type):
            msg = f"column {path!r} is {data_type}: lists nested three deep cannot be read back"
            raise UnsupportedTableFeature(
                msg,
                hint="Make some elements structs with the list as a field, or give the option "
                "parquet.avro.write-old-list-structure=false here and to every other writer.",
            )


def _types_in(path: str, data_type: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Yield a type and all types in it, with their paths; keys of maps are strings."""
    yield path, data_type
    if pa.types.is_struct(data_type):
        for field in data_type:
            yield from _types_in(f"{path}.{field.name}", field.type)
    elif pa.types.is_map(data_type):
        yield from _types_in(f"{path}.value", data_type.item_type)
    elif is_list(data_type):
        yield from _types_in(f"{path}.element", data_type.value_type)


# --- names ----------------------------------------------------------------------------------------


def _check_fields(fields: Iterable[pa.Field[Any]], path: str) -> None:
    """Check fields of one struct, or the columns; `path` is "" or ends with a dot."""
    by_case: dict[str, str] = {}
    for field in fields:
        where = path + field.name
        check_name(field.name, where)
        other = by_case.get(field.name.lower())
        if other == field.name:
            raise SchemaMismatch(f"there is more than one column {where!r}", hint="Rename one.")
        if other is not None:
            msg = f"the columns {path + other!r} and {where!r} differ only in case"
            raise SchemaMismatch(msg, hint="Spark does not tell such columns apart: rename one.")
        by_case[field.name.lower()] = field.name
        _check_type(field.type, where)


def check_name(name: str, where: str) -> None:
    """Raise `SchemaMismatch` for a name that no column can have. where: its path."""
    if not _is_name(name):
        msg = f"a column cannot be named {where!r}: {_name_problem(name)}"
        raise SchemaMismatch(msg, hint=f"Use another name, such as {_similar_name(name)!r}.")


def _is_name(name: str) -> bool:
    """Return whether Avro for Java accepts a name (`Schema.validateName`, 1.11), in any script."""
    return bool(name) and not _is_digit(name[0]) and all(map(_is_name_character, name))


def _is_name_character(letter: str) -> bool:
    if letter == "_" or _is_digit(letter):
        return True
    return letter <= _LAST and unicodedata.category(letter) in _LETTERS


def _is_digit(letter: str) -> bool:
    return letter <= _LAST and unicodedata.category(letter) == _DIGITS


def _name_problem(name: str) -> str:
    if not name:
        return "it is empty"
    invalid = next((letter for letter in name if not _is_name_character(letter)), None)
    if invalid is None:
        return "Avro, which Hudi keeps schemas in, has no names that begin with a digit"
    return f"Avro, which Hudi keeps schemas in, has no names with {invalid!r}"


def _similar_name(name: str) -> str:
    similar = "".join(letter if _is_name_character(letter) else "_" for letter in name) or "column"
    return f"_{similar}" if _is_digit(similar[0]) else similar


# --- types ----------------------------------------------------------------------------------------


def _check_type(data_type: pa.DataType, path: str) -> None:
    why = _hint_for_type(data_type)
    if why:
        msg = f"column {path!r} is {data_type}, a type that is not supported"
        raise UnsupportedTableFeature(msg, hint=why)
    if pa.types.is_struct(data_type):
        _check_fields(data_type, f"{path}.")
    elif pa.types.is_map(data_type):
        _check_type(data_type.item_type, f"{path}.value")
    elif is_list(data_type):
        _check_type(data_type.value_type, f"{path}.element")


def _hint_for_type(data_type: pa.DataType) -> str:
    """Return what to do instead of a type; "" if it is supported."""
    if pa.types.is_null(data_type):
        return "Cast it to the type that its values will have, or leave it out."
    if pa.types.is_uint64(data_type):
        return "Cast it to int64, or to decimal128(20, 0) where values go beyond that."
    if pa.types.is_duration(data_type) or pa.types.is_interval(data_type):
        return "Cast a duration to int64, with the unit in the column's name, or to a string."
    if pa.types.is_decimal(data_type):
        return _hint_for_decimal(data_type)
    if pa.types.is_struct(data_type) and data_type.num_fields == 0:
        return "Give the struct a field, or make the column a bool."
    if pa.types.is_map(data_type) and not _is_text(data_type.key_type):
        return "Use string keys, or a list of structs with key and value."
    if is_list(data_type) and pa.types.is_map(data_type.value_type):
        # Parquet's two-level lists, which Hudi writes, cannot be read back with maps in them.
        return "Make its elements structs with the map as a field."
    if pa.types.is_fixed_size_binary(data_type) and data_type.byte_width == 0:
        return "Cast it to binary."
    return ""


def _hint_for_decimal(data_type: pa.DataType) -> str:
    if data_type.precision > MAX_DIGITS:
        return f"Hudi's decimals have {MAX_DIGITS} digits at most: cast it to fewer, or to string."
    if data_type.scale < 0 or data_type.scale > data_type.precision:
        return "Cast it to a decimal whose scale is from 0 to its precision."
    return ""


def _is_text(data_type: pa.DataType) -> bool:
    if pa.types.is_dictionary(data_type):
        return _is_text(data_type.value_type)
    return is_text(data_type)
