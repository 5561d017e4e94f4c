"""Tasks that pair the rows of a file group in two snapshots by key. Planning only.

The older side determines the memory, so a large one is split into buckets of keys, each of which is
a task that reads the files again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.schema.table_schema import is_meta, root_columns
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.read_tasks import (
    MergeRule,
    ReadTask,
    ScanRequest,
    key_columns,
    slice_tasks,
)
from pyhudi.table.scan_columns import scan_schema
from pyhudi.table.table_snapshot import TableSnapshot

BUFFER_BYTES = 256 * 1024 * 1024
"""Approximate memory for an older side, by default."""

_GROWTH = 8
"""Estimated ratio of a row's size in memory to its size in the file."""


@dataclass(frozen=True)
class MatchTask:
    """Two states of a file group, one of which may be missing. Picklable."""

    before: ReadTask | None
    after: ReadTask | None
    images: pa.Schema
    """The columns of an image."""
    compared: pa.Schema
    """Additional columns whose difference makes a row an update."""
    key_fields: tuple[str, ...]
    touched_logs: tuple[str, ...] | None = None
    """Log files with all keys that can differ; None if any key can."""
    bucket: tuple[int, int] | None = None
    """Only keys of this bucket, and the number of buckets."""
    as_json: bool = False
    """Images as JSON strings."""

    @property
    def schema(self) -> pa.Schema:
        """All columns to compare, those of the image first."""
        return pa.schema([*self.images, *self.compared])


def image_schema(table: TableSnapshot) -> pa.Schema:
    """Return the table's data columns, nullable, as scans return them."""
    projected = scan_schema(table)
    return pa.schema([f.with_nullable(True) for f in projected if not is_meta(f.name)])


def plan_side(
    table: TableSnapshot,
    slice_: FileSlice | None,
    rule: MergeRule,
    columns: Sequence[str],
    memory_limit: int | None = None,
) -> ReadTask | None:
    """Plan the read of one side's columns and keys. Raises as `slice_tasks` does.

    memory_limit: bytes for its log records, None for no limit.
    """
    if slice_ is None:
        return None
    keys = root_columns(table.columns, key_columns(table.config))
    needed = tuple(dict.fromkeys((*columns, *keys)))
    request = ScanRequest(output=needed, memory_limit=memory_limit)
    return slice_tasks(table, request, [slice_], rule)[0]


def bucket_count(buffered_bytes: int, limit: int) -> int:
    """Return the number of buckets that keeps each below the limit, from the bytes of the files."""
    return max(1, -(-buffered_bytes * _GROWTH // limit))
