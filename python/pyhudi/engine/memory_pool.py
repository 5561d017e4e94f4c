"""The memory limit of one task, and allocators, which keep free pages that count as used.

A process with a memory limit allocates from the system, and releases free pages between the stages
of its work. Without a limit it keeps them, which is faster.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.engine.protocol import Engine
from pyhudi.errors import ConfigError

if TYPE_CHECKING:
    from pyhudi.config.memory_size import MemorySize


class _LowMemoryUsers:
    """The users of the low-memory mode, and Arrow's previous pool."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.pool: pa.MemoryPool | None = None


_USERS = _LowMemoryUsers()


@contextmanager
def low_memory_mode(limit: MemorySize | None) -> Iterator[None]:
    """Use the low-memory mode in the whole process during the block; without a limit, do nothing.

    Arrow's own allocator, mimalloc, keeps several times the used memory if threads free what other
    threads allocated, and uses huge pages: the C library's allocator replaces it for the block.
    Arrays remember their allocator. The C library maps large arrays separately, so that their pages
    are freed with them; by default it takes them from its heaps once some were freed.
    """
    if limit is None:
        yield
        return
    with _USERS.lock:
        if not _USERS.users:
            _USERS.pool = pa.default_memory_pool()
            pa.set_memory_pool(pa.system_memory_pool())
            _map_from(_MAPPED)
        _USERS.users += 1
    try:
        yield
    finally:
        with _USERS.lock:
            _USERS.users -= 1
            if not _USERS.users and _USERS.pool is not None:
                pa.set_memory_pool(_USERS.pool)
                _map_from(_DEFAULT_MAPPED)
        _release()


def release_free_memory() -> None:
    """Release free pages to the system in the low-memory mode.

    It takes milliseconds: call it after many bytes were freed, not for each batch.
    """
    if _USERS.users:
        _release()


def _release() -> None:
    pa.default_memory_pool().release_unused()
    _c_function("malloc_trim")(0)


_MAPPED = 256 << 10
"""Allocations of this many bytes or more get their own mapping."""
_DEFAULT_MAPPED = 32 << 20
"""The value that glibc reaches by itself; once set, glibc no longer adjusts it."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""From glibc's malloc.h."""


def _map_from(size: int) -> None:
    mallopt = _c_function("mallopt")
    mallopt(_M_MMAP_THRESHOLD, size)
    mallopt(_M_TRIM_THRESHOLD, 2 * size)


@cache
def _c_function(name: str) -> Callable[..., object]:
    """Return a function of the C library; one that does nothing if the library does not have it."""
    if sys.platform != "linux":
        return _nothing
    import ctypes  # noqa: PLC0415 - few processes need it

    function: Callable[..., object] = getattr(ctypes.CDLL(None), name, _nothing)
    return function


def _nothing(*_: int) -> None:
    """Do nothing."""


_MIN_MEMORY = 1 << 20


def machine_memory() -> int:
    """Return the bytes of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def task_memory(limit: MemorySize | None, engine: Engine) -> int:
    """Return one task's share of a memory limit; by default of a quarter of the machine's memory.

    Raises `ConfigError` if the limit is below a megabyte or not a size.
    """
    from pyhudi.config.memory_size import parse_memory_size  # noqa: PLC0415 - opening needs none

    size = machine_memory() // 4 if limit is None else parse_memory_size(limit)
    if size < _MIN_MEMORY:
        raise ConfigError(f"memory_limit is {limit}; it must be at least {_MIN_MEMORY} bytes")
    return size // engine.tasks_per_process
