"""`drop_table` removes a table, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import ConfigError, TableNotFound

ROWS = pa.table({"id": ["a", "b"], "part": ["x", "y"]})


@pytest.mark.parametrize("version", [6, 9])
def test_drop_table_removes_files_and_history(tmp_path: Path, version: int) -> None:
    base = tmp_path / "t"
    pyhudi.create_table(base, ROWS, key="id", partition_by="part", version=version)
    pyhudi.drop_table(base)
    assert not pyhudi.table_exists(base)
    # Other writers may wait for the lock.
    files = {path.name for path in base.rglob("*") if path.is_file()}
    assert files <= {"table_lock.json", "table_lock.json.guard"}
    pyhudi.create_table(base, ROWS, key="id", partition_by="part")
    assert pyhudi.open_table(base).count() == 2


def test_drop_table_leaves_a_location_with_other_files(tmp_path: Path) -> None:
    base = tmp_path / "t"
    pyhudi.create_table(base, ROWS, key="id", partition_by="part")
    (base / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="notes"):
        pyhudi.drop_table(base)
    assert pyhudi.open_table(base).count() == 2


def test_drop_table_needs_a_table(tmp_path: Path) -> None:
    with pytest.raises(TableNotFound):
        pyhudi.drop_table(tmp_path)
