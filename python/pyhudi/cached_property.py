"""Properties that are worked out once."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property  # noqa: PLC0414 - for others
else:

    class cached_property(functools.cached_property):  # noqa: N801 - as Python's
        """Without the lock that Python's has before 3.12.

        All objects share it, so threads that work on two tables would wait for one another's
        storage, and a process that was forked meanwhile would wait for ever.
        """

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            found = instance.__dict__
            if self.attrname not in found:
                found[self.attrname] = self.func(instance)
            return found[self.attrname]
