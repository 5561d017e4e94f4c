"""Cleaning of data tables: which files are deleted, and what retains the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.clock import SystemClock
from pyhudi.config.actions import CLEAN, DELTA_COMMIT, INDEXING, State
from pyhudi.config.retention_options import KEEP_COMMITS, KEEP_HOURS, KEEP_VERSIONS, CleanOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import LAYOUT_2
from pyhudi.errors import ConfigError, CorruptTable, HistoryUnavailable
from pyhudi.services import cleaning
from pyhudi.services.clean_plan import CleanPlan, clean_plan, partitions_since
from pyhudi.services.clean_policy import Retention, retention
from pyhudi.slices.file_slice import FileSlice
from pyhudi.storage.storage import Storage
from pyhudi.timeline import InstantGenerator, Timeline, instant_files, serde
from pyhudi.txn.heartbeat import Heartbeat
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.transaction import Transaction
from pyhudi.write.table_opening import open_for_change
from tests.helpers.pairwise import pairwise
from tests.sim.crash import Handle
from tests.unit.memory_storage import MemoryStorage
from tests.unit.test_savepoints import made, people, timeline_of

pytestmark = pytest.mark.in_parts

CASES = pairwise((6, 8, 9), ("cow", "mor"))


def rows(table: HudiTable) -> dict[str, int]:
    found = table.refresh().scan().to_arrow().to_pylist()
    return {row["id"]: row["v"] for row in found}


def data_files(base: Path) -> list[str]:
    files = (path.relative_to(base) for path in base.rglob("*") if path.is_file())
    return sorted(str(path) for path in files if path.parts[0] != ".hoodie")


def written(base: Path, version: int, kind: str, commits: int = 4) -> HudiTable:
    """A table whose file groups have several slices."""
    table = made(base, version, kind)
    for v in range(3, commits + 1):
        table.upsert(people(range(4), v))
        if kind == "mor":
            table.compact()
    return table


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_clean_deletes_replaced_files(version: int, kind: str, tmp_path: Path) -> None:
    table = written(tmp_path / "t", version, kind)
    before, files = rows(table), data_files(tmp_path / "t")
    looked = table.clean(retain=1, dry_run=True)
    assert (looked.dry_run, looked.instants) == (True, ())
    assert data_files(tmp_path / "t") == files
    done = table.clean(retain=1)
    assert len(done.instants) == 1
    assert (
        done.files_removed == looked.files_removed == len(files) - len(data_files(tmp_path / "t"))
    )
    assert (done.file_groups, done.bytes_removed) == (2, looked.bytes_removed)
    assert done.files_removed >= 2
    assert rows(table) == before
    found = table.check(deep=True)
    assert found.ok, str(found)
    assert table.clean(retain=1).instants == ()
    table.upsert(people(range(4), 9))
    assert set(rows(table).values()) == {9}


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_versions_are_counted_by_file_group(version: int, kind: str, tmp_path: Path) -> None:
    table = written(tmp_path / "t", version, kind, commits=5)
    before = rows(table)
    table.clean(policy=KEEP_VERSIONS, retain=1)
    bases = [name for name in data_files(tmp_path / "t") if name.endswith(".parquet")]
    assert len(bases) == 2
    assert rows(table) == before
    assert table.check(deep=True).ok
    first = timeline_of(tmp_path / "t").commits[0].requested
    with pytest.raises(HistoryUnavailable):
        table.scan(as_of=first).to_arrow()


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_clean_keeps_files_of_savepoint(version: int, kind: str, tmp_path: Path) -> None:
    table = written(tmp_path / "t", version, kind, commits=3)
    saved = table.savepoint()
    expected = rows(table)
    stale = open_for_change(Handle(table.storage), SystemClock())
    for v in (4, 5, 6):
        table.upsert(people(range(4), v))
    table.clean(retain=1)
    kept = {name for one in cleaning_saved(table) for name in one}
    assert kept <= {name.rsplit("/", 1)[-1] for name in data_files(tmp_path / "t")}
    said = timeline_of(tmp_path / "t")
    clean = said.read(said.filter_completed(CLEAN)[-1]) if said.filter_completed(CLEAN) else {}
    assert (clean or {}).get("extraMetadata", {}) in ({}, {"savepointed_timestamps": saved})
    assert stale.timeline.filter_completed(CLEAN) == ()
    table.restore(saved)
    assert rows(table) == expected
    assert table.check(deep=True).ok


def cleaning_saved(table: HudiTable) -> list[tuple[str, ...]]:
    from pyhudi.txn.savepoint import savepoints

    timeline = timeline_of(Path(table.storage.uri))
    return [names for saved in savepoints(timeline) for names in saved.files.values()]


def test_clean_keeps_files_of_savepoint_after_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = written(tmp_path / "t", 9, "cow")
    commits = timeline_of(tmp_path / "t").commits
    opened = open_for_change(Handle(table.storage), SystemClock())
    planned = cleaning._plan

    def late(*given: object) -> object:
        plan = planned(*given)  # type: ignore[arg-type]
        monkeypatch.setattr(cleaning, "_plan", planned)
        table.savepoint(instant=commits[0].requested)
        return plan

    monkeypatch.setattr(cleaning, "_plan", late)
    done = cleaning.clean_table(opened, CleanOptions(commits=1))
    assert done.files_removed > 0
    there = {name.rsplit("/", 1)[-1] for name in data_files(tmp_path / "t")}
    assert {name for one in cleaning_saved(table) for name in one} <= there


@pytest.mark.parametrize("version", [6, 8, 9])
def test_clean_keeps_files_of_pending_compaction(version: int, tmp_path: Path) -> None:
    table = written(tmp_path / "t", version, "mor")
    table.upsert(people(range(4), 5))
    (planned,) = table.compact(execute=False).scheduled
    table.upsert(people(range(4), 6))
    plan = timeline_of(tmp_path / "t").plan(timeline_of(tmp_path / "t").pending("compaction")[0])
    named = {
        name
        for operation in (plan or {})["operations"]
        for name in (operation["dataFilePath"], *operation["deltaFilePaths"])
    }
    for policy in (KEEP_COMMITS, KEEP_VERSIONS):
        table.clean(policy=policy, retain=1)
        assert named <= {name.rsplit("/", 1)[-1] for name in data_files(tmp_path / "t")}
    before = rows(table)
    assert planned in table.compact().instants
    assert rows(table) == before
    assert table.check(deep=True).ok


@pytest.mark.parametrize("version", [6, 8, 9])
def test_clean_keeps_replaced_group_of_pending_plan(version: Any, tmp_path: Path) -> None:
    """Up to version 6 no commit is named by log files that were written since the plan."""
    table, files = waiting(tmp_path / "t", version)
    last = timeline_of(tmp_path / "t").commits[-1].requested
    table.overwrite_partitions(facts("cold", 4))
    table.clean(policy=KEEP_VERSIONS, retain=1)
    assert files <= set(data_files(tmp_path / "t"))
    assert set(values(table, last)) == {3}
    table.compact(schedule=False)
    table.clean(policy=KEEP_VERSIONS, retain=1)
    assert files.isdisjoint(data_files(tmp_path / "t"))
    assert set(values(table)) == {4}
    assert table.refresh().check(deep=True).ok


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_read_reports_log_files_cleaned_since_plan(
    version: Any, whole: bool, tmp_path: Path
) -> None:
    """Hudi removes a replaced group completely, even if a plan needs it."""
    base = tmp_path / "t"
    table, files = waiting(base, version)
    *_, before, last = (commit.requested for commit in timeline_of(base).commits)
    newest = {max(files, key=lambda file: (base / file).stat().st_mtime_ns)}
    replacing = table.overwrite_partitions(facts("cold", 4)).instant
    names = {Path(file).name: 1 for file in (files if whole else newest)}
    carried_out(table, CleanPlan(Retention(KEEP_VERSIONS), {"cold": names}))
    assert len(files - set(data_files(base))) == len(names)
    for lost in (
        lambda: values(table, last),
        lambda: table.diff(before, last).to_arrow(),
        lambda: table.savepoint(instant=last),
        lambda: table.rollback(replacing),
        lambda: table.restore(last),
    ):
        with pytest.raises(HistoryUnavailable, match="clean"):
            lost()
    if not whole:
        # What was written later is not missed.
        planned = timeline_of(base).pending("compaction")[0].requested
        assert {*values(table, before), *values(table, planned)} == {2}
    assert set(values(table)) == {4}


def waiting(base: Path, version: Any) -> tuple[HudiTable, set[str]]:
    """A table whose one file group waits for a compaction and was written to since; its files."""
    options = {"hoodie.clean.automatic": "false"}
    pyhudi.create_table(
        base, facts("cold", 1), key="id", partition_by="city", type="mor", version=version
    )
    table = pyhudi.open_table(base, options=options)
    table.upsert(facts("cold", 2))
    table.compact(execute=False)
    table.upsert(facts("cold", 3))
    return table, files_of_groups(base)


def files_of_groups(base: Path) -> set[str]:
    return {file for file in data_files(base) if not file.endswith(".hoodie_partition_metadata")}


def carried_out(table: HudiTable, plan: CleanPlan) -> None:
    """A clean that another has planned."""
    opened = open_for_change(Handle(table.storage), SystemClock())
    opened.generator.observe(opened.timeline)
    data = serde.encode_container("HoodieCleanerPlan", plan.record(opened), SystemClock())
    instant_files.request(table.config.layout, table.storage, opened.generator.next(), CLEAN, data)
    cleaning.complete_pending(opened.reload())


def facts(city: str, v: int) -> pa.Table:
    return pa.table({"id": [f"{city}{n}" for n in range(2)], "city": [city] * 2, "v": [v] * 2})


def values(table: HudiTable, as_of: str | None = None) -> list[int]:
    found: list[int] = table.refresh().scan(["v"], as_of=as_of).to_arrow()["v"].to_pylist()
    return found


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_clean_removes_emptied_partition(version: int, kind: str, tmp_path: Path) -> None:
    table = written(tmp_path / "t", version, kind)
    table.delete_partitions(["oslo"])
    table.upsert(people(range(0, 4, 2), 8))
    table.upsert(people(range(0, 4, 2), 9))
    done = table.clean(retain=1)
    assert done.instants
    assert not (tmp_path / "t" / "oslo").exists()
    timeline = timeline_of(tmp_path / "t")
    said = (timeline.read(timeline.filter_completed(CLEAN)[-1]) or {})["partitionMetadata"]
    assert {path: part["isPartitionDeleted"] for path, part in said.items()}["oslo"]
    assert table.check(deep=True).ok
    table.upsert(people(range(4), 10))
    assert rows(table) == {f"k{n}": 10 for n in range(4)}
    assert table.check(deep=True).ok


@pytest.mark.parametrize("version", [6, 9])
def test_clean_keeps_partition_of_active_writer(version: int, tmp_path: Path) -> None:
    table = written(tmp_path / "t", version, "cow")
    table.delete_partitions(["oslo"])
    table.upsert(people(range(0, 4, 2), 8))
    opened = open_for_change(Handle(table.storage), SystemClock())
    begun = opened.generator
    begun.observe(opened.timeline)
    instant_files.request(table.config.layout, table.storage, begun.next(), "commit")
    cleaning.clean_table(opened.reload(), CleanOptions(policy=KEEP_VERSIONS, versions=1))
    assert (tmp_path / "t" / "oslo").exists()
    assert list((tmp_path / "t" / "oslo").glob("*.parquet")) == []


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_clean_completes_pending_clean_first(version: int, kind: str, tmp_path: Path) -> None:
    table = written(tmp_path / "t", version, kind)
    opened = open_for_change(Handle(table.storage), SystemClock())
    action, plan = cleaning._schedule(opened, CleanOptions(commits=1))
    assert action is not None
    looked = table.clean(retain=1, dry_run=True)
    assert action.time in looked.left[0]
    done = table.clean(retain=1)
    assert done.instants[0] == action.time
    assert timeline_of(tmp_path / "t").pending() == ()
    names = {name.rsplit("/", 1)[-1] for name in data_files(tmp_path / "t")}
    assert names.isdisjoint(name for of in plan.files.values() for name in of)
    assert table.check(deep=True).ok


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("version", [6, 9])
def test_clean_removes_request_of_crashed_writer(version: int, begun: bool, tmp_path: Path) -> None:
    """Where files are made step by step its plan is empty; no other would be made beside it."""
    table = written(tmp_path / "t", version, "cow")
    layout, dead = table.config.layout, "20200101000000000"
    instant_files.request(layout, table.storage, dead, CLEAN)
    if begun:
        instant_files.start(layout, table.storage, dead, CLEAN)
    done = table.clean(retain=1)
    assert done.files_removed
    timeline = timeline_of(tmp_path / "t")
    assert timeline.pending() == ()
    assert [clean.requested for clean in timeline.filter_completed(CLEAN)] == list(done.instants)


def test_clean_uses_inflight_copy_of_lost_plan(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 6, "cow")
    opened = open_for_change(Handle(table.storage), SystemClock())
    plan = clean_plan(opened, Retention(earliest_retained=opened.timeline.commits[-1]))
    copy = serde.encode_container("HoodieCleanerPlan", plan.record(opened), SystemClock())
    layout, dead = table.config.layout, "20200101000000000"
    instant_files.request(layout, table.storage, dead, CLEAN)
    instant_files.start(layout, table.storage, dead, CLEAN, copy)
    assert dead in table.clean(retain=1).instants
    names = {name.rsplit("/", 1)[-1] for name in data_files(tmp_path / "t")}
    assert names.isdisjoint(name for of in plan.files.values() for name in of)
    assert timeline_of(tmp_path / "t").pending() == ()


@pytest.mark.parametrize("partition", ["../elsewhere", ".hoodie/metadata", "a//b"])
def test_clean_refuses_plan_with_foreign_path(partition: str, tmp_path: Path) -> None:
    table = made(tmp_path / "t", 9, "cow")
    opened = open_for_change(Handle(table.storage), SystemClock())
    record = CleanPlan(Retention(), {partition: {"file.parquet": 1}}).record(opened)
    plan = serde.encode_container("HoodieCleanerPlan", record, SystemClock())
    instant_files.request(table.config.layout, table.storage, "29990101000000000", CLEAN, plan)
    with pytest.raises(CorruptTable, match="expected: path of a partition"):
        table.clean()


def test_clean_checks_changed_partitions_only(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 9, "cow")
    table.clean(retain=1)
    earliest_retained = timeline_of(tmp_path / "t").commits[-1]
    table.upsert(people(range(0, 4, 2), 7))
    timeline = timeline_of(tmp_path / "t")
    later = Retention(earliest_retained=timeline.commits[-1])
    assert partitions_since(timeline, Retention(earliest_retained=earliest_retained)) == set()
    assert partitions_since(timeline, later) == {"oslo", "rome"}
    table.upsert(people(range(0, 4, 2), 8))
    timeline = timeline_of(tmp_path / "t")
    table.clean(retain=2)
    table.upsert(people(range(0, 4, 2), 9))
    timeline = timeline_of(tmp_path / "t")
    assert partitions_since(timeline, Retention(earliest_retained=timeline.commits[-1])) == {"rome"}
    saved = table.savepoint()
    table.clean(retain=1)
    assert partitions_since(timeline_of(tmp_path / "t"), later) is not None
    table.delete_savepoint(saved)
    assert partitions_since(timeline_of(tmp_path / "t"), later) is None


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_clean_deletes_files_earlier_clean_had_to_keep(
    version: Any, kind: Any, tmp_path: Path
) -> None:
    """Hudi's cleans by hours wait for no plan."""
    base = tmp_path / "t"
    if kind == "mor":
        # A group that is replaced while a plan names it.
        table, replaced = waiting(base, version)
        table.overwrite_partitions(facts("cold", 4))
    else:
        # One that a clustering replaces, which is older than it is complete.
        table = pyhudi.create_table(
            base, facts("cold", 4), key="id", partition_by="city", version=version
        )
        replaced = files_of_groups(base)
        table.cluster(execute=False, sort_by=["v"])
    for v in (1, 2, 3):
        table.overwrite_partitions(facts("hot", v))
    opened = open_for_change(Handle(table.storage), SystemClock())
    passing = clean_plan(opened, Retention(KEEP_HOURS, opened.timeline.commits[-1]))
    carried_out(table, passing)
    assert passing.files
    assert replaced <= set(data_files(base))
    (table.compact if kind == "mor" else table.cluster)(schedule=False)
    table.overwrite_partitions(facts("hot", 5))
    table.clean(retain=1)
    assert replaced.isdisjoint(data_files(base))
    assert not [left for left in table.archive(min_commits=1, max_commits=2).left if "repl" in left]
    assert sorted(values(table)) == [4, 4, 5, 5]
    assert table.refresh().check(deep=True).ok


