"""Values that text files tell, in the types that a table wants: none is rounded, cut or guessed.

pyarrow's readers of CSV and JSON take the nearest float for a whole number and infinity for what
is too large, know no time of the day, and leave the zone of a moment out. What they would change is
read as another type first, and made into the wanted one here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.cli.json_writer import is_binary
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.input.exact_casts import cast_computed, sure_below

Column: TypeAlias = "pa.ChunkedArray[Any]"

_MOST_DIGITS = 70
"""Of numbers that are compared as decimals."""


def check_no_bytes(kind: pa.DataType, name: str) -> None:
    """Raises `ConfigError` for a column with bytes, which a text file cannot tell from text."""
    if any(map(is_binary, _leaf_types(kind))):
        what = "is of bytes" if not pa.types.is_nested(kind) else "has bytes in it"
        msg = f"column {name!r} {what}, which a text file cannot have"
        raise ConfigError(msg, hint="Give a Parquet or an Arrow file.")


def cast_column(column: Column, field: pa.Field[Any]) -> Column:
    """A column that was read in the types of `with_leaves`, in those of the field.

    Raises `SchemaMismatch` for a value that does not fit.
    """
    if column.type == field.type:
        return column
    chunks = [_cast_array(chunk, field.type, field.name) for chunk in column.chunks]
    return pa.chunked_array(chunks, field.type)


def floats(texts: Column, field: pa.Field[Any]) -> Column:
    """Numbers in text as floats.

    Raises `SchemaMismatch` for what is none, is too large, or is a whole number that floats lack.
    """
    texts = pc.ascii_trim_whitespace(texts)
    wide = cast_computed(texts, pa.field(field.name, pa.float64()))
    over = pc.and_(pc.is_inf(wide), pc.invert(pc.match_substring_regex(texts, "(?i)inf")))
    _refuse_first(texts.filter(over), field, "is out of range")
    found = cast_computed(wide, field)
    check_whole(found, texts, field.name)
    return found


def check_whole(numbers: Column, texts: Column, name: str) -> None:
    """Raises `SchemaMismatch` for a text of digits alone, of which the float is only near."""
    field = pa.field(name, numbers.type)
    wide = numbers.cast(pa.float64())
    large = may_be_rounded(numbers)
    texts, wide = texts.filter(large), wide.filter(large)
    whole = pc.match_substring_regex(texts, "^[+-]?[0-9]+$")
    texts, wide = texts.filter(whole), wide.filter(whole)
    _refuse_first(texts.filter(pc.greater(pc.utf8_length(texts), _MOST_DIGITS)), field)
    exact = pa.decimal256(76, 0)
    _refuse_first(texts.filter(pc.not_equal(texts.cast(exact), wide.cast(exact))), field)


def may_be_rounded(numbers: Column) -> Column:
    """Which floats are so large that their type lacks whole numbers of that size."""
    held = float(sure_below(numbers.type))
    return pc.greater_equal(pc.abs(numbers.cast(pa.float64())), held)


def leaves(column: Column, name: str) -> Iterator[tuple[str, Column]]:
    """The columns of values that a nested column has in its structs and lists, by their paths."""
    kind = column.type
    if pa.types.is_struct(kind):
        for at, each in enumerate(kind):
            yield from leaves(pc.struct_field(column, at), f"{name}.{each.name}")
    elif pa.types.is_list(kind):
        yield from leaves(pc.list_flatten(column), name)
    elif not pa.types.is_map(kind):
        yield name, column


def _leaf_types(kind: pa.DataType) -> Iterator[pa.DataType]:
    if not pa.types.is_nested(kind):
        yield kind
    for at in range(kind.num_fields):
        yield from _leaf_types(kind.field(at).type)


def _refuse_first(texts: Column, field: pa.Field[Any], why: str = "would be rounded") -> None:
    if len(texts):
        msg = f"column {field.name!r} is {field.type}: {texts[0].as_py()} {why}"
        hint = "Use a decimal column: `pyhudi create --schema` sets the table's types."
        raise SchemaMismatch(msg, hint=hint)


def _cast_array(array: pa.Array[Any], kind: pa.DataType, name: str) -> pa.Array[Any]:
    if array.type == kind:
        return array
    if pa.types.is_struct(kind):
        # Flattened, what stands below a null is null, and not an empty text.
        parts = [
            _cast_array(part, each.type, f"{name}.{each.name}")
            for part, each in zip(array.flatten(), kind, strict=True)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    mask = array.is_null() if array.null_count else None
    if pa.types.is_map(kind):
        items = _cast_array(array.items, kind.item_type, name)
        return pa.MapArray.from_arrays(array.offsets, array.keys, items, type=kind, mask=mask)
    if pa.types.is_list(kind):
        values = _cast_array(array.values, kind.value_type, name)
        return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=mask)
    if pa.types.is_time(kind):
        return _times(array, kind, name)
    return cast_computed(pa.chunked_array([array]), pa.field(name, kind)).combine_chunks()


def _times(texts: pa.Array[Any], kind: pa.DataType, name: str) -> pa.Array[Any]:
    """Times of the day, which Arrow reads from text only behind a day."""
    moments = pc.binary_join_element_wise("1970-01-01T", texts, "")
    try:
        return moments.cast(pa.timestamp("us")).cast(kind)
    except pa.ArrowInvalid as error:
        raise SchemaMismatch(f"column {name!r} is {kind}: {error}") from error
