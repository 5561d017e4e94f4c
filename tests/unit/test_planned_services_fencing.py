"""Service plans of a writer that paused during the request and lost the lock."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.config.actions import CLUSTERING
from pyhudi.config.lock_options import CONFLICT_RETRIES
from pyhudi.errors import CommitConflict, retryable_conflict
from pyhudi.slices.compaction_plan import compaction_plan
from pyhudi.table.locking import NoLock
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import serde
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.transaction import Transaction
from pyhudi.write.write_context import WriteContext
from tests.sim.crash import PEOPLE, SMALL_BLOOM, people, values_read

LATER = "20990101000000000"
NOTHING = serde.encode_container("HoodieCompactionPlan", compaction_plan([]), SystemClock())


class Lost(NoLock):
    """A lock that is lost after some checks; the first one is the last before the request."""

    def __init__(self, after: int = 1) -> None:
        self.left = after

    def check_held(self, within_ms: int = 0) -> None:
        self.left -= 1
        if self.left < 0:
            raise retryable_conflict("the lock was taken")


@pytest.fixture(params=[6, 8, 9])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made = PEOPLE.make(tmp_path / "t", version=request.param, kind="mor", options=SMALL_BLOOM)
    made.upsert(people(range(4), 1, 1))
    return made.refresh()


def opened(table: Any, action: str, after: int = 1) -> tuple[TableSnapshot, PendingInstant]:
    found = replace(WriteContext.open(table, SystemClock()).table, lock_manager=Lost(after))
    return found, PendingInstant(found, LATER, action)


def requested(table: Any) -> list[Path]:
    return list(Path(table.uri).glob(f".hoodie/**/{LATER}*"))


@pytest.mark.parametrize("action", ["compaction", "clean", "clustering"])
def test_plan_is_withdrawn_after_concurrent_commit(table: Any, action: str) -> None:
    found, instant = opened(table, action)
    pyhudi.open_table(table.uri).upsert(people([1], 2, 2))
    with pytest.raises(CommitConflict, match="the lock was taken"):
        instant.request_planned(NOTHING, found.timeline)
    assert requested(table) == []


class Meanwhile(Lost):
    """A lock that is lost while another writer works, once the requested file exists."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self.act = act

    def check_held(self, within_ms: int = 0) -> None:
        if self.left == 0:
            self.act()
        super().check_held(within_ms)


@pytest.mark.parametrize("with_others", [False, True])
def test_compaction_others_depend_on_is_kept(table: Any, *, with_others: bool) -> None:
    """Up to version 6 their log files bear its instant (seed 25351097, where they were lost).

    with_others: some went on before it was there, too.
    """
    table.upsert(people(range(4), 2, 2))
    (planned,) = table.refresh().compact(execute=False).scheduled
    (file,) = Path(table.uri).glob(f".hoodie/**/{planned}.compaction.requested")
    plan = file.read_bytes()
    file.unlink()
    lock_manager = Meanwhile(lambda: pyhudi.open_table(table.uri).upsert(people([1], 4, 4)))
    found = replace(WriteContext.open(table, SystemClock()).table, lock_manager=lock_manager)
    if with_others:
        pyhudi.open_table(table.uri).upsert(people([0], 3, 3))
    stays = table.config.version.logs_named_by_base_instant
    with nullcontext() if stays else pytest.raises(CommitConflict):
        PendingInstant(found, planned, "compaction").request_planned(plan, found.timeline)
    assert len(table.refresh().state.timeline.pending_compactions) == stays
    rows = {"k00": 3 if with_others else 2, "k01": 4, "k02": 2, "k03": 2}
    assert values_read(Path(table.uri)) == rows
    pyhudi.open_table(table.uri).compact()
    assert values_read(Path(table.uri)) == rows
    assert table.check(deep=True).findings == ()


def test_write_is_retried_after_concurrent_plan_is_withdrawn(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.upsert(people(range(4), 2, 2))
    (planned,) = table.refresh().compact(execute=False).scheduled
    (file,) = Path(table.uri).glob(f".hoodie/**/{planned}.compaction.requested")
    commit = Transaction.commit

    def commits(*given: Any) -> str:
        file.unlink(missing_ok=True)
        return commit(*given)

    monkeypatch.setattr(Transaction, "commit", commits)
    never = pyhudi.open_table(table.uri, options={CONFLICT_RETRIES: "0"})
    with pytest.raises(CommitConflict, match=planned):
        never.upsert(people([1], 3, 3))
    pyhudi.open_table(table.uri).upsert(people([1], 3, 3))
    pyhudi.open_table(table.uri).compact()
    assert values_read(Path(table.uri)) == {"k00": 2, "k01": 3, "k02": 2, "k03": 2}


def test_plan_is_kept_without_concurrent_commit(table: Any) -> None:
    found, instant = opened(table, "compaction")
    instant.request_planned(b"plan", found.timeline)
    assert [file.read_bytes() for file in requested(table)] == [b"plan"]


def test_plan_of_failed_writer_without_commit_is_withdrawn(table: Any, tmp_path: Path) -> None:
    """The planner stalled, and failed before its second check (seed 13000059, without it)."""
    table.upsert(people(range(4), 2, 2))
    (planned,) = table.refresh().compact(execute=False).scheduled
    (file,) = Path(table.uri).glob(f".hoodie/**/{planned}.compaction.requested")
    kept = file.rename(tmp_path / file.name)
    pyhudi.open_table(table.uri).upsert(people([1], 3, 3))
    kept.rename(file)
    with suppress(CommitConflict):
        pyhudi.open_table(table.uri).compact()
    pyhudi.open_table(table.uri).compact()
    assert values_read(Path(table.uri)) == {"k00": 2, "k01": 3, "k02": 2, "k03": 2}


def test_request_fails_after_lock_loss(table: Any) -> None:
    found, instant = opened(table, "compaction", after=0)
    with pytest.raises(CommitConflict):
        instant.request_planned(b"plan", found.timeline)
    assert requested(table) == []


def test_restarted_clustering_without_plan_is_handled(tmp_path: Path) -> None:
    """A stalled writer created its inflight file after others executed it (seed 27002358)."""
    table = PEOPLE.make(tmp_path, version=9)
    table.upsert(people(range(4), 1, 1))
    opened(table.refresh(), CLUSTERING)[1].begin()
    assert not pyhudi.open_table(tmp_path).cluster(dry_run=True).files_read
    (left,) = pyhudi.open_table(tmp_path).cluster(schedule=False).left
    assert "has no plan" in left
    assert values_read(tmp_path) == dict.fromkeys(["k00", "k01", "k02", "k03"], 1)


def test_log_compaction_waits_for_writes_that_may_start_log_files(table: Any) -> None:
    """Up to version 6: one that dies takes them along, and the plan names them (seed 27002393)."""
    for value in range(2, 5):
        table.upsert(people(range(4), value, value))
    context = WriteContext.open(table.refresh(), SystemClock())
    by_slice = table.config.version.logs_named_by_base_instant
    with Transaction(context.table, "UPSERT") as txn:
        txn.start(None)
        beside = pyhudi.open_table(table.uri)
        done = beside.log_compact(min_log_files=2, execute=False)
        assert bool(done.scheduled) != by_slice
        assert [txn.instant in reason for reason in done.left] == [True] * by_slice
        txn.withdraw()
    assert len(pyhudi.open_table(table.uri).log_compact(min_log_files=2).instants) == 1
    assert values_read(Path(table.uri)) == dict.fromkeys(["k00", "k01", "k02", "k03"], 4)