def test_clean_removes_change_logs_with_their_slice(tmp_path: Path) -> None:
    table = pyhudi.create_table(
        tmp_path / "t", people(range(4), 1), key="id", partition_by="city",
        options={"hoodie.table.cdc.enabled": True},
    )  # fmt: skip
    for v in range(2, 6):
        table.upsert(people(range(4), v))
    assert sum(name.endswith(".cdc") for name in data_files(tmp_path / "t")) == 8
    table.clean(policy=KEEP_VERSIONS, retain=1)
    assert sum(name.endswith(".cdc") for name in data_files(tmp_path / "t")) == 2
    assert table.check(deep=True).ok


def test_clean_is_due_by_timeline(tmp_path: Path) -> None:
    table = pyhudi.create_table(
        tmp_path / "t", people(range(4), 1), key="id", partition_by="city",
        options={"hoodie.parquet.small.file.limit": "0"},
    )  # fmt: skip

    def due(**options: int) -> bool:
        return cleaning.is_due(
            open_for_change(Handle(table.storage), SystemClock()), keep(**options)
        )

    def keep(**options: int) -> CleanOptions:
        return CleanOptions(**{"commits": 1, "after_commits": 1, **options})  # type: ignore[arg-type]

    assert not due()
    table.insert(people(range(4, 8), 1))
    table.insert(people(range(8, 12), 1))
    # Rows were only added.
    assert not due()
    table.upsert(people(range(4), 2))
    assert not due()
    table.insert(people(range(12, 14), 2))
    assert due()
    assert not due(commits=10)
    assert table.clean(retain=1).instants
    assert not due()
    table.upsert(people(range(4), 3))
    assert due()
    assert not due(after_commits=2)


