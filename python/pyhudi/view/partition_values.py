"""Partition paths as values of the partition columns, as far as a path can tell.

Building paths is the writer's part. A path does not always lead back to the value: values that name
a date format, null markers, slashes within values. What is not certain is left out here, so that a
caller who prunes by it keeps such a partition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow.types as at

from pyhudi.errors import UnsupportedTableFeature

if TYPE_CHECKING:
    import pyarrow as pa

    from pyhudi.config import TableConfig
    from pyhudi.where import Conjunct

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""Folder name of a null or empty value, from table version 5 on; before it was `default`."""

_OLD_NULL_PARTITION = "default"
_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")
_PLAIN_GENERATORS = frozenset({"SIMPLE", "SIMPLE_AVRO", "COMPLEX", "COMPLEX_AVRO"})

_TIMESTAMP_GENERATORS = frozenset({"TIMESTAMP", "TIMESTAMP_AVRO"})

Value = str | int


def partition_constants(config: TableConfig, path: str) -> dict[str, str]:
    """Values, as text, of partition columns that the data files lack; a null one is left out.

    Raises `UnsupportedTableFeature` when the path does not tell them.
    """
    texts = _texts(config, path)
    if texts is None or config.key_generator not in _PLAIN_GENERATORS:
        raise UnsupportedTableFeature(
            "hoodie.datasource.write.drop.partition.columns=true: the values of "
            f"{', '.join(config.partition_fields)} cannot be told from the partition path {path!r} "
            f"of key generator {config.key_generator}",
        )
    return {name: text for name, text in texts.items() if text != NULL_PARTITION}


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

    Hudi 1.2.0 reads the partition columns of a timestamp key generator so: as the stored value turned
    into text, not as the text in the path. Raises `UnsupportedTableFeature` for a type that it cannot
    read in that place either.
    """
    if config.key_generator not in _TIMESTAMP_GENERATORS:
        return ()
    found = [schema.field(name) for name in config.partition_fields if name in schema.names]
    for field in found:
        kind = field.type
        if not (at.is_integer(kind) or at.is_date(kind) or _is_text(kind)):
            raise UnsupportedTableFeature(
                f"hoodie.table.keygenerator.type={config.key_generator} with the partition column "
                f"{field.name!r} of type {kind}",
            )
    return tuple(field.name for field in found if not _is_text(field.type))
