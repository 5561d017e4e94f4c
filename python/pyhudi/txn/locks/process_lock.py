"""A lock between threads of one process (`InProcessLockProvider`). Other processes ignore it."""

from __future__ import annotations

import threading

_locks: dict[str, threading.Lock] = {}
_locks_mutex = threading.Lock()


class ProcessLock:
    """The lock of a table's location, within this process."""

    def __init__(self, uri: str) -> None:
        """uri: the normalized location of the table."""
        self._uri = uri
        with _locks_mutex:
            self._lock = _locks.setdefault(uri, threading.Lock())
        self._held = False

    def acquire(self, timeout_ms: int) -> bool:
        """Acquire the lock."""
        self._held = self._lock.acquire(timeout=timeout_ms / 1000)
        return self._held

    @property
    def min_lease_ms(self) -> None:
        """No writer can take it over."""

    def check(self, within_ms: int = 0) -> None:  # noqa: ARG002
        """No writer can take it over."""

    def release(self) -> None:
        """Release the lock."""
        if self._held:
            self._held = False
            self._lock.release()

    def holder(self) -> str:
        """Return the process."""
        return f"another thread that writes to {self._uri}"
