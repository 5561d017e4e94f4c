"""Partial updates: values that rows keep, after deletes and with older ordering values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable, _native
from pyhudi.errors import SchemaMismatch
from pyhudi.timeline import Timeline
from tests.helpers.table_builder import TableBuilder

Row = dict[str, Any]
INDEXES = ("simple", "bloom", "global_simple", "record_index", "bucket")


TABLE = TableBuilder(
    {
        "id": (pa.string(), str),
        "ts": (pa.int64(), 10),
        "secret": (pa.string(), "SSN-123"),
        "s": (pa.string(), "x"),
    },
    first="az",
)


def rows(given: list[Row], **more: pa.DataType) -> pa.Table:
    """Columns of the first row."""
    types = {"id": pa.string(), "ts": pa.int64(), "secret": pa.string(), "s": pa.string(), **more}
    return pa.Table.from_pylist(given, pa.schema([(name, types[name]) for name in given[0]]))


def make(base: Path, version: int, kind: Any, index: str, order_by: str | None) -> HudiTable:
    """Rows a and z with a secret."""
    options = {"hoodie.bucket.index.num.buckets": 1} if index == "bucket" else {}
    return TABLE.make(
        base, version=version, kind=kind, index=index, order_by=order_by, options=options
    )


def found(table: HudiTable, key: str) -> tuple[Any, ...]:
    (row,) = table.refresh().scan(where=f"id = '{key}'").to_arrow().to_pylist()
    return (row["ts"], row["secret"], row["s"])


def by_key(table: HudiTable) -> None:
    table.delete_keys(pa.table({"id": ["a"]}))


def by_filter(table: HudiTable) -> None:
    table.delete("s = 'x' AND id = 'a'")


def by_merge(table: HudiTable) -> None:
    table.merge(pa.table({"id": ["a"]})).when_matched_delete().execute()


CASES = [
    *((version, "mor", index, by_key, None) for version in (8, 9) for index in INDEXES),
    *((9, "mor", "simple", delete, "ts") for delete in (by_key, by_filter, by_merge)),
    (8, "mor", "bloom", by_key, "ts"),
    (6, "mor", "simple", by_key, "ts"),
    (9, "cow", "simple", by_key, "ts"),
]


@pytest.mark.parametrize(("version", "kind", "index", "delete", "order_by"), CASES)
def test_partial_update_ignores_values_of_deleted_row(
    tmp_path: Path,
    version: int,
    kind: str,
    index: str,
    delete: Callable[[HudiTable], None],
    order_by: str | None,
) -> None:
    table = make(tmp_path / "t", version, kind, index, order_by)
    delete(table)
    assert table.refresh().scan().count() == 1
    some = rows([{"id": one, "ts": 20, "s": "new"} for one in "az"])
    table.upsert(some, partial=True)
    assert found(table, "a") == (20, None, "new")
    assert found(table, "z") == (20, "SSN-123", "new")
    by_key(table)
    table.upsert(rows([{"id": "a", "ts": 30, "secret": "other"}]), partial=True)
    assert found(table, "a") == (30, "other", None)
    table.update("id = 'a'", {"s": "'set'"})
    assert found(table, "a") == (30, "other", "set")


@pytest.mark.parametrize("version", [6, 8, 9])
def test_partial_update_with_older_ordering_value_loses(tmp_path: Path, version: int) -> None:
    """A whole row with an older ordering value loses all columns to a partially updated row."""
    table = make(tmp_path / "t", version, "mor", "simple", "ts")
    table.upsert(rows([{"id": "a", "ts": 20, "s": "new"}]), partial=True)
    late = {"id": "a", "ts": 15, "secret": "late", "s": "late"}
    table.upsert(rows([late]))
    assert found(table, "a") == (20, "SSN-123", "new")
    table.upsert(rows([{"id": "a", "ts": 5, "secret": "later"}]), partial=True)
    assert found(table, "a") == (20, "SSN-123", "new")


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("order_by", [None, "ts"])
def test_log_blocks_hold_whole_rows(tmp_path: Path, version: int, order_by: str | None) -> None:
    table = make(tmp_path / "t", version, "mor", "simple", order_by)
    table.upsert(rows([{"id": "a", "ts": 20, "s": "new"}]), partial=True)
    timeline = Timeline.load(table.storage, table.config)
    (stat,) = timeline.commit_metadata(timeline.commits[-1]).write_stats
    (block,) = _native.log_blocks(table.storage.native, str(stat.path))
    assert "IS_PARTIAL" not in block["header"]
    assert stat.num_update_writes == 1


@pytest.mark.parametrize(("version", "kind"), [(8, "cow"), (9, "mor")])
def test_new_row_without_required_value_raises(tmp_path: Path, version: int, kind: Any) -> None:
    fields = [
        pa.field("id", pa.string()),
        pa.field("n", pa.int64(), nullable=False),
        ("v", pa.int64()),
    ]
    data = pa.table({"id": ["a"], "n": [1], "v": [1]}, pa.schema(fields))
    table = pyhudi.create_table(tmp_path / "t", data, key="id", type=kind, version=version)
    table.upsert(pa.table({"id": ["a"], "v": [2]}), partial=True)
    with pytest.raises(SchemaMismatch, match="column n"):
        table.upsert(pa.table({"id": ["b"], "v": [3]}), partial=True)
    assert table.refresh().scan().to_arrow().to_pylist() == [{"id": "a", "n": 1, "v": 2}]
