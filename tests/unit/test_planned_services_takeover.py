"""A planned service that another writer takes over while the first one publishes it."""

from __future__ import annotations

import os
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.clock import SystemClock
from pyhudi.config.actions import CLUSTERING, COMPACTION, REPLACE_COMMIT, Instant
from pyhudi.config.file_names import parse_base_name
from pyhudi.errors import AfterCommitError, CommitConflict, StorageError
from pyhudi.slices import markers, write_base
from pyhudi.slices.markers import Marker
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.txn import heartbeat
from pyhudi.txn.heartbeat import Heartbeat
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.planned_services import PlannedTransaction
from pyhudi.txn.transaction import Transaction
from pyhudi.write.write_context import WriteContext
from tests.helpers.aged import age
from tests.sim.crash import PEOPLE, SMALL_BLOOM, people


@pytest.fixture(params=[6, 8, 9])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made = PEOPLE.make(tmp_path / "t", version=request.param, kind="mor", options=SMALL_BLOOM)
    made.upsert(people(range(4), 1, 1))
    made.refresh().upsert(people([1], 2, 2))
    return made.refresh()


def begun(table: Any) -> tuple[TableSnapshot, PendingInstant]:
    """A compaction that a writer has begun: its base files are there."""
    (planned,) = table.compact(execute=False).scheduled
    opened = WriteContext.open(pyhudi.open_table(table.uri), SystemClock()).table
    compaction = PendingInstant(opened, planned, COMPACTION)
    compaction.begin()
    return opened, compaction


