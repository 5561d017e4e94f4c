"""The table of rejected rows, which is created when the first row is rejected."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING
from zlib import crc32

import pyarrow as pa

from pyhudi.errors import AfterCommitError, ConfigError
from pyhudi.write.rejected_rows import RejectedRows

if TYPE_CHECKING:
    from pyhudi.api.table import HudiTable
    from pyhudi.api.table_handle import TableHandle


def new_rejected_rows(
    table: TableHandle, target: str | os.PathLike[str] | HudiTable, commit_id: str | None
) -> RejectedRows:
    """Return what stores the rejected rows of a write to a table.

    target: the other table, or its location. commit_id: of the write. Raises `ConfigError` if both
    tables are the same.
    """
    uri = os.fspath(target) if isinstance(target, (str, os.PathLike)) else target.uri
    if uri.rstrip("/") == table.uri.rstrip("/"):
        raise ConfigError(f"rejected is {uri!r}, the table itself", hint="Name another table.")

    def store(rows: pa.RecordBatchReader, identity: str) -> None:
        opened = target
        if isinstance(opened, (str, os.PathLike)):
            # That module imports the handle, which imports this module.
            opened = import_module("pyhudi.api.create").create_table(
                uri,
                rows.schema,
                key=None,
                version=table.version,
                mode="ignore",
                storage_options=table.storage.options,
            )
        own_id = None if commit_id is None else f"{commit_id} {crc32(identity.encode()):08x}"
        # The rows are committed then.
        with suppress(AfterCommitError):
            opened.insert(rows, schema_mode="merge", commit_id=own_id)

    return RejectedRows(store)
