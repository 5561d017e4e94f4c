"""A DataFrame of a scan that prunes files, rows and columns before Spark reads them.

Selecting columns, filtering, grouping and counting are recorded, and the read is planned when Spark
asks for a plan. Spark gets a narrower read with all of the user's steps on top of it, including
filters: so the result is Spark's own, whatever was pruned below. All other methods are those of the
DataFrame base class.
"""

# ruff: noqa: SLF001 - frames know each other, and what Spark's own DataFrame holds
from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.api.scan import Scan
from pyhudi.slices.task_packing import PackSizes
from pyhudi.spark.aggregate_pushdown import parts_of
from pyhudi.spark.column_sql import PLAIN_NAME, flat, names_in, plain_name, sql_of
from pyhudi.spark.count_pushdown import count_rows
from pyhudi.spark.engine import SparkEngine, is_connect
from pyhudi.spark.grouped_frame import group
from pyhudi.spark.recorded_steps import Names, Step, replay
from pyhudi.spark.scan_frame import ScanSource, fresh_plan_id
from pyhudi.spark.source_filters import FilterTuple, fitting
from pyhudi.spark.sql_conjuncts import conjuncts_of
from pyhudi.spark.types import wire_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame as _Frame
else:
    _Frame = object


class Planning(_Frame):  # type: ignore[misc]
    """Methods that plan before Spark does; mixed into a session's own DataFrame."""

    _origin: ScanSource
    _steps: tuple[Step, ...]
    _before: Planning | None

    @property
    def _jdf(self) -> Any:
        return self._plain()._jdf if "_steps" in self.__dict__ else None

    @_jdf.setter
    def _jdf(self, made: Any) -> None:
        """Ignore the value: the frame is built when it is needed."""

    @property
    def _plan(self) -> Any:
        return self._plain()._plan if "_steps" in self.__dict__ else False

    @_plan.setter
    def _plan(self, made: Any) -> None:
        """Ignore the value: the frame is built when it is needed."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self._output())

    # --- what is planned ----------------------------------------------------------------------

    def select(self, *cols: Any) -> Any:
        """Select as Spark does; other columns are not read."""
        columns = flat(cols)
        names = [plain_name(column) for column in columns]
        output = self._output()
        if columns and all(name in output for name in names) and len(set(names)) == len(names):
            return self._with(Step("select", tuple(columns), tuple(map(str, names))))
        return self._over(columns, "select", *cols)

    def selectExpr(self, *expr: Any) -> Any:  # noqa: N802 - Spark's name
        """Select as Spark does; other columns are not read."""
        return self._over(expr, "selectExpr", *expr)

    def drop(self, *cols: Any) -> Any:
        """Drop as Spark does; the columns are not read."""
        output = self._output()
        if cols and all(isinstance(column, str) and column in output for column in cols):
            rest = [name for name in output if name not in cols]
            if rest and all(PLAIN_NAME.fullmatch(name) for name in rest):
                return self.select(*rest)
        return super().drop(*cols)

    def filter(self, condition: Any) -> Any:
        """Filter as Spark does; rows that certainly do not match are not read."""
        text = sql_of(condition)
        names = names_in([condition], self._origin.columns)
        if names is None or not self._origin.is_narrowed:
            return super().filter(condition)
        conjuncts = conjuncts_of(text or "")
        schema = self._origin.scan.shown
        tuples = tuple(triple for triple in conjuncts.tuples if fitting(triple, schema))
        tuples = tuple(triple for triple in tuples if triple[0] in names)
        exact = conjuncts.whole and len(tuples) == len(conjuncts.tuples)
        step = Step("filter", (condition,), tuple(sorted(names)), tuples, exact)
        filtered = self._with(step)
        # Spark checks a condition immediately, so errors in it must be raised now.
        if not exact and self._origin.plan_id is None:
            try:
                _ = filtered._jdf
            except _analysis_exception():
                return super().filter(condition)
        return filtered

    def where(self, condition: Any) -> Any:
        """Filter as `filter` does."""
        return self.filter(condition)

    def sort(self, *cols: Any, **kwargs: Any) -> Any:
        """Sort as Spark does."""
        return self._sort("sort", cols, kwargs)

    orderBy = sort  # noqa: N815 - Spark's name

    def sortWithinPartitions(self, *cols: Any, **kwargs: Any) -> Any:  # noqa: N802 - Spark's name
        """Sort as Spark does."""
        return self._sort("sortWithinPartitions", cols, kwargs)

    def groupBy(self, *cols: Any) -> Any:  # noqa: N802 - Spark's name
        """Group as Spark does; columns that an aggregate does not need are not read."""
        return group(self, cols, super().groupBy(*cols))

    groupby = groupBy

    def agg(self, *exprs: Any) -> Any:
        """Aggregate as Spark does; other columns are not read."""
        partial = self._aggregate_in_tasks((), "agg", exprs)
        if partial is not None:
            return partial
        named = list(exprs[0]) if len(exprs) == 1 and isinstance(exprs[0], dict) else exprs
        return self._over(named, "agg", *exprs)

    def limit(self, num: Any) -> Any:
        """Limit as Spark does; each task stops there."""
        if isinstance(num, int) and num >= 0 and self._is_exact() and self._find_cached() is None:
            return self._build(self._columns_to_read(), num).limit(num)
        return super().limit(num)

    def count(self) -> int:
        """Count as Spark does; from footers if no row must be read."""
        if self._find_cached() is not None:
            return int(super().count())
        filters = [step for step in self._steps if step.kind == "filter"]
        if self._is_exact():
            names = [filters[0].names[0]] if filters and filters[0].names else []
            scan = self._origin.scan_of(names or [self._origin.narrow()], self._filters_to_push())
            return count_rows(scan, self._origin.engine, self._origin.sizes)
        return int(self._build(frozenset()).count())

    # --- what is kept -------------------------------------------------------------------------

    def persist(self, *level: Any, **named: Any) -> Any:
        """Cache as Spark does; frames derived from this one use the cached rows."""
        self.__dict__["_is_kept"] = True
        return super().persist(*level, **named)

    def cache(self) -> Any:
        """Cache as Spark does; frames derived from this one use the cached rows."""
        self.__dict__["_is_kept"] = True
        return super().cache()

    def unpersist(self, *how: Any, **named: Any) -> Any:
        """Drop the cached rows as Spark does."""
        self.__dict__["_is_kept"] = False
        return super().unpersist(*how, **named)

    # --- how it is made -----------------------------------------------------------------------

    def _with(self, step: Step) -> Planning:
        plan_id = fresh_plan_id(self._origin.engine.spark)
        step = Step(step.kind, step.given, step.names, step.pushed, step.exact, plan_id)
        planned: Planning = _derive(type(self), self._origin, (*self._steps, step), self)
        return planned

    def _output(self) -> tuple[str, ...]:
        selects = [step.names for step in self._steps if step.kind == "select"]
        return selects[-1] if selects else self._origin.columns

    def _filters_to_push(self) -> tuple[FilterTuple, ...]:
        return tuple(triple for step in self._steps for triple in step.pushed)

    def _is_exact(self) -> bool:
        return all(step.exact for step in self._steps)

    def _filter_columns(self) -> Names:
        filters = [step.names for step in self._steps if step.kind == "filter"]
        return frozenset(name for names in filters for name in names)

    def _columns_to_read(self) -> Names:
        return frozenset(self._output()) | self._filter_columns()

    def _plain(self) -> Any:
        """Return the frame as a DataFrame of Spark."""
        frame = self.__dict__.get("_plain_frame")
        if frame is None:
            frame = self._build(self._columns_to_read())
            self.__dict__["_plain_frame"] = frame
        return frame

    def _build(self, needed: Names, limit: int | None = None) -> Any:
        """Return a read of the needed columns, with the steps on top of it.

        needed: columns of the last step.
        """
        cached = self._find_cached()
        if cached is not None and cached is not self:
            steps = self._steps[len(cached._steps) :]
            return replay(cached._plain(), steps, frozenset(self._origin.columns))
        needed = self._at_least_one(needed | self._filter_columns())
        if not self._origin.is_narrowed:
            needed = frozenset(self._origin.columns)
        leaf = self._origin.to_dataframe(sorted(needed), self._filters_to_push(), limit)
        return replay(leaf, self._steps, needed)

    def _at_least_one(self, needed: Names) -> Names:
        """Add a column of every select, which cannot return none."""
        for step in self._steps:
            if step.kind == "select" and not needed & frozenset(step.names):
                needed |= {step.names[0]}
        return needed or frozenset({self._origin.narrow()})

    def _find_cached(self) -> Planning | None:
        """Return the last frame on the way to this one whose rows Spark caches."""
        at: Planning | None = self
        while at is not None and not at.__dict__.get("_is_kept"):
            at = at._before
        return at

    def _over(self, speaks: Iterable[Any], verb: str, *given: Any) -> Any:
        """Run a method of Spark on the columns that its arguments refer to."""
        names = names_in(speaks, self._origin.columns)
        if names is None or self._find_cached() is not None:
            return getattr(super(), verb)(*given)
        return self._try_columns(
            names & frozenset(self._output()), lambda on: getattr(on, verb)(*given)
        )

    def _try_columns(self, names: Names, verb: Callable[[Any], Any]) -> Any:
        """Run a method on some columns; on all if Spark finds that it needs others."""
        if names >= frozenset(self._output()):
            return verb(self._plain())
        try:
            return verb(self._build(names))
        except _analysis_exception():
            return verb(self._plain())

    def _aggregate(
        self, speaks: Iterable[Any], by: tuple[Any, ...], verb: str, given: tuple[Any, ...]
    ) -> Any:
        """Aggregate groups, on the columns that the arguments refer to."""
        partial = self._aggregate_in_tasks(by, verb, given)
        if partial is not None:
            return partial
        names = names_in(speaks, self._origin.columns)
        if names is None or self._find_cached() is not None:
            return getattr(super().groupBy(*by), verb)(*given)
        names &= frozenset(self._output())
        return self._try_columns(names, lambda on: getattr(on.groupBy(*by), verb)(*given))

    def _aggregate_in_tasks(self, by: tuple[Any, ...], verb: str, given: tuple[Any, ...]) -> Any:
        """Return an aggregate that tasks begin; None if Spark must aggregate alone."""
        origin = self._origin
        if not origin.is_narrowed or not self._is_exact() or self._find_cached() is not None:
            return None
        schema = pa.schema([origin.scan.schema.field(name) for name in self._output()])
        parts = parts_of(flat(by), verb, given, schema)
        if parts is None:
            return None
        partial = origin.partial(parts, self._filters_to_push())
        return None if partial is None else parts.over(partial, by)

    def _sort(self, verb: str, cols: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Sort by columns that may not be selected, as Spark allows."""
        names = names_in(cols, self._origin.columns)
        hidden = frozenset(self._origin.columns) if names is None else names
        if hidden <= self._columns_to_read() or self._find_cached() is not None:
            return getattr(super(), verb)(*cols, **named)
        return getattr(self._build(self._columns_to_read() | hidden), verb)(*cols, **named)


