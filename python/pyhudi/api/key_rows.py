"""Reads the rows of record keys: what `HudiTable.get` returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pyhudi.api.scan import new_scan
from pyhudi.engine.protocol import Engine
from pyhudi.query.key_lookup import look_up_keys
from pyhudi.table.table_snapshot import TableSnapshot


def read_key_rows(
    table: TableSnapshot, engine: Engine, keys: Any, columns: Sequence[str] | None
) -> pa.Table:
    """Return the rows of a snapshot that have the keys; see `HudiTable.get`."""
    scan = new_scan(table, engine, columns=columns, where=None, limit=None, meta_fields=False)
    lookup = look_up_keys(table, keys)
    if not lookup.distinct:
        return scan.schema.empty_table()
    output = tuple(dict.fromkeys((*scan.request.output, *lookup.columns)))
    request = replace(scan.request, where=lookup.where, output=output)
    rows = lookup.in_order(replace(scan, request=request).to_arrow())
    return rows.select(list(scan.request.output))
