"""Enums of Avro: which texts a column may hold, which its Arrow type does not tell.

Only columns are looked at, not fields of structs: log files refuse those, base files do not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import SchemaMismatch


def enum_symbols(avro: str) -> dict[str, list[str]]:
    """The symbols of each column that is an enum, by the table's Avro schema."""
    if '"enum"' not in avro:
        return {}
    record = json.loads(avro)
    found: dict[str, list[str]] = {}
    named: dict[str, list[str]] = {}
    for field in record["fields"]:
        kind = field["type"]
        for branch in kind if isinstance(kind, list) else [kind]:
            if isinstance(branch, dict) and branch["type"] == "enum":
                found[field["name"]] = named[_full_name(branch, record)] = branch["symbols"]
            elif isinstance(branch, str) and branch in named:
                found[field["name"]] = named[branch]
    return found


def _full_name(kind: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    space = kind.get("namespace", record.get("namespace"))
    return f"{space}.{kind['name']}" if space else str(kind["name"])


def check_symbols(rows: pa.Table, symbols: Mapping[str, list[str]]) -> None:
    """Raises `SchemaMismatch` naming the column for a value that is none of its symbols."""
    for name in symbols.keys() & set(rows.column_names):
        column = rows.column(name).drop_null()
        known = pa.array(symbols[name], column.type)
        odd = column.filter(pc.invert(pc.is_in(column, value_set=known)))
        if len(odd):
            msg = f"column {name!r} is an enum, which has no symbol {odd[0].as_py()!r}"
            raise SchemaMismatch(msg, hint=f"Its symbols are {', '.join(symbols[name])}.")
