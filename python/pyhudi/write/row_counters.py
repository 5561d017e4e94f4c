"""Counters of a write's input rows, updated as they pass.

Rows in other processes are not counted: that would take another job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.txn.result import WriteResult


@dataclass
class RowCounters:
    """The counters of one write. They are final once its rows were read to their end."""

    rows_in: int = 0
    """Rows of the data."""
    dropped: int = 0
    """Rows dropped because another input row with their key wins, or the table has their key."""
    inserted_duplicates: int = 0
    """Inserted rows whose keys the table already has, if they are counted."""
    cross_partition_duplicates: int = 0
    """Dropped rows whose winner is in another partition, and which unique keys alone would drop."""

    def count_pieces(self, pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Chunks of the data, counted as they are read."""
        for piece in pieces:
            self.rows_in += piece.num_rows
            yield piece

    def count_dropped(self, before: pa.Table, after: pa.Table) -> pa.Table:
        """Count the rows that a step removed, and return the others."""
        self.dropped += before.num_rows - after.num_rows
        return after


def with_row_counts(result: WriteResult, counters: RowCounters | None) -> WriteResult:
    """Return the result with row counts, or unchanged if the rows were not counted."""
    if counters is None:
        return result
    return replace(result, rows_in=counters.rows_in, duplicates_dropped=counters.dropped)
