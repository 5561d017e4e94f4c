"""Apache Hudi reads a table after transactions, and writes to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.pairwise import pairwise
from tests.helpers.table_builder import SMALL, TableBuilder

TABLE = TableBuilder(
    {
        "id": (pa.string(), str),
        "city": (pa.string(), "rome"),
        "ts": (pa.int32(), 1),
        "v": (pa.int32(), 1),
    },
    partition_by="city",
    order_by="ts",
    options={**SMALL, "hoodie.table.name": "t"},
)
DDL = "id string, city string, ts int, v int"
RELEASES = [(6, "0.15.0"), (8, "1.0.2"), (9, "1.2.0")]
CASES = [(*release, kind) for release, kind in pairwise(RELEASES, ("cow", "mor"))]


@pytest.mark.parametrize(("version", "hudi", "kind"), CASES, indirect=["hudi"])
def test_hudi_reads_rows_of_transactions(
    version: int, hudi: HudiOracle, kind: Any, tmp_path: Path
) -> None:
    base = tmp_path / "t"
    first = TABLE.rows(["a", "b", "c", "d"])
    table = TABLE.make(base, version=version, kind=kind, first=first)

    def check(expected: dict[str, int]) -> None:
        ours = pyhudi.open_table(base).scan().to_arrow().to_pylist()
        assert {row["id"]: row["v"] for row in ours} == expected
        for metadata in (False, True):
            theirs = hudi.read(base, metadata=metadata)["rows"]
            assert sorted(ours, key=str) == sorted(
                ({name: row[name] for name in TABLE.schema.names} for row in theirs), key=str
            )

    with table.transaction() as tx:
        tx.delete("id in ('a', 'b')")
        tx.upsert(TABLE.rows(["b", "e"], ts=2, v=20))
        tx.update("v = 20", {"v": "v + 1"})
        tx.delete_keys(["d"])
        tx.insert(TABLE.rows(["d"], ts=2, v=40))
    check({"b": 21, "c": 1, "d": 40, "e": 21})
    hudi.write(
        base,
        rows=TABLE.rows(["a", "e"], ts=9, v=99).to_pylist(),
        schema=DDL,
        operation="upsert",
        options={
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.embed.timeline.server": "false",
            "hoodie.write.auto.upgrade": "false",
            "hoodie.write.table.version": str(version),
        },
    )
    check({"a": 99, "b": 21, "c": 1, "d": 40, "e": 99})
    with pyhudi.open_table(base).transaction() as tx:
        tx.update("v = 99", {"v": "0"})
        tx.delete("id = 'a'")
    check({"b": 21, "c": 1, "d": 40, "e": 0})
    assert not pyhudi.open_table(base).check(deep=True).findings


@pytest.mark.parametrize("hudi", ["1.2.0"], indirect=True)
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", [6, 9])
def test_hudi_reads_rows_of_merges_in_transactions(
    version: int, kind: Any, hudi: HudiOracle, tmp_path: Path
) -> None:
    base = tmp_path / "t"
    first = TABLE.rows(["a", "b", "c", "d"])
    table = TABLE.make(base, version=version, kind=kind, first=first)
    with table.transaction() as tx:
        tx.delete("id = 'a'")
        tx.upsert(TABLE.rows(["b", "e"], ts=2, v=20))
        merge = tx.merge(TABLE.rows(["a", "b", "c", "f"], ts=3, v=30))
        merge = merge.when_matched_update({"v": "target.v + source.v", "ts": "source.ts"})
        merge = merge.when_not_matched_insert_all()
        merge.when_not_matched_by_source_delete(where="target.v = 1").execute()
        tx.update("id = 'f'", {"v": "v + 1"})
    ours = pyhudi.open_table(base).scan().to_arrow().to_pylist()
    assert {row["id"]: row["v"] for row in ours} == {"a": 30, "b": 50, "c": 31, "e": 20, "f": 31}
    for metadata in (False, True):
        theirs = hudi.read(base, metadata=metadata)["rows"]
        assert sorted(ours, key=str) == sorted(
            ({name: row[name] for name in TABLE.schema.names} for row in theirs), key=str
        )
    assert not pyhudi.open_table(base).check(deep=True).findings
