"""The rows of a batch as the table gets them: selected columns, without rows that have no key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import compress

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.ingestion.bad_records import BadRecord
from pyhudi.ingestion.column_selection import ColumnSelection
from pyhudi.ingestion.source import BatchRows, SourceBatch


class CheckedRows(BatchRows):
    """The rows of a source's batch that a table can have."""

    def __init__(
        self,
        batch: SourceBatch,
        selection: ColumnSelection,
        required: Sequence[str],
        source: str,
        put_bad: Callable[[Sequence[BadRecord]], None],
    ) -> None:
        """Take columns and rows.

        required: columns without nulls, as far as the batch has them. source: the name of the
        source, for rows that are not of files. put_bad: takes the other records at the end of each
        read.
        """
        self._batch, self._selection, self._source = batch, selection, source
        self._put_bad = put_bad
        columns = selection.schema(batch.rows.schema)
        # A column without values has no type, and is null in the table anyway.
        self._has_type = [
            not pa.types.is_null(each.type) or each.name in required for each in columns
        ]
        self.columns_without_type = [
            each.name
            for each, has_type in zip(columns, self._has_type, strict=True)
            if not has_type
        ]
        # A later batch may not have the column.
        kept = [each.with_nullable(True) for each in compress(columns, self._has_type)]
        self.schema = pa.schema(kept)
        self._required = [name for name in required if name in self.schema.names]

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        return pa.RecordBatchReader.from_batches(self.schema, self._read())

    def _read(self) -> Iterator[pa.RecordBatch]:
        bad = [*self._batch.bad]
        for batch, location in self._batch.rows.with_locations():
            columns = compress(self._selection.arrays(batch), self._has_type)
            selected = pa.RecordBatch.from_arrays(list(columns), schema=self.schema)
            for name in self._required:
                selected = _without_nulls(selected, name, location or self._source, bad)
            yield selected
        self._put_bad(bad)


def _without_nulls(
    batch: pa.RecordBatch, name: str, source: str, bad: list[BadRecord]
) -> pa.RecordBatch:
    column = batch.column(name)
    if not column.null_count:
        return batch
    is_null = column.is_null()
    bad += (
        BadRecord(f"column {name!r} is null", source, json.dumps(row, default=str))
        for row in batch.filter(is_null).to_pylist()
    )
    return batch.filter(pc.invert(is_null))
