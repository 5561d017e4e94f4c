"""Heartbeats of writes: which writers count as active."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pyhudi.clock import SystemClock
from pyhudi.config.timeline_layout import HEARTBEAT_FOLDER
from pyhudi.errors import StorageError
from pyhudi.storage.storage import Storage
from pyhudi.txn import process_liveness
from pyhudi.txn.heartbeat import (
    Heartbeat,
    files_of,
    late_ms_of,
    live_instants,
)
from tests.sim.interrupting_storage import JumpingClock

INSTANT = "20260101000000000"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path))


def alive(storage: Storage) -> bool:
    return live_instants(storage, [INSTANT], SystemClock()) == [INSTANT]


def file_of(storage: Storage) -> Path:
    return Path(storage.uri) / HEARTBEAT_FOLDER / INSTANT


def test_beats_from_start_to_stop(storage: Storage) -> None:
    beat = Heartbeat(storage, INSTANT, SystemClock())
    assert not alive(storage)
    beat.start()
    assert alive(storage)
    assert live_instants(storage, ["20260101000000001"], SystemClock()) == []
    beat.stop()
    assert not alive(storage)
    assert not file_of(storage).exists()


def test_new_heartbeat_keeps_that_of_other_writer(storage: Storage) -> None:
    active, lagging = (Heartbeat(storage, INSTANT, SystemClock()) for _ in range(2))
    active.start_new()
    content = file_of(storage).read_bytes()
    lagging.start_new()
    assert not lagging.has_started
    lagging.stop()
    assert file_of(storage).read_bytes() == content
    active.stop()
    assert not file_of(storage).exists()


def test_heartbeat_without_process_expires_immediately(storage: Storage) -> None:
    beat = Heartbeat(storage, INSTANT, SystemClock())
    beat.start()
    del beat
    gc.collect()
    assert file_of(storage).exists()
    assert not alive(storage)


def test_heartbeat_without_owner_expires_after_two_minutes(storage: Storage) -> None:
    beat = Heartbeat(storage, INSTANT, SystemClock(), owned=False)
    beat.start()
    beat.stop_beating()
    assert alive(storage)
    old = file_of(storage).stat().st_mtime - 121
    os.utime(file_of(storage), (old, old))
    assert not alive(storage)


def test_heartbeat_of_ended_process_expires_immediately(storage: Storage) -> None:
    code = f"""
import os
from pyhudi.clock import SystemClock
from pyhudi.storage.storage import Storage
from pyhudi.txn.heartbeat import Heartbeat
beat = Heartbeat(Storage({storage.uri!r}), {INSTANT!r}, SystemClock())
beat.start()
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert file_of(storage).exists()
    assert not alive(storage)


