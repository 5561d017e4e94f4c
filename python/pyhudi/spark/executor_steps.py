"""Rows on their way through Spark: the steps between a DataFrame and the files of a write.

The engine's verbs take tasks and give results; here rows come and rows go, in as many steps as a
write needs, and stay on the executors. What the steps do is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from pyhudi.errors import UnsupportedTableFeature
from pyhudi.input.exact_casts import of_fixed_size
from pyhudi.spark.engine import _Job, is_connect, local_property, with_description
from pyhudi.spark.failures import raise_original, wrap_exceptions
from pyhudi.spark.types import _PLAIN, spark_schema, to_wire, wire_schema

Step = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.Table]]
"""What a step does to the rows of one Spark task; picklable."""

PIECE_BYTES = 32 * 1024 * 1024
"""About so many bytes of rows are worked on at once."""


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """The schema of a DataFrame's rows as its tasks see them.

    Raises `UnsupportedTableFeature` for a column whose type no table can have.
    """
    return struct_schema(frame.schema)


def struct_schema(schema: st.StructType) -> pa.Schema:
    """As `arrow_schema`, by Spark's schema."""
    return pa.schema([pa.field(f.name, _arrow_type(f.dataType, f.name)) for f in schema])


_ARROW_TYPES = {kind: arrow for arrow, kind in _PLAIN.items()}


def _arrow_type(kind: st.DataType, column: str) -> pa.DataType:
    if isinstance(kind, st.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, st.StructType):
        fields = ((f.name, _arrow_type(f.dataType, f"{column}.{f.name}")) for f in kind)
        return pa.struct([pa.field(name, arrow_type) for name, arrow_type in fields])
    if isinstance(kind, st.ArrayType):
        return pa.list_(pa.field("element", _arrow_type(kind.elementType, f"{column}.element")))
    if isinstance(kind, st.MapType):
        key = _arrow_type(kind.keyType, f"{column}.key")
        return pa.map_(key, pa.field("value", _arrow_type(kind.valueType, f"{column}.value")))
    if isinstance(kind, st.CharType | st.VarcharType):
        return pa.string()
    if type(kind) not in _ARROW_TYPES:
        raise UnsupportedTableFeature(
            f"column {column!r} has Spark's type {kind.simpleString()}, which is not supported",
            hint="Cast the column before writing.",
        )
    return _ARROW_TYPES[type(kind)]


def map_batches(frame: DataFrame, step: Step, schema: pa.Schema) -> DataFrame:
    """The rows that a step makes of those of each task; `schema` is what it gives.

    Raises `UnsupportedTableFeature` for a type that Spark lacks.
    """
    wire = wire_schema(schema)
    job = _Job.pack(step)

    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with wrap_exceptions():
            given = (to_wire(batch, wire_schema(batch.schema)) for batch in batches)
            for table in job.unpack_work()(given):
                for batch in table.to_batches():
                    if batch.num_rows:
                        yield to_wire(batch, wire)

    return frame.mapInArrow(body, spark_schema(wire))


@dataclass(frozen=True)
class ChainedSteps:
    """One step after the other, without a way through Spark between them."""

    first: Step
    then: Step
    between: pa.Schema
    """What the first one gives, as `mapped` has it."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterable[pa.Table]:
        """The rows after both."""
        wire = wire_schema(self.between)
        tables = self.first(batches)
        return self.then(
            to_wire(batch, wire)
            for table in tables
            for batch in table.to_batches()
            if batch.num_rows
        )


def collect(frame: DataFrame, label: str) -> list[Any]:
    """A few rows on the driver."""
    with raise_original(), with_description(frame.sparkSession, label):
        rows: list[Any] = frame.collect()
    return rows


class CachedFrames:
    """DataFrames that several jobs read, and that are worked out once; on the executors' disks."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def keep(self, frame: DataFrame) -> DataFrame:
        """The frame, to be dropped at the end."""
        kept = frame.persist(StorageLevel.DISK_ONLY)
        self._stack.callback(kept.unpersist)
        return kept

    def __enter__(self) -> CachedFrames:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def job_group(spark: SparkSession, name: str) -> AbstractContextManager[None]:
    """Jobs of the block are one group in Spark's UI, unless they are in one already.

    By that one somebody may cancel them: a streaming query that is stopped does.
    """
    if not is_connect(spark) and spark.sparkContext.getLocalProperty(_JOB_GROUP):
        return nullcontext()
    return local_property(spark, _JOB_GROUP, name)


_JOB_GROUP = "spark.jobGroup.id"


# --- on executors ---------------------------------------------------------------------------------


def pieces(batches: Iterable[pa.RecordBatch], size: int = PIECE_BYTES) -> Iterator[pa.Table]:
    """The rows in tables of about so many bytes."""
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        held.append(batch)
        held_bytes += batch.nbytes
        if held_bytes >= size:
            yield pa.Table.from_batches(held)
            held, held_bytes = [], 0
    if held:
        yield pa.Table.from_batches(held)


def runs(
    batches: Iterable[pa.RecordBatch], column: str, size: int = PIECE_BYTES
) -> Iterator[pa.Table]:
    """As `pieces`, of rows that are sorted by a column; none of its values is in two tables."""
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        held.append(batch)
        held_bytes += batch.nbytes
        if held_bytes < size:
            continue
        table = pa.Table.from_batches(held)
        values = table.column(column)
        last = pc.index(values, values[-1]).as_py()
        if last:
            yield table.slice(0, last)
            held = table.slice(last).to_batches()
            held_bytes = sum(batch.nbytes for batch in held)
    if held:
        yield pa.Table.from_batches(held)


def with_types(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows that came through Spark, with the columns and types of a schema again."""
    columns = [of_fixed_size(rows.column(field.name), field).cast(field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)