@pytest.mark.parametrize("version", [6, 9])
def test_clean_is_not_due_after_log_appends(version: Any, tmp_path: Path) -> None:
    """Each commit would list the table for nothing: only a new base file ends a file slice."""
    table = pyhudi.create_table(
        tmp_path / "t", people(range(4), 1), key="id", partition_by="city", type="mor",
        version=version, options={"hoodie.clean.automatic": "false"},
    )  # fmt: skip

    def due() -> bool:
        options = CleanOptions(commits=1, after_commits=1)
        return cleaning.is_due(open_for_change(Handle(table.storage), SystemClock()), options)

    for v in (2, 3, 4):
        table.upsert(people(range(4), v))
        assert not due()
    table.compact()
    assert not due()
    table.upsert(people(range(4), 5))
    assert due()
    assert table.clean(retain=1).files_removed
    for v in (6, 7):
        table.upsert(people(range(4), v))
        assert not due()
    table.compact()
    table.upsert(people(range(4), 8))
    assert due()
    assert table.clean(retain=1).files_removed
    assert table.check(deep=True).ok


# --- policies -------------------------------------------------------------------------------------


def timeline(*commits: int, pending: int = 0, action: str = DELTA_COMMIT) -> Timeline:
    storage = MemoryStorage()
    for number in (*commits, pending):
        last = State.REQUESTED if number == pending else State.COMPLETED
        did = action if number == pending else DELTA_COMMIT
        for reached in list(State)[: last.rank + 1] if number else ():
            name = LAYOUT_2.file_name(time(number), did, reached, time(number))
            storage.files[LAYOUT_2.path(name)] = b""
    properties = {"hoodie.table.name": "t", "hoodie.table.type": "MERGE_ON_READ"}
    return Timeline.load(storage, TableConfig(properties | {"hoodie.table.version": "9"}))


