"""Reads the keys of a table's file slices."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyhudi import _native
from pyhudi.config.meta_columns import RECORD_KEY
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.read_tasks import key_columns
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.txn.write_target import find_committed_blocks


@dataclass(frozen=True)
class KeySource:
    """How to read the keys of a table's slices."""

    storage: Storage
    schema: pa.Schema
    """With meta fields, as files have them."""
    valid_instants: tuple[str, ...] | None = None
    """Committed instants, if log files can have blocks of other instants."""
    timeline_start: str | None = None

    positions: bool = False
    """Tagging records the row positions in base files too."""
    key_columns: tuple[str, ...] = (RECORD_KEY,)
    """The columns from which keys are read."""

    @classmethod
    def of(cls, table: TableSnapshot, *, positions: bool = False) -> KeySource:
        """Return it for a table's files and timeline."""
        committed, start = find_committed_blocks(table)
        columns = key_columns(table.config)
        return cls(table.storage, table.columns, committed, start, positions, columns)

    def keys_of(self, slice_: FileSlice, *, with_base: bool = True) -> _native.BatchReader:
        """Return every key of a slice, also deleted ones. with_base: those of the base file too."""
        return _native.read_keys(
            self.storage.native,
            base=slice_.base.path if slice_.base and with_base else None,
            logs=[log.path for log in slice_.logs],
            schema=self.schema,
            valid_instants=self.valid_instants,
            timeline_start=self.timeline_start,
            key_fields=self.key_columns,
        )
