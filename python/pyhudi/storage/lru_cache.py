"""What files that never change have said, so that nobody reads them twice."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, TypeAlias

Key: TypeAlias = tuple[str, str]
"""Where, and which file there."""


class LruCache:
    """Values by key up to a total weight; those that nobody asked for longest go first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._weight = 0
        self._values: OrderedDict[Key, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[LruCache], tuple[int]]:
        """Pickled for another process it is empty."""
        return type(self), (self._limit,)

    def get(self, key: Key) -> Any:
        """The value, None where there is none."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Key, value: Any, weight: int) -> None:
        """Keeps a value that is not None, unless it is heavier than all that may be kept."""
        with self._lock:
            if key in self._values or weight > self._limit:
                return
            self._values[key] = value, weight
            self._weight += weight
            while self._weight > self._limit:
                _, (_, gone) = self._values.popitem(last=False)
                self._weight -= gone
