"""Reading a table as a DataFrame: planned on the driver, read by tasks of file slices.

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
    """The rows of a Hudi table, as it is now or was. Driver and executors need the pyhudi wheel.

    Nothing is read before an action, and each action reads the table as it was when this was
    called. Filters and projections of the DataFrame do not reach the files: give `columns` and
    `where` here. All columns are nullable.

    Args:
        spark: a classic or Spark Connect session of PySpark 3.5 or 4.x.
        uri: the table's folder, a path or a `file://` URI that driver and executors share.
        columns: names in the wanted order, all by default.
        where: a SQL expression, a pyarrow expression, or filter tuples; applied in the tasks.
        limit: at most so many rows.
        meta_fields: Hudi's own columns too, in front.
        read_optimized: the base files alone, without the newer records in log files.
        as_of: the table as it was then; see `HudiTable.scan`.
        memory_limit: bytes that log records may take in the memory of each task; more of them go
            to the executor's local files. Python workers live in `spark.executor.memoryOverhead`.
        storage_options: for the storage, as in `pyhudi.open_table`.
        options: `hoodie.…` options, as in `pyhudi.open_table`.

    Raises:
        TableNotFound: there is no table.
        UnsupportedTableFeature: the table, or a type that Spark lacks; the message names it.
        SchemaMismatch: columns or values of the filter do not fit the schema.
        ConfigError: an argument is wrong.
        HistoryUnavailable: files of the time asked for are gone, or a write was incomplete then.
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
    **how: Any,
) -> DataFrame:
    """The rows that commits of a range wrote: `HudiTable.incremental` as a DataFrame.

    how: its other arguments, such as `columns`. Raises what it and its outputs raise.
    """
    engine = SparkEngine(spark)
    table = open_table(uri, engine=engine, storage_options=storage_options, options=options)
    return frame_of(table.incremental(start, end, **how))
