"""Files of a bulk insert by the bytes of their rows, wherever those are large."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.write_options import WriteOptions
from pyhudi.write.row_sizes import RowRange, measure, row_ranges

KIB = 1024
SCHEMA = pa.schema([("id", pa.int64()), ("t", pa.string())])
NOISE = random.Random(1)


def batch(first: int, rows: int, width: int) -> pa.RecordBatch:
    texts = [NOISE.randbytes(width // 2).hex() for _ in range(rows)]
    return pa.record_batch([pa.array(range(first, first + rows)), texts], schema=SCHEMA)


def rows_that_grow() -> Iterator[pa.RecordBatch]:
    """As many bytes as 600 rows of 4 KiB, nearly all of them in the last ones."""
    yield batch(0, 5000, 2)
    yield batch(5000, 600, 4 * KIB)


@pytest.mark.parametrize("limit", [1024 * KIB, None])
@pytest.mark.parametrize("verb", ["bulk_insert", "overwrite"])
def test_file_sizes_are_near_the_option_where_rows_grow(
    tmp_path: Path, verb: str, limit: int | None
) -> None:
    """In memory and in local files."""
    options = {"hoodie.parquet.max.file.size": 256 * KIB, "hoodie.parquet.small.file.limit": 0}
    pyhudi.create_table(tmp_path / "t", SCHEMA, key="id", options=options)
    table = pyhudi.open_table(str(tmp_path / "t"), options=options)
    data = pa.RecordBatchReader.from_batches(SCHEMA, rows_that_grow())
    getattr(table, verb)(data, memory_limit=limit)
    sizes = [file.stat().st_size for file in (tmp_path / "t").glob("*.parquet")]
    assert max(sizes) < 1.5 * 256 * KIB
    assert sum(sizes) > 0.6 * 256 * KIB * len(sizes)
    assert table.refresh().count() == 5600


@dataclass
class Noted:
    """Rows that note how many bytes of them are asked for."""

    rows: pa.Table
    asked: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def slice(self, start: int, count: int) -> pa.Table:
        some = self.rows.slice(start, count)
        self.asked.append(some.nbytes)
        return some

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.rows.slice(0, 0).__arrow_c_stream__(requested_schema)


def test_measuring_holds_few_bytes_of_large_rows() -> None:
    """Rows of 100 KB, of which 20,000 were held once."""
    wide = pa.table({"t": pa.repeat("x" * 100 * KIB, 2000)})
    rows = Noted(wide)
    found = measure({"": rows}, WriteOptions())
    assert sum(stretch.rows for stretch in found[""]) == 2000
    assert max(rows.asked) < 8 * 1024 * KIB
    # Those of the sample come last, all of which are held at a time.
    assert sum(rows.asked[-8:]) < 9 * 1024 * KIB


def test_row_ranges_follow_bytes_of_rows() -> None:
    found = measure({"": Noted(pa.Table.from_batches(rows_that_grow()))}, WriteOptions())[""]
    assert sum(stretch.rows for stretch in found) == 5600
    widths = [size / rows for rows, size in found]
    assert max(widths[: len(widths) * 8 // 10]) < 100
    assert min(widths[len(widths) * 9 // 10 :]) > 1000
    assert measure({"p": Noted(SCHEMA.empty_table())}, WriteOptions()) == {"p": []}


def test_row_ranges_are_whole_parts_if_rows_fit_into_one_file() -> None:
    rows = pa.table({"id": [1, 2]})
    assert row_ranges({"p": rows, "q": rows.slice(0, 0)}, WriteOptions()) == {
        "p": [RowRange(2, 16)],
        "q": [],
    }
