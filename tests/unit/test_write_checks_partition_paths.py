"""Partitions that file systems have and Hudi does not: no rows are added to them."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import SchemaMismatch
from pyhudi.write import execute
from tests.helpers.table_builder import TableBuilder

TABLE = TableBuilder(
    {"id": (pa.string(), str), "part": (pa.string(), "x"), "v": (pa.int64(), 1)},
    partition_by="part",
    first="a",
)
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}


@pytest.mark.parametrize("verb", ["upsert", "insert", "bulk_insert", "overwrite_partitions"])
@pytest.mark.parametrize("index", ["simple", "bucket"])
@pytest.mark.parametrize("part", ["10:30", "a:b/c", "__all_partitions__"])
def test_rows_of_unsupported_partition_raise(
    tmp_path: Path, verb: str, index: str, part: str
) -> None:
    table = TABLE.make(tmp_path / "t", index=index)
    before = len(table.history())
    with pytest.raises(SchemaMismatch, match=re.escape(f"the partition {part!r}")):
        getattr(table, verb)(TABLE.rows("b", part=part))
    assert sorted(path.name for path in (tmp_path / "t").iterdir()) == [".hoodie", "x"]
    assert len(table.history()) == before


def test_prefix_before_colon_is_accepted(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", options=HIVE)
    with pytest.raises(SchemaMismatch, match=r"part=10:30.*\n?.*urlencode=true"):
        table.insert(TABLE.rows("b", part="10:30"))


@pytest.mark.parametrize(
    ("part", "options"),
    [
        ("a=b", {}),
        ("=b", {}),
        ("a=", {}),
        ("part=b", {}),
        ("part=x/y", {}),
        ("%2F", {}),
        ("a%4bb", {}),
        ("%2F", HIVE),
    ],
)
def test_partition_value_misread_by_hudi_raises(
    tmp_path: Path, part: str, options: dict[str, str]
) -> None:
    table = TABLE.make(tmp_path / "t", options=options)
    with pytest.raises(SchemaMismatch, match=r"cannot read the partition.*\n?.*urlencode=true"):
        table.insert(TABLE.rows("b", part=part))
    assert table.count() == 1


def test_equals_sign_in_one_of_two_columns_raises(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "p": ["x"], "q": ["a=b"]})
    with pytest.raises(SchemaMismatch, match="cannot read the partition 'x/a=b'"):
        pyhudi.create_table(tmp_path / "t", rows, key="id", partition_by=["p", "q"])
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("part", [".hoodie", "x/.hoodie", "x/.hoodie/y"])
def test_partition_paths_refuse_folders_called_hoodie(tmp_path: Path, part: str) -> None:
    table = TABLE.make(tmp_path / "t")
    with pytest.raises(SchemaMismatch, match="is no folder for rows"):
        table.insert(TABLE.rows("b", part=part))


@pytest.mark.parametrize(
    ("part", "options"),
    [
        ("a/b:c", {}),
        ("10:30", ENCODED),
        ("__all_partitions__", HIVE),
        ("a=b", HIVE),
        ("part=b", HIVE),
        ("v/y=z", {}),
        ("100%", {}),
        ("a%zz", {}),
        ("a=b", ENCODED),
        ("%2F", ENCODED),
    ],
)
def test_names_that_hudi_reads_are_written(
    tmp_path: Path, part: str, options: dict[str, str]
) -> None:
    table = TABLE.make(tmp_path / "t", options=options)
    table.insert(TABLE.rows("b", part=part))
    assert table.scan(where=f"part = '{part}'").to_arrow()["id"].to_pylist() == ["b"]


@pytest.mark.parametrize("index", ["simple", "bucket"])
def test_rows_of_unsupported_partition_can_be_read_and_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    odd = TABLE.rows("bc", part="10:30")
    with monkeypatch.context() as patched:
        patched.setattr(execute, "check_partition_paths", lambda *_: None)
        table = TABLE.make(tmp_path / "t", index=index, first=odd)
    table.upsert(TABLE.rows("b", part="10:30", v=2))
    table.update("id = 'c'", {"v": 3})
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [2, 3]
    table.delete("part = '10:30'")
    assert table.count() == 0
