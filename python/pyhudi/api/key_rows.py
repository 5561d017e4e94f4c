"""Reads the rows of record keys: what `HudiTable.get` returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pyhudi.api.scan import Scan, new_scan
from pyhudi.engine.protocol import Engine
from pyhudi.input.semi_structured import in_schema
from pyhudi.query.key_lookup import KeyLookup, look_up_keys
from pyhudi.query.key_reader import KeyReader, KeyReaders, can_read
from pyhudi.schema.key_predicates import MAX_KEYS
from pyhudi.table.table_snapshot import TableSnapshot

_FEW_KEYS = 16
"""More keys are checked and converted by Arrow."""


def read_key_rows(
    table: TableSnapshot,
    engine: Engine,
    readers: KeyReaders,
    keys: Any,
    columns: Sequence[str] | None,
) -> pa.Table:
    """Return the rows of a snapshot that have the keys; see `HudiTable.get`.

    readers: the handle's.
    """
    names = None if columns is None else tuple(columns)
    reader = readers.find(table, names)
    if reader is not None and reader.takes_strings and _is_list_of_strings(keys):
        rows = reader.read(keys)
        if rows is not None:
            return _to_table(rows, reader)
    scan = new_scan(table, engine, columns=columns, where=None, limit=None, meta_fields=False)
    lookup = look_up_keys(table, keys)
    stored = lookup.record_keys
    if not lookup.distinct:
        return scan.schema.empty_table()
    if stored is None or len(stored) > MAX_KEYS or not can_read(table):
        return _scan_rows(scan, lookup)
    if reader is None:
        reader = readers.add(table, engine, names, scan.schema)
    rows = reader.read(stored.to_pylist())
    if rows is None:
        readers.forget(table)
        return _scan_rows(scan, lookup)
    return _to_table(rows, reader)


def _is_list_of_strings(keys: Any) -> bool:
    """Return whether keys are certainly strings, and few enough to check that."""
    if type(keys) is not list or not 0 < len(keys) <= _FEW_KEYS:
        return False
    return all(type(key) is str and key.isascii() for key in keys)


def _to_table(rows: pa.RecordBatch, reader: KeyReader) -> pa.Table:
    if not reader.has_variants:
        return pa.Table.from_batches((rows,), reader.schema)
    return pa.Table.from_batches(in_schema([rows], reader.schema), reader.schema)


def _scan_rows(scan: Scan, lookup: KeyLookup) -> pa.Table:
    """Return the rows with the keys out of a scan with a filter."""
    output = tuple(dict.fromkeys((*scan.request.output, *lookup.columns)))
    request = replace(scan.request, where=lookup.where, output=output)
    rows = lookup.in_order(replace(scan, request=request).to_arrow())
    return rows.select(list(scan.request.output))
