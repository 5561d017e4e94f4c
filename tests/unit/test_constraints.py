"""Constraints: conditions that pyhudi's writers check."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi.config.property_names import CONSTRAINTS
from pyhudi.errors import (
    ConfigError,
    ConstraintViolation,
    CorruptTable,
    SchemaMismatch,
    UnsupportedTableFeature,
)
from tests.helpers.table_builder import SMALL, TableBuilder

TABLE = TableBuilder(
    {
        "id": (pa.string(), str),
        "low": (pa.int64(), 1),
        "high": (pa.int64(), 9),
    },
    options=SMALL,
    metadata=False,
)
CONDITIONS = {"order": "low <= high", "positive": "low >= 0"}


@pytest.fixture(params=["cow", "mor"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> pyhudi.HudiTable:
    return TABLE.make(
        tmp_path / "t", kind=request.param, constraints=CONDITIONS, first=TABLE.rows(["a", "b"])
    )


def values(table: pyhudi.HudiTable) -> dict[str, tuple[int, int]]:
    rows = table.refresh().scan().to_arrow().to_pylist()
    return {row["id"]: (row["low"], row["high"]) for row in rows}


def transact(table: pyhudi.HudiTable) -> None:
    with table.transaction() as tx:
        tx.update("id = 'a'", {"low": "low + 20"})


BAD = TABLE.rows(["a", "c"], low=10)
WRITES: dict[str, Callable[[pyhudi.HudiTable], Any]] = {
    "upsert": lambda table: table.upsert(BAD),
    "insert": lambda table: table.insert(BAD),
    "bulk_insert": lambda table: table.bulk_insert(BAD),
    "overwrite": lambda table: table.overwrite(BAD),
    "update": lambda table: table.update("id = 'a'", {"low": "low + 20"}),
    "merge update": lambda table: (
        table.merge(BAD).when_matched_update({"low": "source.low"}).execute()
    ),
    "merge insert": lambda table: table.merge(BAD).when_not_matched_insert_all().execute(),
    "new columns": lambda table: table.upsert(
        BAD.append_column("new", pa.array(["x", "y"])), schema_mode="merge"
    ),
    "partial": lambda table: table.upsert(BAD.select(["id", "low", "high"]), partial=True),
    "transaction": transact,
}


@pytest.mark.parametrize("write", WRITES)
def test_constraint_is_checked_by_every_write(table: pyhudi.HudiTable, write: str) -> None:
    before = values(table)
    with pytest.raises(ConstraintViolation, match="the constraint 'order'") as error:
        WRITES[write](table)
    assert error.value.constraint == "order"
    assert "low=" in str(error.value)
    assert values(table) == before


def test_constraint_allows_nulls_deletes_and_valid_rows(table: pyhudi.HudiTable) -> None:
    table.upsert(TABLE.rows(["a"], low=None))
    table.update("id = 'b'", {"low": "9"})
    table.delete_keys(["a"])
    assert values(table) == {"b": (9, 9)}


def test_constraint_is_checked_by_a_group_writer(table: pyhudi.HudiTable) -> None:
    with table.writer() as writer:
        good = writer.upsert(TABLE.rows(["d"]))
        with pytest.raises(ConstraintViolation):
            writer.upsert(BAD)
        assert good.result().committed
    assert sorted(values(table)) == ["a", "b", "d"]


def test_constraint_ignores_rows_that_delete_their_keys(tmp_path: Path) -> None:
    columns = {**TABLE.columns, "_hoodie_is_deleted": (pa.bool_(), False)}
    builder = TableBuilder(columns, options=SMALL, metadata=False)
    table = builder.make(tmp_path / "t", constraints=CONDITIONS, first=builder.rows(["a", "b"]))
    table.upsert(builder.rows(["a"], low=99, _hoodie_is_deleted=True))
    assert sorted(values(table)) == ["b"]


def test_partial_upsert_needs_the_columns_of_constraints(table: pyhudi.HudiTable) -> None:
    with pytest.raises(UnsupportedTableFeature, match="uses the column 'high'"):
        table.upsert(BAD.select(["id", "low"]), partial=True)


def test_create_checks_its_rows_and_conditions(tmp_path: Path) -> None:
    base = tmp_path / "t"
    with pytest.raises(ConstraintViolation):
        TABLE.make(base, constraints=CONDITIONS, first=BAD)
    with pytest.raises(SchemaMismatch, match="no column 'middle'"):
        TABLE.make(base, constraints={"m": "middle > 0"})
    with pytest.raises(ConfigError, match="constraint 'm'"):
        TABLE.make(base, constraints={"m": " "})
    assert not pyhudi.table_exists(base)


def test_add_and_drop_constraint(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", first=TABLE.rows(["a", "b"], low=5))
    assert table.constraints == {}
    with pytest.raises(ConstraintViolation, match="false for 2 stored rows"):
        table.add_constraint("small", "low < 5")
    table.add_constraint("small", "low <= 5")
    table.add_constraint("small", "low <= 5")
    with pytest.raises(ConfigError, match="already"):
        table.add_constraint("small", "low <= 6")
    assert pyhudi.open_table(table.uri).constraints == {"small": "low <= 5"}
    with pytest.raises(ConstraintViolation):
        table.upsert(TABLE.rows(["c"], low=6))
    with pytest.raises(ConfigError, match="no constraint 'big'"):
        table.drop_constraint("big")
    table.drop_constraint("small")
    table.upsert(TABLE.rows(["c"], low=6))
    assert CONSTRAINTS not in table.properties


def test_writer_notices_a_constraint_that_is_added_while_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyhudi.write.memory_rows import MemoryRows  # noqa: PLC0415 - patched

    table = TABLE.make(tmp_path / "t", first=TABLE.rows(["a"]))
    other = pyhudi.open_table(table.uri)
    assign = MemoryRows.for_upsert

    def assign_later(rows: MemoryRows) -> Any:
        if not other.constraints:
            other.add_constraint("small", "low < 5")
        return assign(rows)

    monkeypatch.setattr(MemoryRows, "for_upsert", assign_later)
    with pytest.raises(ConstraintViolation):
        table.upsert(TABLE.rows(["c"], low=6))
    assert sorted(values(table)) == ["a"]


def test_columns_of_constraints_cannot_be_renamed_or_dropped(table: pyhudi.HudiTable) -> None:
    for change in (
        table.alter().rename_column("low", "least"),
        table.alter().drop_column("high"),
    ):
        with pytest.raises(UnsupportedTableFeature, match="uses the column"):
            change.execute()
    table.alter().add_column("more", pa.int64()).execute()
    with pytest.raises(ConstraintViolation):
        table.upsert(BAD.append_column("more", pa.nulls(2, pa.int64())))


def test_constraints_survive_upgrade_and_downgrade(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", version=6, constraints=CONDITIONS, first=["a"])
    table.upgrade(9)
    assert table.constraints == CONDITIONS
    table.downgrade(8)
    assert pyhudi.open_table(table.uri).constraints == CONDITIONS


def test_constraints_need_whole_rows(tmp_path: Path) -> None:
    payload = "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"
    options = {**SMALL, "hoodie.compaction.payload.class": payload}
    with pytest.raises(UnsupportedTableFeature, match="column by column"):
        TABLE.make(tmp_path / "t", version=6, options=options, constraints=CONDITIONS)
    table = TABLE.make(tmp_path / "u", version=6, options=options)
    with pytest.raises(UnsupportedTableFeature, match="column by column"):
        table.add_constraint("positive", "low >= 0")


def test_damaged_constraints_are_an_error(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", constraints=CONDITIONS)
    file = tmp_path / "t/.hoodie/hoodie.properties"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text(
        "".join(f"{CONSTRAINTS}=[1]\n" if line.startswith(CONSTRAINTS) else line for line in lines)
    )
    with pytest.raises(CorruptTable, match=CONSTRAINTS):
        pyhudi.open_table(table.uri).upsert(TABLE.rows(["a"]))


def test_update_with_an_expression_is_checked(table: pyhudi.HudiTable) -> None:
    with pytest.raises(ConstraintViolation):
        table.update("true", {"low": pc.field("high") + 1})
