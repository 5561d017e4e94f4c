"""A DataFrame of a scan that prunes files, rows and columns before Spark reads them.

Selecting columns, filtering, grouping and counting are recorded, and the read is planned when Spark
asks for a plan. Spark gets a narrower read with all of the user's steps on top of it, including
filters, so the result is Spark's own, whatever was pruned below. All other methods are those of the
DataFrame base class.
"""

# ruff: noqa: SLF001 - frames use each other's private attributes, and those of Spark's DataFrame
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.api.scan import Scan
from pyhudi.slices.task_packing import PackSizes
from pyhudi.spark.aggregate_pushdown import count_rows, parts_of
from pyhudi.spark.column_sql import PLAIN_NAME, flat, names_in, plain_name, sql_of
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.job_watch import is_connect
from pyhudi.spark.scan_frame import ScanSource, fresh_plan_id, set_plan_id
from pyhudi.spark.source_filters import FilterTuple, conjuncts_of, is_comparable
from pyhudi.spark.types import wire_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame as _Frame
else:
    _Frame = object


Names = frozenset[str]

_JOINS = frozenset({"inner", "left", "leftouter", "leftsemi", "semi", "leftanti", "anti"})
"""Joins that commute with a filter of the left side."""
_ROW_JOINS = frozenset({"inner", "left", "leftouter"})
"""Joins that add the columns of the other side."""


@dataclass(frozen=True)
class Step:
    """A step of a planned DataFrame, to be repeated on a narrower read."""

    method: str
    args: tuple[Any, ...]
    names: tuple[str, ...]
    """Columns of a select, or columns that a filter or a join uses."""
    pushed: tuple[FilterTuple, ...] = ()
    exact: bool = True
    """Whether the pushed filters are the whole condition."""
    plan_id: int | None = None
    added: tuple[str, ...] = ()
    """Columns that a join adds."""

    def on(self, frame: Any, have: Names) -> Any:
        """Apply the step to a frame with some of the columns."""
        if self.method == "filter":
            result = frame.filter(*self.args)
        elif self.method == "join":
            result = frame.join(*self.args)
        else:
            pairs = zip(self.names, self.args, strict=True)
            result = frame.select(*[column for name, column in pairs if name in have])
        if self.plan_id is not None:
            set_plan_id(result, self.plan_id)
        return result


def replay(frame: Any, steps: Sequence[Step], have: Names) -> Any:
    """Return the frame with the steps on top of it. have: the columns that it has."""
    for step in steps:
        frame = step.on(frame, have)
        have |= frozenset(step.added)
    return frame


