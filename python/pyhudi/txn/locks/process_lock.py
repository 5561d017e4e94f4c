"""A lock among the threads of one process (`InProcessLockProvider`). Other processes see none."""

from __future__ import annotations

import threading

_locks: dict[str, threading.Lock] = {}
_guard = threading.Lock()


class ProcessLock:
    """The lock of a table's location within this process."""

    def __init__(self, uri: str) -> None:
        """uri: where the table lies, in one spelling."""
        self._uri = uri
        with _guard:
            self._lock = _locks.setdefault(uri, threading.Lock())
        self._held = False

    def acquire(self, timeout_ms: int) -> bool:
        """Takes the lock."""
        self._held = self._lock.acquire(timeout=timeout_ms / 1000)
        return self._held

    @property
    def lasts_ms(self) -> None:
        """Nobody can take it away."""

    def check(self, within_ms: int = 0) -> None:  # noqa: ARG002
        """Nobody can take it away."""

    def release(self) -> None:
        """Gives it back."""
        if self._held:
            self._held = False
            self._lock.release()

    def holder(self) -> str:
        """The process."""
        return f"another thread that writes to {self._uri}"
