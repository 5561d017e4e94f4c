"""Row groups that either side wrote, in files that the other one reads and rewrites."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi.slices import write_base
from tests.helpers.oracle.client import HudiOracle

DDL = (
    "id string, ts int, fare double, note string, tags array<string>, counts map<string,int>,"
    " inner struct<d: date, x: array<struct<f: float, g: int>>>, price decimal(20,4),"
    " t timestamp, raw binary"
)
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int32()),
        ("fare", pa.float64()),
        ("note", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int32())),
        (
            "inner",
            pa.struct(
                [
                    ("d", pa.date32()),
                    ("x", pa.list_(pa.struct([("f", pa.float32()), ("g", pa.int32())]))),
                ]
            ),
        ),
        ("price", pa.decimal128(20, 4)),
        ("t", pa.timestamp("us", tz="UTC")),
        ("raw", pa.binary()),
    ]
)
MANY = 2500


def trips(numbers: range | list[int], ts: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"k{number:06}",
            "ts": ts,
            "fare": number / 4,
            "note": None if number % 3 else f"of {number} at {ts}",
            "tags": [f"t{number % 5}"] * (number % 3),
            "counts": {f"c{number % 7}": number},
            "inner": {"d": None, "x": [{"f": number / 2, "g": 1}] * (number % 2)},
            # There for their types alone.
            "price": None,
            "t": None,
            "raw": None,
        }
        for number in numbers
    ]


def options(kind: str, index: str) -> dict[str, str]:
    return {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.table.type": "COPY_ON_WRITE" if kind == "cow" else "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.keygenerator.class": (
            "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
        ),
        "hoodie.index.type": index,
        "hoodie.embed.timeline.server": "false",
        "hoodie.upsert.shuffle.parallelism": "1",
        "hoodie.insert.shuffle.parallelism": "1",
        "hoodie.write.auto.upgrade": "false",
    }


def by_key(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: str(row["id"]))


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(
    ("version", "hudi"), [(6, "0.15.0"), (8, "1.0.2"), (9, "1.2.0")], indirect=["hudi"]
)
def test_files_go_to_and_fro(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hudi: HudiOracle,
    version: int,
    kind: Literal["cow", "mor"],
    index: str,
) -> None:
    """A filter for keys that was made of copied row groups finds the keys in them, too."""
    monkeypatch.setattr(write_base, "KEPT_ROWS", 1000)
    base, how = tmp_path / "trips", options(kind, index)
    model = {row["id"]: row for row in trips(range(MANY), 1)}
    hudi.write(base, rows=[*model.values()], schema=DDL, operation="insert", options=how)
    # The file is Hudi's own; its one row group stays.
    table = pyhudi.open_table(base)
    assert int(table.properties["hoodie.table.version"]) == version
    new = trips(range(MANY, MANY + 300), 2)
    table.upsert(pa.Table.from_pylist(new, SCHEMA))
    model |= {row["id"]: row for row in new}
    footer = pq.read_metadata(max(base.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns))
    assert [footer.row_group(at).num_rows for at in range(footer.num_row_groups)] == [MANY, 300]
    assert footer.row_group(0).column(0).compression == "GZIP"
    check(hudi, base, model)
    # Rows of both row groups, and new ones, by Hudi's index.
    more = trips([3, 1700, MANY + 5, MANY + 400], 3)
    hudi.write(base, rows=more, schema=DDL, operation="upsert", options=how)
    model |= {row["id"]: row for row in more}
    check(hudi, base, model)
    newest = trips(range(MANY + 500, MANY + 510), 4)
    pyhudi.open_table(base).upsert(pa.Table.from_pylist(newest, SCHEMA))
    model |= {row["id"]: row for row in newest}
    check(hudi, base, model)


def check(hudi: HudiOracle, base: Path, model: dict[str, dict[str, Any]]) -> None:
    rows = by_key([*model.values()])
    table = pyhudi.open_table(base)
    assert by_key(table.scan().to_arrow().to_pylist(maps_as_pydicts="strict")) == rows
    assert table.check(deep=True).ok
    assert by_key(hudi.read(base)["rows"]) == rows
    files = {row["_hoodie_file_name"] for row in hudi.read(base, meta=True)["rows"]}
    # A row of a log file tells the file that it came with, which has no ending.
    there = {path.name for path in base.glob("*.parquet")}
    assert {name for name in files if name.endswith(".parquet")} <= there
