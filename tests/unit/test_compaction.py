"""Compaction of data tables: triggers, strategies, execution, and concurrent writers."""

from __future__ import annotations

import itertools
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.admin import run_service
from pyhudi.api.table import HudiTable
from pyhudi.clock import SystemClock
from pyhudi.config.actions import COMPACTION
from pyhudi.config.compaction_options import CompactionOptions
from pyhudi.errors import CommitConflict, ConfigError, CorruptTable, UnsupportedTableFeature
from pyhudi.services import table_compaction
from pyhudi.services.compaction_strategy import choose, day_of, is_due
from pyhudi.services.table_compaction import CompactionRequest, has_too_many_log_files
from pyhudi.slices.file_slice import BaseFile, FileSlice, LogFile
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.storage.storage import Storage
from pyhudi.txn.heartbeat import Heartbeat
from pyhudi.write import upsert
from tests.helpers.tables import unpack
from tests.sim.crash import CrashingStorage, Handle, Killed
from tests.unit.test_savepoints import made, people, timeline_of

pytestmark = pytest.mark.in_parts

VERSIONS = (6, 8, 9)
MIB = 1 << 20


def rows(table: HudiTable) -> dict[str, int]:
    found = table.refresh().scan().to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["v"] for row in found}


def log_files(table: HudiTable) -> int:
    state = table.refresh().state
    view = FileSystemView(state.storage, state.config, state.timeline)
    return sum(len(slice_.logs) for slice_ in view.slices())


@pytest.mark.parametrize("version", VERSIONS)
def test_compaction_changes_no_row(version: int, tmp_path: Path) -> None:
    table = made(tmp_path / "t", version)
    table.delete_keys(pa.table({"id": ["k3"], "city": ["oslo"]}))
    before = table.scan(columns=None).to_arrow().sort_by("id")
    files = sorted((tmp_path / "t" / "rome").iterdir())
    planned = table.compact(dry_run=True)
    assert planned.dry_run
    assert (planned.file_groups, planned.files_read) == (2, 5)
    assert sorted((tmp_path / "t" / "rome").iterdir()) == files
    assert log_files(table) == 3
    done = table.compact()
    assert (done.file_groups, done.files_read, done.files_written) == (2, 5, 2)
    assert done.rows_written == 3
    assert len(done.instants) == 1
    assert not done.scheduled
    assert log_files(table) == 0
    after = table.scan().to_arrow().sort_by("id")
    kept = [name for name in before.column_names if name != "_hoodie_file_name"]
    assert after.select(kept).equals(before.select(kept))
    assert table.compact().instants == ()
    assert not table.check(deep=True).findings
    (row,) = table.history(limit=1).to_pylist()
    assert (row["action"], row["operation"]) == ("commit", "COMPACT")


@pytest.mark.parametrize("then", ["compact", "upgrade"])
def test_zombie_compaction_plan_hides_no_row(then: str, tmp_path: Path) -> None:
    """The planner stalled; other writers wrote to the slice, and then to that of the plan."""
    base = tmp_path / "t"
    table = made(base, 6)
    (instant,) = table.compact(execute=False).scheduled
    requested = base / ".hoodie" / f"{instant}.compaction.requested"
    plan = requested.read_bytes()
    requested.unlink()
    pyhudi.open_table(base).upsert(people(range(1), 3))
    requested.write_bytes(plan)
    pyhudi.open_table(base).upsert(people(range(2, 3), 4))
    wanted = {"k0": 3, "k1": 2, "k2": 4, "k3": 1}
    assert rows(pyhudi.open_table(base)) == wanted
    table = pyhudi.open_table(base)
    if then == "compact":
        assert table.compact(schedule=False).instants == (instant,)
    else:
        table.upgrade(8)
    assert rows(pyhudi.open_table(base)) == wanted
    assert not pyhudi.open_table(base).check(deep=True).findings


