"""Services after a commit: by which options, in which order, and what happens when they fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.config.actions import COMMIT, COMPACTION
from pyhudi.errors import (
    AfterCommitWarning,
    CommitConflict,
    ConfigError,
    InterruptedAfterCommit,
)
from pyhudi.services import cleaning, table_compaction
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.txn.pending_instant import PendingInstant
from tests.helpers.aged import age
from tests.unit.test_compaction import log_files, rows
from tests.unit.test_savepoints import made, people, timeline_of

pytestmark = pytest.mark.in_parts

INLINE = {
    "hoodie.compact.inline": True,
    "hoodie.compact.inline.max.delta.commits": 2,
}


@pytest.mark.parametrize("version", [6, 8, 9])
def test_inline_compaction_runs_after_max_delta_commits(version: int, tmp_path: Path) -> None:
    made(tmp_path / "t", version)
    table = pyhudi.open_table(tmp_path / "t", options=INLINE)
    logs = []
    for v in range(3, 8):
        table.upsert(people(range(2), v))
        logs.append(log_files(table))
        assert rows(table) == {"k0": v, "k1": v, "k2": 1, "k3": 1}
    operations = table.history()["operation"].to_pylist()
    assert operations.count("COMPACT") == 3
    assert logs == [0, 2, 0, 2, 0]
    assert not table.check(deep=True).findings


def test_inline_clustering_runs_after_max_commits(tmp_path: Path) -> None:
    made(tmp_path / "t", kind="cow")
    options = {
        "hoodie.clustering.inline": True,
        "hoodie.clustering.inline.max.commits": 3,
        "hoodie.parquet.small.file.limit": 0,
    }
    table = pyhudi.open_table(tmp_path / "t", options=options)
    groups = []
    for n in range(5):
        table.insert(people(range(10 * n, 10 * n + 2), n))
        groups.append(table.inspect.slices().num_rows)
    assert groups == [2, 4, 6, 2, 4]
    assert table.history()["operation"].to_pylist().count("CLUSTER") == 2


@pytest.mark.parametrize(("version", "kind"), [(6, "cow"), (8, "mor"), (9, "cow")])
def test_inline_cleaning_runs_if_enabled(version: int, kind: str, tmp_path: Path) -> None:
    made(tmp_path / "t", version, kind)
    options = {
        "hoodie.clean.automatic": True,
        "hoodie.clean.commits.retained": 2,
        "hoodie.compact.inline": kind == "mor",
        "hoodie.compact.inline.max.delta.commits": 1,
    }
    table = pyhudi.open_table(tmp_path / "t", options=options)
    for v in range(3, 12):
        table.upsert(people(range(2), v))
    assert rows(table) == {"k0": 11, "k1": 11, "k2": 1, "k3": 1}
    assert len(list((tmp_path / "t" / "rome").glob("*.parquet"))) <= 4
    assert "clean" in table.inspect.timeline()["action"].to_pylist()
    assert not table.check(deep=True).findings


def test_inline_services_can_plan_only(tmp_path: Path) -> None:
    made(tmp_path / "t")
    options = {**INLINE, "hoodie.compact.inline": False, "hoodie.compact.schedule.inline": True}
    table = pyhudi.open_table(tmp_path / "t", options=options)
    for v in range(3, 8):
        table.upsert(people(range(2), v))
    assert len(timeline_of(tmp_path / "t").pending(COMPACTION)) == 1
    assert len(table.compact(schedule=False).instants) == 1


def test_inline_services_need_options(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    for options in ({}, {**INLINE, "hoodie.table.services.enabled": "false"}):
        table = pyhudi.open_table(tmp_path / "t", options=options)
        for v in range(3, 10):
            table.upsert(people(range(2), v))
    assert log_files(table) == 30
    both = {"hoodie.compact.inline": True, "hoodie.compact.schedule.inline": True}
    with pytest.raises(ConfigError, match="both true"):
        pyhudi.open_table(tmp_path / "t", options=both)


def test_inline_service_failure_keeps_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "t", kind="cow")
    table = pyhudi.open_table(tmp_path / "t")

    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("no such hour")

    monkeypatch.setattr(cleaning, "is_due", fail)
    with pytest.warns(AfterCommitWarning, match="services after it is left .* no such hour"):
        done = table.upsert(people(range(2), 5))
    assert done.committed
    assert rows(table) == {"k0": 5, "k1": 5, "k2": 1, "k3": 1}


@pytest.mark.parametrize("hours", [20_000_000, 10**9, 10**17])
@pytest.mark.parametrize("version", [6, 9])
def test_clean_by_hours_keeps_all_within_range(version: int, hours: int, tmp_path: Path) -> None:
    made(tmp_path / "t", version, "cow")
    options = {
        "hoodie.clean.policy": "KEEP_LATEST_BY_HOURS",
        "hoodie.clean.hours.retained": hours,
        "hoodie.keep.min.commits": 2,
        "hoodie.keep.max.commits": 3,
    }
    table = pyhudi.open_table(tmp_path / "t", options=options)
    for v in range(3, 8):
        table.upsert(people(range(2), v))
    assert table.clean().files_removed == 0
    assert table.archive().instants == ()
    first = table.inspect.commits()["requested"][0].as_py()
    assert table.scan(as_of=first).count() == 4


def test_commit_succeeds_whatever_services_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "t")
    table = pyhudi.open_table(tmp_path / "t", options=INLINE)

    def fail(*_: Any, **__: Any) -> None:
        raise raised

    raised: BaseException = OSError("no room")
    with monkeypatch.context() as patched:
        patched.setattr(table_compaction, "_execute", fail)
        with pytest.warns(AfterCommitWarning, match="compaction after it is left .* no room"):
            done = table.upsert(people(range(2), 5))
        assert done.committed
        raised = KeyboardInterrupt()
        with pytest.raises(InterruptedAfterCommit):
            table.upsert(people(range(2), 6))
    assert rows(table) == {"k0": 6, "k1": 6, "k2": 1, "k3": 1}
    table.upsert(people(range(2), 7))
    assert not timeline_of(tmp_path / "t").pending()
    assert rows(table) == {"k0": 7, "k1": 7, "k2": 1, "k3": 1}


def test_service_of_faster_writer_is_no_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made(tmp_path / "t")
    table = pyhudi.open_table(tmp_path / "t", options=INLINE)

    def gives_way(*_: Any, **__: Any) -> None:
        raise CommitConflict("the timeline already has it")

    monkeypatch.setattr(table_compaction, "_execute", gives_way)
    with caplog.at_level("INFO", "pyhudi"):
        assert table.upsert(people(range(2), 5)).committed
    assert "compaction aborted: the timeline already has it" in caplog.text


def commits(table: HudiTable, number: int) -> None:
    for v in range(number):
        table.upsert(people(range(2), 10 + v))
    table.refresh()


@pytest.mark.parametrize("version", [6, 9])
def test_automatic_compaction_leaves_no_plan(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer fails; otherwise no later instant would be cleaned or archived."""

    def dies(_: object, __: object, table: TableSnapshot, instant: str, **___: Any) -> None:
        PendingInstant(table, instant, COMPACTION).begin()
        raise CommitConflict("as if killed")

    monkeypatch.setattr(table_compaction, "_MAX_LOGS", 4)
    table = made(tmp_path / "t", version)
    with monkeypatch.context() as patch:
        patch.setattr(table_compaction, "_execute", dies)
        commits(table, 8)
    (left,) = timeline_of(tmp_path / "t").pending_compactions
    age(tmp_path / "t", left.requested)
    commits(table, 8)
    timeline = timeline_of(tmp_path / "t")
    assert not timeline.pending_compactions
    assert left.requested in {instant.requested for instant in timeline.filter_completed(COMMIT)}
    assert rows(table) == {"k0": 17, "k1": 17, "k2": 1, "k3": 1}


def test_automatic_compaction_leaves_foreign_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_compaction, "_MAX_LOGS", 4)
    table = made(tmp_path / "t")
    planned = table.compact(execute=False).scheduled
    commits(table, 16)
    pending = timeline_of(tmp_path / "t").pending_compactions
    assert tuple(instant.requested for instant in pending) == planned
