"""A context manager that holds a lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi.txn.locks.base import TableLock, give_back, take


@contextmanager
def held(lock: TableLock, timeout_ms: int) -> Iterator[TableLock]:
    """Raises `LockTimeout` where it cannot be had."""
    take(lock, timeout_ms)
    try:
        yield lock
    finally:
        give_back(lock)
