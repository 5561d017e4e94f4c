"""Base files that Spark reads itself, if its own Parquet reader returns what pyhudi would.

If nothing is merged in a file slice, a Python worker adds nothing: Spark's reader decodes in the
JVM, pushes filters down to row groups and knows the size of its input. pyhudi still selects the
files, and reads the footer of each one first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi import _native
from pyhudi.api.scan import Scan
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import HudiError, UnsupportedTableFeature
from pyhudi.schema.table_schema import is_meta
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.slices.task_packing import task_size
from pyhudi.spark.column_compatibility import quote_name
from pyhudi.spark.job_watch import is_connect
from pyhudi.spark.types import spark_schema, wire_schema

_MAX_FOOTERS = 1000
"""Maximum number of footers that the driver reads before Spark plans; more would take too long."""

_MIN_SHARE = 4
"""Files with less than this part of all bytes are read by tasks, like the slices with log files."""

_READ_OPTIONS = {
    # Other settings of the session would skip rows, or change days.
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    # parquet-mr prunes 0.0 by a dictionary with -0.0 (`DictionaryFilter`, also in Spark 4.3).
    "parquet.filter.dictionary.enabled": "false",
    # It treats 0.0 and -0.0 as different when it compares single rows, too.
    "parquet.filter.record-level.enabled": "false",
    # Directory names are neither columns nor patterns (`DataSource.GLOB_PATHS_KEY`).
    "recursiveFileLookup": "true",
    "__globPaths__": "false",
}


@dataclass
class PlainFiles:
    """Base files of an unfiltered scan whose footers were read."""

    as_text: frozenset[str]
    """Columns whose values are not returned as stored."""
    columns: dict[str, pa.Schema] = field(default_factory=dict)
    """The columns that Spark reads from files, by path."""

    def split(self, scan: Scan) -> tuple[Sequence[str], Sequence[ReadTask]]:
        """Return the locations of files that Spark reads, and the tasks that read the other slices.

        Spark reads a file if its reader certainly returns the same rows, and all of them only if
        they are worth the tasks of a second scan.
        """
        tasks = scan.tasks
        plain = [task for task in tasks if _is_plain(task)]
        if not 0 < len(plain) <= _MAX_FOOTERS or not self.as_text.isdisjoint(scan.schema.names):
            return [], tasks
        if _MIN_SHARE * sum(map(task_size, plain)) < sum(map(task_size, tasks)):
            return [], tasks
        try:
            self._read_footers(plain)
        except HudiError:
            return [], tasks  # the reader of the rows reports the error in the file
        read = {_path(task) for task in plain if _has(self.columns[_path(task)], scan.schema)}
        root = scan.table.storage.uri.rstrip("/")
        prefix = f"file://{root}" if root.startswith("/") else root
        paths = [f"{prefix}/{_path(task)}" for task in plain if _path(task) in read]
        return paths, [task for task in tasks if not _is_plain(task) or _path(task) not in read]

    def _read_footers(self, tasks: Sequence[ReadTask]) -> None:
        new = [task for task in tasks if _path(task) not in self.columns]
        schemas = LocalEngine().run(_columns_of, new)
        self.columns |= dict(zip(map(_path, new), schemas, strict=True))


def read_by_spark(spark: SparkSession, paths: Sequence[str], scan: Scan) -> DataFrame | None:
    """Read columns of Parquet files with Spark's own reader; None if it cannot access them."""
    reader = spark.read.schema(spark_schema(_all_columns(scan))).options(**_READ_OPTIONS)
    try:
        # Spark estimates a smaller size for fewer columns, by the widths of all columns.
        return reader.parquet(*paths).select(*[quote_name(name) for name in scan.schema.names])
    except Exception:
        if paths[0].startswith("file:"):
            raise
        return None  # Spark's settings name another HDFS, or another user


def _all_columns(scan: Scan) -> pa.Schema:
    """Return all columns of the table in Spark, with Hudi's meta columns if they are requested."""
    requested = set(scan.schema.names)
    selected = [
        field for field in scan.table_schema if field.name in requested or not is_meta(field.name)
    ]
    try:
        return wire_schema(pa.schema(selected))
    except UnsupportedTableFeature:
        return wire_schema(scan.schema)


def plain_files(scan: Scan, spark: SparkSession) -> PlainFiles | None:
    """Return the files of a scan; None if Spark could not read any of them as the scan does."""
    storage = scan.table.storage
    is_local = storage.uri.startswith(("/", "file:/"))
    # Only a Connect server knows which files it can read; for buckets, Spark's settings decide.
    is_shared = storage.uri.startswith("hdfs:") and not storage.options and not is_connect(spark)
    if any(task.where for task in scan.tasks) or not (is_local or is_shared):
        return None
    return PlainFiles(frozenset(scan.table.as_text))


def _is_plain(task: ReadTask) -> bool:
    """Return whether the unfiltered rows are those of one file that Spark detects as Parquet."""
    base = task.slice.base
    if base is None or base.source is not None or task.slice.logs or task.whole:
        return False
    has_parquet_name = base.name.endswith(".parquet") and not base.name.startswith((".", "_"))
    return has_parquet_name and task.evolution is None and task.generated_keys is None


def _path(task: ReadTask) -> str:
    return task.slice.base.path if task.slice.base else ""


def _columns_of(task: ReadTask, _attempt: Attempt) -> pa.Schema:
    path_values = {name: pa.repeat(value, 1) for name, value in task.path_values}
    # A table without columns has no row.
    row = pa.table(path_values or {"": [None]})
    return _native.columns_for_spark(task.storage.native, _path(task), row)


def _has(columns: pa.Schema, expected: pa.Schema) -> bool:
    """Return whether a file has the columns in exactly these types, without schema evolution."""
    names = set(columns.names)
    return all(f.name in names and columns.field(f.name).type == f.type for f in expected)
