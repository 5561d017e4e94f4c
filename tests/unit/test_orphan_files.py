"""Later writes remove orphan files of failed writers, by age or by instant.

A handle searches once a minute.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.clock import format_instant, parse_instant
from pyhudi.config.actions import COMMIT, DELTA_COMMIT, ROLLBACK
from pyhudi.config.lock_options import CONFLICT_RETRIES
from pyhudi.errors import CommitConflict
from pyhudi.metadata.log_file_writer import write_group
from pyhudi.metadata.reader import open_config
from pyhudi.slices import markers
from pyhudi.slices.log_blocks import block_instants
from pyhudi.slices.markers import Marker
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline, instant_files
from pyhudi.txn import attempt_files, orphan_files, recovery, rollback
from pyhudi.txn.orphan_files import OLD_MS
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.transaction import Transaction
from tests.helpers.table_builder import TableBuilder
from tests.sim.crash import leftovers
from tests.sim.interrupting_storage import StandingClock

TABLE = TableBuilder(
    {"id": (pa.string(), str), "p": (pa.string(), "x"), "v": (pa.int64(), 1)},
    partition_by="p",
    first="a",
)
ROWS = TABLE.rows("a")
ONCE = {CONFLICT_RETRIES: "0"}


def dies(*_: object, **__: object) -> None:
    raise CommitConflict("nobody takes it back")


def write_and_die(base: Path, monkeypatch: pytest.MonkeyPatch, verb: str = "upsert") -> None:
    """Write all files, and neither complete the write nor roll it back."""
    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "_check_before_publish", dies)
        patch.setattr(Transaction, "_finish", dies)
        writer = pyhudi.open_table(base, options=ONCE)
        with pytest.raises(CommitConflict):
            getattr(writer, verb)(ROWS)


def end_heartbeats(base: Path) -> None:
    """Expire the heartbeats of failed writers."""
    for path in base.glob(".hoodie/.heartbeat/*"):
        path.unlink()


def roll_back_and_die(base: Path, monkeypatch: pytest.MonkeyPatch, where: Any, step: str) -> None:
    """Begin to roll a failed write back, up to a step."""
    end_heartbeats(base)
    with monkeypatch.context() as patch:
        patch.setattr(where, step, dies)
        with pytest.raises(CommitConflict):
            pyhudi.open_table(base, options=ONCE).upsert(ROWS)


def left(base: Path, name: str, *, old: bool) -> Path:
    path = base / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((base / ".hoodie/hoodie.properties").read_bytes())
    if old:
        then = path.stat().st_mtime - OLD_MS / 1000 - 1
        os.utime(path, (then, then))
    return path


@pytest.mark.parametrize("version", [6, 9])
def test_old_orphan_files_are_removed_and_recent_ones_kept(tmp_path: Path, version: int) -> None:
    table = TABLE.make(tmp_path, version=version)
    folder = table.config.timeline_path
    own = ".hoodie/metadata/" + folder
    names = [
        f"{folder}/20240101000000000.commit.requested.71-3.tmp",
        f"{own}/20240101000000000.deltacommit.71-3.tmp",
        ".hoodie/hoodie.properties.71-4.tmp",
        ".hoodie/hoodie.properties.backup",
        ".hoodie/.heartbeat/20240101000000000",
    ]
    young = [left(tmp_path, name, old=False) for name in names]
    table.upsert(ROWS)
    assert [path for path in young if not path.exists()] == []
    old = [left(tmp_path, name, old=True) for name in names]
    before = (tmp_path / ".hoodie/hoodie.properties").read_bytes()
    table.upsert(ROWS)
    assert old[0].exists()
    pyhudi.open_table(tmp_path).upsert(ROWS)
    assert [path for path in old if path.exists()] == []
    assert (tmp_path / ".hoodie/hoodie.properties").read_bytes() == before
    assert table.scan().count() == 1


def test_files_of_other_names_stay(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path)
    names = ["notes.tmp", "a.1-2.tmp.txt", "20240101000000000.commit.requested.uuid"]
    others = [left(tmp_path, f".hoodie/timeline/{name}", old=True) for name in names]
    table.upsert(ROWS)
    assert [path for path in others if not path.exists()] == []


def test_orphan_backup_restores_missing_properties(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path)
    backup = left(tmp_path, ".hoodie/hoodie.properties.backup", old=True)
    (tmp_path / ".hoodie/hoodie.properties").unlink()
    pyhudi.open_table(tmp_path).upsert(ROWS)
    assert not backup.exists()
    assert table.refresh().scan().count() == 1


def rows_of(table: HudiTable) -> list[dict[str, Any]]:
    found = table.refresh().scan(columns=["id", "v"]).to_arrow()
    return sorted(found.to_pylist(), key=str)


def test_torn_log_file_of_plan_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its writer failed in the first block; then a clustering was planned with the file."""
    table = TABLE.make(tmp_path, version=6, kind="mor")
    table.upsert(TABLE.rows("a", v=2))
    before = set(tmp_path.glob("x/.*.log.*"))

    def planned_with(*_: object, **__: object) -> None:
        for torn in set(tmp_path.glob("x/.*.log.*")) - before:
            torn.write_bytes(torn.read_bytes()[:40])
        assert pyhudi.open_table(tmp_path).cluster(execute=False).scheduled
        dies()

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "commit", planned_with)
        patch.setattr(Transaction, "_finish", dies)
        with pytest.raises(CommitConflict):
            pyhudi.open_table(tmp_path, options=ONCE).upsert(ROWS)
    (torn,) = set(tmp_path.glob("x/.*.log.*")) - before
    end_heartbeats(tmp_path)
    other = pyhudi.open_table(tmp_path)
    other.upsert(pa.Table.from_pylist([{"id": "b", "p": "y", "v": 1}], schema=ROWS.schema))
    assert torn.exists()
    rows = [{"id": "a", "v": 2}, {"id": "b", "v": 1}]
    assert rows_of(other) == rows
    assert other.refresh().cluster().instants
    assert rows_of(other) == rows


