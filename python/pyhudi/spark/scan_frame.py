"""The read that a planned DataFrame begins with: fewer columns, fewer files, the same identity.

Columns that were taken from a DataFrame (`frame["fare"]`) know it by ids. A narrower read of the
same table must answer to the ids of the wide one, or such columns could not be used on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from pyhudi.api.scan import Scan
from pyhudi.cached_property import cached_property
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.schema.predicates import both
from pyhudi.schema.table_schema import narrow_column
from pyhudi.slices.read import read_task
from pyhudi.slices.read_packs import read_pack
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.slices.task_packing import PackSizes, pack_tasks, split_tasks, task_size
from pyhudi.spark.aggregate_pushdown import Parts
from pyhudi.spark.engine import SparkEngine, is_connect
from pyhudi.spark.native_parquet import PlainFiles, plain_files, read_by_spark
from pyhudi.spark.size_estimates import estimate_bytes_read, estimate_size
from pyhudi.spark.source_filters import FilterTuple


@dataclass
class ScanSource:
    """A scan that DataFrames are made of."""

    scan: Scan
    engine: SparkEngine
    sizes: PackSizes
    plan_id: int | None = None
    """Of Spark Connect: what the plan of the whole scan is known by."""
    ids: dict[str, Any] = field(default_factory=dict)
    """Of a classic session: the ids that columns were given, by their names."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All that the scan gives."""
        return self.scan.request.output

    @property
    def is_narrowed(self) -> bool:
        """Whether less than all can be read: not where names differ only by their case."""
        return len({name.lower() for name in self.columns}) == len(self.columns)

    def narrow(self) -> str:
        """A column that is cheap to read."""
        table = self.scan.table
        if self.scan.request.where is not None and self.scan.request.where.columns:
            return self.scan.request.where.columns[0]
        return narrow_column(table.columns, table.config.partition_fields)

    def scan_of(
        self, columns: Sequence[str], pushed: Sequence[FilterTuple], limit: int | None = None
    ) -> Scan:
        """The scan of some columns, less the rows that pushed filters rule out."""
        request = replace(self.scan.request, output=tuple(columns), limit=limit)
        if not pushed:
            found = replace(self.scan, request=request)
            found.__dict__["tasks"] = [_narrow_task(task, found) for task in self.scan.tasks]
            return found
        where = parse_where(list(pushed), self.scan.shown)
        kept = where if request.where is None else both(where, request.where)
        return replace(self.scan, request=replace(request, where=kept))

    def to_dataframe(
        self, columns: Sequence[str], pushed: Sequence[FilterTuple], limit: int | None = None
    ) -> DataFrame:
        """The rows of `scan_of` as a DataFrame, in the order of the scan's columns."""
        ordered = [name for name in self.columns if name in columns]
        scan = self.scan_of(ordered, pushed, limit)
        files = self._plain_paths(scan)
        # Pushed filters and the limit chose files; what Spark does on top applies them to rows.
        frame = None if files is None else read_by_spark(self.engine.spark, files, scan)
        if frame is None:
            frame = self._frame(scan, read_pack, scan.schema)
        return self._with_identity(frame)

    def partial(self, parts: Parts, pushed: Sequence[FilterTuple]) -> DataFrame | None:
        """What tasks give of an aggregate of the rows that pushed filters leave.

        None where Spark reads those rows itself.
        """
        scan = self.scan_of(parts.columns or [self.narrow()], pushed)
        if self._plain_paths(scan) is not None:
            return None
        return self._with_identity(self._frame(scan, parts.of_pack, parts.schema))

    @cached_property
    def _plain(self) -> PlainFiles | None:
        return plain_files(self.scan, self.engine.spark)

    def _plain_paths(self, scan: Scan) -> list[str] | None:
        return None if self._plain is None else self._plain.paths(scan)

    def _frame(
        self, scan: Scan, work: Callable[[Any], Iterator[pa.RecordBatch]], schema: pa.Schema
    ) -> DataFrame:
        packs = pack_tasks(read_task, split_tasks(scan.tasks, self.sizes), task_size, self.sizes)
        size = estimate_size(estimate_bytes_read(scan, self.sizes), self.engine.spark)
        return self.engine.scan(work, packs, schema, size=size)

    def _with_identity(self, frame: DataFrame) -> DataFrame:
        """The frame under the identity of the whole scan's."""
        if self.plan_id is None:
            return self._with_ids(frame)
        set_plan_id(frame, self.plan_id)
        return frame

    def _with_ids(self, frame: Any) -> DataFrame:
        """The frame with the ids that columns of these names already have; new ones are kept."""
        output = frame._jdf.queryExecution().analyzed().output()  # noqa: SLF001 - ids are hidden
        found = [output.apply(at) for at in range(output.size())]
        given = [(column, self.ids.get(column.name())) for column in found]
        for column in found:
            self.ids.setdefault(column.name(), column.exprId())
        return with_column_ids(frame, given) if any(known for _, known in given) else frame


def with_column_ids(frame: Any, given: Sequence[tuple[Any, Any]]) -> DataFrame:
    """The frame of a classic session with its columns under these ids, their own where None."""
    jvm = frame.sparkSession._jvm  # noqa: SLF001 - only the JVM names columns
    sql = jvm.org.apache.spark.sql
    as_column = sql.Column if _is_old(frame) else sql.classic.ExpressionUtils.column
    made = []
    for column, expression_id in given:
        nothing = column.qualifier()  # an empty Seq of text
        shown = column
        if expression_id is not None:
            shown = sql.catalyst.expressions.Alias(
                column, column.name(), expression_id, nothing, jvm.scala.Option.empty(), nothing
            )
        made.append(as_column(shown))
    jdf = frame._jdf.select(jvm.PythonUtils.toSeq(made))  # noqa: SLF001
    renamed: DataFrame = type(frame)(jdf, frame.sparkSession)
    return renamed


def _is_old(frame: Any) -> bool:
    """Whether columns are made of expressions, as before PySpark 4."""
    version: str = frame.sparkSession.version
    return version.startswith("3.")


def set_plan_id(frame: Any, plan_id: int) -> None:
    """Has the plan of a frame of Spark Connect answer to columns that were taken by this id."""
    plan = frame._plan  # noqa: SLF001 - there is no other way to it
    name = "_root_plan_id" if hasattr(plan, "_root_plan_id") else "_plan_id"
    setattr(plan, name, plan_id)


def fresh_plan_id(spark: Any) -> int | None:
    """A new id for a plan of Spark Connect; None in a classic session."""
    if not is_connect(spark):
        return None
    from pyspark.sql.connect.plan import LogicalPlan  # noqa: PLC0415 - needs the client's packages

    made: int = LogicalPlan._fresh_plan_id()  # noqa: SLF001
    return made


def _narrow_task(task: ReadTask, scan: Scan) -> ReadTask:
    # A range of commits filters, too: the task knows of it, the request does not.
    where, output = task.where, scan.request.output
    columns = tuple(dict.fromkeys((*output, *(where.columns if where else ()))))
    return replace(task, columns=columns, output=output, limit=scan.request.limit)
