"""Mergers of users, and what a table's properties say about merging column by column."""

from __future__ import annotations

import datetime as dt
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.errors import ConfigError, CorruptTable, SchemaMismatch, UnsupportedTableFeature
from pyhudi.schema.partial_update_checks import IgnoredUpdateValues
from pyhudi.schema.payloads import FieldMerge, Merger, _registered
from pyhudi.schema.table_schema import schema_defaults
from pyhudi.testing import comparable_rows
from tests.helpers import log_bytes
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
    return comparable_rows(pyhudi.open_table(base).scan(columns=COLUMNS).to_arrow())


@pytest.fixture
def registered() -> object:
    def register(merger: Merger, columns: list[str] | None = None) -> None:
        pyhudi.register_merger(STRATEGY, merger, columns=columns)

    yield register
    _registered.pop(STRATEGY, None)


def newer(_: pa.RecordBatch, newer: pa.RecordBatch) -> pa.RecordBatch:
    return newer


def test_merger_of_newer_record_is_commit_time_ordering(tmp_path: Path, registered: object) -> None:
    wanted = rows(unpack("v9_mor_commit_time", tmp_path / "plain"))
    registered(newer)  # type: ignore[operator]
    assert rows(custom(tmp_path / "custom")) == wanted


def test_merger_combines_both_records(tmp_path: Path, registered: object) -> None:
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


def test_merger_can_delete(tmp_path: Path, registered: object) -> None:
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
def test_bad_merger_result_raises(
    tmp_path: Path, registered: object, merger: Merger, error: type[Exception]
) -> None:
    registered(merger)  # type: ignore[operator]
    with pytest.raises(error):
        rows(custom(tmp_path))


def test_merger_must_be_callable() -> None:
    with pytest.raises(ConfigError, match="function"):
        pyhudi.register_merger("x", 7)  # type: ignore[arg-type]


@pytest.mark.parametrize("fill", ["absent", "marker", "newer_marker"])
def test_merger_sees_null_in_column_added_later(
    tmp_path: Path, fill: Literal["absent", "marker", "newer_marker"]
) -> None:
    """Only a partial block leaves columns as they are (`HoodieDataBlock`, 1.2.0)."""
    key = "_hoodie_record_key"
    new = pa.schema([(key, pa.string()), ("ts", pa.int64()), ("a", pa.string())])
    old, some = new.remove(2), new.remove(2)

    def block(instant: str, schema: pa.Schema, row: dict[str, object], *, partial: bool) -> bytes:
        avro = _native.avro_schema(schema, "r", "n")
        return log_bytes.avro_block(log_bytes.headers(instant, avro, partial=partial), [row])

    blocks = [
        block("1", old, {key: "k", "ts": 10}, partial=False),
        block("2", new, {key: "k", "ts": 5, "a": "late"}, partial=False),
        block("3", new, {key: "updated", "ts": 5, "a": "kept"}, partial=False),
        block("4", some, {key: "updated", "ts": 6}, partial=True),
    ]
    store = _native.Store(str(tmp_path))
    store.put(".l", b"".join(blocks))
    reader, _ = _native.read_slice(
        store,
        base=None,
        logs=[".l"],
        schema=new,
        columns=new.names,
        merge_mode="EVENT_TIME_ORDERING",
        ordering_fields=["ts"],
        field_rules=_native.FieldRules(fill, marker=None if fill == "absent" else "?"),
    )
    found = {row[key]: row["a"] for row in reader.read_all().to_pylist()}
    assert found == {"k": None, "updated": "kept"}


def test_defaults_are_those_that_are_not_null() -> None:
    avro = """{"type": "record", "name": "r", "fields": [
        {"name": "a", "type": ["null", "string"], "default": null},
        {"name": "b", "type": "int", "default": 7},
        {"name": "c", "type": "string", "default": "x"},
        {"name": "d", "type": "boolean", "default": false},
        {"name": "e", "type": "long"}]}"""
    schema = pa.schema(
        [("a", pa.string()), ("b", pa.int32()), ("c", pa.string()), ("d", pa.bool_())]
    )
    row = schema_defaults(avro, schema)
    assert row is not None
    assert row.to_pylist() == [{"b": 7, "c": "x", "d": False}]
    assert row.schema.field("b").type == pa.int32()


