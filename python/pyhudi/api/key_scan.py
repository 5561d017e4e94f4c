"""Reads a scan whose filter lists record keys as `HudiTable.get` reads rows: without a plan.

The record index locates the keys, and only pages with their rows are read. The filter is applied to
these rows, so that its other conditions, and keys in another format, have the effect that they have
in any scan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.engine.local import LocalEngine
from pyhudi.query.key_reader import KeyReaders, can_read
from pyhudi.schema.key_predicates import find_record_keys
from pyhudi.schema.predicates import filter_rows
from pyhudi.schema.table_schema import is_meta
from pyhudi.table.scan_columns import scan_schema

if TYPE_CHECKING:
    from pyhudi.api.scan import Scan

_MAX_KEYS = 100
"""A plan reads the rows of more keys: it decodes whole columns, but each page once."""


def read_listed_keys(scan: Scan, readers: KeyReaders) -> pa.Table | None:
    """Return the rows of a scan, by partition and file group, if its filter lists record keys.

    None if there is no record index of the rows that the scan reads, if the filter lists no keys or
    many, or if options of the scan need a plan.

    readers: of the handle that the scan was made from.
    """
    table, request = scan.table, scan.request
    if request.where is None or scan.incremental_range is not None or request.read_optimized:
        return None
    if RECORD_INDEX not in table.config.metadata_partitions or not can_read(table):
        return None
    if not isinstance(scan.engine, LocalEngine):
        return None
    # The values of partition columns may differ from those in files.
    keys = find_record_keys(table.config, request.where.conjuncts, table.config.partition_fields)
    if not keys or len(keys) > _MAX_KEYS:
        return None
    table_schema = scan_schema(table)
    columns = tuple(dict.fromkeys((*request.output, *request.where.columns)))
    is_default = columns == tuple(name for name in table_schema.names if not is_meta(name))
    names = None if is_default else columns
    reader = readers.find(table, names)
    if reader is None:
        schema = pa.schema([table_schema.field(name) for name in columns])
        reader = readers.add(table, scan.engine, names, schema)
    if reader.index is None:
        return None
    rows = reader.read(keys, by_slice=True)
    if rows is None:
        readers.forget(table)
        return None
    matches = filter_rows(pa.Table.from_batches([rows]), request.where).slice(0, request.limit)
    found = matches.select(list(request.output))
    return pa.Table.from_arrays(found.columns, schema=scan.schema)
