"""Read tasks are packed and split for engines with expensive tasks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi.slices.read import read_task
from pyhudi.slices.task_packing import (
    Pack,
    PackSizes,
    pack_tasks,
    read_pack,
    split_tasks,
    task_size,
)
from tests.helpers.tables import GoldenTables


def sizes_of(packs: list[Pack[int]]) -> list[tuple[int, ...]]:
    return [pack.tasks for pack in packs]


@pytest.mark.parametrize(
    ("sizes", "packs"),
    [
        (PackSizes(10, 0), [(4, 6), (9,), (12,), (1, 1)]),
        (PackSizes(10, 3), [(4,), (6,), (9,), (12,), (1, 1)]),
        (PackSizes(100, 0), [(4, 6, 9, 12, 1, 1)]),
        (PackSizes(100, 0, min_packs=3), [(4, 6), (9,), (12,), (1, 1)]),
        (PackSizes(100, 40, min_packs=99), [(4,), (6,), (9,), (12,), (1,), (1,)]),
    ],
)
def test_packs_are_full_but_not_over(sizes: PackSizes, packs: list[tuple[int, ...]]) -> None:
    found = pack_tasks(lambda _: iter(()), [4, 6, 9, 12, 1, 1], int, sizes)
    assert sizes_of(found) == packs


def test_packing_no_tasks_makes_no_packs() -> None:
    assert pack_tasks(lambda _: iter(()), [], int, PackSizes()) == []


def test_packed_task_returns_rows_in_task_order(golden: GoldenTables) -> None:
    scan = pyhudi.open_table(golden.unpack("v9_mor_part_avro")).scan()
    (pack,) = pack_tasks(read_task, scan.tasks, task_size, PackSizes())
    assert pa.Table.from_batches(read_pack(pack), scan.schema).equals(scan.to_arrow())


def test_large_base_file_is_split_for_reading(tmp_path: Path) -> None:
    rows = pa.table({"id": [f"k{n:06}" for n in range(40_000)], "v": range(40_000)})
    off = {"hoodie.metadata.enable": "false"}
    base = tmp_path / "t"
    pyhudi.create_table(base, rows.schema, key="id", type="mor", options=off)
    table = pyhudi.open_table(base, options=off)
    table.bulk_insert(rows)
    (file,) = base.glob("*.parquet")
    pq.write_table(pq.read_table(file), file, row_group_size=5000)
    scan = table.scan(["id", "v"], "v >= 10000")
    (whole,) = scan.tasks
    parts = split_tasks([whole], PackSizes(whole.slice.size // 3, 0))
    assert len(parts) >= 3
    assert sum(map(task_size, parts)) == task_size(whole)
    found = [[batch.num_rows for batch in read_task(part)] for part in parts]
    assert sum(map(bool, found)) > 1, "each row group in the same part"
    assert sum(map(sum, found)) == 30_000

    table.upsert(pa.table({"id": ["k000001"], "v": [0]}))
    (merged,) = table.scan().tasks
    assert split_tasks([merged], PackSizes(1000, 0)) == [merged]
    with pytest.raises(pyhudi.SchemaMismatch, match="parts"):
        list(read_task(replace(merged, base_part=(0, None))))