@pytest.mark.parametrize(
    ("kind", "default", "expected"),
    [
        (pa.date32(), 19723, dt.date(2024, 1, 1)),
        (pa.time32("ms"), 3_600_000, dt.time(1)),
        (pa.time64("us"), 3_600_000_000, dt.time(1)),
        (pa.timestamp("ms", "UTC"), 1, dt.datetime(1970, 1, 1, 0, 0, 0, 1000, dt.timezone.utc)),
        (pa.timestamp("us"), 1, dt.datetime(1970, 1, 1, 0, 0, 0, 1)),  # noqa: DTZ001
        (pa.float32(), 2, 2.0),
    ],
)
def test_default_comes_from_avro_schema(kind: pa.DataType, default: int, expected: object) -> None:
    row = schema_defaults(with_default(default), pa.schema([("a", kind)]))
    assert row is not None
    assert row.schema.field("a").type == kind
    assert row["a"].to_pylist() == [expected]


@pytest.mark.parametrize("kind", [pa.binary(), pa.binary(1), pa.decimal128(10, 2)])
def test_bytes_and_decimals_equal_no_default_that_is_there(kind: pa.DataType) -> None:
    row = schema_defaults(with_default("1"), pa.schema([("a", kind)]))
    assert row is not None
    assert row["a"].to_pylist() == [None]
    assert schema_defaults(with_default(None), pa.schema([("a", kind)])) is None


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (pa.int32(), "1"),
        (pa.int32(), 1 << 31),
        (pa.int64(), True),
        (pa.int64(), 1 << 63),
        (pa.bool_(), 1),
        (pa.string(), 1),
        (pa.float64(), "NaN"),
        (pa.date32(), "2024-01-01"),
        (pa.timestamp("us"), 0.5),
    ],
)
def test_default_of_wrong_type_raises(kind: pa.DataType, default: object) -> None:
    with pytest.raises(CorruptTable, match="default"):
        schema_defaults(with_default(default), pa.schema([("a", kind)]))


def with_default(default: object) -> str:
    field = {"name": "a", "type": "null", "default": default}
    return json.dumps({"type": "record", "name": "r", "fields": [field]})


KINDS = {
    "n": pa.int32(),
    "s": pa.string(),
    "l": pa.list_(pa.int64()),
    "b": pa.binary(),
    "d": pa.binary(),
}


@pytest.mark.parametrize(
    ("column", "old", "new", "is_kept"),
    [
        ("n", 5, None, False),
        ("n", 5, 7, True),
        ("n", None, 7, True),
        ("n", 7, 7, False),
        ("n", None, None, False),
        ("n", 5, 6, False),
        ("s", "x", None, True),
        ("l", [1], None, True),
        ("l", None, None, False),
        ("l", [1], [2], False),
        ("b", b"x", None, True),
        ("d", b"x", None, False),
    ],
)
def test_default_keeps_stored_value(
    column: str, old: object, new: object, *, is_kept: bool
) -> None:
    defaults = pa.RecordBatch.from_pydict({"n": pa.array([7], pa.int32()), "d": pa.nulls(1)})
    rule = FieldMerge("COMMIT_TIME_ORDERING", fill="defaults", defaults=defaults)
    kept = IgnoredUpdateValues(rule, "the property")
    before, after = (
        pa.table({column: pa.array([6 if column == "n" else None, value], KINDS[column])})
        for value in (old, new)
    )
    with (
        pytest.raises(UnsupportedTableFeature, match=f"the property.*'{column}'")
        if is_kept
        else nullcontext()
    ):
        kept.check(before, after, [column])


@pytest.mark.parametrize(
    ("column", "new", "is_kept"),
    [("s", "gone", True), ("b", b"gone", True), ("s", None, False), ("n", None, False)],
)
def test_marker_keeps_stored_value(column: str, new: object, *, is_kept: bool) -> None:
    kept = IgnoredUpdateValues(
        FieldMerge("COMMIT_TIME_ORDERING", fill="marker", marker="gone"), "x"
    )
    old = {"s": "a", "b": b"a", "n": 1}[column]
    before, after = (pa.table({column: pa.array([value], KINDS[column])}) for value in (old, new))
    with pytest.raises(UnsupportedTableFeature) if is_kept else nullcontext():
        kept.check(before, after, [column])
