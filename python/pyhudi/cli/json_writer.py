"""Arrow columns as JSON text, a column at a time and not a row at a time.

Decimals, times and dates are text, bytes base64, numbers that JSON lacks the texts "NaN",
"Infinity" and "-Infinity". Maps with text for keys are objects, others lists of pairs.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from json import dumps
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.formatting import shorten

_CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]
"""What a terminal obeys, of 7 bits and of 8."""
_ANY_CONTROL = r"[\x{00}-\x{1f}\x{7f}-\x{9f}]"
_IN_NAMES = {ord(letter): dumps(letter)[1:-1] for letter in _CONTROLS}
_NOT_NUMBERS = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}


def json_lines(batch: pa.RecordBatch) -> str:
    """A row a line, each an object, with a line end after the last."""
    objects = _object(batch.schema.names, batch.columns, batch.num_rows)
    return "\n".join([*objects.to_pylist(), ""])


def json_column(column: pa.Array) -> pa.Array:
    """The values as JSON; null is the text `null`."""
    return pc.fill_null(_texts(column), "null")


def flat(column: pa.Array) -> pa.Array:
    """The values as lines of a file can have them: nested ones as JSON, bytes as base64."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return flat(column.dictionary_decode())
    if _is_nested(kind):
        return _texts(column)
    return _base64(column) if is_binary(kind) else column


def flat_text(column: pa.Array) -> pa.Array:
    """The same, all as text; null stays null."""
    return pc.cast(flat(column), pa.string())


def is_binary(kind: pa.DataType) -> bool:
    """Whether a type is of bytes."""
    types = pa.types
    return bool(
        types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    )


def cell_text(column: pa.ChunkedArray) -> Sequence[str]:
    """The values as people read them in a table; nothing for null, long nested ones cut."""
    kind = column.type
    if pa.types.is_list(kind) and pa.types.is_string(kind.value_type):
        texts = pc.binary_join(column, ", ").to_pylist()
    else:
        texts = [text for chunk in column.chunks for text in flat_text(chunk).to_pylist()]
    if _is_nested(kind):
        return [shorten(text or "") for text in texts]
    return [text or "" for text in texts]


def _texts(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.string())
    if pa.types.is_dictionary(kind):
        return _texts(column.dictionary_decode())
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return pc.cast(column, pa.string())
    if pa.types.is_floating(kind):
        return _numbers(column)
    if pa.types.is_struct(kind):
        names = [kind.field(place).name for place in range(kind.num_fields)]
        return _null_where(column, _object(names, column.flatten(), len(column)))
    if pa.types.is_map(kind):
        return _map(column)
    if _is_nested(kind):
        return _null_where(column, _join_lists("[", column, json_column(column.flatten()), "]"))
    if is_binary(kind):
        return _quote(_base64(column))
    text = pc.cast(column, pa.string())
    if pa.types.is_timestamp(kind):
        text = pc.replace_substring(text, " ", "T", max_replacements=1)
    return _quote(text)


def _numbers(column: pa.Array) -> pa.Array:
    texts = pc.cast(column, pa.string())
    for name, text in _NOT_NUMBERS.items():
        texts = pc.if_else(pc.equal(texts, name), text, texts)
    return texts


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
        quoted = dumps(name, ensure_ascii=False).translate(_IN_NAMES)
        parts += [f"{before}{quoted}:", json_column(column)]
    return pc.binary_join_element_wise(*parts, "}", "")


def _join_lists(begin: str, lists: pa.Array, texts: pa.Array, end: str) -> pa.Array:
    """The texts of each list's values in one; `texts` has those of all lists, one after another."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    ends = pc.cumulative_sum(pc.cast(lengths, pa.int32()))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, texts), ",")
    return pc.binary_join_element_wise(begin, joined, end, "")


def _null_where(column: pa.Array, texts: pa.Array) -> pa.Array:
    """The texts, null where the column is."""
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.string()))


def _quote(texts: pa.Array) -> pa.Array:
    texts = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    if pc.any(pc.match_substring_regex(texts, _ANY_CONTROL)).as_py():
        for letter in _CONTROLS:
            texts = pc.replace_substring(texts, letter, dumps(letter)[1:-1])
    return pc.binary_join_element_wise('"', texts, '"', "")


def _base64(column: pa.Array) -> pa.Array:
    """By value: Arrow has no such function, and bytes are rare in what is shown."""
    values = [None if each is None else b64encode(each).decode() for each in column.to_pylist()]
    return pa.array(values, pa.string())


def _is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind))
