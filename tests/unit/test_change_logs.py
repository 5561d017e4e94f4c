"""Change logs beside rewritten base files: when there is one, and what it tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import WriteStat
from tests.helpers.pairwise import pairwise
from tests.helpers.table_builder import TableBuilder, numbered

MODES = ("DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY")


TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered()),
        "city": (pa.string(), lambda number: "rome" if number % 2 else "oslo"),
        "v": (pa.int32(), 1),
        "ts": (pa.int32(), 10),
    },
    partition_by="city",
    order_by="ts",
    first=range(8),
)


def captured(base: Path, version: int, kind: Any, mode: str = MODES[0]) -> HudiTable:
    """A table with change data capture and eight rows, four in each of two partitions."""
    TABLE.make(base, version=version, kind=kind)
    with (base / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("\nhoodie.table.cdc.enabled=true\n")
        properties.write(f"hoodie.table.cdc.supplemental.logging.mode={mode}\n")
    return pyhudi.open_table(base)


def last_stats(table: HudiTable) -> tuple[WriteStat, ...]:
    timeline = Timeline.load(table.storage, table.config)
    return timeline.commit_metadata(timeline.commits[-1]).write_stats


def told(table: HudiTable, since: str) -> list[tuple[str, Any, Any]]:
    def image(row: dict[str, Any] | None) -> Any:
        return row and (row["id"], row["v"])

    found = table.refresh().changes(since).to_arrow().to_pylist()
    return sorted(
        ((row["op"], image(row["before"]), image(row["after"])) for row in found), key=str
    )


def now(table: HudiTable) -> str:
    last = Timeline.load(table.storage, table.config).commits[-1]
    by_completion = table.config.version.incremental_by_completion_time
    return (last.completed if by_completion else last.requested) or ""


@pytest.mark.parametrize(("version", "kind", "mode"), pairwise((6, 8, 9), ("cow", "mor"), MODES))
def test_changes_of_every_operation(tmp_path: Path, version: int, kind: str, mode: str) -> None:
    table = captured(tmp_path / "t", version, kind, mode)
    start = now(table)
    table.upsert(TABLE.rows([1, 2, 9], v=2, ts=20))
    table.delete_keys(pa.table({"id": ["k3", "nowhere"]}))
    table.insert(TABLE.rows([11], v=3, ts=1))
    some = TABLE.rows([5], v=4, ts=50).select(["id", "city", "v", "ts"])
    table.upsert(some.drop_columns([]), partial=True)
    wanted = [
        ("d", ("k3", 1), None),
        ("i", None, ("k11", 3)),
        ("i", None, ("k9", 2)),
        ("u", ("k1", 1), ("k1", 2)),
        ("u", ("k2", 1), ("k2", 2)),
        ("u", ("k5", 1), ("k5", 4)),
    ]
    assert told(table, start) == sorted(wanted, key=str)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_rewrite_that_changes_nothing_leaves_no_file(tmp_path: Path, version: int) -> None:
    table = captured(tmp_path / "t", version, "cow")
    start = now(table)
    files = sorted(path for path in (tmp_path / "t" / "rome").iterdir())
    result = table.upsert(TABLE.rows([1], v=9, ts=5))
    assert (result.committed, result.rows_ignored) == (False, 1)
    assert sorted(path for path in (tmp_path / "t" / "rome").iterdir()) == files
    assert told(table, start) == []
    table.upsert(pa.concat_tables([TABLE.rows([1], v=9, ts=5), TABLE.rows([3], v=9, ts=30)]))
    assert told(table, start) == [("u", ("k3", 1), ("k3", 9))]


def test_change_logs_are_named_and_counted_as_hudi_does(tmp_path: Path) -> None:
    table = captured(tmp_path / "t", 9, "cow")
    table.upsert(TABLE.rows([1], v=2, ts=20))
    (stat,) = last_stats(table)
    ((path, size),) = (stat.cdc_stats or {}).items()
    assert (tmp_path / "t" / path).stat().st_size == size
    token = str(stat.path).rsplit("_", 2)[1]
    instant = str(stat.path).rsplit("_", 1)[1].removesuffix(".parquet")
    assert path == f"rome/.{stat.file_id}_{instant}.log.1_{token}.cdc"


def test_a_delete_that_is_too_late_is_no_change(tmp_path: Path) -> None:
    base = tmp_path / "t"
    data = TABLE.rows(range(4), v=1, ts=10).append_column(
        "_hoodie_is_deleted", pa.array([False] * 4)
    )
    TABLE.make(base, first=data)
    with (base / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("\nhoodie.table.cdc.enabled=true\n")
    table = pyhudi.open_table(base)
    start = now(table)
    late = TABLE.rows([1, 3], v=2, ts=5).append_column(
        "_hoodie_is_deleted", pa.array([True, False])
    )
    gone = TABLE.rows([2], v=2, ts=20).append_column("_hoodie_is_deleted", pa.array([True]))
    table.upsert(pa.concat_tables([late, gone]))
    assert told(table, start) == [("d", ("k2", 1), None)]
    assert len(table.refresh().scan().to_arrow()) == 3
