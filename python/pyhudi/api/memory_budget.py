"""The memory that one task of a read may use, as a share of the caller's limit."""

from __future__ import annotations

import os

from pyhudi.engine.protocol import Engine
from pyhudi.errors import ConfigError

_MIN_MEMORY = 1 << 20


def task_memory(limit: int | None, engine: Engine) -> int:
    """Return one task's share of a memory limit; by default of a quarter of the machine's memory.

    Raises `ConfigError` if the limit is below a megabyte or not a number.
    """
    if limit is None:
        limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise ConfigError(f"memory_limit is {limit!r}", hint="Give an integer number of bytes.")
    if limit < _MIN_MEMORY:
        raise ConfigError(f"memory_limit is {limit}; it must be at least {_MIN_MEMORY} bytes")
    return limit // engine.tasks_per_process
