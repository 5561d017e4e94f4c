"""Critical sections of the table lock: lease, expiry and reuse of what was read."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pyhudi.clock import SystemClock
from pyhudi.errors import CommitConflict, CorruptTable, LockTimeout, LockWarning
from pyhudi.storage import storage as storage_module
from pyhudi.storage.storage import Storage
from pyhudi.txn import lock_manager as guard_module
from pyhudi.txn.lock_manager import TableLockManager

SKEW_MS = 300


class CountedLock:
    """A lock that records its calls and their threads."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.givers: list[str] = []
        self.fails = self.is_lost = False

    min_lease_ms = 54_000

    def acquire(self, timeout_ms: int) -> bool:
        self.did.append("take")
        self.is_lost = False
        return True

    def check(self, within_ms: int = 0) -> None:
        if self.is_lost:
            raise CommitConflict("the lock was lost")

    def release(self) -> None:
        self.did.append("give")
        self.givers.append(threading.current_thread().name)
        if self.fails:
            raise OSError("out of reach")

    def holder(self) -> str:
        return "a test"

    def read_holder(self) -> str | None:
        return None


class SteppedClock(SystemClock):
    """A clock that the test sets."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


@pytest.fixture
def lock() -> CountedLock:
    return CountedLock()


@pytest.fixture
def lock_manager(lock: CountedLock) -> TableLockManager:
    return TableLockManager(lock, SystemClock(), timeout_ms=0, skew_ms=SKEW_MS, has_threads=True)


def since(began: float) -> float:
    return (time.monotonic() - began) * 1000


def test_critical_section_lasts_until_its_instant_passed(
    lock_manager: TableLockManager, lock: CountedLock
) -> None:
    began = time.monotonic()
    with lock_manager.critical_section():
        lock_manager.wait_out_clock_skew(SystemClock().now_ms())
        assert since(began) < SKEW_MS
    assert since(began) >= SKEW_MS - 1
    assert lock.did == ["take", "give"]


def test_work_after_critical_section_does_not_wait(
    lock_manager: TableLockManager, lock: CountedLock
) -> None:
    began = time.monotonic()
    with lock_manager.release_later():
        with lock_manager.critical_section():
            lock_manager.wait_out_clock_skew(SystemClock().now_ms())
        assert since(began) < SKEW_MS
        assert lock.did == ["take"]
    assert since(began) >= SKEW_MS - 1
    assert lock.did == ["take", "give"]
    assert lock.givers == ["pyhudi-release"]


def test_critical_section_reuses_held_lock(
    lock_manager: TableLockManager, lock: CountedLock
) -> None:
    began = time.monotonic()
    with lock_manager.release_later():
        with lock_manager.critical_section():
            lock_manager.wait_out_clock_skew(SystemClock().now_ms())
        with lock_manager.critical_section():
            assert lock.did == ["take"]
            time.sleep(0.01)
        lock_manager.finish_release()
        # The time of the first one is past, too.
        assert since(began) >= SKEW_MS - 1
        assert lock.did == ["take", "give"]
        with lock_manager.critical_section():
            assert lock.did == ["take", "give", "take"]
    assert lock.did == ["take", "give", "take", "give"]


def test_critical_section_reacquires_released_lock(
    lock_manager: TableLockManager, lock: CountedLock
) -> None:
    with lock_manager.release_later():
        with lock_manager.critical_section():
            pass
        while lock.did != ["take", "give"]:
            time.sleep(0.001)
        with lock_manager.critical_section():
            assert lock.did == ["take", "give", "take"]


def test_failed_critical_section_releases_lock(
    lock_manager: TableLockManager, lock: CountedLock
) -> None:
    with (
        pytest.raises(ValueError, match="wrong"),
        lock_manager.release_later(),
        lock_manager.critical_section(),
    ):
        raise ValueError("wrong")
    assert lock.did == ["take", "give"]
    assert not lock_manager.is_held


def test_failed_release_is_warning(lock_manager: TableLockManager, lock: CountedLock) -> None:
    lock.fails = True
    with (
        pytest.warns(LockWarning, match="out of reach"),
        lock_manager.release_later(),
        lock_manager.critical_section(),
    ):
        pass


def test_release_waits_without_thread(
    lock_manager: TableLockManager, lock: CountedLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_self: object) -> None:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    monkeypatch.setattr(guard_module._DelayedRelease, "start", refused)
    with lock_manager.release_later():
        with lock_manager.critical_section():
            pass
        assert lock.did == ["take", "give"]


def test_others_wait_for_two_sections_at_most(
    lock_manager: TableLockManager, lock: CountedLock
) -> None:
    with lock_manager.release_later():
        for _ in range(4):
            with lock_manager.critical_section():
                lock_manager.wait_out_clock_skew(SystemClock().now_ms())
    assert lock.did == ["take", "give"] * 2


def test_lost_lock_is_reacquired(lock_manager: TableLockManager, lock: CountedLock) -> None:
    with lock_manager.release_later():
        with lock_manager.critical_section():
            lock_manager.wait_out_clock_skew(SystemClock().now_ms())
        lock.is_lost = True
        with lock_manager.critical_section():
            assert lock.did == ["take", "give", "take"]


@pytest.mark.parametrize("has_threads", [True, False])
def test_clock_set_back_blocks_no_writer(lock: CountedLock, *, has_threads: bool) -> None:
    clock = SteppedClock()
    lock_manager = TableLockManager(
        lock, clock, timeout_ms=0, skew_ms=SKEW_MS, has_threads=has_threads
    )
    began = time.monotonic()
    with lock_manager.release_later():
        with lock_manager.critical_section():
            lock_manager.wait_out_clock_skew(clock.now_ms())
            clock.ahead_ms -= 3_600_000
        with lock_manager.critical_section():
            at = clock.now_ms()
            clock.ahead_ms -= 3_600_000
            lock_manager.wait_out_clock_skew(at)
    assert since(began) < 3 * SKEW_MS


class Interrupt:
    """Interrupts at a line of the modules that hold locks, by its number among those that run."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, event: str, _arg: object) -> Any:
        if frame.f_globals["__name__"] not in ("pyhudi.txn.lock_manager", "pyhudi.txn.locks.base"):
            return None
        if event == "line":
            self.left -= 1
            if self.left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


