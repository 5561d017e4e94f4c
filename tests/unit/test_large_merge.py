"""Merging a source larger than memory: the same rows as in memory, within the limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.api.table import HudiTable
from pyhudi.errors import SchemaMismatch
from tests.helpers.table_builder import TableBuilder

pytestmark = pytest.mark.slow

TABLE = TableBuilder.of(
    pa.schema(
        [("id", pa.string()), ("part", pa.string()), ("v", pa.int64()), ("text", pa.string())]
    ),
    partition_by="part",
    order_by="v",
)
MIB = 1 << 20
ROWS = 3000
"""Of which the source, with 40 bytes a row and more, is beyond a sixteenth of a megabyte."""


NEW = {name: f"source.{name}" for name in TABLE.schema.names}


def rows(first: int, count: int, v: int) -> pa.Table:
    numbers = range(first, first + count)
    columns = {
        "id": [f"k{n:06}" for n in numbers],
        "part": [f"p{n % 3}" for n in numbers],
        "v": [v] * count,
        "text": [f"{v} of {n}" for n in numbers],
    }
    return pa.table(columns, schema=TABLE.schema)


def source(first: int, count: int) -> pa.RecordBatchReader:
    """Rows with a column that no table has, as a stream of small batches."""
    found = rows(first, count, 5)
    found = found.append_column("n", pa.array(range(count), pa.int64()))
    return pa.RecordBatchReader.from_batches(found.schema, found.to_batches(max_chunksize=500))


def merged(table: HudiTable, limit: int | None) -> Any:
    merge = table.merge(source(ROWS // 2, ROWS), memory_limit=limit)
    return (
        merge.when_matched_delete(where="source.n % 10 = 0")
        .when_matched_update({"v": "target.v + source.v", "text": "source.text"}, where="n % 3 > 0")
        .when_not_matched_insert(NEW, where="n % 2 = 0")
        .execute()
    )


def content(table: HudiTable) -> pa.Table:
    return table.scan(columns=["id", "part", "v", "text"]).to_arrow().sort_by("id")


@pytest.mark.parametrize("index", ["record_index", "simple", "global_simple", "bucket"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_rows_are_the_same_as_from_memory(tmp_path: Path, kind: str, index: str) -> None:
    found = []
    for limit in (MIB, None):
        options = {"hoodie.bucket.index.num.buckets": "2"} if index == "bucket" else {}
        table = TABLE.make(tmp_path / str(limit), kind=kind, index=index, options=options)
        table.insert(rows(0, ROWS, 1))
        # Deleted keys come again: their files, or log files, may still have them.
        table.delete_keys(rows(ROWS // 2, 200, 1).select(["id", "part"]))
        result = merged(table, limit)
        counts = (result.rows_in, result.rows_inserted, result.rows_updated, result.rows_deleted)
        found.append((counts, content(table)))
    (counts, large), (counts_whole, whole) = found
    assert counts == counts_whole
    assert counts[0] == ROWS
    assert large.equals(whole)


def test_large_merge_reports_duplicate_source_key(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    table.insert(rows(0, 10, 1))
    twice = pa.concat_tables([rows(0, ROWS, 2), rows(7, 1, 3)])
    with pytest.raises(SchemaMismatch, match="several rows of one key"):
        table.merge(twice, memory_limit=MIB).when_not_matched_insert_all().execute()
    assert table.scan().count() == 10
