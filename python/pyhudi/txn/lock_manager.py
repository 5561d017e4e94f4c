"""The lock manager of one writer: critical sections under the table's lock, which can nest.

Any change of the timeline, the metadata table or the properties happens in a critical section, on
a timeline that was loaded in it. Data files are written outside.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyhudi.clock import Clock, SystemClock
from pyhudi.config.lock_options import ConcurrencyMode, LockOptions
from pyhudi.config.log import warn
from pyhudi.errors import (
    CommitConflict,
    CorruptTable,
    LockTimeout,
    LockWarning,
    retryable_conflict,
    without_hint,
)
from pyhudi.storage.options import is_remote
from pyhudi.storage.prefetch import forget
from pyhudi.storage.storage import Storage
from pyhudi.table.locking import LockManager, NoLock
from pyhudi.txn.locks.base import TableLock, give_back, take
from pyhudi.txn.locks.providers import table_lock


class TableLockManager(LockManager):
    """Critical sections under a lock. Belongs to one writer, which is one thread."""

    def __init__(
        self,
        lock: TableLock,
        clock: Clock,
        *,
        timeout_ms: int,
        skew_ms: int,
        has_threads: bool = False,
    ) -> None:
        """timeout_ms: the timeout for the lock. skew_ms: the maximum difference of clocks.

        has_threads: a thread that waits for the clock may release the lock.
        """
        self._lock = lock
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._skew_ms = skew_ms
        self._has_threads = has_threads
        self._depth = 0
        self._held = False
        self._stayed = False
        """The lock is still held from the previous critical section."""
        self._settled_ms = 0
        """In the clock's ticks: the lock is held until then."""
        self._leaves_late = False
        self._leaving: _Leaving | None = None

    @contextmanager
    def critical_section(self) -> Iterator[None]:
        """Hold the lock for the block. Raises `LockTimeout` if it is not available in time.

        `CommitConflict` replaces `CorruptTable` if the lock was lost, and replaces
        `FileExistsError`.
        """
        outer = self._depth
        try:
            self._depth = outer + 1
            if not outer:
                self._enter()
            yield
        except CorruptTable:
            # Another writer may have changed files while this writer read them.
            if self._held:
                self._lock.check()
            raise
        except FileExistsError as error:
            # A stalled writer continues work that this writer has taken over.
            msg = f"another writer has made a file of the same instant: {error}"
            raise retryable_conflict(msg) from error
        finally:
            self._depth = outer
            if not outer and self._held:
                self._leave()

    def _enter(self) -> None:
        # Set before the lock is taken: an interrupt can come at any time.
        self._held = True
        self._stayed = self._stays()
        if not self._stayed:
            self._take()
        # Prefetched reads may be out of date.
        forget()

    def _take(self) -> None:
        try:
            take(self._lock, self._timeout_ms)
        except (LockTimeout, CorruptTable):
            # The lock was not taken, so it cannot have been lost.
            self._held = False
            raise

    def _stays(self) -> bool:
        """Return whether the lock is still held. Only once in a row: other writers wait for it."""
        leaving, self._leaving = self._leaving, None
        if leaving is None:
            return False
        try:
            if self._stayed or not leaving.stay():
                leaving.end()
                return False
        except BaseException:
            # Interrupted: this thread releases the lock.
            leaving.stay()
            raise
        try:
            self._lock.check()
        except CommitConflict:
            give_back(self._lock, _warn_of_error)
            return False
        return True

    def _leave(self) -> None:
        remaining_s = (self._settled_ms - self._clock.ticks_ms()) / 1000
        if self._leaves_late and self._began_leaving(remaining_s):
            return
        try:
            if remaining_s > 0:
                self._clock.sleep(remaining_s)
        finally:
            self._give_back()

    def _began_leaving(self, remaining_s: float) -> bool:
        """Return whether a thread releases the lock. None can start while the interpreter ends."""
        leaving = _Leaving(remaining_s, self._lock)
        try:
            self._leaving = leaving
            leaving.start()
        except BaseException as error:
            self._leaving = None
            if isinstance(error, RuntimeError):
                return False
            leaving.stay()
            self._give_back()
            raise
        self._held = False
        return True

    def _give_back(self) -> None:
        self._held = False
        give_back(self._lock, _warn_of_error)

    @contextmanager
    def release_later(self) -> Iterator[None]:
        """A block after which the lock is released, and which ends only after the release.

        Work after a critical section need not wait for clock skew or for the lock service. A
        critical section that soon follows another one reuses its lock.
        """
        outer = self._depth
        self._leaves_late = self._has_threads
        try:
            yield
        finally:
            self._leaves_late = False
            # If the critical section was interrupted, it may not have restored the depth.
            self._depth = outer
            self.finish_release()

    def finish_release(self) -> None:
        """Wait until the lock of the last critical section is released."""
        leaving, self._leaving = self._leaving, None
        if leaving is not None:
            leaving.end()
        self._stayed = False
        if self._held and not self._depth:
            self._give_back()

    @property
    def is_held(self) -> bool:
        """Whether this writer is in a critical section."""
        return self._depth > 0

    def check_held(self, within_ms: int = 0) -> None:
        """Raise `CommitConflict` if another writer may hold the lock, now or within `within_ms`."""
        self._lock.check(within_ms)

    def reacquire(self) -> None:
        """Take the lock again within a critical section, after another writer may have taken it."""
        give_back(self._lock, _warn_of_error)
        self._take()
        forget()

    @property
    def lease_ms(self) -> int | None:
        """The minimum time for which a stalled writer keeps the lock."""
        return self._lock.lasts_ms

    def wait_out_clock_skew(self, since_ms: int) -> None:
        """Extend the critical section until `since_ms` has passed on every clock."""
        # Measured in ticks, because the time of day may be set back.
        remaining_ms = min(since_ms + self._skew_ms - self._clock.now_ms(), self._skew_ms)
        self._settled_ms = max(self._settled_ms, self._clock.ticks_ms() + remaining_ms)


