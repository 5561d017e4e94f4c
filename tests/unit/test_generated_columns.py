"""Generated columns: writers of pyhudi compute them, or check them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.property_names import GENERATED_COLUMNS
from pyhudi.errors import (
    ConfigError,
    ConstraintViolation,
    CorruptTable,
    SchemaMismatch,
    UnsupportedTableFeature,
)
from tests.helpers.table_builder import SMALL, TableBuilder

UTC = timezone.utc
NOON = datetime(2024, 3, 1, 12, 30, tzinfo=UTC)
TABLE = TableBuilder(
    {
        "id": (pa.string(), str),
        "at": (pa.timestamp("us", "UTC"), NOON),
        "n": (pa.int64(), 7),
    },
    options=SMALL,
    metadata=False,
)
GENERATED = {"day": pyhudi.day("at"), "double": "n * 2", "part": pyhudi.bucket("id", 4)}
LATER = datetime(2024, 3, 2, tzinfo=UTC)


@pytest.fixture(params=["cow", "mor"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> pyhudi.HudiTable:
    return TABLE.make(
        tmp_path / "t", kind=request.param, generated=GENERATED, first=TABLE.rows(["a", "b"])
    )


def values(table: pyhudi.HudiTable) -> dict[str, tuple[date, int]]:
    rows = table.refresh().scan().to_arrow().to_pylist()
    assert {row["part"] for row in rows if row["id"] == "a"} <= {2}
    return {row["id"]: (row["day"], row["double"]) for row in rows}


def transact(table: pyhudi.HudiTable) -> None:
    with table.transaction() as tx:
        tx.update("id = 'a'", {"n": "8", "at": "TIMESTAMP '2024-03-02 00:00:00'"})
        tx.upsert(NEW.slice(1))


def write_group(table: pyhudi.HudiTable) -> None:
    with table.writer() as writer:
        writer.upsert(NEW).result()


NEW = TABLE.rows(["a", "c"], n=8, at=LATER)
WRONG = NEW.append_column("double", pa.array([16, 15]))
WRITES: dict[str, Callable[[pyhudi.HudiTable], Any]] = {
    "upsert": lambda table: table.upsert(NEW),
    "insert": lambda table: table.insert(NEW.slice(1)),
    "bulk_insert": lambda table: table.bulk_insert(NEW.slice(1)),
    "overwrite": lambda table: table.overwrite(NEW),
    "update": lambda table: table.update(
        "id = 'a'", {"n": "8", "at": "TIMESTAMP '2024-03-02 00:00:00'"}
    ),
    "merge": lambda table: (
        table.merge(NEW).when_matched_update_all().when_not_matched_insert_all().execute()
    ),
    "merge values": lambda table: (
        table.merge(NEW)
        .when_matched_update({"n": "source.n", "at": "source.at"})
        .when_not_matched_insert({"id": "source.id", "n": "source.n", "at": "source.at"})
        .execute()
    ),
    "new columns": lambda table: table.upsert(
        NEW.append_column("new", pa.array(["x", "y"])), schema_mode="merge"
    ),
    "partial": lambda table: table.upsert(NEW.select(["id", "n", "at"]), partial=True),
    "partial source": lambda table: (
        table.upsert(NEW.select(["id", "at"]), partial=True),
        table.upsert(NEW.select(["id", "n"]), partial=True),
    ),
    "dicts": lambda table: table.upsert(NEW.to_pylist()),
    "transaction": transact,
    "group writer": write_group,
    "sql": lambda table: table.sql("UPDATE t SET n = 8, at = TIMESTAMP '2024-03-02'"),
}


@pytest.mark.parametrize("write", WRITES)
def test_generated_columns_are_computed_by_every_write(table: pyhudi.HudiTable, write: str) -> None:
    WRITES[write](table)
    stored = values(table)
    assert {stored[name] for name in ("a", "c") if name in stored} <= {
        (date(2024, 3, 2), 16),
        (date(2024, 3, 1), 14),  # `a`, if only `c` was written
    }
    assert (date(2024, 3, 2), 16) in stored.values()


WRONG_WRITES: dict[str, Callable[[pyhudi.HudiTable], Any]] = {
    "upsert": lambda table: table.upsert(WRONG),
    "insert": lambda table: table.insert(WRONG),
    "bulk_insert": lambda table: table.bulk_insert(WRONG),
    "overwrite": lambda table: table.overwrite(WRONG),
    "update": lambda table: table.update("id = 'a'", {"double": "15"}),
    "merge": lambda table: table.merge(WRONG).when_not_matched_insert_all().execute(),
    "partial": lambda table: table.upsert(WRONG.select(["id", "n", "double"]), partial=True),
    "null": lambda table: table.upsert(NEW.append_column("double", pa.nulls(2, pa.int64()))),
}


@pytest.mark.parametrize("write", WRONG_WRITES)
def test_given_values_are_checked(table: pyhudi.HudiTable, write: str) -> None:
    before = values(table)
    with pytest.raises(ConstraintViolation, match="generated column 'double' is not n \\* 2") as e:
        WRONG_WRITES[write](table)
    assert e.value.constraint == "double"
    assert "n=" in str(e.value)
    assert values(table) == before


def test_given_values_may_be_right(table: pyhudi.HudiTable) -> None:
    right = NEW.append_column("double", pa.array([16, 16], pa.int32()))
    table.upsert(right)
    assert values(table)["c"] == (date(2024, 3, 2), 16)


def test_partial_update_needs_all_sources(tmp_path: Path) -> None:
    table = TABLE.make(
        tmp_path / "t", generated={"s": "concat(id, cast(n as string))"}, first=TABLE.rows(["a"])
    )
    table.upsert(NEW.select(["id", "n"]), partial=True)
    assert table.refresh().to_arrow().sort_by("id")["s"].to_pylist() == ["a8", "c8"]
    with pytest.raises(UnsupportedTableFeature, match="uses the column 'n'"):
        table.upsert(NEW.select(["id", "at"]), partial=True)


@pytest.mark.parametrize("index", ["simple", "record_index"])
def test_new_rows_of_a_partial_update_have_their_values(tmp_path: Path, index: str) -> None:
    """A row that misses the source has the value that the expression has for null."""
    table = TABLE.make(
        tmp_path / "t",
        kind="mor",
        index=index,
        metadata=index != "simple",
        generated={"filled": "coalesce(n, 0)"},
        first=TABLE.rows(["a"]),
    )
    table.upsert(NEW.select(["id", "at"]), partial=True)
    rows = table.refresh().to_arrow().sort_by("id")
    assert rows.select(["n", "filled"]).to_pylist() == [
        {"n": 7, "filled": 7},
        {"n": None, "filled": 0},
    ]


def test_rows_that_delete_their_keys_are_not_checked(tmp_path: Path) -> None:
    columns = {**TABLE.columns, "_hoodie_is_deleted": (pa.bool_(), False)}
    builder = TableBuilder(columns, options=SMALL, metadata=False)
    table = builder.make(tmp_path / "t", generated=GENERATED, first=builder.rows(["a", "b"]))
    deleted = builder.rows(["a"], _hoodie_is_deleted=True)
    table.upsert(deleted.append_column("double", pa.array([1])))
    assert sorted(values(table)) == ["b"]


def test_nan_is_the_value_of_nan(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b"], "x": [float("nan"), None], "y": [float("nan"), None]})
    table = pyhudi.create_table(tmp_path / "t", rows, key="id", generated={"y": "x + 1"})
    assert table.to_arrow().num_rows == 2
    with pytest.raises(ConstraintViolation, match="for 1 row"):
        table.upsert([{"id": "a", "x": 1.0, "y": float("nan")}])


INVALID: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "unknown column": ({"x": "middle + 1"}, SchemaMismatch, "no column 'middle'"),
    "no column": ({"x": "1 + 1"}, ConfigError, "uses no column"),
    "itself": ({"n": "n + 1"}, ConfigError, "uses the column itself"),
    "of generated": ({"x": "n + 1", "y": "x + 1"}, ConfigError, "uses the generated column 'x'"),
    "meta column": ({"_hoodie_record_key": "upper(id)"}, ConfigError, "is a meta column"),
    "call time": ({"x": "datediff(current_date, at)"}, ConfigError, "lists the functions"),
    "empty": ({"x": " "}, ConfigError, "generated column 'x'"),
    "no text": ({"x": 1}, ConfigError, "generated column 'x'"),
    "type": ({"x": pyhudi.day("n")}, ConfigError, "has the type int64"),
    "hash of a float": ({"x": pyhudi.bucket("x", 2)}, SchemaMismatch, "no column 'x'"),
    "two names": ({"x": pyhudi.day("at", as_="y")}, ConfigError, "another name"),
}


@pytest.mark.parametrize("case", INVALID)
def test_create_table_refuses_invalid_expressions(tmp_path: Path, case: str) -> None:
    generated, error, match = INVALID[case]
    with pytest.raises(error, match=match):
        TABLE.make(tmp_path / "t", generated=generated)
    assert not pyhudi.table_exists(tmp_path / "t")


def test_table_shows_its_generated_columns(table: pyhudi.HudiTable) -> None:
    assert dict(pyhudi.open_table(table.uri).generated_columns) == {
        "day": "CAST(at AS DATE)",
        "double": "n * 2",
        "part": "pmod(hash(id), 4)",
    }
    described = table.sql("DESCRIBE t")
    assert isinstance(described, pa.Table)
    comments = {row["col_name"]: row["comment"] for row in described.to_pylist()}
    assert comments["double"] == "GENERATED ALWAYS AS (n * 2)"
    assert comments["n"] is None


def test_sql_inserts_rows_without_generated_columns(table: pyhudi.HudiTable) -> None:
    table.sql("INSERT INTO t (id, at, n) VALUES ('z', TIMESTAMP '2020-01-01', 3)")
    assert values(table)["z"] == (date(2020, 1, 1), 6)


def test_sources_and_generated_columns_cannot_be_renamed(table: pyhudi.HudiTable) -> None:
    for name in ("n", "double"):
        with pytest.raises(UnsupportedTableFeature, match="generated column 'double'"):
            table.alter().rename_column(name, "m").execute()
    table.drop_generated_column("double")
    table.alter().rename_column("double", "m").execute()


def test_add_generated_column_fills_stored_rows(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", kind="mor", first=TABLE.rows(["a", "b"]))
    table.upsert(TABLE.rows(["b"], n=None, at=None))
    table.add_generated_column("day", pyhudi.day("at"))
    table.add_generated_column("double", "n * 2")
    table.add_generated_column("part", pyhudi.bucket("id", 4))
    assert values(table) == {"a": (date(2024, 3, 1), 14), "b": (None, None)}
    before = table.history().num_rows
    table.add_generated_column("day", pyhudi.day("at"))
    assert table.refresh().history().num_rows == before
    with pytest.raises(ConfigError, match="already"):
        table.add_generated_column("day", pyhudi.month("at"))
    table.upsert(NEW)
    assert values(table)["c"] == (date(2024, 3, 2), 16)


def test_add_generated_column_takes_a_column_with_right_values(tmp_path: Path) -> None:
    rows = TABLE.rows(["a", "b"]).append_column("double", pa.array([14, None]))
    table = pyhudi.create_table(tmp_path / "t", rows, key="id")
    with pytest.raises(ConstraintViolation, match="for 1 stored row"):
        table.add_generated_column("double", "n * 3")
    assert GENERATED_COLUMNS not in table.properties
    table.add_generated_column("double", "n * 2")
    assert table.to_arrow()["double"].to_pylist() == [14, 14]
    with pytest.raises(ConfigError, match="no generated column 'x'"):
        table.drop_generated_column("x")
    table.drop_generated_column("double")
    assert GENERATED_COLUMNS not in table.properties
    table.upsert(WRONG)


def test_add_generated_column_continues_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TABLE.make(tmp_path / "t", first=TABLE.rows(["a"]))

    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pyhudi.admin.generated_columns.recompute", fail)
        with pytest.raises(KeyboardInterrupt):
            table.add_generated_column("double", "n * 2")
    table.refresh()
    assert table.to_arrow()["double"].to_pylist() == [None]
    table.add_generated_column("double", "n * 2")
    assert table.to_arrow()["double"].to_pylist() == [14]


def test_damaged_property_is_an_error(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", first=TABLE.rows(["a"]))
    with (tmp_path / "t/.hoodie/hoodie.properties").open("a") as file:
        file.write(f"\n{GENERATED_COLUMNS}=[1]\n")
    with pytest.raises(CorruptTable, match=GENERATED_COLUMNS):
        pyhudi.open_table(table.uri).upsert(NEW)


def test_merge_rules_exclude_generated_columns(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTableFeature, match=GENERATED_COLUMNS):
        TABLE.make(tmp_path / "t", merge_rules={"n": "sum"}, generated=GENERATED)
