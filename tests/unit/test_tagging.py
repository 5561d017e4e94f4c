"""Tagging by each index: which file group a row goes to, and what is read for it."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.clock import SystemClock
from pyhudi.config.index_options import (
    BUCKET_ENGINE,
    BUCKETS,
    INDEX_TYPE,
    PARTITIONED_RECORD_INDEX,
    RECORD_INDEX,
    UPDATE_PATH_BLOOM,
    UPDATE_PATH_RECORD,
    UPDATE_PATH_SIMPLE,
)
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.config.write_options import WriteOptions
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError, CorruptTable
from pyhudi.index import bloom, bucket_lookup, consistent_hashing, record_index, tagging
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.write.write_context import WriteContext
from tests.engine.faulty import FaultyEngine, TriedAgain, Twice
from tests.helpers.table_builder import SMALL, TableBuilder
from tests.helpers.tables import unpack

pytestmark = pytest.mark.in_parts

FILE = "_hoodie_file_name"
EVERY_TABLE = pytest.mark.parametrize(
    ("version", "kind"), [(v, k) for v in (6, 8, 9) for k in ("cow", "mor")]
)
BUCKETED = {BUCKETS: 4}


TABLE = TableBuilder(
    {
        "id": (pa.string(), str),
        "part": (pa.string(), lambda key: "x" if key < "n" else "y"),
        "v": (pa.int64(), 1),
        "ts": (pa.int32(), 10),
    },
    partition_by="part",
    order_by="ts",
    options={**SMALL, "hoodie.parquet.small.file.limit": 0},
    first="abcyz",
)


def values(table: HudiTable) -> list[tuple[str, str, int]]:
    found = pyhudi.open_table(table.uri).scan(meta_fields=True).to_arrow().to_pylist()
    return sorted((row["id"], row["_hoodie_partition_path"], row["v"]) for row in found)


def slices(table: HudiTable) -> list[FileSlice]:
    timeline = Timeline.load(table.storage, table.config)
    return list(FileSystemView(table.storage, table.config, timeline).slices())


@EVERY_TABLE
@pytest.mark.parametrize("index", ["simple", "bloom"])
def test_index_of_a_partition_updates_there(
    tmp_path: Path, version: int, kind: str, index: str
) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind=kind, index=index)
    table.upsert(TABLE.rows("bd", part="x", v=2))
    table.upsert(TABLE.rows("a", part="y", v=3))
    assert values(table) == [
        ("a", "x", 1),
        ("a", "y", 3),
        ("b", "x", 2),
        ("c", "x", 1),
        ("d", "x", 2),
        ("y", "y", 1),
        ("z", "y", 1),
    ]


@EVERY_TABLE
@pytest.mark.parametrize("index", ["global_simple", "global_bloom"])
def test_row_moves_to_its_new_partition(
    tmp_path: Path, version: int, kind: str, index: str
) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind=kind, index=index)
    table.upsert(TABLE.rows("ab", part="y", v=2, ts=20))
    assert values(table)[:3] == [("a", "y", 2), ("b", "y", 2), ("c", "x", 1)]
    table.upsert(TABLE.rows("a", part="x", v=3, ts=30))
    table.upsert(TABLE.rows("b", part="y", v=3, ts=30))
    assert values(table)[:3] == [("a", "x", 3), ("b", "y", 3), ("c", "x", 1)]
    table.upsert(TABLE.rows("a", part="y", v=4, ts=40))
    assert values(table) == [
        ("a", "y", 4),
        ("b", "y", 3),
        ("c", "x", 1),
        ("y", "y", 1),
        ("z", "y", 1),
    ]


@EVERY_TABLE
def test_older_row_does_not_move(tmp_path: Path, version: int, kind: str) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind=kind, index="global_simple")
    table.upsert(TABLE.rows("ab", part="y", v=2, ts=5))
    assert values(table)[:2] == [("a", "x", 1), ("b", "x", 1)]


@EVERY_TABLE
@pytest.mark.parametrize(
    ("index", "option"),
    [("global_simple", UPDATE_PATH_SIMPLE), ("global_bloom", UPDATE_PATH_BLOOM)],
)
def test_row_stays_where_moving_is_off(
    tmp_path: Path, version: int, kind: str, index: str, option: str
) -> None:
    table = TABLE.make(
        tmp_path / "t", version=version, kind=kind, index=index, options={option: False}
    )
    table.upsert(TABLE.rows("ad", part="y", v=2, ts=20))
    assert values(table) == [
        ("a", "x", 2),
        ("b", "x", 1),
        ("c", "x", 1),
        ("d", "y", 2),
        ("y", "y", 1),
        ("z", "y", 1),
    ]


@EVERY_TABLE
def test_deleted_key_comes_back_elsewhere(tmp_path: Path, version: int, kind: str) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind=kind, index="global_simple")
    table.delete_keys(pa.table({"id": ["a"], "part": ["x"]}))
    table.upsert(TABLE.rows("a", part="y", v=2, ts=1))
    assert values(table)[0] == ("a", "y", 2)
    table.upsert(TABLE.rows("a", part="y", v=3, ts=2))
    assert values(table)[:2] == [("a", "y", 3), ("b", "x", 1)]


@pytest.mark.parametrize("wrapper", [Twice, TriedAgain])
@pytest.mark.parametrize("index", ["simple", "global_bloom", "bucket", "consistent"])
def test_tasks_may_run_twice(tmp_path: Path, wrapper: Any, index: str) -> None:
    engine = FaultyEngine(LocalEngine(2), wrapper)
    options = {
        **BUCKETED,
        BUCKET_ENGINE: "CONSISTENT_HASHING" if index == "consistent" else "SIMPLE",
    }
    kind = "bucket" if index == "consistent" else index
    table = TABLE.make(
        tmp_path / "t", version=9, kind="mor", index=kind, engine=engine, options=options
    )
    table.upsert(TABLE.rows("bd", part="x", v=2))
    table.delete_keys(pa.table({"id": ["y"]}))
    assert [key for key, _, _ in values(table)] == list("abcdz")


@pytest.mark.parametrize("index", ["simple", "global_simple"])
def test_key_of_two_partitions_is_combined_under_a_global_index(tmp_path: Path, index: str) -> None:
    table = TABLE.make(tmp_path / "t", version=9, kind="cow", index=index)
    twice = [TABLE.rows("e", part="x", v=2, ts=20), TABLE.rows("e", part="y", v=3, ts=10)]
    table.upsert(pa.concat_tables(twice))
    found = [one for one in values(table) if one[0] == "e"]
    assert found == [("e", "x", 2), *([("e", "y", 3)] if index == "simple" else [])]


# --- buckets --------------------------------------------------------------------------------------


@EVERY_TABLE
def test_rows_go_to_their_buckets(tmp_path: Path, version: int, kind: str) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind=kind, index="bucket", options=BUCKETED)
    table.upsert(TABLE.rows("bdef", part="x", v=2))
    table.insert(TABLE.rows("g", part="w", v=2))
    again = pyhudi.open_table(table.uri, options=BUCKETED)
    again.upsert(TABLE.rows("ag", part="x", v=3, ts=30))
    again.delete_keys(pa.table({"id": ["y", "q"], "part": ["y", "y"]}))
    assert [key for key, _, _ in values(table)] == list("abcdefggz")
    assert {k: v for k, p, v in values(table) if p == "x"}["a"] == 3
    groups = [(one.partition, bucket_lookup.bucket_of(one.file_id)) for one in slices(table)]
    assert len(groups) == len(set(groups))
    # Of one letter the list hash is 31 plus its code.
    assert {b for p, b in groups if p == "x"} == {(31 + ord(key)) % 4 for key in "abcdefg"}
    assert ("w", (31 + ord("g")) % 4) in groups


@EVERY_TABLE
def test_wrong_number_of_buckets_is_refused(tmp_path: Path, version: int, kind: str) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind=kind, index="bucket", options=BUCKETED)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "t").rglob("*")}
    for wrong in ({}, {BUCKETS: 2}, {BUCKETS: 5}):
        with pytest.raises(ConfigError, match=r"hoodie\.bucket\.index\.num\.buckets"):
            pyhudi.open_table(table.uri, options=wrong).upsert(TABLE.rows("abc", part="x", v=2))
    with pytest.raises(ConfigError, match=r"hoodie\.index\.type is SIMPLE"):
        pyhudi.open_table(table.uri, options={INDEX_TYPE: "SIMPLE"}).upsert(
            TABLE.rows("a", part="x", v=2)
        )
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "t").rglob("*")} == before


def test_bucket_index_needs_buckets(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", version=9, kind="cow", index="simple")
    with pytest.raises(ConfigError, match=r"hoodie\.index\.type is BUCKET"):
        pyhudi.open_table(table.uri, options={INDEX_TYPE: "BUCKET"}).upsert(
            TABLE.rows("a", part="x", v=2)
        )


def test_file_ids_are_those_of_hudi_and_flink() -> None:
    def random() -> str:
        return "a1b2c3d4-9f0e-4c3a-8f00-112233445566-0"

    assert bucket_lookup.new_file_id(3, random) == "00000003-9f0e-4c3a-8f00-112233445566-0"
    shared = bucket_lookup.new_file_id(41, random, shared=True)
    assert shared == "00000041-0000-0000-0000-000000000000-0"
    assert bucket_lookup.bucket_of("00000041-9f0e-4c3a-8f00-112233445566") == 41


def test_replaced_file_id_is_not_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As writers that share file ids would make it."""
    table = TABLE.make(tmp_path / "t", version=9, kind="mor", index="bucket", options=BUCKETED)
    table.overwrite(TABLE.rows("abcyz"))
    alone = bucket_lookup.new_file_id

    def shared_id(number: int, random: Any, *, shared: bool = False) -> str:  # noqa: ARG001
        return alone(number, random, shared=True)

    with monkeypatch.context() as patch:
        patch.setattr(bucket_lookup, "new_file_id", shared_id)
        table.upsert(
            pa.concat_tables([TABLE.rows("abc", part="u", v=2), TABLE.rows("yz", part="w", v=2)])
        )
    table.delete_partitions(["u"])
    table.upsert(
        pa.concat_tables([TABLE.rows("abd", part="u", v=3), TABLE.rows("yt", part="w", v=3)])
    )
    assert [key for key, part, _ in values(table) if part in "uw"] == list("abdtyz")
    zeros = [one for one in slices(table) if "-0000-0000-0000-" in one.file_id]
    assert [bucket_lookup.bucket_of(one.file_id) for one in zeros if one.partition == "u"] == [3]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_ring_starts_for_each_partition(tmp_path: Path, version: int) -> None:
    options = {"hoodie.index.bucket.engine": "CONSISTENT_HASHING", **BUCKETED}
    table = TABLE.make(tmp_path / "t", version=version, kind="mor", index="bucket", options=options)
    table.upsert(TABLE.rows("bdef", part="x", v=2))
    again = pyhudi.open_table(table.uri)
    again.upsert(TABLE.rows("adg", part="x", v=3, ts=30))
    again.delete_keys(pa.table({"id": ["y"]}))
    assert [key for key, _, _ in values(table)] == list("abcdefgz")
    metadata_files = sorted((tmp_path / "t/.hoodie/.bucket_index").rglob("*.hashing_meta"))
    assert [path.parent.name for path in metadata_files] == ["x", "y"]
    assert all(one.base is None and one.logs for one in slices(table))


