"""Results of mergers that users register: values that do not fit, and keys that changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi import HudiTable, SchemaMismatch
from pyhudi.schema import payloads
from pyhudi.schema.payloads import Merger
from tests.helpers.table_builder import TableBuilder, numbered

STRATEGY = "11111111-2222-3333-4444-555555555555"
TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered()),
        "p": (pa.string(), "x"),
        "n": (pa.int32(), 1),
        "f": (pa.float32(), 1.0),
        "s": (pa.struct([("n", pa.int32())]), {"n": 1}),
    },
    partition_by="p",
    first=range(2),
)

Register = Callable[[Merger], None]


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Register:
    monkeypatch.setattr(payloads, "_registered", {})
    return lambda merger: pyhudi.register_merger(STRATEGY, merger)


def custom(table: HudiTable) -> HudiTable:
    """The table with records that are merged by a registered merger."""
    properties = Path(table.uri) / ".hoodie" / "hoodie.properties"
    with properties.open("a", encoding="utf-8") as file:
        file.write(
            f"\nhoodie.record.merge.mode=CUSTOM\nhoodie.record.merge.strategy.id={STRATEGY}\n"
        )
    return pyhudi.open_table(table.uri)


def newer(_: pa.RecordBatch, newer: pa.RecordBatch) -> pa.RecordBatch:
    return newer


def setting(name: str, values: Any) -> Merger:
    """A merger that takes the newer record with another value in one column."""

    def merge(_: pa.RecordBatch, newer: pa.RecordBatch) -> pa.RecordBatch:
        column = values if isinstance(values, pa.Array) else pa.array([values] * len(newer))
        return newer.set_column(newer.schema.get_field_index(name), name, column)

    return merge


UNFIT = [
    ("n", 2**40),
    ("n", 1.9),
    ("n", "x"),
    ("f", 1e300),
    ("s", {"n": 2**40}),
    ("s", {"n": 1, "more": 1}),
    ("p", "y"),
    ("p", None),
    ("id", "other"),
    ("_hoodie_record_key", "other"),
    ("_hoodie_partition_path", "y"),
]


@pytest.mark.parametrize(("column", "value"), UNFIT)
def test_merger_result_that_does_not_fit_is_refused(
    tmp_path: Path, register: Register, column: str, value: object
) -> None:
    """A cast made null of it, and a write or a compaction stored that."""
    cow = custom(TABLE.make(tmp_path / "cow"))
    mor = custom(TABLE.make(tmp_path / "mor", kind="mor"))
    before = cow.scan().to_arrow()
    register(newer)
    mor.upsert(TABLE.rows([0]))
    register(setting(column, value))
    for change in (lambda: cow.upsert(TABLE.rows([0])), mor.compact, mor.scan().to_arrow):
        with pytest.raises(SchemaMismatch, match=f"merger of {STRATEGY}.*'{column}'") as caught:
            change()
        assert caught.value.hint
    register(newer)
    assert cow.refresh().scan().to_arrow() == before
    mor.refresh().compact()
    assert mor.scan().to_arrow().sort_by("id") == before.sort_by("id")


@pytest.mark.parametrize(
    ("column", "value", "stored"),
    [("n", 2.0, 2), ("n", None, None), ("f", 0.1, pytest.approx(0.1)), ("s", {"n": 7}, {"n": 7})],
)
def test_merger_result_of_another_type_is_cast_exactly(
    tmp_path: Path, register: Register, column: str, value: object, stored: object
) -> None:
    table = custom(TABLE.make(tmp_path / "t"))
    register(setting(column, value))
    table.upsert(TABLE.rows([0]))
    rows = table.scan(where="id = 'k0'").to_arrow().to_pylist()
    assert [row[column] for row in rows] == [stored]


def test_merger_result_without_a_required_value_is_refused(
    tmp_path: Path, register: Register
) -> None:
    schema = pa.schema([("id", pa.string()), pa.field("n", pa.int32(), nullable=False)])
    rows = pa.table({"id": ["a"], "n": pa.array([1], pa.int32())}, schema=schema)
    table = custom(pyhudi.create_table(tmp_path / "t", rows, key="id", type="mor"))
    register(newer)
    table.upsert(rows)
    register(setting("n", pa.nulls(1, pa.int32())))
    for change in (table.scan().to_arrow, table.compact):
        with pytest.raises(SchemaMismatch, match=f"merger of {STRATEGY}.*'n', which is required"):
            change()


def test_merger_may_give_rows_of_any_kind(tmp_path: Path, register: Register) -> None:
    def rows(_: pa.RecordBatch, newer: pa.RecordBatch) -> tuple[list[dict[str, Any]], list[bool]]:
        return newer.to_pylist(), pc.equal(newer["id"], "k0").to_pylist()

    table = custom(TABLE.make(tmp_path / "t"))
    register(rows)
    table.upsert(TABLE.rows([0, 1], n=3))
    assert table.scan().to_arrow().select(["id", "n"]).to_pylist() == [{"id": "k1", "n": 3}]
