"""Keys in base files of merge-on-read tables that log files have deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi


def rows(ids: str, value: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": [value] * len(ids)})


def keys(ids: str) -> pa.Table:
    return pa.table({"id": list(ids)})


@pytest.fixture(params=[6, 8, 9])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    def table(**how: Any) -> pyhudi.HudiTable:
        schema = rows("a", 0).schema
        return pyhudi.create_table(
            tmp_path / "t", schema, key="id", type="mor", version=request.param, **how
        )

    return table


def values(table: pyhudi.HudiTable) -> list[tuple[str, int]]:
    table = pyhudi.open_table(table.uri)
    assert table.check(deep=True).findings == ()
    found = table.scan(["id", "v"]).to_arrow().to_pylist()
    return sorted((row["id"], row["v"]) for row in found)


@pytest.mark.parametrize("limit", [None, 4 << 20])
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "RECORD_INDEX"])
class TestAKeyThatWasInsertedTwice:
    def test_and_deleted_twice_comes_back_once(
        self, make: Any, index: str, limit: int | None
    ) -> None:
        table = make(index=index)
        for value in (1, 2):
            table.insert(rows("ab" if value == 1 else "a", value))
            table.delete_keys(keys("a"))
        table.upsert(rows("a", 3).to_reader(1), memory_limit=limit)
        assert values(table) == [("a", 3), ("b", 1)]
        table.upsert(rows("a", 4))
        assert values(table) == [("a", 4), ("b", 1)]

    def test_and_deleted_once_is_updated_where_it_lives(
        self, make: Any, index: str, limit: int | None
    ) -> None:
        table = make(index=index)
        table.insert(rows("ab", 1))
        table.delete_keys(keys("a"))
        table.insert(rows("a", 2))
        table.upsert(rows("a", 3).to_reader(1), memory_limit=limit)
        assert values(table) == [("a", 3), ("b", 1)]


@pytest.mark.parametrize("limit", [None, 4 << 20])
@pytest.mark.parametrize("index", [None, "SIMPLE", "GLOBAL_BLOOM"])
def test_merge_reinserts_key_deleted_by_clause(
    make: Any, index: str | None, limit: int | None
) -> None:
    """The record index has forgotten it, and has to be told of it."""
    table = make(index=index)
    table.insert(rows("abc", 1))
    table.insert(rows("d", 1))
    table.delete_keys(keys("a"))
    given = table.merge(rows("a", 2), memory_limit=limit)
    merge = given.when_matched_delete(where="source.v > 5")
    result = merge.when_not_matched_insert_all().execute()
    assert values(table) == [("a", 2), ("b", 1), ("c", 1), ("d", 1)]
    if index is None:
        assert (result.rows_inserted, result.rows_updated) == (1, 0)
    table.upsert(rows("a", 3))
    assert values(table) == [("a", 3), ("b", 1), ("c", 1), ("d", 1)]


@pytest.mark.parametrize("index", [None, "SIMPLE", "GLOBAL_BLOOM"])
def test_delete_counts_live_rows(make: Any, index: str | None) -> None:
    table = make(index=index)
    table.insert(rows("ab", 1))
    table.delete_keys(keys("a"))
    table.insert(rows("c", 2))
    result = table.delete_keys(keys("a"))
    assert (result.rows_deleted, result.committed) == (0, False)
    table.insert(rows("a", 2))
    assert table.delete_keys(keys("a")).rows_deleted == 1
    assert values(table) == [("b", 1), ("c", 2)]