def test_planned_compaction_removes_nothing_after_publication(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, compaction = begun(table)
    start, removed = Heartbeat.start, []

    def published(self: Heartbeat) -> None:
        start(self)
        metadata = CommitMetadata({}, operation_type="COMPACT")
        compaction.complete(metadata.encode(opened.config.version, COMPACTION, opened.clock))

    monkeypatch.setattr(Heartbeat, "start", published)
    monkeypatch.setattr(PendingInstant, "revert_to_requested", lambda *_: removed.append(1))
    txn = PlannedTransaction(opened, "COMPACT", compaction.time, COMPACTION, force=True)
    with pytest.raises(CommitConflict, match="is not pending any more"), txn:
        pass
    assert removed == []
    assert found(table, compaction).is_completed


def test_planned_compaction_keeps_result_archived_by_other_writer(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An inflight file alone would look like a failed write, whose files are removed."""
    (planned,) = table.compact(execute=False).scheduled
    opened = WriteContext.open(pyhudi.open_table(table.uri), SystemClock()).table
    begin = PendingInstant.begin

    def late(self: PendingInstant, content: bytes = b"") -> None:
        self.withdraw_request()
        begin(self, content)

    monkeypatch.setattr(PendingInstant, "begin", late)
    txn = PlannedTransaction(opened, "COMPACT", planned, COMPACTION)
    with pytest.raises(CommitConflict, match="is not pending any more"), txn:
        pass
    assert list(Path(table.uri).glob(f".hoodie/**/{planned}*")) == []


def test_compaction_ignores_file_of_aborted_attempt(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others had taken the plan over and given it back meanwhile (seed 25018529 of
    v6-mor-bucket-forgets-rings)."""
    rewrite, late = write_base.rewrite_base_file, []

    def fails(*given: Any, **more: Any) -> Any:
        late.append(rewrite(*given, **more))
        raise StorageError("no answer", hint="")

    with monkeypatch.context() as patch:
        patch.setattr(write_base, "rewrite_base_file", fails)
        with pytest.raises(StorageError):
            table.compact()
    path = late[0][0].path
    base = parse_base_name(path.rsplit("/", 1)[-1])
    assert base is not None
    assert not Path(table.uri, path).exists()
    opened = WriteContext.open(pyhudi.open_table(table.uri), SystemClock()).table
    markers.create(opened.storage, base.instant, Marker("", path, "MERGE"))
    Path(table.uri, path).write_bytes(b"half a file")
    assert table.refresh().compact().instants
    assert not table.refresh().check(deep=True).findings
    assert not Path(table.uri, path).exists()


def test_write_retries_after_cancelled_attempt_removed_its_files(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write was planned with them meanwhile (seed 28010372 of v9-mor-bucket-rings, under odds).

    The plan was carried out again with other files, so that its instant is complete.
    """
    (planned,) = table.compact().instants
    start = Transaction.start

    def carried_out_again(txn: Transaction, *given: Any) -> None:
        monkeypatch.setattr(Transaction, "start", start)
        opened = WriteContext.open(pyhudi.open_table(table.uri), SystemClock()).table
        taken_back = PendingInstant(opened, planned, COMPACTION)
        done = found(table, taken_back)
        taken_back.delete_completed_file(done.completed or "")
        assert pyhudi.open_table(table.uri).compact(instant=planned).instants == (planned,)
        start(txn, *given)

    monkeypatch.setattr(Transaction, "start", carried_out_again)
    assert pyhudi.open_table(table.uri).update("v = 2", {"v": "v + 10"}).rows_updated == 1
    values = table.refresh().scan(columns=["v"]).to_arrow()["v"].to_pylist()
    assert sorted(values) == [1, 1, 1, 12]
    assert not table.refresh().check(deep=True).findings


def test_late_executor_leaves_no_files(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one has taken the compaction over and completed it (seed 24001983 of v9-mor-bucket).

    In between the first one stood still, and its file names are not those that were completed.
    """
    start, ahead_ms, now_ms = PendingInstant.begin, 0, SystemClock.now_ms
    monkeypatch.setattr(SystemClock, "now_ms", lambda clock: now_ms(clock) + ahead_ms)

    def overtaken(self: PendingInstant, content: bytes = b"") -> None:
        nonlocal ahead_ms
        start(self, content)
        if self.action == COMPACTION and not ahead_ms:
            ahead_ms = 3_600_000
            pyhudi.open_table(table.uri).compact()

    monkeypatch.setattr(PendingInstant, "begin", overtaken)
    with pytest.raises(AfterCommitError, match="complete already by another writer"):
        table.compact()
    assert ahead_ms
    assert not table.refresh().check(deep=True).findings
    assert not list(Path(table.uri).glob(".hoodie/.temp/*"))


@pytest.mark.parametrize("has_failed", [False, True])
@pytest.mark.parametrize("is_completed", [False, True])
def test_stalled_executor_file_after_marker_is_removed(
    table: Any, monkeypatch: pytest.MonkeyPatch, *, is_completed: bool, has_failed: bool
) -> None:
    """Others have removed the marker, and the file would count once the plan is carried out (seeds
    26004242 and 27005601 of v9-mor-bucket-rings).

    is_completed: they have carried it out; else they failed. has_failed: so does it, after the
    file.
    """
    rewrite, ahead_ms, now_ms = write_base.rewrite_base_file, 0, SystemClock.now_ms
    monkeypatch.setattr(SystemClock, "now_ms", lambda clock: now_ms(clock) + ahead_ms)
    paths = []

    def fails(*_: Any, **__: Any) -> Any:
        raise StorageError("no answer", hint="")

    def stands_still(target: Any, path: str, *given: Any, **more: Any) -> Any:
        nonlocal ahead_ms
        ahead_ms = 3_600_000
        paths.append(path)
        with monkeypatch.context() as patch:
            patch.setattr(write_base, "rewrite_base_file", rewrite if is_completed else fails)
            with nullcontext() if is_completed else pytest.raises(StorageError):
                pyhudi.open_table(table.uri).compact()
        monkeypatch.setattr(write_base, "rewrite_base_file", rewrite)
        written = rewrite(target, path, *given, **more)
        return fails() if has_failed else written

    monkeypatch.setattr(write_base, "rewrite_base_file", stands_still)
    with suppress(CommitConflict, AfterCommitError, StorageError):
        table.compact()
    assert len(paths) == 1
    pyhudi.open_table(table.uri).compact()
    assert not Path(table.uri, paths[0]).exists()
    assert not table.refresh().check(deep=True).findings


def test_executor_detects_completed_plan_at_publication(table: Any) -> None:
    opened, compaction = begun(table)
    metadata = CommitMetadata({}, operation_type="COMPACT")
    content = metadata.encode(opened.config.version, COMPACTION, opened.clock)
    with opened.lock_manager.critical_section():
        own = compaction.complete(content)
    assert not compaction.is_publication_lost(own)
    if opened.config.layout.completion_in_name:
        late = opened.generator.next()
        compaction.publish(late, content)
        assert compaction.is_publication_lost(late)
        assert compaction.is_publication_lost(own)
        compaction.delete_completed_file(late)
        assert not compaction.is_publication_lost(own)
    else:
        with pytest.raises(CommitConflict):
            compaction.publish(own, content + b" ")


def left_alone(table: HudiTable, opened: PendingInstant) -> None:
    """Check that neither an operation nor maintenance takes the service over or cancels it."""
    verb = table.compact if opened.action == COMPACTION else table.cluster
    with pytest.raises(CommitConflict, match=rf"may be executing .* {opened.time}"):
        verb(schedule=False)
    assert any(opened.time in reason for reason in table.refresh().maintain().left)
    assert opened.is_inflight


def test_compaction_without_heartbeat_is_left_while_recent(table: Any) -> None:
    """So Hudi carries it out (0.15.0 and 1.0.2; 1.2.0 where there is one writer)."""
    base = Path(table.uri)
    opened, compaction = begun(table)
    left_alone(table, compaction)
    age(base, compaction.time)
    markers.create(opened.storage, compaction.time, Marker("", "b_1-0-1_1.parquet", "CREATE"))
    left_alone(table, compaction)
    age(base, compaction.time)
    for path in (base / ".hoodie/.temp").rglob("*.marker.*"):
        os.utime(path, (1, 1))
    assert table.refresh().compact(schedule=False).instants == (compaction.time,)


def test_base_file_shows_running_compaction(table: Any) -> None:
    opened, compaction = begun(table)
    age(Path(table.uri), compaction.time)
    plan = opened.reload().timeline.plan(found(table, compaction)) or {}
    partition = plan["operations"][0]["partitionPath"]
    name = f"a-0_1-0-1_{compaction.time}.parquet"
    opened.storage.put(f"{partition}/{name}" if partition else name, b"half")
    left_alone(table, compaction)


def test_named_compaction_is_taken_over_immediately(table: Any) -> None:
    _, compaction = begun(table)
    assert table.compact(instant=compaction.time).instants == (compaction.time,)
    assert not table.refresh().check(deep=True).findings


def test_expired_heartbeat_shows_idle_compaction(table: Any) -> None:
    """But not that of an attempt before."""
    opened, compaction = begun(table)
    opened.storage.put(heartbeat.path_of(compaction.time), b"")
    beat = Path(table.uri, heartbeat.path_of(compaction.time))
    now = SystemClock().now_ms() / 1000
    os.utime(beat, (now - 600, now - 600))
    left_alone(table, compaction)
    for path in Path(table.uri).rglob(f"{compaction.time}.*"):
        os.utime(path, (now - 650, now - 650))
    assert table.refresh().compact(schedule=False).instants == (compaction.time,)


@pytest.mark.parametrize("version", [6, 9])
def test_clustering_without_heartbeat_is_left_while_recent(version: int, tmp_path: Path) -> None:
    base = tmp_path / "t"
    options = {**SMALL_BLOOM, "hoodie.parquet.small.file.limit": 0}
    table = PEOPLE.make(base, version=version, kind="cow", options=options)
    table.insert(people(range(4), 1, 1))
    table.insert(people(range(4, 8), 1, 1))
    (planned,) = table.cluster(execute=False).scheduled
    opened = WriteContext.open(pyhudi.open_table(base), SystemClock()).table
    action = REPLACE_COMMIT if version == 6 else CLUSTERING
    clustering = PendingInstant(opened, planned, action)
    clustering.begin()
    left_alone(table.refresh(), clustering)
    age(base, planned)
    assert table.refresh().cluster(schedule=False).instants == (planned,)


def found(table: Any, compaction: PendingInstant) -> Instant:
    opened = WriteContext.open(pyhudi.open_table(table.uri), SystemClock()).table
    instant = opened.timeline.find(compaction.time, COMPACTION)
    assert instant is not None
    return instant
