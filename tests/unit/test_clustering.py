"""Clustering: plans, rows afterwards, and conflicts with writers."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.config.actions import State
from pyhudi.config.clustering_options import ClusteringOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.config.write_options import WriteOptions
from pyhudi.errors import CommitConflict, ConfigError, UnsupportedTableFeature
from pyhudi.services import clustering
from pyhudi.services.clustering import pending
from pyhudi.services.clustering_strategy import (
    EarlierClusterings,
    GroupChoice,
    choose,
    select_partitions,
)
from pyhudi.slices import clustering_task
from pyhudi.slices.clustering_plan import Order, clustering_record, read_plan
from pyhudi.slices.file_slice import BaseFile, FileSlice, LogFile
from pyhudi.storage.storage import Storage
from pyhudi.txn.transaction import Transaction
from tests.engine.faulty import DiedError, DiesAfterWriting, FaultyEngine, Twice
from tests.helpers.aged import age
from tests.helpers.pairwise import pairwise
from tests.helpers.table_builder import SMALL, TableBuilder, numbered
from tests.helpers.tables import unpack

pytestmark = pytest.mark.in_parts

META = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key"]
META.append("_hoodie_partition_path")
STATISTICS = {"hoodie.metadata.index.column.stats.enable": "true"}
ALONE = {"hoodie.parquet.small.file.limit": "0"}
"""Each write makes file groups of its own."""

POINTS = TableBuilder(
    {
        "id": (pa.string(), numbered(4)),
        "city": (pa.string(), lambda number: ("rome", "oslo")[number % 2]),
        "x": (pa.int64(), lambda number: number * 7919 % 1009),
        "y": (pa.float64(), lambda number: (number * 31 % 97) / 7 if number % 5 else None),
        "v": (pa.int64(), 0),
    },
    partition_by="city",
    order_by="v",
    options={**SMALL, **ALONE, **STATISTICS},
)


def points(base: Path, **axes: Any) -> HudiTable:
    """Four writes of a hundred rows, then updates and deletes."""
    table = POINTS.make(base / "points", **axes)
    for number in range(4):
        table.insert(POINTS.rows(range(number * 100, number * 100 + 100)))
    table.upsert(POINTS.rows(range(80, 180), v=1))
    table.delete_keys(POINTS.rows([3, 4, 303]).select(["id", "city"]))
    return table


def stored(table: HudiTable, **scan: Any) -> list[dict[str, Any]]:
    """All rows with the meta columns that stay, by key."""
    names = [*META, *POINTS.schema.names]
    rows: list[dict[str, Any]] = table.scan(columns=names, **scan).to_arrow().to_pylist()
    return sorted(rows, key=lambda row: str(row["id"]))


def names_of(table: HudiTable) -> list[str]:
    rows = table.scan(columns=["_hoodie_file_name"]).to_arrow().to_pydict()
    return sorted(set(rows["_hoodie_file_name"]))


@pytest.mark.parametrize(
    ("version", "kind"), [(6, "cow"), (6, "mor"), (8, "mor"), (9, "cow"), (9, "mor")]
)
def test_cluster_changes_no_row(tmp_path: Path, version: int, kind: Any) -> None:
    table = points(tmp_path, version=version, kind=kind)
    commits = table.inspect.commits()["requested"].to_pylist()
    before = stored(table)
    first = commits[1]
    earlier = stored(table, as_of=first)
    changed = table.incremental(start=commits[2]).to_arrow().num_rows
    looked = table.cluster(sort_by="x", dry_run=True)
    assert (looked.file_groups, looked.instants) == (8, ())
    done = table.cluster(sort_by=["x"])
    assert done.file_groups == looked.file_groups
    assert (done.files_read, done.bytes_read) == (looked.files_read, looked.bytes_read)
    assert (len(done.instants), done.files_written, done.rows_written) == (1, 2, len(before))
    assert stored(table) == before
    assert stored(table, read_optimized=True) == before
    assert stored(table, as_of=first) == earlier
    assert table.incremental(start=commits[2]).to_arrow().num_rows == changed
    assert len(names_of(table)) == 2
    found = table.check(deep=True)
    assert found.ok, str(found)
    # Its rows are found where they are now.
    table.upsert(POINTS.rows(range(10), v=5))
    table.delete_keys(POINTS.rows([20]).select(["id", "city"]))
    rows = {row["id"]: row["v"] for row in stored(table)}
    assert len(rows) == len(before) + 1
    assert [rows[f"k{n:04d}"] for n in (0, 3, 9, 100)] == [5, 5, 5, 1]
    found = table.check(deep=True)
    assert found.ok, str(found)


def test_files_are_sorted_and_of_the_target_size(tmp_path: Path) -> None:
    table = POINTS.make(tmp_path / "points", first=range(40_000), metadata=False)
    size = "hoodie.clustering.plan.strategy.target.file.max.bytes"
    small = pyhudi.open_table(table.uri, options={**SMALL, size: "150000"})
    done = small.cluster(sort_by=["y", "id"])
    assert done.rows_written == 40_000
    files = [path for path in Path(table.uri).rglob("*.parquet") if done.instants[0] in path.name]
    assert len(files) == done.files_written > 4
    ends: dict[str, list[tuple[Any, Any]]] = {}
    for file in files:
        rows = pq.ParquetFile(file).read().to_pylist()
        keys = [(row["y"] is not None, row["y"] or 0, row["id"]) for row in rows]
        assert keys == sorted(keys)
        assert {row["_hoodie_file_name"] for row in rows} == {file.name}
        ends.setdefault(file.parent.name, []).append((keys[0], keys[-1]))
        assert file.stat().st_size <= 150_000
    for ranges in ends.values():
        assert all(one[1] <= two[0] for one, two in itertools.pairwise(sorted(ranges)))


@pytest.mark.parametrize("layout", ["linear", "zorder", "hilbert"])
def test_cluster_gives_same_result_above_memory_limit(tmp_path: Path, layout: Any) -> None:
    table = POINTS.make(tmp_path / "points", metadata=False)
    for start in range(0, 60_000, 20_000):
        table.insert(POINTS.rows(range(start, start + 20_000)))
    before = stored(table)
    done = table.cluster(sort_by=["x", "y"], layout=layout, memory_limit=1024 * 1024)
    assert done.rows_written == 60_000
    assert stored(table) == before


def test_cluster_keeps_secondary_index_correct(tmp_path: Path) -> None:
    table = points(tmp_path, version=9)
    table.create_index("secondary_index", columns=["x"], name="by_x")
    before = stored(table)
    table.cluster(layout="hilbert", sort_by=["x", "y"])
    assert stored(table) == before
    found = table.check(deep=True)
    assert found.ok, str(found)
    wanted = [row for row in before if row["x"] == 500]
    assert stored(table, where="x = 500") == wanted


# --- whose plan -----------------------------------------------------------------------------------


def test_planned_clustering_blocks_writers_until_executed(tmp_path: Path) -> None:
    table = points(tmp_path)
    before = stored(table)
    planned = table.cluster(execute=False)
    assert (len(planned.scheduled), planned.instants) == (1, ())
    assert stored(table) == before
    again = table.cluster(execute=False)
    assert again.scheduled == ()
    assert "no clustering is scheduled while" in again.left[0]
    with pytest.raises(CommitConflict, match=r"clustering \d+ is pending"):
        table.upsert(POINTS.rows([7], v=3))
    table.insert(POINTS.rows(range(900, 910)))
    done = table.cluster(schedule=False)
    assert done.instants == planned.scheduled
    assert [row for row in stored(table) if row["id"] < "k0900"] == before
    found = table.check(deep=True)
    assert found.ok, str(found)


@pytest.mark.parametrize(
    "name",
    ["v6_cow_clustering", "v8_cow_clustering", "v9_mor_clustering", "v9_mor_pending_clusterings"],
)
def test_cluster_executes_plans_of_hudi(tmp_path: Path, name: str) -> None:
    base = unpack(name, tmp_path)
    table = pyhudi.open_table(base)
    planned = [instant.requested for instant in pending(table.state.timeline)]
    assert planned
    age(base, *planned)
    rows = table.scan().to_arrow()
    before = sorted(rows.to_pylist(), key=str)
    done = table.cluster(schedule=False)
    assert list(done.instants) == planned
    assert done.left == ()
    assert sorted(table.scan().to_arrow().to_pylist(), key=str) == before
    assert pending(table.state.timeline) == []
    found = table.check(deep=True)
    assert found.ok, str(found)


def test_outdated_clustering_plan_is_cancelled(tmp_path: Path) -> None:
    table = points(tmp_path)
    (planned,) = table.cluster(execute=False).scheduled
    file = next((Path(table.uri) / ".hoodie" / "timeline").glob(f"{planned}.clustering.requested"))
    hidden = file.rename(tmp_path / "plan")
    # As a writer that does not look for plans, or was allowed to pass one by.
    table.upsert(POINTS.rows([7], v=3))
    hidden.rename(file)
    before = stored(table)
    done = table.cluster(schedule=False)
    assert done.instants == ()
    assert "changed file groups of the plan" in done.left[0]
    assert pending(table.refresh().state.timeline) == []
    assert stored(table) == before
    assert table.cluster().instants


def test_cluster_survives_repeated_and_failed_tasks(tmp_path: Path) -> None:
    uri = points(tmp_path, version=6).uri
    dying = pyhudi.open_table(
        uri, engine=FaultyEngine(pyhudi.LocalEngine(2), DiesAfterWriting), options=SMALL
    )
    before = stored(dying)
    dying.cluster(sort_by=["x"], execute=False)
    with pytest.raises(DiedError):
        dying.cluster(schedule=False)
    (left,) = pending(dying.refresh().state.timeline)
    assert left.state is State.REQUESTED
    assert not list(Path(uri).rglob(f"*_{left.requested}.parquet"))
    twice = pyhudi.open_table(uri, engine=FaultyEngine(pyhudi.LocalEngine(2), Twice), options=SMALL)
    done = twice.cluster()
    assert done.instants == (left.requested,)
    assert len(list(Path(uri).rglob(f"*_{left.requested}.parquet"))) == done.files_written
    assert stored(twice) == before
    assert twice.check(deep=True).ok


@pytest.mark.parametrize(("version", "kind"), pairwise((6, 8, 9), ("cow", "mor")))
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_failed_cluster_cancels_its_plan(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    kind: Any,
    error: type[BaseException],
) -> None:
    """Updates of a plan's file groups raise until a writer executes it."""
    table = points(tmp_path, version=version, kind=kind)
    before = stored(table)

    def fails(*_: Any) -> Any:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(clustering, "_tasks", fails)
        with pytest.raises(error):
            table.cluster()
    assert pending(table.refresh().state.timeline) == []
    assert stored(table) == before
    table.upsert(POINTS.rows([7], v=3))
    found = table.check(deep=True)
    assert found.ok, str(found)


