"""How the writers of a table exclude each other."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from pyhudi.storage.prefetch import forget


class LockManager(Protocol):
    """Opens critical sections, in which one writer changes the table and no other does."""

    def critical_section(self) -> AbstractContextManager[None]:
        """A block in which no other writer changes timeline, metadata table or properties."""

    @property
    def is_held(self) -> bool:
        """Whether this writer is in a critical section."""

    def check_held(self, within_ms: int = 0) -> None:
        """Raise `CommitConflict` if another writer may have entered a critical section.

        Args:
            within_ms: The section must last this much longer, even if this writer stalls; at
                most `lease_ms`.
        """

    def reacquire(self) -> None:
        """Enter the current critical section again after `check_held` raised.

        Raises:
            LockTimeout: Another writer holds the lock.
        """

    @property
    def lease_ms(self) -> int | None:
        """How long a stalled writer keeps a critical section; None: without limit."""

    def wait_out_clock_skew(self, since_ms: int) -> None:
        """Keep the critical section until `since_ms` is past on the clocks of all writers.

        Outside of a critical section it does not wait.
        """

    def release_later(self) -> AbstractContextManager[None]:
        """A block that runs while the lock is being released, which is done when it ends."""

    def finish_release(self) -> None:
        """Wait until the lock is released."""


class NoLock(LockManager):
    """For readers, and for a writer that is the only one."""

    is_held = False
    lease_ms = None

    def critical_section(self) -> AbstractContextManager[None]:
        """Return a block that excludes no other writer."""
        forget()
        return nullcontext()

    def check_held(self, within_ms: int = 0) -> None:
        """Do nothing: there is no other writer."""

    def reacquire(self) -> None:
        """Do nothing: there is no other writer."""

    def wait_out_clock_skew(self, since_ms: int) -> None:
        """Do nothing: there is one clock."""

    def release_later(self) -> AbstractContextManager[None]:
        """Return a block without effect."""
        return nullcontext()

    def finish_release(self) -> None:
        """Do nothing: no lock is held."""
