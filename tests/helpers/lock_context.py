"""A context manager that holds a lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi.txn.locks.base import TableLock, acquire, release


@contextmanager
def held(lock: TableLock, timeout_ms: int) -> Iterator[TableLock]:
    """Raises `LockTimeout` where it cannot be had."""
    acquire(lock, timeout_ms)
    try:
        yield lock
    finally:
        release(lock)
