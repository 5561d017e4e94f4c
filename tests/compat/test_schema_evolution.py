"""pyhudi adds and widens columns; Apache Hudi of the matching release reads it and writes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.oracle.client import HudiOracle

INNER = pa.struct([("a", pa.int32())])
FIRST = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int32()),
        ("city", pa.string()),
        ("n", pa.int32()),
        ("m", pa.int64()),
        ("f", pa.float32()),
        ("nf", pa.int32()),
        ("nd", pa.int32()),
        ("mf", pa.int64()),
        ("s", INNER),
        ("items", pa.list_(INNER)),
        ("named", pa.map_(pa.string(), INNER)),
    ]
)
WIDER = pa.struct([("a", pa.int64()), ("b", pa.string())])
SECOND = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int32()),
        ("city", pa.string()),
        ("n", pa.int64()),
        ("m", pa.float64()),
        ("f", pa.float64()),
        ("nf", pa.float32()),
        ("nd", pa.float64()),
        ("mf", pa.float32()),
        ("s", WIDER),
        ("items", pa.list_(WIDER)),
        ("named", pa.map_(pa.string(), WIDER)),
        ("extra", pa.struct([("x", pa.int32())])),
    ]
)
DDL = (
    "id string, ts int, city string, n bigint, m double, f double, nf float, nd double, "
    "mf float, s struct<a:bigint,b:string>, items array<struct<a:bigint,b:string>>, "
    "named map<string,struct<a:bigint,b:string>>, "
    "extra struct<x:int>"
)
Row = dict[str, Any]


def first(key: str) -> Row:
    inner = {"a": 1}
    plain: Row = {"id": key, "ts": 1, "city": "oslo", "n": 1, "m": 2, "f": 1.5}
    plain |= {"nf": 16777215, "nd": 3, "mf": 1048576}
    return {**plain, "s": inner, "items": [inner], "named": {"x": inner}}


def read_by_first(row: Row) -> Row:
    """A row of the first schema under the second one."""
    inner = {"a": 1, "b": None}
    changed = {"m": 2.0, "s": inner, "items": [inner], "named": {"x": inner}, "extra": None}
    return {**row, **changed}


def second(key: str, ts: int = 2) -> Row:
    inner = {"a": 2**40, "b": "y"}
    plain: Row = {"id": key, "ts": ts, "city": "oslo", "n": 2**40, "m": 0.5, "f": 1e300}
    plain |= {"nf": 0.5, "nd": 0.25, "mf": 0.125}
    return {**plain, "s": inner, "items": [inner], "named": {"x": inner}, "extra": {"x": 1}}


def arrow(rows: list[Row], schema: pa.Schema) -> pa.Table:
    pairs = [{**row, "named": list(row["named"].items())} for row in rows]
    return pa.Table.from_pylist(pairs, schema)


def by_pyhudi(base: Path) -> list[Row]:
    rows: list[Row] = pyhudi.open_table(str(base)).scan().to_arrow().to_pylist()
    for row in rows:
        row["named"] = None if row["named"] is None else dict(row["named"])
    return sorted(rows, key=lambda row: str(row["id"]))


def by_hudi(hudi: HudiOracle, base: Path) -> list[Row]:
    rows: list[Row] = hudi.read(base, metadata=False)["rows"]
    return sorted(rows, key=lambda row: str(row["id"]))


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(
    ("version", "hudi"), [(6, "0.15.0"), (8, "1.0.2"), (9, "1.2.0")], indirect=["hudi"]
)
@pytest.mark.timeout(900)
def test_hudi_reads_evolved_tables_and_writes_on(
    tmp_path: Path, version: int, hudi: HudiOracle, kind: Literal["cow", "mor"]
) -> None:
    base = tmp_path / "t"
    table = pyhudi.create_table(
        str(base),
        arrow([first("k1"), first("k2"), first("k3")], FIRST),
        key="id",
        partition_by="city",
        order_by="ts",
        type=kind,
        version=version,
    )
    table.upsert(arrow([second("k2"), second("k4")], SECOND), schema_mode="merge")
    rows = [read_by_first(first("k1")), second("k2"), read_by_first(first("k3")), second("k4")]
    assert by_pyhudi(base) == rows
    assert by_hudi(hudi, base) == rows

    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.table.type": (
            "COPY_ON_WRITE" if kind == "cow" else "MERGE_ON_READ"
        ),
        "hoodie.index.type": "SIMPLE",
        "hoodie.metadata.enable": "false",
        "hoodie.embed.timeline.server": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.upsert.shuffle.parallelism": "2",
        "hoodie.write.auto.upgrade": "false",
    }
    hudi.write(base, rows=[second("k1", 3)], schema=DDL, operation="upsert", options=options)
    rows[0] = second("k1", 3)
    assert by_pyhudi(base) == rows

    late = pa.table({"id": ["k3"], "ts": pa.array([4], pa.int32()), "city": ["oslo"], "z": [True]})
    pyhudi.open_table(str(base)).upsert(late, schema_mode="merge")
    rows = [{**row, "z": None} for row in rows]
    rows[2] = {**dict.fromkeys(rows[2]), "id": "k3", "ts": 4, "city": "oslo", "z": True}
    assert by_pyhudi(base) == rows
    assert by_hudi(hudi, base) == rows
