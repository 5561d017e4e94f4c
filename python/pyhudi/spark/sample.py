"""How large a row is in a file, measured on an executor by some of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from pyhudi.config.write_options import WriteOptions
from pyhudi.spark.flow import collected, mapped, with_types
from pyhudi.write import row_sizes

_ROWS = 20_000
_SIZE = pa.schema([("bytes", pa.int64())])


@dataclass(frozen=True)
class RowSize:
    """Measures the rows of one Spark task."""

    options: WriteOptions
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """One row with the size, none without rows."""
        held = list(batches)
        if held:
            rows = with_types(pa.Table.from_batches(held), self.schema)
            size = row_sizes.sampled_row_size([rows], self.options)
            yield pa.table({"bytes": [size]}, schema=_SIZE)


def sampled_row_size(rows: DataFrame, schema: pa.Schema, options: WriteOptions) -> int:
    """As `row_sizes.sampled_row_size`, of the first rows that Spark comes by."""
    found = collected(mapped(rows.limit(_ROWS), RowSize(options, schema), _SIZE), "measure rows")
    return max((row[0] for row in found), default=options.record_size_estimate)
