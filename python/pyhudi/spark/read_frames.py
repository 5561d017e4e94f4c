"""Reads a table as a DataFrame: planned on the driver, read by tasks of file slices.

The plan and the work are those of `HudiTable.scan`; only the engine differs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyhudi.api.table import open_table
from pyhudi.clock import Moment
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.to_dataframe import frame_of


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
    memory_limit: int = 512 * 1024 * 1024,
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
        columns: names in the order of the result; all columns by default.
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
        columns,
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
    return frame_of(table.incremental(start, end, **kwargs))
