"""Lazy rows as DataFrames: the result of `to_spark` of a scan, of changes and of a diff.

The plan and the work are the same as on other engines. On Spark, tasks are packed and split as in
Spark's file sources, and a shuffle pairs records that moved between file groups.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi.api.changes import Changes, Diff, diff_rows
from pyhudi.api.outputs import Outputs
from pyhudi.api.scan import Scan
from pyhudi.api.table import HudiTable, open_table
from pyhudi.clock import Moment
from pyhudi.config.memory_size import MemorySize
from pyhudi.errors import ConfigError, HudiError
from pyhudi.query.change_reader import change_task, diff_task, pair_moved_rows
from pyhudi.slices.read import read_task
from pyhudi.slices.task_packing import (
    Pack,
    PackSizes,
    change_size,
    pack_tasks,
    read_pack,
    split_tasks,
    task_size,
)
from pyhudi.spark.column_compatibility import match_case
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.pushdown_frame import plan_frame
from pyhudi.spark.scan_frame import estimate_bytes_read, estimate_size, pack_sizes
from pyhudi.spark.task_errors import wrap_exceptions
from pyhudi.spark.types import spark_schema, to_wire, wire_schema

Batches = Iterator[pa.RecordBatch]


def frame_of(rows: Outputs) -> DataFrame:
    """Return the rows as a DataFrame: planned now, read at each action.

    Raises `ConfigError` for rows of a table that was not opened with a `SparkEngine`.
    """
    engine = getattr(rows, "engine", None)
    if not isinstance(engine, SparkEngine):
        raise ConfigError(
            f"{type(engine).__name__} does not return DataFrames",
            hint="Open the table with engine=SparkEngine(spark).",
        )
    if isinstance(rows, Diff):
        return _diff(rows, engine)
    if not isinstance(rows, Scan | Changes):
        raise ConfigError(f"{type(rows).__name__} cannot be converted to a DataFrame")
    sizes = pack_sizes(engine.spark)
    limit = rows.request.limit
    if isinstance(rows, Scan) and limit is None and rows.tasks:
        return plan_frame(rows, engine, sizes)
    size = estimate_size(estimate_bytes_read(rows, sizes), engine.spark)
    frame = engine.scan(read_pack, packs_of(rows, sizes), rows.schema, size=size)
    # Each task stops at the limit already; this one applies to all of them.
    return frame if limit is None else frame.limit(limit)


def frame_of_rows(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return a few rows of the driver as a DataFrame."""
    wire = wire_schema(rows.schema)
    values = [
        tuple(
            dict(value) if pa.types.is_map(field.type) and value is not None else value
            for field, value in zip(wire, row.values(), strict=True)
        )
        for row in rows.cast(wire).to_pylist()
    ]
    return spark.createDataFrame(values, spark_schema(wire))


def packs_of(rows: Scan | Changes, sizes: PackSizes) -> list[Pack[Any]]:
    """Return the packs to read with `read_pack`, one for each Spark task."""
    if isinstance(rows, Scan):
        return pack_tasks(read_task, split_tasks(rows.tasks, sizes), task_size, sizes)
    return pack_tasks(change_task, rows.tasks, change_size, sizes)


def _diff(rows: Diff, engine: SparkEngine) -> DataFrame:
    sizes = pack_sizes(engine.spark)
    tasks = pack_tasks(diff_task, rows.tasks, change_size, sizes)
    read = sum(change_size(task) for task in rows.tasks)
    differences = engine.scan(
        read_pack, tasks, diff_rows(rows.after), size=estimate_size(read, engine.spark)
    )
    both = any(task.before for task in rows.tasks) and any(task.after for task in rows.tasks)
    if both:
        wire = wire_schema(diff_rows(rows.after))
        body = _pairing(wire, rows.buffer_bytes)
        differences = differences.repartition("key").mapInArrow(body, spark_schema(wire))
    return differences.select(*rows.schema.names)


def _pairing(wire: pa.Schema, buffer_bytes: int) -> Callable[[Batches], Batches]:
    """Return a function that pairs inserts and deletes of one key after the shuffle."""

    def body(batches: Batches) -> Batches:
        with wrap_exceptions():
            rows = (to_wire(batch, wire) for batch in batches)
            for batch in pair_moved_rows(
                pa.RecordBatchReader.from_batches(wire, rows), buffer_bytes
            ):
                if batch.schema.names != wire.names:
                    raise HudiError(f"pairing returned the columns {batch.schema.names}")
                yield to_wire(batch, wire)

    return body


def read(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    where: Any = None,
    limit: int | None = None,
    meta_fields: bool = False,
    read_optimized: bool = False,
    as_of: Moment | None = None,
    memory_limit: MemorySize = 512 * 1024 * 1024,
    storage_options: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
) -> DataFrame:
    """Return the rows of a Hudi table as a DataFrame. Driver and executors need the pyhudi wheel.

    Nothing is read before an action, and each action reads the snapshot at the time of this call.
    Filters and projections of the DataFrame do not reach the files: pass `columns` and `where`
    here. All columns are nullable.

    Args:
        spark: a classic or Spark Connect session of PySpark 3.5 or 4.x.
        uri: location of the table, a path or a `file://` URI that driver and executors share.
        columns: names in the order of the result; all columns by default. As in a `select`,
            `spark.sql.caseSensitive` decides if their case matters.
        where: a SQL expression, a pyarrow expression, or filter tuples; applied in the tasks.
        limit: maximum number of rows.
        meta_fields: include Hudi's meta columns, in front.
        read_optimized: read base files only, without the newer records in log files.
        as_of: read the table as of an earlier time; see `HudiTable.scan`.
        memory_limit: bytes that log records may take in the memory of each task; the task spills
            more of them to the executor's local files. Python workers live in
            `spark.executor.memoryOverhead`.
        storage_options: access to the storage, as in `pyhudi.open_table`.
        options: `hoodie.…` options, as in `pyhudi.open_table`.

    Raises:
        TableNotFound: there is no table.
        UnsupportedTableFeature: pyhudi does not support the table, or Spark does not support a
            type; the message names it.
        SchemaMismatch: columns or values of the filter do not match the schema.
        ConfigError: an argument is wrong.
        HistoryUnavailable: files of the snapshot have been cleaned, or a write was incomplete then.
    """
    engine = SparkEngine(spark)
    table = open_table(
        uri, engine=engine, storage_options=storage_options, options=options, as_of=as_of
    )
    scan = table.scan(
        _in_case_of(table, spark, columns),
        where,
        limit=limit,
        meta_fields=meta_fields,
        read_optimized=read_optimized,
        memory_limit=memory_limit,
    )
    return frame_of(scan)


def read_incremental(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    start: Moment | None = None,
    end: Moment | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
    **kwargs: Any,
) -> DataFrame:
    """Return the rows that commits of a range wrote: `HudiTable.incremental` as a DataFrame.

    kwargs: its other arguments, such as `columns`. Raises what it and its outputs raise.
    """
    engine = SparkEngine(spark)
    table = open_table(uri, engine=engine, storage_options=storage_options, options=options)
    columns = _in_case_of(table, spark, kwargs.pop("columns", None))
    return frame_of(table.incremental(start, end, columns=columns, **kwargs))


def _in_case_of(
    table: HudiTable, spark: SparkSession, columns: Sequence[str] | None
) -> Sequence[str] | None:
    """Return requested columns under the table's names; a scan refuses other values."""
    if not isinstance(columns, list | tuple) or not all(isinstance(name, str) for name in columns):
        return columns
    return list(match_case(spark, columns, table.schema.names))
