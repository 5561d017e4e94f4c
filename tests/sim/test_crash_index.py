"""A writer that dies while rows move to another partition, or while buckets are made."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.storage.storage import Storage
from pyhudi.write import overwrite, upsert
from tests.sim.crash import (
    SMALL_BLOOM,
    CrashingStorage,
    Handle,
    Killed,
    leftovers,
    people_table,
    rows_of,
)

INDEXES = {
    "moving": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
    "ring": {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    },
}
TABLES = [(6, "cow"), (6, "mor"), (9, "cow"), (9, "mor")]


def people(ids: range, city: str, v: int) -> pa.Table:
    count = len(ids)
    return pa.table(
        {
            "id": [f"k{number}" for number in ids],
            "city": [city] * count,
            "v": pa.array([v] * count, pa.int32()),
            "ts": pa.array([v] * count, pa.int64()),
        }
    )


def places(base: Path) -> list[tuple[str, str, int]]:
    return sorted((row["id"], row["city"], row["v"]) for row in rows_of(base))


def wanted(*tables: pa.Table) -> list[tuple[str, str, int]]:
    rows = pa.concat_tables(tables).to_pylist()
    return sorted((row["id"], row["city"], row["v"]) for row in rows)


@pytest.mark.parametrize("index", sorted(INDEXES))
@pytest.mark.parametrize(("version", "kind"), TABLES)
def test_rows_are_at_one_place_after_a_crash(
    tmp_path: Path, version: int, kind: str, index: str
) -> None:
    if index == "ring" and kind == "cow":
        pytest.skip("rings are for merge-on-read tables")
    options = {**SMALL_BLOOM, "hoodie.parquet.small.file.limit": "0", **INDEXES[index]}
    first = people(range(4), "oslo", 1)
    base = tmp_path / "table"
    upsert.insert(people_table(base, version, kind, options), first)
    city = "rome" if index == "moving" else "oslo"
    change = pa.concat_tables([people(range(2), city, 2), people(range(4, 6), "rome", 2)])
    before, after = wanted(first), wanted(people(range(2, 4), "oslo", 1), change)
    counting = CrashingStorage(str(shutil.copytree(base, tmp_path / "counted")))
    upsert.upsert(Handle(counting, options), change)
    assert places(tmp_path / "counted") == after
    for n in range(1, counting.changes + 1):
        copy = shutil.copytree(base, tmp_path / f"crash{n}")
        with pytest.raises(Killed):
            upsert.upsert(Handle(CrashingStorage(str(copy), n), options), change)
        assert places(copy) in (before, after), f"after change {n}"
        upsert.upsert(Handle(Storage(str(copy)), options), change)
        assert places(copy) == after, f"after change {n}"
        assert leftovers(copy) == [], f"after change {n}"
        shutil.rmtree(copy)


@pytest.mark.parametrize(("version", "kind", "index"), [(6, "mor", "ring"), (9, "mor", "ring")])
def test_a_dead_overwrite_leaves_the_old_ring(
    tmp_path: Path, version: int, kind: str, index: str
) -> None:
    options = {**SMALL_BLOOM, **INDEXES[index]}
    first = people(range(4), "oslo", 1)
    base = tmp_path / "table"
    upsert.insert(people_table(base, version, kind, options), first)
    new = pa.concat_tables([people(range(1, 3), "oslo", 2), people(range(4, 6), "rome", 2)])
    late = people(range(2, 4), "oslo", 3)
    before = wanted(first.slice(0, 2), late)
    after = wanted(people(range(1, 2), "oslo", 2), people(range(4, 6), "rome", 2), late)
    counting = CrashingStorage(str(shutil.copytree(base, tmp_path / "counted")))
    overwrite.overwrite_partitions(Handle(counting, options), new)
    for n in range(1, counting.changes + 1):
        copy = shutil.copytree(base, tmp_path / f"crash{n}")
        with pytest.raises(Killed):
            overwrite.overwrite_partitions(Handle(CrashingStorage(str(copy), n), options), new)
        done = places(copy) == wanted(new)
        assert done or places(copy) == wanted(first), f"after change {n}"
        upsert.upsert(Handle(Storage(str(copy)), options), late)
        assert places(copy) == (after if done else before), f"after change {n}"
        rings = {
            path.name for path in (copy / ".hoodie/.bucket_index").rglob("oslo/*.hashing_meta")
        }
        assert len(rings) == (2 if done else 1), f"after change {n}"
        assert leftovers(copy) == [], f"after change {n}"
        shutil.rmtree(copy)