def test_failed_cluster_keeps_plans_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = points(tmp_path)
    planned = table.cluster(execute=False).scheduled

    def fails(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(clustering, "_tasks", fails)
    with pytest.raises(KeyboardInterrupt):
        table.cluster()
    assert tuple(one.requested for one in pending(table.refresh().state.timeline)) == planned


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_update_of_planned_group_succeeds_if_allowed(tmp_path: Path, kind: Any) -> None:
    table = points(tmp_path, kind=kind)
    (planned,) = table.cluster(execute=False).scheduled
    strategy = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}
    allowed = pyhudi.open_table(table.uri, options={**SMALL, **strategy})
    allowed.upsert(POINTS.rows([7], v=3))
    assert [instant.requested for instant in pending(allowed.state.timeline)] == [planned]
    with pytest.raises(CommitConflict, match=r"clustering \d+ is pending"):
        allowed.overwrite(POINTS.rows([1]))
    allowed.update(where="id = 'k0009'", set={"v": "4"})
    assert "changed file groups of the plan" in table.refresh().cluster(schedule=False).left[0]
    (planned,) = table.cluster(execute=False).scheduled
    drops = {"hoodie.clustering.rollback.pending.replacecommit.on.conflict": True}
    dropping = pyhudi.open_table(table.uri, options={**SMALL, **strategy, **drops})
    dropping.delete(where="id = 'k0011'")
    assert pending(dropping.state.timeline) == []
    dropping.upsert(POINTS.rows([13], v=6))
    rows = {row["id"]: row["v"] for row in stored(dropping)}
    assert (rows["k0007"], rows["k0009"], "k0011" in rows, rows["k0013"]) == (3, 4, False, 6)
    found = table.refresh().check(deep=True)
    assert found.ok, str(found)


