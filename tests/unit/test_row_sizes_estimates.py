from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import pyhudi
from pyhudi.config.write_options import WriteOptions
from pyhudi.write import row_sizes
from pyhudi.write.write_context import WriteContext


def test_row_size_comes_from_large_enough_commits(tmp_path: Path) -> None:
    rows = pa.table({"id": [f"key {number}" for number in range(100)], "ts": range(100)})
    table = pyhudi.create_table(tmp_path / "t", rows, key="id", order_by="ts")
    size = sum(file.stat().st_size for file in (tmp_path / "t").glob("*.parquet"))
    timeline = WriteContext.open(table, None).timeline
    assert row_sizes.row_size(timeline, WriteOptions()) == 1024
    any_commit = WriteOptions(record_size_threshold=0.0)
    assert row_sizes.row_size(timeline, any_commit) == -(-size // 100)
    assert row_sizes.row_size(timeline, WriteOptions(small_file_limit=size)) == 1024
    assert row_sizes.row_size(timeline, WriteOptions(small_file_limit=size - 1)) == -(-size // 100)
