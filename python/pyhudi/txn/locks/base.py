"""What a table's lock is, and how it is waited for.

No provider's lock can keep a holder that was robbed of it from writing: it may have been asleep, or
cut off. So whoever publishes under a lock asks `check` just before, and the timeline is looked at
besides (`txn/conflicts.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Protocol

from pyhudi.clock import Clock
from pyhudi.config.log import logger
from pyhudi.errors import LockTimeout

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 1.0


class TableLock(Protocol):
    """The lock of one table, held by one writer at a time. An object is used by one thread."""

    def acquire(self, timeout_ms: int) -> bool:
        """Takes the lock, False where others held it all the time. Raises what the service does."""
        ...

    @property
    def lasts_ms(self) -> int | None:
        """For how long one who stands still after `check(within_ms=lasts_ms)` keeps it at least.

        None: for ever.
        """
        ...

    def check(self, within_ms: int = 0) -> None:
        """Raises `CommitConflict` unless the lock is surely held still, and will be.

        within_ms: for so long, `lasts_ms` at most.
        """
        ...

    def release(self) -> None:
        """Gives the lock back, also where taking it or giving it back was interrupted.

        One that was lost or never taken is nobody's to give: that is no error here.
        """
        ...

    def holder(self) -> str:
        """Who has the lock as far as can be told, for messages."""
        ...


def take(lock: TableLock, timeout_ms: int) -> None:
    """Takes a lock. Raises `LockTimeout` where it cannot be had."""
    try:
        taken = lock.acquire(timeout_ms)
    except BaseException:
        # What interrupts may come when the lock has just been taken.
        with suppress(Exception):
            lock.release()
        raise
    if not taken:
        raise LockTimeout(
            f"the table's lock was held by {lock.holder()} for {timeout_ms / 1000:g} s",
            hint="Wait for the other writers, or raise hoodie.write.lock.wait_time_ms.",
        )


def give_back(lock: TableLock, on_failure: Callable[[Exception], None] | None = None) -> None:
    """Gives a lock back that was taken.

    on_failure: is told why it could not be given back, which then is no error.
    """
    try:
        lock.release()
    except Exception as error:
        if on_failure is None:
            raise
        on_failure(error)
    except BaseException:
        # Interrupted: else this living process would seem to hold it.
        with suppress(Exception):
            lock.release()
        raise


def pauses(clock: Clock, timeout_ms: int) -> Iterator[None]:
    """Tries of a lock that has no queue: the first at once, then after longer and longer pauses."""
    until = clock.now_ms() + timeout_ms
    pause = _FIRST_PAUSE_S
    yield
    logger.debug(
        "the table's lock is held by another writer; waiting up to %g s", timeout_ms / 1000
    )
    while (left := (until - clock.now_ms()) / 1000) > 0:
        # Not all that wait at the same moment.
        clock.sleep(min(pause * (0.5 + _chance(clock) / 2), left))
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)
        yield


def _chance(clock: Clock) -> float:
    return int(clock.uuid()[:4], 16) / 0x10000
