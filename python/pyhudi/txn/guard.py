"""The lock of a table's writers as one writer uses it: sections, one inside another if need be.

Whatever changes the timeline, the metadata table or the properties does so within a section, on a
timeline that was loaded there. Data files are written outside.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from pyhudi.clock import Clock, SystemClock
from pyhudi.config.concurrency_mode import ConcurrencyMode
from pyhudi.config.lock_options import LockOptions
from pyhudi.config.log import warn
from pyhudi.errors import LockWarning, without_hint
from pyhudi.slices.table import Guard, Unguarded
from pyhudi.storage.ahead import forget
from pyhudi.storage.options import is_remote
from pyhudi.storage.storage import Storage
from pyhudi.txn.locks.choice import table_lock
from pyhudi.txn.locks.lock import TableLock, give_back, take


class LockGuard(Guard):
    """Sections under a lock. Belongs to one writer, which is one thread."""

    def __init__(
        self,
        lock: TableLock,
        clock: Clock,
        *,
        patience_ms: int,
        skew_ms: int,
        has_threads: bool = False,
    ) -> None:
        """patience_ms: how long the lock is waited for. skew_ms: what clocks may differ by.

        has_threads: the lock can be given back by a thread that waits for the clock.
        """
        self._lock = lock
        self._clock = clock
        self._patience_ms = patience_ms
        self._skew_ms = skew_ms
        self._has_threads = has_threads
        self._depth = 0
        self._settled_ms = 0
        """The lock is held until then."""
        self._leaves_late = False
        self._leaving: _Leaving | None = None

    @contextmanager
    def section(self) -> Iterator[None]:
        """Holds the lock for the block. Raises `LockTimeout` where it cannot be had."""
        if not self._depth:
            self._enter()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self._leave()

    def _enter(self) -> None:
        leaving, self._leaving = self._leaving, None
        if leaving is None or not self._stays(leaving):
            take(self._lock, self._patience_ms)
        # What was asked for before may not be what is there by now.
        forget()

    def _stays(self, leaving: _Leaving) -> bool:
        try:
            return leaving.stay()
        except BaseException:
            # Interrupted: else this living process would seem to hold it, or give it back later.
            leaving.stay()
            give_back(self._lock, _told)
            raise

    def _leave(self) -> None:
        left_s = (self._settled_ms - self._clock.now_ms()) / 1000
        if self._leaves_late:
            # Where no thread can be had any more, it is waited here.
            with suppress(RuntimeError):
                self._leaving = _Leaving(left_s, self._lock)
                return
        try:
            if left_s > 0:
                self._clock.sleep(left_s)
        finally:
            give_back(self._lock, _told)

    @contextmanager
    def leaving_late(self) -> Iterator[None]:
        """A block after which the lock is given back, and not before the block goes on.

        What follows a section need not wait for clocks, nor for the lock's service; and a section
        that soon follows another goes on with its lock.
        """
        self._leaves_late = self._has_threads
        try:
            yield
        finally:
            self._leaves_late = False
            self.finish_leaving()

    def finish_leaving(self) -> None:
        """Waits until the lock of the last section is given back."""
        leaving, self._leaving = self._leaving, None
        if leaving is not None:
            leaving.join()

    @property
    def is_entered(self) -> bool:
        """Whether this writer is in a section."""
        return self._depth > 0

    def check(self) -> None:
        """Raises `CommitConflict` where the lock may be another's by now."""
        self._lock.check()

    def settle(self, since_ms: int) -> None:
        """Has the section last until a time that was taken then is past for every clock."""
        self._settled_ms = max(self._settled_ms, since_ms + self._skew_ms)


class _Leaving(threading.Thread):
    """Gives a lock back after a while, unless it is wanted again by then."""

    def __init__(self, after_s: float, lock: TableLock) -> None:
        super().__init__(name="pyhudi-leaving")
        self._after_s = after_s
        self._lock = lock
        self._wanted = threading.Event()
        self._deciding = threading.Lock()
        self._given = False
        self.start()

    def run(self) -> None:
        self._wanted.wait(max(self._after_s, 0))
        with self._deciding:
            if self._wanted.is_set():
                return
            self._given = True
        give_back(self._lock, _told)

    def stay(self) -> bool:
        """Whether the lock is held still, which it then is for whoever asked."""
        with self._deciding:
            self._wanted.set()
            stays = not self._given
        if not stays:
            self.join()
        return stays


def _told(error: Exception) -> None:
    cause = without_hint(error)
    msg = f"the table's lock could not be given back, others wait until its time is over: {cause}"
    warn(msg, LockWarning)


def guard_of(storage: Storage, options: Mapping[str, str], clock: Clock) -> Guard:
    """How the writers of a table keep out of each other's way, by the options of the handle.

    Raises `ConfigError` for an option that the lock needs and that is missing.
    """
    chosen = LockOptions.of(options)
    if chosen.mode is ConcurrencyMode.SINGLE_WRITER:
        return Unguarded()
    lock = table_lock(storage, chosen, clock)
    remote = is_remote(storage.uri)
    return LockGuard(
        lock,
        clock,
        patience_ms=chosen.patience_ms,
        skew_ms=chosen.skew_ms(remote=remote),
        has_threads=remote and isinstance(clock, SystemClock),
    )
