"""Storages that fail, or let another writer run, at one chosen change."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from pyhudi.clock import SystemClock
from pyhudi.storage.storage import Entry, Storage
from tests.sim.crash import CrashingStorage


class MeetingStorage(CrashingStorage):
    """Calls `meets` once before it makes change number `at` (from 1)."""

    def __init__(self, uri: str, at: int, meets: Callable[[], Any]) -> None:
        super().__init__(uri)
        self._at = at
        self._meets = meets

    def step(self) -> None:
        super().step()
        if self.above is None and self.changes == self._at:
            self._meets()


class FailingStorage(CrashingStorage):
    """Raises an error at change number `at` and works before and after.

    answer_lost: the change is made all the same.
    """

    def __init__(self, uri: str, at: int, error: BaseException, *, answer_lost: bool) -> None:
        super().__init__(uri)
        self._at = at
        self._error = error
        self._answer_lost = answer_lost
        self._fails = False

    def below(self, folder: str) -> Storage:
        part = FailingStorage(f"{self.uri}/{folder}", 0, self._error, answer_lost=False)
        part.above = self.above or self
        return part

    def step(self) -> None:
        if self.above is not None:
            self.above.step()
            return
        super().step()
        if self.changes == self._at:
            if not self._answer_lost:
                raise self._error
            self._fails = True

    def _answer(self) -> None:
        top = self.above or self
        if isinstance(top, FailingStorage) and top._fails:
            top._fails = False
            raise self._error

    def put(self, path: str, data: bytes) -> None:
        super().put(path, data)
        self._answer()

    def put_if_absent(self, path: str, data: bytes) -> bool:
        made = super().put_if_absent(path, data)
        self._answer()
        return made

    def delete(self, path: str) -> bool:
        gone = super().delete(path)
        self._answer()
        return gone

    def delete_dir(self, path: str) -> None:
        super().delete_dir(path)
        self._answer()

    def native_write(self, path: str, write: Callable[[], Any]) -> Any:
        written = super().native_write(path, write)
        self._answer()
        return written


class JumpingClock(SystemClock):
    """The machine's clock, and `ahead_ms` more: for a process that was stopped for a while."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms

    def ticks_ms(self) -> int:
        return super().ticks_ms() + self.ahead_ms


class StandingClock(JumpingClock):
    """Everybody's clock and the storage's, by which nothing happens for a while."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """monkeypatch: has all files be dated by this clock."""
        self._stands: list[tuple[float, int]] = []
        head, list_dir = Storage.head, Storage.list_dir

        def dated_head(storage: Storage, path: str) -> Entry | None:
            found = head(storage, path)
            return None if found is None else self._dated(found)

        def dated_list(storage: Storage, prefix: str = "") -> tuple[list[str], list[Entry]]:
            folders, files = list_dir(storage, prefix)
            return folders, [self._dated(file) for file in files]

        monkeypatch.setattr(Storage, "head", dated_head)
        monkeypatch.setattr(Storage, "list_dir", dated_list)

    @classmethod
    def of_all(cls, monkeypatch: pytest.MonkeyPatch) -> StandingClock:
        """Also of those who take the system's."""
        clock = cls(monkeypatch)
        now, ticks = SystemClock.now_ms, SystemClock.ticks_ms
        monkeypatch.setattr(SystemClock, "now_ms", lambda self: now(self) + clock.ahead_ms)
        monkeypatch.setattr(SystemClock, "ticks_ms", lambda self: ticks(self) + clock.ahead_ms)
        return clock

    def _dated(self, file: Entry) -> Entry:
        stood = sum(ms for at, ms in self._stands if at < file.modified_ms)
        return Entry(file.path, file.size, file.modified_ms + stood)

    def stand_still(self, ms: int) -> None:
        """Time passes."""
        # A file is dated by its millisecond, and may be behind by a tick of the kernel's clock.
        time.sleep(0.01)
        self._stands.append((time.time() * 1000, ms))
        self.ahead_ms += ms
        time.sleep(0.01)
