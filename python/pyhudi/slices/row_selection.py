"""Rows selected from a table by number: taken where they are written, a batch at a time.

The rows of a write are planned for its files by number. What all files get is as large as the data,
so taking it beforehand would hold the data twice, and on one thread.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_BATCH_ROWS = 64 * 1024


@dataclass(frozen=True)
class SelectedRows:
    """Rows of a table: an Arrow stream that can be read as often as wanted.

    Pickled, it is the rows themselves, since another process does not have the table.
    """

    table: pa.Table
    numbers: pa.Array[Any]
    """Of the rows, ascending, as int64."""

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def slice(self, start: int, count: int | None = None) -> SelectedRows:
        """Some of the rows, in their order."""
        return SelectedRows(self.table, self.numbers.slice(start, count))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows; only the batches of the table that hold any are looked at."""
        given = self.table.to_batches()
        ends = list(accumulate(batch.num_rows for batch in given))
        at = 0
        while at < len(self.numbers):
            number = bisect_right(ends, self.numbers[at].as_py())
            stop = bisect_left(self.numbers, ends[number], at, key=_value)
            first = ends[number] - given[number].num_rows
            for start in range(at, stop, _BATCH_ROWS):
                part = self.numbers.slice(start, min(_BATCH_ROWS, stop - start))
                yield given[number].take(pc.subtract(part, first))
            at = stop

    def to_table(self) -> pa.Table:
        """All of the rows."""
        return pa.Table.from_batches(self.batches(), self.table.schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.table.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return _same, (self.to_table(),)


def _same(rows: pa.Table) -> pa.Table:
    return rows


def _value(number: Any) -> int:
    value: int = number.as_py()
    return value
