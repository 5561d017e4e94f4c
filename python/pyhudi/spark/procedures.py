"""Hudi's `show_...` procedures as table functions of SQL.

They only read. Spark may run a query twice, in part or never, and runs Python functions on
executors, so a function must not change a table. Methods of the table change it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import udtf

from pyhudi.api.table import HudiTable, open_table
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError
from pyhudi.spark.types import to_wire, wire_schema
from pyhudi.sql_statements.procedures import DEFAULT_LIMIT, newest_rows, table_properties

_COMMITS = (
    "requested string, completed string, action string, operation string, "
    "partitions array<string>, files bigint, rows_written bigint, rows_inserted bigint, "
    "rows_updated bigint, rows_deleted bigint, bytes bigint"
)
_TIMELINE = "requested string, action string, state string, completed string, file string"
_SAVEPOINTS = (
    "instant string, comment string, saved_by string, saved_at timestamp, partitions bigint, "
    "files bigint"
)
_PROPERTIES = "key string, value string"


class ShowCommits:
    """`show_commits(path, limit)`: the newest completed commits."""

    def eval(self, path: str, limit: int = DEFAULT_LIMIT) -> Iterator[tuple[Any, ...]]:
        """Yield the rows, the newest first."""
        yield from _rows(newest_rows(_table(path).inspect.commits(), limit))


class ShowTimeline:
    """`show_timeline(path, limit)`: the newest instants of the active timeline."""

    def eval(self, path: str, limit: int = DEFAULT_LIMIT) -> Iterator[tuple[Any, ...]]:
        """Yield the rows, the newest first."""
        yield from _rows(newest_rows(_table(path).inspect.timeline(), limit))


class ShowSavepoints:
    """`show_savepoints(path)`: the saved commits."""

    def eval(self, path: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows, the oldest first."""
        yield from _rows(_table(path).savepoints())


class ShowTableProperties:
    """`show_table_properties(path)`: the content of `hoodie.properties`."""

    def eval(self, path: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows in the order of their keys."""
        yield from _rows(table_properties(_table(path)))


_PROCEDURES = {
    "show_commits": (ShowCommits, _COMMITS),
    "show_timeline": (ShowTimeline, _TIMELINE),
    "show_savepoints": (ShowSavepoints, _SAVEPOINTS),
    "show_table_properties": (ShowTableProperties, _PROPERTIES),
}


def register_procedures(spark: SparkSession) -> tuple[str, ...]:
    """Register procedures for SQL: `SELECT * FROM show_commits('/lake/trips', 10)`.

    They are `show_commits`, `show_timeline`, `show_savepoints` and `show_table_properties`, with
    the table's location instead of its name. Executors access the storage with their environment.

    Args:
        spark: a session of PySpark 4.

    Returns:
        The names.

    Raises:
        ConfigError: the session is one of PySpark 3.5.
    """
    if spark.version.startswith("3."):
        raise ConfigError("table functions need PySpark 4", hint="HudiTable.history shows commits.")
    for name, (function_class, columns) in _PROCEDURES.items():
        spark.udtf.register(name, udtf(function_class, returnType=columns))
    return tuple(_PROCEDURES)


def _table(path: str) -> HudiTable:
    if "://" not in path and not path.startswith(("/", "file:")):
        raise ConfigError(f"the path {path!r} is relative", hint="Give all of it.")
    return open_table(path, engine=LocalEngine(1))


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    wire = wire_schema(table.schema)
    for batch in table.to_batches():
        yield from (tuple(row.values()) for row in to_wire(batch, wire).to_pylist())
