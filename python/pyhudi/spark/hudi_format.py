"""Reading and writing with Hudi's own options map, as `format("hudi")` takes it.

What the options mean is read in `hudi_options.py`. The work is that of the table's verbs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
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
from pyhudi.spark.case_sensitivity import case_counts, rename_columns, resolve_name
from pyhudi.spark.column_compatibility import check_zones, missing_columns
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.executor_context import RemoteContext
from pyhudi.spark.executor_steps import CachedFrames, arrow_schema, collect, map_batches
from pyhudi.spark.hudi_options import (
    HUDIS_INDEX,
    OPERATION,
    TO_DELETE,
    ReadRequest,
    WriteRequest,
)
from pyhudi.spark.key_steps import PartitionPaths
from pyhudi.spark.option_conflicts import check_fits, check_range
from pyhudi.spark.read_frames import read as read_as_asked
from pyhudi.spark.rows_without_key import separate_keyless
from pyhudi.spark.to_dataframe import frame_of
from pyhudi.spark.types import spark_schema, wire_schema
from pyhudi.storage.storage import Storage
from pyhudi.write import input_rows
from pyhudi.write.upsert import open_write

_MODES = ("append", "overwrite", "ignore", "error", "errorifexists", "default")
_DELETES = ("delete", "delete_partition")
_REPLACING = ("insert_overwrite", "insert_overwrite_table")
_OF_CDC = ("where", "limit")


def read(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    hudi_options: Mapping[str, object] | None = None,
    **how: Any,
) -> DataFrame:
    """The rows of a Hudi table as a DataFrame, as arguments or Hudi's own options say.

    With an options map the rows are those of `spark.read.format("hudi").options(...)`: Hudi's own
    columns come with them (`meta_fields=False` leaves them out), `hoodie.datasource.query.type`
    and its like choose the query. Each option: docs/reference/spark-options.md.
    From table version 8 on ranges of changes are of completion times, where Hudi takes requested
    ones.

    Args:
        spark: a classic or Spark Connect session of PySpark 3.5 or 4.x.
        uri: the table's folder.
        hudi_options: Hudi's options by name; None for a query by arguments.
        how: without options the arguments of `pyhudi.spark.read_frames.read`: `columns`, `where`,
            `as_of` and more. With options those of the query, and `storage_options`.

    Returns:
        The DataFrame, of the table as it is when this is called.

    Raises:
        UnsupportedTableFeature: an option asks for what pyhudi does not do.
        ConfigError: an option is unknown, has a value that it cannot have, or does not go with the
            query.
    """
    if hudi_options is None:
        return read_as_asked(spark, uri, **how)
    asked = ReadRequest.of(hudi_options)
    if "options" in how:
        raise ConfigError("options are given twice", hint="Put all into the one map.")
    given = {"storage_options": how.pop("storage_options", None), "options": asked.handle}
    if asked.query == "cdc":
        wrong = [name for name in how if name not in _OF_CDC]
        if wrong:
            raise ConfigError(f"{wrong[0]} cannot be combined with changes")
        table = open_table(uri, engine=SparkEngine(spark), **given)
        check_range(asked, table.config)
        return frame_of(table.changes(asked.start, asked.end, images="json", **how))
    how.setdefault("meta_fields", how.get("columns") is None)
    if asked.query == "incremental":
        how.setdefault("hollow_commits", asked.hollow_commits)
        how.setdefault("fallback_full_scan", asked.fallback_full_scan)
        table = open_table(uri, engine=SparkEngine(spark), **given)
        check_range(asked, table.config)
        return frame_of(table.incremental(asked.start, asked.end, **how))
    how.setdefault("read_optimized", asked.query == "read_optimized")
    how.setdefault("as_of", asked.as_of)
    return read_as_asked(spark, uri, **given, **how)


def write(
    df: DataFrame,
    path: str | os.PathLike[str],
    hudi_options: Mapping[str, object],
    mode: str = "errorifexists",
    *,
    storage_options: Mapping[str, str] | None = None,
    set_aside: Callable[[DataFrame], object] | None = None,
) -> HudiTable:
    """Writes a DataFrame as `df.write.format("hudi").options(...).mode(mode).save(path)` does.

    One commit. A table that is not there is made, and goes again if its first rows cannot be
    written. Each option: docs/reference/spark-options.md.

    Args:
        df: the rows. Hudi's own columns among them are left out; where they would make an update of
            an append, which they do in Hudi, the write is refused.
        path: the table's folder.
        hudi_options: Hudi's options by name.
        mode: "append" carries out the operation; "overwrite" works the rows out, which may come
            from the table itself, removes the table with its history and makes it anew, but with
            the operation `insert_overwrite_table` puts the rows in place of all others; "ignore"
            does nothing where there is a table; "errorifexists".
        storage_options: as in `pyhudi.open_table`.
        set_aside: gets the rows that have no record key, null or empty, as a DataFrame, before the
            others are written; without it they are an error. What it does with them it does before
            it returns: all rows are worked out once, for it and the write.

    Returns:
        The table's handle.

    Raises:
        ConfigError: an option or the mode is wrong, there is a table, or one with another key,
            partitioning, ordering, type or name than the options say.
        UnsupportedTableFeature: an option asks for what pyhudi does not do.
        SchemaMismatch: the rows do not fit the table.
    """
    mode = mode.strip().lower()
    if mode not in _MODES:
        raise ConfigError(f"mode is {mode!r}", hint=f"One of {', '.join(_MODES)}.")
    asked = WriteRequest.of(hudi_options)
    engine = SparkEngine(df.sparkSession)
    storage = Storage(os.fspath(path), storage_options)
    exists = has_table(storage)
    if asked.operation in _DELETES and mode != "append":
        raise ConfigError(
            f"{OPERATION} is {asked.operation}: it does not support mode {mode!r}",
            hint='Use mode="append".',
        )
    if exists and mode in ("error", "errorifexists", "default"):
        raise ConfigError(
            f"a Hudi table exists at {storage.uri}",
            hint='mode="append" writes to it, "overwrite" replaces it.',
        )
    if mode == "overwrite" and asked.operation == "insert_overwrite":
        raise UnsupportedTableFeature(
            f'{OPERATION} is insert_overwrite with mode="overwrite": releases of Hudi differ in '
            "whether they drop the table",
            hint='Use mode="append" to replace partitions, or insert_overwrite_table.',
        )
    data = df.select(*(sf.col(f"`{name}`") for name in df.columns if not is_meta(name)))
    replaces = mode == "overwrite" and asked.operation != "insert_overwrite_table"
    if asked.operation in _DELETES or (exists and not replaces):
        table = open_table(
            path, engine=engine, storage_options=storage_options, options=asked.handle
        )
        if mode == "ignore":
            return table
        check_fits(asked, table.config)
        _check_no_update(asked, table.config, df)
        table = _with_hudis_index(table, asked)
        _write(table, asked, rename_columns(data, table.schema.names), set_aside)
        return table
    where = {"storage_options": storage_options, "engine": engine}
    return _create(path, asked, data, where, replaces=replaces, set_aside=set_aside)


def _create(
    path: str | os.PathLike[str],
    asked: WriteRequest,
    data: DataFrame,
    where: Mapping[str, Any],
    *,
    replaces: bool,
    set_aside: Callable[[DataFrame], object] | None,
) -> HudiTable:
    def fill(table: HudiTable, rows: Any) -> None:
        operation = _operation(asked, table.config)
        if operation != "upsert":
            _carry_out(table, asked, operation, rows)
            return
        # Into no rows: one of each key is inserted, and nothing has to be looked up.
        one_of_each = {COMBINE_INSERTS: table.options.get(COMBINE_UPSERTS, "true")}
        as_upsert = HudiTable(table.storage, table.engine, {**table.options, **one_of_each})
        _carry_out(as_upsert, asked, "insert", rows)
        table.refresh()

    key = _as_in(data, asked.key or ())
    with _with_key(data, key, set_aside) as given:
        return create_and_fill(
            path,
            given,
            fill,
            key=key or None,
            partition_by=_as_in(data, asked.partition_by or ()) or None,
            order_by=_as_in(data, asked.order_by or ()) or None,
            type="mor" if asked.type == "mor" else "cow",
            version=asked.version or NewTable.version,
            index=None,
            mode="overwrite" if replaces else "error",
            options={**asked.making, **asked.for_new},
            **where,
        )


def _with_hudis_index(table: HudiTable, asked: WriteRequest) -> HudiTable:
    """The table with the index that Hudi finds keys by, where the options name none.

    A record index by which keys are unique over all partitions is removed where the write goes by
    one that is not, as Hudi does: it would have one place of a key that has several. An index that
    gives the same rows stays in use, and buckets stay buckets.
    """
    config, options = table.config, table.options
    traces = IndexDetector(table.storage, config, table.state.timeline)
    by_partition = traces.record_index_by_partition
    same_rows = by_partition or (by_partition is False and not config.partition_fields)
    if INDEX_TYPE not in options:
        if same_rows or traces.has_buckets:
            return table
        options = {**options, INDEX_TYPE: HUDIS_INDEX}
    if by_partition is False and not (same_rows or asked.wants_record_index):
        index = choose(table.storage, config, traces.timeline, IndexOptions.of(options))
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
            msg, hint=f"Give {enable}=true with {INDEX_TYPE}=RECORD_INDEX."
        ) from error
    warn(
        f"{table.storage.uri}: the record index was removed, as Apache Hudi removes it where no "
        "option asks for it: a key is unique in its partition from now on, and no longer over all "
        f"partitions; {enable}=true with {INDEX_TYPE}=RECORD_INDEX keeps it",
        MetadataTableWarning,
    )


def _operation(asked: WriteRequest, config: TableConfig) -> str:
    """As `HoodieSparkSqlWriter.deduceOperation`, 1.2.0: nobody finds rows of generated keys."""
    return asked.operation or ("upsert" if config.record_key_fields else "bulk_insert")


def _check_no_update(asked: WriteRequest, config: TableConfig, df: DataFrame) -> None:
    """Refuses rows of a table without key that were read with the keys that Hudi has made.

    To Hudi they are an update (`deduceOperation` and `canDoPreppedWrites`, 1.2.0).
    """
    if asked.operation is None and not config.record_key_fields and RECORD_KEY in df.columns:
        raise UnsupportedTableFeature(
            f"hoodie.table.recordkey.fields is not set and the data have {RECORD_KEY}: an update "
            "by generated keys",
            hint=f"To add the rows, drop the meta columns, or set {OPERATION}=bulk_insert.",
        )


def _write(
    table: HudiTable,
    asked: WriteRequest,
    data: DataFrame,
    set_aside: Callable[[DataFrame], object] | None,
) -> None:
    config = table.config
    if asked.operation == "delete_partition":
        table.delete_partitions(_partitions(table, asked, data))
        return
    operation = _operation(asked, config)
    with _with_key(data, config.record_key_fields, set_aside) as given:
        if operation == "delete":
            _delete(table, given)
        else:
            _put(table, asked, operation, given)


def _delete(table: HudiTable, data: DataFrame) -> None:
    config = table.config
    tops = (name.split(".")[0] for name in (*config.record_key_fields, *config.partition_fields))
    named = [name for name in dict.fromkeys(tops) if name in data.columns]
    table.delete_keys(data.select(*(sf.col(f"`{name}`") for name in named)))


def _put(table: HudiTable, asked: WriteRequest, operation: str, data: DataFrame) -> None:
    case = case_counts(data.sparkSession)
    missing = missing_columns(arrow_schema(data), table.schema, case=case)
    if missing and not asked.nulls_for_missing:
        raise SchemaMismatch(
            f"the input is missing the columns {', '.join(missing)}",
            hint="With hoodie.datasource.write.reconcile.schema=true they get nulls.",
        )
    if operation in _REPLACING:
        types = spark_schema(wire_schema(table.schema))
        for name in table.schema.names:
            if name in missing:
                data = data.withColumn(name, sf.lit(None).cast(types[name].dataType))
    _carry_out(table, asked, operation, data)


def _carry_out(table: HudiTable, asked: WriteRequest, operation: str, data: Any) -> None:
    """The verb of an operation that brings rows."""
    if operation in _REPLACING:
        verb = table.overwrite if operation.endswith("table") else table.overwrite_partitions
        verb(data, schema_mode="merge")
    elif operation == "bulk_insert":
        table.bulk_insert(
            data, sort=asked.sort, sort_columns=asked.sort_columns, schema_mode="merge"
        )
    elif operation == "insert":
        table.insert(data, schema_mode="merge")
    else:
        table.upsert(data, schema_mode="merge")


def _partitions(table: HudiTable, asked: WriteRequest, data: DataFrame) -> list[str]:
    """What `delete_partitions` takes: those of the option, or those that the rows are in."""
    if asked.delete:
        known = table.inspect.partitions().column("partition").to_pylist()
        return sorted(
            {path for pattern in asked.delete for path in _match_partitions(pattern, known)}
        )
    names = list(table.config.partition_fields)
    if not names:
        raise ConfigError(f"{OPERATION} is delete_partition, and the table has no partitions")
    lacking = [name for name in names if name.split(".")[0] not in data.columns]
    if lacking:
        raise SchemaMismatch(
            f"the input is missing the partition column {lacking[0]!r}",
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


def _match_partitions(pattern: str, known: list[str]) -> list[str]:
    """The partition paths that one of the option means.

    As `HoodieSparkSqlWriter.resolvePartitionWildcards`, 1.2.0: nothing but the star is a pattern,
    which Spark's SQL may have encoded.
    """
    star = next((each for each in ("*", "%2A") if each in pattern), None)
    if star is None:
        return [pattern]
    meant = re.compile(".*".join(map(re.escape, pattern.split(star))), re.DOTALL)
    return [path for path in known if meant.fullmatch(path)]


@contextmanager
def _with_key(
    data: DataFrame, key: tuple[str, ...], set_aside: Callable[[DataFrame], object] | None
) -> Iterator[DataFrame]:
    """The rows that are written; the others are given away first, where somebody takes them.

    Worked out once then: another time a row might be among the others, or among neither.
    """
    if set_aside is None:
        yield data
        return
    with CachedFrames() as keep:
        # Of a plan of its own: the caller may have cached the frame, and keeps it.
        good, bad = separate_keyless(keep.keep(data.where(sf.lit(True))), key)
        set_aside(bad)
        yield good


def _as_in(data: DataFrame, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of columns, with types behind them or not, as the data spell them."""
    case = case_counts(data.sparkSession)
    spelled = []
    for name in names:
        column, colon, kind = name.partition(":")
        top, dot, rest = column.partition(".")
        found = resolve_name(top, data.columns, case=case) or top
        spelled.append(f"{found}{dot}{rest}{colon}{kind}")
    return tuple(spelled)
