"""Mergers of users, and what a table's properties say about merging column by column."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.payloads import Merger, _registered
from pyhudi.schema.table_schema import schema_defaults
from tests.helpers.rows import sorted_rows
from tests.helpers.tables import unpack

STRATEGY = "1897ef5f-18bc-4557-939c-9d6a8afd1519"
COLUMNS = ["_hoodie_record_key", "name", "ts"]


def custom(folder: Path, name: str = "v9_mor_commit_time") -> Path:
    """A table whose records are merged by somebody's own rule."""
    base = unpack(name, folder)
    with (base / ".hoodie" / "hoodie.properties").open("a", encoding="utf-8") as file:
        file.write(f"hoodie.record.merge.mode=CUSTOM\nhoodie.record.merge.strategy.id={STRATEGY}\n")
    return base


def rows(base: Path) -> list[str]:
    return sorted_rows(pyhudi.open_table(base).scan(columns=COLUMNS).to_arrow())


@pytest.fixture
def registered() -> object:
    def register(merger: Merger, columns: list[str] | None = None) -> None:
        pyhudi.register_merger(STRATEGY, merger, columns=columns)

    yield register
    _registered.pop(STRATEGY, None)


def newer(_: pa.RecordBatch, newer: pa.RecordBatch) -> pa.RecordBatch:
    return newer


def test_a_merger_that_takes_the_newer_record_is_commit_time_ordering(
    tmp_path: Path, registered: object
) -> None:
    wanted = rows(unpack("v9_mor_commit_time", tmp_path / "plain"))
    registered(newer)  # type: ignore[operator]
    assert rows(custom(tmp_path / "custom")) == wanted


def test_a_merger_makes_values_of_both_records(tmp_path: Path, registered: object) -> None:
    pairs: list[tuple[int, int]] = []

    def greatest(older: pa.RecordBatch, newer: pa.RecordBatch) -> pa.RecordBatch:
        pairs.extend(zip(older["ts"].to_pylist(), newer["ts"].to_pylist(), strict=True))
        ts = pc.max_element_wise(older["ts"], newer["ts"])
        return newer.set_column(newer.schema.get_field_index("ts"), "ts", ts)

    base = custom(tmp_path)
    registered(greatest, ["ts"])  # type: ignore[operator]
    found = pyhudi.open_table(base).scan(columns=COLUMNS).to_arrow()
    assert pairs
    late = [(old, new) for old, new in pairs if old > new]
    assert late, "the table has late records"
    assert set(found["ts"].to_pylist()) >= {max(pair) for pair in pairs[-1:]}


def test_a_merger_can_delete(tmp_path: Path, registered: object) -> None:
    def delete_all(
        _: pa.RecordBatch, newer: pa.RecordBatch
    ) -> tuple[pa.RecordBatch, pa.BooleanArray]:
        return newer, pa.array([True] * newer.num_rows)

    before = rows(unpack("v9_mor_commit_time", tmp_path / "plain"))
    registered(delete_all)  # type: ignore[operator]
    assert len(rows(custom(tmp_path / "custom"))) < len(before)


@pytest.mark.parametrize(
    ("merger", "error"),
    [
        (lambda _, newer: newer.slice(1), SchemaMismatch),
        (lambda _, newer: newer.drop_columns(["ts"]), SchemaMismatch),
        (lambda _, __: 1 / 0, ZeroDivisionError),
        (lambda _, newer: (newer, pa.array([1] * newer.num_rows)), SchemaMismatch),
    ],
    ids=["too few rows", "a column is missing", "it raises", "no mask"],
)
def test_a_bad_merger_is_an_error(
    tmp_path: Path, registered: object, merger: Merger, error: type[Exception]
) -> None:
    registered(merger)  # type: ignore[operator]
    with pytest.raises(error):
        rows(custom(tmp_path))


def test_a_merger_must_be_callable() -> None:
    with pytest.raises(ConfigError, match="function"):
        pyhudi.register_merger("x", 7)  # type: ignore[arg-type]


def test_defaults_are_those_that_are_not_null() -> None:
    avro = """{"type": "record", "name": "r", "fields": [
        {"name": "a", "type": ["null", "string"], "default": null},
        {"name": "b", "type": "int", "default": 7},
        {"name": "c", "type": "string", "default": "x"},
        {"name": "d", "type": "bytes", "default": "\\u00ff"},
        {"name": "e", "type": "long"}]}"""
    schema = pa.schema(
        [("a", pa.string()), ("b", pa.int32()), ("c", pa.string()), ("d", pa.binary())]
    )
    row = schema_defaults(avro, schema)
    assert row is not None
    assert row.to_pylist() == [{"b": 7, "c": "x", "d": b"\xff"}]
    assert row.schema.field("b").type == pa.int32()
