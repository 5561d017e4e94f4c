"""A handle reuses the snapshot of its own commit, and a commit the listing of its plan."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api import table_handle
from pyhudi.api.table import HudiTable
from pyhudi.txn.transaction import Transaction
from tests.helpers.table_builder import TableBuilder

TABLE = TableBuilder(
    {
        "id": (pa.string(), str),
        "city": (pa.string(), lambda name: f"c{len(name) % 2}"),
        "v": (pa.int64(), 1),
    },
    partition_by="city",
    order_by="v",
)


def assert_same_as_loaded(table: HudiTable) -> None:
    loaded = pyhudi.open_table(table.uri)
    assert table.state.timeline.instants == loaded.state.timeline.instants
    assert table.state.timeline.first_active == loaded.state.timeline.first_active
    assert table.state.config.properties == loaded.state.config.properties
    assert table.schema == loaded.schema
    assert table.scan().to_arrow().sort_by("id") == loaded.scan().to_arrow().sort_by("id")


@pytest.mark.parametrize(("kind", "version"), [("cow", 9), ("mor", 8), ("mor", 6)])
def test_handle_after_commit_is_like_a_loaded_one(
    tmp_path: Path, kind: Literal["cow", "mor"], version: int
) -> None:
    table = TABLE.make(tmp_path / "t", kind=kind, version=version)
    for turn in range(3):
        table.upsert(TABLE.rows([f"k{turn}", "a", "bb"], v=turn))
        assert_same_as_loaded(table)
    table.delete_keys(pa.table({"id": ["a"]}))
    assert_same_as_loaded(table)
    table.overwrite(TABLE.rows(["x"]))
    assert_same_as_loaded(table)


def test_handle_is_not_loaded_after_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = TABLE.make(tmp_path / "t", kind="mor")
    table.upsert(TABLE.rows(["a"]))

    def broken(*_: Any) -> None:
        raise AssertionError("loaded")

    monkeypatch.setattr(table_handle, "load_snapshot", broken)
    result = table.upsert(TABLE.rows(["a"], v=2))
    last = table.state.timeline.last_commit
    assert last is not None
    assert (last.requested, last.completed) == (result.instant, result.completion)


def test_handle_after_commit_has_commits_of_other_writers(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", kind="mor")
    other = pyhudi.open_table(table.uri)
    other.upsert(TABLE.rows(["a"]))
    table.upsert(TABLE.rows(["bb"]))
    assert_same_as_loaded(table)
    wider = TABLE.rows(["c"]).append_column("w", pa.array([1.5]))
    other.upsert(wider, schema_mode="merge")
    table.delete_keys(pa.table({"id": ["a"]}))
    assert_same_as_loaded(table)
    table.upsert(TABLE.rows(["d"]).append_column("x", pa.array([1])), schema_mode="merge")
    assert_same_as_loaded(table)
    other.refresh().alter().add_column("z", pa.int64()).execute()
    table.delete_keys(pa.table({"id": ["bb"]}))
    assert_same_as_loaded(table)


def test_handle_after_commit_of_recreated_table(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", kind="mor")
    table.upsert(TABLE.rows(["a", "bb"]))
    shutil.rmtree(tmp_path / "t")
    TABLE.make(tmp_path / "t", kind="mor").upsert(TABLE.rows(["c"]))
    table.upsert(TABLE.rows(["d"]))
    assert_same_as_loaded(table)


def test_handle_keeps_newer_snapshot_of_another_thread(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", kind="mor")
    loaded = table._loaded
    table.upsert(TABLE.rows(["a"]))
    earlier = table.state
    assert not table._advance(loaded, 0, earlier)
    loaded, operations = table._loaded, table._operations
    pyhudi.open_table(table.uri).upsert(TABLE.rows(["bb"]))
    table.refresh()
    assert not table._advance(loaded, operations, earlier)
    assert_same_as_loaded(table)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_commit_lists_again_after_another_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Literal["cow", "mor"]
) -> None:
    """Otherwise statistics of the partition would not have the other commit's values."""
    options = {"hoodie.parquet.small.file.limit": "0"}
    table = TABLE.make(tmp_path / "t", kind=kind, options=options)
    table.upsert(TABLE.rows(["a"]))
    enter = Transaction.__enter__

    def enter_late(txn: Transaction) -> Transaction:
        monkeypatch.setattr(Transaction, "__enter__", enter)
        pyhudi.open_table(table.uri, options=options).upsert(TABLE.rows(["e"], v=50))
        return enter(txn)

    monkeypatch.setattr(Transaction, "__enter__", enter_late)
    table.upsert(TABLE.rows(["a"], v=3))
    found = pyhudi.open_table(table.uri).scan(where="v = 50").to_arrow()
    assert found.column("id").to_pylist() == ["e"]
    assert table.check(deep=True).ok
