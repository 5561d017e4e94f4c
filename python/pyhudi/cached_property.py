"""Properties that are computed once."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property  # noqa: PLC0414 - for others
else:

    class cached_property(functools.cached_property):  # noqa: N801 - as Python's
        """Python's `cached_property` without the lock that it has before 3.12.

        All objects share that lock, so threads that work on two tables would wait for each other's
        storage, and a process forked while the lock is held would wait forever.
        """

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            cache = instance.__dict__
            if self.attrname not in cache:
                cache[self.attrname] = self.func(instance)
            return cache[self.attrname]
