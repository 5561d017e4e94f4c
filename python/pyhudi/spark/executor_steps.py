"""Steps between a DataFrame and the files of a write, on the executors.

An engine runs tasks and returns results to the driver. A step takes rows and returns rows, which
stay on the executors. Nothing here depends on what the steps do.

`RemoteContext` is the write's context of a step: what the driver planned, without access to the
timeline. Executors make and look up keys with the same functions as a local write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from pyhudi.engine.protocol import Engine
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.input.exact_casts import restore_type
from pyhudi.input.vectors import HUDI_TYPE
from pyhudi.schema.key_generator import KeySpec
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.spark.engine import SparkEngine, _Job
from pyhudi.spark.job_watch import is_connect, local_property
from pyhudi.spark.task_errors import run_task
from pyhudi.spark.types import (
    _PLAIN,
    HAS_VARIANT,
    WIRE_VARIANT,
    spark_schema,
    to_wire,
    wire_schema,
)
from pyhudi.write.write_context import WriteContext

Step = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.Table]]
"""A function on the rows of one Spark task; picklable."""

CHUNK_BYTES = 32 * 1024 * 1024
"""Approximate bytes of rows that are processed at a time."""


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """Return the schema of a DataFrame's rows in its tasks.

    Raises `UnsupportedTableFeature` for a column whose type no table can have.
    """
    return struct_schema(frame.schema)


def struct_schema(schema: st.StructType) -> pa.Schema:
    """Return the Arrow schema of a Spark schema, as `arrow_schema` does."""
    return pa.schema([_arrow_field(f) for f in schema])


def _arrow_field(field: st.StructField) -> pa.Field:
    if HAS_VARIANT and isinstance(field.dataType, st.VariantType):
        return pa.field(field.name, WIRE_VARIANT, metadata={HUDI_TYPE: b"VARIANT"})
    return pa.field(field.name, _arrow_type(field.dataType, field.name))


NO_COLLATION = "UTF8_BINARY"
"""Spark's collation of strings without one."""
_ARROW_TYPES = {spark_type: arrow_type for arrow_type, spark_type in _PLAIN.items()}
# The core refuses intervals, as it does those of pandas, polars and Arrow.
_ARROW_TYPES[st.DayTimeIntervalType] = pa.duration("us")
_ARROW_TYPES[st.YearMonthIntervalType] = pa.month_day_nano_interval()
if hasattr(st, "CalendarIntervalType"):  # not in every release of PySpark
    _ARROW_TYPES[st.CalendarIntervalType] = pa.month_day_nano_interval()


def _arrow_type(spark_type: st.DataType, column: str) -> pa.DataType:
    if isinstance(spark_type, st.DecimalType):
        return pa.decimal128(spark_type.precision, spark_type.scale)
    if isinstance(spark_type, st.StructType):
        fields = ((f.name, _arrow_type(f.dataType, f"{column}.{f.name}")) for f in spark_type)
        return pa.struct([pa.field(name, arrow_type) for name, arrow_type in fields])
    if isinstance(spark_type, st.ArrayType):
        return pa.list_(
            pa.field("element", _arrow_type(spark_type.elementType, f"{column}.element"))
        )
    if isinstance(spark_type, st.MapType):
        key = _arrow_type(spark_type.keyType, f"{column}.key")
        return pa.map_(key, pa.field("value", _arrow_type(spark_type.valueType, f"{column}.value")))
    if isinstance(spark_type, st.CharType | st.VarcharType):
        return pa.string()
    if getattr(spark_type, "collation", NO_COLLATION) != NO_COLLATION:
        raise UnsupportedTableFeature(
            f"column {column!r} is {spark_type.simpleString()}: Hudi's schemas have no collations",
            hint="Cast it to STRING, which compares bytes.",
        )
    if type(spark_type) not in _ARROW_TYPES:
        raise UnsupportedTableFeature(
            f"column {column!r} is {spark_type.simpleString()}, a type that is not supported",
            hint="Cast the column before writing.",
        )
    return _ARROW_TYPES[type(spark_type)]


def map_batches(frame: DataFrame, step: Step, schema: pa.Schema) -> DataFrame:
    """Return the result of a step that runs on the rows of each task.

    Raises `UnsupportedTableFeature` for a type that Spark does not have.

    schema: schema of the step's rows.
    """
    wire = wire_schema(schema)
    job = _Job.pack(step)

    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with run_task():
            decoded = (to_wire(batch, wire_schema(batch.schema)) for batch in batches)
            for table in job.unpack_work()(decoded):
                for batch in table.to_batches():
                    if batch.num_rows:
                        yield to_wire(batch, wire)

    return frame.mapInArrow(body, spark_schema(wire))


