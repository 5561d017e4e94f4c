"""Cache for the content of files that never change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, TypeAlias

Key: TypeAlias = tuple[str, str]
"""Location and file."""


class LruCache:
    """Values by key up to a total weight; the least recently used ones are evicted first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._weight = 0
        self._values: OrderedDict[Key, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[LruCache], tuple[int]]:
        """A copy that is pickled for another process is empty."""
        return type(self), (self._limit,)

    def get(self, key: Key) -> Any:
        """Return the value, or None."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Key, value: Any, weight: int) -> None:
        """Cache a value that is not None, unless it exceeds the limit."""
        with self._lock:
            if key in self._values or weight > self._limit:
                return
            self._values[key] = value, weight
            self._weight += weight
            while self._weight > self._limit:
                _, (_, evicted_weight) = self._values.popitem(last=False)
                self._weight -= evicted_weight
