"""What one task of a read may hold in memory, of what a caller allows for all of them."""

from __future__ import annotations

import os

from pyhudi.engine.protocol import Engine
from pyhudi.errors import ConfigError

_LEAST_MEMORY = 1 << 20


def task_memory(limit: int | None, engine: Engine) -> int:
    """The share of one task in a scan's memory; a quarter of the machine's when none is given.

    Raises `ConfigError` for less than a megabyte and for what is no number.
    """
    if limit is None:
        limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise ConfigError(f"memory_limit is {limit!r}", hint="Give an integer number of bytes.")
    if limit < _LEAST_MEMORY:
        raise ConfigError(f"memory_limit is {limit}; it must be at least {_LEAST_MEMORY} bytes")
    return limit // engine.tasks_per_process
