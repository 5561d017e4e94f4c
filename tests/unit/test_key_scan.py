"""Scans whose filter lists record keys: they read as `get` does, and return what a plan returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.api import key_scan
from pyhudi.api.scan import Scan
from pyhudi.query import key_reader
from tests.helpers.pairwise import pairwise
from tests.helpers.table_builder import TableBuilder
from tests.unit.test_storage_calls import counted, python_calls

ROWS = 200
MAX_PYTHON_CALLS = 1100
"""986 of a scan by one key in a file that is known, most of them of the SQL parser."""

TABLE = TableBuilder(
    {
        "id": (pa.string(), lambda number: f"k{number:03d}"),
        "part": (pa.string(), lambda number: f"p{number % 3}"),
        "v": (pa.int64(), lambda number: None if number % 10 == 3 else number),
        "ts": (pa.int64(), 1),
    },
    partition_by="part",
    order_by="ts",
)

FILTERS: list[Any] = [
    "id = 'k011'",
    "id IN ('k150', 'k003', 'k011', 'k999')",
    "id IN ('k011', 'k012', 'k013') AND v > 11",
    "id = 'k013' AND v IS NULL",
    "id IN ('k011', 'k012') AND part = 'p0'",
    "id = 'k011' AND part = 'p0'",
    "id = 'k011' AND id = 'k012'",
    "id = 'k999'",
    "_hoodie_record_key = 'k007'",
    [("id", "in", [f"k{number:03d}" for number in range(0, 60, 7)]), ("v", "<", 40)],
    pc.field("id") == "k021",
    "id = 'k011' OR v = 12",
    "id >= 'k190'",
]


@pytest.fixture(params=["cow", "mor"], scope="module")
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with updates and deletes; of type merge-on-read, they are in log files."""
    path = tmp_path_factory.mktemp(request.param)
    table = TABLE.make(path, version=9, kind=request.param)
    table.upsert(TABLE.rows(range(ROWS)))
    table.upsert(TABLE.rows(range(5, 30), v=-1, ts=2))
    table.delete_keys(TABLE.rows([3, 7]).select(["id", "part"]))
    return path


def planned(scan: Scan) -> Scan:
    """Return the scan without the lookup state of its handle."""
    return replace(scan, key_readers=None)


@pytest.mark.parametrize("where", FILTERS, ids=str)
def test_key_scan_equals_planned_scan(base: Path, where: Any) -> None:
    table = pyhudi.open_table(base)
    for options in (
        {},
        {"columns": ["v", "id"]},
        {"columns": ["v"]},
        {"meta_fields": True},
        {"limit": 2},
    ):
        scan = table.scan(where=where, **options)
        expected = planned(scan).to_arrow()
        assert scan.to_arrow() == expected
        assert scan.to_arrow().schema == scan.schema
        assert scan.count() == expected.num_rows
        assert scan.head(1) == expected.slice(0, 1)


def test_key_scan_needs_no_plan(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once files and index are known, nothing is listed or planned, whatever the columns."""
    table = pyhudi.open_table(base)
    table.get([f"k{number:03d}" for number in range(ROWS)])
    plans: list[object] = []
    monkeypatch.setattr(key_reader, "select_file_slices", lambda *_: plans.append(_))

    def read_all_outputs(name: str) -> list[Any]:
        scan = table.scan(where=f"id = '{name}'")
        narrow = table.scan(["id"], where=f"id = '{name}'").head(3)
        return [scan.to_arrow()["v"].to_pylist(), scan.count(), narrow["id"].to_pylist()]

    assert read_all_outputs("k008") == [[-1], 1, ["k008"]]
    calls = counted(monkeypatch)
    assert read_all_outputs("k011") == [[-1], 1, ["k011"]]
    assert (calls.total(), plans) == (0, [])
    number = python_calls(lambda: table.scan(where="id = 'k017'").to_arrow())
    assert number <= MAX_PYTHON_CALLS


UNUSUAL: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "no record index": ({"hoodie.metadata.global.record.level.index.enable": "false"}, {}),
    "no metadata table": ({"hoodie.metadata.enable": "false"}, {}),
    "no data skipping": ({"hoodie.enable.data.skipping": "false"}, {}),
    "read-optimized": ({}, {"read_optimized": True}),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_scan_is_planned_without_record_index(
    base: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, arguments = UNUSUAL[name]
    table = pyhudi.open_table(base, options=options)
    if name == "no record index":
        monkeypatch.setattr(key_scan, "RECORD_INDEX", "no such partition")
    monkeypatch.setattr(key_reader.KeyReader, "_find", None)
    expected = table.scan(**arguments).to_arrow().filter(pc.field("id") == "k011")
    assert table.scan(where="id = 'k011'", **arguments).to_arrow() == expected


@pytest.mark.parametrize(("kind", "version"), pairwise(["cow", "mor"], [6, 9]))
def test_keys_that_repeat_are_all_found(tmp_path: Path, kind: Any, version: int) -> None:
    options = {"hoodie.metadata.record.index.enable": "true"}
    table = TABLE.make(tmp_path, version=version, kind=kind, options=options)
    table.insert(TABLE.rows(range(20)))
    table.insert(TABLE.rows(range(5, 15), v=-1))
    table = pyhudi.open_table(tmp_path)
    expected = table.to_arrow().filter(pc.field("id") == "k007")
    assert expected.num_rows >= 1
    found = table.scan(where="id = 'k007'").to_arrow()
    assert sorted(found["v"].to_pylist()) == sorted(expected["v"].to_pylist())


STEPS: dict[str, Callable[[HudiTable], Any]] = {
    "upsert": lambda table: table.upsert(TABLE.rows(range(0, 40, 3), v=-2, ts=3)),
    "delete": lambda table: table.delete_keys(TABLE.rows(range(1, 40, 5)).select(["id", "part"])),
    "cluster": lambda table: table.cluster(sort_by=["id"]),
    "insert": lambda table: table.insert(TABLE.rows(range(40, 50))),
}


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_handles_keep_their_snapshot_while_others_write(tmp_path: Path, kind: Any) -> None:
    """Also handles of an earlier time, and scans of one."""
    writer = TABLE.make(tmp_path, version=9, kind=kind)
    first = writer.upsert(TABLE.rows(range(40))).instant
    keys = [f"k{number:03d}" for number in (0, 1, 2, 6, 39, 45)]
    where = [("id", "in", keys)]
    handles: list[tuple[HudiTable, list[Any]]] = []
    for work in STEPS.values():
        warm, cold = pyhudi.open_table(tmp_path), pyhudi.open_table(tmp_path)
        rows = warm.to_arrow()
        expected = rows.filter(pc.field("id").isin(keys)).sort_by("id").to_pylist()
        assert warm.scan(where=where).to_arrow().sort_by("id").to_pylist() == expected
        handles += [(warm, expected), (cold, expected)]
        work(writer)
        for handle, snapshot in handles:
            assert handle.scan(where=where).to_arrow().sort_by("id").to_pylist() == snapshot
        current = writer.refresh().scan(where=where).to_arrow()
        assert warm.refresh().scan(where=where).to_arrow() == current
        handles.append((pyhudi.open_table(tmp_path), current.sort_by("id").to_pylist()))
        handles = [pair for pair in handles if pair[0] is not warm]
    earliest = writer.scan(where=where, as_of=first).to_arrow().sort_by("id")
    assert earliest["id"].to_pylist() == keys[:-1]
    opened = pyhudi.open_table(tmp_path, as_of=first).scan(where=where).to_arrow().sort_by("id")
    assert opened == earliest
