"""Groups of a planned DataFrame: what an aggregate does not need is not read."""

from __future__ import annotations

from functools import cache
from typing import Any


class Grouping:
    """What groups do before Spark's own; mixed into a session's `GroupedData`."""

    def agg(self, *exprs: Any) -> Any:
        """As Spark's."""
        named = list(exprs[0]) if len(exprs) == 1 and isinstance(exprs[0], dict) else exprs
        return self._narrow(named, "agg", exprs)

    def count(self) -> Any:
        """As Spark's."""
        return self._narrow((), "count", ())

    def sum(self, *cols: str) -> Any:
        """As Spark's."""
        return self._select_columns("sum", cols)

    def avg(self, *cols: str) -> Any:
        """As Spark's."""
        return self._select_columns("avg", cols)

    def mean(self, *cols: str) -> Any:
        """As Spark's."""
        return self._select_columns("mean", cols)

    def min(self, *cols: str) -> Any:
        """As Spark's."""
        return self._select_columns("min", cols)

    def max(self, *cols: str) -> Any:
        """As Spark's."""
        return self._select_columns("max", cols)

    def _select_columns(self, verb: str, cols: tuple[str, ...]) -> Any:
        """Without names Spark takes all columns that are numbers."""
        return self._narrow(cols or ("*",), verb, cols)

    def _narrow(self, speaks: Any, verb: str, given: tuple[Any, ...]) -> Any:
        by = self.__dict__["_by"]
        return self.__dict__["_of"]._aggregate((*by, *speaks), by, verb, given)  # noqa: SLF001


@cache
def _kind_of(base: Any) -> type:
    return type("PlannedGroups", (Grouping, base), {})


def group(frame: Any, by: tuple[Any, ...], groups: Any) -> Any:
    """The groups of a planned frame. groups: those that Spark made of it."""
    base: Any = type(groups)
    found: Any = object.__new__(_kind_of(base))
    found.__dict__.update(groups.__dict__, _of=frame, _by=by)
    return found
