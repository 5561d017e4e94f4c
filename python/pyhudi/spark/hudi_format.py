"""Reads and writes with Hudi's own options map, as `format("hudi")` does.

`hudi_options.py` interprets the options, `hudi_operations.py` runs the operations.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from pyhudi.api.table import HudiTable, open_table
from pyhudi.config.meta_columns import PARTITION_PATH
from pyhudi.errors import ConfigError
from pyhudi.spark.column_compatibility import case_counts, check_zones, quote_name
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.executor_steps import (
    CachedFrames,
    RemoteContext,
    arrow_schema,
    collect,
    map_batches,
)
from pyhudi.spark.hudi_operations import Target, run_write
from pyhudi.spark.hudi_options import ReadRequest, WriteRequest
from pyhudi.spark.key_steps import PartitionPaths
from pyhudi.spark.option_conflicts import check_range_version
from pyhudi.spark.to_dataframe import frame_of
from pyhudi.spark.to_dataframe import read as read_snapshot
from pyhudi.spark.types import spark_schema, wire_schema
from pyhudi.write import input_rows
from pyhudi.write.upsert import open_write

_CDC_ARGUMENTS = ("where", "limit")


def read(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    hudi_options: Mapping[str, object] | None = None,
    **kwargs: Any,
) -> DataFrame:
    """Return the rows of a Hudi table as a DataFrame, by arguments or Hudi's own options.

    With an options map, the rows are those of `spark.read.format("hudi").options(...)`: Hudi's meta
    columns are included (`meta_fields=False` leaves them out), and `hoodie.datasource.query.type`
    and related options choose the query. docs/reference/spark-options.md lists what happens to each
    option. From table version 8 on, ranges of changes are completion times, while Hudi uses
    requested times.

    Args:
        spark: a classic or Spark Connect session of PySpark 3.5 or 4.x.
        uri: location of the table.
        hudi_options: Hudi's options by name; None for a query by arguments.
        kwargs: without options, the arguments of `read_frames.read`, such as `columns`, `where` and
            `as_of`. With options, those of the query that they choose, and `storage_options`.

    Returns:
        The DataFrame, of the snapshot at the time of this call.

    Raises:
        UnsupportedTableFeature: pyhudi does not support an option.
        ConfigError: an option is unknown, has an invalid value, or cannot be combined with the
            query.
    """
    if hudi_options is None:
        return read_snapshot(spark, uri, **kwargs)
    request = ReadRequest.of(hudi_options)
    if "options" in kwargs:
        raise ConfigError("options are given twice", hint="Put all into the one map.")
    table_arguments = {
        "storage_options": kwargs.pop("storage_options", None),
        "options": request.handle,
    }
    if request.query == "cdc":
        unsupported = [name for name in kwargs if name not in _CDC_ARGUMENTS]
        if unsupported:
            raise ConfigError(f"{unsupported[0]} cannot be combined with changes")
        table = open_table(uri, engine=SparkEngine(spark), **table_arguments)
        check_range_version(request, table.config)
        return frame_of(table.changes(request.start, request.end, images="json", **kwargs))
    kwargs.setdefault("meta_fields", kwargs.get("columns") is None)
    if request.query == "incremental":
        kwargs.setdefault("hollow_commits", request.hollow_commits)
        kwargs.setdefault("fallback_full_scan", request.fallback_full_scan)
        table = open_table(uri, engine=SparkEngine(spark), **table_arguments)
        check_range_version(request, table.config)
        return frame_of(table.incremental(request.start, request.end, **kwargs))
    kwargs.setdefault("read_optimized", request.query == "read_optimized")
    kwargs.setdefault("as_of", request.as_of)
    return read_snapshot(spark, uri, **table_arguments, **kwargs)


def write(
    df: DataFrame,
    path: str | os.PathLike[str],
    hudi_options: Mapping[str, object],
    mode: str = "errorifexists",
    *,
    storage_options: Mapping[str, str] | None = None,
    set_aside: Callable[[DataFrame], object] | None = None,
) -> HudiTable:
    """Write a DataFrame like `df.write.format("hudi").options(...).mode(mode).save(path)`.

    The write is one commit. A missing table is created, and removed again if its first rows cannot
    be written. docs/reference/spark-options.md lists what happens to each option.

    Args:
        df: the rows. Hudi's meta columns among them are dropped; if they would make an append an
            update, as they do in Hudi, the write raises `UnsupportedTableFeature`.
        path: location of the table.
        hudi_options: Hudi's options by name.
        mode: "append" runs the operation. "overwrite" computes the rows, which may come from the
            table itself, removes the table with its history and creates it again; with the
            operation `insert_overwrite_table` it replaces all rows instead. "ignore" does nothing
            if a table exists. "errorifexists" raises an error then.
        storage_options: as in `pyhudi.open_table`.
        set_aside: gets the rows whose record key is null or empty, as a DataFrame, before the
            others are written; without it they are an error. It must use them before it returns:
            all rows are computed once, for it and the write.

    Returns:
        A handle of the table.

    Raises:
        ConfigError: an option or the mode is wrong, a table exists, or its key, partitioning,
            ordering, type or name differs from the options.
        UnsupportedTableFeature: pyhudi does not support an option.
        SchemaMismatch: the rows do not match the table.
    """
    target = Target(os.fspath(path), SparkEngine(df.sparkSession), storage_options)
    return run_write(FrameRows(df, set_aside), WriteRequest.of(hudi_options), target, mode)


@dataclass(frozen=True)
class FrameRows:
    """Rows as a DataFrame."""

    data: DataFrame
    set_aside: Callable[[DataFrame], object] | None = None

    @property
    def case(self) -> bool:
        """Return whether the session distinguishes names that differ only in case."""
        return case_counts(self.data.sparkSession)

    @property
    def columns(self) -> list[str]:
        """Return the names of the columns."""
        names: list[str] = self.data.columns
        return names

    @property
    def schema(self) -> pa.Schema:
        """Return the columns in Arrow's types."""
        return arrow_schema(self.data)

    def select(self, names: Sequence[str]) -> FrameRows:
        """Return these columns."""
        columns = (sf.col(quote_name(name)) for name in names)
        return replace(self, data=self.data.select(*columns))

    def rename(self, names: Sequence[str]) -> FrameRows:
        """Return the rows with other names of all columns."""
        return replace(self, data=self.data.toDF(*names))

    def add_nulls(self, names: Sequence[str], schema: pa.Schema) -> FrameRows:
        """Return the rows with null columns in the types of a table's schema."""
        types = spark_schema(wire_schema(schema))
        data = self.data
        for name in names:
            data = data.withColumn(name, sf.lit(None).cast(types[name].dataType))
        return replace(self, data=data)

    def partition_paths(self, table: HudiTable) -> list[str]:
        """Return the partition paths of rows with the partition columns, sorted."""
        check_zones(self.data, table.schema)
        limit = input_rows.memory_limit(None, self.data)
        step = PartitionPaths(RemoteContext.of(open_write(table, None, limit)))
        paths = map_batches(self.data, step, pa.schema([(PARTITION_PATH, pa.string())])).distinct()
        return sorted(row[0] for row in collect(paths, f"find partitions of rows for {table.name}"))

    @contextmanager
    def separate_keyless(self, key: Sequence[str]) -> Iterator[FrameRows]:
        """Yield the rows to be written; rows without a key first go to `set_aside`, if it is set.

        All rows are then computed once: a non-deterministic row could otherwise be in both frames,
        or in neither.
        """
        if self.set_aside is None:
            yield self
            return
        with CachedFrames() as keep:
            # A new plan, because the caller may have cached this one, which must stay cached.
            good, bad = _separate_keyless(keep.keep(self.data.where(sf.lit(True))), key)
            self.set_aside(bad)
            yield FrameRows(good)


def _separate_keyless(frame: DataFrame, key: Sequence[str]) -> tuple[DataFrame, DataFrame]:
    """Return the rows that can have a record key, and those that cannot.

    The rule is that of `rust/keys`: a key of one field must not be null or empty; a key of several
    fields needs at least one value. key: the key's columns; without columns every row gets a
    generated key.
    """
    if not key:
        return frame, frame.limit(0)
    bad = reduce(and_, (_is_missing(column) for column in key))
    return frame.where(~bad), frame.where(bad)


def _is_missing(column: str) -> Column:
    """Return whether a key column has no value; the result is never null."""
    value = sf.col(".".join(f"`{part}`" for part in column.split(".")))
    return value.isNull() | (sf.coalesce(value.cast("string"), sf.lit("")) == "")
