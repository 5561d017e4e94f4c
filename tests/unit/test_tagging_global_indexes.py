"""Global indexes tag streams larger than memory, and merges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.errors import CorruptTable, SchemaMismatch
from pyhudi.index.bucket_lookup import bucket_of
from tests.helpers.pairwise import pairwise
from tests.helpers.table_builder import SMALL, TableBuilder, numbered

pytestmark = pytest.mark.slow

MIB = 1 << 20
BUCKETS = {"hoodie.bucket.index.num.buckets": 5}
RING = {**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
INDEXES: dict[str, tuple[str, dict[str, Any]]] = {
    "global_simple": ("global_simple", {}),
    "global_bloom": ("global_bloom", {}),
    "fixed": ("global_simple", {"hoodie.simple.index.update.partition.path": False}),
    "bucket": ("bucket", BUCKETS),
    "consistent": ("bucket", RING),
}
CASES = pairwise(
    [*INDEXES],
    (6, 9),
    ("cow", "mor"),
    allowed=lambda index, _version, kind: index != "consistent" or kind == "mor",
)


TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered(6)),
        "part": (pa.string(), lambda number: f"p{number % 3}"),
        "v": (pa.int64(), 1),
        "text": (pa.string(), "x" * 100),
        "_hoodie_is_deleted": (pa.bool_(), False),
    },
    partition_by="part",
    order_by="v",
    options=SMALL,
)


def make(base: Path, index: str, version: int, kind: Any) -> HudiTable:
    name, options = INDEXES[index]
    return TABLE.make(base, index=name, version=version, kind=kind, options=options)


def content(table: HudiTable) -> pa.Table:
    found = table.scan(columns=["id", "part", "v"], meta_fields=True).to_arrow()
    return found.select(["id", "part", "v", "_hoodie_partition_path"]).sort_by("id")


@pytest.mark.parametrize(("index", "version", "kind"), CASES)
def test_streams_larger_than_memory(tmp_path: Path, index: str, version: int, kind: str) -> None:
    contents = []
    for limit in (MIB, None):
        table = make(tmp_path / str(limit), index, version, kind)
        writes: list[tuple[Callable[..., Any], pa.Table]] = [
            (table.insert, TABLE.rows(range(4000), v=10)),
            (table.upsert, pa.concat_tables([changed(), changed().slice(0, 500)])),
            (table.insert, TABLE.rows(range(6000, 10000), v=10)),
            (table.upsert, TABLE.rows(range(3000, 9000), v=30)),
        ]
        for write, data in writes:
            write(data, memory_limit=limit)
        contents.append(content(table))
        check_buckets(table, index)
    assert contents[0].equals(contents[1])
    found = contents[0]
    known_by = ["id"] if INDEXES[index][0] != "bucket" else ["id", "_hoodie_partition_path"]
    assert found.group_by(known_by).aggregate([]).num_rows == found.num_rows


def changed() -> pa.Table:
    """Late rows, rows of another partition, deletes of some that are there and some that are not,
    new rows.
    """
    parts = [
        TABLE.rows(range(500), v=5),
        TABLE.rows(range(500, 1000), v=5, part="p1"),
        TABLE.rows(range(1000, 2000), v=20, part="p2"),
        TABLE.rows(range(2000, 2100), v=20, _hoodie_is_deleted=True),
        TABLE.rows(range(5900, 5950), v=20, _hoodie_is_deleted=True),
        TABLE.rows(range(4000, 5000), v=20),
    ]
    return pa.concat_tables(parts)


def check_buckets(table: HudiTable, index: str) -> None:
    if index != "bucket":
        return
    names = table.scan(meta_fields=True).to_arrow()
    files = names.group_by(["_hoodie_partition_path", "_hoodie_file_name"]).aggregate([])
    places = [
        (row["_hoodie_partition_path"], bucket_of(row["_hoodie_file_name"].lstrip(".")))
        for row in files.to_pylist()
    ]
    assert {bucket for _, bucket in places} == set(range(5))
    assert len(file_ids(files)) == len(set(places))


def file_ids(files: pa.Table) -> set[str]:
    names = files.column("_hoodie_file_name").to_pylist()
    return {name.lstrip(".").split("_")[0] for name in names}


@pytest.mark.parametrize(
    ("index", "version", "kind"),
    [("bucket", 6, "cow"), ("bucket", 9, "mor"), ("consistent", 9, "mor")],
)
@pytest.mark.parametrize("limit", [MIB, None])
def test_bulk_insert_and_overwriting_keep_to_buckets(
    tmp_path: Path, index: str, version: int, kind: str, limit: int | None
) -> None:
    table = make(tmp_path / "t", index, version, kind)
    model: dict[str, tuple[int, str]] = {}

    def write(verb: str, data: pa.Table, **more: Any) -> None:
        getattr(table, verb)(data, memory_limit=limit, **more)
        if verb == "overwrite":
            model.clear()
        if verb == "overwrite_partitions":
            gone = set(data.column("part").to_pylist())
            for key in [key for key, (_, part) in model.items() if part in gone]:
                del model[key]
        for row in data.filter(pc.invert(data.column("_hoodie_is_deleted"))).to_pylist():
            model[row["id"]] = (row["v"], row["part"])
        found = content(table).to_pylist()
        assert [(one["id"], one["v"], one["part"]) for one in found] == [
            (key, *values) for key, values in sorted(model.items())
        ], verb
        check_buckets(table, index)

    write("bulk_insert", TABLE.rows(range(6000), v=10), sort="partition")
    assert all(path.suffix == ".parquet" for path in (tmp_path / "t/p1").glob("*-*"))
    write("bulk_insert", TABLE.rows(range(5000, 9000), v=20))
    write("overwrite_partitions", TABLE.rows(range(1, 9000, 3), v=30, part="p1"))
    write("upsert", TABLE.rows(range(100, 300), v=40))
    write(
        "overwrite",
        pa.concat_tables(
            [TABLE.rows(range(7000), v=50), TABLE.rows(range(20), v=50, _hoodie_is_deleted=True)]
        ),
    )
    write("upsert", TABLE.rows(range(6000, 8000), v=60))
    table.delete_partitions(["p2"])
    for key in [key for key, (_, part) in model.items() if part == "p2"]:
        del model[key]
    write("upsert", TABLE.rows(range(6000), v=70))
    assert table.check().ok


def test_write_refuses_partition_hudi_overwrote_next_to_hashing_metadata(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "consistent", 9, "mor")
    table.overwrite(TABLE.rows(range(30), v=10))
    table.overwrite_partitions(TABLE.rows(range(30), v=20, part="p1"))
    folder = tmp_path / "t/.hoodie/.bucket_index/consistent_hashing_metadata/p1"
    for path in folder.iterdir():
        if not path.name.startswith("00000000000000."):
            path.unlink()
    table = pyhudi.open_table(table.uri)
    for verb in (table.upsert, table.insert, table.bulk_insert):
        with pytest.raises(CorruptTable, match="without new hashing metadata"):
            verb(TABLE.rows(range(30), v=30, part="p1"))
    table.overwrite_partitions(TABLE.rows(range(30), v=40, part="p1"))
    table.upsert(TABLE.rows(range(10, 40), v=50, part="p1"))
    found = content(table).filter(pc.field("part") == "p1")
    assert found.column("v").to_pylist() == [40] * 10 + [50] * 30


@pytest.mark.parametrize(("index", "version", "kind"), CASES)
def test_some_columns(tmp_path: Path, index: str, version: int, kind: str) -> None:
    table = make(tmp_path / "t", index, version, kind)
    table.upsert(TABLE.rows(range(30), v=10))
    everywhere = "bucket" not in INDEXES[index][0]
    elsewhere = {"part": "p1"} if everywhere else {}
    changes = [
        TABLE.rows(range(10), v=20, **elsewhere),
        TABLE.rows(range(10, 12), v=5, **elsewhere),
        TABLE.rows(range(12, 14), v=20, _hoodie_is_deleted=True),
        TABLE.rows(range(28, 32), v=20),
    ]
    data = pa.concat_tables(changes).drop_columns(["text"])
    table.upsert(data, partial=True)
    found = table.scan().to_arrow().sort_by("id")
    expected = [*range(12), *range(14, 32)]
    assert found.column("id").to_pylist() == [f"k{n:06}" for n in expected]
    texts = ["x" * 100 if n < 30 else None for n in expected]
    assert found.column("text").to_pylist() == texts
    assert found.column("v").to_pylist() == [20 if n < 10 or n >= 28 else 10 for n in expected]
    moved = "p1" if index in ("global_simple", "global_bloom") else None
    homes = [moved if moved and n < 10 else f"p{n % 3}" for n in expected]
    assert found.column("part").to_pylist() == homes
    with pytest.raises(SchemaMismatch, match="part"):
        table.upsert(data.drop_columns(["part"]), partial=True)


@pytest.mark.parametrize(("index", "version", "kind"), CASES)
def test_merge(tmp_path: Path, index: str, version: int, kind: str) -> None:
    table = make(tmp_path / "t", index, version, kind)
    table.upsert(TABLE.rows(range(20), v=10))
    table.delete_keys(TABLE.rows(range(4), v=10).select(["id", "part"]))
    everywhere = "bucket" not in INDEXES[index][0]
    elsewhere = {"part": "p1"} if everywhere else {}
    source = TABLE.rows(range(2, 30), v=20, **elsewhere)
    merge = table.merge(source).when_matched_delete(where="source.id >= 'k000018'")
    merge = merge.when_matched_update({"v": 'source."v"'}).when_not_matched_insert_all()
    result = merge.execute()
    assert result.rows_deleted == 2
    # Hudi counts what is appended to a bucket as updates, too.
    assert result.rows_updated + result.rows_inserted == 14 + 12
    found = content(table)
    expected = [2, 3, *range(4, 18), *range(20, 30)]
    assert found.column("id").to_pylist() == [f"k{n:06}" for n in expected]
    assert pc.unique(found.column("v")).to_pylist() == [20]
    new = [n for n in expected if not 4 <= n < 18]
    homes = {n: "p1" if everywhere and n in new else f"p{n % 3}" for n in expected}
    assert found.column("_hoodie_partition_path").to_pylist() == [homes[n] for n in expected]
    check_once(table)


def check_once(table: HudiTable) -> None:
    """What was merged is found again."""
    before = content(table)
    table.upsert(TABLE.rows(range(30), v=40))
    after = content(table)
    assert len(after.column("id").unique()) == after.num_rows == 30
    assert set(before.column("id").to_pylist()) <= set(after.column("id").to_pylist())


def test_merge_over_all_partitions_wants_each_key_once(tmp_path: Path) -> None:
    table = make(tmp_path / "t", "global_simple", 9, "cow")
    table.upsert(TABLE.rows(range(3), v=1))
    twice = pa.concat_tables([TABLE.rows(range(1), v=2), TABLE.rows(range(1), v=2, part="p2")])
    merge = table.merge(twice).when_matched_update_all()
    with pytest.raises(SchemaMismatch, match="several rows of one key"):
        merge.execute()
