"""Partition paths as values of the partition columns, as far as a path can tell.

Building paths is the writer's part. A path does not always lead back to the value: values that name
a date format, null markers, slashes within values. What is not certain is left out here, so that a
caller who prunes by it keeps such a partition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as at

from pyhudi.errors import UnsupportedTableFeature

if TYPE_CHECKING:
    from pyhudi.config import TableConfig
    from pyhudi.where import Conjunct

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""Folder name of a null or empty value, from table version 5 on; before it was `default`."""

_OLD_NULL_PARTITION = "default"
_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")
_PLAIN_GENERATORS = frozenset({"SIMPLE", "SIMPLE_AVRO", "COMPLEX", "COMPLEX_AVRO"})

_TIMESTAMP_GENERATORS = frozenset({"TIMESTAMP", "TIMESTAMP_AVRO"})

Value = str | int


def path_values(config: TableConfig, schema: pa.Schema, path: str) -> dict[str, pa.Scalar]:
    """Values of the partition columns that a scan takes from the path and not from the files.

    So does Hudi 1.2.0 for plain key generators: an empty text is in the null partition and reads as
    null, a record that a global index left in its old partition reads with the old value. Columns
    are left out, to be read from the files, where the path does not tell their value for certain.

    Raises `UnsupportedTableFeature` when it does not, but the files lack the column.
    """
    found = {}
    plain = config.key_generator in _PLAIN_GENERATORS and not config.slash_separated_dates
    for name, text in (_texts(config, path) or {}).items() if plain else ():
        scalar = _scalar(config, text, schema.field(name).type) if name in schema.names else None
        if scalar is not None:
            found[name] = scalar
    if config.drop_partition_columns:
        _check_all_found(config, schema, path, found)
    return found


def _scalar(config: TableConfig, text: str, kind: pa.DataType) -> pa.Scalar | None:
    """A path's text in the column's type, None where it might be another value or kind of text."""
    if text == NULL_PARTITION:
        return pa.scalar(None, kind)
    if text in ("", _OLD_NULL_PARTITION) or not _is_plain(kind):
        return None
    if not config.hive_style and "=" in text:
        return None
    if not config.url_encode and _ESCAPED.search(text):
        return None
    try:
        return pa.scalar(text).cast(kind)
    except pa.ArrowInvalid:
        return None


def _is_plain(kind: pa.DataType) -> bool:
    numeric = at.is_integer(kind) or at.is_floating(kind) or at.is_decimal(kind)
    return _is_text(kind) or bool(numeric or at.is_boolean(kind) or at.is_date(kind))


def _check_all_found(
    config: TableConfig, schema: pa.Schema, path: str, found: Mapping[str, pa.Scalar]
) -> None:
    lost = [name for name in config.partition_fields if name in schema.names and name not in found]
    if lost:
        raise UnsupportedTableFeature(
            f"hoodie.datasource.write.drop.partition.columns=true: the value of {', '.join(lost)} "
            f"cannot be told from the partition path {path!r} of key generator "
            f"{config.key_generator}",
        )


def partition_filter(
    config: TableConfig, schema: pa.Schema, conjuncts: Sequence[Conjunct]
) -> Callable[[str], bool] | None:
    """A test that is false for partitions without any row that meets the conjuncts.

    None when no conjunct is about a partition column whose value its path tells.
    """
    if config.key_generator not in _PLAIN_GENERATORS or config.slash_separated_dates:
        return None
    fields = [name for name in config.partition_fields if name in schema.names]
    usable = [c for c in conjuncts if c[0] in fields and _path_tells(schema.field(c[0]).type)]
    tests = [(name, _test(op, values.to_pylist())) for name, op, values in usable]
    if not tests:
        return None

    def may_match(path: str) -> bool:
        values = _values(config, schema, path)
        return all(test(values[name]) for name, test in tests if name in values)

    return may_match


def _path_tells(kind: pa.DataType) -> bool:
    return _is_text(kind) or bool(at.is_integer(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(at.is_string(kind) or at.is_large_string(kind))


def _test(op: str, values: Sequence[Any]) -> Callable[[Value], bool]:
    # A slash is a folder's end, so a value with one need not be found in the path.
    if any(isinstance(value, str) and "/" in value for value in values):
        return lambda _: True
    first = values[0]
    match op:
        case "=" | "in":
            return lambda value: value in values
        case "!=":
            return lambda value: value != first
        case "<":
            return lambda value: bool(value < first)
        case "<=":
            return lambda value: bool(value <= first)
        case ">":
            return lambda value: bool(value > first)
        case _:
            return lambda value: bool(value >= first)


def _values(config: TableConfig, schema: pa.Schema, path: str) -> Mapping[str, Value]:
    """The values of a path that are certain."""
    found: dict[str, Value] = {}
    for name, text in (_texts(config, path) or {}).items():
        if name not in schema.names or text in (NULL_PARTITION, _OLD_NULL_PARTITION, ""):
            continue
        if at.is_integer(schema.field(name).type):
            if re.fullmatch("0|-?[1-9][0-9]*", text):
                found[name] = int(text)
        elif "/" not in path or len(config.partition_fields) > 1:
            found[name] = text
    return found


def _texts(config: TableConfig, path: str) -> dict[str, str] | None:
    """The text of each partition field in a path, None when they cannot be told apart."""
    fields = config.partition_fields
    parts = [path] if len(fields) == 1 else path.split("/")
    if len(parts) != len(fields):
        return None
    found = {}
    for name, part in zip(fields, parts, strict=True):
        prefix = f"{name}=" if config.hive_style else ""
        if not part.startswith(prefix):
            return None
        text = part.removeprefix(prefix)
        found[name] = _unescaped(text) if config.url_encode else text
    return found


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def text_columns(config: TableConfig, schema: pa.Schema) -> tuple[str, ...]:
    """Columns that a scan gives as text although the files hold another type.

    Hudi 1.2.0 reads the partition columns of a timestamp key generator so: as the stored value
    turned into text, not as the text in the path.
    """
    if config.key_generator not in _TIMESTAMP_GENERATORS:
        return ()
    found = [schema.field(name) for name in config.partition_fields if name in schema.names]
    return tuple(field.name for field in found if not _is_text(field.type))


def check_readable(config: TableConfig, schema: pa.Schema, columns: Iterable[str]) -> None:
    """Raises `UnsupportedTableFeature` for a partition column that Hudi itself reads wrongly.

    Its value in the path is a number of microseconds, which Hudi 1.2.0 reads back as null for a
    plain key generator and fails on for a timestamp key generator. Other types that make no sense
    for the latter are refused with it.
    """
    plain = config.key_generator in _PLAIN_GENERATORS
    for name in columns:
        if name not in config.partition_fields:
            continue
        kind = schema.field(name).type
        as_text = config.key_generator in _TIMESTAMP_GENERATORS
        shown = at.is_integer(kind) or at.is_date(kind) or _is_text(kind)
        if (plain and at.is_timestamp(kind)) or (as_text and not shown):
            raise UnsupportedTableFeature(
                f"hoodie.table.partition.fields names {name}, a column of type {kind} "
                f"(hoodie.table.keygenerator.type {config.key_generator})",
                hint="The other columns can be read: name them in `columns`.",
            )
