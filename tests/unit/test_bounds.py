"""Texts of a table that are too deep, too long or no text: typed errors, in bounded memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.config import json_text
from pyhudi.config.json_text import MAX_SCHEMA, parse_json
from pyhudi.config.properties import parse_properties
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable, HudiError, SchemaMismatch, UnsupportedTableFeature
from pyhudi.metadata.definitions import DEFAULT_PATH, index_definitions
from pyhudi.slices.ring_files import committed_ring, ring_folder
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline, content
from pyhudi.timeline.lsm_manifest import current_manifest

DEEP = 20_000
DEEP_JSON = '{"a":' * DEEP + "1" + "}" * DEEP
LONG_NUMBER = "9" * 5_000
HOSTILE = {
    "objects": DEEP_JSON,
    "arrays": "[" * DEEP + "]" * DEEP,
    "cut": "[" * DEEP,
    "number": f'{{"a": {LONG_NUMBER}}}',
    "text": "no JSON",
    "bytes": "\udc80",
}
each_hostile = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)


@each_hostile
def test_json_that_cannot_be_read_names_its_file(text: str) -> None:
    with pytest.raises(CorruptTable, match=r"f\.json") as caught:
        parse_json(text.encode("utf-8", "surrogateescape"), "f.json")
    assert caught.value.file == "f.json"


def test_json_of_too_many_bytes_is_not_parsed() -> None:
    with pytest.raises(UnsupportedTableFeature, match=r"f\.json: JSON of 5 bytes, 4 at most"):
        parse_json(b"[1,2]", "f.json", most=4)


def deep_schema(depth: int) -> str:
    """Records in records, each with one field."""
    opened = (
        f'{{"type":"record","name":"r{n}","fields":[{{"name":"f","type":' for n in range(depth)
    )
    return "".join(opened) + '"int"' + "}]}" * depth


def wide_schema(fields: int) -> str:
    return json.dumps(
        {
            "type": "record",
            "name": "r",
            "fields": [{"name": f"f{n}", "type": "int"} for n in range(fields)],
        }
    )


SCHEMAS: dict[str, Callable[[], str]] = {
    "deep": lambda: deep_schema(DEEP),
    "deeper_than_the_core_takes": lambda: deep_schema(100),
    "a_million_fields": lambda: wide_schema(1_000_000),
    "more_fields_than_the_core_takes": lambda: wide_schema(101_000),
    "number": lambda: wide_schema(1).replace('"int"', LONG_NUMBER),
}
each_schema = pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)


def with_last_commit(base: Path, version: int, change: Callable[[dict[str, str]], None]) -> None:
    """Makes a table and changes the extra metadata of its commit, without the core's checks."""
    rows = pa.table({"id": ["a"], "v": [1]})
    table = pyhudi.create_table(
        base, rows, key="id", version=version, options={"hoodie.metadata.enable": False}
    )
    timeline = Timeline.load(table.storage, table.config)
    (commit,) = timeline.commits
    record = timeline.read(commit)
    assert record is not None
    change(record["extraMetadata"])
    path = table.config.layout.path(commit.file_name)
    (base / path).write_bytes(content.encode_json(record))


def use(base: Path) -> None:
    table = pyhudi.open_table(base)
    table.scan().to_arrow()
    table.upsert(pa.table({"id": ["b"], "v": [2]}))


@pytest.mark.parametrize("version", [6, 9])
@each_schema
@pytest.mark.slow
def test_a_commit_with_a_schema_beyond_bounds(
    tmp_path: Path, version: int, schema: Callable[[], str]
) -> None:
    text = schema()
    with_last_commit(tmp_path / "t", version, lambda extra: extra.update(schema=text))
    with pytest.raises((CorruptTable, UnsupportedTableFeature, SchemaMismatch)) as caught:
        use(tmp_path / "t")
    assert len(str(caught.value)) < 1_000


@each_schema
@pytest.mark.slow
def test_the_core_takes_no_schema_beyond_bounds(schema: Callable[[], str]) -> None:
    text = schema()
    with pytest.raises(HudiError) as caught:
        _native.arrow_schema(text)
    assert len(str(caught.value)) < 1_000