def test_rollback_removes_staged_files(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path)
    last = parse_instant(table.state.timeline.commits[-1].requested, "UTC")
    dead = format_instant(last + 1, "UTC")
    instant_files.request(table.config.layout, table.storage, dead, COMMIT)
    instant_files.start(table.config.layout, table.storage, dead, COMMIT)
    name = f"0b1c_0-0-0_{dead}.parquet"
    markers.create(table.storage, dead, Marker("x", name, "CREATE"))
    staged = left(tmp_path, f"x/{name}.71-3.tmp", old=False)
    other = left(tmp_path, "x/.hoodie_partition_metadata.71-4.tmp", old=False)
    table.upsert(ROWS)
    assert not staged.exists()
    assert other.exists()


def test_second_attempt_after_commit_is_removed(tmp_path: Path) -> None:
    """Of a task that Spark ran twice: its file has the commit's instant, and would count."""
    table = TABLE.make(tmp_path, options={"hoodie.metadata.enable": "false"})
    table.upsert(ROWS)
    instant = table.refresh().state.timeline.commits[-1].requested
    (written,) = tmp_path.glob(f"*/*_{instant}.parquet")
    late = written.with_name(f"late-0_0-1-1_{instant}.parquet")
    shutil.copy(written, late)
    part = written.parent.name
    for path in (written, late):
        markers.create(table.storage, instant, Marker(part, path.name, "CREATE"))
    pyhudi.open_table(tmp_path, options={"hoodie.metadata.enable": "false"}).upsert(ROWS)
    assert not late.exists()
    assert written.exists()
    assert markers.read_all(table.storage, instant) is None


