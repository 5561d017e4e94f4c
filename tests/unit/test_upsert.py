from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.config.file_names import parse_log_name
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.timeline import Timeline
from pyhudi.txn.result import WriteResult
from pyhudi.write.update_delete import TooManyKeysError, delete
from tests.helpers.pairwise import pairwise
from tests.helpers.table_builder import SMALL, TableBuilder
from tests.helpers.tables import unpack

pytestmark = pytest.mark.in_parts

EVERY_TABLE = pytest.mark.parametrize(
    ("version", "kind"), [(v, k) for v in (6, 8, 9) for k in ("cow", "mor")]
)
APART = {**SMALL, "hoodie.parquet.small.file.limit": 0}
"""Inserts go to new file groups."""


TABLE = TableBuilder(
    {
        "id": (pa.string(), str),
        "part": (pa.string(), lambda key: "x" if key < "n" else "y"),
        "v": (pa.int64(), 1),
        "ts": (pa.int64(), 10),
        "_hoodie_is_deleted": (pa.bool_(), False),
    },
    partition_by="part",
    order_by="ts",
    options=APART,
    first="abyz",
)


def values(table: HudiTable) -> list[tuple[str, int]]:
    found = table.scan(columns=["id", "v"]).to_arrow().to_pylist()
    return sorted((row["id"], row["v"]) for row in found)


@EVERY_TABLE
def test_results_count_rows(tmp_path: Path, version: int, kind: str) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind=kind)
    result = table.upsert(TABLE.rows("bcy", v=2))
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (1, 2, 0)
    assert result.partitions == ("x", "y")
    assert result.files_written == 3
    assert values(table) == [("a", 1), ("b", 2), ("c", 2), ("y", 2), ("z", 1)]
    timeline = Timeline.load(table.storage, table.config)
    assert timeline.last_commit is not None
    assert timeline.last_commit.requested == result.instant
    stats = timeline.commit_metadata(timeline.last_commit).write_stats
    assert sum(stat.total_write_bytes for stat in stats) == result.bytes_written > 0


@EVERY_TABLE
def test_rows_of_one_key_are_combined_by_upsert_only(
    tmp_path: Path, version: int, kind: str
) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind=kind)
    twice = pa.concat_tables([TABLE.rows("ac", v=5, ts=50), TABLE.rows("ac", v=4, ts=40)])
    table.upsert(twice)
    assert values(table) == [("a", 5), ("b", 1), ("c", 5), ("y", 1), ("z", 1)]
    result = table.insert(TABLE.rows("ddb", v=6))
    assert (result.rows_inserted, result.rows_updated) == (3, 0)
    assert values(table).count(("d", 6)) == 2
    assert values(table).count(("b", 1)) == 1


@EVERY_TABLE
def test_insert_into_a_small_file_keeps_rows_of_the_same_key(
    tmp_path: Path, version: int, kind: str
) -> None:
    table = replace(TABLE, options=SMALL).make(tmp_path / "t", version=version, kind=kind)
    result = table.insert(TABLE.rows("aab", v=6))
    assert result.files_written == 1
    assert values(table) == [("a", 1), ("a", 6), ("a", 6), ("b", 1), ("b", 6), ("y", 1), ("z", 1)]


@EVERY_TABLE
def test_rows_that_mark_themselves_deleted_delete(tmp_path: Path, version: int, kind: str) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind=kind)
    result = table.upsert(TABLE.rows("acy", v=2, ts=20, _hoodie_is_deleted=lambda key: key in "ac"))
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (0, 1, 1)
    assert values(table) == [("b", 1), ("y", 2), ("z", 1)]


@EVERY_TABLE
def test_delete_looks_in_named_partitions_or_in_all(
    tmp_path: Path, version: int, kind: str
) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind=kind)
    assert table.delete_keys(pa.table({"id": ["a"], "part": ["y"]})).files_written == 0
    assert values(table)[0] == ("a", 1)
    assert table.delete_keys(pa.table({"id": ["a", "z", "q"]})).rows_deleted == 2
    assert values(table) == [("b", 1), ("y", 1)]
    assert table.delete_keys(TABLE.rows("by", v=0)).rows_deleted == 2
    assert values(table) == []
    table.upsert(TABLE.rows("a", v=7, ts=70))
    assert values(table) == [("a", 7)]


