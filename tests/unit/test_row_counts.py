"""Counting rows by what commits tell: never another number than a scan gives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi.api.scan import Scan
from pyhudi.api.table import HudiTable
from pyhudi.errors import HudiError
from pyhudi.slices.row_counts import rows_from_commits
from tests.helpers.table_builder import TableBuilder, numbered
from tests.helpers.tables import GoldenTables, names

TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered(3)),
        "part": (pa.string(), lambda number: f"p{number % 2}"),
        "v": (pa.int64(), 1),
    },
    partition_by="part",
)


def without_data_files(table: HudiTable) -> HudiTable:
    """Whatever opens one fails."""
    for path in Path(table.uri).rglob("*.parquet"):
        path.unlink()
    return pyhudi.open_table(table.uri)


@pytest.mark.parametrize("version", [6, 9])
def test_count_opens_no_file_if_commits_suffice(tmp_path: Path, version: int) -> None:
    table = TABLE.make(tmp_path, version=version, kind="cow")
    table.upsert(TABLE.rows(range(40)))
    table.upsert(TABLE.rows(range(30, 50), v=2))
    table.delete_keys(TABLE.rows([1, 3]).select(["id", "part"]))
    empty = without_data_files(table)
    assert empty.scan().count() == 48
    assert empty.scan(columns=["v"]).count() == 48
    assert empty.scan(where="part = 'p1'").count() == 23
    assert empty.scan(where="part = 'p1' OR part IS NULL").count() == 23
    assert empty.scan(where="part > 'p5'").count() == 0
    assert empty.scan(where="part = 'p1' OR part = 'p0'").count() == 48
    with pytest.raises(HudiError):
        empty.scan(where="part = 'p1' AND v = 1").count()
    with pytest.raises(HudiError):
        empty.scan(limit=3).count()


def test_log_files_are_read(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path, version=9, kind="mor")
    table.upsert(TABLE.rows(range(40)))
    table.delete_keys(TABLE.rows([2]).select(["id", "part"]))
    told, left = rows_from_commits(table.state.timeline, table.scan().tasks)
    assert told == 20
    assert [bool(task.slice.logs) for task in left] == [True]
    assert table.scan().count() == 39
    assert table.scan(read_optimized=True).count() == 40
    assert without_data_files(table).scan(read_optimized=True).count() == 40


@pytest.mark.parametrize("change", ["size", "errors", "count", "twice"])
def test_count_reads_footer_if_commits_are_uncertain(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TABLE.make(tmp_path, version=9, kind="cow")
    table.upsert(TABLE.rows(range(40)))
    timeline = table.state.timeline
    known = timeline.commit_metadata(timeline.commits[-1])

    def doubtful(stat: Any) -> tuple[Any, ...]:
        wrong = replace(stat, num_writes=7)
        match change:
            case "size":
                return (replace(wrong, file_size_in_bytes=1),)
            case "errors":
                return (replace(wrong, total_write_errors=1),)
            case "count":
                return (replace(stat, num_writes=0),)
            case _:
                return (wrong, wrong)

    stats = {
        path: tuple(one for stat in stats for one in doubtful(stat))
        for path, stats in known.partition_to_write_stats.items()
    }
    told = replace(known, partition_to_write_stats=stats)
    monkeypatch.setattr(timeline, "commit_metadata", lambda _: told)
    assert table.scan().count() == 40


def scans(table: HudiTable) -> Iterator[Scan]:
    """All rows, and those of single partitions and of their opposite."""
    yield table.scan()
    yield table.scan(read_optimized=True)
    shown = table.scan().table_schema
    for name in table.config.partition_fields:
        if name not in shown.names:
            continue
        values = pc.unique(table.scan(columns=[name]).to_arrow()[name]).to_pylist()
        some = [value for value in values if value is not None][:2]
        for value in some:
            yield table.scan(where=[(name, "=", value)])
            yield table.scan(where=[(name, "!=", value)])
        yield table.scan(where=f"`{name}` IS NULL")


# Every golden table would take half a minute: one in eight, all of them at night.
_STEP = 1 if os.environ.get("PYHUDI_EVERY_SETTING") else 8


@pytest.mark.parametrize("name", names()[::_STEP])
def test_counts_are_those_of_scans(golden: GoldenTables, name: str) -> None:
    try:
        table = pyhudi.open_table(golden.unpack(name))
        found = list(scans(table))
    except HudiError:
        return
    for scan in found:
        try:
            rows = scan.to_arrow().num_rows
        except HudiError:
            continue
        assert scan.count() == rows, scan
