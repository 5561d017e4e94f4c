"""Arrow columns as JSON text, column by column instead of row by row.

Decimals, times and dates are strings, bytes are base64. Numbers that JSON does not have are the
strings "NaN", "Infinity" and "-Infinity". Maps with string keys are objects, other maps lists of
pairs.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from json import dumps
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.config.formatting import shorten
from pyhudi.input.type_tests import is_binary

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    from pyhudi.schema import lazy_compute as pc

_CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]
"""Control characters of terminals, of 7 bits and of 8."""
_ANY_CONTROL = r"[\x{00}-\x{1f}\x{7f}-\x{9f}]"
_ESCAPES = {ord(letter): dumps(letter)[1:-1] for letter in _CONTROLS}
_NOT_NUMBERS = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}


def json_lines(batch: pa.RecordBatch) -> str:
    """Return one object a line, with a line end after the last."""
    objects = _object(batch.schema.names, batch.columns, batch.num_rows)
    return "\n".join([*objects.to_pylist(), ""])


def json_column(column: pa.Array) -> pa.Array:
    """Return the values as JSON; null is the text `null`."""
    return pc.fill_null(_json_values(column), "null")


def flat(column: pa.Array) -> pa.Array:
    """Return the values for a flat file: nested values as JSON, bytes as base64."""
    data_type = column.type
    if pa.types.is_dictionary(data_type):
        return flat(column.dictionary_decode())
    if pa.types.is_nested(data_type):
        return _json_values(column)
    return _base64(column) if is_binary(data_type) else column


def flat_text(column: pa.Array) -> pa.Array:
    """Return the values of `flat` as strings; null stays null."""
    return pc.cast(flat(column), pa.string())


def cell_text(column: pa.ChunkedArray) -> Sequence[str]:
    """Return the values for display in a table; nothing for null, long nested ones shortened."""
    data_type = column.type
    if pa.types.is_list(data_type) and pa.types.is_string(data_type.value_type):
        cells = [_join(values) for values in column.to_pylist()]
    elif pa.types.is_string(data_type):
        cells = column.to_pylist()
    elif pa.types.is_boolean(data_type):
        cells = [None if value is None else str(value).lower() for value in column.to_pylist()]
    elif pa.types.is_integer(data_type):
        cells = [None if value is None else str(value) for value in column.to_pylist()]
    else:
        cells = [cell for chunk in column.chunks for cell in flat_text(chunk).to_pylist()]
    if pa.types.is_nested(data_type):
        return [shorten(cell or "") for cell in cells]
    return [cell or "" for cell in cells]


def _join(values: Sequence[str | None] | None) -> str | None:
    """Return the strings of a list as one; the import of `pyarrow.compute` would take longer."""
    return None if values is None or None in values else ", ".join(map(str, values))


def _json_values(column: pa.Array) -> pa.Array:
    data_type = column.type
    if pa.types.is_null(data_type):
        return pa.nulls(len(column), pa.string())
    if pa.types.is_dictionary(data_type):
        return _json_values(column.dictionary_decode())
    if pa.types.is_boolean(data_type) or pa.types.is_integer(data_type):
        return pc.cast(column, pa.string())
    if pa.types.is_floating(data_type):
        return _numbers(column)
    if pa.types.is_struct(data_type):
        names = [data_type.field(at).name for at in range(data_type.num_fields)]
        return _null_where(column, _object(names, column.flatten(), len(column)))
    if pa.types.is_map(data_type):
        return _map(column)
    if pa.types.is_nested(data_type):
        return _null_where(column, _join_lists("[", column, json_column(column.flatten()), "]"))
    if is_binary(data_type):
        return _quote(_base64(column))
    text = pc.cast(column, pa.string())
    if pa.types.is_timestamp(data_type):
        text = pc.replace_substring(text, " ", "T", max_replacements=1)
    return _quote(text)


def _numbers(column: pa.Array) -> pa.Array:
    strings = pc.cast(column, pa.string())
    for name, text in _NOT_NUMBERS.items():
        strings = pc.if_else(pc.equal(strings, name), text, strings)
    return strings


def _map(column: pa.MapArray) -> pa.Array:
    keys, items = column.type.key_type, column.type.item_type
    entry = pa.struct([pa.field("key", keys, nullable=False), pa.field("value", items)])
    listed = column.cast(pa.list_(entry))
    key, value = (json_column(part) for part in listed.flatten().flatten())
    if pa.types.is_string(keys) or pa.types.is_large_string(keys):
        return _null_where(
            column, _join_lists("{", listed, pc.binary_join_element_wise(key, value, ":"), "}")
        )
    pairs = pc.binary_join_element_wise("[", key, ",", value, "]", "")
    return _null_where(column, _join_lists("[", listed, pairs, "]"))


def _object(names: Sequence[str], columns: Sequence[pa.Array], rows: int) -> pa.Array:
    if not names:
        return pa.array(["{}"] * rows, pa.string())
    parts: list[Any] = []
    for name, column in zip(names, columns, strict=True):
        before = "," if parts else "{"
        quoted = dumps(name, ensure_ascii=False).translate(_ESCAPES)
        parts += [f"{before}{quoted}:", json_column(column)]
    return pc.binary_join_element_wise(*parts, "}", "")


def _join_lists(begin: str, lists: pa.Array, strings: pa.Array, end: str) -> pa.Array:
    """Join the texts of each list's values; `strings` has the values of all lists in order."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    ends = pc.cumulative_sum(pc.cast(lengths, pa.int32()))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, strings), ",")
    return pc.binary_join_element_wise(begin, joined, end, "")


def _null_where(column: pa.Array, strings: pa.Array) -> pa.Array:
    """Return the texts, null where the column is null."""
    return pc.if_else(column.is_valid(), strings, pa.scalar(None, pa.string()))


def _quote(strings: pa.Array) -> pa.Array:
    strings = pc.replace_substring(pc.replace_substring(strings, "\\", "\\\\"), '"', '\\"')
    if pc.any(pc.match_substring_regex(strings, _ANY_CONTROL)).as_py():
        for letter in _CONTROLS:
            strings = pc.replace_substring(strings, letter, dumps(letter)[1:-1])
    return pc.binary_join_element_wise('"', strings, '"', "")


def _base64(column: pa.Array) -> pa.Array:
    """Encode value by value: Arrow has no such function, and bytes are rarely displayed."""
    values = [None if value is None else b64encode(value).decode() for value in column.to_pylist()]
    return pa.array(values, pa.string())
