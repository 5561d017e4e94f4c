"""Memory that is free and yet held: allocators keep pages that the system counts as used.

A process with a memory limit takes what it needs from the system, and gives it back between the
stages of its work. Without a limit nothing of this is done: keeping pages is quicker.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import pyarrow as pa


class _Sparing:
    """Who is sparing with memory just now, and Arrow's pool of before."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.pool: pa.MemoryPool | None = None


_NOW = _Sparing()


@contextmanager
def low_memory_mode(limit: int | None) -> Iterator[None]:
    """Has all of the process be sparing with memory for the block; nothing without a limit.

    Arrow's own allocator, mimalloc, holds several times of what is used where threads let go of
    what others made, and takes huge pages: for the block the C library's is in its place. Arrays
    remember whose they are. That one maps large arrays for themselves, so that their pages go with
    them; left alone it takes them from its heaps once some were let go.
    """
    if limit is None:
        yield
        return
    with _NOW.lock:
        if not _NOW.users:
            _NOW.pool = pa.default_memory_pool()
            pa.set_memory_pool(pa.system_memory_pool())
            _map_from(_MAPPED)
        _NOW.users += 1
    try:
        yield
    finally:
        with _NOW.lock:
            _NOW.users -= 1
            if not _NOW.users and _NOW.pool is not None:
                pa.set_memory_pool(_NOW.pool)
                _map_from(_MAPPED_OTHERWISE)
        _release()


def release_free_memory() -> None:
    """Gives free pages back to the system where somebody is sparing with memory.

    It takes milliseconds: call it when many bytes were let go, not for each batch.
    """
    if _NOW.users:
        _release()


def _release() -> None:
    pa.default_memory_pool().release_unused()
    _of_c("malloc_trim")(0)


_MAPPED = 256 << 10
"""Bytes from which on an allocation is a mapping of its own."""
_MAPPED_OTHERWISE = 32 << 20
"""What glibc comes to by itself; asked once, it does not go on adjusting it."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Of glibc's malloc.h."""


def _map_from(size: int) -> None:
    mallopt = _of_c("mallopt")
    mallopt(_M_MMAP_THRESHOLD, size)
    mallopt(_M_TRIM_THRESHOLD, 2 * size)


@cache
def _of_c(name: str) -> Callable[..., object]:
    """A function of the C library; what does nothing where it has none."""
    if sys.platform != "linux":
        return _nothing
    import ctypes  # noqa: PLC0415 - few processes need it

    found: Callable[..., object] = getattr(ctypes.CDLL(None), name, _nothing)
    return found


def _nothing(*_: int) -> None:
    """Where there is nothing to adjust."""