@pytest.mark.parametrize(
    "name", ["v6_mor_bucket", "v6_mor_bucket_two_fields", "v9_mor_bucket", "v9_mor_consistent"]
)
def test_keys_of_hudi_go_where_hudi_put_them(tmp_path: Path, name: str) -> None:
    table = pyhudi.open_table(unpack(name, tmp_path), options={BUCKETS: 4})
    stored = table.scan(meta_fields=True).to_arrow()
    context = context_of(table)
    located = tagging.tag_delete(
        context, stored.select([RECORD_KEY, PARTITION_PATH]), in_partitions=True
    )
    rows = located.tagged.rows.to_pylist()
    assert sorted(rows) == list(range(stored.num_rows))
    for row, group in zip(rows, located.tagged.groups.to_pylist(), strict=True):
        file_id = located.groups[group].slice.file_id
        assert stored.column(FILE)[row].as_py().startswith(file_id)


def test_initial_hashing_metadata_is_stored_as_by_hudi(tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack("v9_mor_consistent", tmp_path))
    (file,) = (tmp_path / "v9_mor_consistent/.hoodie/.bucket_index").rglob("lisbon/*")
    wanted = file.read_bytes()
    file.unlink()
    consistent_hashing.store_initial_hashing_metadata(table.storage, "lisbon", 4)
    assert json.loads(file.read_bytes()) == json.loads(wanted)


