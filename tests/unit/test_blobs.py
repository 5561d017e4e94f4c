"""BLOB columns: made, checked when they are written, kept by what rewrites rows, and their bytes.

That pyhudi reads what Apache Hudi wrote is in `tests/compat/test_golden.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import (
    CorruptTable,
    HudiTable,
    MissingFile,
    SchemaMismatch,
    StorageError,
    UnsupportedTableFeature,
)
from pyhudi.api import read_blob
from tests.helpers.pairwise import pairwise
from tests.helpers.tables import facts, unpack

SCHEMA = pa.schema([("id", pa.string()), ("content", pyhudi.blob()), ("ts", pa.int64())])
BYTES = bytes(range(256)) * 4


def inline(data: bytes | None) -> dict[str, Any]:
    return {"type": "INLINE", "data": data, "reference": None}


def outside(path: Any, offset: int | None = None, length: int | None = None) -> dict[str, Any]:
    place = {"external_path": str(path), "offset": offset, "length": length, "managed": False}
    return {"type": "OUT_OF_LINE", "data": None, "reference": place}


def rows(*contents: Any, ts: int = 1) -> list[dict[str, Any]]:
    return [
        {"id": f"k{number}", "content": content, "ts": ts}
        for number, content in enumerate(contents)
    ]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "media" / "a b%20c.bin"
    path.parent.mkdir()
    path.write_bytes(BYTES)
    return path


def written(base: Path, *contents: Any, **arguments: Any) -> HudiTable:
    table = pyhudi.create_table(base, SCHEMA, key="id", order_by="ts", **arguments)
    table.insert(rows(*contents))
    return table


def read(base: Path) -> list[dict[str, Any]]:
    found = pyhudi.open_table(base).scan().to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["id"])


@pytest.mark.parametrize(
    ("version", "kind", "blocks"), pairwise((6, 8, 9), ("cow", "mor"), ("avro", "parquet"))
)
def test_blob_survives_every_rewrite(version: int, kind: Any, blocks: str, tmp_path: Path) -> None:
    base = tmp_path / "t"
    contents = (inline(b""), outside("/a", 1, 2), None, outside("s3://b/c"))
    options = {"hoodie.logfile.data.block.format": blocks}
    table = written(base, *contents, version=version, type=kind, options=options)
    wanted = rows(*contents)
    wanted[2] |= {"content": inline(b"new"), "ts": 2}
    table.upsert([wanted[2]])
    table.upsert([{"id": "k1", "ts": 3}], partial=True)
    wanted[1]["ts"] = 3
    assert read(base) == wanted
    if kind == "mor":
        table.compact()
    table.cluster(sort_by="id")
    table.upsert(table.scan().to_arrow(), schema_mode="merge")
    table.alter().add_column("more", pa.string()).execute()
    table = pyhudi.open_table(base)
    table.upsert([{"id": "k3", "more": "x", "ts": 4}], partial=True)
    wanted = [row | {"more": None} for row in wanted]
    wanted[3] |= {"more": "x", "ts": 4}
    assert read(base) == wanted
    assert table.schema.field("content").metadata == {b"hudi_type": b"BLOB"}
    assert not table.check(deep=True).findings


def test_blob_has_the_schema_that_hudi_writes(tmp_path: Path) -> None:
    written(tmp_path / "t", inline(b"x"))
    (mine,) = (tmp_path / "t").glob("*.parquet")
    theirs = next(unpack("v9_cow_blob", tmp_path).glob("*/*.parquet"))

    def column(path: Path) -> Any:
        parquet = pq.ParquetFile(path)
        avro = json.loads(parquet.metadata.metadata[b"parquet.avro.schema"])
        (kind,) = (each["type"] for each in avro["fields"] if each["name"] == "content")
        leaves = [parquet.schema.column(at) for at in range(len(parquet.schema))]
        return kind, [
            (leaf.path, leaf.physical_type, leaf.max_definition_level)
            for leaf in leaves
            if leaf.path.startswith("content.")
        ]

    assert column(mine) == column(theirs)


def test_columns_with_hudis_metadata_are_blobs(tmp_path: Path) -> None:
    read_rows = written(tmp_path / "t", inline(b"x")).scan().to_arrow()
    copy = pyhudi.create_table(tmp_path / "copy", read_rows, key="id")
    assert copy.schema.field("content").metadata == {b"hudi_type": b"BLOB"}
    two = pa.schema([("id", pa.string()), ("a", pyhudi.blob()), ("b", pyhudi.blob())])
    table = pyhudi.create_table(tmp_path / "two", two, key="id")
    table.insert([{"id": "k", "a": inline(b"a"), "b": inline(b"b")}])
    assert [table.scan().read_blob(name).read_all()[name].to_pylist() for name in "ab"] == [
        [b"a"],
        [b"b"],
    ]


@pytest.mark.parametrize("name", ["v9_cow_blob", "v9_mor_blob", "v9_mor_blob_parquet_log"])
@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"type": "inline", "data": b"x", "reference": None}, r"'content\.type'.*'inline'"),
        ({"type": None, "data": b"x", "reference": None}, r"'content\.type' has nulls"),
        ({"type": "OUT_OF_LINE", "data": None, "reference": {"managed": True}}, "external_path"),
        ("text", "'content'"),
    ],
)
def test_write_refuses_what_is_no_blob(name: str, content: Any, told: str, tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack(name, tmp_path))
    row = {"id": "k001", "content": content, "city": "osaka", "ts": 1000}
    with pytest.raises(SchemaMismatch, match=told):
        table.upsert([row])
    assert table.refresh().scan().count() == facts(name)["expected"]["snapshot"]["count"]


def test_read_blob_gives_bytes_of_rows_and_files(file: Path, tmp_path: Path) -> None:
    contents = (
        inline(b"in"),
        outside(file, 10, 4),
        None,
        outside(f"file://{file}"),
        outside(f"file:{file}", 12, 6),
        outside(file, 1024, 0),
        inline(b""),
    )
    table = written(tmp_path / "t", *contents, type="mor")
    table.upsert([{"id": "k2", "content": outside(file, 0, 1), "ts": 2}])
    wanted = [b"in", BYTES[10:14], BYTES[:1], BYTES, BYTES[12:18], b"", b""]
    found = table.scan(columns=["id"]).read_blob("content").read_all().sort_by("id")
    assert found.column_names == ["id", "content"]
    assert found.schema.field("content").type == pa.binary()
    assert found["content"].to_pylist() == wanted
    narrow = table.scan(columns=["content", "ts"], where="id = 'k1'").read_blob("content")
    assert narrow.read_all().to_pylist() == [{"content": BYTES[10:14], "ts": 1}]
    assert table.scan(limit=3).read_blob("content").read_all().num_rows == 3
    assert table.scan(where="id = 'none'").read_blob("content").read_all().num_rows == 0


def test_read_blob_gives_the_blobs_of_hudi(tmp_path: Path) -> None:
    scan = pyhudi.open_table(unpack("v9_mor_blob", tmp_path)).scan()
    inlined = scan.to_arrow().to_pylist()
    keys = [row["id"] for row in inlined if (row["content"] or {}).get("type") == "INLINE"]
    wanted = {row["id"]: row["content"]["data"] for row in inlined if row["id"] in keys}
    assert wanted
    where = f"id in ({', '.join(map(repr, keys))})"
    found = pyhudi.open_table(tmp_path / "v9_mor_blob").scan(where=where).read_blob("content")
    assert {row["id"]: row["content"] for row in found.read_all().to_pylist()} == wanted


def test_read_blob_bounds_its_batches(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_blob, "_BATCH_BYTES", 2500)
    table = written(tmp_path / "t", *[outside(file)] * 5, inline(b"x" * 3000))
    batches = list(table.scan().read_blob("content"))
    assert [batch.num_rows for batch in batches] == [2, 2, 1, 1]


@pytest.mark.parametrize(
    ("content", "offset", "told"),
    [
        (lambda file: outside(file, 1000, 100), 1000, "100 bytes.*has 1024"),
        (lambda file: outside(file, 5000, 0), 5000, "has 1024"),
        (lambda file: outside(file, 0, 2**62), 0, "has 1024"),
        (lambda _: inline(None), None, "INLINE and has no data"),
        (lambda _: outside("") | {"reference": None}, None, "has no reference"),
        (lambda _: outside(""), None, "no absolute path"),
        (lambda _: outside("a/b.bin"), None, "no absolute path"),
        (lambda file: outside(file, 5, None), None, "offset and length alone"),
        (lambda file: outside(file, None, 5), None, "offset and length alone"),
        (lambda file: outside(file, -1, 3), None, "offset -1"),
    ],
)
def test_read_blob_refuses_what_it_cannot_read(
    content: Any, offset: int | None, told: str, file: Path, tmp_path: Path
) -> None:
    """Hudi writes such rows, and its `read_blob` fails on them."""
    table = written(tmp_path / "t", inline(b"x"), content(file))
    with pytest.raises(CorruptTable, match=told) as caught:
        table.scan().read_blob("content").read_all()
    assert caught.value.offset == offset
    if offset is not None:
        assert caught.value.file == str(file)


def test_read_blob_names_the_missing_file(tmp_path: Path) -> None:
    table = written(tmp_path / "t", outside(tmp_path / "none.bin", 0, 1))
    with pytest.raises(MissingFile, match="'content'") as caught:
        table.scan().read_blob("content").read_all()
    assert caught.value.file == str(tmp_path / "none.bin")
    assert "cleaner" not in caught.value.hint


def test_read_blob_refuses_other_columns_and_storages(tmp_path: Path) -> None:
    table = written(tmp_path / "t", outside("ftp://host/a.bin"))
    with pytest.raises(SchemaMismatch, match=r"pyhudi\.blob"):
        table.scan().read_blob("id")
    with pytest.raises(SchemaMismatch, match="no column 'other'"):
        table.scan().read_blob("other")
    with pytest.raises((UnsupportedTableFeature, StorageError), match="ftp"):
        table.scan().read_blob("content").read_all()


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_null_in_place_of_blob_may_hide_any_type(tmp_path: Path, kind: Any) -> None:
    """Arrow leaves "" under a null struct whose child is required, which is no symbol."""
    table = written(tmp_path / "t", inline(b"a"), type=kind)
    hidden = pa.array([None], SCHEMA.field("content").type)
    assert hidden.storage.field("type").to_pylist() == [""]
    table.upsert(pa.table({"id": ["k0"], "content": hidden, "ts": [2]}, SCHEMA))
    assert table.scan().to_arrow()["content"].to_pylist() == [None]