class _Leaving(threading.Thread):
    """Releases a lock after a delay, unless the writer needs it again before."""

    def __init__(self, after_s: float, lock: TableLock) -> None:
        super().__init__(name="pyhudi-leaving")
        self._after_s = after_s
        self._lock = lock
        self._requested = threading.Event()
        # Its holder decides. It is never released: an interrupt can come at any time.
        self._decision = threading.Lock()
        self._failure: Exception | None = None

    def run(self) -> None:
        self._requested.wait(max(self._after_s, 0))
        if self._decision.acquire(blocking=False):
            give_back(self._lock, self._fails)

    def _fails(self, error: Exception) -> None:
        self._failure = error

    def stay(self) -> bool:
        """Return whether the lock is still held; the first caller that asks keeps it."""
        stays = self._decision.acquire(blocking=False)
        self._requested.set()
        return stays

    def end(self) -> None:
        """Wait for the thread. Warns if the lock could not be released."""
        if self.is_alive():
            self.join()
        if self._failure is not None:
            _warn_of_error(self._failure)


def _warn_of_error(error: Exception) -> None:
    cause = without_hint(error)
    msg = f"could not release the table's lock; other writers wait until it expires: {cause}"
    warn(msg, LockWarning)


def lock_manager_for(storage: Storage, options: Mapping[str, str], clock: Clock) -> LockManager:
    """Return the lock manager for a table, by the options of the handle.

    Raises `ConfigError` if an option that the lock needs is missing.
    """
    chosen = LockOptions.of(options)
    if chosen.mode is ConcurrencyMode.SINGLE_WRITER:
        return NoLock()
    lock = table_lock(storage, chosen, clock)
    remote = is_remote(storage.uri)
    return TableLockManager(
        lock,
        clock,
        timeout_ms=chosen.patience_ms,
        skew_ms=chosen.skew_ms(remote=remote),
        has_threads=remote and isinstance(clock, SystemClock),
    )
