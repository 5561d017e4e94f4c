"""The lock of a table's writers as one writer uses it: sections, one inside another if need be.

Whatever changes the timeline, the metadata table or the properties does so within a section, on a
timeline that was loaded there. Data files are written outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from pyhudi.clock import Clock
from pyhudi.config.concurrency_mode import ConcurrencyMode
from pyhudi.config.lock_options import LockOptions
from pyhudi.config.log import warn
from pyhudi.errors import LockWarning, without_hint
from pyhudi.slices.table import Guard, Unguarded
from pyhudi.storage.options import is_remote
from pyhudi.storage.storage import Storage
from pyhudi.txn.locks.choice import table_lock
from pyhudi.txn.locks.lock import TableLock, held


class LockGuard(Guard):
    """Sections under a lock. Belongs to one writer, which is one thread."""

    def __init__(self, lock: TableLock, clock: Clock, *, patience_ms: int, skew_ms: int) -> None:
        """patience_ms: how long the lock is waited for. skew_ms: what clocks may differ by."""
        self._lock = lock
        self._clock = clock
        self._patience_ms = patience_ms
        self._skew_ms = skew_ms
        self._depth = 0

    @contextmanager
    def section(self) -> Iterator[None]:
        """Holds the lock for the block. Raises `LockTimeout` where it cannot be had."""
        alone: AbstractContextManager[object] = nullcontext()
        if not self._depth:
            alone = held(self._lock, self._patience_ms, _told)
        with alone:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1

    @property
    def is_entered(self) -> bool:
        """Whether this writer is in a section."""
        return self._depth > 0

    def check(self) -> None:
        """Raises `CommitConflict` where the lock may be another's by now."""
        self._lock.check()

    def settle(self, since_ms: int) -> None:
        """Waits until a time that was taken then is past for every clock."""
        left = since_ms + self._skew_ms - self._clock.now_ms()
        if left > 0:
            self._clock.sleep(left / 1000)


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
    skew = chosen.skew_ms(remote=is_remote(storage.uri))
    return LockGuard(lock, clock, patience_ms=chosen.patience_ms, skew_ms=skew)