@pytest.mark.parametrize(
    ("version", "kind", "index"),
    pairwise((6, 8, 9), ("cow", "mor"), ("simple", "record_index", "bucket")),
)
def test_rows_that_lose_are_counted(tmp_path: Path, version: int, kind: str, index: str) -> None:
    buckets = {"hoodie.bucket.index.num.buckets": 2} if index == "bucket" else {}
    table = TABLE.make(tmp_path / "t", version=version, kind=kind, index=index, options=buckets)
    data = pa.concat_tables(
        [TABLE.rows("a", v=2, ts=9), TABLE.rows("bc", v=2, ts=10), TABLE.rows("d", v=2, ts=5)]
    )
    null = pa.array([None, 10, 10, None], pa.int64())
    result = table.upsert(data.set_column(data.schema.get_field_index("ts"), "ts", null))
    assert values(table) == [("a", 1), ("b", 2), ("c", 2), ("d", 2), ("y", 1), ("z", 1)]
    assert result.rows_updated + (result.rows_ignored or 0) + result.rows_inserted == 4
    assert result.rows_ignored == (1 if kind == "cow" else None)
    late = table.upsert(TABLE.rows("abcdyz", v=3, ts=9), memory_limit=1 << 20)
    # A stored null loses on copy-on-write; in logs it counts as 0.
    assert values(table) == [("a", 1), ("b", 2), ("c", 2), ("d", 3), ("y", 1), ("z", 1)]
    assert late.rows_ignored == (5 if kind == "cow" else None)
    none = 0 if kind == "cow" else None
    assert table.insert(TABLE.rows("a", v=4, ts=1)).rows_ignored == none
    assert table.delete_keys(pa.table({"id": ["a", "q"]})).rows_ignored == none


NOTHING: dict[str, Callable[[HudiTable], WriteResult]] = {
    "upsert": lambda table: table.upsert(TABLE.rows("", v=2)),
    "without types": lambda table: table.upsert(pa.table({name: [] for name in TABLE.columns})),
    "insert": lambda table: table.insert(TABLE.rows("", v=2)),
    "bulk_insert": lambda table: table.bulk_insert(TABLE.rows("", v=2)),
    "partial": lambda table: table.upsert(
        TABLE.rows("", v=2).select(["id", "part", "ts"]), partial=True
    ),
    "merge": lambda table: table.merge(TABLE.rows("", v=2)).when_matched_delete().execute(),
    "delete_keys": lambda table: table.delete_keys(pa.table({"id": ["nobody"]})),
    "delete": lambda table: table.delete("v = 77"),
    "update": lambda table: table.update("v = 77", {"v": 78}),
    "overwrite_partitions": lambda table: table.overwrite_partitions(TABLE.rows("", v=2)),
    "delete_partitions": lambda table: table.delete_partitions(["nowhere"]),
    "merge_schema": lambda table: table.upsert(TABLE.rows("", v=2), schema_mode="merge"),
}


def test_delete_raises_before_it_writes_if_keys_have_too_many_bytes(tmp_path: Path) -> None:
    """A driver of Spark has no room for all keys of a table."""
    table = TABLE.make(tmp_path, first="abc")
    with pytest.raises(TooManyKeysError):
        delete(table, "id < 'c'", max_key_bytes=1)
    assert len(table.refresh().state.timeline.commits) == 1
    assert delete(table, "id < 'c'", max_key_bytes=1 << 20).rows_deleted == 2


