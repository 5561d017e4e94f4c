"""Duplicate keys in a table, with an index that stores one location for each key."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.config.actions import Instant
from pyhudi.config.property_names import KEYS
from pyhudi.errors import (
    ConfigError,
    DuplicateKeyWarning,
    PartitionChangeWarning,
    SchemaMismatch,
)
from pyhudi.index.key_reader import KeySource
from pyhudi.query import dml_rows
from pyhudi.timeline import Timeline, instant_files, key_uniqueness
from pyhudi.timeline.archive import Archive
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.key_uniqueness import (
    MAY_REPEAT,
    UNIQUE,
    key_uniqueness_property,
    keys_are_unique,
)
from tests.helpers.table_builder import TableBuilder
from tests.helpers.tables import unpack

pytestmark = pytest.mark.in_parts

TABLES = pytest.mark.parametrize(
    ("kind", "version", "by"),
    [
        ("cow", 9, "city"),
        ("mor", 9, "city"),
        ("mor", 9, None),
        ("cow", 6, None),
        ("mor", 6, "city"),
    ],
)
LEAST = 1024 * 1024
POLICY = "hoodie.datasource.insert.dup.policy"


TABLE = TableBuilder(
    {
        "id": (pa.string(), str),
        "city": (pa.string(), lambda key: "lisbon" if key < "m" else "osaka"),
        "v": (pa.int64(), 1),
        "gone": (pa.bool_(), None),
    },
    partition_by="city",
)


def with_copies(base: Path, **axes: Any) -> HudiTable:
    """Keys a, b, y, z; b and z twice."""
    table = TABLE.make(base, **axes)
    table.bulk_insert(TABLE.rows("abyz"))
    table.bulk_insert(TABLE.rows("bz", v=2))
    return table


def keys(table: HudiTable, where: Any = None) -> list[str]:
    return sorted(table.scan(columns=["id"], where=where).to_arrow()["id"].to_pylist())


def is_pruned(table: HudiTable, key: str = "a") -> bool:
    steps = table.scan(where=[("id", "=", key)]).explain().steps
    return any(step.index == "record_index" for step in steps)


# --- copies ---------------------------------------------------------------------------------------


@TABLES
def test_filter_finds_every_duplicate(
    tmp_path: Path, kind: str, version: int, by: str | None
) -> None:
    table = with_copies(tmp_path, kind=kind, version=version, partition_by=by)
    assert keys(table) == list("abbyzz")
    assert keys(table, "id = 'b'") == ["b", "b"]
    assert keys(table, "id IN ('a', 'z')") == ["a", "z", "z"]
    assert not is_pruned(table)


@TABLES
def test_delete_removes_every_duplicate(
    tmp_path: Path, kind: str, version: int, by: str | None
) -> None:
    table = with_copies(tmp_path, kind=kind, version=version, partition_by=by)
    table.delete_keys(pa.table({"id": ["b", "q"]}))
    assert keys(table) == list("ayzz")
    table.delete("id = 'z'")
    assert keys(table) == list("ay")
    assert table.check(deep=True).ok
    table.bulk_insert(TABLE.rows("yyy", v=3))
    table.delete_keys(
        pa.table({"id": ["y"], "city": ["osaka"]}).select(["id"] + ["city"] * bool(by))
    )
    assert keys(table) == ["a"]


@TABLES
def test_deleting_operations_remove_every_duplicate(
    tmp_path: Path, kind: str, version: int, by: str | None
) -> None:
    table = with_copies(tmp_path, kind=kind, version=version, partition_by=by)
    source = TABLE.rows("bc").drop_columns(["v"])
    table.merge(source).when_matched_delete().execute()
    assert keys(table) == list("ayzz")


@TABLES
def test_merge_deletes_every_duplicate_in_file(
    tmp_path: Path, kind: str, version: int, by: str | None
) -> None:
    """With rows that it updates in the same file, before and after there are log files."""
    table = TABLE.make(tmp_path, kind=kind, version=version, partition_by=by)
    table.bulk_insert(TABLE.rows("abbcdd"))
    for v, gone in ((2, "b"), (3, "d")):
        source = TABLE.rows(f"a{gone}c", v=v)
        merge = table.merge(source).when_matched_delete(where=f"id = '{gone}'")
        merge.when_matched_update({"v": "source.v"}).execute()
        assert gone not in keys(table)
    assert keys(table) == ["a", "c"]
    assert table.scan(columns=["v"]).to_arrow()["v"].to_pylist() == [3, 3]


@pytest.mark.parametrize("limit", [None, LEAST])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_delete_marker_removes_every_duplicate(
    tmp_path: Path, kind: Any, limit: int | None
) -> None:
    schema = pa.schema([*TABLE.schema.remove(3), ("_hoodie_is_deleted", pa.bool_())])
    table = pyhudi.create_table(tmp_path, schema, key="id", partition_by="city", type=kind)
    given = TABLE.rows("abyz").rename_columns(schema.names)
    table.bulk_insert(given)
    table.bulk_insert(given)
    filler = pa.table(
        {"id": [f"n{n}" for n in range(40_000)], "city": ["oslo"] * 40_000, "v": [0] * 40_000,
         "_hoodie_is_deleted": pa.nulls(40_000)}
    ).cast(schema)  # fmt: skip
    gone = given.slice(1, 2).set_column(3, schema.field(3), pa.array([True, True]))
    table.upsert(pa.concat_tables([gone, filler]), memory_limit=limit)
    assert keys(table, "city <> 'oslo'") == list("aazz")


def test_check_reports_duplicates(tmp_path: Path) -> None:
    table = with_copies(tmp_path)
    for deep in (False, True):
        found = table.check(deep=deep)
        assert {(one.kind, one.item) for one in found.findings} == {
            ("duplicate_key", "b"),
            ("duplicate_key", "z"),
        }
        assert len(found.errors) == 2


# --- what would change one of several rows of a file ----------------------------------------------

LAYOUTS = pytest.mark.parametrize(
    ("kind", "version", "axes"),
    [
        ("cow", 9, {}),
        ("mor", 9, {"partition_by": "city", "order_by": "v"}),
        ("mor", 6, {"index": "SIMPLE"}),
        ("cow", 6, {"index": "BLOOM", "partition_by": "city"}),
        ("cow", 8, {"key": ["id", "city"]}),
        ("mor", 9, {"index": "SIMPLE", "options": {"hoodie.populate.meta.fields": "false"}}),
        ("cow", 9, {"index": "SIMPLE", "key": ["id", "city"], "partition_by": "city",
                    "options": {"hoodie.populate.meta.fields": "false"}}),
    ],
)  # fmt: skip


def told_apart(base: Path, kind: Any, version: int, axes: dict[str, Any]) -> HudiTable:
    """Rows a, b, b in one file; those of b differ in v."""
    table = TABLE.make(base, kind=kind, version=version, **axes)
    table.bulk_insert(pa.concat_tables([TABLE.rows("ab"), TABLE.rows("b", v=2)]))
    return table


def rows_of(table: HudiTable) -> list[tuple[str, int]]:
    found = table.scan(columns=["id", "v"]).to_arrow().to_pylist()
    return sorted((row["id"], row["v"]) for row in found)


APART = [("a", 1), ("b", 1), ("b", 2)]


@LAYOUTS
def test_update_of_duplicates_in_file_raises(
    tmp_path: Path, kind: Any, version: int, axes: dict[str, Any]
) -> None:
    table = told_apart(tmp_path, kind, version, axes)
    commits = table.history().num_rows
    for where in ("id = 'b'", "id = 'b' AND v = 1", "true"):
        with pytest.raises(SchemaMismatch, match=r"duplicates of the key '(id:)?b") as refused:
            table.update(where, {"v": "v + 100"})
        assert "overwrite" in refused.value.hint
    assert table.history().num_rows == commits
    assert rows_of(table) == APART
    table.update("id = 'a'", {"v": 7})
    assert rows_of(table) == [("a", 7), *APART[1:]]


@LAYOUTS
def test_delete_of_some_duplicates_in_file_raises(
    tmp_path: Path, kind: Any, version: int, axes: dict[str, Any]
) -> None:
    table = told_apart(tmp_path, kind, version, axes)
    for where in ("v = 1", "id = 'b' AND v = 2"):
        with pytest.raises(
            SchemaMismatch, match=r"of the key '(id:)?b.*only some of them are deleted"
        ):
            table.delete(where)
    assert rows_of(table) == APART
    assert table.delete("id = 'b'").rows_deleted == 2
    assert rows_of(table) == APART[:1]


@LAYOUTS
def test_merge_of_duplicates_in_file_raises(
    tmp_path: Path, kind: Any, version: int, axes: dict[str, Any]
) -> None:
    table = told_apart(tmp_path, kind, version, axes)
    source = TABLE.rows("ab", v=9)
    for merge in (
        table.merge(source).when_matched_update({"v": "source.v"}),
        table.merge(source).when_matched_update({"v": 5}, where="target.v = 2"),
        table.merge(source).when_matched_delete(where="target.v = 2"),
        table.merge(source.to_reader(1), memory_limit=LEAST).when_matched_update({"v": 5}),
    ):
        with pytest.raises(SchemaMismatch, match=r"duplicates of the key '(id:)?b"):
            merge.execute()
    assert rows_of(table) == APART
    merge = table.merge(source).when_matched_update({"v": 5}, where="target.id = 'a'")
    merge.execute()
    assert rows_of(table) == [("a", 5), *APART[1:]]
    table.merge(source).when_matched_delete().execute()
    assert rows_of(table) == []


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_update_changes_duplicates_in_each_file(tmp_path: Path, kind: Any) -> None:
    table = with_copies(tmp_path, kind=kind)
    table.update("id = 'b'", {"v": "v + 100"})
    table.update("id = 'z' AND v = 2", {"v": 7})
    assert rows_of(table) == [("a", 1), ("b", 101), ("b", 102), ("y", 1), ("z", 1), ("z", 7)]
    table.delete("v = 102")
    assert rows_of(table) == [("a", 1), ("b", 101), ("y", 1), ("z", 1), ("z", 7)]


def test_duplicates_next_to_log_rows_are_detected(tmp_path: Path) -> None:
    """A log record replaces one of the rows: a delete counts the visible ones."""
    table = told_apart(tmp_path, "mor", 9, {"index": "SIMPLE"})
    table.upsert(TABLE.rows("bc", v=3))
    assert rows_of(table) == [("a", 1), ("b", 2), ("b", 3), ("c", 3)]
    with pytest.raises(SchemaMismatch, match="duplicates of the key 'b'"):
        table.delete("v = 3")
    with pytest.raises(SchemaMismatch, match="duplicates of the key 'b'"):
        table.update("v = 3", {"v": 4})
    table.delete("id = 'b'")
    assert rows_of(table) == [("a", 1), ("c", 3)]


def test_duplicate_search_reads_keys_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TABLE.make(tmp_path, index="SIMPLE")
    table.bulk_insert(TABLE.rows(["b", *(f"k{n}" for n in range(10_000)), "b"]))
    monkeypatch.setattr(dml_rows, "_KEYS_PER_SEARCH", 100)
    with pytest.raises(SchemaMismatch, match="duplicates of the key 'b'"):
        table.update("true", {"v": 3})
    assert table.update("id <> 'b'", {"v": 3}).rows_updated == 10_000


def test_uniqueness_from_commits_reads_no_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TABLE.make(tmp_path, first="abyz")

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(KeySource, "keys_of", refuse)
    table.update("id = 'a'", {"v": 5})
    table.delete("id = 'b'")
    assert keys(table) == list("ayz")


# --- when the index may be trusted ----------------------------------------------------------------


@TABLES
def test_upserts_and_deletes_keep_the_index_of_use(
    tmp_path: Path, kind: str, version: int, by: str | None
) -> None:
    table = TABLE.make(tmp_path, kind=kind, version=version, partition_by=by)
    table.insert(TABLE.rows("abyz"))
    assert is_pruned(table)
    table.upsert(TABLE.rows("bc", v=2))
    table.update("id = 'a'", {"v": 5})
    table.delete_keys(pa.table({"id": ["y"]}))
    table.merge(TABLE.rows("zw")).when_matched_delete().when_not_matched_insert_all().execute()
    assert is_pruned(table)
    assert keys(table, "id = 'c'") == ["c"]
    table.insert(TABLE.rows("q"))
    assert not is_pruned(table)
    table.upsert(TABLE.rows("d"))
    assert not is_pruned(table)
    table.overwrite(TABLE.rows("ab"))
    assert is_pruned(table)


def test_duplicate_in_first_insert_is_detected(tmp_path: Path) -> None:
    for verb in ("insert", "bulk_insert"):
        table = TABLE.make(tmp_path / verb)
        data = pa.concat_tables([TABLE.rows("ab"), TABLE.rows("b", city="osaka")])
        getattr(table, verb)(data)
        assert not is_pruned(table)
        assert keys(table, "id = 'b'") == ["b", "b"]
        table.delete_keys(pa.table({"id": ["b"]}))
        assert keys(table) == ["a"]


def test_partitioned_index_misses_duplicates_in_other_partition(tmp_path: Path) -> None:
    TABLE.make(tmp_path).upsert(TABLE.rows("a", city="lisbon"))
    assert is_pruned(pyhudi.open_table(tmp_path))
    simple = pyhudi.open_table(tmp_path, options={"hoodie.index.type": "SIMPLE"})
    simple.upsert(TABLE.rows("a", city="osaka"))
    table = pyhudi.open_table(tmp_path)
    assert keys(table, "id = 'a'") == keys(table) == ["a", "a"]


def test_rows_that_are_not_combined_may_repeat_keys(tmp_path: Path) -> None:
    TABLE.make(tmp_path)
    options = {"hoodie.combine.before.upsert": "false"}
    table = pyhudi.open_table(tmp_path, options=options)
    table.upsert(TABLE.rows("a"))
    assert not is_pruned(table)


WITHOUT = {"hoodie.metadata.enable": "false", "hoodie.index.type": "SIMPLE"}


@TABLES
@pytest.mark.parametrize("copies", [False, True])
def test_index_build_records_key_uniqueness(
    tmp_path: Path, copies: bool, kind: Any, version: int, by: str | None
) -> None:
    table = TABLE.make(tmp_path, kind=kind, version=version, partition_by=by, options=WITHOUT)
    table.bulk_insert(TABLE.rows("abyz"))
    table.bulk_insert(TABLE.rows("bc" if copies else "cd", v=2))
    table.upsert(TABLE.rows("ae", v=3))
    table.delete_keys(pa.table({"id": ["y"], "city": ["osaka"]}))
    table = pyhudi.open_table(tmp_path)
    table.create_index("record_index")
    for _ in range(2):
        assert is_pruned(table) is not copies
        assert is_pruned(pyhudi.open_table(tmp_path)) is not copies
        assert keys(table, "id = 'b'") == ["b"] * (1 + copies)
        table.upsert(TABLE.rows("a", v=4))
    table.bulk_insert(TABLE.rows("z", v=5))
    assert keys(table, "id = 'z'") == ["z", "z"]
    assert not is_pruned(table)
    table.delete_keys(pa.table({"id": ["z"], "city": ["osaka"]}))
    table.rebuild_metadata()
    assert is_pruned(table) is not copies


def test_global_index_counts_duplicates_partitioned_index_missed(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path, options=WITHOUT)
    table.upsert(TABLE.rows("ab", city="lisbon"))
    table.upsert(TABLE.rows("bc", city="osaka"))
    table = pyhudi.open_table(tmp_path)
    table.create_index("record_index", partitioned=True)
    assert keys_are_unique(Timeline.load(table.storage, table.config))
    table.drop_index("record_index")
    table.create_index("record_index")
    assert not keys_are_unique(Timeline.load(table.storage, table.config))
    assert keys(table, "id = 'b'") == ["b", "b"]


def test_pending_write_may_add_duplicates(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path)
    table.upsert(TABLE.rows("ab"))
    timeline = Timeline.load(table.storage, table.config)
    last = timeline.commits[-1].requested
    assert key_uniqueness_property(timeline, unique=True) == {KEYS: f"{last} {UNIQUE}"}
    assert key_uniqueness_property(timeline, unique=False) == {KEYS: f"{last} {MAY_REPEAT}"}
    instant_files.request(table.config.layout, table.storage, "20240101000000200", "commit")
    timeline = Timeline.load(table.storage, table.config)
    assert key_uniqueness_property(timeline, unique=True) == {KEYS: f"{last} {MAY_REPEAT}"}


def test_uniqueness_check_does_not_read_whole_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pyhudi.open_table(unpack("v9_mor_archived", tmp_path))
    archived = Timeline.load(table.storage, table.config).archive.commits()
    assert len(archived) > 1
    read: list[str] = []
    plain = Archive.commit_metadata

    def noted(self: Archive, one: Instant) -> CommitMetadata:
        read.append(one.requested)
        return plain(self, one)

    monkeypatch.setattr(Archive, "commit_metadata", noted)
    assert keys_are_unique(Timeline.load(table.storage, table.config))
    assert len(read) == len(archived)
    read.clear()
    monkeypatch.setattr(key_uniqueness, "_MAX_ARCHIVED", 1)
    assert not keys_are_unique(Timeline.load(table.storage, table.config))
    assert read == [archived[-1].requested]


@pytest.mark.parametrize("name", ["v6_cow_record_index", "v9_mor_partitioned_record_index"])
def test_uniqueness_check_reads_all_commits_of_hudi(tmp_path: Path, name: str) -> None:
    table = pyhudi.open_table(unpack(name, tmp_path))
    timeline = Timeline.load(table.storage, table.config)
    said = [timeline.commit_metadata(one) for one in timeline.commits]
    assert said[0].operation_type == "INSERT"
    assert not any(KEYS in one.extra_metadata for one in said)
    assert keys_are_unique(timeline)
    assert not timeline.until(timeline.commits[0].requested).commits[1:]
    later = table.scan().to_arrow().slice(0, 1)
    table.insert(later)
    assert not keys_are_unique(Timeline.load(table.storage, table.config))


def test_uniqueness_comes_from_newest_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TABLE.make(tmp_path)
    for v in range(4):
        table.upsert(TABLE.rows("ab", v=v))
    timeline = Timeline.load(table.storage, table.config)
    assert timeline.commit_metadata(timeline.commits[-1]).extra_metadata[KEYS] == UNIQUE
    read: list[str] = []
    plain = timeline._read_file

    def noted(file: Instant) -> Any:
        read.append(file.file_name)
        return plain(file)

    monkeypatch.setattr(timeline, "_read_file", noted)
    assert keys_are_unique(timeline)
    assert keys_are_unique(timeline)
    assert not read


# --- inserts that look for keys -------------------------------------------------------------------


@TABLES
@pytest.mark.parametrize("index", [None, "SIMPLE", "GLOBAL_BLOOM"])
def test_insert_policy_drops_or_raises_for_existing_keys(
    tmp_path: Path, kind: Any, version: int, by: str | None, index: str | None
) -> None:
    options = {POLICY: "drop", **({"hoodie.index.type": index} if index else {})}
    table = TABLE.make(tmp_path, kind=kind, version=version, partition_by=by, options=options)
    table.insert(TABLE.rows("abz"))
    result = table.insert(TABLE.rows("abcz", v=2))
    assert result.rows_inserted == 1
    assert {(one["id"], one["v"]) for one in table.scan().to_arrow().to_pylist()} == {
        ("a", 1), ("b", 1), ("z", 1), ("c", 2)
    }  # fmt: skip
    table.delete_keys(pa.table({"id": ["b"]}))
    table.insert(TABLE.rows("b", v=3))
    assert keys(table) == list("abcz")
    assert index or is_pruned(table)
    failing = pyhudi.open_table(tmp_path, options={**options, POLICY: "fail"})
    with pytest.raises(SchemaMismatch, match="'b'"):
        failing.insert(TABLE.rows("bd"))
    assert failing.insert(TABLE.rows("d")).rows_inserted == 1


def test_uniqueness_check_reads_stream_in_chunks(tmp_path: Path) -> None:
    TABLE.make(tmp_path).insert(TABLE.rows("ab"))
    table = pyhudi.open_table(tmp_path, options={POLICY: "drop"})
    many = pa.table(
        {"id": [f"n{n}" for n in range(40_000)], "city": ["oslo"] * 40_000, "v": [0] * 40_000,
         "gone": pa.nulls(40_000)}
    ).cast(TABLE.schema)  # fmt: skip
    given = pa.concat_tables([TABLE.rows("a"), many, TABLE.rows("b")])
    result = table.insert(given, memory_limit=LEAST)
    assert result.rows_inserted == 40_000
    assert is_pruned(table)
    failing = pyhudi.open_table(tmp_path, options={POLICY: "fail"})
    with pytest.raises(SchemaMismatch, match="'b'"):
        failing.insert(
            pa.concat_tables([TABLE.rows("c"), many.slice(0, 0), TABLE.rows("b")]).to_reader()
        )
    with pytest.raises(ConfigError, match=POLICY):
        pyhudi.open_table(tmp_path, options={POLICY: "ignore"}).insert(TABLE.rows("c"))


# --- a changed partition --------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [None, LEAST])
@pytest.mark.parametrize(("kind", "version"), [("cow", 9), ("mor", 9), ("cow", 6)])
def test_row_kept_in_partition_is_counted(
    tmp_path: Path, kind: Any, version: int, limit: int | None
) -> None:
    table = TABLE.make(tmp_path, kind=kind, version=version)
    table.insert(TABLE.rows("abc", city="lisbon"))
    oslo = pa.table(
        {"id": [f"n{n}" for n in range(40_000)], "city": ["oslo"] * 40_000, "v": [0] * 40_000,
         "gone": pa.nulls(40_000)}
    ).cast(TABLE.schema)  # fmt: skip
    given = pa.concat_tables(
        [TABLE.rows("ab", v=2, city="osaka"), TABLE.rows("c", v=2, city="lisbon"), oslo]
    )
    with pytest.warns(PartitionChangeWarning, match="2 rows .*record.index.update.partition.path"):
        result = table.upsert(given, memory_limit=limit)
    assert result.rows_kept_in_partition == 2
    assert keys(table, "city = 'lisbon'") == list("abc")
    assert keys(table, "city = 'osaka'") == []
    found = table.scan(where="id IN ('a', 'b', 'c')").to_arrow().to_pylist()
    assert {(one["city"], one["v"]) for one in found} == {("lisbon", 2)}
    said, moves = {"hoodie.record.index.update.partition.path": "false"}, "true"
    assert pyhudi.open_table(tmp_path, options=said).upsert(given).rows_kept_in_partition == 2
    moving = pyhudi.open_table(tmp_path, options=dict.fromkeys(said, moves))
    moved = moving.upsert(given.slice(0, 3), memory_limit=limit)
    assert (moved.rows_kept_in_partition, moved.rows_moved) == (0, 2)
    assert (result.rows_moved, "2 of them moved" in repr(moved)) == (0, True)
    assert keys(moving, "city = 'osaka'") == list("ab")
    assert table.refresh().upsert(TABLE.rows("ab", v=4, city="osaka")).rows_kept_in_partition == 0


@pytest.mark.parametrize("limit", [None, LEAST])
def test_upsert_warns_of_rows_dropped_for_other_partitions(
    tmp_path: Path, limit: int | None
) -> None:
    """Keys in two partitions of the data are one row by default, which a warning counts."""
    filler = TABLE.rows((f"n{n}" for n in range(10_000)), city="oslo")
    given = [TABLE.rows("abc", city=city) for city in ("lisbon", "lisbon", "osaka")]
    data = pa.concat_tables([*given, TABLE.rows("a", city="bergen"), filler])
    table = TABLE.make(tmp_path / "default")
    with pytest.warns(PartitionChangeWarning, match="dropped 4 rows of the data.*SIMPLE"):
        result = table.upsert(data, memory_limit=limit)
    assert result.duplicates_dropped == 7
    assert keys(table, "city != 'oslo'") == list("abc")
    with warnings.catch_warnings():
        warnings.simplefilter("error", PartitionChangeWarning)
        by_name = TABLE.make(tmp_path / "by name", index="record_index")
        by_name.upsert(data, memory_limit=limit)
        simple = TABLE.make(tmp_path / "simple", index="simple")
        simple.upsert(data, memory_limit=limit)
    assert keys(simple, "city != 'oslo'") == list("aaabbcc")


def test_create_builds_partitioned_record_index(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path, index="record_level_index")
    data = pa.concat_tables([TABLE.rows("ab", city=city) for city in ("lisbon", "osaka")])
    table.upsert(data)
    table = pyhudi.open_table(tmp_path)
    table.upsert(TABLE.rows("ac", v=2, city="osaka"))
    assert keys(table) == list("aabbc")
    assert keys(table, "v = 2 AND city = 'osaka'") == ["a", "c"]
    assert "record_index" in table.config.metadata_partitions
    assert not table.check(deep=True).findings


@pytest.mark.parametrize("limit", [None, LEAST])
@pytest.mark.parametrize("verb", ["insert", "bulk_insert"])
def test_insert_warns_of_existing_keys(tmp_path: Path, verb: str, limit: int | None) -> None:
    table = TABLE.make(tmp_path)
    getattr(table, verb)(TABLE.rows("abc"))
    filler = TABLE.rows((f"n{n}" for n in range(10_000)), city="oslo")
    data = pa.concat_tables([TABLE.rows("ab", v=2, city="oslo"), TABLE.rows("z"), filler])
    with pytest.warns(DuplicateKeyWarning, match=f"inserted 2 rows.*{POLICY}=drop"):
        getattr(table, verb)(data, memory_limit=limit)
    assert keys(table, "city != 'oslo'") == list("abcz")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DuplicateKeyWarning)
        getattr(table, verb)(TABLE.rows("d"))
        said = pyhudi.open_table(tmp_path, options={POLICY: "none"})
        getattr(said, verb)(TABLE.rows("d"))
        simple = pyhudi.open_table(tmp_path, options={"hoodie.index.type": "SIMPLE"})
        getattr(simple, verb)(TABLE.rows("d"))


def test_kept_row_is_deleted_by_shown_partition(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path)
    table.insert(TABLE.rows("ab", city="lisbon"))
    with pytest.warns(PartitionChangeWarning):
        table.upsert(TABLE.rows("a", v=2, city="osaka"))
    assert table.delete("city = 'osaka'").rows_deleted == 0
    assert table.delete("city = 'lisbon' AND v = 2").rows_deleted == 1
    assert keys(table) == ["b"]
