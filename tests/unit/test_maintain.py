"""`maintain`: the advice that it uses, the services that it runs, and its budget."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi.admin import maintain, run_service
from pyhudi.admin.health import assess_health
from pyhudi.admin.maintain import Budget, maintain_for_ever, parts
from pyhudi.api.table import HudiTable
from pyhudi.clock import SystemClock
from pyhudi.errors import (
    ConfigError,
    CorruptTable,
    MaintenanceWarning,
    StorageError,
)
from pyhudi.txn.transaction import Transaction
from tests.sim.crash import Handle
from tests.unit.test_compaction import log_files, rows
from tests.unit.test_savepoints import made, people, timeline_of

pytestmark = pytest.mark.in_parts


def logged(base: Path, version: int = 9, commits: int = 9) -> HudiTable:
    table = made(base, version)
    for v in range(3, 3 + commits):
        table.upsert(people(range(2), v))
    return table


@pytest.mark.parametrize("version", [6, 8, 9])
def test_maintain_compacts_log_files_if_worthwhile(version: int, tmp_path: Path) -> None:
    table = logged(tmp_path / "t", version, commits=3)
    assert not [one for one in table.inspect.health().advice if one.service == "compact"]
    for v in range(6, 12):
        table.upsert(people(range(2), v))
    wanted = rows(table)
    health = table.inspect.health()
    (advice,) = (one for one in health.advice if one.service == "compact")
    assert "20 log files" in advice.reason
    assert health.log_files == 20
    assert advice.reason in str(health)
    figures = dict(zip(*health.to_arrow().to_pydict().values(), strict=True))
    assert figures["log_files"] == 20
    assert figures["file_groups"] == 2

    planned = table.maintain(dry_run=True)
    assert planned.done == ()
    assert planned.left == (f"compact: {advice.reason}",)
    assert log_files(table) == 20

    result = table.maintain()
    assert result.before.log_files == 20
    assert result.after.log_files == 0
    assert "compact" in [done.service for done in result.done]
    assert rows(table) == wanted
    assert not table.check(deep=True).findings
    assert "nothing was changed" in str(table.maintain())


@pytest.mark.parametrize(("version", "kind"), [(6, "cow"), (8, "mor"), (9, "cow")])
def test_small_files_are_joined(version: int, kind: str, tmp_path: Path) -> None:
    made(tmp_path / "t", version, kind)
    options = {"hoodie.parquet.small.file.limit": 0}
    table = pyhudi.open_table(tmp_path / "t", options=options)
    for n in range(5):
        table.insert(people(range(10 + n, 30, 5), n))
    wanted = rows(table)
    (advice,) = (one for one in table.inspect.health().advice if one.service == "cluster")
    assert "12 small files" in advice.reason
    result = table.maintain()
    assert (result.before.small_files, result.after.small_files) == (12, 0)
    assert result.after.file_groups == 2
    assert rows(table) == wanted
    assert not table.check(deep=True).findings
    assert "cluster" not in [done.service for done in table.maintain().done]
    table.upsert(people(range(10, 14), 9))
    assert rows(table) == {**wanted, **{f"k{n}": 9 for n in range(10, 14)}}


def test_small_files_of_the_first_commit_are_not_advised_to_be_joined(tmp_path: Path) -> None:
    """Later inserts fill them up."""
    small = {
        "hoodie.copyonwrite.record.size.estimate": "4096",
        "hoodie.parquet.max.file.size": "8192",
    }
    table = pyhudi.create_table(tmp_path / "t", people(range(30), 1), key="id", options=small)
    health = table.inspect.health()
    assert health.small_files > 4
    assert str(health).endswith("no service is needed")
    table = pyhudi.open_table(table.uri)
    table.upsert(people(range(1), 2))
    assert [advice.service for advice in table.inspect.health().advice] == ["cluster"]


@pytest.mark.parametrize("version", [6, 9])
def test_failed_write_is_advised_to_be_rolled_back(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path / "t", version)

    during: list[str] = []

    def commit(self: Transaction, *_: Any) -> str:
        during.append(str(self.instant))
        # Its writer is active.
        assert not pyhudi.open_table(table.uri).inspect.health().advice
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "commit", commit)
        patch.setattr(Transaction, "__exit__", lambda *_: None)
        with pytest.raises(SystemExit):
            table.upsert(people(range(2), 4))
    table = pyhudi.open_table(table.uri)
    health = table.inspect.health()
    (advice,) = health.advice
    assert (advice.service, health.pending) == ("rollback", 1)
    assert f"1 instant of failed writers ({during[0]})" in str(health)
    assert table.maintain(dry_run=True).left == (f"rollback: {advice.reason}",)
    table.maintain()
    assert not table.inspect.health().advice
    assert table.history().to_pylist()[0]["rolled_back"] == during


@pytest.mark.parametrize("version", [6, 8, 9])
def test_maintain_cleans_old_files(version: int, tmp_path: Path) -> None:
    table = logged(tmp_path / "t", version, commits=4)
    options = {"hoodie.clean.commits.retained": 3, "hoodie.clean.automatic": False}
    table = pyhudi.open_table(tmp_path / "t", options=options)
    table.compact()
    for v in range(20, 24):
        table.upsert(people(range(2), v))
    wanted = rows(table)
    health = table.inspect.health()
    assert health.old_files > 0
    assert any(one.service == "clean" for one in health.advice), str(health)
    result = table.maintain()
    assert result.done[0].service == "clean"
    assert result.done[0].files_removed == health.old_files
    assert rows(table) == wanted
    assert not table.check(deep=True).findings
    assert table.inspect.health().commits_since_clean <= 1


def test_buckets_are_not_joined(tmp_path: Path) -> None:
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 8}
    table = pyhudi.create_table(tmp_path / "t", people(range(60), 1), key="id", options=options)
    assert table.inspect.health().small_files == 0
    assert table.inspect.health().advice == ()


def test_maintain_respects_byte_budget(tmp_path: Path) -> None:
    table = logged(tmp_path / "t")
    result = table.maintain("1 KB")
    assert [done.file_groups for done in result.done if done.service == "compact"] == [1]
    assert any("the budget is spent" in left for left in result.left)
    assert table.maintain().after.log_files == 0


def test_maintain_respects_time_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = logged(tmp_path / "t")
    monkeypatch.setattr(maintain, "_UNIT_BYTES", 1)
    real, late = SystemClock.ticks_ms, 0

    def compact(*given: Any, **more: Any) -> Any:
        nonlocal late
        late += 61_000
        return before(*given, **more)

    before = run_service.compact
    monkeypatch.setattr(run_service, "compact", compact)
    monkeypatch.setattr(SystemClock, "ticks_ms", lambda self: real(self) + late)
    result = table.maintain("1m")
    assert [done.file_groups for done in result.done if done.service == "compact"] == [1]
    assert any("the budget is spent" in left for left in result.left)


def test_maintain_executes_pending_plans(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    (instant,) = table.compact(execute=False).scheduled
    assert any("1 pending compaction" in one.reason for one in table.inspect.health().advice)
    result = table.maintain()
    assert instant in [instant for done in result.done for instant in done.instants]
    assert not timeline_of(tmp_path / "t").pending()


def test_budgets() -> None:
    assert Budget.of(None) == Budget()
    assert Budget.of(90) == Budget(seconds=90)
    assert Budget.of("1.5m") == Budget(seconds=90)
    assert Budget.of("2 GiB") == Budget(bytes=2 << 30)
    assert Budget.of("10kb") == Budget(bytes=10_000)
    odd: tuple[Any, ...] = (float("nan"), float("inf"), True, 10**400, [1])
    for wrong in ("", "ten", "5 parsecs", 0, -1, "0s", "0 GiB", f"{10**400}GB", "inf", *odd):
        with pytest.raises(ConfigError, match="neither a duration nor a number of bytes"):
            Budget.of(wrong)


def test_parts_of_an_advice() -> None:
    groups = {("p", "a"): 5, ("p", "b"): 5, ("q", "c"): 20, ("q", "d"): 1}
    found = [sorted(name for _, name in part) for part in parts(groups, 10)]
    assert found == [["a", "b"], ["c"], ["d"]]


def test_maintain_for_ever_repeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged(tmp_path / "t")
    table = pyhudi.open_table(tmp_path / "t")
    waits: list[float] = []
    calls: list[int] = []

    def sleep(_: SystemClock, seconds: float) -> None:
        waits.extend([seconds] * (seconds > 1))
        if len(waits) == 3:
            raise KeyboardInterrupt

    def sometimes(*given: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise StorageError("gone for a moment")
        return assess_health(*given, **more)

    monkeypatch.setattr(SystemClock, "sleep", sleep)
    monkeypatch.setattr(maintain, "assess_health", sometimes)
    with (
        pytest.warns(MaintenanceWarning, match="gone for a moment"),
        pytest.raises(KeyboardInterrupt),
    ):
        table.maintain(every="5m")
    assert waits == [300, 300, 300]
    assert log_files(table) == 0
    with pytest.raises(ConfigError, match="every is not a duration"):
        table.maintain(every="5 MB")
    with pytest.raises(ConfigError, match="every is not a duration"):
        maintain_for_ever(Handle(table.storage, {}), Budget(), Budget())


@pytest.mark.filterwarnings("ignore::pyhudi.errors.MetadataTableWarning")
@pytest.mark.parametrize("version", [6, 9])
def test_maintain_reports_lost_metadata_table_with_hint(version: int, tmp_path: Path) -> None:
    table = made(tmp_path / "t", version)
    wanted = rows(table)
    shutil.rmtree(tmp_path / "t/.hoodie/metadata")
    table = pyhudi.open_table(tmp_path / "t")
    (advice,) = (one for one in table.inspect.health().advice if one.service == "rebuild_metadata")
    assert advice.reason in str(table.inspect.health())
    assert any("rebuild_metadata" in left for left in table.maintain(dry_run=True).left)
    assert any("rebuild_metadata" in left for left in table.maintain().left)
    for work in (lambda: table.upsert(people(range(2), 9)), lambda: table.check(repair=True)):
        with pytest.raises(CorruptTable, match="metadata table is missing") as lost:
            work()
        assert "rebuild_metadata()" in lost.value.hint
    assert rows(table) == wanted
    table.rebuild_metadata()
    assert table.inspect.health().advice == ()
    table.upsert(people(range(2), 9))
    assert table.check(deep=True).ok
