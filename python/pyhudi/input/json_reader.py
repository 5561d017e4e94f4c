"""Reads a file of JSON lines into memory, because any line may have a new field."""

from __future__ import annotations

from collections.abc import Collection
from json import loads
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.errors import ConfigError
from pyhudi.input.exact_casts import with_leaves
from pyhudi.input.python_objects import table_from_columns
from pyhudi.input.text_parsing import (
    Column,
    cast_column,
    check_exact_integers,
    check_no_bytes,
    leaves,
    may_be_rounded,
)
from pyhudi.input.unreadable_file import UnreadableFile

_BLOCK = 64 * 1024 * 1024
"""The longest line that can be read; larger blocks would allow less parallelism."""
_MAX_LEVELS = 64
"""Maximum nesting of lists and structs in a row; pyarrow's reader crashes the process at some
thousands."""
_MAX_NAMES = 10_000
"""Maximum number of names in all rows. Each becomes a column with a value for each row during the
read."""
_ZONED = ":.*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_SPECIAL = r'([:\[,]\s*)"(NaN|-?Infinity)"(\s*[,}\]])'
"""Float values that JSON does not have, as `json_writer.py` writes them."""
_NUMBER = r'((?:"(?:[^"\\]|\\.)*"|[^"0-9-]|-[^0-9"])*?)(-?[0-9][0-9.eE+-]*|-?Inf(?:inity)?|NaN|$)'
"""Text without a number, including strings, followed by a number; an empty one at a line's end."""


def json_rows(path: Path, table_schema: pa.Schema | None) -> pa.Table:
    """Return all rows of a file, as `json_text_rows` does."""
    with pa.OSFile(str(path)) as file:
        text = file.read_buffer()
    return json_text_rows(text, path, table_schema)


def json_text_rows(text: pa.Buffer, path: object, table_schema: pa.Schema | None) -> pa.Table:
    """Return the rows of JSON lines. Columns of the table are read with its types.

    path: where the lines come from, for errors.

    A file without rows has no columns, so the table's columns are used. Raises `ConfigError` for a
    file that is not text, has no columns, is nested too deeply or has too many names, and for bytes
    columns; `SchemaMismatch` for a value that would change.
    """
    _check_text(path, text)
    _check_shape(path, text, table_schema)
    inferred = _infer_columns(text) if len(text) else pa.table({})
    if inferred.num_rows == 0:
        if table_schema is None:
            msg = f"{path} has no rows, so the columns are unknown"
            raise ConfigError(msg, hint="Create the table with --schema first.")
        return table_schema.empty_table()
    table_columns = () if table_schema is None else table_schema.names
    target = _column_types(inferred.schema, table_schema)
    columns: dict[str, Column] = {}
    special = [column for column in target if _may_be_special(column.type) and _has_special(text)]
    simple = [column for column in target if column not in special]
    for source, group in ((text, simple), (_special_as(r"\2", text) if special else text, special)):
        mapped = [column for column in group if _has_map(column.type)]
        rest = [column for column in group if column not in mapped]
        columns |= _columns(source, rest, table_columns) | _maps(source, mapped)
    return pa.table({name: columns[name] for name in inferred.column_names})


def _infer_columns(text: pa.Buffer) -> pa.Table:
    """Return all columns with the types of their values.

    A column with numbers and strings that represent numbers is numeric.
    """
    try:
        return _read(text)
    except pa.ArrowInvalid:
        if not _has_special(text):
            raise
    try:
        return _read(_special_as(r"\2", text))
    except pa.ArrowInvalid:
        # Some string columns contain the same strings.
        return _read(_special_as("null", text))


def _has_special(text: pa.Buffer) -> bool:
    return bool(
        pc.match_substring_regex(_single_value(text, pa.large_string()), _SPECIAL)[0].as_py()
    )


def _special_as(replacement: str, text: pa.Buffer) -> pa.Buffer:
    result = _single_value(text, pa.large_string())
    # Twice, because the separator of two list values is part of the first match.
    for _ in range(2):
        result = pc.replace_substring_regex(result, _SPECIAL, rf"\1{replacement}\3")
    return result.buffers()[2]


def _may_be_special(data_type: pa.DataType) -> bool:
    """Return whether a column has floats, and no strings that could equal their special values."""
    leaf_types = _leaf_types(data_type)
    return any(map(pa.types.is_floating, leaf_types)) and pa.string() not in leaf_types


