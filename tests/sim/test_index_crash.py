"""Crashes while rows move to another partition, and while buckets are created."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.storage.storage import Storage
from pyhudi.write import overwrite, upsert
from tests.helpers.pairwise import pairwise
from tests.sim.crash import SMALL_BLOOM, Handle, leftovers, people_table, rows_of
from tests.sim.states import deaths, recorded

INDEXES = {
    "moving": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
    "consistent": {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    },
}


def has_consistent_hashing(kind: str, index: str) -> bool:
    """Rings are for merge-on-read tables."""
    return index != "consistent" or kind == "mor"


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


@pytest.mark.parametrize(
    ("version", "kind", "index"),
    pairwise(
        (6, 9),
        ("cow", "mor"),
        sorted(INDEXES),
        allowed=lambda _, kind, index: has_consistent_hashing(kind, index),
    ),
)
def test_index_crash_leaves_each_row_in_one_file_group(
    tmp_path: Path, version: int, kind: str, index: str
) -> None:
    options = {**SMALL_BLOOM, "hoodie.parquet.small.file.limit": "0", **INDEXES[index]}
    first = people(range(4), "oslo", 1)
    base = tmp_path / "table"
    upsert.insert(people_table(base, version, kind, options), first)
    city = "rome" if index == "moving" else "oslo"
    change = pa.concat_tables([people(range(2), city, 2), people(range(4, 6), "rome", 2)])
    before, after = wanted(first), wanted(people(range(2, 4), "oslo", 1), change)
    whole = recorded(
        base, tmp_path, lambda storage: upsert.upsert(Handle(storage, options), change)
    )
    assert places(whole.base) == after
    for n, copy in whole.deaths():
        assert places(copy) in (before, after), f"after change {n}"
        upsert.upsert(Handle(Storage(str(copy)), options), change)
        assert places(copy) == after, f"after change {n}"
        assert leftovers(copy) == [], f"after change {n}"


@pytest.mark.parametrize(
    ("version", "kind", "index"), [(6, "mor", "consistent"), (9, "mor", "consistent")]
)
def test_overwrite_crash_keeps_old_hashing_metadata(
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

    def replaced(storage: Storage) -> None:
        overwrite.overwrite_partitions(Handle(storage, options), new)

    for n, copy in deaths(base, tmp_path, replaced):
        done = places(copy) == wanted(new)
        assert done or places(copy) == wanted(first), f"after change {n}"
        upsert.upsert(Handle(Storage(str(copy)), options), late)
        assert places(copy) == (after if done else before), f"after change {n}"
        metadata_files = {
            path.name for path in (copy / ".hoodie/.bucket_index").rglob("oslo/*.hashing_meta")
        }
        assert len(metadata_files) == (2 if done else 1), f"after change {n}"
        assert leftovers(copy) == [], f"after change {n}"