# --- bloom filters --------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [6, 9])
def test_files_without_a_candidate_are_not_read(tmp_path: Path, version: int) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind="cow", index="bloom")
    (x,) = [one for one in slices(table) if one.partition == "x"]
    spoil_pages(tmp_path / "t" / x.base.path if x.base else tmp_path)
    table.upsert(TABLE.rows("d", part="x", v=2))
    with pytest.raises(CorruptTable, match="x/"):
        table.upsert(TABLE.rows("a", part="x", v=2))


def spoil_pages(file: Path) -> None:
    """Makes the record keys unreadable, the footer stays."""
    group = pq.read_metadata(file).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    (keys,) = [column for column in columns if column.path_in_schema == RECORD_KEY]
    start = keys.dictionary_page_offset or keys.data_page_offset
    data = bytearray(file.read_bytes())
    data[start : start + keys.total_compressed_size] = b"\xff" * keys.total_compressed_size
    file.write_bytes(data)


# --- record index ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("v6_cow_record_index", RECORD_INDEX),
        ("v9_cow_record_index", RECORD_INDEX),
        ("v9_mor_record_index", RECORD_INDEX),
        ("v9_mor_partitioned_record_index", PARTITIONED_RECORD_INDEX),
    ],
)
def test_record_index_knows_every_key_without_base_files(
    tmp_path: Path, name: str, kind: str
) -> None:
    base = unpack(name, tmp_path)
    table = pyhudi.open_table(base)
    stored = table.scan(meta_fields=True).to_arrow().select([RECORD_KEY, PARTITION_PATH, FILE])
    absent = pa.table({RECORD_KEY: ["nobody"], PARTITION_PATH: stored.column(1)[:1]})
    keys = pa.concat_tables([stored.select([0, 1]), absent]).combine_chunks()
    context = context_of(table)
    assert context.index.index_type == kind
    for in_partitions in (True,) if kind == PARTITIONED_RECORD_INDEX else (True, False):
        located = tagging.tag_delete(context, keys, in_partitions=in_partitions)
        rows = located.tagged.rows.to_pylist()
        assert sorted(rows) == list(range(stored.num_rows))
        for row, group in zip(rows, located.tagged.groups.to_pylist(), strict=True):
            slice_ = located.groups[group].slice
            assert slice_.partition == keys.column(1)[row].as_py()
            assert stored.column(2)[row].as_py().startswith(slice_.file_id)
    before = bytes_read()
    rows = tagging.tag_delete(context, keys, in_partitions=True).tagged.rows.to_pylist()
    needed = bytes_read() - before
    assert empty_base_files(base) > 0
    before = bytes_read()
    assert tagging.tag_delete(context, keys, in_partitions=True).tagged.rows.to_pylist() == rows
    # The number itself is read from a file.
    assert bytes_read() - before == pytest.approx(needed, abs=64)


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("name", ["v6_cow_record_index", "v9_mor_record_index"])
def test_record_index_moves_rows_if_it_may(tmp_path: Path, name: str, moves: bool) -> None:
    base = unpack(name, tmp_path)
    table = pyhudi.open_table(base, options={UPDATE_PATH_RECORD: moves})
    context = context_of(table)
    found = table.scan(meta_fields=True).to_arrow()
    key = found.column(RECORD_KEY)[0].as_py()
    home = found.column(PARTITION_PATH)[0].as_py()
    data = found.slice(0, 1).drop_columns([n for n in found.column_names if n[:8] == "_hoodie_"])
    data = data.set_column(
        data.schema.get_field_index("city"), data.schema.field("city"), pa.array(["elsewhere"])
    )
    rows = context.with_keys(data)
    assert rows.column(RECORD_KEY).to_pylist() == [key]
    assert rows.column(PARTITION_PATH).to_pylist() != [home]
    located = tagging.tag_upsert(context, rows, pa.array([False]))
    kept, left = located.tagged.groups.to_pylist(), located.tagged.left_groups.to_pylist()
    assert (len(kept), len(left)) == ((0, 1) if moves else (1, 0))
    assert located.groups[(kept + left)[0]].slice.partition == home


