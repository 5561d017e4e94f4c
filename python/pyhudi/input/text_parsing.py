"""Casts values of text files to a table's types without rounding, truncating or guessing.

pyarrow's readers of CSV and JSON read an integer as the nearest float and a number that is too
large as infinity, do not support times of day, and drop the zone of a timestamp. Values that they
would change are read in another type first, and cast here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.input.exact_casts import cast_computed, exact_integer_bound
from pyhudi.input.type_tests import is_binary

Column: TypeAlias = "pa.ChunkedArray[Any]"

_MAX_DIGITS = 70
"""Maximum digits of numbers that are compared as decimals."""


def check_no_bytes(data_type: pa.DataType, name: str) -> None:
    """Raise `ConfigError` for a column with bytes, which look like text in a text file."""
    if any(map(is_binary, _leaf_types(data_type))):
        problem = "is binary" if not pa.types.is_nested(data_type) else "contains binary values"
        msg = f"column {name!r} {problem}, which a text file cannot hold"
        raise ConfigError(msg, hint="Pass a Parquet or an Arrow file.")


def cast_column(column: Column, field: pa.Field[Any]) -> Column:
    """Cast a column that was read in the types of `with_leaves` to those of the field.

    Raises `SchemaMismatch` for a value that does not fit.
    """
    if column.type == field.type:
        return column
    chunks = [_cast_array(chunk, field.type, field.name) for chunk in column.chunks]
    return pa.chunked_array(chunks, field.type)


def floats(strings: Column, field: pa.Field[Any]) -> Column:
    """Return numbers in text as floats.

    Raises `SchemaMismatch` for text that is not a number, a number that is too large, or an integer
    that the float type cannot hold.
    """
    strings = pc.ascii_trim_whitespace(strings)
    wide = cast_computed(strings, pa.field(field.name, pa.float64()))
    over = pc.and_(pc.is_inf(wide), pc.invert(pc.match_substring_regex(strings, "(?i)inf")))
    _raise_for_first(strings.filter(over), field, "is out of range")
    numbers = cast_computed(wide, field)
    check_exact_integers(numbers, strings, field.name)
    return numbers


def check_exact_integers(numbers: Column, strings: Column, name: str) -> None:
    """Raise `SchemaMismatch` for an integer that the float type would round."""
    field = pa.field(name, numbers.type)
    wide = numbers.cast(pa.float64())
    large = may_be_rounded(numbers)
    strings, wide = strings.filter(large), wide.filter(large)
    is_integer = pc.match_substring_regex(strings, "^[+-]?[0-9]+$")
    strings, wide = strings.filter(is_integer), wide.filter(is_integer)
    _raise_for_first(strings.filter(pc.greater(pc.utf8_length(strings), _MAX_DIGITS)), field)
    exact = pa.decimal256(76, 0)
    _raise_for_first(strings.filter(pc.not_equal(strings.cast(exact), wide.cast(exact))), field)


def may_be_rounded(numbers: Column) -> Column:
    """Return which floats are so large that their type cannot hold all integers of that size."""
    bound = float(exact_integer_bound(numbers.type))
    return pc.greater_equal(pc.abs(numbers.cast(pa.float64())), bound)


def leaves(column: Column, name: str) -> Iterator[tuple[str, Column]]:
    """Yield the columns of values in the structs and lists of a nested column, with their paths."""
    data_type = column.type
    if pa.types.is_struct(data_type):
        for at, child in enumerate(data_type):
            yield from leaves(pc.struct_field(column, at), f"{name}.{child.name}")
    elif pa.types.is_list(data_type):
        yield from leaves(pc.list_flatten(column), name)
    elif not pa.types.is_map(data_type):
        yield name, column


def _leaf_types(data_type: pa.DataType) -> Iterator[pa.DataType]:
    if not pa.types.is_nested(data_type):
        yield data_type
    for at in range(data_type.num_fields):
        yield from _leaf_types(data_type.field(at).type)


def _raise_for_first(strings: Column, field: pa.Field[Any], why: str = "would be rounded") -> None:
    if len(strings):
        msg = f"column {field.name!r} is {field.type}: {strings[0].as_py()} {why}"
        hint = "Use a decimal column: `pyhudi create --schema` sets the table's types."
        raise SchemaMismatch(msg, hint=hint)


def _cast_array(array: pa.Array[Any], data_type: pa.DataType, name: str) -> pa.Array[Any]:
    if array.type == data_type:
        return array
    if pa.types.is_struct(data_type):
        # Flattened, values below a null are null instead of an empty string.
        parts = [
            _cast_array(part, child.type, f"{name}.{child.name}")
            for part, child in zip(array.flatten(), data_type, strict=True)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(data_type), mask=array.is_null())
    mask = array.is_null() if array.null_count else None
    if pa.types.is_map(data_type):
        items = _cast_array(array.items, data_type.item_type, name)
        return pa.MapArray.from_arrays(array.offsets, array.keys, items, type=data_type, mask=mask)
    if pa.types.is_list(data_type):
        values = _cast_array(array.values, data_type.value_type, name)
        return pa.ListArray.from_arrays(array.offsets, values, type=data_type, mask=mask)
    if pa.types.is_time(data_type):
        return _times(array, data_type, name)
    return cast_computed(pa.chunked_array([array]), pa.field(name, data_type)).combine_chunks()


def _times(strings: pa.Array[Any], data_type: pa.DataType, name: str) -> pa.Array[Any]:
    """Cast times of day, which Arrow parses from text only after a date."""
    timestamps = pc.binary_join_element_wise("1970-01-01T", strings, "")
    try:
        return timestamps.cast(pa.timestamp("us")).cast(data_type)
    except pa.ArrowInvalid as error:
        raise SchemaMismatch(f"column {name!r} is {data_type}: {error}") from error
