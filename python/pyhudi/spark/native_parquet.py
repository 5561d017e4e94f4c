"""Base files that Spark reads by itself, where its own Parquet reader gives what pyhudi would.

Where nothing is merged, each value that crosses a Python worker is a detour: Spark's reader decodes
in the JVM, pushes its filters down to row groups and knows the size of what it reads. The files are
still pyhudi's choice, and each one's footer is looked at first.
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
from pyhudi.spark.case_sensitivity import quote_name
from pyhudi.spark.engine import is_connect
from pyhudi.spark.types import spark_schema, wire_schema

_FOOTERS_MOST = 1000
"""The driver reads them before Spark plans; of more files that would be felt."""

_READING = {
    # What a session may have set otherwise would leave rows out, or change days.
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    # To parquet-mr a dictionary of -0.0 lacks 0.0 (`DictionaryFilter`, also that of Spark 4.3).
    "parquet.filter.dictionary.enabled": "false",
    # Nor does it equal 0.0, where rows are compared one by one.
    "parquet.filter.record-level.enabled": "false",
    # Names of folders are no columns and no patterns (`DataSource.GLOB_PATHS_KEY`).
    "recursiveFileLookup": "true",
    "__globPaths__": "false",
}


@dataclass
class PlainFiles:
    """Base files of a scan without a filter of its own, as far as their footers were looked at."""

    as_text: frozenset[str]
    """Columns whose values are not shown as they are stored."""
    columns: dict[str, pa.Schema] = field(default_factory=dict)
    """What Spark reads of files, by their paths."""

    def paths(self, scan: Scan) -> list[str] | None:
        """Where the files of a scan are; None where Spark's reader could give other rows."""
        tasks = scan.tasks
        if not 0 < len(tasks) <= _FOOTERS_MOST or not all(map(_is_plain, tasks)):
            return None
        if not self.as_text.isdisjoint(scan.schema.names):
            return None
        try:
            self._look_at(tasks)
        except HudiError:
            return None  # whoever reads the rows tells what is wrong with the file
        found = (self.columns[_path(task)] for task in tasks)
        if not all(_has(columns, scan.schema) for columns in found):
            return None
        root = scan.table.storage.uri.rstrip("/")
        folder = f"file://{root}" if root.startswith("/") else root
        return [f"{folder}/{_path(task)}" for task in tasks]

    def _look_at(self, tasks: list[ReadTask]) -> None:
        new = [task for task in tasks if _path(task) not in self.columns]
        found = LocalEngine().run(_columns_of, new)
        self.columns |= dict(zip(map(_path, new), found, strict=True))


def read_by_spark(spark: SparkSession, paths: Sequence[str], scan: Scan) -> DataFrame | None:
    """Columns of Parquet files by Spark's own reader; None where it does not get at them."""
    reader = spark.read.schema(spark_schema(_whole(scan))).options(**_READING)
    try:
        # Of fewer columns Spark takes less for the size, by the widths of all.
        return reader.parquet(*paths).select(*[quote_name(name) for name in scan.schema.names])
    except Exception:
        if paths[0].startswith("file:"):
            raise
        return None  # Spark's settings know another HDFS, or another user


def _whole(scan: Scan) -> pa.Schema:
    """All columns of the table as Spark has them, Hudi's own if they are asked for."""
    asked = set(scan.schema.names)
    shown = [field for field in scan.shown if field.name in asked or not is_meta(field.name)]
    try:
        return wire_schema(pa.schema(shown))
    except UnsupportedTableFeature:
        return wire_schema(scan.schema)


def plain_files(scan: Scan, spark: SparkSession) -> PlainFiles | None:
    """The files of a scan; None where Spark could not read any of them as the scan does."""
    storage = scan.table.storage
    is_local = storage.uri.startswith(("/", "file:/"))
    # Of Connect only the server knows whether it gets at them, and of buckets Spark's settings.
    is_shared = storage.uri.startswith("hdfs:") and not storage.options and not is_connect(spark)
    if any(task.where for task in scan.tasks) or not (is_local or is_shared):
        return None
    return PlainFiles(frozenset(scan.table.as_text))


def _is_plain(task: ReadTask) -> bool:
    """Whether the rows, before any filter, are those of one file that Spark takes for Parquet."""
    base = task.slice.base
    if base is None or base.source is not None or task.slice.logs or task.whole:
        return False
    is_seen = base.name.endswith(".parquet") and not base.name.startswith((".", "_"))
    return is_seen and task.evolution is None and task.made_keys is None


def _path(task: ReadTask) -> str:
    return task.slice.base.path if task.slice.base else ""


def _columns_of(task: ReadTask, _attempt: Attempt) -> pa.Schema:
    told = {name: pa.repeat(value, 1) for name, value in task.path_values}
    # A table without columns has no row.
    row = pa.table(told or {"": [None]})
    return _native.columns_for_spark(task.storage.native, _path(task), row)


def _has(columns: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether a file has the columns in just these types; then no rule of evolution applies."""
    names = set(columns.names)
    return all(f.name in names and columns.field(f.name).type == f.type for f in wanted)
