"""What is counted of the rows that a write was given, as they go by.

Rows in other processes are not counted: a job more would be needed for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.txn.result import WriteResult


@dataclass
class RowCounters:
    """The counts of one write. They are right once its rows were read to their end."""

    rows_in: int = 0
    """Rows of the data."""
    dropped: int = 0
    """Rows that another one of their key stands for, or that the table has already."""
    known: int = 0
    """Inserted rows whose keys the table has already, where they are counted."""
    cross_partition_duplicates: int = 0
    """Those among them that another partition would have got, were keys unique in each alone."""

    def count_pieces(self, pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Pieces of the data, counted as they are taken."""
        for piece in pieces:
            self.rows_in += piece.num_rows
            yield piece

    def count_dropped(self, before: pa.Table, after: pa.Table) -> pa.Table:
        """The rows that are left of some, with those counted that are not."""
        self.dropped += before.num_rows - after.num_rows
        return after


def with_row_counts(result: WriteResult, tally: RowCounters | None) -> WriteResult:
    """The result with what was counted; nothing where nobody counted."""
    if tally is None:
        return result
    return replace(result, rows_in=tally.rows_in, duplicates_dropped=tally.dropped)