def test_the_core_does_not_parse_a_schema_of_too_many_bytes() -> None:
    text = wide_schema(1) + " " * MAX_SCHEMA
    for call in (_native.arrow_schema, _native.with_meta_fields, _native.without_meta_fields):
        with pytest.raises(UnsupportedTableFeature, match="at most"):
            call(text)


@pytest.mark.parametrize("version", [6, 9])
@each_hostile
def test_a_commit_with_an_internal_schema_beyond_bounds(
    tmp_path: Path, version: int, text: str
) -> None:
    if text.isascii():
        with_last_commit(tmp_path / "t", version, lambda e: e.update(latest_schema=text))
        with pytest.raises(CorruptTable, match="internal schema"):
            use(tmp_path / "t")


@each_hostile
def test_a_commit_beyond_bounds(tmp_path: Path, text: str) -> None:
    with_last_commit(tmp_path / "t", 6, lambda _: None)
    (commit,) = (tmp_path / "t" / ".hoodie").glob("*.commit")
    commit.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(CorruptTable, match=commit.name):
        use(tmp_path / "t")


@each_hostile
def test_other_files_of_json_beyond_bounds(tmp_path: Path, text: str) -> None:
    data = text.encode("utf-8", "surrogateescape")
    storage = Storage(str(tmp_path))
    storage.put("history/manifest_1", data)
    with pytest.raises(CorruptTable, match="history/manifest_1"):
        current_manifest(storage, "history")

    table = pyhudi.create_table(tmp_path / "t", pa.table({"id": ["a"], "v": [1]}), key="id")
    (tmp_path / "t" / DEFAULT_PATH).write_bytes(data)
    with pytest.raises(CorruptTable, match=r"index\.json"):
        index_definitions(table.storage, table.config)

    ring = f"{ring_folder('p')}/00000000000000.hashing_meta"
    table.storage.put(ring, data)
    timeline = Timeline.load(table.storage, table.config)
    with pytest.raises(CorruptTable, match="hashing_meta"):
        committed_ring(table.storage, timeline, "p")


def test_a_version_of_the_history_that_is_no_number(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    storage.put("history/_version_", LONG_NUMBER.encode())
    assert current_manifest(storage, "history").number == 0


def test_a_table_version_of_many_digits() -> None:
    config = TableConfig.parse(f"hoodie.table.version={LONG_NUMBER}\n".encode(), "f")
    with pytest.raises(HudiError, match=r"hoodie\.table\.version"):
        _ = config.version


def test_properties_of_too_many_bytes() -> None:
    with pytest.raises(CorruptTable, match="at most"):
        parse_properties(b"a=b\n" * (5 << 20), "f")


def test_limits_are_below_those_of_the_core() -> None:
    assert json_text.MAX_TEXT <= 256 << 20


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def deep_parquet(levels: int) -> bytes:
    """A Parquet file of no rows whose schema is a chain of groups, in Thrift's compact form."""
    root = b"\x48\x01r\x15\x02\x00"
    group = b"\x35\x02\x18\x01g\x15\x02\x00"
    leaf = b"\x15\x02\x25\x02\x18\x01x\x00"
    elements = root + group * levels + leaf
    schema = b"\x19\xfc" + varint(levels + 2) + elements
    footer = b"\x15\x02" + schema + b"\x16\x00\x19\x0c\x00"
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def test_a_parquet_file_of_many_levels(tmp_path: Path) -> None:
    """The decoder takes a stack frame for each, and would end the process."""
    storage = Storage(str(tmp_path))
    for levels in (3, 40):
        storage.put("f.parquet", deep_parquet(levels))
        assert _native.base_file_schema(storage.native, "f.parquet")[1].names == ["g"]
    for levels in (300, DEEP, 1_000_000):
        storage.put("f.parquet", deep_parquet(levels))
        with pytest.raises(UnsupportedTableFeature, match="more than 256 levels"):
            _native.base_file_schema(storage.native, "f.parquet")
