"""Every verb's work and tasks can travel to another process, and so can what comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.engine.local import LocalEngine
from tests.helpers.pickling_engine import Travelling
from tests.helpers.table_builder import TableBuilder, numbered

TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered(5)),
        "part": (pa.string(), lambda number: f"p{number % 3}"),
        "v": (pa.int64(), 1),
        "text": (pa.string(), "x" * 400),
    },
    partition_by="part",
    order_by="v",
    first=range(60),
)


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.slow
def test_write_tasks_pickle(tmp_path: Path, kind: Any) -> None:
    contents = []
    for engine in (LocalEngine(1), Travelling()):
        base = tmp_path / type(engine).__name__
        table = TABLE.make(base, kind=kind, engine=engine)
        table.bulk_insert(TABLE.rows(range(60, 90), v=1), sort="global")
        table.upsert(TABLE.rows(range(80, 100), v=2))
        table.update("v = 2 AND part = 'p1'", {"v": "v + 1"})
        table.delete("part = 'p2' AND v = 1")
        table.delete_keys(TABLE.rows(range(3), v=1).select(["id"]))
        merge = table.merge(TABLE.rows(range(85, 105), v=9)).when_matched_update_all(
            where="target.v = 3"
        )
        merge.when_matched_delete().when_not_matched_insert_all().execute()
        stream = pa.RecordBatchReader.from_batches(
            TABLE.rows(range(1), v=0).schema, TABLE.rows(range(50, 1550), v=20).to_batches(500)
        )
        table.upsert(stream, memory_limit=1 << 20)
        table.insert(TABLE.rows(range(7000, 7004), v=1))
        found = [table.scan().to_arrow().sort_by("id")]
        table.overwrite_partitions(TABLE.rows(range(1), v=5))
        table.delete_partitions(["p1"])
        found.append(table.scan().to_arrow().sort_by("id"))
        table.overwrite(TABLE.rows(range(2), v=6))
        found.append(table.scan().to_arrow().sort_by("id"))
        contents.append(found)
    assert [found.num_rows for found in contents[0]] == [1536, 502, 2]
    assert contents[0] == contents[1]