def test_concurrent_write_beats_clustering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # One task after the other, so that the plan can be hidden from the other writer.
    table = pyhudi.open_table(points(tmp_path).uri, engine=pyhudi.LocalEngine(1), options=SMALL)
    work = clustering_task.cluster_group

    def slow(*args: Any) -> Any:
        written = work(*args)
        if not overtaken:
            overtaken.append(True)
            file = next((Path(table.uri) / ".hoodie" / "timeline").glob("*.clustering.requested"))
            hidden = file.rename(tmp_path / "plan")
            pyhudi.open_table(table.uri, options=SMALL).upsert(POINTS.rows([7], v=3))
            hidden.rename(file)
        return written

    overtaken: list[bool] = []
    monkeypatch.setattr(clustering, "cluster_group", slow)
    with pytest.raises(CommitConflict, match="changed file group"):
        table.cluster()
    monkeypatch.undo()
    # Nothing is left, not the plan either.
    assert pending(table.refresh().state.timeline) == []
    assert table.cluster().left == ()
    assert {row["id"]: row["v"] for row in stored(table)}["k0007"] == 3
    found = table.check(deep=True)
    assert found.ok, str(found)


WRITERS_FIRST = {
    "hoodie.write.lock.conflict.resolution.strategy": "org.apache.hudi.client.transaction."
    "PreferWriterConflictResolutionStrategy"
}


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", [6, 9])
def test_prioritized_writers_ignore_clustering_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, version: int
) -> None:
    table = points(tmp_path, kind=kind, version=version)
    planned: list[str] = []
    start = Transaction.start

    def plans(*args: Any) -> None:
        start(*args)
        if not planned:
            planned.append("")
            (planned[0],) = (
                pyhudi.open_table(table.uri, options=SMALL).cluster(execute=False).scheduled
            )

    monkeypatch.setattr(Transaction, "start", plans)
    first = pyhudi.open_table(table.uri, options={**SMALL, **WRITERS_FIRST})
    result = first.upsert(POINTS.rows([7], v=3))
    assert result.instant < planned[0]
    assert [instant.requested for instant in pending(first.state.timeline)] == planned
    assert "was cancelled" in first.cluster(schedule=False).left[0]
    assert {row["id"]: row["v"] for row in stored(first)}["k0007"] == 3
    found = first.check(deep=True)
    assert found.ok, str(found)


