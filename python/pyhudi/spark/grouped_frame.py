"""Groups of a planned DataFrame: columns that an aggregate does not need are not read."""

from __future__ import annotations

from functools import cache
from typing import Any


class Grouping:
    """Methods of groups that plan before Spark's own; mixed into a session's `GroupedData`."""

    def agg(self, *exprs: Any) -> Any:
        """Aggregate as Spark does."""
        named = list(exprs[0]) if len(exprs) == 1 and isinstance(exprs[0], dict) else exprs
        return self._narrow(named, "agg", exprs)

    def count(self) -> Any:
        """Count as Spark does."""
        return self._narrow((), "count", ())

    def sum(self, *cols: str) -> Any:
        """Sum as Spark does."""
        return self._select_columns("sum", cols)

    def avg(self, *cols: str) -> Any:
        """Average as Spark does."""
        return self._select_columns("avg", cols)

    def mean(self, *cols: str) -> Any:
        """Average as Spark does."""
        return self._select_columns("mean", cols)

    def min(self, *cols: str) -> Any:
        """Return the minimum as Spark does."""
        return self._select_columns("min", cols)

    def max(self, *cols: str) -> Any:
        """Return the maximum as Spark does."""
        return self._select_columns("max", cols)

    def _select_columns(self, verb: str, cols: tuple[str, ...]) -> Any:
        """Select columns; without names Spark uses all numeric columns."""
        return self._narrow(cols or ("*",), verb, cols)

    def _narrow(self, speaks: Any, verb: str, given: tuple[Any, ...]) -> Any:
        by = self.__dict__["_by"]
        return self.__dict__["_of"]._aggregate((*by, *speaks), by, verb, given)  # noqa: SLF001


@cache
def _kind_of(base: Any) -> type:
    return type("PlannedGroups", (Grouping, base), {})


def group(frame: Any, by: tuple[Any, ...], groups: Any) -> Any:
    """Return the groups of a planned frame. groups: Spark's groups of the frame."""
    base: Any = type(groups)
    planned: Any = object.__new__(_kind_of(base))
    planned.__dict__.update(groups.__dict__, _of=frame, _by=by)
    return planned