@pytest.mark.parametrize("version", VERSIONS)
def test_write_succeeds_during_pending_compaction(version: int, tmp_path: Path) -> None:
    table = made(tmp_path / "t", version)
    (instant,) = table.compact(execute=False).scheduled
    table.upsert(people(range(1, 5), 5))
    wanted = {"k0": 2, "k1": 5, "k2": 5, "k3": 5, "k4": 5}
    assert rows(table) == wanted
    # What is in a plan is not planned again.
    table.upsert(people(range(2), 6))
    assert table.compact(execute=False).scheduled == ()
    wanted |= {"k0": 6, "k1": 6}
    done = table.compact(schedule=False)
    assert done.instants == (instant,)
    assert rows(table) == wanted
    assert len(table.compact().instants) == 1
    assert rows(table) == wanted
    assert not table.check(deep=True).findings


def test_compact_executes_plan_by_instant(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    (first,) = table.compact(partitions=["rome"], execute=False).scheduled
    (second,) = table.compact(execute=False).scheduled
    assert table.compact(instant=second).instants == (second,)
    assert [one.requested for one in timeline_of(tmp_path / "t").pending(COMPACTION)] == [first]
    with pytest.raises(ConfigError, match="no compaction 'x' is pending") as refused:
        table.compact(instant="x")
    assert first in str(refused.value.hint)


def test_compaction_plan_lists_skipped_partitions(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.compact(partitions="city = 'rome'", execute=False)
    timeline = timeline_of(tmp_path / "t")
    plan = timeline.plan(timeline.pending(COMPACTION)[0]) or {}
    assert [one["partitionPath"] for one in plan["operations"]] == ["rome"]
    assert plan["missingSchedulePartitions"] == ["oslo"]


def test_compact_refuses_bad_arguments(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTableFeature, match="COPY_ON_WRITE"):
        made(tmp_path / "cow", kind="cow").compact()
    table = made(tmp_path / "t")
    with pytest.raises(ConfigError, match="both false"):
        table.compact(schedule=False, execute=False)
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.compaction\.strategy is my\.Own"):
        table.compact(strategy="my.Own")
    with pytest.raises(ConfigError, match="does not begin with a date"):
        table.compact(strategy="DayBasedCompactionStrategy")
    assert log_files(table) == 2


def test_compact_leaves_running_compaction(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    (instant,) = table.compact(execute=False).scheduled
    beat = Heartbeat(Storage(str(tmp_path / "t")), instant, SystemClock())
    beat.start()
    with pytest.raises(CommitConflict, match="another writer is executing"):
        table.compact()
    beat.stop()
    assert table.compact().instants == (instant,)


def test_failed_compaction_keeps_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyhudi.slices import write_base

    table = made(tmp_path / "t")
    before = rows(table)
    files = sorted(path.name for path in (tmp_path / "t").rglob("*.parquet"))
    store, calls = write_base.rewrite_base_file, itertools.count()

    def fail(*given: Any, **more: Any) -> Any:
        if next(calls):
            raise KeyboardInterrupt
        return store(*given, **more)

    with monkeypatch.context() as patched:
        patched.setattr(write_base, "rewrite_base_file", fail)
        with pytest.raises(KeyboardInterrupt):
            table.compact()
    (pending,) = timeline_of(tmp_path / "t").pending(COMPACTION)
    assert pending.state.value == "REQUESTED"
    assert sorted(path.name for path in (tmp_path / "t").rglob("*.parquet")) == files
    assert rows(table) == before
    assert table.compact().instants == (pending.requested,)
    assert rows(table) == before
    assert not table.check(deep=True).findings


def test_compact_refuses_truncated_log_file(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    log = next((tmp_path / "t" / "rome").glob(".*.log.*"))
    log.write_bytes(b"")
    with pytest.raises(CorruptTable):
        table.compact()
    assert timeline_of(tmp_path / "t").pending() == ()


def test_compaction_is_not_planned_during_write_up_to_version_6(tmp_path: Path) -> None:
    """It may append to a log file that the plan names. From 8 on it has a file of its own."""
    for version, waits in ((6, True), (8, False)):
        base = tmp_path / str(version)
        table = made(base, version)
        storage = CrashingStorage(str(base), dies_at=8)
        with pytest.raises(Killed):
            upsert.upsert(Handle(storage, {}), people(range(2), 7))
        (pending,) = timeline_of(base).pending()
        beat = Heartbeat(Storage(str(base)), pending.requested, SystemClock())
        beat.start()
        done = table.compact()
        assert bool(done.left) is waits
        assert bool(done.instants) is not waits
        beat.stop()


def test_compact_works_with_small_memory_limit(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    for v in range(3, 8):
        table.upsert(people(range(5000), v))
    assert len(table.compact(memory_limit=MIB).instants) == 1
    assert rows(table) == {f"k{n}": 7 for n in range(5000)}


# --- which, and when ------------------------------------------------------------------------------


def a_slice(partition: str, *logs: int, base: int = 2 * MIB, group: str = "g") -> FileSlice:
    file_id = f"{group}-{partition}"
    files = tuple(
        LogFile(partition, f"l{n}", file_id, "1", n, "1-0-1", "", size)
        for n, size in enumerate(logs)
    )
    return FileSlice(
        partition, file_id, "1", BaseFile(partition, "b", file_id, "1", "1-0-1", base), files
    )


SLICES = [
    a_slice("2026/11/20", 3 * MIB),
    a_slice("2026/11/22", MIB, MIB, MIB),
    a_slice("2026/11/23", 9 * MIB),
    a_slice("2026/11/21", MIB),
]
PACKAGE = "org.apache.hudi.table.action.compact.strategy."


def chosen(strategy: str, *beside: str, **options: Any) -> list[str]:
    """Of `SLICES`. beside: partitions without log files."""
    given = {f"hoodie.compaction.{name}": str(text) for name, text in options.items()}
    given = {name.replace("__", "."): text for name, text in given.items()}
    given["hoodie.compaction.strategy"] = strategy
    paths = {slice_.partition for slice_ in SLICES} | set(beside)
    found = choose(SLICES, CompactionOptions.of(given), date(2026, 11, 23), paths)
    return [slice_.partition[-2:] for slice_ in found]


def test_strategies() -> None:
    assert chosen("LogFileSizeBasedCompactionStrategy") == ["23", "20", "22", "21"]
    size = chosen(f"{PACKAGE}LogFileSizeBasedCompactionStrategy", logfile__size__threshold=2 * MIB)
    assert size == ["23", "20", "22"]
    # 9 + 2 + 2 MiB are more than 12, and the one that crosses the bound is taken.
    assert chosen("LogFileSizeBasedCompactionStrategy", target__io=14) == ["23", "20"]
    assert chosen("BoundedIOCompactionStrategy", target__io=1) == ["20"]
    assert chosen("LogFileNumBasedCompactionStrategy", logfile__num__threshold=2) == ["22"]
    assert chosen("UnBoundedCompactionStrategy", target__io=1) == ["20", "22", "23", "21"]
    days = {"daybased__target__partitions": 2}
    assert chosen("DayBasedCompactionStrategy", **days) == ["23", "22"]
    assert chosen("DayBasedCompactionStrategy", "2026/11/24", **days) == ["23"]
    assert chosen("BoundedPartitionAwareCompactionStrategy", **days) == ["23", "22", "21"]
    assert chosen("UnBoundedPartitionAwareCompactionStrategy", **days) == ["20"]
    for many in (800_000, 10**10):
        days = {"daybased__target__partitions": many}
        recent = chosen("BoundedPartitionAwareCompactionStrategy", **days)
        assert recent == ["23", "22", "21", "20"]
        assert chosen("UnBoundedPartitionAwareCompactionStrategy", **days) == []
    by_pattern = "PartitionRegexBasedCompactionStrategy"
    assert chosen(by_pattern, partition__path__regex="2[01]$") == ["20", "21"]
    both = f"{by_pattern},LogFileSizeBasedCompactionStrategy"
    assert chosen(both, partition__path__regex="2[12]$") == ["22", "21"]


@pytest.mark.parametrize("path", ["2026/01/02", "2026/1/2/05", "y=2026/m=01/d=02/h=05"])
def test_day_of_partition_path_ignores_suffix(path: str) -> None:
    assert day_of(path) == date(2026, 1, 2)


@pytest.mark.parametrize("path", ["", "2026/01", "2026/02/30", "2026/01/023", "x/2026/01/02"])
def test_day_strategy_refuses_path_without_day(path: str) -> None:
    with pytest.raises(ConfigError, match="does not begin with a date"):
        day_of(path)


def test_day_strategy_counts_days_of_all_partitions(tmp_path: Path) -> None:
    hours = ["2026/01/01/05", "2026/01/01/06", "2026/01/02/07"]
    data = pa.table({"id": ["a", "b", "c"], "hour": hours, "v": [1, 1, 1]})
    table = pyhudi.create_table(
        tmp_path / "t",
        data,
        key="id",
        partition_by="hour",
        type="mor",
        options={"hoodie.datasource.write.partitionpath.urlencode": "false"},
    )
    table.upsert(data.slice(0, 2))
    options = {"hoodie.compaction.daybased.target.partitions": "1"}
    table = pyhudi.open_table(table.uri, options=options)
    assert table.compact(strategy="DayBasedCompactionStrategy").file_groups == 0
    options = {"hoodie.compaction.daybased.target.partitions": "2"}
    table = pyhudi.open_table(table.uri, options=options)
    assert table.compact(strategy="DayBasedCompactionStrategy").file_groups == 1


@pytest.mark.parametrize("version", [6, 9])
def test_triggers(version: int, tmp_path: Path) -> None:
    table = made(tmp_path / "t", version)
    timeline = timeline_of(tmp_path / "t")
    late, soon = "99990101000000000", timeline.commits[-1].requested

    def due(now: str = soon, **options: Any) -> bool:
        given = {
            f"hoodie.compact.inline.{k.replace('__', '.')}": str(v) for k, v in options.items()
        }
        return is_due(timeline_of(tmp_path / "t"), CompactionOptions.of(given), now)

    assert [due(max__delta__commits=n) for n in (1, 2, 3)] == [True, True, False]
    assert not due(trigger__strategy="TIME_ELAPSED")
    assert due(late, trigger__strategy="TIME_ELAPSED")
    assert not due(late, trigger__strategy="NUM_AND_TIME")
    assert due(late, trigger__strategy="NUM_AND_TIME", max__delta__commits=2)
    assert due(late, trigger__strategy="NUM_OR_TIME")
    assert not due(trigger__strategy="NUM_OR_TIME")
    table.compact()
    assert not due(max__delta__commits=1)
    table.upsert(people(range(2), 4))
    assert due(max__delta__commits=1)
    requested = {"trigger__strategy": "NUM_COMMITS_AFTER_LAST_REQUEST"}
    assert due(**requested, max__delta__commits=1)
    table.compact(execute=False)
    assert due(max__delta__commits=1)
    assert not due(**requested, max__delta__commits=1)


def test_time_is_counted_from_a_bootstrap(tmp_path: Path) -> None:
    """Its instant is no time of a clock, and long ago."""
    base = unpack("v6_mor_bootstrap_compacted", tmp_path)
    timeline = timeline_of(base).until("00000000000002")
    options = CompactionOptions.of({"hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED"})
    assert is_due(timeline, options, "20260101000000000")


def test_inline_compaction_runs_when_due(tmp_path: Path) -> None:
    made(tmp_path / "t")
    handle = Handle(Storage(str(tmp_path / "t")), {})
    asked = CompactionRequest(due_only=True)
    assert run_service.compact(handle, asked, CompactionOptions()).instants == ()
    assert run_service.compact(handle, asked, CompactionOptions(max_delta_commits=2)).instants


def test_older_times_and_later_rows_stay_readable(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    first = table.inspect.commits()["requested"][0].as_py()
    table.compact()
    table.upsert(people(range(3), 4))
    past = pyhudi.open_table(tmp_path / "t").scan(as_of=first).to_arrow()
    assert set(past["v"].to_pylist()) == {1}
    assert rows(table) == {"k0": 4, "k1": 4, "k2": 4, "k3": 1}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.slow
def test_overgrown_slices_are_compacted_automatically(version: int, tmp_path: Path) -> None:
    table = made(tmp_path / "t", version)
    asked = pyhudi.open_table(table.uri, options={"hoodie.compact.inline": False})
    for v in range(3, 43):
        asked.upsert(people(range(2 if v < 33 else 1), v))
    assert log_files(asked) > 60
    for v in range(43, 52):
        table.upsert(people(range(1), v))
    assert log_files(table) < 45
    (instant,) = (
        found.requested for found in timeline_of(tmp_path / "t").filter_completed("commit")
    )
    plan = timeline_of(tmp_path / "t").plan(
        timeline_of(tmp_path / "t").filter_completed("commit")[0]
    )
    assert plan is not None
    assert [found["partitionPath"] for found in plan["operations"]] == ["rome"], instant
    # The other partition was not written to lately; who plans by what was written looks there.
    assert plan["missingSchedulePartitions"] == ["oslo"]
    assert rows(table)["k0"] == 51
    assert not table.check(deep=True).findings


def test_partitions_of_archived_commits_wait_for_the_next_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_compaction, "_MAX_LOGS", 12)
    few = {
        "hoodie.clean.commits.retained": 1,
        "hoodie.keep.min.commits": 8,
        "hoodie.keep.max.commits": 9,
        "hoodie.compact.inline.max.delta.commits": 2,
        "hoodie.metadata.compact.max.delta.commits": 1,
    }
    made(tmp_path / "t")
    table = pyhudi.open_table(tmp_path / "t", options=few)
    timeline = timeline_of(tmp_path / "t")
    while not (done := timeline.filter_completed("commit")):
        table.upsert(people(range(1), len(timeline.commits)))
        timeline = timeline_of(tmp_path / "t")
    plan = timeline.plan(done[0])
    assert plan is not None
    assert timeline.archive.commits()
    assert plan["missingSchedulePartitions"] == ["oslo"]


def test_commit_compacts_overgrown_file_group_that_it_appends_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[object] = []
    compact = run_service.compact

    def counting(*args: Any, **options: Any) -> Any:
        searches.append(args)
        return compact(*args, **options)

    monkeypatch.setattr(run_service, "compact", counting)
    monkeypatch.setattr(table_compaction, "_MAX_LOGS", 12)
    table = made(tmp_path / "t")
    commits = 0
    while not timeline_of(tmp_path / "t").filter_completed("commit"):
        table.upsert(people(range(1), 10 + commits))
        commits += 1
    # A commit counts the log files before its own. No earlier commit looked for any.
    assert (commits, len(searches)) == (12, 1)
    assert rows(table)["k0"] == 21


def test_slice_is_overgrown_by_log_count_and_size() -> None:
    def slice_(logs: int, mib: int) -> FileSlice:
        base = BaseFile("p", "g_0-1-0_1.parquet", "g", "1", "0-1-0", mib * MIB)
        files = tuple(
            LogFile("p", f".g_1.log.{n}_0-1-0", "g", "1", n, "0-1-0", "", 9) for n in range(logs)
        )
        return FileSlice("p", "g", "1", base, files)

    found = [
        has_too_many_log_files(slice_(*one)) for one in ((23, 0), (24, 0), (103, 40), (104, 40))
    ]
    assert found == [False, True, False, True]
