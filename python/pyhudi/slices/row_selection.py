"""Rows selected from a table by number, and copied batch by batch when they are written.

A write assigns rows to its files by number. All files together are as large as the data, so copying
the rows beforehand would double the memory, on one thread.
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
    """Rows of a table: an Arrow stream that can be read repeatedly.

    It pickles as the rows themselves, since another process does not have the table.
    """

    table: pa.Table
    numbers: pa.Array[Any]
    """Row numbers, ascending, as int64."""

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def slice(self, start: int, count: int | None = None) -> SelectedRows:
        """Return a range of the rows, in their order."""
        return SelectedRows(self.table, self.numbers.slice(start, count))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows; only batches of the table with selected rows are read."""
        table_batches = self.table.to_batches()
        ends = list(accumulate(batch.num_rows for batch in table_batches))
        at = 0
        while at < len(self.numbers):
            number = bisect_right(ends, self.numbers[at].as_py())
            stop = bisect_left(self.numbers, ends[number], at, key=_value)
            first = ends[number] - table_batches[number].num_rows
            for start in range(at, stop, _BATCH_ROWS):
                part = self.numbers.slice(start, min(_BATCH_ROWS, stop - start))
                yield table_batches[number].take(pc.subtract(part, first))
            at = stop

    def to_table(self) -> pa.Table:
        """Return all of the rows."""
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