@dataclass(frozen=True)
class ChainedSteps:
    """Two steps that run one after the other, without Spark between them."""

    first: Step
    second: Step
    between: pa.Schema
    """Schema of the first step's rows, as in `map_batches`."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterable[pa.Table]:
        """Return the rows after both steps."""
        wire = wire_schema(self.between)
        tables = self.first(batches)
        return self.second(
            to_wire(batch, wire)
            for table in tables
            for batch in table.to_batches()
            if batch.num_rows
        )


def collect(
    frame: DataFrame,
    label: str,
    engine: Engine | None = None,
    result_of: Callable[[Any], Any] | None = None,
) -> list[Any]:
    """Collect a few rows on the driver: see `SparkEngine.collect`. engine: of the operation."""
    if not isinstance(engine, SparkEngine):
        engine = SparkEngine(frame.sparkSession)
    return engine.collect(frame, label, result_of=result_of)


class CachedFrames:
    """DataFrames that several jobs read and Spark computes once, cached on the executors' disks."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def keep(self, frame: DataFrame) -> DataFrame:
        """Cache the frame until the end of the block."""
        cached = frame.persist(StorageLevel.DISK_ONLY)
        self._stack.callback(cached.unpersist)
        return cached

    def __enter__(self) -> CachedFrames:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


_NO_COLUMNS = pa.schema([("nothing", pa.bool_())])


@dataclass(frozen=True)
class _CheckRows:
    check: Callable[[pa.Table], None]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        for rows in chunks(batches):
            self.check(rows)
        yield _NO_COLUMNS.empty_table()


@contextmanager
def materialize(frame: DataFrame, check: Callable[[pa.Table], None]) -> Iterator[DataFrame]:
    """Yield the same rows, computed and cached on the executors' disks until the block ends.

    They may come from a table that is to be replaced. check: a picklable function that gets each
    chunk of the rows. Raises what `check` and the frame raise.
    """
    with CachedFrames() as keep:
        # A new plan, because the caller may have cached this one, which must stay cached.
        cached = keep.keep(frame.where(sf.lit(True)))
        collect(map_batches(cached, _CheckRows(check), _NO_COLUMNS), "check the rows")
        yield cached


def job_group(spark: SparkSession, name: str) -> AbstractContextManager[None]:
    """Run the block's jobs in one group of Spark's UI, unless they are in a group already.

    A group can be cancelled by its name, as a stopped streaming query does.
    """
    if not is_connect(spark) and spark.sparkContext.getLocalProperty(_JOB_GROUP):
        return nullcontext()
    return local_property(spark, _JOB_GROUP, name)


_JOB_GROUP = "spark.jobGroup.id"


# --- on executors ---------------------------------------------------------------------------------


def chunks(batches: Iterable[pa.RecordBatch], size: int = CHUNK_BYTES) -> Iterator[pa.Table]:
    """Yield the rows in tables of about `size` bytes."""
    chunk: list[pa.RecordBatch] = []
    chunk_bytes = 0
    for batch in batches:
        chunk.append(batch)
        chunk_bytes += batch.nbytes
        if chunk_bytes >= size:
            yield pa.Table.from_batches(chunk)
            chunk, chunk_bytes = [], 0
    if chunk:
        yield pa.Table.from_batches(chunk)


def key_chunks(batches: Iterable[pa.RecordBatch], column: str) -> Iterator[pa.Table]:
    """Yield tables as `chunks` does, of sorted rows: equal values of the column stay together."""
    chunk: list[pa.RecordBatch] = []
    chunk_bytes = 0
    for batch in batches:
        chunk.append(batch)
        chunk_bytes += batch.nbytes
        if chunk_bytes < CHUNK_BYTES:
            continue
        table = pa.Table.from_batches(chunk)
        values = table.column(column)
        last = pc.index(values, values[-1]).as_py()
        if last:
            yield table.slice(0, last)
            chunk = table.slice(last).to_batches()
            chunk_bytes = sum(batch.nbytes for batch in chunk)
    if chunk:
        yield pa.Table.from_batches(chunk)


def with_types(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows that came through Spark, with the columns and types of a schema again."""
    columns = [restore_type(rows.column(field.name), field) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


@dataclass(frozen=True)
class RemoteContext(WriteContext):
    """A context that can be pickled. Its engine is one thread of the task that uses it."""

    spec: KeySpec | None = None
    groups_with_slices: tuple[tuple[FileGroup, FileSlice], ...] = ()
    """The file groups that may have the keys, each with the slice to read."""

    @classmethod
    def of(cls, context: WriteContext, partitions: Sequence[str] | None = ()) -> RemoteContext:
        """Return the context for executors.

        partitions: those whose file groups they need, None for all.
        """
        values = {field.name: getattr(context, field.name) for field in fields(WriteContext)}
        groups, slices = context.groups(partitions) if partitions != () else ([], [])
        groups_with_slices = tuple(zip(groups, slices, strict=True))
        values["selected_index"] = context.index
        return cls(**values, spec=context.key_spec(), groups_with_slices=groups_with_slices)

    def key_spec(self) -> KeySpec:
        """Return the driver's key specification."""
        if self.spec is None:
            raise AssertionError
        return self.spec

    def groups(self, partitions: Sequence[str] | None) -> tuple[list[FileGroup], list[Any]]:
        """Return file groups among those that the driver found."""
        selected = None if partitions is None else set(partitions)
        matches = [
            (group, slice_)
            for group, slice_ in self.groups_with_slices
            if selected is None or slice_.partition in selected
        ]
        return [group for group, _ in matches], [slice_ for _, slice_ in matches]
