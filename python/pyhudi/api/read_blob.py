"""Reads the bytes of a BLOB column, instead of the structs that scans return.

This module opens the storage that a reference names; the Rust core reads the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import MissingFile, SchemaMismatch, UnsupportedTableFeature
from pyhudi.input.semi_structured import is_blob
from pyhudi.storage.option_names import BY_SCHEME
from pyhudi.storage.options import check_no_credentials, is_hdfs, is_remote, scheme_of
from pyhudi.storage.storage import Storage

if TYPE_CHECKING:
    from pyhudi import _native
    from pyhudi.api.scan import Scan

_BATCH_BYTES = 64 << 20
"""Maximum bytes of BLOBs in a batch, unless a single BLOB is larger."""


def blob_reader(
    scan: Scan, column: str, storage_options: Mapping[str, object] | None
) -> pa.RecordBatchReader:
    """Return the rows of a scan with the bytes of a BLOB column; see `Scan.read_blob`."""
    columns = scan.table_schema
    if column not in columns.names:
        raise SchemaMismatch(f"the table has no column {column!r}")
    if not is_blob(columns.field(column)):
        msg = f"column {column!r} is {columns.field(column).type}, not BLOB"
        raise SchemaMismatch(msg, hint="Name a column of the type pyhudi.blob().")
    output = scan.request.output
    if column not in output:
        request = replace(scan.request, output=(*output, column))
        scan = replace(scan, request=request)
    schema = pa.schema(
        [pa.field(f.name, pa.binary()) if f.name == column else f for f in scan.schema]
    )
    stores = _Stores(scan.table.storage, column, storage_options)
    return pa.RecordBatchReader.from_batches(schema, _batches(scan, column, schema, stores))


def _batches(
    scan: Scan, column: str, schema: pa.Schema, stores: _Stores
) -> Iterator[pa.RecordBatch]:
    from pyhudi import _native  # noqa: PLC0415 - planning needs no core

    at = schema.get_field_index(column)
    max_bytes = min(scan.request.memory_limit or _BATCH_BYTES, _BATCH_BYTES)
    first = 0
    for batch in scan.to_reader():
        blobs = batch.column(at)
        opened = stores.open(_native.blob_roots(blobs, column))
        start = 0
        while start < batch.num_rows:
            with _explain_missing_blob(column):
                values = _native.read_blobs(
                    blobs, column, opened, first_row=first, start=start, most_bytes=max_bytes
                )
            part = batch.slice(start, len(values))
            columns = [*part.columns[:at], values, *part.columns[at + 1 :]]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
            start += len(values)
        first += batch.num_rows


@contextmanager
def _explain_missing_blob(column: str) -> Iterator[None]:
    """Let the error for a missing file in the block explain that a BLOB refers to the file."""
    try:
        yield
    except MissingFile as error:
        msg = f"{error.file}: not found; a BLOB of column {column!r} refers to it"
        hint = "Restore the file, or write other BLOBs to the rows that refer to it."
        raise MissingFile(msg, file=error.file, hint=hint) from error


class _Stores:
    """The storages that references name, by root."""

    def __init__(
        self, table: Storage, column: str, storage_options: Mapping[str, object] | None
    ) -> None:
        self._table = table
        self._column = column
        self._options = storage_options
        self._opened: dict[str, _native.Store] = {}

    def open(self, roots: list[str]) -> dict[str, _native.Store]:
        """Return the storages opened so far, including these roots."""
        for root in roots:
            if root not in self._opened:
                self._opened[root] = self._storage(root).native
        return self._opened

    def _storage(self, root: str) -> Storage:
        uri = root
        if not root:
            uri = self._default_root()
        if not is_remote(uri):
            return Storage("/" if uri in ("file://", "/") else uri)
        check_no_credentials(uri, f"a reference of column {self._column!r}")
        if self._options is not None:
            return Storage(uri, self._options)
        names = BY_SCHEME.get(scheme_of(self._table.uri) or "")
        is_same_type = names is BY_SCHEME.get(scheme_of(uri) or "")
        return Storage(uri, self._table.options if is_same_type else None)

    def _default_root(self) -> str:
        """Return the root of paths without a scheme, which are in Hadoop's default file system."""
        uri = self._table.uri
        if not is_remote(uri):
            return "/"
        if is_hdfs(uri):
            return "/".join(uri.split("/")[:3])
        msg = f"column {self._column!r}: reference.external_path has no scheme"
        hint = f"pyhudi does not know its storage: write it as {scheme_of(uri)}://…"
        raise UnsupportedTableFeature(msg, hint=hint)