@pytest.mark.parametrize("version", [6, 9])
def test_clustering_yields_to_active_writers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    table = points(tmp_path, version=version)
    first = pyhudi.open_table(table.uri, options={**SMALL, **WRITERS_FIRST})
    (planned,) = first.cluster(execute=False).scheduled
    start = Transaction.start
    met: list[str] = []

    def clusters(*args: Any) -> None:
        start(*args)
        if not met:
            met.append("")
            other = pyhudi.open_table(table.uri, options={**SMALL, **WRITERS_FIRST})
            with pytest.raises(CommitConflict, match="is changing file group") as refused:
                other.cluster(schedule=False)
            met[0] = str(refused.value)

    monkeypatch.setattr(Transaction, "start", clusters)
    written = first.upsert(POINTS.rows([7], v=3))
    assert written.instant in met[0]
    assert [instant.requested for instant in pending(first.state.timeline)] == [planned]
    assert first.cluster(schedule=False).left
    assert first.cluster().files_written
    found = first.check(deep=True)
    assert found.ok, str(found)


def test_unknown_conflict_strategy_raises(tmp_path: Path) -> None:
    table = points(tmp_path)
    strategy = "hoodie.write.lock.conflict.resolution.strategy"
    with pytest.raises(UnsupportedTableFeature, match=r"conflict\.resolution\.strategy is 'Mine'"):
        pyhudi.open_table(table.uri, options={strategy: "Mine"})


def test_rollback_cancels_clustering_plan(tmp_path: Path) -> None:
    table = points(tmp_path, version=6)
    (planned,) = table.cluster(execute=False).scheduled
    before = stored(table)
    looked = table.rollback(planned, dry_run=True)
    assert (looked.instants, looked.files_deleted) == ((planned,), 0)
    assert table.rollback(planned).instant == ""
    assert pending(table.state.timeline) == []
    assert stored(table) == before
    table.upsert(POINTS.rows([7], v=3))


