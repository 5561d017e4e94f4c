"""Crashes at every change of a write that deletes keys of a record index, or moves them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import CorruptTable
from pyhudi.storage.storage import Storage
from pyhudi.write import overwrite, upsert
from tests.helpers.record_index import check_index
from tests.helpers.tables import unpack
from tests.sim.crash import Handle
from tests.sim.states import recorded

TABLES = [
    "v6_cow_record_index",
    "v9_cow_record_index",
    "v9_mor_record_index",
    "v9_mor_partitioned_record_index",
]
OPTIONS = {
    "hoodie.index.bloom.num_entries": "64",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.record.index.update.partition.path": "true",
}


def replace_some(handle: Handle, data: pa.Table) -> None:
    """One partition loses its rows, another one is new."""
    overwrite.overwrite_partitions(handle, data)


def move_some(handle: Handle, data: pa.Table) -> None:
    upsert.upsert(handle, data)


@pytest.mark.parametrize("write", [replace_some, move_some])
@pytest.mark.parametrize("name", TABLES)
def test_record_index_matches_rows_after_crash(
    tmp_path: Path, name: str, write: Callable[[Handle, pa.Table], None]
) -> None:
    unpack(name, tmp_path)
    first = pyhudi.open_table(tmp_path / name).scan().to_arrow().combine_chunks()
    new = first.slice(0, 3).set_column(5, "city", pa.array(["new-city"] * 3))
    data = pa.concat_tables([first.slice(3, 2), new])
    whole = recorded(
        tmp_path / name, tmp_path, lambda storage: write(Handle(storage, OPTIONS), data)
    )
    check_index(whole.base)
    for n, copy in whole.deaths(one_in=2):
        again: Any = first.slice(0, 6)
        upsert.upsert(Handle(Storage(str(copy)), OPTIONS), again)
        assert_once(copy)
        try:
            check_index(copy, f"after change {n}")
        except CorruptTable:
            assert "v6" in name, f"after change {n}"


def assert_once(base: Path) -> None:
    """No key is there twice, where it may be in one partition only."""
    keys = pyhudi.open_table(base).scan().to_arrow().column("id").to_pylist()
    assert len(set(keys)) == len(keys) or "partitioned" in base.name
