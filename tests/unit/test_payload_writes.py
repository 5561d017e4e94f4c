"""What a write leaves in base files of tables with older payload classes.

The rows are those that Apache Hudi 1.2.0 leaves (`tests/compat/test_payload_writes.py`).
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.payloads import LEFT_OUT, PAYLOADS, changed, stored

NAMES: dict[str, str | None] = {
    "late delete": "stored",
    "left out": LEFT_OUT,
    "late and left out": "stored",
    "was left out": LEFT_OUT,
    "twice": "newer",
    "twice deleted": "newer",
    "tie": "equal",
    "stays": "stored",
    "new": "newer",
}
OF_CLASS: dict[str, dict[str, str | None]] = {
    # By commit time, once rows of one key are down to one.
    "dms": {"late delete": None, "late and left out": LEFT_OUT, "was left out": "late"},
    "mysql": {},
    "postgres": {"left out": "stored"},
}


@pytest.mark.parametrize("version", [6, 8])
@pytest.mark.parametrize("name", PAYLOADS)
def test_rows_of_a_class(tmp_path: Path, name: str, version: int) -> None:
    payload = PAYLOADS[name]
    table = pyhudi.create_table(
        tmp_path / "t", payload.schema, key="id", order_by=payload.ordering, version=version
    )
    with (tmp_path / "t/.hoodie/hoodie.properties").open("a", encoding="utf-8") as file:
        # As Hudi stores it: version 8 has a mode of its own for classes of users.
        more = "" if name == "dms" else "hoodie.record.merge.mode=CUSTOM\n"
        file.write(f"hoodie.compaction.payload.class={payload.name}\n{more}")
        if name == "dms":
            file.write("hoodie.record.merge.mode=COMMIT_TIME_ORDERING\n")
    table = pyhudi.open_table(tmp_path / "t")
    table.upsert(payload.table(stored(payload)))
    table.upsert(payload.table(changed(payload)))
    found = table.refresh().scan(["id", "name"]).to_arrow().to_pylist()
    wanted = {key: said for key, said in (NAMES | OF_CLASS[name]).items() if said is not None}
    assert {row["id"]: row["name"] for row in found} == wanted


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8])
def test_a_null_flag_of_deletion_is_filled_as_any_column(
    tmp_path: Path, version: int, kind: str
) -> None:
    """PartialUpdateAvroPayload."""
    kinds = {"id": pa.string(), "v": pa.int32(), "ts": pa.int64(), "_hoodie_is_deleted": pa.bool_()}
    schema = pa.schema(kinds.items())
    pyhudi.create_table(
        tmp_path / "t",
        schema,
        key="id",
        order_by="ts",
        version=version,
        type=kind,  # type: ignore[arg-type]
    )
    with (tmp_path / "t/.hoodie/hoodie.properties").open("a", encoding="utf-8") as file:
        file.write("hoodie.record.merge.mode=CUSTOM\n")
        name = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
        file.write(f"hoodie.compaction.payload.class={name}\n")
    table = pyhudi.open_table(tmp_path / "t")
    row = {"id": "k", "v": 1, "ts": 1, "_hoodie_is_deleted": False}
    table.upsert(pa.Table.from_pylist([row], schema=schema))
    table.upsert(pa.Table.from_pylist([{"id": "k", "ts": 2}], schema=schema))
    (found,) = table.refresh().scan(list(kinds)).to_arrow().to_pylist()
    assert found == {**row, "ts": 2}


@pytest.mark.parametrize("index", ["simple", "record_index"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_late_delete_does_not_undo_a_delete_by_key(
    tmp_path: Path, version: int, index: str
) -> None:
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
