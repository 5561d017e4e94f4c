"""Base files of hundreds of columns, which are decoded some columns at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi

COLUMNS = 600


def wide(rows: int, columns: int = COLUMNS) -> pa.Table:
    """Structs among them, whose leaves are more than one."""
    found: dict[str, object] = {"id": list(range(rows))}
    for number in range(columns):
        numbers = [number * row if row % 3 else None for row in range(rows)]
        if number % 7 == 0:
            found[f"c{number:05}"] = [{"a": value, "b": str(value)} for value in numbers]
        else:
            found[f"c{number:05}"] = numbers if number % 2 else list(map(str, numbers))
    return pa.table(found)


@pytest.mark.parametrize("limit", [None, 1 << 20])
def test_rows_of_many_columns_are_the_same(tmp_path: Path, limit: int | None) -> None:
    """Also of several row groups, and after a rewrite."""
    data = wide(300)
    table = pyhudi.create_table(tmp_path / "t", data.schema, key="id")
    table.bulk_insert(data, memory_limit=limit)
    if limit:
        files = list((tmp_path / "t").glob("*.parquet"))
        assert max(pq.ParquetFile(file).num_row_groups for file in files) > 1
    assert table.refresh().to_arrow().sort_by("id").equals(data)
    some = [name for at, name in enumerate(data.column_names) if at % 2 == 0]
    assert table.scan(some).to_arrow().sort_by("id").equals(data.select(some))
    where = table.scan(some, where="id >= 290").to_arrow().sort_by("id")
    assert where.equals(data.select(some).slice(290))
    table.upsert(data.slice(7, 2), memory_limit=limit)
    assert table.refresh().to_arrow().sort_by("id").equals(data)


READ = """
import sys
import pyhudi
from tests.unit.test_write_memory import MIB, peak_mib

table = pyhudi.open_table(sys.argv[1])
table.count()
before = peak_mib()
for batch in table.scan(memory_limit=16 * MIB).to_reader():
    assert batch.num_rows
print(peak_mib() - before)
"""


@pytest.mark.slow
def test_reading_many_columns_takes_little_memory(tmp_path: Path) -> None:
    """Each column of zstd took 95 KB as long as the file was open: 380 MB here."""
    pyhudi.create_table(tmp_path / "t", wide(20, 4000), key="id")
    arguments = [sys.executable, "-c", READ, str(tmp_path / "t")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 150