def plan_frame(scan: Scan, engine: SparkEngine, sizes: PackSizes) -> Any:
    """Return the DataFrame of a scan without a limit. Raises what planning the scan raises."""
    wire_schema(scan.schema)
    _ = scan.tasks  # raise errors of the plan now
    origin = ScanSource(scan, engine, sizes, fresh_plan_id(engine.spark))
    return _derive(_class_for(engine.spark), origin, (), None)


def _derive(
    frame_class: type, origin: ScanSource, steps: tuple[Step, ...], before: Planning | None
) -> Any:
    frame: Any = object.__new__(frame_class)
    if origin.plan_id is not None:
        _init_connect(frame, origin.engine.spark)
    else:
        super(Planning, frame).__init__(None, origin.engine.spark)
    frame.__dict__.update(_origin=origin, _steps=steps, _before=before)
    return frame


def _init_connect(frame: Any, spark: Any) -> None:
    import pyspark  # noqa: PLC0415 - only its version

    if pyspark.__version__.startswith("3."):
        super(Planning, frame).__init__(spark)
    else:
        super(Planning, frame).__init__(False, spark)  # noqa: FBT003 - in place of a plan


def _analysis_exception() -> type[Exception]:
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - not needed elsewhere

    exception_class: type[Exception] = AnalysisException
    return exception_class


@cache
def _kind_of(base: type) -> type:
    return type("PlannedFrame", (Planning, base), {})


def _class_for(spark: Any) -> type:
    """Return the session's own DataFrame class, with planning before it."""
    if is_connect(spark):
        from pyspark.sql.connect.dataframe import (  # noqa: PLC0415 - needs the client's packages
            DataFrame as Connected,
        )

        return _kind_of(Connected)
    try:
        from pyspark.sql.classic.dataframe import DataFrame as Classic  # noqa: PLC0415 - PySpark 4
    except ImportError:
        from pyspark.sql import DataFrame as Classic  # noqa: PLC0415 - PySpark 3.5
    return _kind_of(Classic)