def test_markers_stay_that_a_writer_makes_after_its_rollback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 24350223 of the simulation: by them alone its writer finds what to take back."""
    table = TABLE.make(tmp_path)
    table.upsert(ROWS)
    first, *_ = table.refresh().state.timeline.commits
    stood_still = format_instant(parse_instant(first.requested, "UTC") + 1, "UTC")
    path = f"x/late-0_0-0-0_{stood_still}.parquet"

    def goes_on(*given: Any) -> list[str]:
        """The other one has loaded the timeline, and does not know that it is pending."""
        instant_files.start(table.config.layout, table.storage, stood_still, COMMIT)
        markers.create(table.storage, stood_still, Marker("x", path[2:], "CREATE"))
        monkeypatch.undo()
        return orphan_files.remove_orphan_files(*given)

    monkeypatch.setattr(recovery, "remove_orphan_files", goes_on)
    pyhudi.open_table(tmp_path).upsert(ROWS)
    assert [one.path for one in markers.read_all(table.storage, stood_still) or ()] == [path]
    left(tmp_path, path, old=False)
    pyhudi.open_table(tmp_path).upsert(ROWS)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("version", [6, 9])
def test_conflicting_write_removes_its_unnamed_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    table = TABLE.make(tmp_path, version=version)

    def conflicts(txn: Transaction, *_: object) -> None:
        marked = markers.read_all(table.storage, txn.instant)
        assert marked is not None
        one = marked[0]
        name = f"{one.path}.marker.{one.kind}"
        table.storage.delete(f"{markers.folder(txn.instant)}/{name}")
        other = Marker("x", f"other-0_0-0-0_{txn.instant}.parquet", "CREATE")
        markers.create(table.storage, txn.instant, other)
        raise CommitConflict("another one was faster")

    monkeypatch.setattr(Transaction, "_check_before_publish", conflicts)
    with pytest.raises(CommitConflict):
        pyhudi.open_table(tmp_path, options=ONCE).upsert(ROWS)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("is_called_off", [False, True])
def test_log_files_of_missing_write_are_removed_unless_rolled_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_called_off: bool
) -> None:
    """Up to version 6 their names do not tell whose, and once the timeline is past it, they count.

    is_called_off: what a rollback has called off stays, as the metadata table lists it.
    """
    table = TABLE.make(tmp_path, version=6, kind="mor")
    for _ in range(2):
        table.upsert(ROWS)
    before = {*tmp_path.glob("x/.*.log.*")}

    def fails(*_: object) -> None:
        raise CommitConflict("another one was faster")

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "_check_before_publish", fails)
        if not is_called_off:
            patch.setattr(Transaction, "_finish", fails)
        with pytest.raises(CommitConflict):
            pyhudi.open_table(tmp_path, options=ONCE).upsert(ROWS)
    (late, *_) = {*tmp_path.glob("x/.*.log.*_0-1-*")} - before
    (instant,) = block_instants(table.storage, f"x/{late.name}")
    if is_called_off:
        markers.create(table.storage, instant, Marker("x", late.name, "APPEND"))
    for file in [*tmp_path.glob(f".hoodie/{instant}.*"), *tmp_path.glob(".hoodie/.heartbeat/*")]:
        file.unlink()
    pyhudi.open_table(tmp_path).upsert(ROWS)
    assert late.exists() == is_called_off
    assert markers.read_all(table.storage, instant) is None
    assert table.refresh().scan().count() == 1
    assert table.check(deep=True).findings == ()


@pytest.mark.parametrize("verb", ["upsert", "bulk_insert"])
@pytest.mark.parametrize(("version", "kind"), [(6, "cow"), (6, "mor"), (9, "cow"), (9, "mor")])
def test_file_written_after_rollback_is_never_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    kind: Literal["cow", "mor"],
    verb: str,
) -> None:
    """Of tasks that go on though their driver has died: they would once the timeline is past it."""
    table = TABLE.make(tmp_path, version=version, kind=kind)
    for _ in range(2):
        table.upsert(ROWS)
    before = {*tmp_path.glob("x/*")}

    write_and_die(tmp_path, monkeypatch, verb)
    late = {*tmp_path.glob("x/*")} - before
    kept = {path: path.read_bytes() for path in late}
    assert late
    for path in [*late, *tmp_path.glob(".hoodie/.heartbeat/*")]:
        path.unlink()
    pyhudi.open_table(tmp_path).upsert(ROWS)
    for path, data in kept.items():
        path.write_bytes(data)
    assert table.refresh().scan().count() == 1
    for _ in range(4):
        table.upsert(ROWS)
    archived = pyhudi.open_table(tmp_path, options={"hoodie.clean.commits.retained": "1"})
    assert archived.archive(min_commits=2, max_commits=3).instants
    assert [path for path in late if path.exists()] == []
    assert table.refresh().scan().count() == 1
    assert table.check(deep=True).findings == ()


@pytest.mark.parametrize(("version", "kind"), [(6, "cow"), (6, "mor"), (9, "cow"), (9, "mor")])
def test_file_started_during_rollback_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, kind: Literal["cow", "mor"]
) -> None:
    """Of a writer that stood still before its first one (seed 26003819, under odds)."""
    table = TABLE.make(tmp_path, version=version, kind=kind)
    for _ in range(2):
        table.upsert(ROWS)
    before = {*tmp_path.glob("x/*")}

    write_and_die(tmp_path, monkeypatch)
    late = {*tmp_path.glob("x/*")} - before
    assert late
    kept = [*late, *tmp_path.glob(".hoodie/.temp/*")]
    for number, path in enumerate(kept):
        path.rename(tmp_path / ".hoodie" / f"kept-{number}")
    roll_back_and_die(tmp_path, monkeypatch, rollback, "_execute")
    for number, path in enumerate(kept):
        (tmp_path / ".hoodie" / f"kept-{number}").rename(path)
    pyhudi.open_table(tmp_path).upsert(ROWS)
    assert leftovers(tmp_path) == []
    assert table.refresh().scan().count() == 1
    assert table.check(deep=True).findings == ()


def test_log_files_of_pending_rollback_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tells the metadata table of them (seed 27008211 of v6-mor-simple-metadata, under odds)."""
    table = TABLE.make(tmp_path, version=6, kind="mor")
    for _ in range(2):
        table.upsert(ROWS)
    before = {*tmp_path.glob("x/*")}

    write_and_die(tmp_path, monkeypatch)
    (late,) = {*tmp_path.glob("x/*")} - before
    (instant,) = block_instants(table.storage, f"x/{late.name}")
    roll_back_and_die(tmp_path, monkeypatch, PendingInstant, "complete")
    attempt_files.remove_files_after_rollback(table.state, table.refresh().state.timeline, instant)
    assert late.exists()
    pyhudi.open_table(tmp_path).upsert(ROWS)
    assert late.exists()
    assert table.refresh().scan().count() == 1
    assert table.check(deep=True).findings == ()


