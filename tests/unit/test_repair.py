"""`check(repair=True)`: it removes the leftovers of failed writers, and nothing else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.clock import SystemClock
from pyhudi.slices import markers
from pyhudi.storage.storage import Storage
from pyhudi.txn import heartbeat
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.write.table_opening import open_for_change
from tests.helpers.pairwise import pairwise
from tests.sim.crash import Handle
from tests.unit.test_cleaning import data_files
from tests.unit.test_savepoints import made, timeline_of

CASES = pairwise((6, 8, 9), ("cow", "mor"))
TASK = "7-0-7"


def base_file(base: Path) -> Path:
    return next((base / "rome").glob("*.parquet"))


def left(base: Path, instant: str, folder: str = "rome") -> Path:
    """A base file that bears an instant, of a task that nobody asked for its results."""
    file_id = "11111111-2222-3333-4444-555555555555-0"
    path = base / folder / f"{file_id}_{TASK}_{instant}.parquet"
    shutil.copy(base_file(base), path)
    return path


def rows(table: HudiTable) -> list[dict[str, object]]:
    found = table.refresh().scan().to_arrow().to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_repair_removes_unrecorded_files(version: int, kind: str, tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = made(base, version, kind)
    before, files = rows(table), data_files(base)
    commit = timeline_of(base).commits[0].requested
    # One of a failed write that nobody knows of, one that readers take for a commit's.
    left(base, str(int(commit) + 1))
    left(base, commit, "oslo")
    folder = base / ".hoodie/metadata/bloom_filters"
    shutil.copytree(base / ".hoodie/metadata/files", folder)
    staged = base / "rome" / ".some.log.1_0-1-0.123-4.tmp"
    staged.write_bytes(b"half")
    os.utime(staged, (1, 1))
    kinds = {finding.kind for finding in table.check().findings}
    also = {"metadata_missing_file"}
    assert kinds - also == {"unnamed_file", "metadata_partition_unlisted", "staged_file"}
    found = table.check(repair=True)
    assert found.ok, str(found)
    assert len(found.repaired) == 4
    assert str(found).count("removed: ") == 4
    assert (data_files(base), rows(table)) == (files, before)
    assert not folder.exists()
    assert not staged.exists()
    assert table.check(repair=True).repaired == ()


def test_failed_writes_are_rolled_back(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = made(base, 9, "cow")
    before, files = rows(table), data_files(base)
    opened = open_for_change(Handle(Storage(str(base))), SystemClock())
    failed = PendingInstant(opened, opened.generator.next(), "commit")
    failed.request()
    failed.begin()
    path = left(base, failed.time)
    marker = markers.Marker("rome", path.name, "CREATE")
    markers.create(opened.storage, failed.time, marker)
    assert table.check(repair=True).ok
    assert (data_files(base), rows(table)) == (files, before)
    assert not timeline_of(base).pending()


def test_repair_keeps_files_of_active_writer(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = made(base, 9, "cow")
    opened = open_for_change(Handle(Storage(str(base))), SystemClock())
    pending = PendingInstant(opened, opened.generator.next(), "commit")
    beat = heartbeat.Heartbeat(opened.storage, pending.time, SystemClock())
    beat.start()
    pending.request()
    pending.begin()
    others = left(base, pending.time)
    # Withdrawn, and still beating: its tasks may be at work.
    gone = opened.generator.next()
    late = heartbeat.Heartbeat(opened.storage, gone, SystemClock())
    late.start()
    still = left(base, gone, "oslo")
    fresh = base / "rome" / ".some.log.1_0-1-0.123-4.tmp"
    fresh.write_bytes(b"half")
    assert table.check(repair=True).repaired == ()
    assert others.exists()
    assert still.exists()
    assert fresh.exists()
    late.stop_beating()
    heartbeat_file = base / heartbeat.path_of(gone)
    os.utime(heartbeat_file, (1, 1))
    (found,) = table.check(repair=True).repaired
    assert found.item == still.name
    assert others.exists()
    beat.stop()


def test_shared_log_files_stay(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = made(base, 6, "mor")
    log = next((base / "rome").glob(".*.log.1_*"))
    copy = log.with_name(log.name.replace(".log.1_", ".log.7_"))
    shutil.copy(log, copy)
    assert {finding.kind for finding in table.check().findings} == {"unnamed_file"}
    found = table.check(repair=True)
    assert found.repaired == ()
    assert {finding.kind for finding in found.findings} == {"unnamed_file"}
    assert copy.exists()


def test_check_without_repair_changes_nothing(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = made(base, 9, "mor")
    path = left(base, str(int(timeline_of(base).commits[0].requested) + 1))
    before = {found: found.stat().st_mtime_ns for found in base.rglob("*")}
    assert not table.check().ok
    assert {found: found.stat().st_mtime_ns for found in base.rglob("*")} == before
    assert path.exists()
    assert pyhudi.open_table(base).check().repaired == ()