class Planning(_Frame):  # type: ignore[misc]
    """Methods that plan before Spark does; mixed into a session's own DataFrame."""

    _origin: ScanSource
    _steps: tuple[Step, ...]
    _before: Planning | None

    @property
    def _jdf(self) -> Any:
        return self._plain()._jdf if "_steps" in self.__dict__ else None

    @_jdf.setter
    def _jdf(self, value: Any) -> None:
        """Ignore the value: the frame is built when it is needed."""

    @property
    def _plan(self) -> Any:
        return self._plain()._plan if "_steps" in self.__dict__ else False

    @_plan.setter
    def _plan(self, value: Any) -> None:
        """Ignore the value: the frame is built when it is needed."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self._output())

    # --- planned methods ----------------------------------------------------------------------

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
        sql = sql_of(condition)
        names = names_in([condition], self._origin.columns)
        if names is None or not self._origin.is_narrowed:
            return super().filter(condition)
        conjuncts = conjuncts_of(sql or "")
        schema = self._origin.scan.table_schema
        tuples = tuple(triple for triple in conjuncts.tuples if is_comparable(triple, schema))
        tuples = tuple(triple for triple in tuples if triple[0] in names)
        exact = conjuncts.complete and len(tuples) == len(conjuncts.tuples)
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

    def join(self, other: Any, on: Any = None, how: Any = None) -> Any:
        """Join as Spark does; columns that no later step needs are not read."""
        step = self._join_step(other, on, how)
        if step is None or not self._origin.is_narrowed:
            return super().join(other, on, how)
        joined = self._with(step)
        if self._origin.plan_id is None:
            try:
                _ = joined._jdf  # errors must be raised now
            except _analysis_exception():
                return super().join(other, on, how)
        return joined

    def sort(self, *cols: Any, **kwargs: Any) -> Any:
        """Sort as Spark does."""
        return self._sort("sort", cols, kwargs)

    orderBy = sort  # noqa: N815 - Spark's name

    def sortWithinPartitions(self, *cols: Any, **kwargs: Any) -> Any:  # noqa: N802 - Spark's name
        """Sort as Spark does."""
        return self._sort("sortWithinPartitions", cols, kwargs)

    def groupBy(self, *cols: Any) -> Any:  # noqa: N802 - Spark's name
        """Group as Spark does; columns that an aggregate does not need are not read."""
        return _group(self, cols, super().groupBy(*cols))

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
        filters = [step for step in self._steps if step.method == "filter"]
        if self._is_exact():
            names = [filters[0].names[0]] if filters and filters[0].names else []
            scan = self._origin.scan_of(
                names or [self._origin.cheapest_column()], self._filters_to_push()
            )
            return count_rows(scan, self._origin.engine, self._origin.sizes)
        return int(self._build(frozenset()).count())

    # --- cached rows ---------------------------------------------------------------------------

    def persist(self, *args: Any, **kwargs: Any) -> Any:
        """Cache as Spark does; frames derived from this one use the cached rows."""
        self.__dict__["_is_cached"] = True
        return super().persist(*args, **kwargs)

    def cache(self) -> Any:
        """Cache as Spark does; frames derived from this one use the cached rows."""
        self.__dict__["_is_cached"] = True
        return super().cache()

    def unpersist(self, *args: Any, **kwargs: Any) -> Any:
        """Drop the cached rows as Spark does."""
        self.__dict__["_is_cached"] = False
        return super().unpersist(*args, **kwargs)

    # --- building the frame -------------------------------------------------------------------

    def _with(self, step: Step) -> Planning:
        plan_id = fresh_plan_id(self._origin.engine.spark)
        step = replace(step, plan_id=plan_id)
        planned: Planning = _derive(type(self), self._origin, (*self._steps, step), self)
        return planned

    def _output(self) -> tuple[str, ...]:
        output = self._origin.columns
        for step in self._steps:
            if step.method == "select":
                output = step.names
            elif step.method == "join":
                rest = (name for name in output if name not in step.names)
                output = (*step.names, *rest, *step.added)
        return output

    def _join_step(self, other: Any, on: Any, how: Any) -> Step | None:
        """Return the step of a join by names that belong to one side only; None for others."""
        keys = [on] if isinstance(on, str) else on
        if not isinstance(keys, list | tuple) or not keys or not all(map(_is_name, keys)):
            return None
        kind = str(how or "inner").lower().replace("_", "")
        if kind not in _JOINS or getattr(other, "_origin", None) is self._origin:
            return None
        output, columns = self._output(), other.columns
        added = tuple(name for name in columns if name not in keys)
        scan_columns = {name.lower() for name in (*self._origin.columns, *output)}
        is_disjoint = not any(name.lower() in scan_columns for name in added)
        if not set(keys) <= set(output) & set(columns) or len(set(keys)) < len(keys):
            return None
        if not is_disjoint or len({name.lower() for name in columns}) < len(columns):
            return None
        added = added if kind in _ROW_JOINS else ()
        return Step("join", (other, on, how), tuple(keys), exact=False, added=added)

    def _filters_to_push(self) -> tuple[FilterTuple, ...]:
        return tuple(triple for step in self._steps for triple in step.pushed)

    def _is_exact(self) -> bool:
        return all(step.exact for step in self._steps)

    def _filter_columns(self) -> Names:
        """Return the columns that filters and joins need."""
        filters = [step.names for step in self._steps if step.method != "select"]
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
            have = frozenset((*self._origin.columns, *cached._output()))
            return replay(cached._plain(), steps, have)
        needed = self._at_least_one(needed | self._filter_columns())
        if not self._origin.is_narrowed:
            needed = frozenset(self._origin.columns)
        leaf = self._origin.to_dataframe(sorted(needed), self._filters_to_push(), limit)
        return replay(leaf, self._steps, needed)

    def _at_least_one(self, needed: Names) -> Names:
        """Add a column of every select, which cannot return none."""
        for step in self._steps:
            if step.method == "select" and not needed & frozenset(step.names):
                needed |= {step.names[0]}
        return needed or frozenset({self._origin.cheapest_column()})

    def _find_cached(self) -> Planning | None:
        """Return the last frame on the way to this one whose rows Spark caches."""
        at: Planning | None = self
        while at is not None and not at.__dict__.get("_is_cached"):
            at = at._before
        return at

    def _over(self, mentions: Iterable[Any], method: str, *args: Any) -> Any:
        """Run a method of Spark on the columns that its arguments refer to."""
        names = names_in(mentions, self._origin.columns)
        if names is None or self._find_cached() is not None:
            return getattr(super(), method)(*args)
        return self._try_columns(
            names & frozenset(self._output()), lambda frame: getattr(frame, method)(*args)
        )

    def _try_columns(self, names: Names, call: Callable[[Any], Any]) -> Any:
        """Run a method on some columns; on all if Spark finds that it needs others."""
        if names >= frozenset(self._output()):
            return call(self._plain())
        try:
            return call(self._build(names))
        except _analysis_exception():
            return call(self._plain())

    def _aggregate(
        self, mentions: Iterable[Any], by: tuple[Any, ...], method: str, args: tuple[Any, ...]
    ) -> Any:
        """Aggregate groups, on the columns that the arguments refer to."""
        partial = self._aggregate_in_tasks(by, method, args)
        if partial is not None:
            return partial
        names = names_in(mentions, self._origin.columns)
        if names is None or self._find_cached() is not None:
            return getattr(super().groupBy(*by), method)(*args)
        names &= frozenset(self._output())
        return self._try_columns(names, lambda frame: getattr(frame.groupBy(*by), method)(*args))

    def _aggregate_in_tasks(self, by: tuple[Any, ...], method: str, args: tuple[Any, ...]) -> Any:
        """Return an aggregate that tasks begin; None if Spark must aggregate alone."""
        origin = self._origin
        if not origin.is_narrowed or not self._is_exact() or self._find_cached() is not None:
            return None
        schema = pa.schema([origin.scan.schema.field(name) for name in self._output()])
        parts = parts_of(flat(by), method, args, schema)
        if parts is None:
            return None
        partial = origin.partial(parts, self._filters_to_push())
        return None if partial is None else parts.over(partial, by)

    def _sort(self, method: str, cols: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Sort by columns that may not be selected, as Spark allows."""
        names = names_in(cols, self._origin.columns)
        hidden = frozenset(self._origin.columns) if names is None else names
        if hidden <= self._columns_to_read() or self._find_cached() is not None:
            return getattr(super(), method)(*cols, **kwargs)
        return getattr(self._build(self._columns_to_read() | hidden), method)(*cols, **kwargs)


