"""A planned service that another writer takes over while the first one publishes it after all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.config.actions import COMPACTION, Instant
from pyhudi.config.file_names import parse_base_name
from pyhudi.errors import AfterCommitError, CommitConflict, StorageError
from pyhudi.slices import markers, write_base
from pyhudi.slices.markers import Marker
from pyhudi.slices.table import Table
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.txn.heartbeat import Heartbeat
from pyhudi.txn.open_instant import OpenInstant
from pyhudi.txn.planned import PlannedTransaction
from pyhudi.write.write_context import WriteContext
from tests.sim.crash import PEOPLE, SMALL_BLOOM, people


@pytest.fixture(params=[6, 8, 9])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made = PEOPLE.make(tmp_path / "t", version=request.param, kind="mor", options=SMALL_BLOOM)
    made.upsert(people(range(4), 1, 1))
    made.refresh().upsert(people([1], 2, 2))
    return made.refresh()


def begun(table: Any) -> tuple[Table, OpenInstant]:
    """A compaction that a writer has begun: its base files are there."""
    (planned,) = table.compact(execute=False).scheduled
    opened = WriteContext.open(pyhudi.open_table(table.uri), SystemClock()).table
    compaction = OpenInstant(opened, planned, COMPACTION)
    compaction.begin()
    return opened, compaction


def test_nothing_is_removed_once_it_is_published(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, compaction = begun(table)
    start, removed = Heartbeat.start, []

    def published(self: Heartbeat) -> None:
        start(self)
        metadata = CommitMetadata({}, operation_type="COMPACT")
        compaction.complete(metadata.encode(opened.config.version, COMPACTION, opened.clock))

    monkeypatch.setattr(Heartbeat, "start", published)
    monkeypatch.setattr(OpenInstant, "back_to_plan", lambda *_: removed.append(1))
    txn = PlannedTransaction(opened, "COMPACT", compaction.time, COMPACTION)
    with pytest.raises(CommitConflict, match="is not pending any more"), txn:
        pass
    assert removed == []
    assert found(table, compaction).is_completed


def test_what_others_have_carried_out_and_archived_is_left(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An inflight file alone would be taken for a failed write, of which files are removed."""
    (planned,) = table.compact(execute=False).scheduled
    opened = WriteContext.open(pyhudi.open_table(table.uri), SystemClock()).table
    begin = OpenInstant.begin

    def late(self: OpenInstant, content: bytes = b"") -> None:
        self.withdraw_request()
        begin(self, content)

    monkeypatch.setattr(OpenInstant, "begin", late)
    txn = PlannedTransaction(opened, "COMPACT", planned, COMPACTION)
    with pytest.raises(CommitConflict, match="is not pending any more"), txn:
        pass
    assert list(Path(table.uri).glob(f".hoodie/**/{planned}*")) == []


def test_a_late_file_of_who_gave_way_bars_nobody(
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


def test_who_comes_late_leaves_no_files(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one has taken the compaction over and completed it (seed 24001983 of v9-mor-bucket).

    In between the first one stood still, and its file names are not those that were completed.
    """
    start, ahead_ms, now_ms = OpenInstant.begin, 0, SystemClock.now_ms
    monkeypatch.setattr(SystemClock, "now_ms", lambda clock: now_ms(clock) + ahead_ms)

    def overtaken(self: OpenInstant, content: bytes = b"") -> None:
        nonlocal ahead_ms
        start(self, content)
        if self.action == COMPACTION and not ahead_ms:
            ahead_ms = 3_600_000
            pyhudi.open_table(table.uri).compact()

    monkeypatch.setattr(OpenInstant, "begin", overtaken)
    with pytest.raises(AfterCommitError, match="complete already by another writer"):
        table.compact()
    assert ahead_ms
    assert not table.refresh().check(deep=True).findings
    assert not list(Path(table.uri).glob(".hoodie/.temp/*"))


def test_who_publishes_finds_that_it_is_complete_already(table: Any) -> None:
    opened, compaction = begun(table)
    metadata = CommitMetadata({}, operation_type="COMPACT")
    content = metadata.encode(opened.config.version, COMPACTION, opened.clock)
    with opened.guard.section():
        own = compaction.complete(content)
    assert not compaction.was_overtaken(own)
    if opened.config.layout.completion_in_name:
        late = opened.generator.next()
        compaction.publish(late, content)
        assert compaction.was_overtaken(late)
        assert compaction.was_overtaken(own)
        compaction.take_publication_back(late)
        assert not compaction.was_overtaken(own)
    else:
        with pytest.raises(CommitConflict):
            compaction.publish(own, content + b" ")


def found(table: Any, compaction: OpenInstant) -> Instant:
    opened = WriteContext.open(pyhudi.open_table(table.uri), SystemClock()).table
    instant = opened.timeline.find(compaction.time, COMPACTION)
    assert instant is not None
    return instant
