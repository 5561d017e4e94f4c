"""Rows with other names of columns than those of the rows that they come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyhudi.input.batches import read_batches
from pyhudi.input.lazy_rows import LazyRows


@dataclass(frozen=True)
class NamedColumns(LazyRows):
    """The columns of other rows under other names, and constants."""

    rows: Any
    names: Sequence[tuple[str, int]]
    """The names, and the positions of their columns in the rows."""
    constants: Sequence[tuple[str, pa.Scalar[Any]]] = ()

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream. Raises as reading the other rows does."""
        schema, batches = read_batches(self.rows)
        fields = [schema.field(at).with_name(name) for name, at in self.names]
        fields += [pa.field(name, value.type) for name, value in self.constants]
        named = pa.schema(fields)
        return pa.RecordBatchReader.from_batches(named, self._convert(batches, named))

    def _convert(
        self, batches: Iterator[pa.RecordBatch], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = [batch.column(at) for _, at in self.names]
            columns += [pa.repeat(value, batch.num_rows) for _, value in self.constants]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
