"""The protocol of a table's lock, and the wait for it.

No lock provider can stop a holder that has lost its lock from writing: the holder may have stalled
or been disconnected. A writer that publishes under a lock therefore calls `check` just before, and
also checks the timeline (`txn/conflicts.py`).
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
    """The lock of one table, which one writer holds at a time. One thread uses an object."""

    def acquire(self, timeout_ms: int) -> bool:
        """Acquire the lock; return False after the timeout. Raises the service's errors."""

    @property
    def min_lease_ms(self) -> int | None:
        """How long a stalled writer keeps the lock at least after `check(within_ms=min_lease_ms)`.

        None: without limit.
        """

    def check(self, within_ms: int = 0) -> None:
        """Raise `CommitConflict` unless the lock is certainly held for another `within_ms`.

        within_ms: at most `min_lease_ms`.
        """

    def release(self) -> None:
        """Release the lock, also after an interrupted `acquire` or `release`.

        Does nothing if the lock was lost or never acquired.
        """

    def holder(self) -> str:
        """Describe the holder of the lock, for messages."""

    def read_holder(self) -> str | None:
        """Return who holds the lock now, None if it is free. Changes nothing.

        Raises the errors of `acquire`.
        """


def acquire(lock: TableLock, timeout_ms: int) -> None:
    """Acquire a lock. Raises `LockTimeout` if it is not available in time."""
    try:
        is_acquired = lock.acquire(timeout_ms)
    except BaseException:
        # An interrupt may come just after the lock was acquired.
        with suppress(Exception):
            lock.release()
        raise
    if not is_acquired:
        raise LockTimeout(
            f"the table's lock was held by {lock.holder()} for {timeout_ms / 1000:g} s",
            hint="Wait for the other writers, or raise hoodie.write.lock.wait_time_ms.",
        )


def release(lock: TableLock, on_failure: Callable[[Exception], None] | None = None) -> None:
    """Release a lock.

    on_failure: receives the error if the release fails, which is then not raised.
    """
    try:
        lock.release()
    except Exception as error:
        if on_failure is None:
            raise
        on_failure(error)
    except BaseException:
        # Interrupted: release it, or this running process would seem to hold it.
        with suppress(Exception):
            lock.release()
        raise


def attempts(clock: Clock, timeout_ms: int) -> Iterator[None]:
    """Yield before each attempt at a lock without a queue, with growing pauses between them."""
    # In ticks, because the time of day may be set back.
    deadline_ms = clock.ticks_ms() + timeout_ms
    pause = _FIRST_PAUSE_S
    yield
    logger.debug(
        "the table's lock is held by another writer; waiting up to %g s", timeout_ms / 1000
    )
    while (remaining_s := (deadline_ms - clock.ticks_ms()) / 1000) > 0:
        # Waiting writers should not all try at the same time.
        clock.sleep(min(pause * (0.5 + jitter(clock) / 2), remaining_s))
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)
        yield


def jitter(clock: Clock) -> float:
    """Return a random number from 0 to 1."""
    return int(clock.uuid()[:4], 16) / 0x10000