def test_rollback_removes_crashed_clustering(tmp_path: Path) -> None:
    base = unpack("v9_mor_pending_clusterings", tmp_path)
    table = pyhudi.open_table(base)
    before = sorted(table.scan().to_arrow().to_pylist(), key=str)
    for instant in pending(table.state.timeline):
        table.rollback(instant.requested)
        assert not list(base.rglob(f"*_{instant.requested}.parquet"))
    assert pending(table.state.timeline) == []
    assert sorted(table.scan().to_arrow().to_pylist(), key=str) == before
    assert table.check(deep=True).ok
    # A file alone stays as it is.
    assert table.cluster().rows_written == len(before) - 2


# --- after commits --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_inline_clustering_runs_after_max_commits(tmp_path: Path, kind: Any) -> None:
    inline = {
        "hoodie.clustering.inline": True,
        "hoodie.clustering.inline.max.commits": 2,
        "hoodie.clustering.plan.strategy.sort.columns": "x,y",
        "hoodie.layout.optimize.strategy": "HILBERT",
    }
    table = POINTS.make(tmp_path / "points", kind=kind, options=inline, version=6)
    files = []
    for number in range(6):
        table.insert(POINTS.rows(range(number * 10, number * 10 + 10)))
        files.append(len(names_of(table)))
    assert files == [2, 2, 4, 2, 4, 2]
    assert table.history()["operation"].to_pylist().count("CLUSTER") == 3
    assert len(stored(table)) == 60
    assert table.check(deep=True).ok


def test_plans_alone_after_commits(tmp_path: Path) -> None:
    scheduled = {
        "hoodie.clustering.schedule.inline": True,
        "hoodie.clustering.async.max.commits": 2,
    }
    table = POINTS.make(tmp_path / "points", options=scheduled)
    for number in range(5):
        table.insert(POINTS.rows(range(number * 10, number * 10 + 10)))
    assert len(pending(table.refresh().state.timeline)) == 1
    assert len(table.cluster(schedule=False).instants) == 1


def test_cluster_refuses_bad_arguments(tmp_path: Path) -> None:
    table = POINTS.make(tmp_path / "points", first=range(4))
    with pytest.raises(ConfigError, match="'nowhere', which is not a column"):
        table.cluster(sort_by=["nowhere"])
    with pytest.raises(ConfigError, match="layout is 'spiral'"):
        table.cluster(layout="spiral")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="both false"):
        table.cluster(schedule=False, execute=False)
    with pytest.raises(UnsupportedTableFeature, match="SparkBinaryCopy"):
        pyhudi.open_table(
            table.uri,
            options={
                "hoodie.clustering.execution.strategy.class": "SparkBinaryCopyExecutionStrategy"
            },
        )
    buckets = POINTS.make(tmp_path / "buckets", first=range(4), index="BUCKET", metadata=False)
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.index\.type is BUCKET"):
        buckets.cluster()


# --- plans ----------------------------------------------------------------------------------------

MIB = 1024 * 1024


def slice_of(name: str, size: int | None, *, partition: str = "p", logs: int = 0) -> FileSlice:
    base = None if size is None else BaseFile(partition, f"{name}.parquet", name, "1", "0", size)
    appended = tuple(
        LogFile(partition, f".{name}_1.log.{n}", name, "1", n, "", "", 900) for n in range(logs)
    )
    return FileSlice(partition, name, "1", base, appended)


def chosen(
    slices: list[FileSlice], hour: int = 0, earlier: EarlierClusterings | None = None, **given: Any
) -> GroupChoice:
    options = ClusteringOptions(**given)
    kept = select_partitions(sorted({slice_.partition for slice_ in slices}), options, hour)
    order = (options.sort_columns, options.layout)
    return choose(slices, options, WriteOptions(), earlier or EarlierClusterings({}), order, kept)


def ids(choice: GroupChoice) -> list[list[str]]:
    return [[slice_.file_id for slice_ in group.slices] for group in choice.groups]


def test_small_files_come_together_largest_first() -> None:
    slices = [slice_of("a", 10), slice_of("b", 300 * MIB), slice_of("c", 30), slice_of("d", 20)]
    assert ids(chosen(slices)) == [["c", "d", "a"]]
    # A file alone stays as it is.
    assert ids(chosen(slices, max_group_bytes=35)) == [["d", "a"]]
    assert ids(chosen(slices, max_group_bytes=50)) == [["c", "d"]]


