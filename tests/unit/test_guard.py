"""Sections of a table's lock: how long they last, and what is known in them."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from pyhudi.clock import SystemClock
from pyhudi.errors import LockWarning
from pyhudi.storage import storage as storage_module
from pyhudi.storage.storage import Storage
from pyhudi.txn import guard as guard_module
from pyhudi.txn.guard import LockGuard

SKEW_MS = 300


class CountedLock:
    """A lock that tells what was done to it, and by which threads."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.givers: list[str] = []
        self.fails = False

    def acquire(self, patience_ms: int) -> bool:
        self.did.append("take")
        return True

    def check(self) -> None:
        pass

    def release(self) -> None:
        self.did.append("give")
        self.givers.append(threading.current_thread().name)
        if self.fails:
            raise OSError("out of reach")

    def holder(self) -> str:
        return "a test"


@pytest.fixture
def lock() -> CountedLock:
    return CountedLock()


@pytest.fixture
def guard(lock: CountedLock) -> LockGuard:
    return LockGuard(lock, SystemClock(), patience_ms=0, skew_ms=SKEW_MS, has_threads=True)


def since(began: float) -> float:
    return (time.monotonic() - began) * 1000


def test_a_section_lasts_until_its_time_is_past(guard: LockGuard, lock: CountedLock) -> None:
    began = time.monotonic()
    with guard.section():
        guard.settle(SystemClock().now_ms())
        assert since(began) < SKEW_MS
    assert since(began) >= SKEW_MS - 1
    assert lock.did == ["take", "give"]


def test_what_follows_a_section_need_not_wait(guard: LockGuard, lock: CountedLock) -> None:
    began = time.monotonic()
    with guard.leaving_late():
        with guard.section():
            guard.settle(SystemClock().now_ms())
        assert since(began) < SKEW_MS
        assert lock.did == ["take"]
    assert since(began) >= SKEW_MS - 1
    assert lock.did == ["take", "give"]
    assert lock.givers == ["pyhudi-leaving"]


def test_a_section_that_soon_follows_goes_on_with_the_lock(
    guard: LockGuard, lock: CountedLock
) -> None:
    began = time.monotonic()
    with guard.leaving_late():
        with guard.section():
            guard.settle(SystemClock().now_ms())
        with guard.section():
            assert lock.did == ["take"]
            time.sleep(0.01)
        guard.finish_leaving()
        # The time of the first one is past, too.
        assert since(began) >= SKEW_MS - 1
        assert lock.did == ["take", "give"]
        with guard.section():
            assert lock.did == ["take", "give", "take"]
    assert lock.did == ["take", "give", "take", "give"]


def test_a_section_that_follows_later_takes_the_lock_again(
    guard: LockGuard, lock: CountedLock
) -> None:
    with guard.leaving_late():
        with guard.section():
            pass
        while lock.did != ["take", "give"]:
            time.sleep(0.001)
        with guard.section():
            assert lock.did == ["take", "give", "take"]


def test_a_section_that_fails_is_left_as_well(guard: LockGuard, lock: CountedLock) -> None:
    with pytest.raises(ValueError, match="wrong"), guard.leaving_late(), guard.section():
        raise ValueError("wrong")
    assert lock.did == ["take", "give"]
    assert not guard.is_entered


def test_a_lock_that_cannot_be_given_back_is_told(guard: LockGuard, lock: CountedLock) -> None:
    lock.fails = True
    with pytest.warns(LockWarning, match="out of reach"), guard.leaving_late(), guard.section():
        pass


def test_where_no_thread_can_be_had_it_is_waited(
    guard: LockGuard, lock: CountedLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_after_s: float, _lock: object) -> None:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    monkeypatch.setattr(guard_module, "_Leaving", refused)
    with guard.leaving_late():
        with guard.section():
            pass
        assert lock.did == ["take", "give"]


def test_who_is_interrupted_as_it_wants_the_lock_again_gives_it_back(
    guard: LockGuard, lock: CountedLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    stay, calls = guard_module._Leaving.stay, []

    def interrupted(self: guard_module._Leaving) -> bool:
        calls.append(self)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return stay(self)

    monkeypatch.setattr(guard_module._Leaving, "stay", interrupted)
    with guard.leaving_late():
        with guard.section():
            guard.settle(SystemClock().now_ms())
        with pytest.raises(KeyboardInterrupt), guard.section():
            raise AssertionError("entered")
        assert lock.did == ["take", "give"]
        with guard.section():
            time.sleep(SKEW_MS / 1000)
            assert lock.did == ["take", "give", "take"]


def test_a_section_takes_no_answer_from_before_it(
    guard: LockGuard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_module, "is_remote", lambda _uri: True)
    storage = Storage(str(tmp_path))
    storage.put("a", b"old")
    with storage.ahead(files=["a"]):
        time.sleep(0.05)
        storage.put("a", b"new")
        with guard.section():
            assert storage.read("a") == b"new"
