"""Consistent-hashing buckets split and merged by `cluster()`: plans and their execution."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable, _native
from pyhudi.clock import SystemClock
from pyhudi.config.actions import State
from pyhudi.config.clustering_options import ResizeOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict, ConfigError, UnsupportedTableFeature
from pyhudi.services.bucket_resize_strategy import choose_resizes
from pyhudi.services.clustering import pending
from pyhudi.slices.clustering_plan import PlannedGroup, clustering_record, read_plan
from pyhudi.slices.file_slice import BaseFile, FileSlice, LogFile
from pyhudi.slices.hashing_metadata import (
    ChildNode,
    HashingMetadata,
    HashRange,
    hash_range_of,
    midpoint_of,
    read_committed_hashing_metadata,
    replace_nodes,
)
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.txn.transaction import Transaction
from tests.engine.faulty import DiedError, DiesAfterWriting, FaultyEngine, Twice
from tests.helpers.table_builder import SMALL, TableBuilder, numbered
from tests.helpers.tables import unpack

RING = {
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.max.num.buckets": "8",
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.parquet.max.file.size": "1000",
    **SMALL,
}
SPLIT = {**RING, "hoodie.bucket.index.split.threshold": "0.001"}
MERGE = {
    **RING,
    "hoodie.bucket.index.split.threshold": "1e9",
    "hoodie.bucket.index.merge.threshold": "1e6",
}
VISITS = TableBuilder(
    {
        "id": (pa.string(), numbered(3)),
        "city": (pa.string(), lambda number: ("rome", "oslo")[number % 2]),
        "v": (pa.int64(), 0),
    },
    partition_by="city",
    order_by="v",
    kind="mor",
    index="BUCKET",
    options=RING,
)


def visits(base: Path, **axes: Any) -> HudiTable:
    return VISITS.make(base / "visits", first=range(40), **axes)


def with_options(table: HudiTable, options: dict[str, str], **more: str) -> HudiTable:
    return pyhudi.open_table(table.uri, options={**options, **more})


def stored(table: HudiTable) -> dict[str, int]:
    """Values by key, of which none is there twice."""
    rows = table.refresh().scan().to_arrow().to_pylist()
    found = {row["id"]: row["v"] for row in rows}
    assert len(found) == len(rows)
    return found


def read_by_key(table: HudiTable) -> dict[str, int]:
    """The same, each key looked for in its bucket alone."""
    keys = sorted(stored(table))
    scans = [table.scan(where=f"id = '{key}'") for key in keys]
    assert "(consistent hashing): pruned" in str(scans[0].explain())
    rows = [row for scan in scans for row in scan.to_arrow().to_pylist()]
    return {row["id"]: row["v"] for row in rows}


def buckets(table: HudiTable) -> list[int]:
    """How many the partitions have."""
    timeline = Timeline.load(table.storage, table.config)
    all_metadata = (
        read_committed_hashing_metadata(table.storage, timeline, city) for city in ("oslo", "rome")
    )
    return [len(metadata.nodes) for metadata in all_metadata if metadata is not None]


# --- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.slow
def test_buckets_are_split_and_merged_and_written_to(tmp_path: Path, version: int) -> None:
    table = with_options(visits(tmp_path, version=version), SPLIT)
    table.upsert(VISITS.rows(range(10, 50), v=1))
    before = stored(table)
    looked = table.cluster(dry_run=True)
    done = table.cluster()
    assert (done.rows_written, done.files_read, done.bytes_read) == (
        50,
        looked.files_read,
        looked.bytes_read,
    )
    assert stored(table) == before
    assert buckets(table) == [4, 4]
    assert read_by_key(table) == before
    table.upsert(VISITS.rows(range(30, 60), v=2))
    table.delete(where="id = 'k040'")
    table.cluster(sort_by=["v"])
    assert buckets(table) == [8, 8]
    # There may not be more.
    assert table.cluster().instants == ()
    table = with_options(table, MERGE)
    table.insert(VISITS.rows(range(60, 70), v=3))
    before = stored(table)
    assert len(before) == 69
    assert table.cluster().file_groups > 8
    assert buckets(table) == [1, 1]
    assert stored(table) == before
    table.upsert(VISITS.rows(range(70), v=4))
    assert stored(table) == {f"k{n:03}": 4 for n in range(70)}
    assert read_by_key(table) == stored(table)
    found = table.check(deep=True)
    assert found.ok, str(found)
    # Each version follows the one before it, as Hudi requires.
    timeline = Timeline.load(table.storage, table.config)
    metadata = read_committed_hashing_metadata(table.storage, timeline, "oslo")
    assert metadata is not None
    assert (metadata.sequence_number, metadata.buckets) == (3, 2)


def test_rows_are_in_the_buckets_that_their_keys_hash_to(tmp_path: Path) -> None:
    table = with_options(visits(tmp_path), SPLIT)
    table.cluster()
    timeline = Timeline.load(table.storage, table.config)
    metadata = read_committed_hashing_metadata(table.storage, timeline, "oslo")
    assert metadata is not None
    rows = table.scan(where="city = 'oslo'", meta_fields=True).to_arrow()
    consistent_hashes = _native.consistent_hashes(
        rows["_hoodie_record_key"].combine_chunks(), ("id",), scan=True
    ).to_pylist()
    for hash_value, file in zip(
        consistent_hashes, rows["_hoodie_file_name"].to_pylist(), strict=True
    ):
        wanted = next(
            (prefix for value, prefix in metadata.nodes if hash_value <= value),
            metadata.nodes[0][1],
        )
        assert file.startswith(f"{wanted}-0_")


def test_bucket_resize_rewrites_changed_buckets_only(tmp_path: Path) -> None:
    table = visits(tmp_path)
    split = {"hoodie.bucket.index.split.threshold": "3"}
    table.upsert(VISITS.rows(range(0, 400, 2), v=1))
    done = with_options(table, {**RING, **split}).cluster()
    # Those of the other partition are small.
    assert done.rows_written == len(table.refresh().scan(where="city = 'rome'").to_arrow())
    assert buckets(table) == [2, 4]


def test_bucket_resize_plan_blocks_writers_until_executed(tmp_path: Path) -> None:
    table = with_options(visits(tmp_path), SPLIT)
    (planned,) = table.cluster(execute=False).scheduled
    with pytest.raises(CommitConflict, match=r"clustering \d+ is pending"):
        table.upsert(VISITS.rows([3], v=1))
    before = stored(table)
    assert table.cluster(schedule=False).instants == (planned,)
    assert stored(table) == before
    (planned,) = table.cluster(execute=False).scheduled
    table.rollback(planned)
    assert buckets(table) == [4, 4]
    table.upsert(VISITS.rows([3], v=1))
    assert stored(table)["k003"] == 1


def test_bucket_resize_is_not_planned_next_to_pending_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = with_options(visits(tmp_path), SPLIT)
    start = Transaction.start
    left: list[str] = []

    def clusters(*args: Any) -> None:
        start(*args)
        if not left:
            left.extend(pyhudi.open_table(table.uri, options=SPLIT).cluster().left)

    monkeypatch.setattr(Transaction, "start", clusters)
    table.upsert(VISITS.rows([3], v=1))
    assert "no buckets are split or merged while" in left[0]
    monkeypatch.undo()
    assert table.cluster().instants


def test_bucket_resize_survives_repeated_and_failed_tasks(tmp_path: Path) -> None:
    uri = visits(tmp_path).uri
    dying = FaultyEngine(pyhudi.LocalEngine(2), DiesAfterWriting)
    table = pyhudi.open_table(uri, engine=dying, options=SPLIT)
    before = stored(table)
    table.cluster(execute=False)
    with pytest.raises(DiedError):
        table.cluster(schedule=False)
    (left,) = pending(table.refresh().state.timeline)
    assert left.state is State.REQUESTED
    assert not list(Path(uri).rglob(f"*_{left.requested}.parquet"))
    twice = FaultyEngine(pyhudi.LocalEngine(2), Twice)
    table = pyhudi.open_table(uri, engine=twice, options=SPLIT)
    done = table.cluster(schedule=False)
    assert done.instants == (left.requested,)
    assert len(list(Path(uri).rglob(f"*_{left.requested}.parquet"))) == done.files_written
    assert stored(table) == before
    assert table.check(deep=True).ok


def test_hashing_metadata_of_failed_attempt_is_ignored(tmp_path: Path) -> None:
    table = with_options(visits(tmp_path), SPLIT)
    (planned,) = table.cluster(partitions=["oslo"], execute=False).scheduled
    folder = tmp_path / "visits/.hoodie/.bucket_index/consistent_hashing_metadata/oslo"
    other = json.loads((folder / "00000000000000.hashing_meta").read_text())
    other |= {"nodes": other["nodes"][1:], "seqNo": 1, "instant": planned}
    (folder / f"{planned}.hashing_meta").write_text(json.dumps(other))
    before = stored(table)
    assert buckets(table) == [2, 2]
    assert table.cluster(schedule=False).instants == (planned,)
    assert buckets(table) == [4, 2]
    assert read_by_key(table) == before


def test_outdated_bucket_resize_plan_is_cancelled(tmp_path: Path) -> None:
    table = with_options(visits(tmp_path), SPLIT)
    (planned,) = table.cluster(execute=False).scheduled
    allowed = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}
    with_options(table, SPLIT, **allowed).upsert(VISITS.rows([3], v=1))
    assert planned in table.cluster(schedule=False).left[0]
    assert pending(table.refresh().state.timeline) == []
    assert table.cluster().instants
    assert stored(table)["k003"] == 1


def test_files_of_hudi_resize_reveal_hashing_metadata(tmp_path: Path) -> None:
    for name in ("v6_mor_resized", "v9_mor_resized"):
        table = pyhudi.open_table(unpack(name, tmp_path), options=SPLIT)
        timeline = Timeline.load(table.storage, table.config)
        metadata = read_committed_hashing_metadata(table.storage, timeline, "osaka")
        assert metadata is not None
        assert (len(metadata.nodes), metadata.sequence_number, metadata.buckets) == (4, 1, 2)
        before = table.scan().to_arrow().num_rows
        assert table.cluster().rows_written == before
        assert table.refresh().scan().to_arrow().num_rows == before


@pytest.mark.parametrize("stale", [False, True])
def test_archived_unconfirmed_hashing_metadata_is_used(tmp_path: Path, stale: bool) -> None:
    """As Hudi 0.15 leaves it after a clustering that was executed, or rolled back."""
    table = with_options(visits(tmp_path, version=6), SPLIT)
    (instant,) = table.cluster().instants
    folder = tmp_path / "visits/.hoodie/.bucket_index/consistent_hashing_metadata/oslo"
    assert not (folder / f"{instant}.commit").exists()
    if stale:
        for file in (tmp_path / "visits/oslo").glob(f"*_{instant}.parquet"):
            file.unlink()
    for file in (tmp_path / "visits/.hoodie").glob("*.*commit*"):
        if file.name <= f"{instant}.z":
            file.unlink()
    later = Storage(table.uri)
    for name in ("requested", "inflight"):
        later.put(f".hoodie/29990101000000000.deltacommit.{name}", b"")
    later.put(".hoodie/29990101000000000.deltacommit", b"{}")
    found = read_committed_hashing_metadata(
        table.storage, Timeline.load(later, table.config), "oslo"
    )
    assert found is not None
    assert len(found.nodes) == (2 if stale else 4)


def test_bucket_resize_raises_for_other_hash_fields(tmp_path: Path) -> None:
    two = TableBuilder(
        {"a": (pa.string(), numbered(3)), "b": (pa.string(), numbered(2)), "v": (pa.int64(), 0)},
        key=["a", "b"],
        kind="mor",
        index="BUCKET",
        options={**RING, "hoodie.bucket.index.hash.field": "a"},
    )
    table = two.make(tmp_path / "two", first=range(40))
    before = table.scan().to_arrow().num_rows
    wrong = with_options(table, SPLIT, **{"hoodie.bucket.index.hash.field": "b"})
    wrong.cluster(execute=False)
    with pytest.raises(ConfigError, match=r"hoodie\.bucket\.index\.hash\.field is b, but"):
        wrong.cluster(schedule=False)
    (left,) = pending(table.refresh().state.timeline)
    assert not list(Path(table.uri).rglob(f"{left.requested}.hashing_meta"))
    right = with_options(table, SPLIT, **{"hoodie.bucket.index.hash.field": "a"})
    assert right.cluster(schedule=False).instants == (left.requested,)
    assert right.refresh().scan().to_arrow().num_rows == before


def test_bucket_resize_plan_others_depend_on_is_kept(tmp_path: Path) -> None:
    """As those of Hudi do with `SparkConsistentBucketDuplicateUpdateStrategy`."""
    table = with_options(visits(tmp_path), SPLIT)
    (planned,) = table.cluster(execute=False).scheduled
    record = table.refresh().state.timeline.plan(pending(table.state.timeline)[0]) or {}
    group = record["clusteringPlan"]["inputGroups"][0]
    nodes = json.loads(group["extraMetadata"]["clustering.group.child.node"])
    (log, *_) = (Path(table.uri) / group["slices"][0]["partitionPath"]).glob(
        f".{group['slices'][0]['fileId']}*"
    )
    early = f".{nodes[0]['fileIdPrefix']}-0_{planned}.log.1_9-9-9"
    shutil.copy(log, log.with_name(early))
    before = stored(table)
    # It counts with the clustering, so that has to come.
    with pytest.raises(CommitConflict, match="writers wrote to buckets"):
        table.rollback(planned)
    assert stored(table) == before


@pytest.mark.parametrize("split", [True, False])
def test_maintenance_and_commits_resize_what_is_due(tmp_path: Path, split: bool) -> None:
    options = SPLIT if split else MERGE
    table = with_options(visits(tmp_path), options)
    health = table.inspect.health()
    (advice,) = (advice for advice in health.advice if advice.service == "cluster")
    assert "4 buckets can be split or merged" in advice.reason
    before = stored(table)
    assert "cluster" in [done.service for done in table.maintain().done]
    assert buckets(table) == ([4, 4] if split else [1, 1])
    assert stored(table) == before
    inline = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "2"}
    table = with_options(table, SPLIT, **inline)
    for number in range(2):
        table.upsert(VISITS.rows(range(60), v=number + 1))
    assert buckets(table) == ([8, 8] if split else [2, 2])
    assert stored(table) == {f"k{n:03}": 2 for n in range(60)}


def test_bucket_created_after_replaced_hashing_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One of the two buckets has no file yet.
    table = VISITS.make(tmp_path / "visits", first=[0])
    start = Transaction.start
    overwritten: list[bool] = []

    def overwrites(*args: Any) -> None:
        start(*args)
        if not overwritten:
            overwritten.append(True)
            pyhudi.open_table(table.uri, options=RING).overwrite_partitions(VISITS.rows([2], v=1))

    monkeypatch.setattr(Transaction, "start", overwrites)
    # The retry finds the new metadata.
    table.upsert(VISITS.rows(range(4, 40, 2), v=2))
    assert stored(table) == {"k002": 1, **{f"k{n:03}": 2 for n in range(4, 40, 2)}}
    table.upsert(VISITS.rows(range(0, 40, 2), v=3))
    assert stored(table) == {f"k{n:03}": 3 for n in range(0, 40, 2)}


def test_bucket_resize_raises_for_unsupported_tables(tmp_path: Path) -> None:
    simple = VISITS.make(
        tmp_path / "simple",
        first=range(4),
        options={"hoodie.index.bucket.engine": "SIMPLE"},
    )
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.index\.type is BUCKET"):
        simple.cluster()
    consistent = VISITS.make(tmp_path / "consistent", first=range(40))
    for name, text in (("populate.meta.fields", "false"), ("table.type", "COPY_ON_WRITE")):
        other = shutil.copytree(tmp_path / "consistent", tmp_path / name)
        changes = {f"hoodie.{name}": text}
        TableConfig.load(Storage(str(other))).update(Storage(str(other)), changes, SystemClock())
        with pytest.raises(UnsupportedTableFeature, match=r"meta\.fields is false|of MOR only"):
            pyhudi.open_table(other, options=SPLIT).cluster()
    # By default there are as many buckets as at first.
    plain = {"hoodie.bucket.index.num.buckets": "2"}
    assert pyhudi.open_table(consistent.uri, options=plain).cluster().instants == ()


# --- plans ----------------------------------------------------------------------------------------


def hashing_metadata(*values: int, sequence_number: int = 0) -> HashingMetadata:
    return HashingMetadata([(value, f"p{value}") for value in values], sequence_number, len(values))


def slice_of(value: int, size: int, logs: int = 0) -> FileSlice:
    name = f"p{value}-0"
    base = BaseFile("p", f"{name}_0_1.parquet", name, "1", "0", size - logs)
    log = (LogFile("p", f".{name}_1.log.1_0", name, "1", 1, "0", "", logs),) if logs else ()
    return FileSlice("p", name, "1", base, log)


def prefixes() -> Iterator[str]:
    return (f"new{number}" for number in count())


def chosen(
    metadata: HashingMetadata, sizes: dict[int, int], *, most: int = 100, fewest: int = 1
) -> list[tuple[list[int], list[tuple[int, str | None]]]]:
    """The groups by their nodes: those that go in, and what they become."""
    options = ResizeOptions(most, fewest, split_bytes=1000, merge_bytes=100)
    names = prefixes()
    slices = [slice_of(value, size) for value, size in sizes.items()]
    groups = choose_resizes(slices, metadata, options, lambda: next(names))
    assert {group.sequence_number for group in groups} <= {metadata.sequence_number}
    assert all(
        group.outputs == sum(child.prefix is not None for child in group.children)
        for group in groups
    )
    return [
        (
            [int(slice_.file_id[1:-2]) for slice_ in group.slices],
            [(child.value, child.prefix) for child in group.children],
        )
        for group in groups
    ]


def test_largest_buckets_split_first() -> None:
    metadata = hashing_metadata(100, 200, 300, sequence_number=7)
    sizes = {100: 1500, 200: 999, 300: 2000}
    # The last bucket's range wraps around.
    assert chosen(metadata, {100: 1500}) == [
        ([100], [((300 + 100 + (1 << 31)) // 2, "new0"), (100, "new1")])
    ]
    assert chosen(metadata, sizes, most=4) == [([300], [(250, "new0"), (300, "new1")])]
    assert [group for group, _ in chosen(metadata, sizes)] == [[300], [100]]
    assert chosen(metadata, sizes, most=3) == []


def test_single_hash_range_is_not_split() -> None:
    assert midpoint_of([(4, "a"), (5, "b"), (9, "c")], 5) is None
    assert chosen(hashing_metadata(4, 5, 9), {5: 5000}) == []


def test_resize_merges_small_neighbors_across_the_wrap_around() -> None:
    metadata = hashing_metadata(100, 200, 300, 400, 500)
    small = {100: 10, 200: 10, 400: 10, 500: 10}
    assert chosen(metadata, {**small, 300: 900}) == [
        ([400, 500, 100, 200], [(400, None), (500, None), (100, None), (200, "new0")])
    ]
    # One without files stays between them.
    assert chosen(metadata, {100: 10, 300: 10}) == []
    # None is added to what is large enough already.
    assert chosen(metadata, {100: 90, 200: 90, 300: 90, 400: 900}) == [
        ([100, 200], [(100, None), (200, "new0")])
    ]
    assert chosen(metadata, {**small, 300: 900}, fewest=4) == [
        ([500, 100], [(500, None), (100, "new0")])
    ]
    assert chosen(metadata, small, fewest=5) == []


def test_split_buckets_can_merge_again() -> None:
    metadata = hashing_metadata(100, 200, 300)
    found = chosen(metadata, {100: 5000, 200: 10, 300: 10}, fewest=3)
    assert [group for group, _ in found] == [[100], [200, 300]]


def test_hashing_metadata_nodes_round_trip() -> None:
    nodes = hashing_metadata(100, 200, 300).nodes
    assert hash_range_of(nodes, 200) == HashRange(100, 200)
    consistent_hashes = pa.array([0, 100, 101, 200, 201, 300, 301, (1 << 31) - 1])
    held = {
        value: hash_range_of(nodes, value).contains(consistent_hashes).to_pylist()
        for value, _ in nodes
    }
    assert [sum(each) for each in zip(*held.values(), strict=True)] == [1] * len(consistent_hashes)
    assert consistent_hashes.filter(pa.array(held[100])).to_pylist() == [0, 100, 301, (1 << 31) - 1]
    assert hash_range_of([(100, "all")], 100).contains(consistent_hashes).to_pylist() == [
        True
    ] * len(consistent_hashes)
    assert replace_nodes(
        nodes, [ChildNode(100, None), ChildNode(150, "x"), ChildNode(200, "y")]
    ) == [
        (150, "x"),
        (200, "y"),
        (300, "p300"),
    ]


def test_bucket_resize_plan_round_trips(tmp_path: Path) -> None:
    slice_ = slice_of(100, 10)
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "p100-0_0_1.parquet").write_bytes(b"x" * 10)
    children = (ChildNode(100, None), ChildNode(200, "new-1"))
    group = PlannedGroup((slice_,), 1, children, 3)
    record = clustering_record(str(tmp_path), [group], [], None)
    plan = read_plan(Storage(str(tmp_path)), TableConfig({}), json.loads(json.dumps(record)))
    (found,) = plan.groups
    assert (found.children, found.sequence_number) == (children, 3)
    assert plan.resized == {"p": (found,)}
    record["clusteringPlan"]["inputGroups"][0]["extraMetadata"]["clustering.group.child.node"] = (
        '[{"value": 1, "fileIdPrefix": "../a", "tag": "REPLACE"}]'
    )
    with pytest.raises(UnsupportedTableFeature, match="that is damaged"):
        read_plan(Storage(str(tmp_path)), TableConfig({}), record)


def test_options_are_as_hudi_bounds_them() -> None:
    def bounds(**given: str) -> tuple[int, int]:
        options = {f"hoodie.bucket.index.{name}.num.buckets": v for name, v in given.items()}
        options["hoodie.bucket.index.num.buckets"] = "8"
        found = ResizeOptions.of(options)
        return found.min_buckets, found.max_buckets

    assert bounds() == (8, 8)
    assert bounds(min="2", max="32") == (2, 32)
    assert bounds(min="9", max="7") == (8, 8)
    found = ResizeOptions.of({"hoodie.parquet.max.file.size": "1000"})
    assert (found.split_bytes, found.merge_bytes) == (2000, 200)
    with pytest.raises(ConfigError, match=r"split\.threshold is '0'"):
        ResizeOptions.of({"hoodie.bucket.index.split.threshold": "0"})