def test_slice_without_base_file_counts_as_large() -> None:
    slices = [slice_of("a", 10), slice_of("logs", None, logs=2)]
    assert ids(chosen(slices)) == [["logs", "a"]]
    (group,) = chosen(slices, target_bytes=50 * MIB).groups
    assert group.outputs == 3


def test_cluster_leaves_groups_above_maximum_to_next_plan() -> None:
    slices = [slice_of(f"{p}{n}", 10, partition=p) for p in "pqr" for n in range(2)]
    choice = chosen(slices, max_groups=2)
    assert ids(choice) == [["p0", "p1"], ["q0", "q1"]]
    assert choice.missing == ("r",)


@pytest.mark.parametrize(
    ("options", "hour", "wanted"),
    [
        ({}, 0, "pqrs"),
        ({"selected": ("q", "nowhere")}, 0, "q"),
        ({"pattern": "[pq]"}, 0, "pq"),
        ({"pattern": "p|qq"}, 0, "p"),
        ({"filter_mode": "RECENT_DAYS"}, 0, "rs"),
        ({"filter_mode": "RECENT_DAYS", "skip_latest": 1, "lookback": 1}, 0, "r"),
        ({"filter_mode": "RECENT_DAYS", "skip_latest": 1, "lookback": 0}, 0, "pqr"),
        ({"filter_mode": "RECENT_DAYS", "selected": ("p", "q"), "lookback": 1}, 0, "q"),
        ({"filter_mode": "SELECTED_PARTITIONS", "begin": "q", "end": "r"}, 0, "qr"),
        ({"filter_mode": "DAY_ROLLING"}, 2, "r"),
    ],
)
def test_partitions_are_chosen_as_hudi_does(
    options: dict[str, Any], hour: int, wanted: str
) -> None:
    slices = [slice_of(f"{p}{n}", 10, partition=p) for p in "pqrs" for n in range(2)]
    choice = chosen(slices, hour, **options)
    assert "".join(group.partition for group in choice.groups) == wanted
    assert "".join(choice.missing) == "".join(p for p in "pqrs" if p not in wanted)


@pytest.mark.parametrize(
    ("options", "hour", "wanted"),
    [
        ({"filter_mode": "RECENT_DAYS", "lookback": 2}, 0, "r"),
        ({"filter_mode": "RECENT_DAYS", "lookback": 1}, 0, ""),
        ({"filter_mode": "RECENT_DAYS", "lookback": 1, "skip_latest": 1}, 0, "r"),
        ({"filter_mode": "DAY_ROLLING"}, 2, "r"),
    ],
)
def test_partitions_without_small_files_are_counted(
    options: dict[str, Any], hour: int, wanted: str
) -> None:
    slices = [slice_of(f"{p}{n}", 10, partition=p) for p in "pr" for n in range(2)]
    slices += [slice_of(p, 400 * MIB, partition=p) for p in "qs"]
    choice = chosen(slices, hour, **options)
    assert "".join(group.partition for group in choice.groups) == wanted
    assert "".join(choice.missing) == "pr".replace(wanted, "")


def test_newest_partitions_are_chosen_over_whole_table(tmp_path: Path) -> None:
    """Also where there is no file group in them that could be clustered."""
    small = {**SMALL, "hoodie.parquet.small.file.limit": "0"}
    recent = {
        **small,
        "hoodie.clustering.plan.partition.filter.mode": "RECENT_DAYS",
        "hoodie.clustering.plan.strategy.daybased.lookback.partitions": "1",
    }
    table = POINTS.make(tmp_path / "points", first=range(20), metadata=False, options=small)
    table.insert(POINTS.rows(range(20, 40)))
    newest = max(path.parent.name for path in Path(table.uri).rglob("*.parquet"))
    table.delete_partitions([newest])
    assert pyhudi.open_table(table.uri, options=recent).cluster().instants == ()
    every = {**recent, "hoodie.clustering.plan.strategy.daybased.lookback.partitions": "0"}
    assert pyhudi.open_table(table.uri, options=every).cluster(dry_run=True).files_read == 2
    asked = pyhudi.open_table(table.uri, options=recent).cluster(partitions=["oslo"])
    assert asked.files_read == 2


