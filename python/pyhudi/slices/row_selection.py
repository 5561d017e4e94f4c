"""Rows selected from a table by number, and copied batch by batch when they are written.

A write assigns rows to its files by number. All files together are as large as the data, so copying
the rows beforehand would double the memory, on one thread.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.cached_property import cached_property

_BATCH_ROWS = 64 * 1024


@dataclass(frozen=True)
class SelectedRows:
    """Rows of a table: an Arrow stream that can be read repeatedly.

    It pickles as the rows themselves, since another process does not have the table.
    """

    table: pa.Table
    numbers: pa.Array[Any]
    """Row numbers, ascending, as int64."""
    batches_of_table: Sequence[pa.RecordBatch] | None = None
    """The batches of the table; None if they are not listed yet."""

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def slice(self, start: int, count: int | None = None) -> SelectedRows:
        """Return a range of the rows, in their order."""
        numbers = self.numbers.slice(start, count)
        return SelectedRows(self.table, numbers, self._table_batches)

    @cached_property
    def _table_batches(self) -> Sequence[pa.RecordBatch]:
        return self.batches_of_table or self.table.to_batches()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows; only batches of the table with selected rows are read."""
        table_batches = self._table_batches
        ends = list(accumulate(batch.num_rows for batch in table_batches))
        at = 0
        while at < len(self.numbers):
            number = bisect_right(ends, self.numbers[at].as_py())
            stop = bisect_left(self.numbers, ends[number], at, key=_value)
            first = ends[number] - table_batches[number].num_rows
            for start in range(at, stop, _BATCH_ROWS):
                part = self.numbers.slice(start, min(_BATCH_ROWS, stop - start))
                yield _take(table_batches[number], pc.subtract(part, first))
            at = stop

    def to_table(self) -> pa.Table:
        """Return all of the rows."""
        return pa.Table.from_batches(self.batches(), self.table.schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.table.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return _same, (self.to_table(),)


def _take(batch: pa.RecordBatch, rows: pa.Array[Any]) -> pa.RecordBatch:
    """Return rows of a batch. Columns that share their values are copied once, and share the copy.

    The record key often is a column of the data.
    """
    positions: dict[Any, int] = {}
    for at, column in enumerate(batch.columns):
        positions.setdefault(_values_of(column), at)
    distinct = list(positions.values())
    copied_columns = batch.select(distinct).take(rows).columns
    by_values = dict(zip(positions, copied_columns, strict=True))
    columns = [by_values[_values_of(column)] for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _values_of(column: pa.Array[Any]) -> Any:
    """Return what two columns have in common if one is the other."""
    addresses = [buffer.address if buffer else None for buffer in column.buffers()]
    return (column.type, column.offset, len(column), *addresses)


def _same(rows: pa.Table) -> pa.Table:
    return rows


def _value(number: Any) -> int:
    value: int = number.as_py()
    return value
