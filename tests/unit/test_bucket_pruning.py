"""Which file groups a key can be in, by its hash."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from pyhudi import _native
from pyhudi.config.index_options import BUCKET_FIELDS, BUCKETS
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import LAYOUT_2
from pyhudi.query.bucket_pruning import ConsistentBucketPruner, simple_buckets
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.slices.file_slice import FileSlice
from pyhudi.timeline import Timeline
from pyhudi.timeline.archive import Archive
from tests.unit.memory_storage import MemoryStorage

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string())])
METADATA_FOLDER = ".hoodie/.bucket_index/consistent_hashing_metadata/sf"
NODES = [
    (536870912, "b191fdb9-1561-3229-90af-667100004fe7"),
    (1073741824, "e009af8c-59dd-37ea-8cd4-c40db9f59b70"),
    (1610612736, "4c1755a8-ea8a-334c-800b-7ecc7763d480"),
    (2147483647, "e45844a0-f593-3584-b330-d1a850d5d69e"),
]


def one(file_id: str, partition: str = "sf") -> FileSlice:
    return FileSlice(partition, file_id, "20240101000000000", None)


def kept(
    where: object, options: dict[str, str], fields: str = "id", **more: str
) -> list[int] | None:
    config = TableConfig(
        {
            "hoodie.table.version": "9",
            "hoodie.table.initial.version": "9",
            "hoodie.table.recordkey.fields": fields,
            "hoodie.table.keygenerator.type": "COMPLEX",
            **{name.replace("_", "."): value for name, value in more.items()},
        }
    )
    conjuncts = parse_where(where, SCHEMA).conjuncts
    test = simple_buckets(config, options, conjuncts, frozenset())
    if test is None:
        return None
    return [n for n in range(256) if test(one(f"{n:08d}-aaaa-bbbb-cccc-000000000000-0"))]


def test_buckets_of_keys_are_those_of_java() -> None:
    assert kept([("id", "=", "k1")], {BUCKETS: "256"}) == [4, 69]  # id:k1 and k1
    both = [("id", "=", "k1"), ("city", "=", "sf")]
    assert kept(both, {BUCKETS: "256"}, "id,city") == [174]
    assert kept(both, {BUCKETS: "256", BUCKET_FIELDS: "id"}, "id,city") == [69]
    found = kept(both[:1], {BUCKETS: "256", BUCKET_FIELDS: "id"}, "id,city")
    assert found is not None
    assert 69 in found


def test_without_number_or_fields_nothing_is_said() -> None:
    assert kept([("id", "=", "k1")], {}) is None
    assert kept([("id", "=", "k1")], {BUCKETS: "256"}, "id,city") is None
    where = [("id", "=", "a,b:c")]
    assert kept(where, {BUCKETS: "256", BUCKET_FIELDS: "id"}, "id,city") is None


@pytest.mark.parametrize("created", ["6", ""])
@pytest.mark.parametrize("version", ["6", "9"])
def test_hash_fields_alone_tell_no_bucket_where_hudi_0_15_wrote(created: str, version: str) -> None:
    first = {"hoodie_table_version": version, "hoodie_table_initial_version": created}
    by_id = {BUCKETS: "256", BUCKET_FIELDS: "id"}
    assert kept([("id", "=", "k1")], by_id, "id,city", **first) is None
    both = [("id", "=", "k1"), ("city", "=", "sf")]
    assert kept(both, by_id, "id,city", **first) == [69]


def test_keys_of_ones_own_tell_no_bucket() -> None:
    own = {"hoodie_table_keygenerator_type": "USER_PROVIDED"}
    assert kept([("id", "=", "k1")], {BUCKETS: "256"}, **own) is None


def test_file_groups_that_are_no_buckets_stay() -> None:
    config = TableConfig({"hoodie.table.recordkey.fields": "id"})
    conjuncts = parse_where([("id", "=", "k1")], SCHEMA).conjuncts
    test = simple_buckets(config, {BUCKETS: "4"}, conjuncts, frozenset())
    assert test is not None
    assert test(one("b191fdb9-1561-3229-90af-667100004fe7-0"))
    assert test(one("00000009-1561-3229-90af-667100004fe7-0"))


def hashing_metadata(*, children: bool = False) -> bytes:
    nodes = [{"value": value, "fileIdPrefix": prefix} for value, prefix in NODES]
    return json.dumps({"nodes": nodes, **({"childrenNodes": nodes} if children else {})}).encode()


def empty_timeline(storage: MemoryStorage) -> Timeline:
    config = TableConfig({"hoodie.table.version": "9"})
    return Timeline(storage, LAYOUT_2, [], Archive(storage, config))


def slices_with_key(files: dict[str, bytes], key: str) -> list[int]:
    storage = MemoryStorage(files)
    pruner = ConsistentBucketPruner(storage, empty_timeline(storage), [key], [])
    return [n for n, (_, prefix) in enumerate(NODES) if pruner.may_match(one(f"{prefix}-0"))]


def test_consistent_hashing_picks_first_node_at_or_after_hash() -> None:
    files = {f"{METADATA_FOLDER}/00000000000000.hashing_meta": hashing_metadata()}
    assert [slices_with_key(files, key) for key in ("k1", "é", "日本語キー")] == [[0], [1], [3]]


def test_uncommitted_hashing_metadata_is_ignored() -> None:
    first = f"{METADATA_FOLDER}/00000000000000.hashing_meta"
    assert slices_with_key({first: hashing_metadata(children=True)}, "k1") == [0, 1, 2, 3]
    assert slices_with_key({}, "k1") == [0, 1, 2, 3]
    later = f"{METADATA_FOLDER}/20240101000000000.hashing_meta"
    assert slices_with_key({first: hashing_metadata(), later: b"damaged"}, "k1") == [0]


def test_both_ways_to_take_a_key_apart_count() -> None:
    assert _native.possible_bucket_ids(["id:k1"], ["id"], 256) == [4, 69]
    assert len(_native.possible_consistent_hashes(["k1"], [])) == 1
