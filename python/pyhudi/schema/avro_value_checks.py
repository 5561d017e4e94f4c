"""Checks values for rules of the Avro schema that Arrow types cannot express.

The rules are the symbols of enums, the encoding of VARIANTs and the required fields of structs. The
Avro encoder of log files checks symbols, too; base files would accept any.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.errors import SchemaMismatch
from pyhudi.input.required_fields import entries_of
from pyhudi.schema.avro_names import Json, inline_references

Path: TypeAlias = tuple[str, ...]
"""A column, followed by fields of structs, `element` of lists and `value` of maps."""

_VARIANT_FIELDS = {"metadata", "value"}


@dataclass(frozen=True)
class ValueRules:
    """Rules for the values of a table, in addition to their Arrow types."""

    symbols: Mapping[Path, list[str]] = field(default_factory=dict)
    """The symbols of each enum."""
    variants: tuple[Path, ...] = ()
    """The VARIANT columns and fields."""
    required: tuple[Path, ...] = ()
    """Struct fields that may be null only if the struct is null."""

    def __bool__(self) -> bool:
        return bool(self.symbols or self.variants)


def value_rules(avro: str) -> ValueRules:
    """Return the rules of a table's Avro schema."""
    if '"enum"' not in avro and '"variant"' not in avro:
        return ValueRules()
    types = list(_types(inline_references(json.loads(avro)), ()))
    return ValueRules(
        {path: avro_type["symbols"] for path, avro_type in types if avro_type["type"] == "enum"},
        tuple(path for path, avro_type in types if _is_variant(avro_type)),
        tuple(
            (*path, child["name"])
            for path, avro_type in types
            if path and avro_type["type"] == "record"
            for child in avro_type["fields"]
            if not (isinstance(child["type"], list) and "null" in child["type"])
        ),
    )


def check_values(rows: pa.Table, rules: ValueRules) -> None:
    """Raise `SchemaMismatch` with the column for a value that breaks a rule."""
    for path, symbols in rules.symbols.items():
        for values in _chunks(rows, path):
            strings = values.drop_null()
            is_symbol = pc.is_in(strings, value_set=pa.array(symbols, strings.type))
            unknown = strings.filter(pc.invert(is_symbol))
            if len(unknown):
                name = ".".join(path)
                msg = f"column {name!r} is an enum, which has no symbol {unknown[0].as_py()!r}"
                raise SchemaMismatch(msg, hint=f"Its symbols are {', '.join(symbols)}.")
    for path in rules.required:
        for structs in _chunks(rows, path[:-1]):
            values = _values_at(structs, path[-1:])
            if values.null_count > structs.null_count:
                name = ".".join(path)
                msg = f"column {name!r} has nulls, but the table requires a value"
                hint = "Give the field a value, or make the whole struct null."
                raise SchemaMismatch(msg, hint=hint)
    for path in rules.variants:
        for values in _chunks(rows, path):
            _native.check_variants(values, ".".join(path))


def _chunks(rows: pa.Table, path: Path) -> Iterator[pa.Array[Any]]:
    if path[0] in rows.column_names:
        for chunk in rows.column(path[0]).chunks:
            yield _values_at(chunk, path[1:])


def _is_variant(avro_type: dict[str, Any]) -> bool:
    fields = avro_type.get("fields", ())
    return (
        avro_type.get("logicalType") == "variant"
        and {child["name"] for child in fields} == _VARIANT_FIELDS
    )


def _types(avro_type: Json, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield enums and records at any depth."""
    if isinstance(avro_type, list):
        for branch in avro_type:
            yield from _types(branch, path)
    elif isinstance(avro_type, dict):
        match avro_type["type"]:
            case "enum":
                yield path, avro_type
            case "record":
                yield path, avro_type
                for child in avro_type["fields"]:
                    yield from _types(child["type"], (*path, child["name"]))
            case "array":
                yield from _types(avro_type["items"], (*path, "element"))
            case "map":
                yield from _types(avro_type["values"], (*path, "value"))
            case dict() | list() as inner:
                yield from _types(inner, path)


def _values_at(values: pa.Array[Any], path: Path) -> pa.Array[Any]:
    for name in path:
        if pa.types.is_struct(values.type):
            values = values.flatten()[values.type.get_field_index(name)]
        elif pa.types.is_map(values.type):
            values = entries_of(values).flatten().field(1)
        else:
            values = values.flatten()
    return values