def test_rollback_completed_by_other_writer_keeps_metadata_in_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would count as theirs (seed 29050029 of v6-mor-simple-metadata, under odds)."""
    clock = StandingClock.of_all(monkeypatch)
    table = TABLE.make(tmp_path, version=6, kind="mor")
    for _ in range(2):
        table.upsert(ROWS)
    write_and_die(tmp_path, monkeypatch)
    end_heartbeats(tmp_path)
    found: list[set[Path]] = []

    def logs() -> set[Path]:
        return {*tmp_path.glob(".hoodie/metadata/*/.*.log.*")}

    def stands_still(*given: Any) -> Any:
        monkeypatch.setattr("pyhudi.metadata.commit_participant.write_group", write_group)
        clock.stand_still(400_000)
        pyhudi.open_table(tmp_path).upsert(ROWS)
        found.append(logs())
        written = write_group(*given)
        found.append(logs())
        return written

    monkeypatch.setattr("pyhudi.metadata.commit_participant.write_group", stands_still)
    with pytest.raises(CommitConflict):
        pyhudi.open_table(tmp_path, options=ONCE).upsert(ROWS)
    before, after = found
    assert before < after
    assert logs() == before
    assert table.refresh().scan().count() == 1
    assert table.check(deep=True).findings == ()


@pytest.mark.parametrize("service", ["compact", "cluster"])
@pytest.mark.parametrize("who", ["its writer", "the next one"])
def test_log_files_after_rollback_are_kept_for_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str, service: str
) -> None:
    """Seeds 26006017 and 27005640 of the simulation: nobody could carry the plan out any more.

    Up to version 6 names of log files do not tell that they are of a write that was rolled back.
    """
    table = TABLE.make(tmp_path, version=6, kind="mor")
    for _ in range(2):
        table.upsert(ROWS)
    before = {*tmp_path.glob("x/*")}
    late: list[Path] = []

    def stands_still(txn: Transaction, *_: object, **__: object) -> None:
        monkeypatch.undo()
        late.extend({*tmp_path.glob("x/*")} - before)
        (data,) = [path.read_bytes() for path in late]
        for path in [*late, *tmp_path.glob(".hoodie/.heartbeat/*")]:
            path.unlink()
        pyhudi.open_table(tmp_path).upsert(ROWS)
        late[0].write_bytes(data)
        getattr(pyhudi.open_table(tmp_path), service)(execute=False)
        if who == "the next one":
            monkeypatch.setattr(txn, "_finish", lambda: False)
            markers.create(table.storage, txn.instant, Marker("x", late[0].name, "APPEND"))
        raise CommitConflict("another one was faster")

    monkeypatch.setattr(Transaction, "commit", stands_still)
    with pytest.raises(CommitConflict, match="faster"):
        pyhudi.open_table(tmp_path, options=ONCE).upsert(ROWS)
    if who == "the next one":
        pyhudi.open_table(tmp_path).bulk_insert(TABLE.rows("b", p="y"))
    assert late[0].exists()
    archived = pyhudi.open_table(tmp_path, options={"hoodie.clean.commits.retained": "1"})
    archived.archive(min_commits=2, max_commits=3)
    assert late[0].exists()
    assert getattr(table.refresh(), service)(schedule=False).instants
    for _ in range(4):
        table.upsert(ROWS)
    assert archived.refresh().archive(min_commits=2, max_commits=3).instants
    assert not late[0].exists()
    rows = table.refresh().scan().to_arrow()
    assert rows["p"].to_pylist().count("x") == 1
    assert table.check(deep=True).findings == ()


def test_archive_waits_for_plan_with_log_file_after_rollback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to version 6 rollbacks are archived by their number, even older ones than the plan."""
    table = TABLE.make(tmp_path, version=6, kind="mor", options={"hoodie.metadata.enable": "false"})
    for _ in range(2):
        table.upsert(ROWS)

    def dead() -> set[Path]:
        before = {*tmp_path.glob("x/*")}
        write_and_die(tmp_path, monkeypatch)
        end_heartbeats(tmp_path)
        return {*tmp_path.glob("x/*")} - before

    (late,) = dead()
    data = late.read_bytes()
    late.unlink()
    pyhudi.open_table(tmp_path).upsert(ROWS)
    late.write_bytes(data)
    assert pyhudi.open_table(tmp_path).compact(execute=False).scheduled
    for _ in range(8):
        # Each rolls the one before back.
        dead()
    archiving = pyhudi.open_table(tmp_path, options={"hoodie.clean.commits.retained": "1"})
    waits = archiving.archive(min_commits=2, max_commits=3)
    assert "a planned service names files of" in str(waits.left)
    assert late.exists()
    assert table.refresh().compact(schedule=False).instants
    for _ in range(4):
        table.upsert(ROWS)
    assert archiving.refresh().archive(min_commits=2, max_commits=3).instants
    assert not late.exists()
    assert table.refresh().scan().count() == 1
    assert table.check(deep=True).findings == ()