def _leaf_types(data_type: pa.DataType) -> set[pa.DataType]:
    """Return the types of the values in a column, without the keys of maps."""
    if pa.types.is_map(data_type):
        return _leaf_types(data_type.item_type)
    if not data_type.num_fields:
        return {data_type}
    return set().union(
        *(_leaf_types(data_type.field(at).type) for at in range(data_type.num_fields))
    )


def _check_text(path: object, text: pa.Buffer) -> None:
    """Check that the bytes are UTF-8, which pyarrow does not check."""
    try:
        _single_value(text, pa.large_binary()).cast(pa.large_string())
    except pa.ArrowInvalid:
        msg = f"{path} is not UTF-8 text"
        raise ConfigError(msg, hint="Convert the file to UTF-8, for example with iconv.") from None


def _check_shape(path: object, text: pa.Buffer, table_schema: pa.Schema | None) -> None:
    maps = [column.name for column in table_schema or () if _has_map(column.type)]
    depth, names = _native.json_shape(
        _single_value(text, pa.large_binary()),
        apart=maps,
        most_depth=_MAX_LEVELS + 1,
        most_names=_MAX_NAMES,
    )
    if depth > _MAX_LEVELS + 1:
        msg = f"{path} has rows nested more than {_MAX_LEVELS} levels deep"
        raise UnreadableFile(msg, hint="Store the inner values as text.")
    if names > _MAX_NAMES:
        msg = f"{path} has more than {_MAX_NAMES} different names in its rows"
        hint = (
            "Store names that are data in a map: create the table with --schema, with a map as the "
            "column. Or split the file."
        )
        raise UnreadableFile(msg, hint=hint)


def _single_value(text: pa.Buffer, data_type: pa.DataType) -> pa.Array[Any]:
    """Return an array whose only value is the text."""
    ends = pa.array([0, text.size], pa.int64()).buffers()[1]
    return pa.Array.from_buffers(data_type, 1, [None, ends, text])


def _read(text: pa.Buffer, columns: pa.Schema | None = None) -> pa.Table:
    """Return all columns of the file, or only `columns`, with their types."""
    from pyarrow import json  # noqa: PLC0415 - not for commands that read no file

    others = "infer" if columns is None else "ignore"
    try:
        return json.read_json(
            pa.BufferReader(text),
            read_options=json.ReadOptions(block_size=_BLOCK),
            parse_options=json.ParseOptions(columns, unexpected_field_behavior=others),
        )
    except pa.ArrowInvalid as error:
        if "straddl" in str(error):
            raise ConfigError(f"a line of the file is longer than {_BLOCK} bytes") from error
        raise


def _columns(
    text: pa.Buffer, columns: list[pa.Field[Any]], table_columns: Collection[str]
) -> dict[str, Column]:
    """Read columns and cast them. table_columns: columns whose type is the table's."""
    as_read = [column.with_type(with_leaves(column.type, _leaf)) for column in columns]
    read = _read(text, pa.schema(as_read))
    result = {}
    for column in columns:
        values, data_type = read.column(column.name), column.type
        data_type = (
            data_type if column.name in table_columns else _with_time_zones(data_type, values)
        )
        result[column.name] = cast_column(values, column.with_type(data_type))
    _check_floats(result, text)
    return result


def _column_types(inferred: pa.Schema, table_schema: pa.Schema | None) -> pa.Schema:
    columns = [
        column.with_type(_merge_types(column.type, table_schema.field(column.name).type))
        if table_schema is not None and column.name in table_schema.names
        else column
        for column in inferred
    ]
    for column in columns:
        check_no_bytes(column.type, column.name)
    return pa.schema(columns)


def _merge_types(inferred: pa.DataType, expected: pa.DataType) -> pa.DataType:
    """Return the table's type, with the additional fields of structs, which writes reject or add.

    pyarrow's reader has no fixed-size lists: the write converts lists to them.
    """
    if pa.types.is_fixed_size_list(expected):
        expected = pa.list_(expected.value_field)
    if pa.types.is_struct(inferred) and pa.types.is_struct(expected):
        fields = {each.name: each for each in inferred}
        merged = [
            each.with_type(_merge_types(fields.pop(each.name, each).type, each.type))
            for each in expected
        ]
        return pa.struct([*merged, *fields.values()])
    if pa.types.is_list(inferred) and pa.types.is_list(expected):
        item = expected.value_field
        return pa.list_(item.with_type(_merge_types(inferred.value_type, item.type)))
    return expected