def test_cluster_skips_groups_it_would_not_change() -> None:
    assert chosen([slice_of("a", 10)]).groups == ()
    assert ids(chosen([slice_of("a", 10, logs=1)])) == [["a"]]
    assert chosen([slice_of("a", 10, logs=1)], single_group=False).groups == ()
    assert ids(chosen([slice_of("a", 10)], sort_columns=("x",))) == [["a"]]


@pytest.mark.parametrize(
    ("made", "wanted", "stays"),
    [
        ((("x",), None), (("x",), None), True),
        ((("x",), None), (("y",), None), False),
        ((("x",), None), (("x",), "zorder"), True),
        ((("x", "y"), "zorder"), (("x", "y"), None), True),
        ((("x", "y"), "zorder"), (("x", "y"), "zorder"), True),
        ((("x", "y"), "zorder"), (("x", "y"), "hilbert"), False),
        ((("x", "y"), "zorder"), (("x", "y"), "linear"), False),
        ((("x", "y"), None), (("x", "y"), "linear"), True),
        ((("x", "y"), None), (("x", "y"), "zorder"), False),
    ],
)
def test_cluster_skips_sorted_groups(made: Order, wanted: Order, *, stays: bool) -> None:
    columns, layout = wanted
    earlier = EarlierClusterings({"1": made})
    choice = chosen([slice_of("a", 10)], earlier=earlier, sort_columns=columns, layout=layout)
    assert (choice.groups == ()) is stays


def test_cluster_rewrites_for_another_layout(tmp_path: Path) -> None:
    table = POINTS.make(tmp_path / "points", first=range(200), metadata=False)
    by = ["x", "y"]
    assert table.cluster(sort_by=by).rows_written == 200
    assert table.cluster(sort_by=by, layout="linear").instants == ()
    assert table.cluster(sort_by=by, layout="zorder").rows_written == 200
    assert table.cluster(sort_by=by, layout="zorder").instants == ()
    assert table.cluster(sort_by=by).instants == ()
    assert table.cluster(sort_by=by, layout="hilbert", dry_run=True).files_read


def test_clustering_plan_round_trips(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    name = "f1-0_0-1-0_20260101000000000.parquet"
    (tmp_path / "p" / name).write_bytes(b"x" * 10)
    log = LogFile("p", ".f1-0_20260101000000000.log.1_0-1-0", "f1-0", "1", 1, "0-1-0", "", 3)
    (tmp_path / "p" / log.name).write_bytes(b"yyy")
    base = BaseFile("p", name, "f1-0", "20260101000000000", "0-1-0", 10)
    slice_ = FileSlice("p", "f1-0", "20260101000000000", base, (log,))
    group = chosen([slice_]).groups[0]
    record = clustering_record(str(tmp_path), [group], ["a", "b"], "zorder", ["q"])
    plan = read_plan(Storage(str(tmp_path)), TableConfig({}), json.loads(json.dumps(record)))
    assert (plan.sort_columns, plan.layout) == (("a", "b"), "zorder")
    assert plan.replaced == {"p": ("f1-0",)}
    assert plan.groups[0].slices[0].base == base
    assert [found.name for found in plan.groups[0].slices[0].logs] == [log.name]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "version 2"),
        ({"preserveHoodieMetadata": False}, "preserveHoodieMetadata"),
        ({"strategy": {"strategyClassName": "com.acme.Own"}}, r"com\.acme\.Own"),
        ({"inputGroups": [{"extraMetadata": {"clustering.group.child.node": ""}}]}, "child"),
    ],
)
def test_clustering_plan_with_unknown_groups_raises(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(UnsupportedTableFeature, match=said):
        read_plan(Storage(str(tmp_path)), TableConfig({}), {"clusteringPlan": change})


@pytest.mark.parametrize(
    ("column", "hint"), [("s.a", "a field of a struct does not sort"), ("none", "Its columns are")]
)
def test_cluster_by_unknown_column_names_argument(tmp_path: Path, column: str, hint: str) -> None:
    rows = pa.table({"id": ["a"], "s": [{"a": 1}]})
    table = pyhudi.create_table(tmp_path / "t", rows, key="id", options=SMALL)
    with pytest.raises(
        ConfigError, match=f"sort_by.* has '{column}', which is not a column"
    ) as caught:
        table.cluster(sort_by=column)
    assert hint in caught.value.hint
    assert table.refresh().history().num_rows == 1
