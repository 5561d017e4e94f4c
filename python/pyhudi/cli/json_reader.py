"""Rows of a file of JSON lines, read into memory, since any line may have a field of its own."""

from __future__ import annotations

from collections.abc import Collection
from json import loads
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.cli.arguments import UnreadableFile
from pyhudi.cli.text_parsing import (
    Column,
    cast_column,
    check_no_bytes,
    check_whole,
    leaves,
    may_be_rounded,
)
from pyhudi.errors import ConfigError
from pyhudi.input.exact_casts import with_leaves
from pyhudi.input.python_objects import table_from_columns

_BLOCK = 64 * 1024 * 1024
"""The longest line that can be read; in larger blocks less is done at the same time."""
_MOST_LEVELS = 64
"""Lists and structs in a row that may be in one another; pyarrow's reader ends the process at some
thousands."""
_MOST_NAMES = 10_000
"""Names in all rows together. Each is a column with a value for each row, while it is read."""
_ZONED = ":.*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_SPECIAL = r'([:\[,]\s*)"(NaN|-?Infinity)"(\s*[,}\]])'
"""Values of floats that JSON lacks, as `json_writer.py` writes them."""
_NUMBER = r'((?:"(?:[^"\\]|\\.)*"|[^"0-9-]|-[^0-9"])*?)(-?[0-9][0-9.eE+-]*|-?Inf(?:inity)?|NaN|$)'
"""What is none, texts among it, and a number; at a line's end an empty one."""


def json_rows(path: Path, wanted: pa.Schema | None) -> pa.Table:
    """All rows. Columns that the table has are read with its types.

    A file without rows has no columns, so those that are wanted stand in. Raises `ConfigError` for
    a file that is no text, has no columns, is nested too deeply or has too many names, and for
    bytes; `SchemaMismatch` for a value that would change.
    """
    text = _text(path)
    _check_shape(path, text, wanted)
    found = _infer_columns(text) if len(text) else pa.table({})
    if found.num_rows == 0:
        if wanted is None:
            msg = f"{path} has no rows, so the columns are unknown"
            raise ConfigError(msg, hint="Make the table with --schema first.")
        return wanted.empty_table()
    known = () if wanted is None else wanted.names
    kinds = _kinds(found.schema, wanted)
    columns: dict[str, Column] = {}
    special = [column for column in kinds if _may_be_special(column.type) and _has_special(text)]
    plain = [column for column in kinds if column not in special]
    for source, some in ((text, plain), (_special_as(r"\2", text) if special else text, special)):
        mapped = [column for column in some if _has_map(column.type)]
        others = [column for column in some if column not in mapped]
        columns |= _columns(source, others, known) | _maps(source, mapped)
    return pa.table({name: columns[name] for name in found.column_names})


def _infer_columns(text: pa.Buffer) -> pa.Table:
    """All columns with the types that their values have.

    Where a column has numbers and texts that stand for such, it is one of numbers.
    """
    try:
        return _read(text)
    except pa.ArrowInvalid:
        if not _has_special(text):
            raise
    try:
        return _read(_special_as(r"\2", text))
    except pa.ArrowInvalid:
        # There are columns of texts that have the same words.
        return _read(_special_as("null", text))


def _has_special(text: pa.Buffer) -> bool:
    return bool(pc.match_substring_regex(_as_one(text, pa.large_string()), _SPECIAL)[0].as_py())


def _special_as(what: str, text: pa.Buffer) -> pa.Buffer:
    found = _as_one(text, pa.large_string())
    # Twice: what parts two values of a list is matched with the first of them.
    for _ in range(2):
        found = pc.replace_substring_regex(found, _SPECIAL, rf"\1{what}\3")
    return found.buffers()[2]


def _may_be_special(kind: pa.DataType) -> bool:
    """Whether a column has floats, and no texts that could have the same words."""
    kinds = _leaf_kinds(kind)
    return any(map(pa.types.is_floating, kinds)) and pa.string() not in kinds


def _leaf_kinds(kind: pa.DataType) -> set[pa.DataType]:
    """Types of the values in a column; keys of maps are none."""
    if pa.types.is_map(kind):
        return _leaf_kinds(kind.item_type)
    if not kind.num_fields:
        return {kind}
    return set().union(*(_leaf_kinds(kind.field(at).type) for at in range(kind.num_fields)))


def _text(path: Path) -> pa.Buffer:
    """The file's bytes. pyarrow takes any bytes for text."""
    with pa.OSFile(str(path)) as file:
        text = file.read_buffer()
    try:
        _as_one(text, pa.large_binary()).cast(pa.large_string())
    except pa.ArrowInvalid:
        msg = f"{path} is not UTF-8 text"
        raise ConfigError(msg, hint="Convert it, as iconv does.") from None
    return text


def _check_shape(path: Path, text: pa.Buffer, wanted: pa.Schema | None) -> None:
    maps = [column.name for column in wanted or () if _has_map(column.type)]
    depth, names = _native.json_shape(
        _as_one(text, pa.large_binary()),
        apart=maps,
        most_depth=_MOST_LEVELS + 1,
        most_names=_MOST_NAMES,
    )
    if depth > _MOST_LEVELS + 1:
        msg = f"{path} has rows with more than {_MOST_LEVELS} lists and structs in one another"
        raise UnreadableFile(msg, hint="Keep what is inside as text.")
    if names > _MOST_NAMES:
        msg = f"{path} has more than {_MOST_NAMES} different names in its rows"
        hint = (
            "Names that are data belong into a map: make the table with --schema, where the column "
            "is a map, or split the file."
        )
        raise UnreadableFile(msg, hint=hint)


