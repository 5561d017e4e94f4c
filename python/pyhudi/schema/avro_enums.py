"""Enums of Avro: the strings that a column or nested field may have, which Arrow types do not show.

Log files refuse other strings in columns, base files do not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import SchemaMismatch
from pyhudi.input.required_fields import entries_of
from pyhudi.schema.avro_names import Json, inline_references

Path: TypeAlias = tuple[str, ...]
"""A column and its parts: fields of structs, `element` of lists, `value` of maps."""


def enum_symbols(avro: str) -> dict[Path, list[str]]:
    """Return the symbols of each enum in the table's Avro schema."""
    if '"enum"' not in avro:
        return {}
    return dict(_enums(inline_references(json.loads(avro)), ()))


def check_symbols(rows: pa.Table, symbols: Mapping[Path, list[str]]) -> None:
    """Raise `SchemaMismatch` naming the column for a value that is not one of its symbols."""
    for path, known in symbols.items():
        if path[0] not in rows.column_names:
            continue
        for chunk in rows.column(path[0]).chunks:
            values = _values_at(chunk, path[1:]).drop_null()
            odd = values.filter(pc.invert(pc.is_in(values, value_set=pa.array(known, values.type))))
            if len(odd):
                name = ".".join(path)
                msg = f"column {name!r} is an enum, which has no symbol {odd[0].as_py()!r}"
                raise SchemaMismatch(msg, hint=f"Its symbols are {', '.join(known)}.")


def _enums(kind: Json, path: Path) -> Iterator[tuple[Path, list[str]]]:
    if isinstance(kind, list):
        for branch in kind:
            yield from _enums(branch, path)
    elif isinstance(kind, dict):
        match kind["type"]:
            case "enum":
                yield path, kind["symbols"]
            case "record":
                for field in kind["fields"]:
                    yield from _enums(field["type"], (*path, field["name"]))
            case "array":
                yield from _enums(kind["items"], (*path, "element"))
            case "map":
                yield from _enums(kind["values"], (*path, "value"))
            case dict() | list() as inner:
                yield from _enums(inner, path)


def _values_at(values: pa.Array[Any], path: Path) -> pa.Array[Any]:
    for name in path:
        if pa.types.is_struct(values.type):
            values = values.flatten()[values.type.get_field_index(name)]
        elif pa.types.is_map(values.type):
            values = entries_of(values).flatten().field(1)
        else:
            values = values.flatten()
    return values
