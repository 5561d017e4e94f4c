"""The read at the base of a planned DataFrame: fewer columns and files, the same column ids.

A column of a DataFrame (`frame["fare"]`) refers to it by ids. A narrower read of the same table
must have the ids of the wide one, or Spark would not accept such columns on it.

The module also estimates sizes for Spark: bytes to plan joins with, and how much one task reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi.api.changes import Changes
from pyhudi.api.scan import Scan
from pyhudi.cached_property import cached_property
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.schema.predicates import both
from pyhudi.schema.table_schema import is_meta, narrow_column
from pyhudi.slices.read import read_task
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.slices.task_packing import (
    PackSizes,
    change_size,
    pack_tasks,
    read_pack,
    split_tasks,
    task_size,
)
from pyhudi.spark.aggregate_pushdown import Parts
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.job_watch import is_connect
from pyhudi.spark.native_parquet import PlainFiles, plain_files, read_by_spark
from pyhudi.spark.source_filters import FilterTuple
from pyhudi.spark.types import row_bytes


@dataclass
class ScanSource:
    """A scan that is the source of DataFrames."""

    scan: Scan
    engine: SparkEngine
    sizes: PackSizes
    plan_id: int | None = None
    """Spark Connect: the plan id of the whole scan."""
    ids: dict[str, Any] = field(default_factory=dict)
    """Classic session: the ids of columns, by name."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the scan."""
        return self.scan.request.output

    @property
    def is_narrowed(self) -> bool:
        """Whether columns can be pruned: not if names differ only in case."""
        return len({name.lower() for name in self.columns}) == len(self.columns)

    def cheapest_column(self) -> str:
        """Return a column that is cheap to read."""
        table = self.scan.table
        if self.scan.request.where is not None and self.scan.request.where.columns:
            return self.scan.request.where.columns[0]
        return narrow_column(table.columns, table.config.partition_fields)

    def scan_of(
        self, columns: Sequence[str], pushed: Sequence[FilterTuple], limit: int | None = None
    ) -> Scan:
        """Return the scan of some columns, without the rows that pushed filters exclude."""
        request = replace(self.scan.request, output=tuple(columns), limit=limit)
        if not pushed:
            narrow_scan = replace(self.scan, request=request)
            narrow_scan.__dict__["tasks"] = [
                _narrow_task(task, narrow_scan) for task in self.scan.tasks
            ]
            return narrow_scan
        where = parse_where(list(pushed), self.scan.table_schema)
        combined = where if request.where is None else both(where, request.where)
        return replace(self.scan, request=replace(request, where=combined))

    def to_dataframe(
        self, columns: Sequence[str], pushed: Sequence[FilterTuple], limit: int | None = None
    ) -> DataFrame:
        """Return the rows of `scan_of` as a DataFrame, in the order of the scan's columns."""
        ordered = [name for name in self.columns if name in columns]
        scan = self.scan_of(ordered, pushed, limit)
        # Pushed filters and the limit select files; Spark applies them to rows on top.
        paths, tasks = self._split(scan)
        by_spark = read_by_spark(self.engine.spark, paths, scan) if paths else None
        if by_spark is None:
            return self._with_source_ids(self._frame(scan, scan.tasks, read_pack, scan.schema))
        if tasks:
            by_spark = by_spark.union(self._frame(scan, tasks, read_pack, scan.schema))
        return self._with_source_ids(by_spark)

    def partial(self, parts: Parts, pushed: Sequence[FilterTuple]) -> DataFrame | None:
        """Return the parts of an aggregate that tasks compute of rows that match pushed filters.

        None if Spark reads those rows itself.
        """
        scan = self.scan_of(parts.columns or [self.cheapest_column()], pushed)
        paths, tasks = self._split(scan)
        if not tasks:
            return None
        # Tasks apply the filters that select files; on files that Spark reads, nothing does here.
        by_spark = None
        if paths and not pushed:
            by_spark = read_by_spark(self.engine.spark, paths, scan)
        if by_spark is None:
            frame = self._frame(scan, scan.tasks, parts.of_pack, parts.schema)
        else:
            frame = parts.of_frame(by_spark)
            frame = frame.union(self._frame(scan, tasks, parts.of_pack, parts.schema))
        return self._with_source_ids(frame)

    @cached_property
    def _plain(self) -> PlainFiles | None:
        return plain_files(self.scan, self.engine.spark)

    def _split(self, scan: Scan) -> tuple[Sequence[str], Sequence[ReadTask]]:
        """Return the locations of files that Spark reads itself, and the tasks of other slices."""
        return ([], scan.tasks) if self._plain is None else self._plain.split(scan)

    def _frame(
        self,
        scan: Scan,
        tasks: Sequence[ReadTask],
        work: Callable[[Any], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
    ) -> DataFrame:
        """Return the rows of some tasks of a scan."""
        packs = pack_tasks(read_task, split_tasks(tasks, self.sizes), task_size, self.sizes)
        share = sum(map(task_size, tasks)) / max(sum(map(task_size, scan.tasks)), 1)
        size = estimate_size(estimate_bytes_read(scan, self.sizes) * share, self.engine.spark)
        return self.engine.scan(work, packs, schema, size=size)

    def _with_source_ids(self, frame: DataFrame) -> DataFrame:
        """Return the frame with the ids of the whole scan's frame."""
        if self.plan_id is None:
            return self._with_ids(frame)
        set_plan_id(frame, self.plan_id)
        return frame

    def _with_ids(self, frame: Any) -> DataFrame:
        """Return the frame with the ids of columns that have one already; new ids are stored."""
        output = frame._jdf.queryExecution().analyzed().output()  # noqa: SLF001 - ids are hidden
        columns = [output.apply(at) for at in range(output.size())]
        columns_with_ids = [(column, self.ids.get(column.name())) for column in columns]
        for column in columns:
            self.ids.setdefault(column.name(), column.exprId())
        return (
            with_column_ids(frame, columns_with_ids)
            if any(column_id for _, column_id in columns_with_ids)
            else frame
        )


def with_column_ids(frame: Any, columns: Sequence[tuple[Any, Any]]) -> DataFrame:
    """Return a classic session's frame with these column ids; None keeps the column's own."""
    jvm = frame.sparkSession._jvm  # noqa: SLF001 - only the JVM names columns
    sql = jvm.org.apache.spark.sql
    as_column = sql.Column if _is_old(frame) else sql.classic.ExpressionUtils.column
    result = []
    for column, expression_id in columns:
        nothing = column.qualifier()  # an empty Seq of strings
        aliased = column
        if expression_id is not None:
            aliased = sql.catalyst.expressions.Alias(
                column, column.name(), expression_id, nothing, jvm.scala.Option.empty(), nothing
            )
        result.append(as_column(aliased))
    jdf = frame._jdf.select(jvm.PythonUtils.toSeq(result))  # noqa: SLF001
    renamed: DataFrame = type(frame)(jdf, frame.sparkSession)
    return renamed


def _is_old(frame: Any) -> bool:
    """Return whether columns are made of expressions, as before PySpark 4."""
    version: str = frame.sparkSession.version
    return version.startswith("3.")


def set_plan_id(frame: Any, plan_id: int) -> None:
    """Set the plan id of a Spark Connect frame, so that columns taken by this id match it."""
    plan = frame._plan  # noqa: SLF001 - there is no other way to it
    name = "_root_plan_id" if hasattr(plan, "_root_plan_id") else "_plan_id"
    setattr(plan, name, plan_id)


def fresh_plan_id(spark: Any) -> int | None:
    """Return a new plan id of Spark Connect; None in a classic session."""
    if not is_connect(spark):
        return None
    from pyspark.sql.connect.plan import LogicalPlan  # noqa: PLC0415 - needs the client's packages

    plan_id: int = LogicalPlan._fresh_plan_id()  # noqa: SLF001
    return plan_id


def _narrow_task(task: ReadTask, scan: Scan) -> ReadTask:
    # A range of commits filters, too: only the task has its filter, not the request.
    where, output = task.where, scan.request.output
    columns = tuple(dict.fromkeys((*output, *(where.columns if where else ()))))
    return replace(task, columns=columns, output=output, limit=scan.request.limit)


def estimate_bytes_read(rows: Scan | Changes, sizes: PackSizes) -> float:
    """Estimate the bytes of files that have the rows; for a scan, the share of its columns.

    The share follows from the widths of the types: no footer is read.
    """
    if isinstance(rows, Changes):
        # The size of a change log is not known here.
        logs = sum(len(task.change_logs) for task in rows.tasks)
        return sum(change_size(task) for task in rows.tasks) + logs * sizes.open_bytes
    read = sum(task_size(task) for task in rows.tasks)
    all_columns = pa.schema([field for field in rows.table_schema if not is_meta(field.name)])
    return read * min(row_bytes(rows.schema) / row_bytes(all_columns), 1.0)


def estimate_size(files: float, spark: SparkSession) -> int:
    """Estimate the size in bytes for Spark's planner, as Spark does for its own file sources.

    The size costs time (see `engine._step`), so it is at most what rules out a broadcast.
    """
    factor = float(spark.conf.get("spark.sql.sources.fileCompressionFactor", None) or 1.0)
    limits = [_bytes(spark, name) or 0 for name in _BROADCAST_LIMITS]
    return int(min(files * factor, max(_LARGE, 4 * max(limits))))


_BROADCAST_LIMITS = (
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.adaptive.autoBroadcastJoinThreshold",
)
_LARGE = 256 << 20


def pack_sizes(spark: SparkSession) -> PackSizes:
    """Return how much one task reads, by the settings of Spark's file sources."""
    settings = {
        "max_bytes": _bytes(spark, "spark.sql.files.maxPartitionBytes"),
        "open_bytes": _bytes(spark, "spark.sql.files.openCostInBytes"),
        "min_packs": _parallelism(spark),
    }
    return PackSizes(**{name: value for name, value in settings.items() if value is not None})


_UNITS = {"b": 0, "": 0, "k": 10, "kb": 10, "m": 20, "mb": 20, "g": 30, "gb": 30, "t": 40, "tb": 40}


def _bytes(spark: SparkSession, name: str) -> int | None:
    setting = str(spark.conf.get(name, None) or "").strip().lower()
    number = setting.rstrip("bkmgt")
    unit = setting[len(number) :]
    return int(number) << _UNITS[unit] if number.isdecimal() and unit in _UNITS else None


def _parallelism(spark: SparkSession) -> int | None:
    """Return the number of concurrent tasks; Spark Connect only has it if it is configured."""
    for name in ("spark.sql.files.minPartitionNum", "spark.sql.leafNodeDefaultParallelism"):
        value = spark.conf.get(name, None)
        if value and value.isdecimal():
            return int(value)
    if is_connect(spark):
        return None
    return int(spark.sparkContext.defaultParallelism)