@pytest.mark.parametrize("is_marked", [False, True])
@pytest.mark.parametrize(("version", "kind"), [(6, "cow"), (6, "mor"), (9, "cow"), (9, "mor")])
def test_files_of_running_write_are_removed_after_rollback(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    kind: Literal["cow", "mor"],
    *,
    is_marked: bool,
) -> None:
    """And whose writer dies then (seed 27004805 of v6-mor-simple-metadata).

    is_marked: it had made another marker before, else it was requested only.
    """
    table = TABLE.make(tmp_path, version=version, kind=kind)
    for _ in range(2):
        table.upsert(ROWS)
    before = files_of(tmp_path)

    write_and_die(tmp_path, monkeypatch)
    after = {path: path.read_bytes() for path in files_of(tmp_path) - before}
    (marker,) = (path for path in after if ".marker." in path.name)
    instant = marker.relative_to(tmp_path / markers.MARKER_FOLDER).parts[0]
    written = [path for path in after if path.parent.name == "x" and path != marker]
    for path in after:
        if not path.name.endswith(".requested"):
            path.unlink()
    if is_marked:
        markers.create(table.storage, instant, Marker("x", f"a_0-0-0_{instant}.parquet", "CREATE"))
    begin = PendingInstant.begin

    def goes_on(opened: PendingInstant, content: bytes = b"") -> None:
        if opened.action == ROLLBACK:
            for path, data in after.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        begin(opened, content)

    with monkeypatch.context() as patch:
        patch.setattr(PendingInstant, "begin", goes_on)
        pyhudi.open_table(tmp_path).upsert(ROWS)
    assert written
    assert [path for path in written if path.exists()] == []
    assert leftovers(tmp_path) == []
    assert table.refresh().check(deep=True).findings == ()


def files_of(base: Path) -> set[Path]:
    """All that a write makes, but for the lock."""
    found = {path for path in base.rglob("*") if path.is_file()}
    return {path for path in found if ".locks" not in path.parts}


@pytest.mark.parametrize("version", [6, 9])
def test_metadata_table_is_archived_past_rollbacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Its base files are HFiles."""
    options = {
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.metadata.compact.max.delta.commits": "2",
    }
    table = TABLE.make(tmp_path, version=version)

    def write() -> None:
        pyhudi.open_table(tmp_path, options=options).upsert(ROWS)

    def metadata() -> Timeline:
        below = Storage(str(tmp_path / ".hoodie/metadata"))
        return Timeline.load(below, open_config(below))

    for _ in range(4):
        write()
    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "_publish", dies)
        patch.setattr(Transaction, "_finish", dies)
        with pytest.raises(CommitConflict):
            pyhudi.open_table(tmp_path, options=ONCE).upsert(ROWS)
    end_heartbeats(tmp_path)
    write()
    (undone,) = metadata().filter_completed(ROLLBACK)
    for _ in range(12):
        write()
    assert metadata().filter_completed(DELTA_COMMIT)[0].requested > undone.requested
    assert table.refresh().check(deep=True).findings == ()
