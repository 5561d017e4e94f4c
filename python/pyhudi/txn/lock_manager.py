"""The lock manager of one writer: critical sections under the table's lock, which can nest.

Every change of the timeline, the metadata table or the properties happens in a critical section, on
a timeline that was loaded in it. Data files are written outside.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyhudi import events
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
from pyhudi.txn.locks.base import TableLock, acquire, release
from pyhudi.txn.locks.providers import table_lock

_LINGER_S = 0.3
"""How much longer than necessary the lock is held in the background for the next critical section.

A small write needs it again by then, and otherwise waits for a release and an acquisition."""


class TableLockManager(LockManager):
    """Critical sections under a lock, for one writer in one thread."""

    def __init__(
        self,
        lock: TableLock,
        clock: Clock,
        *,
        timeout_ms: int,
        skew_ms: int,
        has_threads: bool = False,
        uri: str = "",
    ) -> None:
        """timeout_ms: the timeout for the lock. skew_ms: the maximum difference of clocks.

        has_threads: whether a thread may release the lock, after it waited for the clock. uri: of
        the table, for events.
        """
        self._lock = lock
        self._observed = _ObservedLock(lock, uri)
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._skew_ms = skew_ms
        self._has_threads = has_threads
        self._depth = 0
        self._held = False
        self._was_kept = False
        """Whether the lock was kept from the previous critical section."""
        self._hold_until_ms = 0
        """The lock is held until then, in the clock's ticks."""
        self._releases_later = False
        self._delayed_release: _DelayedRelease | None = None

    @contextmanager
    def critical_section(self) -> Iterator[None]:
        """Hold the lock for the block. Raises `LockTimeout` if it is not available in time.

        `CommitConflict` replaces `CorruptTable` if the lock was lost, and replaces
        `FileExistsError`.
        """
        outer_depth = self._depth
        try:
            self._depth = outer_depth + 1
            if not outer_depth:
                self._keep_or_acquire()
            yield
        except CorruptTable:
            # If the lock was lost, another writer may have changed the files during the read.
            if self._held:
                self._lock.check()
            raise
        except FileExistsError as error:
            # A stalled writer continues its work, which this writer has taken over.
            msg = f"another writer has made a file of the same instant: {error}"
            raise retryable_conflict(msg) from error
        finally:
            self._depth = outer_depth
            if not outer_depth and self._held:
                self._release_or_delay()

    def _keep_or_acquire(self) -> None:
        # Set before the lock is acquired: an interrupt can come at any time.
        self._held = True
        self._was_kept = self._keep_lock()
        if not self._was_kept:
            self._acquire()
        # Prefetched reads may be out of date.
        forget()

    def _acquire(self) -> None:
        try:
            self._observed.acquire(self._timeout_ms)
        except (LockTimeout, CorruptTable):
            # The lock was not acquired, so it is not lost.
            self._held = False
            raise

    def _keep_lock(self) -> bool:
        """Keep the lock of the previous critical section; return whether that was possible.

        Not twice in a row, since other writers wait for the lock.
        """
        delayed_release, self._delayed_release = self._delayed_release, None
        if delayed_release is None:
            return False
        try:
            if self._was_kept or not delayed_release.cancel():
                delayed_release.finish()
                return False
        except BaseException:
            # Interrupted: this thread releases the lock.
            delayed_release.cancel()
            raise
        try:
            self._lock.check()
        except CommitConflict:
            self._observed.release(_warn_of_error)
            return False
        return True

    def _release_or_delay(self) -> None:
        remaining_s = (self._hold_until_ms - self._clock.ticks_ms()) / 1000
        if self._releases_later and self._start_delayed_release(remaining_s):
            return
        try:
            if remaining_s > 0:
                self._clock.sleep(remaining_s)
        finally:
            self._release()

    def _start_delayed_release(self, remaining_s: float) -> bool:
        """Release the lock in a thread; return False if the interpreter ends and starts none."""
        linger_s = 0 if self._was_kept else _LINGER_S
        delayed_release = _DelayedRelease(remaining_s, linger_s, self._observed)
        try:
            self._delayed_release = delayed_release
            delayed_release.start()
        except BaseException as error:
            self._delayed_release = None
            if isinstance(error, RuntimeError):
                return False
            delayed_release.cancel()
            self._release()
            raise
        self._held = False
        return True

    def _release(self) -> None:
        self._held = False
        self._observed.release(_warn_of_error)

    @contextmanager
    def release_later(self) -> Iterator[None]:
        """A block after which the lock is released, and which ends only after the release.

        So work after a critical section need not wait for clock skew or for the lock service, and a
        critical section that follows soon reuses the lock.
        """
        outer_depth = self._depth
        self._releases_later = self._has_threads
        try:
            yield
        finally:
            self._releases_later = False
            # An interrupted critical section may not have restored the depth.
            self._depth = outer_depth
            self.finish_release()

    def finish_release(self) -> None:
        """Wait until the lock of the last critical section is released."""
        delayed_release, self._delayed_release = self._delayed_release, None
        if delayed_release is not None:
            delayed_release.finish()
        self._was_kept = False
        if self._held and not self._depth:
            self._release()

    @property
    def is_held(self) -> bool:
        """Whether this writer is in a critical section."""
        return self._depth > 0

    def check_held(self, within_ms: int = 0) -> None:
        """Raise `CommitConflict` if another writer may hold the lock, now or within `within_ms`."""
        self._lock.check(within_ms)

    def reacquire(self) -> None:
        """Acquire the lock again within a critical section, if another writer may have had it."""
        self._observed.release(_warn_of_error)
        self._acquire()
        forget()

    @property
    def lease_ms(self) -> int | None:
        """How long a stalled writer keeps the lock at least; None: without limit."""
        return self._lock.min_lease_ms

    def wait_out_clock_skew(self, since_ms: int) -> None:
        """Extend the critical section until `since_ms` has passed on every clock."""
        # Measured in ticks, because the time of day may be set back.
        remaining_ms = min(since_ms + self._skew_ms - self._clock.now_ms(), self._skew_ms)
        self._hold_until_ms = max(self._hold_until_ms, self._clock.ticks_ms() + remaining_ms)


