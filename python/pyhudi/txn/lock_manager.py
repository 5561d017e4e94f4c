"""The lock of a table's writers as one writer uses it: sections, one inside another if need be.

Whatever changes the timeline, the metadata table or the properties does so within a section, on a
timeline that was loaded there. Data files are written outside.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyhudi.clock import Clock, SystemClock
from pyhudi.config.concurrency_mode import ConcurrencyMode
from pyhudi.config.lock_options import LockOptions
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
    """Sections under a lock. Belongs to one writer, which is one thread."""

    def __init__(
        self,
        lock: TableLock,
        clock: Clock,
        *,
        timeout_ms: int,
        skew_ms: int,
        has_threads: bool = False,
    ) -> None:
        """timeout_ms: how long the lock is waited for. skew_ms: what clocks may differ by.

        has_threads: the lock can be given back by a thread that waits for the clock.
        """
        self._lock = lock
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._skew_ms = skew_ms
        self._has_threads = has_threads
        self._depth = 0
        self._held = False
        self._stayed = False
        """The lock is of the section before."""
        self._settled_ms = 0
        """By the clock's ticks: the lock is held until then."""
        self._leaves_late = False
        self._leaving: _Leaving | None = None

    @contextmanager
    def critical_section(self) -> Iterator[None]:
        """Holds the lock for the block. Raises `LockTimeout` where it cannot be had.

        `CommitConflict` takes the place of `CorruptTable` where the lock was lost, and of
        `FileExistsError`.
        """
        outer = self._depth
        try:
            self._depth = outer + 1
            if not outer:
                self._enter()
            yield
        except CorruptTable:
            # Others may have changed what this writer has read a part of.
            if self._held:
                self._lock.check()
            raise
        except FileExistsError as error:
            # Who stood still goes on with what this writer has taken over.
            msg = f"another writer has made a file of the same instant: {error}"
            raise retryable_conflict(msg) from error
        finally:
            self._depth = outer
            if not outer and self._held:
                self._leave()

    def _enter(self) -> None:
        # Before it is: what interrupts comes at any time.
        self._held = True
        self._stayed = self._stays()
        if not self._stayed:
            self._take()
        # What was asked for before may not be what is there by now.
        forget()

    def _take(self) -> None:
        try:
            take(self._lock, self._timeout_ms)
        except (LockTimeout, CorruptTable):
            # It was not taken, nor can it have been lost.
            self._held = False
            raise

    def _stays(self) -> bool:
        """Whether the lock is held still. Once only: others wait for it."""
        leaving, self._leaving = self._leaving, None
        if leaving is None:
            return False
        try:
            if self._stayed or not leaving.stay():
                leaving.end()
                return False
        except BaseException:
            # Interrupted: this thread gives it back.
            leaving.stay()
            raise
        try:
            self._lock.check()
        except CommitConflict:
            give_back(self._lock, _warn_of_error)
            return False
        return True

    def _leave(self) -> None:
        left_s = (self._settled_ms - self._clock.ticks_ms()) / 1000
        if self._leaves_late and self._began_leaving(left_s):
            return
        try:
            if left_s > 0:
                self._clock.sleep(left_s)
        finally:
            self._give_back()

    def _began_leaving(self, left_s: float) -> bool:
        """Whether a thread leaves, of which none can be had while the interpreter ends."""
        leaving = _Leaving(left_s, self._lock)
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
        """A block after which the lock is given back, and not before the block goes on.

        What follows a section need not wait for clocks, nor for the lock's service; and a section
        that soon follows another goes on with its lock.
        """
        outer = self._depth
        self._leaves_late = self._has_threads
        try:
            yield
        finally:
            self._leaves_late = False
            # Interrupted, a section may not have got that far.
            self._depth = outer
            self.finish_release()

    def finish_release(self) -> None:
        """Waits until the lock of the last section is given back."""
        leaving, self._leaving = self._leaving, None
        if leaving is not None:
            leaving.end()
        self._stayed = False
        if self._held and not self._depth:
            self._give_back()

    @property
    def is_held(self) -> bool:
        """Whether this writer is in a section."""
        return self._depth > 0

    def check_held(self, within_ms: int = 0) -> None:
        """Raises `CommitConflict` where the lock may be another's by now, or before so long."""
        self._lock.check(within_ms)

    def reacquire(self) -> None:
        """Within a section: takes the lock again that may be another's by now."""
        give_back(self._lock, _warn_of_error)
        self._take()
        forget()

    @property
    def lease_ms(self) -> int | None:
        """For how long one who stands still keeps the lock at least."""
        return self._lock.lasts_ms

    def wait_out_clock_skew(self, since_ms: int) -> None:
        """Has the section last until a time that was taken then is past for every clock."""
        # Not by the time of day, which may be set back meanwhile.
        left = min(since_ms + self._skew_ms - self._clock.now_ms(), self._skew_ms)
        self._settled_ms = max(self._settled_ms, self._clock.ticks_ms() + left)


class _Leaving(threading.Thread):
    """Gives a lock back after a while, unless it is wanted again by then."""

    def __init__(self, after_s: float, lock: TableLock) -> None:
        super().__init__(name="pyhudi-leaving")
        self._after_s = after_s
        self._lock = lock
        self._wanted = threading.Event()
        # Who has it decides. It is never given back: what interrupts comes at any time.
        self._decision = threading.Lock()
        self._failure: Exception | None = None

    def run(self) -> None:
        self._wanted.wait(max(self._after_s, 0))
        if self._decision.acquire(blocking=False):
            give_back(self._lock, self._fails)

    def _fails(self, error: Exception) -> None:
        self._failure = error

    def stay(self) -> bool:
        """Whether the lock is held still, which it then is for who asked first."""
        stays = self._decision.acquire(blocking=False)
        self._wanted.set()
        return stays

    def end(self) -> None:
        """Waits for it. Tells where the lock could not be given back."""
        if self.is_alive():
            self.join()
        if self._failure is not None:
            _warn_of_error(self._failure)


def _warn_of_error(error: Exception) -> None:
    cause = without_hint(error)
    msg = f"the table's lock could not be given back, others wait until its time is over: {cause}"
    warn(msg, LockWarning)


def lock_manager_for(storage: Storage, options: Mapping[str, str], clock: Clock) -> LockManager:
    """How the writers of a table keep out of each other's way, by the options of the handle.

    Raises `ConfigError` for an option that the lock needs and that is missing.
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