def time(number: int) -> str:
    return f"{20260101000000000 + number}"


def test_earliest_retained_commit_matches_hudi() -> None:
    def earliest_retained(of: Timeline, options: CleanOptions, since: int = 0) -> int | None:
        found = retention(of, options, time(since))
        if found is None or found.earliest_retained is None:
            return None
        return int(found.earliest_retained.requested) - int(time(0))

    fifteen = timeline(*range(1, 16))
    assert earliest_retained(fifteen, CleanOptions()) == 6
    assert earliest_retained(timeline(*range(1, 11)), CleanOptions()) is None
    assert earliest_retained(timeline(1, 2, 4, 5, 6, pending=3), CleanOptions(commits=1)) == 2
    assert earliest_retained(timeline(2, 3, 4, pending=1), CleanOptions(commits=1)) is None
    hours = CleanOptions(policy=KEEP_HOURS)
    assert earliest_retained(fifteen, hours, since=4) == 4
    assert earliest_retained(fifteen, hours, since=16) is None
    counted = retention(fifteen, CleanOptions(policy=KEEP_VERSIONS), time(0))
    assert counted == Retention(KEEP_VERSIONS, None, 3)


def test_clean_by_hours_waits_for_pending_writes() -> None:
    """Hudi passes it, and overlooks what it replaces once it is complete."""
    beside = timeline(1, 2, 4, 5, 6, 7, pending=3)
    stays = retention(beside, CleanOptions(policy=KEEP_HOURS), time(6))
    assert stays is not None
    assert stays.earliest_retained == beside.commits[1]


