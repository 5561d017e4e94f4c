"""Tasks that pair the rows of a file group at two moments by key. Planning only.

What is held of the older side decides memory, so a big one is cut into buckets of keys, each of
which is a task that reads the files again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.schema.table_schema import is_meta
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.read_tasks import (
    MergeRule,
    ReadTask,
    ScanRequest,
    key_columns,
    scan_schema,
    slice_tasks,
)
from pyhudi.table.table_snapshot import TableSnapshot

HELD_BYTES = 256 * 1024 * 1024
"""About how much of an older side is held at once, by default."""

_GROWTH = 8
"""How much larger than in its file a row may be in memory, as a guess."""


@dataclass(frozen=True)
class MatchTask:
    """Two states of a file group, one of which may be missing. Picklable."""

    before: ReadTask | None
    after: ReadTask | None
    images: pa.Schema
    """The columns of an image."""
    compared: pa.Schema
    """Further columns whose difference makes an update."""
    key_fields: tuple[str, ...]
    touched_logs: tuple[str, ...] | None = None
    """Log files whose keys are the only ones that can differ; None when any can."""
    bucket: tuple[int, int] | None = None
    """Only keys of this bucket of so many."""
    as_json: bool = False
    """Images as JSON text."""

    @property
    def schema(self) -> pa.Schema:
        """All columns to compare, those of the image first."""
        return pa.schema([*self.images, *self.compared])


def image_schema(table: TableSnapshot) -> pa.Schema:
    """The table's data columns, nullable, as scans give them."""
    shown = scan_schema(table)
    return pa.schema([f.with_nullable(True) for f in shown if not is_meta(f.name)])


def plan_side(
    table: TableSnapshot,
    slice_: FileSlice | None,
    rule: MergeRule,
    columns: Sequence[str],
    memory_limit: int | None = None,
) -> ReadTask | None:
    """The reading of one side's columns and keys. Raises as `slice_tasks` does.

    memory_limit: bytes for its log records, None for no limit.
    """
    if slice_ is None:
        return None
    wanted = tuple(dict.fromkeys((*columns, *_roots(table))))
    request = ScanRequest(output=wanted, memory_limit=memory_limit)
    return slice_tasks(table, request, [slice_], rule)[0]


def _roots(table: TableSnapshot) -> list[str]:
    """The columns that hold the record key: of a nested field the column around it."""
    names = table.columns.names
    fields = key_columns(table.config)
    return [name if name in names else name.partition(".")[0] for name in fields]


def bucket_count(held: int, limit: int) -> int:
    """How many buckets keep each below the limit, from the bytes of the files to be held."""
    return max(1, -(-held * _GROWTH // limit))