@pytest.mark.parametrize("verb", NOTHING)
@EVERY_TABLE
def test_empty_write_makes_no_commit(tmp_path: Path, version: int, kind: str, verb: str) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind=kind)
    before = sorted(tmp_path.rglob("*"))
    result = NOTHING[verb](table)
    assert (result.committed, result.instant, result.completion) == (False, "", "")
    assert (result.files_written, result.rows_inserted, result.rows_deleted) == (0, 0, 0)
    assert [one for one in sorted(tmp_path.rglob("*")) if one.is_file()] == [
        one for one in before if one.is_file()
    ]
    assert values(table) == [("a", 1), ("b", 1), ("y", 1), ("z", 1)]
    assert table.upsert(TABLE.rows("c", v=1)).committed
    with pytest.raises(ConfigError):
        table.incremental(start=result.instant)


@EVERY_TABLE
def test_empty_write_can_make_commit(tmp_path: Path, version: int, kind: str) -> None:
    def commits() -> int:
        return len(pyhudi.open_table(tmp_path).state.timeline.commits)

    table = TABLE.make(tmp_path, version=version, kind=kind)
    asked = {**APART, "hoodie.allow.empty.commit": "true"}
    for number, options in enumerate([asked, {**APART, "_batch": "7"}]):
        table = pyhudi.open_table(tmp_path, options=options)
        assert table.upsert(TABLE.rows("", v=2)).committed
        assert commits() == number + 2
    wider = TABLE.rows("", v=2).append_column("more", pa.array([], pa.string()))
    assert table.upsert(wider, schema_mode="merge").committed
    table = pyhudi.open_table(tmp_path)
    assert table.schema.names[-1] == "more"
    assert table.overwrite(wider).committed
    assert values(table) == []
    assert not table.overwrite(wider).committed
    assert commits() == 5


@pytest.mark.parametrize("version", [6, 8, 9])
def test_empty_overwrite_keeps_hashing_metadata(tmp_path: Path, version: int) -> None:
    options = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
    options |= {"hoodie.bucket.index.num.buckets": "2"}
    table = TABLE.make(tmp_path / "t", version=version, kind="mor", options=options)
    assert table.overwrite(TABLE.rows("", v=2)).committed
    folder = tmp_path / "t" / ".hoodie" / ".bucket_index"
    metadata_files = sorted(folder.rglob("*"))
    assert metadata_files
    assert not table.overwrite(TABLE.rows("", v=2)).committed
    assert sorted(folder.rglob("*")) == metadata_files
    table.upsert(TABLE.rows("abyz", v=3))
    assert values(table) == [("a", 3), ("b", 3), ("y", 3), ("z", 3)]


class EveryTaskTwice(LocalEngine):
    """Each task's first run is lost after it wrote."""

    def run(
        self,
        work: Callable[[Any, Attempt], Any],
        tasks: Sequence[Any],
        *,
        stage: int = 0,
        label: str = "",
    ) -> list[Any]:
        def twice(task: Any, attempt: Attempt) -> Any:
            work(task, attempt)
            return work(task, replace(attempt, attempt=attempt.attempt + 100))

        return super().run(twice, tasks, stage=stage, label=label)


@EVERY_TABLE
def test_files_of_lost_attempts_are_removed(tmp_path: Path, version: int, kind: str) -> None:
    base = tmp_path / "t"
    TABLE.make(base, version=version, kind=kind)
    before = {path for path in base.rglob("*") if path.is_file()}
    table = pyhudi.open_table(base, engine=EveryTaskTwice(1), options=APART)
    result = table.upsert(TABLE.rows("bcy", v=2))
    new = {path for path in base.rglob("*") if path.is_file()} - before
    data = [path for path in new if ".hoodie" not in path.parts]
    assert len(data) == result.files_written == 3
    assert values(table) == [("a", 1), ("b", 2), ("c", 2), ("y", 2), ("z", 1)]