class _ObservedLock:
    """Acquires and releases a lock, whose waits and holds are events."""

    def __init__(self, lock: TableLock, uri: str) -> None:
        self._lock = lock
        self._uri = uri
        self._hold: events.Observation[events.LockHold] | None = None

    def acquire(self, timeout_ms: int) -> None:
        """Acquire the lock: see `acquire` of `locks.base`."""
        with events.observe(events.LockWait, self._uri):
            acquire(self._lock, timeout_ms)
        self._hold = events.begin(events.LockHold, self._uri)

    def release(self, on_failure: Callable[[Exception], None]) -> None:
        """Release the lock: see `release` of `locks.base`."""
        hold, self._hold = self._hold, None
        try:
            release(self._lock, on_failure)
        finally:
            if hold is not None:
                hold.end()


class _DelayedRelease(threading.Thread):
    """Releases a lock after a delay, unless the writer needs the lock again before."""

    def __init__(self, after_s: float, linger_s: float, lock: _ObservedLock) -> None:
        """linger_s: added to the delay, unless `finish` is called before."""
        super().__init__(name="pyhudi-release")
        self._after_s = after_s
        self._linger_s = linger_s
        self._lock = lock
        self._wake = threading.Event()
        self._is_awaited = threading.Event()
        # The first thread to acquire it decides. Never released: an interrupt can come at any time.
        self._claim = threading.Lock()
        self._failure: Exception | None = None

    def run(self) -> None:
        if not self._wake.wait(max(self._after_s, 0)):
            self._is_awaited.wait(self._linger_s)
        if self._claim.acquire(blocking=False):
            self._lock.release(self._record_failure)

    def _record_failure(self, error: Exception) -> None:
        self._failure = error

    def cancel(self) -> bool:
        """Cancel the release; return False if the lock is released already, or cancelled."""
        is_cancelled = self._claim.acquire(blocking=False)
        self._wake.set()
        self._is_awaited.set()
        return is_cancelled

    def finish(self) -> None:
        """Wait for the thread. Warns if the lock could not be released."""
        self._is_awaited.set()
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
    lock_options = LockOptions.of(options)
    if lock_options.mode is ConcurrencyMode.SINGLE_WRITER:
        return NoLock()
    lock = table_lock(storage, lock_options, clock)
    remote = is_remote(storage.uri)
    return TableLockManager(
        lock,
        clock,
        timeout_ms=lock_options.patience_ms,
        skew_ms=lock_options.skew_ms(remote=remote),
        has_threads=remote and isinstance(clock, SystemClock),
        uri=storage.uri,
    )