def _leaf(data_type: pa.DataType) -> pa.DataType:
    """Return the type in which pyarrow reads a value exactly.

    pyarrow converts dates and times from numbers, and drops the zone of a timestamp.
    """
    if pa.types.is_date(data_type) or pa.types.is_time(data_type):
        return pa.string()
    if pa.types.is_timestamp(data_type) and data_type.tz is None:
        return pa.string()
    return pa.float64() if pa.types.is_floating(data_type) else data_type


def _with_time_zones(data_type: pa.DataType, read: Column) -> pa.DataType:
    """Return the inferred type, with a time zone for timestamps whose texts have one."""
    if pa.types.is_struct(data_type):
        parts = enumerate(data_type)
        return pa.struct(
            [
                each.with_type(_with_time_zones(each.type, pc.struct_field(read, at)))
                for at, each in parts
            ]
        )
    if pa.types.is_list(data_type):
        return pa.list_(_with_time_zones(data_type.value_type, pc.list_flatten(read)))
    if pa.types.is_timestamp(data_type) and pc.any(pc.match_substring_regex(read, _ZONED)).as_py():
        return pa.timestamp(data_type.unit, "UTC")
    return data_type


# --- integers in columns of floats ----------------------------------------------------------------


def _check_floats(columns: dict[str, Column], text: pa.Buffer) -> None:
    """Raise `SchemaMismatch` for an integer that was rounded to a float.

    Floats do not show it, so if some are large, the numbers' own digits are read again.
    """
    large = {name: column for name, column in columns.items() if _has_large(column)}
    if not large:
        return
    as_text = pa.schema(
        [(name, with_leaves(column.type, _digits)) for name, column in large.items()]
    )
    digits = _read(_quote_numbers(text), as_text)
    for name, column in large.items():
        pairs = zip(leaves(column, name), leaves(digits.column(name), name), strict=True)
        for (path, numbers), (_, strings) in pairs:
            if pa.types.is_floating(numbers.type):
                check_exact_integers(numbers, strings, path)


def _has_large(column: Column) -> bool:
    return any(
        pc.any(may_be_rounded(numbers)).as_py()
        for _, numbers in leaves(column, "")
        if pa.types.is_floating(numbers.type)
    )


def _digits(data_type: pa.DataType) -> pa.DataType:
    return data_type if pa.types.is_boolean(data_type) else pa.string()


def _quote_numbers(text: pa.Buffer) -> pa.Buffer:
    """Return the lines with their numbers as strings."""
    lines = pc.split_pattern(_single_value(text, pa.large_string()), "\n").flatten()
    lines = pc.binary_join_element_wise(lines, *pa.array([" ", ""], pa.large_string()))
    quoted = pc.replace_substring_regex(lines, _NUMBER, r'\1"\2"')
    return pc.replace_substring_regex(quoted, ' ""$', "\n").buffers()[2]


# --- maps -----------------------------------------------------------------------------------------


def _has_map(data_type: pa.DataType) -> bool:
    return pa.types.is_map(data_type) or any(
        _has_map(data_type.field(at).type) for at in range(data_type.num_fields)
    )


def _maps(text: pa.Buffer, columns: list[pa.Field[Any]]) -> dict[str, Column]:
    """Return columns with maps, row by row: pyarrow reads map keys as fields of a struct."""
    if not columns:
        return {}
    try:
        rows = [loads(line) for line in text.to_pybytes().splitlines() if line.strip()]
    except ValueError as error:
        msg = f"column {columns[0].name!r} has maps, which need one row per line: {error}"
        raise ConfigError(msg, hint="Write each row on its own line.") from error
    as_read = pa.schema(
        [column.with_type(with_leaves(column.type, _map_leaf)) for column in columns]
    )
    values = {column.name: [row.get(column.name) for row in rows] for column in columns}
    read = pa.table(table_from_columns(values, as_read))
    return {column.name: cast_column(read.column(column.name), column) for column in columns}


def _map_leaf(data_type: pa.DataType) -> pa.DataType:
    """Return the type in which JSON has a value; string if it has no such type."""
    if pa.types.is_decimal(data_type) or pa.types.is_temporal(data_type):
        return pa.string()
    return pa.float64() if pa.types.is_floating(data_type) else data_type
