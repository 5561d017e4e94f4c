"""Values that Avro's types allow and Arrow's do not tell: symbols of enums, bytes of VARIANTs.

Log files refuse other symbols in columns by themselves, base files do not.
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
"""A column and what is below it: fields of structs, `element` of lists, `value` of maps."""

_VARIANT_FIELDS = {"metadata", "value"}


@dataclass(frozen=True)
class ValueRules:
    """What values of a table's columns must be, beyond their Arrow types."""

    symbols: Mapping[Path, list[str]] = field(default_factory=dict)
    """Those of each enum."""
    variants: tuple[Path, ...] = ()
    """Where VARIANTs are."""
    required: tuple[Path, ...] = ()
    """Fields of structs that have a value wherever the struct has one."""

    def __bool__(self) -> bool:
        return bool(self.symbols or self.variants)


def value_rules(avro: str) -> ValueRules:
    """The rules that the table's Avro schema has."""
    if '"enum"' not in avro and '"variant"' not in avro:
        return ValueRules()
    types = list(_types(inline_references(json.loads(avro)), ()))
    return ValueRules(
        {path: kind["symbols"] for path, kind in types if kind["type"] == "enum"},
        tuple(path for path, kind in types if _is_variant(kind)),
        tuple(
            (*path, each["name"])
            for path, kind in types
            if path and kind["type"] == "record"
            for each in kind["fields"]
            if not (isinstance(each["type"], list) and "null" in each["type"])
        ),
    )


def check_values(rows: pa.Table, rules: ValueRules) -> None:
    """Raises `SchemaMismatch` naming the column for a value that breaks a rule."""
    for path, known in rules.symbols.items():
        for values in _chunks(rows, path):
            given = values.drop_null()
            odd = given.filter(pc.invert(pc.is_in(given, value_set=pa.array(known, given.type))))
            if len(odd):
                name = ".".join(path)
                msg = f"column {name!r} is an enum, which has no symbol {odd[0].as_py()!r}"
                raise SchemaMismatch(msg, hint=f"Its symbols are {', '.join(known)}.")
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


def _is_variant(kind: dict[str, Any]) -> bool:
    fields = kind.get("fields", ())
    return (
        kind.get("logicalType") == "variant"
        and {each["name"] for each in fields} == _VARIANT_FIELDS
    )


def _types(kind: Json, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Enums and records, at any depth."""
    if isinstance(kind, list):
        for branch in kind:
            yield from _types(branch, path)
    elif isinstance(kind, dict):
        match kind["type"]:
            case "enum":
                yield path, kind
            case "record":
                yield path, kind
                for each in kind["fields"]:
                    yield from _types(each["type"], (*path, each["name"]))
            case "array":
                yield from _types(kind["items"], (*path, "element"))
            case "map":
                yield from _types(kind["values"], (*path, "value"))
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
