"""Overwriting partitions with delete rows only leaves the partitions empty.

Hudi takes each partition that a write has a status of (`SparkInsertOverwriteCommitActionExecutor`,
1.2.0), and rows that are left out when a file is written make one, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.write.memory_rows import MemoryRows
from pyhudi.write.spilled_rows import SpilledRows
from tests.helpers.table_builder import TableBuilder

MIB = 1 << 20
TABLE = TableBuilder(
    {
        "id": (pa.string(), str),
        "part": (pa.string(), lambda name: name[0]),
        "text": (pa.string(), "-"),
        "_hoodie_is_deleted": (pa.bool_(), False),
    },
    partition_by="part",
    first=["x1", "x2", "y1", "z1"],
)


def data(*, large: bool) -> Any:
    """A new row for y, and deletes for w, x and y; large ones come in pieces."""
    live, gone = TABLE.rows(["y2"]), TABLE.rows(["w1", "x3", "y3"], _hoodie_is_deleted=True)
    if not large:
        return pa.concat_tables([live, gone])

    def pieces() -> Iterator[pa.RecordBatch]:
        yield from gone.to_batches()
        for piece in range(8):
            names = (f"y{piece}-{number}" for number in range(100))
            yield from TABLE.rows(names, text="t" * 10_000, _hoodie_is_deleted=True).to_batches()
        yield from live.to_batches()

    return pa.RecordBatchReader.from_batches(TABLE.schema, pieces())


def rows_of(base: Path) -> list[str]:
    return sorted(row["id"] for row in pyhudi.open_table(base).scan().to_arrow().to_pylist())


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("index", ["record_index", "simple", "bucket"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_partitions_of_deletes_are_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str, kind: Any, large: bool
) -> None:
    table = TABLE.make(tmp_path / "t", index=index, kind=kind)
    used: list[type] = []
    for rows in (MemoryRows, SpilledRows):
        for name in ("for_new_files", "for_new_buckets"):
            monkeypatch.setattr(rows, name, noting(getattr(rows, name), used))
    result = table.overwrite_partitions(data(large=large), memory_limit=4 * MIB)
    assert used == [SpilledRows if large else MemoryRows]
    assert rows_of(tmp_path / "t") == ["y2", "z1"]
    assert not (tmp_path / "t" / "w").exists()
    assert result.file_groups_replaced >= 2
    table.upsert(TABLE.rows(["x1", "w1"]))
    assert rows_of(tmp_path / "t") == ["w1", "x1", "y2", "z1"]
    table = pyhudi.open_table(tmp_path / "t")
    assert table.check(deep=True).ok
    table.overwrite_partitions(TABLE.rows(["x9"], _hoodie_is_deleted=True))
    assert rows_of(tmp_path / "t") == ["w1", "y2", "z1"]


def noting(verb: Any, used: list[type]) -> Any:
    def noted(rows: Any, *more: Any, **how: Any) -> Any:
        used.append(type(rows))
        return verb(rows, *more, **how)

    return noted


@pytest.mark.parametrize("names", [[], ["w1"]])
def test_overwrite_of_nothing_makes_no_commit(tmp_path: Path, names: Iterable[str]) -> None:
    table = TABLE.make(tmp_path / "t")
    assert not table.overwrite_partitions(TABLE.rows(names, _hoodie_is_deleted=True)).committed
    assert rows_of(tmp_path / "t") == ["x1", "x2", "y1", "z1"]