def test_delete_keys_accepts_key_column_that_is_partition_column(tmp_path: Path) -> None:
    """Without the other partition columns, the keys are searched in all partitions."""
    table = TABLE.make(tmp_path / "t", key=["id", "v"], partition_by=["part", "v"])
    assert table.delete_keys(pa.table({"id": ["a", "z"], "v": [1, 2]})).rows_deleted == 1
    assert values(table) == [("b", 1), ("y", 1), ("z", 1)]
    with pytest.raises(SchemaMismatch, match="have partition columns, but not v"):
        table.delete_keys(pa.table({"id": ["b"], "part": ["x"]}))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (pa.table({"v": [1]}), "do not have the key column 'id'"),
        (pa.table({"id": ["a"], "who": [1]}), "no column 'who'"),
        (pa.table({"id": [1]}), "column 'id' is int64"),
    ],
)
def test_mismatched_keys_raise(tmp_path: Path, keys: pa.Table, said: str) -> None:
    table = TABLE.make(tmp_path / "t", version=9, kind="mor")
    with pytest.raises(SchemaMismatch, match=said):
        table.delete_keys(keys)


def with_pending_compaction(name: str, folder: Path) -> HudiTable:
    """A golden table whose last compaction is planned but not done, without its metadata table."""
    unpack(name, folder)
    base = folder / name
    file = base / ".hoodie" / "hoodie.properties"
    lines = file.read_text().splitlines()
    kept = [line for line in lines if not line.startswith("hoodie.table.metadata.partitions")]
    file.write_text("\n".join(kept) + "\n")
    table = pyhudi.open_table(base)
    timeline = Timeline.load(table.storage, table.config)
    done = timeline.filter_completed("commit")[-1]
    for path in base.rglob(f"*_{done.requested}.parquet"):
        path.unlink()
    folder = base / table.config.timeline_path
    (folder / done.file_name).unlink()
    (folder / f"{done.requested}.compaction.inflight").unlink()
    return table.refresh()


@pytest.mark.parametrize("name", ["v6_mor_compaction", "v8_mor_compaction", "v9_mor_compaction"])
def test_updates_beside_a_pending_compaction(name: str, tmp_path: Path) -> None:
    table = with_pending_compaction(name, tmp_path)
    timeline = Timeline.load(table.storage, table.config)
    (compaction,) = timeline.pending_compactions
    given = table.scan().to_arrow()
    before = {path.name for path in tmp_path.rglob("*")}
    result = table.upsert(given)
    assert (result.rows_inserted, result.rows_updated) == (0, given.num_rows)
    assert table.scan().to_arrow().sort_by("id") == given.sort_by("id")
    new = {path.name for path in tmp_path.rglob("*")} - before
    logs = [log for log in map(parse_log_name, new) if log is not None]
    if table.version == 6:
        assert compaction.requested in {log.instant for log in logs}
    else:
        assert {log.instant for log in logs} == {result.instant}
    assert Timeline.load(table.storage, table.config).pending_compactions == (compaction,)


def test_create_refuses_what_does_not_fit(tmp_path: Path) -> None:
    data = TABLE.rows("ab", v=1)
    with pytest.raises(ConfigError, match="key names 'nope'"):
        pyhudi.create_table(tmp_path / "t", data, key="nope")
    with pytest.raises(ConfigError, match="is unknown") as caught:
        pyhudi.create_table(tmp_path / "t", data, key="id", options={"hoodie.table.nam": "x"})
    assert "hoodie.table.name" in caught.value.hint
    nulls = pa.table({"id": pa.array(["a", None]), "v": [1, 2]})
    with pytest.raises(SchemaMismatch):
        pyhudi.create_table(tmp_path / "t", nulls, key="id")
    assert not (tmp_path / "t" / ".hoodie" / "hoodie.properties").exists()
    pyhudi.create_table(tmp_path / "t", data, key="id")
    with pytest.raises(ConfigError, match="exists at"):
        pyhudi.create_table(tmp_path / "t", data, key="id")


def test_empty_table_of_a_schema_can_be_filled(tmp_path: Path) -> None:
    schema = TABLE.rows("a", v=1).schema
    table = pyhudi.create_table(tmp_path / "t-1", schema, key=["id", "v"], order_by="ts")
    assert table.scan().to_arrow().num_rows == 0
    assert table.name == "t-1"
    table.upsert(TABLE.rows("ab", v=3))
    assert values(table) == [("a", 3), ("b", 3)]
