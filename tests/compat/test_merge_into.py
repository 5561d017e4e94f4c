"""pyhudi reads what Apache Hudi's `MERGE INTO` leaves in a table, as Hudi does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pyhudi
from tests.helpers.oracle.client import HudiOracle

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.auto.upgrade": "false",
}
MARKS = {
    "hoodie.datasource.write.payload.class": (
        "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    ),
    "hoodie.payload.delete.field": "op",
    "hoodie.payload.delete.marker": "D",
}
ON_READ = {"hoodie.schema.on.read.enable": "true"}
SCHEMA = "id string, ts int, city string, v int, op string"


def conf(options: dict[str, str]) -> dict[str, str]:
    kept = ("hoodie.index.", "hoodie.bucket.", "hoodie.embed.", "hoodie.payload.", "hoodie.schema.")
    return {name: value for name, value in options.items() if name.startswith(kept)}


def check(hudi: HudiOracle, base: Path) -> dict[str, dict[str, Any]]:
    """Both readers give the same rows, which are returned by key."""
    mine = pyhudi.open_table(base).scan().to_arrow().to_pylist()
    theirs = hudi.read(base)["rows"]
    by_key = {row["id"]: row for row in mine}
    assert len(mine) == len(theirs) == len(by_key)
    assert by_key == {row["id"]: row for row in theirs}
    return by_key


@pytest.mark.hudi("1.2.0")
@pytest.mark.parametrize(("index", "keeps_insert"), [("BUCKET", True), ("SIMPLE", False)])
def test_updates_of_merge_into_do_not_delete_by_mark(
    hudi: HudiOracle, index: str, keeps_insert: bool, tmp_path: Path
) -> None:
    """With the index SIMPLE, inserted rows with the mark are dropped."""
    base = tmp_path / "t"
    options = {**OPTIONS, **MARKS, "hoodie.index.type": index}
    rows = [{"id": key, "ts": 10, "city": "oslo", "v": 1, "op": "U"} for key in "abc"]
    hudi.write(base, rows=rows, schema=SCHEMA, operation="insert", options=options)
    source = "('a', 20, 'oslo', 2, 'D'), ('b', 20, 'oslo', 2, 'U'), ('n', 20, 'oslo', 2, 'D')"
    merge = (
        f"MERGE INTO {{table}} t USING (SELECT * FROM VALUES {source} AS s(id, ts, city, v, op)) s "
        "ON t.id = s.id AND t.city = s.city WHEN MATCHED THEN UPDATE SET {sets} "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    hudi.sql(base, merge.replace("{sets}", "v = s.v, ts = s.ts"), conf=conf(options))
    found = check(hudi, base)
    assert [found["a"][name] for name in ("v", "op")] == [2, "U"]
    assert ("n" in found) is keeps_insert
    every = "id = s.id, v = s.v, ts = s.ts, city = s.city, op = s.op"
    hudi.sql(base, merge.replace("{sets}", every), conf=conf(options))
    assert check(hudi, base)["a"]["op"] == "D"
    buckets = {"hoodie.bucket.index.num.buckets": "2"} if index == "BUCKET" else {}
    pyhudi.open_table(base, options={"hoodie.index.type": index, **buckets}).upsert(
        [{"id": "c", "ts": 30, "city": "oslo", "v": 3, "op": "U"}]
    )
    assert check(hudi, base)["a"]["op"] == "D"


@pytest.mark.parametrize("hudi", ["1.0.2", "1.2.0"], indirect=True)
def test_merge_into_adds_columns_of_its_source_with_schema_on_read(
    hudi: HudiOracle, tmp_path: Path
) -> None:
    base = tmp_path / "t"
    options = {**OPTIONS, **ON_READ, "hoodie.index.type": "BUCKET"}
    rows = [{"id": key, "ts": 10, "city": "oslo", "v": 1, "op": "U"} for key in "abc"]
    hudi.write(base, rows=rows, schema=SCHEMA, operation="insert", options=options)
    hudi.sql(base, "ALTER TABLE {table} ADD COLUMNS (x int)", conf=conf(options))
    hudi.sql(
        base,
        "MERGE INTO {table} t USING (SELECT * FROM VALUES ('a', 20, 'oslo', 2, 'update'), "
        "('b', 20, 'oslo', 2, 'delete') AS s(id, ts, city, v, what)) s "
        "ON t.id = s.id AND t.city = s.city "
        "WHEN MATCHED AND s.what = 'update' THEN UPDATE SET v = s.v, ts = s.ts "
        "WHEN MATCHED AND s.what = 'delete' THEN DELETE",
        conf=conf(options),
    )
    found = check(hudi, base)
    assert sorted(found) == ["a", "c"]
    assert all(row["what"] is None for row in found.values())
    table = pyhudi.open_table(base)
    table.drop_index("partition_stats")
    table.refresh().alter().drop_column("what").execute()
    left = pyhudi.open_table(base).scan().to_arrow().to_pylist()
    found = {key: {n: v for n, v in row.items() if n != "what"} for key, row in found.items()}
    assert {row["id"]: row for row in left} == found