def test_record_index_tags_by_tasks_of_its_file_groups(tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack("v9_cow_record_index", tmp_path))
    keys = table.scan(meta_fields=True).to_arrow().select([RECORD_KEY, PARTITION_PATH])
    engine = Watching()
    located = tagging.tag_delete(context_of(table, engine), keys, in_partitions=True)
    tasks = [task for task in engine.tasks if isinstance(task, record_index.LookupTask)]
    assert sum(len(task.keys) for task in tasks) == keys.num_rows == len(located.tagged.rows)
    files = [(task.group.base, task.group.logs) for task in tasks]
    assert 1 < len(set(files)) == len(files)
    assert all(pickle.loads(pickle.dumps(task)) is not task for task in tasks)  # noqa: S301


class Watching(LocalEngine):
    """Keeps the tasks that it ran."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[Any] = []

    def run(self, work: Any, tasks: Any, *, stage: int = 0, label: str = "") -> Any:
        self.tasks += tasks
        return super().run(work, tasks, stage=stage, label=label)


def context_of(table: HudiTable, engine: LocalEngine | None = None) -> WriteContext:
    """As `WriteContext.open` makes it, for a table that may not be written to yet."""
    opened = TableSnapshot.open(table.storage, table.config, SystemClock(), engine or table.engine)
    return WriteContext(
        opened,
        WriteOptions.of(table.options),
    )


def empty_base_files(base: Path) -> int:
    """Cuts every base file of the data down to nothing; gives back the bytes that they had."""
    files = [p for p in base.rglob("*.parquet") if ".hoodie" not in p.relative_to(base).parts]
    size = sum(file.stat().st_size for file in files)
    for file in files:
        file.write_bytes(b"")
    return size


def bytes_read() -> int:
    """Bytes that this process has read from files so far."""
    text = Path("/proc/self/io").read_text(encoding="ascii")
    return int(text.split("rchar:")[1].split()[0])


# --- bloom filters of the metadata table ----------------------------------------------------------


@pytest.mark.parametrize("name", ["v6_cow_all_stats", "v9_cow_all_stats", "v9_mor_all_stats"])
def test_filters_of_the_metadata_table_answer_for_files(tmp_path: Path, name: str) -> None:
    base = unpack(name, tmp_path)
    table = pyhudi.open_table(base)
    stored = table.scan(meta_fields=True).to_arrow()
    filters = bloom.bloom_filters_of(context_of(table))
    assert filters.metadata_groups
    empty_base_files(base)
    homes = stored.group_by(FILE).aggregate([(RECORD_KEY, "list")]).to_pylist()
    of_file = {row[FILE]: row[f"{RECORD_KEY}_list"] for row in homes}
    answered = 0
    for one in slices(table):
        if one.base is not None and one.base.name in of_file:
            answered += 1
            assert filters.may_contain(one, pa.array(of_file[one.base.name]))
            assert not filters.may_contain(one, pa.array(["nobody", None]))
    assert answered