def _as_one(text: pa.Buffer, kind: pa.DataType) -> pa.Array[Any]:
    """An array whose only value is the text."""
    ends = pa.array([0, text.size], pa.int64()).buffers()[1]
    return pa.Array.from_buffers(kind, 1, [None, ends, text])


def _read(text: pa.Buffer, columns: pa.Schema | None = None) -> pa.Table:
    """All columns of the file, or those that are given, with their types."""
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
    text: pa.Buffer, columns: list[pa.Field[Any]], known: Collection[str]
) -> dict[str, Column]:
    """known: those whose type is the table's."""
    as_read = [column.with_type(with_leaves(column.type, _leaf)) for column in columns]
    read = _read(text, pa.schema(as_read))
    found = {}
    for column in columns:
        values, kind = read.column(column.name), column.type
        kind = kind if column.name in known else _with_time_zones(kind, values)
        found[column.name] = cast_column(values, column.with_type(kind))
    _check_floats(found, text)
    return found


def _kinds(found: pa.Schema, wanted: pa.Schema | None) -> pa.Schema:
    columns = [
        column.with_type(_merge_types(column.type, wanted.field(column.name).type))
        if wanted is not None and column.name in wanted.names
        else column
        for column in found
    ]
    for column in columns:
        check_no_bytes(column.type, column.name)
    return pa.schema(columns)


def _merge_types(found: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """The wanted type, with the fields that its structs lack, for verbs to refuse or to add.

    pyarrow's reader has no lists of a fixed size: the write makes them of lists.
    """
    if pa.types.is_fixed_size_list(wanted):
        wanted = pa.list_(wanted.value_field)
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        fields = {each.name: each for each in found}
        known = [
            each.with_type(_merge_types(fields.pop(each.name, each).type, each.type))
            for each in wanted
        ]
        return pa.struct([*known, *fields.values()])
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        item = wanted.value_field
        return pa.list_(item.with_type(_merge_types(found.value_type, item.type)))
    return wanted


def _leaf(kind: pa.DataType) -> pa.DataType:
    """pyarrow takes dates and times for numbers, and leaves the zone of a moment out."""
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return pa.string()
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return pa.string()
    return pa.float64() if pa.types.is_floating(kind) else kind


def _with_time_zones(kind: pa.DataType, read: Column) -> pa.DataType:
    """The type that was found, moments with the zone that their texts have."""
    if pa.types.is_struct(kind):
        parts = enumerate(kind)
        return pa.struct(
            [
                each.with_type(_with_time_zones(each.type, pc.struct_field(read, at)))
                for at, each in parts
            ]
        )
    if pa.types.is_list(kind):
        return pa.list_(_with_time_zones(kind.value_type, pc.list_flatten(read)))
    if pa.types.is_timestamp(kind) and pc.any(pc.match_substring_regex(read, _ZONED)).as_py():
        return pa.timestamp(kind.unit, "UTC")
    return kind


# --- whole numbers in columns of floats -----------------------------------------------------------


def _check_floats(columns: dict[str, Column], text: pa.Buffer) -> None:
    """Raises `SchemaMismatch` for a whole number that was rounded.

    Floats do not tell, so where some are large the numbers' own digits are read once more.
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
        for (path, numbers), (_, texts) in pairs:
            if pa.types.is_floating(numbers.type):
                check_whole(numbers, texts, path)


def _has_large(column: Column) -> bool:
    return any(
        pc.any(may_be_rounded(numbers)).as_py()
        for _, numbers in leaves(column, "")
        if pa.types.is_floating(numbers.type)
    )


def _digits(kind: pa.DataType) -> pa.DataType:
    return kind if pa.types.is_boolean(kind) else pa.string()


def _quote_numbers(text: pa.Buffer) -> pa.Buffer:
    """The lines with their numbers as texts."""
    lines = pc.split_pattern(_as_one(text, pa.large_string()), "\n").flatten()
    lines = pc.binary_join_element_wise(lines, *pa.array([" ", ""], pa.large_string()))
    quoted = pc.replace_substring_regex(lines, _NUMBER, r'\1"\2"')
    return pc.replace_substring_regex(quoted, ' ""$', "\n").buffers()[2]


# --- maps -----------------------------------------------------------------------------------------


def _has_map(kind: pa.DataType) -> bool:
    return pa.types.is_map(kind) or any(
        _has_map(kind.field(at).type) for at in range(kind.num_fields)
    )


def _maps(text: pa.Buffer, columns: list[pa.Field[Any]]) -> dict[str, Column]:
    """Columns with maps, by value: pyarrow takes the keys of one for the fields of a struct."""
    if not columns:
        return {}
    try:
        rows = [loads(line) for line in text.to_pybytes().splitlines() if line.strip()]
    except ValueError as error:
        msg = f"column {columns[0].name!r} has maps, which need one row a line: {error}"
        raise ConfigError(msg, hint="Write each row on a line of its own.") from error
    as_read = pa.schema(
        [column.with_type(with_leaves(column.type, _map_leaf)) for column in columns]
    )
    values = {column.name: [row.get(column.name) for row in rows] for column in columns}
    read = pa.table(table_from_columns(values, as_read))
    return {column.name: cast_column(read.column(column.name), column) for column in columns}


def _map_leaf(kind: pa.DataType) -> pa.DataType:
    """What JSON has no type for is text."""
    if pa.types.is_decimal(kind) or pa.types.is_temporal(kind):
        return pa.string()
    return pa.float64() if pa.types.is_floating(kind) else kind
