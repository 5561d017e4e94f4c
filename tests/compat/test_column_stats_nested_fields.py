"""Column statistics of the fields of structs, which pyhudi and Apache Hudi keep up in turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.metadata_records import stored_records
from tests.helpers.oracle.client import HudiOracle

DDL = "id int, city string, ts bigint, s struct<a:int,b:string,c:struct<d:double>>, l array<int>"
FIELDS = {"s.a": pa.int32(), "s.b": pa.string(), "s.c.d": pa.float64()}
SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        (
            "s",
            pa.struct(
                [
                    ("a", pa.int32()),
                    ("b", pa.string()),
                    ("c", pa.struct([("d", pa.float64())])),
                ]
            ),
        ),
        ("l", pa.list_(pa.int32())),
    ]
)
STATISTICS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.column.stats.column.list": ",".join(FIELDS),
    "hoodie.index.type": "SIMPLE",
}
OPTIONS = {
    **STATISTICS,
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
}
Rows = list[dict[str, Any]]


def row(number: int, ts: int, city: str, value: int | None) -> dict[str, Any]:
    inner = None if value is None or value % 3 == 0 else {"d": value / 4}
    struct = None if value is None else {"a": value, "b": f"b{value}", "c": inner}
    return {"id": number, "city": city, "ts": ts, "s": struct, "l": [number]}


FIRST = [row(n, 0, "ny" if n % 2 else "la", None if n == 3 else n * 10) for n in range(6)]
CHANGED = [row(1, 1, "ny", 77), row(2, 1, "la", None), row(9, 1, "sf", -4)]
AGAIN = [row(1, 2, "ny", 2), row(4, 2, "la", 500), row(9, 2, "sf", None)]


def statistics(base: Path) -> dict[tuple[str, str], Rows]:
    """Stored records by partition of the metadata table and their key."""
    return {
        (folder, key): [record]
        for folder in ("column_stats", "partition_stats")
        for key, record in stored_records(base / ".hoodie" / "metadata" / folder)
    }


def check(hudi: HudiOracle, base: Path, expected: dict[int, dict[str, Any]]) -> None:
    rows = sorted(expected.values(), key=lambda one: one["id"])
    table = pyhudi.open_table(base)
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda one: one["id"]) == rows
    assert not table.check(deep=True)
    for text in ("s.a > 60", "s.b = 'b2'", "s.c.d < 0", "s.a is null"):
        found = hudi.read(base, metadata=True, data_skipping=True, filter=text)["rows"]
        plain = hudi.read(base, metadata=False, filter=text)["rows"]
        assert sorted(map(str, found)) == sorted(map(str, plain)), text
    verdict = hudi.validate(base)
    assert verdict["ok"], verdict


@pytest.mark.parametrize("first", ["hudi", "pyhudi"])
@pytest.mark.parametrize("hudi", ["1.2.0"], indirect=True)
@pytest.mark.timeout(600)
def test_statistics_of_fields_are_kept_up_in_turn(
    tmp_path: Path, hudi: HudiOracle, first: str
) -> None:
    base = tmp_path / "t"
    expected = {one["id"]: one for one in FIRST}
    if first == "hudi":
        hudi.write(base, rows=FIRST, schema=DDL, operation="upsert", options=OPTIONS)
    else:
        pyhudi.create_table(
            base,
            pa.Table.from_pylist(FIRST, SCHEMA),
            key="id",
            partition_by="city",
            order_by="ts",
            version=9,
            options={"hoodie.table.name": "t", **STATISTICS},
        )
    check(hudi, base, expected)
    pyhudi.open_table(base).upsert(pa.Table.from_pylist(CHANGED, SCHEMA))
    expected |= {one["id"]: one for one in CHANGED}
    check(hudi, base, expected)
    hudi.write(base, rows=AGAIN, schema=DDL, operation="upsert", options=OPTIONS)
    expected |= {one["id"]: one for one in AGAIN}
    check(hudi, base, expected)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("hudi", ["1.2.0"], indirect=True)
def test_rebuilt_statistics_of_fields_are_those_that_hudi_wrote(
    tmp_path: Path, hudi: HudiOracle, kind: str
) -> None:
    base = tmp_path / "t"
    options = {**OPTIONS, "hoodie.datasource.write.table.type": kind}
    hudi.write(base, rows=FIRST, schema=DDL, operation="upsert", options=options)
    theirs = statistics(base)
    pyhudi.open_table(base).rebuild_metadata()
    assert statistics(base) == theirs
    if kind == "MERGE_ON_READ":
        # What Hudi itself fails to write: a log file with a null struct.
        pyhudi.open_table(base).upsert(pa.Table.from_pylist(CHANGED, SCHEMA))
        check(hudi, base, {one["id"]: one for one in FIRST + CHANGED})
