"""Reads and writes with Hudi's own options map, as `format("hudi")` does.

`hudi_options.py` interprets the options. The methods of the table do the work.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from pyhudi.api.create import create_and_fill
from pyhudi.api.table import HudiTable, open_table
from pyhudi.api.table_exists import has_table
from pyhudi.config.index_options import INDEX_TYPE, IndexOptions
from pyhudi.config.log import warn
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.config.metadata_options import RECORD_INDEX_ENABLE
from pyhudi.config.new_table_properties import NewTable
from pyhudi.config.table_config import TableConfig
from pyhudi.config.write_options import COMBINE_INSERTS, COMBINE_UPSERTS
from pyhudi.errors import (
    ConfigError,
    MetadataTableWarning,
    SchemaMismatch,
    UnsupportedTableFeature,
    without_hint,
)
from pyhudi.index.detection import IndexDetector
from pyhudi.index.selection import choose
from pyhudi.schema.table_schema import is_meta
from pyhudi.spark.column_compatibility import (
    case_counts,
    check_zones,
    missing_columns,
    rename_columns,
    resolve_name,
)
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.executor_steps import (
    CachedFrames,
    RemoteContext,
    arrow_schema,
    collect,
    map_batches,
)
from pyhudi.spark.hudi_options import (
    HUDIS_INDEX,
    OPERATION,
    TO_DELETE,
    ReadRequest,
    WriteRequest,
)
from pyhudi.spark.key_steps import PartitionPaths
from pyhudi.spark.option_conflicts import check_range_version, check_write_options
from pyhudi.spark.to_dataframe import frame_of
from pyhudi.spark.to_dataframe import read as read_snapshot
from pyhudi.spark.types import spark_schema, wire_schema
from pyhudi.storage.storage import Storage
from pyhudi.write import input_rows
from pyhudi.write.upsert import open_write

_MODES = ("append", "overwrite", "ignore", "error", "errorifexists", "default")
_DELETES = ("delete", "delete_partition")
_REPLACING = ("insert_overwrite", "insert_overwrite_table")
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
    mode = mode.strip().lower()
    if mode not in _MODES:
        raise ConfigError(f"mode is {mode!r}", hint=f"One of {', '.join(_MODES)}.")
    request = WriteRequest.of(hudi_options)
    engine = SparkEngine(df.sparkSession)
    storage = Storage(os.fspath(path), storage_options)
    exists = has_table(storage)
    if request.operation in _DELETES and mode != "append":
        raise ConfigError(
            f"{OPERATION} is {request.operation}: it does not support mode {mode!r}",
            hint='Use mode="append".',
        )
    if exists and mode in ("error", "errorifexists", "default"):
        raise ConfigError(
            f"a Hudi table exists at {storage.uri}",
            hint='mode="append" writes to it, "overwrite" replaces it.',
        )
    if mode == "overwrite" and request.operation == "insert_overwrite":
        raise UnsupportedTableFeature(
            f'{OPERATION} is insert_overwrite with mode="overwrite": releases of Hudi differ in '
            "whether they drop the table",
            hint='Use mode="append" to replace partitions, or insert_overwrite_table.',
        )
    data = df.select(*(sf.col(f"`{name}`") for name in df.columns if not is_meta(name)))
    replaces = mode == "overwrite" and request.operation != "insert_overwrite_table"
    if request.operation in _DELETES or (exists and not replaces):
        table = open_table(
            path, engine=engine, storage_options=storage_options, options=request.handle
        )
        if mode == "ignore":
            return table
        check_write_options(request, table.config)
        _check_no_update(request, table.config, df)
        table = _with_hudis_index(table, request)
        _write(table, request, rename_columns(data, table.schema.names), set_aside)
        return table
    where = {"storage_options": storage_options, "engine": engine}
    return _create(path, request, data, where, replaces=replaces, set_aside=set_aside)


def _create(
    path: str | os.PathLike[str],
    request: WriteRequest,
    data: DataFrame,
    where: Mapping[str, Any],
    *,
    replaces: bool,
    set_aside: Callable[[DataFrame], object] | None,
) -> HudiTable:
    def fill(table: HudiTable, rows: Any) -> None:
        operation = _operation(request, table.config)
        if operation != "upsert":
            _execute(table, request, operation, rows)
            return
        # The table is empty: inserting one row of each key needs no lookup.
        combine_option = {COMBINE_INSERTS: table.options.get(COMBINE_UPSERTS, "true")}
        as_upsert = HudiTable(table.storage, table.engine, {**table.options, **combine_option})
        _execute(as_upsert, request, "insert", rows)
        table.refresh()

    key = _match_case(data, request.key or ())
    with _with_key(data, key, set_aside) as rows:
        return create_and_fill(
            path,
            rows,
            fill,
            key=key or None,
            partition_by=_match_case(data, request.partition_by or ()) or None,
            order_by=_match_case(data, request.order_by or ()) or None,
            type="mor" if request.type == "mor" else "cow",
            version=request.version or NewTable.version,
            index=None,
            mode="overwrite" if replaces else "error",
            options={**request.table_options, **request.for_new},
            **where,
        )


def _with_hudis_index(table: HudiTable, request: WriteRequest) -> HudiTable:
    """Return the table with the index that Hudi uses, if the options name none.

    A record index with table-wide unique keys is removed if the write uses an index with keys per
    partition, as in Hudi: it would have one location of a key that has several. An index with the
    same results stays in use, and buckets stay buckets.
    """
    config, options = table.config, table.options
    detected = IndexDetector(table.storage, config, table.state.timeline)
    by_partition = detected.record_index_by_partition
    same_rows = by_partition or (by_partition is False and not config.partition_fields)
    if INDEX_TYPE not in options:
        if same_rows or detected.has_buckets:
            return table
        options = {**options, INDEX_TYPE: HUDIS_INDEX}
    if by_partition is False and not (same_rows or request.requests_record_index):
        index = choose(table.storage, config, detected.timeline, IndexOptions.of(options))
        if not index.is_global:
            _remove_record_index(table)
    return HudiTable(table.storage, table.engine, options)


def _remove_record_index(table: HudiTable) -> None:
    enable = RECORD_INDEX_ENABLE[0]
    try:
        table.drop_index(RECORD_INDEX)
    except ConfigError as error:
        cause = without_hint(error)
        msg = f"no option asks for the table's record index, which cannot be removed: {cause}"
        raise ConfigError(
            msg, hint=f"Pass {enable}=true with {INDEX_TYPE}=RECORD_INDEX."
        ) from error
    warn(
        f"{table.storage.uri}: the record index was removed, as Apache Hudi removes it where no "
        "option asks for it: a key is unique in its partition from now on, and no longer over all "
        f"partitions; {enable}=true with {INDEX_TYPE}=RECORD_INDEX keeps it",
        MetadataTableWarning,
    )


def _operation(request: WriteRequest, config: TableConfig) -> str:
    """Return the operation as `HoodieSparkSqlWriter.deduceOperation` (1.2.0) does.

    Rows with generated keys cannot be looked up, so the default is a bulk insert.
    """
    return request.operation or ("upsert" if config.record_key_fields else "bulk_insert")


def _check_no_update(request: WriteRequest, config: TableConfig, df: DataFrame) -> None:
    """Raise for rows that were read from a table without a key with their generated keys.

    In Hudi they are an update (`deduceOperation` and `canDoPreppedWrites`, 1.2.0).
    """
    if request.operation is None and not config.record_key_fields and RECORD_KEY in df.columns:
        raise UnsupportedTableFeature(
            f"hoodie.table.recordkey.fields is not set and the data have {RECORD_KEY}: an update "
            "by generated keys",
            hint=f"To add the rows, drop the meta columns, or set {OPERATION}=bulk_insert.",
        )


def _write(
    table: HudiTable,
    request: WriteRequest,
    data: DataFrame,
    set_aside: Callable[[DataFrame], object] | None,
) -> None:
    config = table.config
    if request.operation == "delete_partition":
        table.delete_partitions(_partitions(table, request, data))
        return
    operation = _operation(request, config)
    with _with_key(data, config.record_key_fields, set_aside) as rows:
        if operation == "delete":
            _delete(table, rows)
        else:
            _put(table, request, operation, rows)


def _delete(table: HudiTable, data: DataFrame) -> None:
    config = table.config
    tops = (name.split(".")[0] for name in (*config.record_key_fields, *config.partition_fields))
    named = [name for name in dict.fromkeys(tops) if name in data.columns]
    table.delete_keys(data.select(*(sf.col(f"`{name}`") for name in named)))


def _put(table: HudiTable, request: WriteRequest, operation: str, data: DataFrame) -> None:
    case = case_counts(data.sparkSession)
    missing = missing_columns(arrow_schema(data), table.schema, case=case)
    if missing and not request.nulls_for_missing:
        raise SchemaMismatch(
            f"the input is missing the columns {', '.join(missing)}",
            hint="With hoodie.datasource.write.reconcile.schema=true they get nulls.",
        )
    if operation in _REPLACING:
        types = spark_schema(wire_schema(table.schema))
        for name in table.schema.names:
            if name in missing:
                data = data.withColumn(name, sf.lit(None).cast(types[name].dataType))
    _execute(table, request, operation, data)


def _execute(table: HudiTable, request: WriteRequest, operation: str, data: Any) -> None:
    """Run the method of an operation that writes rows."""
    if operation in _REPLACING:
        overwrite = table.overwrite if operation.endswith("table") else table.overwrite_partitions
        overwrite(data, schema_mode="merge")
    elif operation == "bulk_insert":
        table.bulk_insert(
            data, sort=request.sort, sort_columns=request.sort_columns, schema_mode="merge"
        )
    elif operation == "insert":
        table.insert(data, schema_mode="merge")
    else:
        table.upsert(data, schema_mode="merge")


def _partitions(table: HudiTable, request: WriteRequest, data: DataFrame) -> list[str]:
    """Return the partitions for `delete_partitions`: those of the option, or those of the rows."""
    if request.delete:
        existing = table.inspect.partitions().column("partition").to_pylist()
        return sorted(
            {path for pattern in request.delete for path in _match_partitions(pattern, existing)}
        )
    names = list(table.config.partition_fields)
    if not names:
        raise ConfigError(f"{OPERATION} is delete_partition, and the table has no partitions")
    missing = [name for name in names if name.split(".")[0] not in data.columns]
    if missing:
        raise SchemaMismatch(
            f"the input is missing the partition column {missing[0]!r}",
            hint=f"Or give {TO_DELETE}.",
        )
    tops = dict.fromkeys(name.split(".")[0] for name in names)
    rows = data.select(*(sf.col(f"`{name}`") for name in tops))
    check_zones(rows, table.schema)
    step = PartitionPaths(
        RemoteContext.of(open_write(table, None, input_rows.memory_limit(None, rows)))
    )
    paths = map_batches(rows, step, pa.schema([(PARTITION_PATH, pa.string())])).distinct()
    return sorted(row[0] for row in collect(paths, "find partitions"))


def _match_partitions(pattern: str, existing: list[str]) -> list[str]:
    """Return the partition paths that match an entry of the option.

    As in `HoodieSparkSqlWriter.resolvePartitionWildcards` (1.2.0), only the star is a pattern,
    which Spark SQL may have encoded.
    """
    star = next((text for text in ("*", "%2A") if text in pattern), None)
    if star is None:
        return [pattern]
    pattern_of_paths = re.compile(".*".join(map(re.escape, pattern.split(star))), re.DOTALL)
    return [path for path in existing if pattern_of_paths.fullmatch(path)]


@contextmanager
def _with_key(
    data: DataFrame, key: tuple[str, ...], set_aside: Callable[[DataFrame], object] | None
) -> Iterator[DataFrame]:
    """Yield the rows to be written; rows without a key first go to `set_aside`, if it is set.

    All rows are then computed once: a non-deterministic row could otherwise be in both frames, or
    in neither.
    """
    if set_aside is None:
        yield data
        return
    with CachedFrames() as keep:
        # A new plan, because the caller may have cached this one, which must stay cached.
        good, bad = _separate_keyless(keep.keep(data.where(sf.lit(True))), key)
        set_aside(bad)
        yield good


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


def _match_case(data: DataFrame, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return column names, with or without types, in the case that the data use."""
    case = case_counts(data.sparkSession)
    result = []
    for name in names:
        column, colon, key_type = name.partition(":")
        top, dot, rest = column.partition(".")
        match = resolve_name(top, data.columns, case=case) or top
        result.append(f"{match}{dot}{rest}{colon}{key_type}")
    return tuple(result)
