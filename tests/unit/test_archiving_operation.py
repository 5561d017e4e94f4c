"""`archive()`: what leaves the active timeline, what keeps it there; nothing is forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.clock import SystemClock
from pyhudi.config.actions import CLEAN, COMMIT_ACTIONS, REPLACE_COMMIT, ROLLBACK
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict, UnsupportedTableFeature
from pyhudi.services import archiving
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline, archive_log_write
from pyhudi.txn.conflicts import commits_since_plan
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.write.table_opening import open_for_change
from tests.helpers.pairwise import pairwise
from tests.sim.crash import Handle
from tests.unit.test_savepoints import people, timeline_of

pytestmark = pytest.mark.in_parts

CASES = pairwise((6, 8, 9), ("cow", "mor"))
OPTIONS = {
    "hoodie.metadata.compact.max.delta.commits": "2",
    "hoodie.clean.commits.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}


def written(base: Path, version: int = 9, kind: str = "mor", commits: int = 8) -> HudiTable:
    """A table of two partitions whose metadata table is compacted again and again."""
    pyhudi.create_table(
        base, people(range(4), 0), key="id", partition_by="city", order_by="v",
        type="mor" if kind == "mor" else "cow", version=version,
    )  # fmt: skip
    table = pyhudi.open_table(str(base), options=OPTIONS)
    for v in range(1, commits):
        table.upsert(people(range(2), v))
    return table


def known(base: Path) -> set[tuple[str, str]]:
    """Completed instants, active or archived."""
    timeline = timeline_of(base)
    return {(one.requested, one.action) for one in timeline.filter_completed()} | {
        (one.requested, one.action) for one in timeline.archive.instants()
    }


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_archive_moves_oldest_instants_and_keeps_history(
    version: int, kind: str, tmp_path: Path
) -> None:
    base = tmp_path / "t"
    table = written(base, version, kind)
    table.overwrite(people(range(4), 20))
    table.upsert(people(range(2), 21))
    table.upsert(people(range(2), 22))
    table.clean()
    for v in range(23, 30):
        table.upsert(people(range(2), v))
    held = pyhudi.open_table(str(base))
    before, rows = known(base), table.scan().to_arrow().sort_by("id")
    commits = timeline_of(base).commits
    looked = table.archive(min_commits=3, max_commits=4, dry_run=True)
    assert known(base) == before
    assert timeline_of(base).commits == commits
    done = table.archive(min_commits=3, max_commits=4)
    assert done.instants == looked.instants
    assert len(done.instants) >= 10
    after = timeline_of(base)
    assert {one.requested for one in after.archive.instants()} == set(done.instants)
    assert known(base) == before
    assert len(after.commits) == 3
    assert min(commit.requested for commit in after.commits) > max(done.instants)
    assert table.scan().to_arrow().sort_by("id") == rows
    found = table.check(deep=True)
    assert found.ok, str(found)
    # What was archived says what it said: an overwrite and a clean too.
    actions = {one.action for one in after.archive.instants()}
    assert actions >= {REPLACE_COMMIT} | ({CLEAN} if version != 6 else set())
    for one in after.archive.instants():
        if one.action in COMMIT_ACTIONS:
            assert after.archive.commit_metadata(one).operation_type
    # A handle from before, and writers, go on.
    assert held.scan().to_arrow().num_rows == 4
    held.upsert(people(range(4), 40))
    assert set(table.refresh().scan().to_arrow()["v"].to_pylist()) == {40}
    assert table.archive(min_commits=3, max_commits=4).instants == ()


def test_archive_works_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "t"
    table = written(base, kind="cow", commits=16)
    before = known(base)
    monkeypatch.setattr(archiving, "_MAX_PER_SECTION", 4)
    done = table.archive(min_commits=3, max_commits=4)
    assert len(done.instants) > 8
    assert len(timeline_of(base).commits) == 3
    assert known(base) == before
    assert table.check(deep=True).ok


def test_archive_lists_long_timeline_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "t"
    table = written(base, kind="cow", commits=16)
    monkeypatch.setattr(archiving, "_MAX_PER_SECTION", 1)
    monkeypatch.setattr(archiving, "_MAX_SECTIONS", 3)
    listed = []
    load = Timeline.load

    def counted(storage: Storage, config: TableConfig) -> Timeline:
        listed.append(storage.uri)
        return load(storage, config)

    monkeypatch.setattr(Timeline, "load", counted)
    assert len(table.archive(min_commits=3, max_commits=4).instants) > 8
    # To look at it, once in each section, and to see what came of it.
    assert listed.count(str(base)) <= 3 + 3


def test_archive_does_nothing_below_maximum(tmp_path: Path) -> None:
    table = written(tmp_path / "t", commits=5)
    done = table.archive()
    assert (done.instants, done.left) == ((), ())


def test_archive_reports_what_keeps_instants(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = written(base, kind="cow")
    first = timeline_of(base).commits[0].requested
    table.savepoint(instant=first)
    done = table.archive(min_commits=2, max_commits=3)
    assert done.instants == ()
    assert done.left == (f"the commit {first} has a savepoint",)
    health = str(table.inspect.health())
    assert "archive" not in health


def test_archive_skips_instants_readers_would_not_count(tmp_path: Path) -> None:
    base = tmp_path / "t"
    written(base, kind="cow")
    beyond = {**OPTIONS, "hoodie.archive.beyond.savepoint": True}
    with pytest.raises(UnsupportedTableFeature, match=r"beyond\.savepoint"):
        pyhudi.open_table(str(base), options=beyond).archive()


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_archived_instants_count_as_committed_behind_savepoints(
    version: int, kind: Literal["cow", "mor"], tmp_path: Path
) -> None:
    """Hudi 0.15.0, 1.0.2 and 1.2.0 read them so."""
    base = tmp_path / "t"
    rows = [people(range(n, n + 1), 0) for n in range(8)]
    table = pyhudi.create_table(base, rows[0], key="id", type=kind, version=version)
    table = pyhudi.open_table(base, options={**OPTIONS, "hoodie.parquet.small.file.limit": "0"})
    for row in rows[1:]:
        table.insert(row)
    saved = {commit.requested for commit in timeline_of(base).commits[-3:]}
    for commit in saved:
        table.savepoint(instant=commit)
    table.archive(min_commits=1, max_commits=2)
    assert {commit.requested for commit in timeline_of(base).commits} == saved
    for listed in ("true", "false"):
        options = {"hoodie.metadata.enable": listed}
        assert pyhudi.open_table(base, options=options).scan().count() == 8
    table.upsert(rows[0])
    assert pyhudi.open_table(base).scan().count() == 8


@pytest.mark.parametrize("version", [6, 9])
def test_archive_behind_savepoint_loses_no_commit(version: int, tmp_path: Path) -> None:
    """As Hudi archives with `hoodie.archive.beyond.savepoint`."""
    base = tmp_path / "t"
    table = written(base, version, kind="cow")
    table.savepoint(instant=timeline_of(base).commits[0].requested)
    folder = base / timeline_of(base).folder
    first = min(path.name[:17] for path in folder.iterdir() if path.name[:17].isdigit())
    kept = {path: path.read_bytes() for path in folder.glob(f"{first}*")}
    table.delete_savepoint(first)
    table.insert(people(range(9, 10), 0))
    archived = timeline_of(base).commits[-1].requested
    table.upsert(people(range(1), 10))
    table.upsert(people(range(1), 11))
    assert archived in table.archive(min_commits=1, max_commits=2).instants
    assert pyhudi.open_table(base).scan().count() == 5
    for path, data in kept.items():
        path.write_bytes(data)
    with pytest.raises(UnsupportedTableFeature, match=r"beyond\.savepoint"):
        pyhudi.open_table(base).scan().count()


@pytest.mark.parametrize("version", [6, 9])
def test_write_retries_after_concurrent_archive_behind_savepoint(
    version: int, tmp_path: Path
) -> None:
    base = tmp_path / "t"
    table = written(base, version, kind="cow", commits=1)
    table.savepoint()
    folder = base / timeline_of(base).folder
    kept = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    seen = open_for_change(Handle(Storage(str(base)), OPTIONS), SystemClock())
    table.delete_savepoint(seen.timeline.commits[0].requested)
    for v in range(1, 8):
        table.upsert(people(range(2), v))
    assert len(table.archive(min_commits=1, max_commits=2).instants) > 1
    for path, data in kept.items():
        path.write_bytes(data)
    now = Timeline.load(seen.storage, seen.config)
    assert now.first_active == seen.timeline.first_active
    with pytest.raises(CommitConflict, match="archived past"):
        commits_since_plan(seen, now, "2")
    late = open_for_change(Handle(Storage(str(base)), OPTIONS), SystemClock())
    assert commits_since_plan(late, now, "2").commits == ()


@pytest.mark.parametrize("version", [6, 9])
def test_archive_waits_for_clean_of_replaced_files(version: int, tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = written(base, version, "cow", commits=5)
    table.overwrite(people(range(4), 20))
    replaced = timeline_of(base).filter_completed(REPLACE_COMMIT)[0]
    for v in range(21, 27):
        table.upsert(people(range(2), v))
    done = table.archive(min_commits=3, max_commits=4)
    assert done.left == (f"no clean has deleted the files that {replaced} replaced",)
    assert replaced.requested not in done.instants
    assert table.scan().to_arrow().num_rows == 4
    # A clean that died when its files were gone: the metadata table names them still.
    opened = open_for_change(Handle(Storage(str(base)), OPTIONS), SystemClock())
    PendingInstant(opened, opened.generator.next(), CLEAN).request(b"")
    assert "clean" in table.archive(min_commits=3, max_commits=4, dry_run=True).left[0]


def test_archive_waits_for_metadata_compaction(tmp_path: Path) -> None:
    base = tmp_path / "t"
    pyhudi.create_table(base, people(range(4), 0), key="id", order_by="v")
    table = pyhudi.open_table(
        str(base), options=OPTIONS | {"hoodie.metadata.compact.max.delta.commits": "50"}
    )
    for v in range(1, 6):
        table.upsert(people(range(2), v))
    done = table.archive(min_commits=2, max_commits=3)
    assert (done.instants, done.left) == ((), ("the metadata table has not been compacted yet",))


def test_archive_works_without_metadata_table(tmp_path: Path) -> None:
    base = tmp_path / "t"
    off = {**OPTIONS, "hoodie.metadata.enable": False}
    pyhudi.create_table(base, people(range(4), 0), key="id", order_by="v", options=off)
    table = pyhudi.open_table(str(base), options=off)
    for v in range(1, 6):
        table.upsert(people(range(2), v))
    assert len(table.archive(min_commits=2, max_commits=3).instants) == 4
    assert table.check(deep=True).ok


def test_archive_runs_inline_after_commits(tmp_path: Path) -> None:
    base = tmp_path / "t"
    written(base, kind="cow", commits=3)
    options = {
        **OPTIONS,
        "hoodie.archive.automatic": True,
        "hoodie.clean.automatic": True,
        "hoodie.keep.min.commits": "4",
        "hoodie.keep.max.commits": "6",
    }
    table = pyhudi.open_table(str(base), options=options)
    lengths = []
    for v in range(10, 30):
        table.upsert(people(range(2), v))
        lengths.append(len(timeline_of(base).commits))
    assert max(lengths) <= 6
    assert len(timeline_of(base).archive.commits()) >= 15
    assert table.check(deep=True).ok


def test_maintain_archives(tmp_path: Path) -> None:
    base = tmp_path / "t"
    written(base, kind="cow", commits=10)
    more = {**OPTIONS, "hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}
    table = pyhudi.open_table(str(base), options=more)
    assert "archive" in {advice.service for advice in table.inspect.health().advice}
    done = table.maintain()
    assert "archive" in {one.service for one in done.done}
    assert done.after.active_instants < done.before.active_instants
    assert len(timeline_of(base).commits) == 3


def test_archive_removes_rolled_back_writes(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = written(base, 9, "cow", commits=4)
    table.rollback(timeline_of(base).commits[-1].requested)
    for v in range(21, 27):
        table.upsert(people(range(2), v))
    table.archive(min_commits=3, max_commits=4)
    timeline = timeline_of(base)
    assert timeline.filter_completed(ROLLBACK) == ()
    assert ROLLBACK in {one.action for one in timeline.archive.instants()}


@pytest.mark.parametrize("version", [6, 9])
def test_savepoint_files_are_readable_after_archive_of_earlier_commits(
    version: int, tmp_path: Path
) -> None:
    table = written(tmp_path / "t", version, "cow", commits=3)
    table.savepoint("kept")
    for v in range(3, 8):
        table.upsert(people(range(2), v))
    assert table.archive(min_commits=2, max_commits=3).instants
    found = table.check(deep=True)
    assert found.ok, str(found)


def test_archive_tolerates_stalled_archiver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stalled while it archived the same instants, and lost its lock."""
    base = tmp_path / "t"
    table = written(base, version=6, kind="cow")
    make = archive_log_write._records

    def made(*given: Any) -> Any:
        min(base.glob(".hoodie/*.inflight")).unlink()
        return make(*given)

    monkeypatch.setattr(archive_log_write, "_records", made)
    with pytest.raises(
        CommitConflict, match=r"has archived concurrently: \d+\.inflight is missing"
    ):
        table.archive(min_commits=2, max_commits=3)
    assert table.refresh().scan().count() == 4
