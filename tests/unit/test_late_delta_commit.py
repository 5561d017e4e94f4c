"""A delta commit of the metadata table that was completed after it had been rolled back.

Its writer stood still between its last look at the timeline and its last file (seed 7000185 of
v9-mor-bucket-metadata-appends), and may have died since.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import CorruptTable
from pyhudi.metadata.commits_missing import check_files
from tests.helpers.metadata_table import metadata_table
from tests.sim.crash import rows_read

TIMELINE = Path(".hoodie/metadata/.hoodie/timeline")


def rows(first: int, value: int) -> pa.Table:
    return pa.table({"id": [f"k{n}" for n in range(first, first + 4)], "v": [value] * 4})


@pytest.mark.parametrize("version", [8, 9])
def test_the_table_is_read_and_written_to_all_the_same(tmp_path: Path, version: int) -> None:
    base = tmp_path / "t"
    table = pyhudi.create_table(base, rows(0, 0).schema, key="id", type="mor", version=version)
    table.upsert(rows(0, 1))
    late = table.upsert(rows(2, 2)).instant
    (completed,) = (base / TIMELINE).glob(f"{late}_*.deltacommit")
    content = completed.read_bytes()
    table.rollback(late)
    assert not completed.exists()
    completed.write_bytes(content)
    expected = [{"id": f"k{n}", "v": 1} for n in range(4)]
    for metadata in ("true", "false"):
        found = rows_read(base, metadata)
        assert [{name: row[name] for name in ("id", "v")} for row in found] == expected
    pyhudi.open_table(base).upsert(rows(3, 3))
    assert rows_read(base, "true") == rows_read(base, "false")
    assert [row["v"] for row in rows_read(base, "true")] == [1, 1, 1, 3, 3, 3, 3]


def test_a_file_that_nobody_took_back_is_missed(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = pyhudi.create_table(base, rows(0, 0).schema, key="id", type="mor")
    table.upsert(rows(0, 1))
    with pytest.raises(CorruptTable, match=r"files/.* is missing"):
        check_files(metadata_table(table.storage).timeline, "files", {})
