"""Tables that are made with a payload class, a partial update mode, or rows that delete."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from tests.helpers.tables import FOLDER

MODEL = "org.apache.hudi.common.model."
PAYLOAD = "hoodie.compaction.payload.class"
PARTIAL = "hoodie.table.partial.update.mode"
MERGE = "hoodie.record.merge.property."
MARKS: dict[str, object] = {
    "hoodie.payload.delete.field": "op",
    "hoodie.payload.delete.marker": "D",
}
SCHEMA = pa.schema(
    [("op", pa.string()), ("id", pa.int64()), ("v", pa.string()), ("ts", pa.int64())]
)


def merge_properties(found: dict[str, str]) -> dict[str, str]:
    words = ("merge", "payload", "partial", "ordering", "precombine")
    return {name: text for name, text in found.items() if any(word in name for word in words)}


def hudis_properties(table: str) -> dict[str, str]:
    with zipfile.ZipFile(FOLDER / f"{table}.zip") as files:
        text = files.read(f"{table}/.hoodie/hoodie.properties").decode()
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, _, value in pairs}


@pytest.mark.parametrize(
    "table", sorted(path.stem for path in FOLDER.glob("v[69]_mor_payload_*.zip"))
)
def test_create_table_stores_merge_properties_of_hudi(tmp_path: Path, table: str) -> None:
    """Hudi made these with the same payload class: 0.15.0 those of version 6, 1.2.0 those of 9."""
    hudi = merge_properties(hudis_properties(table))
    payload = hudi.get("hoodie.table.legacy.payload.class") or hudi[PAYLOAD]
    order = hudi.get("hoodie.table.ordering.fields") or hudi["hoodie.table.precombine.field"]
    marks = MARKS if table.endswith("delete_marker") else {}
    fields = {"id", "op", *order.split(","), "Op", "_change_operation_type"} - {"op"}
    fields = (fields - {"Op"}) | {"op"} if marks else fields
    made = pyhudi.create_table(
        tmp_path / "t",
        pa.schema([(name, pa.string()) for name in sorted(fields)]),
        key="id",
        order_by=order.split(","),
        type="mor",
        version=int(table[1]),
        options={PAYLOAD: payload, **marks},
    )
    mine = merge_properties(dict(made.config.properties))
    if table.startswith("v6") and marks:
        # Hudi's writers are told each time; pyhudi stores it, as `set_properties` does.
        hudi |= {name: str(text) for name, text in marks.items()}
    assert mine == hudi


def rows(*given: tuple[str, int, str | None, int]) -> pa.Table:
    columns = zip(*given, strict=True)
    return pa.table(dict(zip(SCHEMA.names, map(list, columns), strict=True)), schema=SCHEMA)


def state(base: Path, **options: Any) -> dict[int, str]:
    read = pyhudi.open_table(str(base), **options).to_arrow(["id", "v"]).to_pylist()
    return {row["id"]: row["v"] for row in read}


@pytest.mark.parametrize(
    ("version", "kind", "order", "options"),
    [
        (9, "mor", "ts", MARKS),
        (9, "cow", None, MARKS),
        (9, "cow", "ts", {MERGE + name: text for name, text in MARKS.items()}),
        (8, "mor", None, MARKS),
        (6, "mor", "ts", MARKS),
        (6, "cow", None, MARKS),
        (9, "mor", None, {PAYLOAD: MODEL + "AWSDmsAvroPayload"}),
    ],
)
def test_rows_delete_in_a_table_that_was_made_so(
    tmp_path: Path, version: Any, kind: Any, order: str | None, options: dict[str, object]
) -> None:
    """As rows of a database migration service: Op I, U and D."""
    base = tmp_path / "t"
    schema = SCHEMA if PAYLOAD not in options else SCHEMA.set(0, pa.field("Op", pa.string()))
    table = pyhudi.create_table(
        base, schema, key="id", order_by=order, type=kind, version=version, options=options
    )

    def upsert(*given: tuple[str, int, str | None, int]) -> None:
        table.upsert(rows(*given).rename_columns(schema.names))

    upsert(("I", 1, "a", 1), ("I", 2, "b", 1), ("I", 3, "c", 1), ("D", 3, None, 2))
    assert state(base) == {1: "a", 2: "b"}
    upsert(("D", 99, None, 5), ("D", 2, None, 5), ("U", 1, "a2", 5))
    assert state(base) == {1: "a2"}
    upsert(("I", 2, "again", 8))
    assert state(base) == {1: "a2", 2: "again"}
    if kind == "mor":
        table.compact()
        assert state(base) == {1: "a2", 2: "again"}


def test_partial_update_mode_of_a_new_table(tmp_path: Path) -> None:
    base = tmp_path / "t"
    options = {PARTIAL: "ignore_defaults"}
    table = pyhudi.create_table(base, SCHEMA, key="id", order_by="ts", type="mor", options=options)
    assert table.config.properties[PARTIAL] == "IGNORE_DEFAULTS"
    table.upsert(rows(("I", 1, "a", 1)))
    table.upsert(rows(("U", 1, None, 2)))
    assert state(base) == {1: "a"}
    with pytest.raises(UnsupportedTableFeature, match=PARTIAL):
        pyhudi.create_table(tmp_path / "8", SCHEMA, key="id", version=8, options=options)
    with pytest.raises(UnsupportedTableFeature, match="KEEP_VALUES"):
        pyhudi.create_table(
            tmp_path / "9", SCHEMA, key="id", order_by="ts", options={PARTIAL: "KEEP_VALUES"}
        )
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({PAYLOAD: "org.example.Mine"}, UnsupportedTableFeature, "org.example.Mine"),
        (
            {PAYLOAD: MODEL + "debezium.MySqlDebeziumAvroPayload"},
            ConfigError,
            "_event_bin_file, _event_pos",
        ),
        (
            {
                PAYLOAD: MODEL + "DefaultHoodieRecordPayload",
                "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
            },
            ConfigError,
            "EVENT_TIME_ORDERING",
        ),
        (
            {
                PAYLOAD: MODEL + "DefaultHoodieRecordPayload",
                "hoodie.datasource.write.payload.class": MODEL + "EventTimeAvroPayload",
            },
            ConfigError,
            "EventTimeAvroPayload",
        ),
        ({PAYLOAD: MODEL + "AWSDmsAvroPayload", **MARKS}, ConfigError, "'Op'"),
        ({"hoodie.payload.delete.field": "op"}, ConfigError, "only one"),
        ({**MARKS, "hoodie.payload.delete.field": "nope"}, UnsupportedTableFeature, "nope"),
        (
            {"hoodie.payload.event.time.field": "ts"},
            UnsupportedTableFeature,
            "hoodie.payload.event.time.field",
        ),
        (
            {"hoodie.record.merge.custom.implementation.classes": "a.B"},
            UnsupportedTableFeature,
            "how records are merged",
        ),
    ],
)
def test_rules_that_pyhudi_does_not_honour_make_no_table(
    tmp_path: Path, options: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        pyhudi.create_table(tmp_path / "t", SCHEMA, key="id", order_by="ts", options=options)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(("version", "kind"), [(6, "cow"), (6, "mor"), (8, "mor"), (9, "mor")])
def test_open_table_takes_delete_marker_options(tmp_path: Path, version: Any, kind: Any) -> None:
    """As Hudi's writers are with each write; the table stores nothing of it."""
    base = tmp_path / "t"
    pyhudi.create_table(base, SCHEMA, key="id", order_by="ts", type=kind, version=version)
    before = (base / ".hoodie/hoodie.properties").read_bytes()
    table = pyhudi.open_table(str(base), options=MARKS)
    table.upsert(rows(("I", 1, "a", 1), ("I", 2, "b", 1)))
    table.upsert(rows(("D", 2, "b", 2), ("U", 1, "a2", 2)))
    table.upsert(rows(("I", 3, "c", 3)))
    assert state(base, options=MARKS) == {1: "a2", 3: "c"}
    if kind == "mor":
        table.compact()
    assert state(base) == {1: "a2", 3: "c"}
    after = (base / ".hoodie/hoodie.properties").read_bytes()
    assert b"payload.delete" not in after
    assert version != 6 or before == after


def test_set_properties_sets_delete_marker_of_empty_table(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = pyhudi.create_table(base, SCHEMA, key="id", order_by="ts", type="mor")
    table.set_properties(MARKS)
    stored = pyhudi.open_table(str(base)).config.properties
    assert {name: stored[MERGE + name] for name in MARKS} == MARKS
    assert not MARKS.keys() & stored.keys()
    table.upsert(rows(("I", 1, "a", 1), ("I", 2, "b", 1)))
    table.upsert(rows(("D", 2, None, 2)))
    assert state(base) == {1: "a"}
    other = pyhudi.create_table(tmp_path / "o", rows(("I", 1, "a", 1)), key="id", order_by="ts")
    with pytest.raises(ConfigError, match="wins"):
        other.set_properties(MARKS)


def test_open_table_refuses_other_delete_marker(tmp_path: Path) -> None:
    base = tmp_path / "t"
    pyhudi.create_table(base, SCHEMA, key="id", order_by="ts", options=MARKS)
    assert pyhudi.open_table(str(base), options=MARKS).count() == 0
    other = {**MARKS, "hoodie.payload.delete.marker": "X"}
    with pytest.raises(ConfigError, match="the table has"):
        pyhudi.open_table(str(base), options=other).count()
