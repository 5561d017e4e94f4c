"""BLOB references whose tables, or whose files, are in buckets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import ConfigError, CorruptTable, HudiTable, MissingFile, UnsupportedTableFeature
from tests.cloud.conftest import Bucket, mostly_s3

SCHEMA = pa.schema([("id", pa.string()), ("content", pyhudi.blob()), ("ts", pa.int64())])
BYTES = bytes(range(256)) * 4


def outside(path: Any, offset: int | None = None, length: int | None = None) -> dict[str, Any]:
    place = {"external_path": str(path), "offset": offset, "length": length, "managed": False}
    return {"type": "OUT_OF_LINE", "data": None, "reference": place}


def create(base: str | Path, *contents: Any, **arguments: Any) -> HudiTable:
    table = pyhudi.create_table(base, SCHEMA, key="id", order_by="ts", **arguments)
    rows = enumerate(contents)
    table.insert([{"id": f"k{at}", "content": content, "ts": 1} for at, content in rows])
    return table


def contents(table: HudiTable, **arguments: Any) -> list[bytes | None]:
    found = table.scan(columns=["id"]).read_blob("content", **arguments).read_all()
    values: list[bytes | None] = found.sort_by("id")["content"].to_pylist()
    return values


@mostly_s3(["kind", "version"], [("cow", 9), ("mor", 9), ("cow", 6), ("mor", 8)], [("mor", 9)])
def test_bucket_table_reads_files_of_buckets_and_of_this_machine(
    bucket: Bucket, tmp_path: Path, kind: Any, version: Any
) -> None:
    bucket.storage("media").put("a.bin", BYTES)
    (tmp_path / "local.bin").write_bytes(BYTES)
    table = create(
        bucket.uri("table"),
        outside(bucket.uri("media/a.bin"), 10, 4),
        outside(bucket.uri("media/a.bin", bucket.kind.other_scheme)),
        outside(f"file://{tmp_path}/local.bin", 20, 2),
        {"type": "INLINE", "data": b"in", "reference": None},
        None,
        type=kind,
        version=version,
        storage_options=bucket.options,
    )
    table.upsert([{"id": "k4", "content": outside(bucket.uri("media/a.bin"), 0, 1), "ts": 2}])
    wanted = [BYTES[10:14], BYTES, BYTES[20:22], b"in", BYTES[:1]]
    assert contents(table) == wanted
    if kind == "mor":
        table.compact()
    table.cluster(sort_by="id")
    reopened = pyhudi.open_table(bucket.uri("table"), storage_options=bucket.options)
    assert contents(reopened) == wanted


@pytest.mark.parametrize(
    "name",
    [
        "a b.bin",
        "a%20b%.bin",
        "ünï世😀.bin",
        "a+b&c=d#e?f.bin",
        "semi;colon:x@y.bin",
        " a~$!'(),[]{}^",
    ],
)
def test_odd_names_of_objects_are_read_as_they_are(s3_bucket: Bucket, name: str) -> None:
    s3_bucket.storage("media").put(name, BYTES)
    references = [s3_bucket.uri(f"media/{name}"), s3_bucket.uri(f"media//./x/../{name}")]
    table = create(
        s3_bucket.uri("table"), *map(outside, references), storage_options=s3_bucket.options
    )
    assert contents(table) == [BYTES, BYTES]


def test_local_table_reads_objects_by_options_and_by_environment(
    s3_bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3_bucket.storage("media").put("a.bin", BYTES)
    table = create(tmp_path / "t", outside(s3_bucket.uri("media/a.bin"), 1, 3))
    assert contents(table, storage_options=s3_bucket.options) == [BYTES[1:4]]
    for name, value in s3_bucket.options.items():
        monkeypatch.setenv(name.upper(), value)
    assert contents(table) == [BYTES[1:4]]


def test_bucket_reads_need_the_file_and_the_whole_range(bucket: Bucket) -> None:
    bucket.storage("media").put("a.bin", BYTES)
    base = bucket.uri("table")
    table = create(base, outside(bucket.uri("media/none.bin")), storage_options=bucket.options)
    with pytest.raises(MissingFile, match="a BLOB of column 'content' refers to it") as missing:
        contents(table)
    assert missing.value.file == bucket.uri("media/none.bin")
    short = outside(bucket.uri("media/a.bin"), 1000, 100)
    table.upsert([{"id": "k0", "content": short, "ts": 2}])
    with pytest.raises(CorruptTable, match=r"100 bytes.*has 1024") as damaged:
        contents(table)
    assert damaged.value.file == bucket.uri("media/a.bin")


@pytest.mark.parametrize(
    ("path", "error", "told"),
    [
        ("/media/a.bin", UnsupportedTableFeature, "no scheme\nHint:.*s3://"),
        ("media/a.bin", CorruptTable, "no absolute path"),
        ("//media/a.bin", CorruptTable, "no absolute path"),
        ("s3://{bucket}/../a.bin", CorruptTable, "no absolute path"),
        ("s3://{bucket}", CorruptTable, "no absolute path"),
        ("https://example.com/a.bin", UnsupportedTableFeature, "https"),
        ("s3://KEY:SECRET@{bucket}/a.bin", ConfigError, r"a reference of column 'content'.*\*\*\*"),
    ],
)
def test_bucket_table_refuses_references_that_name_no_object(
    s3_bucket: Bucket, path: str, error: type[Exception], told: str
) -> None:
    content = outside(path.format(bucket=s3_bucket.name))
    table = create(s3_bucket.uri("table"), content, storage_options=s3_bucket.options)
    with pytest.raises(error, match=told) as caught:
        contents(table)
    assert "SECRET" not in str(caught.value)
