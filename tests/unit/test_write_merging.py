"""Merging records on write: the data among themselves, and the data with what is stored."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi import HudiTable, UnsupportedTableFeature
from pyhudi.schema import payloads
from tests.helpers.table_builder import TableBuilder, numbered

MODEL = "org.apache.hudi.common.model."
PAYLOAD, MODE = "hoodie.compaction.payload.class", "hoodie.record.merge.mode"
UNAVAILABLE = "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value"
PARTIAL = {PAYLOAD: MODEL + "PartialUpdateAvroPayload"}
NON_DEFAULTS = {PAYLOAD: MODEL + "OverwriteNonDefaultsWithLatestAvroPayload"}


TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered()),
        "v": (pa.int32(), 1),
        "n": (pa.string(), "a"),
        "ts": (pa.int32(), 10),
    },
    order_by="ts",
    first=range(4),
)


def table_with(base: Path, version: int, kind: Any, properties: Mapping[str, str]) -> HudiTable:
    """Rows k0 to k3, v=1, n="a", ts=10."""
    TABLE.make(base, version=version, kind=kind)
    file = base / ".hoodie" / "hoodie.properties"
    lines = [line for line in file.read_text().splitlines() if line.split("=")[0] not in properties]
    file.write_text("\n".join((*lines, *(f"{k}={v}" for k, v in properties.items()), "")))
    return pyhudi.open_table(base)


def values(table: HudiTable) -> dict[str, tuple[Any, ...]]:
    found = table.refresh().scan().to_arrow().to_pylist()
    return {row["id"]: (row["v"], row["n"], row["ts"]) for row in found}


def write(table: HudiTable) -> None:
    table.upsert(
        pa.concat_tables(
            [
                TABLE.rows([0, 1], v=None, ts=20, n="UNAV"),
                TABLE.rows([1], v=5, ts=15, n="b"),
                TABLE.rows([0], v=7, ts=30, n=None),
                TABLE.rows([7, 7], v=2, ts=5, n="z"),
            ]
        )
    )
    table.upsert(TABLE.rows([2], v=9, ts=5, n=None))
    table.upsert(TABLE.rows([3], v=None, ts=50, n=None))


BY_TIME = {
    "k0": (7, "UNAV", 30),
    "k1": (5, "UNAV", 20),
    "k2": (1, "a", 10),
    "k3": (1, "a", 50),
    "k7": (2, "z", 5),
}
BY_COMMIT = BY_TIME | {"k0": (7, "a", 30), "k1": (1, "UNAV", 20), "k2": (9, "a", 5)}
MARKED = BY_TIME | {"k0": (7, None, 30), "k1": (None, "b", 20), "k3": (None, None, 50)}

CASES = [
    (6, PARTIAL, BY_TIME),
    (8, {**PARTIAL, MODE: "CUSTOM"}, BY_TIME),
    (9, {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}, BY_TIME),
    (6, NON_DEFAULTS, BY_COMMIT),
    (8, {**NON_DEFAULTS, MODE: "CUSTOM"}, BY_COMMIT),
    (9, {"hoodie.table.partial.update.mode": "FILL_UNAVAILABLE", UNAVAILABLE: "UNAV"}, MARKED),
]


@pytest.mark.parametrize(("version", "properties", "wanted"), CASES)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_columns_are_filled_from_the_other_record(
    tmp_path: Path, version: int, kind: str, properties: dict[str, str], wanted: dict[str, Any]
) -> None:
    table = table_with(tmp_path / "t", version, kind, properties)
    write(table)
    assert values(table) == wanted


@pytest.mark.parametrize(("version", "properties", "_"), CASES)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_update_refuses_value_merge_mode_ignores(
    tmp_path: Path, version: int, kind: str, properties: dict[str, str], _: object
) -> None:
    table = table_with(tmp_path / "t", version, kind, properties)
    column, value = ("n", "'UNAV'") if UNAVAILABLE in properties else ("v", None)
    rule = re.escape(next(iter(properties)))
    one = merge_source("k1")
    many = merge_source(*(f"k{number}" for number in range(30_000)))
    changes: list[Callable[[], object]] = [
        lambda: table.update("id = 'k1'", {column: value}),
        *(
            table.merge(given, memory_limit=1 << 20).when_matched_update({column: value}).execute
            for given in (one, many)
        ),
    ]
    for change in changes:
        with pytest.raises(UnsupportedTableFeature, match=rf"{rule}=.*column '{column}'"):
            change()
    assert table.refresh().history().num_rows == 1
    table.update("id = 'k1'", {"n": "'b'", "v": "v + 1", "ts": 20})
    assert values(table)["k1"] == (2, "b", 20)


def merge_source(*keys: str) -> pa.Table:
    return pa.table({"id": list(keys)})


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_update_may_set_null_where_null_is_stored(tmp_path: Path, kind: Any) -> None:
    table = table_with(tmp_path / "t", 9, kind, CASES[2][1])
    table.delete("id = 'k1'")
    table.insert(TABLE.rows([1], v=None, n="b"))
    assert table.update("id = 'k1'", {"v": None, "n": "'c'"}).rows_updated == 1
    assert values(table)["k1"] == (None, "c", 10)


@pytest.fixture
def adding(monkeypatch: pytest.MonkeyPatch) -> str:
    """A strategy whose merger adds the values of v."""

    def add(older: pa.RecordBatch, newer: pa.RecordBatch) -> pa.RecordBatch:
        at = newer.schema.get_field_index("v")
        total = pc.add(older.column(at), newer.column(at))
        return newer.set_column(at, newer.schema.field(at), total)

    monkeypatch.setattr(payloads, "_registered", {})
    pyhudi.register_merger("11111111-2222-3333-4444-555555555555", add)
    return "11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_write_uses_registered_merger(tmp_path: Path, kind: str, adding: str) -> None:
    custom = {MODE: "CUSTOM", "hoodie.record.merge.strategy.id": adding}
    table = table_with(tmp_path / "t", 9, kind, custom)
    table.upsert(
        pa.concat_tables(
            [
                TABLE.rows([0, 1], v=10, ts=20),
                TABLE.rows([0], v=100, ts=20),
                TABLE.rows([9, 9], v=4, ts=1),
            ]
        )
    )
    table.upsert(TABLE.rows([1], v=1000, ts=1))
    found = {key: row[0] for key, row in values(table).items()}
    assert found == {"k0": 111, "k1": 1011, "k2": 1, "k3": 1, "k9": 8}


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_combine_keeps_delete_among_rows_of_key(tmp_path: Path, kind: Any) -> None:
    base = tmp_path / "t"
    flag = "_hoodie_is_deleted"
    data = TABLE.rows(range(3), v=1, ts=10).append_column(flag, pa.array([False] * 3))
    TABLE.make(base, kind=kind, first=data)
    with (base / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("\nhoodie.table.partial.update.mode=IGNORE_DEFAULTS\n")
    table = pyhudi.open_table(base)
    parts = [
        TABLE.rows([0], v=None, ts=30).append_column(flag, pa.array([True])),
        TABLE.rows([0, 1], v=5, ts=20).append_column(flag, pa.array([False, False])),
    ]
    table.upsert(pa.concat_tables(parts))
    assert {key: row[0] for key, row in values(table).items()} == {"k1": 5, "k2": 1}


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        # A delete that comes first takes no part in what the live rows are filled with.
        ([(None, None, 20, True), (5, None, 20, False), (None, "z", 20, False)], (5, "z")),
        # A late one stands against none of them.
        ([(5, None, 20, False), (None, "z", 30, False), (None, None, 5, True)], (5, "z")),
        # One that comes in between takes what is older.
        ([(5, "y", 20, False), (None, None, 20, True), (None, "z", 30, False)], (1, "z")),
        ([(5, "y", 20, False), (None, "z", 25, False), (None, None, 30, True)], None),
    ],
)
def test_live_rows_are_merged_whatever_deletes_are_among_them(
    tmp_path: Path, kind: Any, given: list[tuple[Any, ...]], wanted: tuple[Any, ...] | None
) -> None:
    """`BaseWriteHelper.reduceRecords` (Hudi 1.2.0) merges them pair by pair."""
    base, flag = tmp_path / "t", "_hoodie_is_deleted"
    data = TABLE.rows(range(3), v=1, n="a", ts=10)
    TABLE.make(base, kind=kind, first=data.append_column(flag, pa.array([False] * 3)))
    with (base / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("\nhoodie.table.partial.update.mode=IGNORE_DEFAULTS\n")
    table = pyhudi.open_table(base)
    parts = [
        TABLE.rows([0], v=v, n=n, ts=ts).append_column(flag, pa.array([gone]))
        for v, n, ts, gone in given
    ]
    table.upsert(pa.concat_tables(parts))
    found = values(table)
    assert found.pop("k0", (None, None, None))[:2] == (wanted or (None, None))
    assert found == {"k1": (1, "a", 10), "k2": (1, "a", 10)}


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_combine_orders_delete_without_ordering_value_by_position(
    tmp_path: Path, kind: Any, version: int
) -> None:
    """In one write as in two: it wins over what is before it, and loses to what is after it."""
    base, flag = tmp_path / "t", "_hoodie_is_deleted"
    data = TABLE.rows(range(3)).append_column(flag, pa.array([False] * 3))
    table = TABLE.make(base, version=version, kind=kind, first=data)
    given = [(0, 50, False), (9, 0, True), (0, 0, True), (9, -3, False)]
    rows = pa.concat_tables([TABLE.rows([key], ts=ts) for key, ts, _ in given])
    table.upsert(rows.append_column(flag, pa.array([gone for _, _, gone in given])))
    assert {key: row[2] for key, row in values(table).items()} == {"k1": 10, "k2": 10, "k9": -3}


def with_default(base: Path, version: int, kind: Any, properties: Mapping[str, str]) -> HudiTable:
    """Rows k0 to k2, v=1, n="a", ts=10; the default of v is 0, that of n null."""
    empty = TABLE.rows([])
    pyhudi.create_table(base, empty.schema, key="id", order_by="ts", type=kind, version=version)
    file = base / ".hoodie" / "hoodie.properties"
    lines = []
    for line in file.read_text().splitlines():
        name, _, value = line.partition("=")
        if name == "hoodie.table.create.schema":
            avro = json.loads(value.replace("\\:", ":"))
            (v,) = (field for field in avro["fields"] if field["name"] == "v")
            v |= {"type": ["int", "null"], "default": 0}
            lines.append(f"{name}={json.dumps(avro)}".replace(":", "\\:"))
        elif name not in properties:
            lines.append(line)
    file.write_text("\n".join((*lines, *(f"{k}={v}" for k, v in properties.items()), "")))
    table = pyhudi.open_table(base)
    table.upsert(TABLE.rows(range(3)))
    return table


IGNORE_DEFAULTS = {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(
    ("version", "properties", "zero", "null"),
    [
        (6, PARTIAL, 0, 1),
        (8, {**PARTIAL, MODE: "CUSTOM"}, 0, 1),
        (6, NON_DEFAULTS, 1, None),
        (8, {**NON_DEFAULTS, MODE: "CUSTOM"}, 1, None),
        (9, IGNORE_DEFAULTS, 1, None),
    ],
)
def test_null_is_ignored_only_by_default_or_class(
    tmp_path: Path,
    version: int,
    kind: str,
    properties: dict[str, str],
    zero: int,
    null: int | None,
) -> None:
    """`overwriteField` of the classes, `PartialUpdateHandler.reconcileDefaultValues` (1.2.0)."""
    table = with_default(tmp_path / "t", version, kind, properties)
    rows = [TABLE.rows([0], v=0, ts=20), TABLE.rows([1], v=None, ts=20), TABLE.rows([2], n=None)]
    table.upsert(pa.concat_tables(rows))
    wanted = {"k0": (zero, "a", 20), "k1": (null, "a", 20), "k2": (1, "a", 10)}
    assert values(table) == wanted
    given, kept = (None, 0) if null is None else (0, None)
    with pytest.raises(UnsupportedTableFeature, match="column 'v'"):
        table.update("id = 'k2'", {"v": kept})
    table.update("id = 'k2'", {"v": given})
    assert values(table) == wanted | {"k2": (given, "a", 10)}