class PlannedGrouping:
    """Methods of groups that plan before Spark does; mixed into a session's own `GroupedData`."""

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

    def _select_columns(self, method: str, cols: tuple[str, ...]) -> Any:
        """Select columns; without names Spark uses all numeric columns."""
        return self._narrow(cols or ("*",), method, cols)

    def _narrow(self, mentions: Any, method: str, args: tuple[Any, ...]) -> Any:
        by = self.__dict__["_by"]
        return self.__dict__["_of"]._aggregate((*by, *mentions), by, method, args)


@cache
def _groups_class(base: Any) -> type:
    return type("PlannedGroups", (PlannedGrouping, base), {})


def _group(frame: Any, by: tuple[Any, ...], groups: Any) -> Any:
    """Return the groups of a planned frame. groups: Spark's groups of the frame."""
    base: Any = type(groups)
    planned: Any = object.__new__(_groups_class(base))
    planned.__dict__.update(groups.__dict__, _of=frame, _by=by)
    return planned


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


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and PLAIN_NAME.fullmatch(value) is not None


def _analysis_exception() -> type[Exception]:
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - not needed elsewhere

    exception_class: type[Exception] = AnalysisException
    return exception_class


@cache
def _frame_class(base: type) -> type:
    return type("PlannedFrame", (Planning, base), {})


def _class_for(spark: Any) -> type:
    """Return the session's own DataFrame class, with planning before it."""
    if is_connect(spark):
        from pyspark.sql.connect.dataframe import (  # noqa: PLC0415 - needs the client's packages
            DataFrame as Connected,
        )

        return _frame_class(Connected)
    try:
        from pyspark.sql.classic.dataframe import DataFrame as Classic  # noqa: PLC0415 - PySpark 4
    except ImportError:
        from pyspark.sql import DataFrame as Classic  # noqa: PLC0415 - PySpark 3.5
    return _frame_class(Classic)