def test_clean_keeps_files_of_running_index_build() -> None:
    beside = timeline(1, 2, 4, 5, 6, 7, pending=3, action=INDEXING)
    for options in (CleanOptions(commits=1), CleanOptions(policy=KEEP_HOURS)):
        stays = retention(beside, options, time(6))
        assert stays is not None
        assert stays.earliest_retained == beside.commits[1]
    assert retention(beside, CleanOptions(policy=KEEP_VERSIONS), time(6)) is None


def test_clean_counts_slices_of_plan_as_one_version() -> None:
    slices = [FileSlice("p", "g", time(number), None) for number in (9, 7, 5, 3)]

    def gone(stays: Retention, planned_from: int | None = None) -> list[int]:
        since = None if planned_from is None else time(planned_from)
        found = stays.select_outdated(slices, since)
        return [int(slice_.base_instant) - int(time(0)) for slice_ in found]

    assert gone(Retention(KEEP_VERSIONS, versions=1)) == [7, 5, 3]
    assert gone(Retention(KEEP_VERSIONS, versions=1), planned_from=7) == [5, 3]
    assert gone(Retention(KEEP_VERSIONS, versions=2), planned_from=7) == [3]
    whole = timeline(2, 4, 6, 8)
    assert gone(Retention(earliest_retained=whole.commits[3])) == [5, 3]
    assert gone(Retention(earliest_retained=whole.commits[3]), planned_from=5) == [3]