def test_interrupted_critical_section_releases_lock(lock: CountedLock) -> None:
    clock, ended, kept = SystemClock(), False, []
    for at in range(200):
        lock.did.clear()
        lock_manager = TableLockManager(lock, clock, timeout_ms=0, skew_ms=0, has_threads=True)
        before = sys.gettrace()
        try:
            sys.settrace(Interrupt(at))
            with lock_manager.release_later():
                with lock_manager.critical_section():
                    pass
                with lock_manager.critical_section():
                    pass
            ended = True
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        for thread in threading.enumerate():
            if thread.name == "pyhudi-release":
                thread.join()
        if "take" in lock.did and lock.did[-1] != "give":
            kept.append(at)
        if ended:
            break
    assert ended
    assert kept == []


def test_critical_section_ignores_earlier_prefetches(
    lock_manager: TableLockManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_module, "is_remote", lambda _uri: True)
    storage = Storage(str(tmp_path))
    storage.put("a", b"old")
    with storage.prefetch(files=["a"]):
        time.sleep(0.05)
        storage.put("a", b"new")
        with lock_manager.critical_section():
            assert storage.read("a") == b"new"


def test_critical_section_continues_after_lock_loss(
    lock_manager: TableLockManager, lock: CountedLock
) -> None:
    with lock_manager.critical_section():
        lock.is_lost = True
        with pytest.raises(CommitConflict):
            lock_manager.check_held()
        lock_manager.reacquire()
        lock_manager.check_held()
        assert lock_manager.is_held
    assert lock.did == ["take", "give", "take", "give"]


def test_lock_that_cannot_be_reacquired_is_not_released(
    lock_manager: TableLockManager, lock: CountedLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lock_manager.critical_section():
        monkeypatch.setattr(lock, "acquire", lambda _: False)
        with pytest.raises(LockTimeout):
            lock_manager.reacquire()
    assert lock.did == ["take", "give"]


@pytest.mark.parametrize("is_lost", [False, True])
def test_damage_under_lost_lock_is_conflict(
    lock_manager: TableLockManager, lock: CountedLock, is_lost: bool
) -> None:
    def reads() -> None:
        with lock_manager.critical_section():
            lock.is_lost = is_lost
            raise CorruptTable("a file is missing")

    with pytest.raises(CommitConflict if is_lost else CorruptTable):
        reads()
    assert lock.did == ["take", "give"]


def test_file_created_by_other_writer_is_conflict(lock_manager: TableLockManager) -> None:
    """A stalled writer writes a file of work that was taken over (seed 26000300, under odds)."""

    def writes() -> None:
        with lock_manager.critical_section():
            raise FileExistsError("files/.files-0000-0_1.log.13_0-2-1: already exists")

    with pytest.raises(CommitConflict, match=r"log\.13"):
        writes()
