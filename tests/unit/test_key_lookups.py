"""Look-ups by record key on an open handle: what they list and open, whatever the table's size."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.metadata.reader import MetadataTable
from pyhudi.slices import partition_values, read_tasks
from pyhudi.storage.storage import Storage
from tests.helpers.table_builder import TableBuilder, numbered

PARTITIONS = 8
TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered(3)),
        "part": (pa.string(), lambda number: f"p{number % PARTITIONS}"),
        "v": (pa.int64(), lambda number: number),
    },
    partition_by="part",
)


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    """Of 200 rows in several partitions, as it is opened."""
    TABLE.make(tmp_path, version=9, kind="cow").upsert(TABLE.rows(range(200)))
    return pyhudi.open_table(tmp_path)


def test_key_lookup_lists_partition_of_key_only(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    add_data_files = MetadataTable.add_data_files

    def counted(self: MetadataTable, builder: Any, partitions: Iterable[str]) -> Any:
        wanted = list(partitions)
        asked.extend(wanted)
        return add_data_files(self, builder, wanted)

    monkeypatch.setattr(MetadataTable, "add_data_files", counted)
    scan = table.scan(where="id = 'k011'")
    assert scan.to_arrow()["v"].to_pylist() == [11]
    assert asked == ["p3"]
    assert f"record_index: pruned {PARTITIONS - 1} of {PARTITIONS}" in str(scan.explain())
    asked.clear()
    assert table.scan(where="id = 'k999'").count() == 0
    assert asked == []


def test_repeated_lookup_lists_nothing(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    assert table.scan(where="id = 'k011'").count() == 1
    listed: list[str] = []
    list_dir = Storage.list_dir

    def counted(self: Storage, prefix: str = "") -> Any:
        listed.append(prefix)
        return list_dir(self, prefix)

    monkeypatch.setattr(Storage, "list_dir", counted)
    assert table.scan(where="id = 'k012'").to_arrow()["v"].to_pylist() == [12]
    keys = [f"k{number:03d}" for number in range(100)]
    assert table.scan(where=[("id", "in", keys)]).count() == 100
    assert listed == []


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("keys", [1, 32, 33, 150])
def test_few_and_many_keys(tmp_path: Path, kind: Any, keys: int) -> None:
    """Many are looked up in several file groups of the index at a time."""
    table = TABLE.make(tmp_path, version=9, kind=kind)
    table.upsert(TABLE.rows(range(100)))
    table.upsert(TABLE.rows(range(50, 120), v=-1))
    table.delete_keys(TABLE.rows([3, 7]).select(["id", "part"]))
    wanted = [f"k{number:03d}" for number in range(keys)]
    found = table.scan(where=[("id", "in", wanted)]).to_arrow()
    there = [number for number in range(min(keys, 120)) if number not in (3, 7)]
    assert sorted(found["id"].to_pylist()) == [f"k{number:03d}" for number in there]
    assert len(table.state.storage.list(".hoodie/metadata/record_index")) > 10


def test_key_lookup_applies_other_conditions(table: HudiTable) -> None:
    told = str(table.scan(where="id IN ('k011', 'k012') AND v > 11").explain())
    assert "record_index" in told
    assert "column_stats(v)" in told
    assert "column_stats(id)" not in told
    assert "column_stats(id)" in str(table.scan(where="id > 'k15'").explain())


def test_key_lookup_reads_partition_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"hoodie.parquet.small.file.limit": "0"}
    table = TABLE.make(tmp_path, version=9, kind="cow", options=options)
    table = pyhudi.open_table(tmp_path, options=options)
    for first in range(0, 40, 10):
        table.insert(TABLE.rows(range(first, first + 10)))
    read: list[str] = []

    def counted(config: Any, columns: Any, path: str, **more: Any) -> Any:
        read.append(path)
        return partition_values.path_values(config, columns, path, **more)

    monkeypatch.setattr(read_tasks, "path_values", counted)
    assert len(table.scan().tasks) > PARTITIONS
    assert len(read) == PARTITIONS