def test_options_by_either_name() -> None:
    assert CleanOptions.of({}) == CleanOptions()
    older = {"hoodie.cleaner.policy": "keep_latest_commits", "hoodie.cleaner.commits.retained": "4"}
    newer = {name.replace("cleaner", "clean"): text for name, text in older.items()}
    assert CleanOptions.of(older) == CleanOptions.of(newer) == CleanOptions(commits=4)
    # Hudi infers the policy.
    assert CleanOptions.of({"hoodie.clean.hours.retained": "2"}).policy == KEEP_HOURS
    assert CleanOptions().keeping(KEEP_VERSIONS, 2) == CleanOptions(KEEP_VERSIONS, versions=2)
    assert CleanOptions(commits=4).keeping(None, None) == CleanOptions(commits=4)
    for bad in ({"hoodie.clean.policy": "some"}, {"hoodie.clean.commits.retained": "0"}):
        with pytest.raises(ConfigError):
            CleanOptions.of(bad)


def test_arguments_are_checked(tmp_path: Path) -> None:
    table = made(tmp_path / "t", 9, "cow")
    for bad in ({"policy": "all"}, {"retain": 0}, {"retain": "2"}):
        with pytest.raises(ConfigError):
            table.clean(**bad)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_clean_removes_files_from_indexes(version: int, tmp_path: Path) -> None:
    options = {
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.bloom.filter.enable": "true",
    }
    table = pyhudi.create_table(
        tmp_path / "t", people(range(4), 1), key="id", partition_by="city", version=version,
        options=options,
    )  # fmt: skip
    for v in range(2, 5):
        table.upsert(people(range(4), v))
    before = files_with_statistics(table)
    done = table.clean(retain=1)
    after = files_with_statistics(table)
    assert len(after) == len(before) - done.files_removed
    assert set(after) <= {name.rsplit("/", 1)[-1] for name in data_files(tmp_path / "t")}
    found = table.check(deep=True)
    assert found.ok, str(found)


def files_with_statistics(table: HudiTable) -> list[str]:
    found: list[str] = (
        table.refresh().inspect.metadata("column_stats", "v")["file_name"].to_pylist()
    )
    return found


