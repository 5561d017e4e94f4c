"""Every verb's work and tasks can travel to another process, and so can what comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.engine.local import LocalEngine
from tests.helpers.travelling import Travelling


def rows(first: int, count: int, v: int) -> pa.Table:
    numbers = range(first, first + count)
    parts = [f"p{n % 3}" for n in numbers]
    columns = {"id": [f"k{n:05}" for n in numbers], "part": parts, "v": [v] * count}
    return pa.table({**columns, "text": ["x" * 400] * count})


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_every_verb_travels(tmp_path: Path, kind: Any) -> None:
    contents = []
    for engine in (LocalEngine(1), Travelling()):
        base = tmp_path / type(engine).__name__
        table = pyhudi.create_table(
            base, rows(0, 60, 1), key="id", partition_by="part", order_by="v", type=kind,
            engine=engine,
        )  # fmt: skip
        table.bulk_insert(rows(60, 30, 1), sort="global")
        table.upsert(rows(80, 20, 2))
        table.update("v = 2 AND part = 'p1'", {"v": "v + 1"})
        table.delete("part = 'p2' AND v = 1")
        table.delete_keys(rows(0, 3, 1).select(["id"]))
        merge = table.merge(rows(85, 20, 9)).when_matched_update_all(where="target.v = 3")
        merge.when_matched_delete().when_not_matched_insert_all().execute()
        stream = pa.RecordBatchReader.from_batches(
            rows(0, 1, 0).schema, rows(50, 1500, 20).to_batches(500)
        )
        table.upsert(stream, memory_limit=1 << 20)
        table.insert(rows(7000, 4, 1))
        found = [table.scan().to_arrow().sort_by("id")]
        table.overwrite_partitions(rows(0, 1, 5))
        table.delete_partitions(["p1"])
        found.append(table.scan().to_arrow().sort_by("id"))
        table.overwrite(rows(0, 2, 6))
        found.append(table.scan().to_arrow().sort_by("id"))
        contents.append(found)
    assert [found.num_rows for found in contents[0]] == [1536, 502, 2]
    assert contents[0] == contents[1]
