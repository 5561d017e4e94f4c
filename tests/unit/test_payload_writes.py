"""What a write leaves in base files of tables with older payload classes.

The rows are those that Apache Hudi 1.2.0 leaves (`tests/compat/test_payload_writes.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.payloads import LEFT_OUT, PAYLOADS, Payload, changed, stored

NAMES: dict[str, str | None] = {
    "late delete": "stored",
    "left out": LEFT_OUT,
    "late and left out": "stored",
    "was left out": LEFT_OUT,
    "twice": "newer",
    "twice deleted": "newer",
    "late delete of new": "newer",
    "tie": "equal",
    "stays": "stored",
    "new": "newer",
}
OF_CLASS: dict[str, dict[str, str | None]] = {
    "partial": {"late delete": None, "new and gone": "older"},
    # By commit time, once rows of one key are down to one.
    "dms": {"late delete": None, "late and left out": LEFT_OUT, "was left out": "late"},
    "mysql": {},
    "postgres": {"left out": "stored"},
}


def class_table(base: Path, payload: Payload, version: int, kind: Any = "cow") -> pyhudi.HudiTable:
    pyhudi.create_table(
        base, payload.schema, key="id", order_by=payload.ordering, version=version, type=kind
    )
    # As Hudi stores it: version 8 has a mode of its own for classes of users.
    mode = "COMMIT_TIME_ORDERING" if payload is PAYLOADS["dms"] else "CUSTOM"
    said = {"hoodie.record.merge.mode": mode, "hoodie.compaction.payload.class": payload.name}
    with (base / ".hoodie/hoodie.properties").open("a", encoding="utf-8") as file:
        file.write("".join(f"{key}={value}\n" for key, value in said.items()))
    return pyhudi.open_table(base)


@pytest.mark.parametrize("version", [6, 8])
@pytest.mark.parametrize("name", PAYLOADS)
def test_rows_of_a_class(tmp_path: Path, name: str, version: int) -> None:
    payload = PAYLOADS[name]
    table = class_table(tmp_path / "t", payload, version)
    table.upsert(payload.table(stored(payload)))
    table.upsert(payload.table(changed(payload)))
    found = table.refresh().scan(["id", "name"]).to_arrow().to_pylist()
    wanted = {key: said for key, said in (NAMES | OF_CLASS[name]).items() if said is not None}
    assert {row["id"]: row["name"] for row in found} == wanted


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8])
@pytest.mark.parametrize("name", ["dms", "mysql", "postgres"])
def test_payload_marker_ignores_case(tmp_path: Path, name: str, version: int, kind: str) -> None:
    """`AWSDmsAvroPayload`, `AbstractDebeziumAvroPayload` (Hudi 0.15.0, 1.2.0)."""
    payload = PAYLOADS[name]
    table = class_table(tmp_path / "t", payload, version, kind)
    table.upsert(payload.table([payload.row(key, "stored", 1000) for key in ("gone", "stays")]))
    gone, new = (payload.row(key, "x", 1001, delete=True) for key in ("gone", "new"))
    for row in (gone, new):
        row |= {key: row[key].swapcase() for key in row.keys() & {"Op", "_change_operation_type"}}
    table.upsert(payload.table([gone, new]))
    found = table.refresh().scan(["id"]).to_arrow().column("id").to_pylist()
    assert found == ["stays"]


def partial(*given: tuple[Any, ...]) -> pa.Table:
    """Rows by id, name, ts and whether they are deletes."""
    schema = PAYLOADS["partial"].schema
    return pa.Table.from_pylist(
        [dict(zip(schema.names, row, strict=True)) for row in given], schema
    )


def rows_of(table: pyhudi.HudiTable) -> dict[str, tuple[Any, ...]]:
    found = table.refresh().scan(PAYLOADS["partial"].schema.names).to_arrow().to_pylist()
    return {row["id"]: tuple(row.values())[1:] for row in found}


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8])
def test_null_delete_flag_is_filled_like_other_columns(
    tmp_path: Path, version: int, kind: str
) -> None:
    """PartialUpdateAvroPayload."""
    table = class_table(tmp_path / "t", PAYLOADS["partial"], version, kind)
    table.upsert(partial(("k", "old", 1, False)))
    table.upsert(partial(("k", None, 2, None)))
    assert rows_of(table) == {"k": ("old", 2, False)}


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8])
@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        # A late delete loses, and fills what the row lacks.
        ([(None, 5, False), ("x", 3, True)], ("x", 5, False)),
        ([("x", 3, True), (None, 5, False)], ("x", 5, False)),
        # One that would win by its ordering value gives way to what comes after it.
        ([("x", 5, True), (None, 3, False)], ("old", 3, False)),
        ([("x", 5, True), (None, 3, False), (None, 4, False)], ("old", 4, False)),
        ([("x", 3, False), (None, 5, True)], None),
        ([("x", 3, True), (None, 5, None)], None),
    ],
)
def test_deletes_among_rows_of_a_key_are_merged_as_rows(
    tmp_path: Path,
    version: int,
    kind: str,
    given: list[tuple[Any, ...]],
    wanted: tuple[Any, ...] | None,
) -> None:
    """`PartialUpdateAvroPayload.preCombine` (Hudi 0.15.0, 1.2.0)."""
    table = class_table(tmp_path / "t", PAYLOADS["partial"], version, kind)
    table.upsert(partial(("k", "old", 1, False), ("stays", "old", 1, False)))
    table.upsert(partial(*(("k", *row) for row in given)))
    assert rows_of(table) == {"stays": ("old", 1, False)} | ({"k": wanted} if wanted else {})


@pytest.mark.parametrize("index", ["simple", "record_index"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_late_delete_does_not_undo_delete_by_key(tmp_path: Path, version: int, index: str) -> None:
    """A delete by key has no ordering value, and wins; the late one would lose to the old row."""
    kinds = {"id": pa.string(), "ts": pa.int64(), "_hoodie_is_deleted": pa.bool_()}
    schema = pa.schema(kinds.items())
    table = pyhudi.create_table(
        tmp_path / "t", schema, key="id", order_by="ts", type="mor", version=version, index=index
    )

    def rows(*given: tuple[str, int, bool]) -> pa.Table:
        named = [dict(zip(kinds, row, strict=True)) for row in given]
        return pa.Table.from_pylist(named, schema=schema)

    table.upsert(rows(("a", 30, False), ("b", 30, False)))
    table.delete_keys(pa.table({"id": ["a"]}))
    table.upsert(rows(("a", 1, True)))
    for _ in range(2):
        assert table.refresh().scan(["id"]).to_arrow().column("id").to_pylist() == ["b"]
        table.compact()
    blocks = {row["type"] for row in table.inspect.logs().to_pylist()}
    assert version == 6 or not [kind for kind in blocks if "DATA" in kind]
