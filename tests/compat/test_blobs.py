"""pyhudi and Apache Hudi write BLOB columns of one table in turn, and read the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.pairwise import pairwise

SCHEMA = pa.schema([("id", pa.string()), ("content", pyhudi.blob()), ("ts", pa.int64())])
OPTIONS = {"hoodie.compact.inline": "false", "hoodie.clean.automatic": "false"}
READING = {"hoodie.read.blob.inline.mode": "CONTENT"}


def inline(data: bytes) -> dict[str, Any]:
    return {"type": "INLINE", "data": data, "reference": None}


def outside(path: Path, offset: int | None = None, length: int | None = None) -> dict[str, Any]:
    place = {"external_path": str(path), "offset": offset, "length": length, "managed": False}
    return {"type": "OUT_OF_LINE", "data": None, "reference": place}


def in_hex(row: dict[str, Any]) -> dict[str, Any]:
    content = row["content"]
    if content is None or content["data"] is None:
        return row
    return row | {"content": content | {"data": content["data"].hex()}}


def check(hudi: HudiOracle, base: Path) -> None:
    """Both read the same structs, and the same bytes."""
    table = pyhudi.open_table(base)
    by_id = {row["id"]: in_hex(row) for row in table.scan().to_arrow().to_pylist()}
    theirs = hudi.read(base, options=READING)["rows"]
    assert {row["id"]: row for row in theirs} == by_id
    found = table.scan(columns=["id"]).read_blob("content").read_all().to_pylist()
    mine = {row["id"]: row["content"] and row["content"].hex().upper() for row in found}
    sql = "select id, hex(read_blob(content)) as content from {table}"
    theirs = hudi.sql(base, sql, conf=READING)["rows"]
    wanted = {row["id"]: row["content"] for row in theirs}
    assert {key: "" if value == b"" else value for key, value in mine.items()} == wanted


@pytest.mark.hudi("1.2.0")
@pytest.mark.parametrize(
    ("version", "kind", "blocks"), pairwise((8, 9), ("cow", "mor"), ("avro", "parquet"))
)
def test_both_write_blobs_of_one_table(
    version: int, kind: Any, blocks: str, hudi: HudiOracle, tmp_path: Path
) -> None:
    file = tmp_path / "media.bin"
    file.write_bytes(bytes(range(256)))
    base = tmp_path / "t"
    options = {"hoodie.logfile.data.block.format": blocks}
    table = pyhudi.create_table(
        base, SCHEMA, key="id", order_by="ts", type=kind, version=version, options=options
    )
    contents = [inline(b"in"), outside(file, 100, 10), outside(file), None, inline(b"old")]
    table.insert(
        [{"id": f"k{number}", "content": each, "ts": 1} for number, each in enumerate(contents)]
    )
    table.upsert([{"id": "k3", "content": inline(b"new"), "ts": 2}])
    check(hudi, base)
    conf = OPTIONS | options
    hudi.sql(
        base,
        "update {table} set content = named_struct('type', 'INLINE', "
        "'data', cast('sql' as binary), 'reference', cast(null as struct<external_path: string, "
        "offset: bigint, length: bigint, managed: boolean>)), ts = 3 where id = 'k4'",
        conf=conf,
    )
    table = pyhudi.open_table(base, options=options)
    table.upsert([{"id": "k0", "content": outside(file, 0, 3), "ts": 4}])
    check(hudi, base)
    if kind == "mor":
        table.compact()
        check(hudi, base)
