"""Rows with a stored key and null in the key column, as Hudi 1.2.0's MERGE INTO can leave them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from tests.helpers.table_builder import TableBuilder

TABLE = TableBuilder({"id": (pa.string(), str), "v": (pa.int64(), 1), "ts": (pa.int64(), 5)})
OPTIONS = {"pyhudi.read.check.file.sizes": "false"}
TABLES = pytest.mark.parametrize(("kind", "version"), [("mor", 9), ("cow", 8), ("mor", 6)])
Row = tuple[str | None, int]


def without_id(base: Path, key: str, **axes: Any) -> HudiTable:
    """Rows a, b and c, one of them with null in its key column."""
    TABLE.make(base, first=TABLE.rows("abc"), order_by="ts", **axes)
    (path,) = base.glob("*.parquet")
    file = pq.ParquetFile(path)
    rows = file.read()
    ids = pa.array([None if one == key else one for one in rows["id"].to_pylist()])
    rows = rows.set_column(rows.schema.get_field_index("id"), "id", ids)
    pq.write_table(rows.replace_schema_metadata(file.metadata.metadata), path)
    return pyhudi.open_table(base, options=OPTIONS)


def content(table: HudiTable, where: str | None = None) -> list[Row]:
    rows = table.refresh().scan(["id", "v"], where=where).to_arrow().to_pylist()
    return sorted(((row["id"], row["v"]) for row in rows), key=str)


CHANGES: dict[str, tuple[Callable[[HudiTable], object], list[Row]]] = {
    "of another key": (lambda t: t.upsert(TABLE.rows("b", v=2)), [("b", 2), ("c", 1), (None, 1)]),
    "of the key": (lambda t: t.upsert(TABLE.rows("a", v=2)), [("a", 2), ("b", 1), ("c", 1)]),
    "late": (lambda t: t.upsert(TABLE.rows("a", v=2, ts=1)), [("b", 1), ("c", 1), (None, 1)]),
    "by key": (lambda t: t.delete_keys(["a"]), [("b", 1), ("c", 1)]),
    "by filter": (lambda t: t.delete("id IS NULL"), [("b", 1), ("c", 1)]),
    "update": (lambda t: t.update("id IS NULL", {"v": 3}), [("b", 1), ("c", 1), (None, 3)]),
}


@TABLES
@pytest.mark.parametrize("change", CHANGES)
def test_writes_find_a_row_by_its_stored_key(
    tmp_path: Path, change: str, kind: str, version: int
) -> None:
    table = without_id(tmp_path, "a", kind=kind, version=version)
    write, rows = CHANGES[change]
    write(table)
    assert content(table) == rows
    if change == "late":  # The record that lost is not found by its own key column either.
        assert content(table, "id = 'a'") == []
    if kind == "mor":
        table.compact()
        assert content(table) == rows


def test_check_finds_rows_with_null_in_the_key_column(tmp_path: Path) -> None:
    table = without_id(tmp_path, "a", kind="mor")
    table.upsert(TABLE.rows("b", v=2))
    found = [one for one in table.refresh().check(deep=True) if one.kind == "key_column_null"]
    assert [(one.item, one.severity, one.expected) for one in found] == [
        ("a", "error", "the key in its column")
    ]
    table.upsert(TABLE.rows("a", v=2))
    assert "key_column_null" not in {one.kind for one in table.refresh().check(deep=True)}
