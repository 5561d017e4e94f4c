"""Counters of a write's input rows, updated while the rows are read.

Rows in other processes are not counted, since that needs another job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.index.protocol import IndexedTable
from pyhudi.index.tagging import cross_partition_duplicates
from pyhudi.txn.result import WriteResult


@dataclass
class RowCounters:
    """The counters of one write; final once all of its rows are read."""

    rows_in: int = 0
    """Rows of the input."""
    dropped: int = 0
    """Rows that lost to another input row of their key, or whose key the table has."""
    inserted_duplicates: int = 0
    """Inserted rows with keys that the table already has, if these are counted."""
    cross_partition_duplicates: int = 0
    """Dropped rows whose winner is in another partition: only a global index drops them."""

    def count_chunks(self, chunks: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield the chunks of the input and count their rows."""
        for chunk in chunks:
            self.rows_in += chunk.num_rows
            yield chunk

    def count_dropped(self, before: pa.Table, after: pa.Table) -> None:
        """Count the rows that a step removed."""
        self.dropped += before.num_rows - after.num_rows

    def count_combined(self, table: IndexedTable, before: pa.Table, after: pa.Table) -> None:
        """Count the rows that were dropped when rows of one key were combined."""
        self.count_dropped(before, after)
        is_in_other_partition = cross_partition_duplicates(table, before, after)
        self.cross_partition_duplicates += pc.sum(is_in_other_partition).as_py() or 0


def with_row_counts(result: WriteResult, counters: RowCounters | None) -> WriteResult:
    """Return the result with row counts, or unchanged if the rows were not counted."""
    if counters is None:
        return result
    return replace(result, rows_in=counters.rows_in, duplicates_dropped=counters.dropped)