def test_clean_without_work_lists_no_storage(tmp_path: Path) -> None:
    """No partition is listed if nothing can be due."""
    table = made(tmp_path / "t", 9, "cow")

    class Listing(Storage):
        listed: ClassVar[list[str]] = []

        def list_dir(self, prefix: str = "") -> tuple[list[str], list]:  # type: ignore[type-arg]
            self.listed.append(prefix)
            return super().list_dir(prefix)

    opened = open_for_change(Handle(Listing(table.storage.uri)), SystemClock())
    Listing.listed.clear()
    cleaning.clean_table(opened, CleanOptions())
    assert Listing.listed == []


@pytest.mark.parametrize("version", [6, 8, 9])
def test_clean_skips_files_removed_beyond_newest_clean(version: Any, tmp_path: Path) -> None:
    """One by versions of files took a group that was overwritten; the next keeps more commits."""
    options = {"hoodie.clean.automatic": "false"}
    both = pa.concat_tables([facts("a", 1), facts("b", 1)])
    pyhudi.create_table(tmp_path, both, key="id", partition_by="city", version=version)
    table = pyhudi.open_table(tmp_path, options=options)
    for v in (2, 3, 4):
        table.upsert(facts("a", v))
    before = table.state.timeline.commits[-1].requested
    table.overwrite_partitions(facts("b", 5))
    after = table.refresh().state.timeline.commits[-1].requested
    assert table.scan(as_of=before).count() == 4
    assert table.clean(policy=KEEP_VERSIONS, retain=3).files_removed == 2
    for v in (6, 7):
        table.upsert(facts("a", v))
    assert table.clean(policy=KEEP_COMMITS, retain=4).files_removed == 1
    earliest_retained = (
        timeline_of(tmp_path).read(timeline_of(tmp_path).filter_completed(CLEAN)[-1]) or {}
    )
    assert earliest_retained["earliestCommitToRetain"] == before
    assert table.refresh().scan(as_of=after).count() == 4
    with pytest.raises(HistoryUnavailable, match="removed files of file group"):
        table.scan(as_of=before).count()


@contextmanager
def as_hudi(monkeypatch: pytest.MonkeyPatch, *taken: str) -> Iterator[None]:
    """Let writers use the times of other actions, as Hudi up to 0.15 does, which does not check."""
    following, times, reload = InstantGenerator.next, iter(taken), Transaction._reload

    def reload_without_times(self: Transaction) -> None:
        reload(self)
        self._latest_time = ""

    with monkeypatch.context() as block:
        block.setattr(Transaction, "_reload", reload_without_times)
        block.setattr(Timeline, "of_same_time", lambda *_: ())
        block.setattr(Heartbeat, "start_new", Heartbeat.start)
        block.setattr(InstantGenerator, "next", lambda self: next(times, None) or following(self))
        yield


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_write_retries_if_clean_has_its_instant(
    version: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, start = written(tmp_path / "t", version, kind), Transaction.start
    met: list[str] = []

    def meeting(self: Transaction, profile: Any) -> None:
        if not met:
            met.append(self.instant)
            with as_hudi(monkeypatch, self.instant):
                assert pyhudi.open_table(table.uri).clean(retain=1).instants == (self.instant,)
        start(self, profile)

    monkeypatch.setattr(Transaction, "start", meeting)
    assert table.upsert(people(range(4), 6)).instant != met[0]
    timeline = timeline_of(tmp_path / "t")
    assert [i.action for i in timeline.instants if i.requested == met[0]] == [CLEAN]
    assert set(rows(table).values()) == {6}
    assert table.refresh().check(deep=True).ok


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_clean_takes_another_instant_than_write(
    version: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, begin = written(tmp_path / "t", version, kind), PendingInstant.begin
    met: list[str] = []

    def meeting(self: PendingInstant, content: bytes = b"") -> None:
        begin(self, content)
        if not met:
            met.append(self.time)
            other = pyhudi.open_table(table.uri, options={"hoodie.clean.automatic": False})
            with as_hudi(monkeypatch, self.time):
                assert other.upsert(people(range(4), 6)).instant == self.time

    monkeypatch.setattr(PendingInstant, "begin", meeting)
    (done,) = table.clean(retain=1).instants
    assert done != met[0]
    timeline = timeline_of(tmp_path / "t")
    assert timeline.last_commit is not None
    assert timeline.last_commit.requested == met[0]
    assert [clean.requested for clean in timeline.filter_completed(CLEAN)] == [done]
    assert timeline.pending() == ()
    assert set(rows(table).values()) == {6}
    assert table.refresh().check(deep=True).ok
