"""Merging records on write: the data among themselves, and the data with what is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.schema import payloads

MODEL = "org.apache.hudi.common.model."
PAYLOAD, MODE = "hoodie.compaction.payload.class", "hoodie.record.merge.mode"
UNAVAILABLE = "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value"
PARTIAL = {PAYLOAD: MODEL + "PartialUpdateAvroPayload"}
NON_DEFAULTS = {PAYLOAD: MODEL + "OverwriteNonDefaultsWithLatestAvroPayload"}


def rows(ids: Sequence[int], v: int | None, ts: int, n: str | None = "a") -> pa.Table:
    return pa.table(
        {
            "id": [f"k{i}" for i in ids],
            "v": pa.array([v] * len(ids), pa.int32()),
            "n": pa.array([n] * len(ids), pa.string()),
            "ts": pa.array([ts] * len(ids), pa.int32()),
        }
    )


def table_with(base: Path, version: int, kind: Any, properties: Mapping[str, str]) -> HudiTable:
    """Rows k0 to k3, v=1, n="a", ts=10."""
    pyhudi.create_table(
        base, rows(range(4), 1, 10), key="id", order_by="ts", type=kind, version=version
    )
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
                rows([0, 1], None, 20, "UNAV"),
                rows([1], 5, 15, "b"),
                rows([0], 7, 30, None),
                rows([7, 7], 2, 5, "z"),
            ]
        )
    )
    table.upsert(rows([2], 9, 5, None))
    table.upsert(rows([3], None, 50, None))


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
def test_a_registered_merger_is_asked_on_write_too(tmp_path: Path, kind: str, adding: str) -> None:
    custom = {MODE: "CUSTOM", "hoodie.record.merge.strategy.id": adding}
    table = table_with(tmp_path / "t", 9, kind, custom)
    table.upsert(pa.concat_tables([rows([0, 1], 10, 20), rows([0], 100, 20), rows([9, 9], 4, 1)]))
    table.upsert(rows([1], 1000, 1))
    found = {key: row[0] for key, row in values(table).items()}
    assert found == {"k0": 111, "k1": 1011, "k2": 1, "k3": 1, "k9": 8}


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_delete_among_rows_of_one_key_stands_as_a_row(tmp_path: Path, kind: Any) -> None:
    base = tmp_path / "t"
    flag = "_hoodie_is_deleted"
    data = rows(range(3), 1, 10).append_column(flag, pa.array([False] * 3))
    pyhudi.create_table(base, data, key="id", order_by="ts", type=kind, version=9)
    with (base / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("\nhoodie.table.partial.update.mode=IGNORE_DEFAULTS\n")
    table = pyhudi.open_table(base)
    parts = [
        rows([0], None, 30).append_column(flag, pa.array([True])),
        rows([0, 1], 5, 20).append_column(flag, pa.array([False, False])),
    ]
    table.upsert(pa.concat_tables(parts))
    assert {key: row[0] for key, row in values(table).items()} == {"k1": 5, "k2": 1}
