"""Partitions within others: no write makes them, since no listing finds the inner ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import SchemaMismatch
from pyhudi.slices.nested_partitions import find_nested
from pyhudi.storage.storage import Storage
from tests.helpers.table_builder import TableBuilder

TABLE = TableBuilder(
    {"id": (pa.string(), str), "part": (pa.string(), str), "v": (pa.int64(), 1)},
    partition_by="part",
)
WITHIN = {"a": "a/b", "a/b": "a/b/c", "a/b/c": "a/b/c/d/e"}
MARK = ".hoodie_partition_metadata"
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}


def stands_within(inner: str, outer: str) -> str:
    return re.escape(f"the partition {inner!r} would be inside the partition {outer!r}")


def data_files(base: Path) -> dict[str, bytes]:
    """All files but the timeline's and the metadata table's."""
    files = (path for path in base.rglob("*") if path.is_file())
    named = ((str(path.relative_to(base)), path) for path in files)
    return {name: path.read_bytes() for name, path in named if not name.startswith(".hoodie/")}


def test_paths_are_compared_folder_by_folder() -> None:
    assert not list(find_nested(["a", "ab", "a!b", "a-b/c", "b/a", "a"]))
    assert list(find_nested(["a/b/c", "a!", "a", "a/b"])) == [("a", "a/b"), ("a", "a/b/c")]
    assert list(find_nested(["", "x"])) == [("", "x")]


@pytest.mark.parametrize("verb", ["upsert", "insert", "bulk_insert", "overwrite_partitions"])
@pytest.mark.parametrize("index", ["simple", "bucket"])
def test_among_the_rows_of_a_write(tmp_path: Path, verb: str, index: str) -> None:
    table = TABLE.make(tmp_path / "t", index=index, first=["x"])
    before = len(table.history())
    with pytest.raises(SchemaMismatch, match=stands_within("a/b", "a")):
        getattr(table, verb)(TABLE.rows(["a/b", "q", "a"]))
    assert sorted(path.name for path in (tmp_path / "t").iterdir()) == [".hoodie", "x"]
    assert len(table.history()) == before


@pytest.mark.parametrize("outer", WITHIN)
@pytest.mark.parametrize("inner_first", [True, False])
@pytest.mark.parametrize("metadata", [True, False])
def test_against_what_the_table_has(
    tmp_path: Path, outer: str, inner_first: bool, metadata: bool
) -> None:
    inner = WITHIN[outer]
    first, second = (inner, outer) if inner_first else (outer, inner)
    table = TABLE.make(tmp_path / "t", metadata=metadata, first=TABLE.rows(["1"], part=first))
    known = data_files(tmp_path / "t")
    for write in (table.upsert, table.bulk_insert, table.overwrite_partitions):
        with pytest.raises(SchemaMismatch, match=stands_within(inner, outer)):
            write(TABLE.rows(["2"], part=second))
    assert data_files(tmp_path / "t") == known
    table.upsert(TABLE.rows(["1"], part=first))
    table.upsert(TABLE.rows(["3"], part=f"{first}b"))
    table.rebuild_metadata()
    assert pyhudi.open_table(tmp_path / "t").count() == 2


def test_dates_with_slashes(tmp_path: Path) -> None:
    slashes = {"hoodie.datasource.write.slash.separated.date.partitioning": "true"}
    table = TABLE.make(tmp_path / "t", options=slashes)
    table.insert(TABLE.rows(["1"], part="2024-01"))
    with pytest.raises(SchemaMismatch, match=stands_within("2024/01/05", "2024/01")):
        table.insert(TABLE.rows(["2"], part="2024-01-05"))
    with pytest.raises(SchemaMismatch, match=stands_within("2024/01", "2024")):
        table.insert(TABLE.rows(["2"], part="2024"))


def test_outer_partition_with_metadata_file_in_base_format_is_found(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", metadata=False, first=TABLE.rows(["1"], part="a"))
    mark = tmp_path / "t" / "a" / MARK
    mark.rename(mark.with_name(f"{MARK}.parquet"))
    with pytest.raises(SchemaMismatch, match=stands_within("a/b", "a")):
        table.insert(TABLE.rows(["2"], part="a/b"))


@pytest.mark.parametrize("mine", ["a", "a/b"])
def test_another_writer_makes_one_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mine: str
) -> None:
    """Between the look and the file that makes a folder a partition."""
    theirs = {"a": "a/b", "a/b": "a"}[mine]
    locked = {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.lock.provider": (
            "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
        ),
    }
    TABLE.make(tmp_path / "t", metadata=False)
    first, second = (pyhudi.open_table(tmp_path / "t", options=locked) for _ in range(2))
    plain = Storage.put_if_absent

    def late(self: Storage, path: str, data: bytes) -> bool:
        if path == f"{mine}/{MARK}":
            monkeypatch.setattr(Storage, "put_if_absent", plain)
            second.insert(TABLE.rows(["2"], part=theirs))
        return plain(self, path, data)

    monkeypatch.setattr(Storage, "put_if_absent", late)
    with pytest.raises(SchemaMismatch, match=stands_within("a/b", "a")):
        first.insert(TABLE.rows(["1"], part=mine))
    assert not (tmp_path / "t" / mine / MARK).exists()
    rows = pyhudi.open_table(tmp_path / "t").scan().to_arrow().to_pylist()
    assert [row["id"] for row in rows] == ["2"]


@pytest.mark.parametrize(
    ("kind", "values", "options", "looked"),
    [
        (pa.int32(), [1, 2, 1], {}, 0),
        (pa.string(), ["a", "b", "a"], ENCODED, 0),
        # Once in its life, and once for a file group that is added to it.
        (pa.string(), ["a", "b", "a"], {}, 3),
    ],
)
def test_nesting_check_applies_to_text_with_slashes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: pa.DataType,
    values: list[Any],
    options: dict[str, str],
    looked: int,
) -> None:
    rows = pa.table({"id": ["1", "2", "3"], "part": pa.array(values, kind)})
    table = pyhudi.create_table(
        tmp_path / "t", rows.schema, key="id", partition_by="part", options=options
    )
    asked: list[str] = []
    plain = Storage.head

    def head(self: Storage, path: str) -> Any:
        asked.append(path)
        return plain(self, path)

    monkeypatch.setattr(Storage, "head", head)
    for start in range(3):
        table.bulk_insert(rows.slice(start, 1))
    assert len([path for path in asked if path.endswith(MARK)]) == looked


def test_check_finds_nested_partitions(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", metadata=False, first=TABLE.rows(["1", "2"], part="a/b"))
    assert table.check().ok
    (tmp_path / "t" / "a" / MARK).write_text("#partition metadata\n")
    (tmp_path / "t" / "a" / "empty").mkdir()
    (tmp_path / "t" / "a" / "empty" / MARK).write_text("#partition metadata\n")
    found = table.check().errors
    assert [(one.kind, one.partition, one.found) for one in found] == [
        ("nested_partition", "a/b", "a partition inside 'a'")
    ]