def test_heartbeat_of_other_machine_expires_after_two_minutes(storage: Storage) -> None:
    owner = {"machine": "elsewhere/pid:[1]", "pid": 1, "started": "1", "name": "n"}
    storage.put(f"{HEARTBEAT_FOLDER}/{INSTANT}", json.dumps(owner).encode())
    assert alive(storage)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{", b"[" * 100_000, b"\xff", b'{"machine": null, "pid": "x"}'],
)
def test_heartbeat_of_foreign_writer_is_active(storage: Storage, content: bytes) -> None:
    storage.put(f"{HEARTBEAT_FOLDER}/{INSTANT}", content)
    assert alive(storage)


def test_heartbeat_of_reused_pid_expires(storage: Storage) -> None:
    machine = process_liveness._machine()
    owner = {"machine": machine, "pid": os.getppid(), "started": "0", "name": "n"}
    storage.put(f"{HEARTBEAT_FOLDER}/{INSTANT}", json.dumps(owner).encode())
    assert not alive(storage)


@pytest.mark.parametrize("is_listed", [False, True])
def test_heartbeat_of_hidden_process_is_active(
    is_listed: bool, storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As /proc shows processes of other users under hidepid=2, and under hidepid=1."""
    said = json.loads(process_liveness.owner("n"))
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = {**said, "pid": child.pid, "started": process_liveness._start_time(child.pid)}
    if is_listed:
        # Cannot be read as a file, as any user finds it who runs the tests.
        (tmp_path / f"proc/{child.pid}/stat").mkdir(parents=True)
    monkeypatch.setattr(process_liveness, "_PROCESSES", tmp_path / "proc")
    storage.put(f"{HEARTBEAT_FOLDER}/{INSTANT}", json.dumps(owner).encode())
    assert alive(storage)
    child.communicate(b"\n")
    assert not alive(storage)


@pytest.mark.parametrize("pid", [None, "x", 1 << 80])
def test_heartbeat_of_unknown_process_is_active(pid: Any, storage: Storage) -> None:
    owner = {**json.loads(process_liveness.owner("n")), "pid": pid}
    storage.put(f"{HEARTBEAT_FOLDER}/{INSTANT}", json.dumps(owner).encode())
    assert alive(storage)


def test_heartbeat_of_stalled_writer_does_not_resume(storage: Storage) -> None:
    clock = JumpingClock()
    beat = Heartbeat(storage, INSTANT, clock)
    beat.start()
    clock.ahead_ms = 60_000
    beat.beat()
    assert not beat.is_late
    clock.ahead_ms = 60_000 + 91_000
    beat.beat()
    assert beat.is_late
    clock.ahead_ms = 60_000
    assert beat.is_late
    beat.stop()


def test_heartbeat_is_late_after_failed_beats(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = JumpingClock()
    beat = Heartbeat(storage, INSTANT, clock)
    beat.start()

    def fails(path: str, data: bytes) -> None:
        raise StorageError(path)

    monkeypatch.setattr(storage, "put", fails)
    clock.ahead_ms = 91_000
    assert beat.is_late
    monkeypatch.undo()
    beat.stop()


def test_heartbeat_shows_takeover(storage: Storage) -> None:
    clock = JumpingClock()
    beat, other = Heartbeat(storage, INSTANT, clock), Heartbeat(storage, INSTANT, SystemClock())
    beat.beat()
    assert not beat.is_taken_over
    other.beat()
    assert beat.is_taken_over
    assert not other.is_taken_over
    clock.ahead_ms = 91_000
    beat.stop()
    assert file_of(storage).exists()
    other.stop()
    assert not file_of(storage).exists()
    assert not beat.is_taken_over


@pytest.mark.parametrize(
    ("lasts_ms", "late_ms", "every_ms"),
    [(None, 90_000, 30_000), (30_000, 28_000, 9_333), (5_000, 3_000, 1_000), (1_000, 500, 166)],
)
def test_heartbeat_interval_is_below_lock_lease(
    lasts_ms: int | None, late_ms: int, every_ms: int, storage: Storage
) -> None:
    beat = Heartbeat(storage, INSTANT, SystemClock(), lock_lease_ms=lasts_ms)
    beat.beat()
    (file,) = files_of(storage, [INSTANT])
    assert late_ms_of(storage.read(file.path), file) == late_ms
    assert beat.every_ms == every_ms


@pytest.mark.parametrize("content", [b"", b"{}", b"[" * 100_000, b"\xff", b'{"late_ms": "x"}'])
def test_foreign_heartbeat_has_no_publication_limit(content: bytes, storage: Storage) -> None:
    storage.put(f"{HEARTBEAT_FOLDER}/{INSTANT}", content)
    (file,) = files_of(storage, [INSTANT])
    assert late_ms_of(storage.read(file.path), file) is None


def test_copied_heartbeat_has_no_publication_limit(storage: Storage) -> None:
    Heartbeat(storage, INSTANT, SystemClock()).beat()
    (file,) = files_of(storage, [INSTANT])
    assert late_ms_of(storage.read(file.path), file) == 90_000
    now, day_s = file_of(storage).stat().st_mtime, 86_400
    for at in (now - day_s, now + day_s):
        os.utime(file_of(storage), (at, at))
        (file,) = files_of(storage, [INSTANT])
        assert late_ms_of(storage.read(file.path), file) is None


def test_shared_heartbeat_stops_after_publication(storage: Storage) -> None:
    task = Heartbeat(storage, INSTANT, SystemClock(), owned=False)
    driver = Heartbeat(storage, INSTANT, SystemClock())
    task.beat()
    assert not task.is_late
    driver.beat()
    task.beat()
    assert task.is_late
    assert not driver.is_taken_over


def test_shared_heartbeat_is_not_created_again_after_its_end(storage: Storage) -> None:
    """A task of the write begins after the write's end."""
    write = Heartbeat(storage, INSTANT, SystemClock(), owned=False)
    write.start()
    joined = Heartbeat(storage, INSTANT, SystemClock(), owned=False)
    joined.join()
    assert not joined.is_late
    joined.stop_beating()
    write.stop()
    late = Heartbeat(storage, INSTANT, SystemClock(), owned=False)
    late.join()
    assert late.is_late
    assert not file_of(storage).exists()


def test_heartbeat_pauses_during_publication(storage: Storage) -> None:
    beat = Heartbeat(storage, INSTANT, SystemClock())
    beat.beat()
    with beat.between_beats():
        other = threading.Thread(target=beat.beat)
        before = file_of(storage).stat().st_mtime_ns
        other.start()
        other.join(0.2)
        assert other.is_alive()
        assert file_of(storage).stat().st_mtime_ns == before
    other.join()
    assert file_of(storage).stat().st_mtime_ns > before


@pytest.mark.parametrize("clock_of", ["now_ms", "ticks_ms"])
def test_heartbeat_is_late_by_either_clock(
    clock_of: str, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat = Heartbeat(storage, INSTANT, SystemClock())
    beat.beat()
    real = getattr(SystemClock, clock_of)
    monkeypatch.setattr(SystemClock, clock_of, lambda self: real(self) + 91_000)
    assert beat.is_late


def test_heartbeat_does_not_resume_after_stalled_publication(storage: Storage) -> None:
    clock = JumpingClock()
    beat = Heartbeat(storage, INSTANT, clock, lock_lease_ms=30_000)
    beat.beat()
    first = file_of(storage).stat().st_mtime_ns
    clock.ahead_ms = 60_000
    beat.begin_publication()
    assert file_of(storage).stat().st_mtime_ns > first
    last = file_of(storage).stat().st_mtime_ns
    clock.ahead_ms += 29_000
    beat.beat()
    assert file_of(storage).stat().st_mtime_ns == last
    assert beat.is_late
