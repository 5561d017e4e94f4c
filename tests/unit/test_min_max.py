"""Bounds of columns by statistics: never other values than a scan gives."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi.api.scan import Scan
from pyhudi.errors import ConfigError, HudiError, SchemaMismatch, UnsupportedTableFeature
from pyhudi.query.min_max import bounds_from_statistics
from tests.helpers.odd_values import SCHEMA, first_rows, second_rows
from tests.helpers.table_builder import TableBuilder, numbered
from tests.helpers.tables import GoldenTables, names

TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered(3)),
        "part": (pa.string(), lambda number: f"p{number % 2}"),
        "v": (pa.int64(), lambda number: number * 10),
        "d": (pa.date32(), datetime.date(2024, 5, 6)),
        "f": (pa.float64(), 0.5),
        "none": (pa.int32(), None),
        "tags": (pa.list_(pa.string()), None),
    },
    partition_by="part",
)


def scanned(scan: Scan, column: str) -> tuple[Any, Any]:
    """By reading all rows."""
    found = pc.min_max(scan.to_arrow()[column])
    return found["min"].as_py(), found["max"].as_py()


def test_min_max_opens_no_file_if_statistics_suffice(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path, version=9, kind="cow")
    table.upsert(TABLE.rows(range(40)))
    table.upsert(TABLE.rows(range(30, 50), v=-7))
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()
    table = pyhudi.open_table(tmp_path)
    assert table.scan().bounds("v") == (-7, 290)
    assert table.scan(where="part = 'p1'").bounds("v") == (-7, 290)
    assert table.scan(where="part = 'p9'").bounds("v") == (None, None)
    assert table.scan().bounds("d") == (datetime.date(2024, 5, 6),) * 2
    for scan, column in (
        (table.scan(where="v > 5"), "v"),
        (table.scan(limit=3), "v"),
        (table.scan(), "f"),
        (table.scan(), "id"),
    ):
        with pytest.raises(HudiError):
            scan.bounds(column)


def test_min_max_refuses_date_outside_python_range(tmp_path: Path) -> None:
    days = pa.array([0, 4_000_000], pa.int32()).cast(pa.date32())
    far = pa.array([0, 2**60]).cast(pa.timestamp("us"))
    rows = pa.table({"id": [1, 2], "d": days, "t": far})
    table = pyhudi.create_table(tmp_path / "t", rows, key="id")
    for scan in (table.scan(), table.scan(where="id > 0")):
        with pytest.raises(UnsupportedTableFeature, match=r"12921-08-18 .* no such date32"):
            scan.bounds("d")
        with pytest.raises(UnsupportedTableFeature, match="no such timestamp"):
            scan.bounds("t")
        assert scan.bounds("id") == (1, 2)
    near = table.scan(where="id = 1")
    assert near.bounds("d") == (datetime.date(1970, 1, 1),) * 2


def test_log_files_are_read(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path, version=9, kind="mor")
    table.upsert(TABLE.rows(range(40)))
    table.delete_keys(TABLE.rows([39]).select(["id", "part"]))
    scan = table.scan(columns=["v"])
    told, left = bounds_from_statistics(scan.table, scan.request, scan.tasks)
    assert told.to_pylist() == [0, 380]
    assert [bool(task.slice.logs) for task in left] == [True]
    assert scan.bounds("v") == (0, 380)
    assert table.scan(where="part = 'p1'").bounds("v") == (10, 370)
    assert table.scan(read_optimized=True).bounds("v") == (0, 390)
    assert table.scan().bounds("none") == (None, None)
    assert table.scan(columns=["id"]).bounds("id") == ("k000", "k038")


def test_min_max_refuses_types_without_order(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path, version=9, kind="cow")
    table.upsert(TABLE.rows(range(4)))
    with pytest.raises(ConfigError, match="no order"):
        table.scan().bounds("tags")
    with pytest.raises(SchemaMismatch):
        table.scan().bounds("w")


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", [6, 9])
def test_odd_values(tmp_path: Path, kind: Any, version: int) -> None:
    """NaN, zeros of both signs, long text, text beyond the surrogates."""
    table = pyhudi.create_table(
        tmp_path, SCHEMA, key="id", partition_by="city", order_by="ts", type=kind, version=version
    )
    if "column_stats" not in table.config.metadata_partitions:
        table.create_index("column_stats")
    for batch in (first_rows(), second_rows()):
        table.upsert(pa.Table.from_pylist(batch, SCHEMA))
        for name in SCHEMA.names:
            assert table.scan().bounds(name) == scanned(table.scan(), name), name


# Every golden table takes a minute and more: one in eight, all of them at night.
_STEP = 1 if os.environ.get("PYHUDI_EVERY_SETTING") else 8


@pytest.mark.parametrize("name", names()[::_STEP])
def test_bounds_are_those_of_scans(golden: GoldenTables, name: str) -> None:
    try:
        scan = pyhudi.open_table(golden.unpack(name)).scan(meta_fields=True)
        rows = scan.to_arrow()
    except HudiError:
        return
    for column in rows.column_names:
        try:
            found = pc.min_max(rows[column])
        except pa.ArrowNotImplementedError:
            continue
        assert scan.bounds(column) == (found["min"].as_py(), found["max"].as_py()), column
