"""Tables for SQL: temporary views, and the format "pyhudi" in a session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, overload

from pyspark.sql import DataFrame, SparkSession

from pyhudi.api.table import open_table
from pyhudi.clock import Moment
from pyhudi.errors import ConfigError
from pyhudi.spark.column_compatibility import case_counts
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.job_watch import is_connect
from pyhudi.spark.scan_frame import pack_sizes
from pyhudi.spark.sql_tables import TableLocation, register_name
from pyhudi.spark.task_errors import convert_task_errors
from pyhudi.spark.to_dataframe import frame_of, read, read_incremental

ViewQuery = Literal["snapshot", "read_optimized", "incremental", "changes", "diff"]

_PUSH_FILTERS = "spark.sql.python.filterPushdown.enabled"


@overload
def register(spark: SparkSession, *, hudi: bool = False) -> None: ...
@overload
def register(
    spark: SparkSession,
    name: str,
    uri: str | os.PathLike[str],
    *,
    query: ViewQuery = "snapshot",
    start: Moment | None = None,
    end: Moment | None = None,
    **kwargs: Any,
) -> DataFrame: ...
def register(
    spark: SparkSession,
    name: str | None = None,
    uri: str | os.PathLike[str] | None = None,
    *,
    query: ViewQuery = "snapshot",
    start: Moment | None = None,
    end: Moment | None = None,
    hudi: bool = False,
    **kwargs: Any,
) -> DataFrame | None:
    """Create or replace a temporary view of a table for SQL. Returns its DataFrame.

    The view reads the same snapshot until you register it again. Statements that you pass to
    `pyhudi.spark.sql` read and change the current table under this name.

    Without a name it registers the format "pyhudi" as `register_source` does, and returns None.

    Args:
        spark: a session, as for `pyhudi.spark.read`.
        name: name of the view.
        uri: location of the table.
        query: "snapshot" and "read_optimized" as `pyhudi.spark.read`, with `as_of` for a time in
            the past; "incremental" as `read_incremental`; "changes" as `HudiTable.changes`; "diff"
            as `HudiTable.diff`, between `start` and `end`.
        start: start of an incremental query, of changes and of a diff.
        end: end of the same queries.
        hudi: without a name, register the format under the name "hudi", too.
        kwargs: other arguments of the chosen function, such as `columns` and `where`;
            `storage_options` and `options` always.

    Raises what these raise, and `ConfigError` for an unknown query, or one without its range.
    """
    if name is None and uri is None and not kwargs:
        register_source(spark, hudi=hudi)
        return None
    if name is None or uri is None or hudi:
        msg = "register takes the name and the location of a view, or neither of them"
        raise ConfigError(
            msg, hint='register(spark, hudi=True) registers the formats "pyhudi" and "hudi".'
        )
    frame = _frame(spark, uri, query, start, end, kwargs)
    frame.createOrReplaceTempView(name)
    at_now = query == "snapshot" and kwargs.get("as_of") is None
    location = TableLocation(os.fspath(uri), kwargs.get("storage_options"), kwargs.get("options"))
    register_name(spark, name, location if at_now else None)
    return frame


def _frame(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    query: ViewQuery,
    start: Moment | None,
    end: Moment | None,
    arguments: dict[str, Any],
) -> DataFrame:
    if query in ("snapshot", "read_optimized"):
        if start is not None or end is not None:
            raise ConfigError(f"a query {query!r} has no start and end", hint="Pass as_of.")
        if query == "read_optimized":
            arguments["read_optimized"] = True
        return read(spark, uri, **arguments)
    if query == "incremental":
        return read_incremental(spark, uri, start, end, **arguments)
    table_arguments = {name: arguments.pop(name, None) for name in ("storage_options", "options")}
    table = open_table(uri, engine=SparkEngine(spark), **table_arguments)
    if query == "changes":
        return frame_of(table.changes(start, end, **arguments))
    if query == "diff":
        if start is None or end is None:
            raise ConfigError("a query 'diff' needs start and end")
        return frame_of(table.diff(start, end, **arguments))
    raise ConfigError(
        f"query is {query!r}",
        hint="snapshot, read_optimized, incremental, changes or diff",
    )


def register_source(spark: SparkSession, *, push_filters: bool = False, hudi: bool = False) -> None:
    """Register the format "pyhudi" for `read`, `readStream`, `write` and `writeStream`.

    Needs PySpark 4. Tasks are packed and split by the current settings of Spark's file sources;
    writes compare names by the current `spark.sql.caseSensitive`.

    Args:
        spark: the session.
        push_filters: from Spark 4.1 on, let Spark push its filters into Python sources: sets
            `spark.sql.python.filterPushdown.enabled` in the session. Then do not query a DataFrame
            or view of this format twice: Spark (4.1 to 4.3) keeps the filters of one query for the
            next one without filters, which then returns too few rows.
        hudi: register the format under the name "hudi", too, so that jobs for Apache Hudi need no
            change. Hudi's JAR must not be in the session.

    Raises:
        ConfigError: PySpark is 3.5.
    """
    try:
        from pyhudi.spark.source import SourceSettings, source_class  # noqa: PLC0415 - PySpark 4
    except ImportError as error:
        raise ConfigError(
            "Python data sources need PySpark 4",
            hint="pyhudi.spark.read, write and sink work with 3.5, too.",
        ) from error
    convert_task_errors(spark)
    # Spark 4.0 does not have the setting, and accepts any name.
    push = push_filters and spark.conf.isModifiable(_PUSH_FILTERS)
    if push:
        spark.conf.set(_PUSH_FILTERS, "true")
    settings = SourceSettings(pack_sizes(spark), push, case_counts(spark))
    with _active_session(spark):
        for name in ("pyhudi", "hudi") if hudi else ("pyhudi",):
            spark.dataSource.register(source_class(settings, name))


@contextmanager
def _active_session(spark: SparkSession) -> Iterator[None]:
    """Make a session the active one of this thread.

    Spark refuses a new format that the active session has already, if that is another session.
    """
    if is_connect(spark):
        yield
        return
    # PySpark has no method of its own that undoes it.
    sessions = getattr(spark._jvm, "org.apache.spark.sql.classic.SparkSession")  # noqa: B009, SLF001
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)  # noqa: SLF001
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()
