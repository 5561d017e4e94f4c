"""Sizes for Spark: bytes to plan joins with, and how much one task reads."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from pyhudi.api.changes import Changes
from pyhudi.api.scan import Scan
from pyhudi.schema.table_schema import is_meta
from pyhudi.slices.task_packing import PackSizes, change_size, task_size
from pyhudi.spark.engine import is_connect
from pyhudi.spark.types import row_bytes


def estimate_bytes_read(rows: Scan | Changes, sizes: PackSizes) -> float:
    """Estimate the bytes of files that have the rows; for a scan, the share of its columns.

    The share follows from the widths of the types: no footer is read.
    """
    if isinstance(rows, Changes):
        # The size of a change log is not known here.
        logs = sum(len(task.change_logs) for task in rows.tasks)
        return sum(change_size(task) for task in rows.tasks) + logs * sizes.open_bytes
    read = sum(task_size(task) for task in rows.tasks)
    all_columns = pa.schema([field for field in rows.shown if not is_meta(field.name)])
    return read * min(row_bytes(rows.schema) / row_bytes(all_columns), 1.0)


def estimate_size(files: float, spark: SparkSession) -> int:
    """Estimate the size in bytes for Spark's planner, as Spark does for its own file sources.

    The size costs time (see `engine._step`), so it is at most what rules out a broadcast.
    """
    factor = float(spark.conf.get("spark.sql.sources.fileCompressionFactor", None) or 1.0)
    limits = [_bytes(spark, name) or 0 for name in _BROADCAST_LIMITS]
    return int(min(files * factor, max(_LARGE, 4 * max(limits))))


_BROADCAST_LIMITS = (
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.adaptive.autoBroadcastJoinThreshold",
)
_LARGE = 256 << 20


def pack_sizes(spark: SparkSession) -> PackSizes:
    """Return how much one task reads, by the settings of Spark's file sources."""
    settings = {
        "most_bytes": _bytes(spark, "spark.sql.files.maxPartitionBytes"),
        "open_bytes": _bytes(spark, "spark.sql.files.openCostInBytes"),
        "wanted": _parallelism(spark),
    }
    return PackSizes(**{name: value for name, value in settings.items() if value is not None})


_UNITS = {"b": 0, "": 0, "k": 10, "kb": 10, "m": 20, "mb": 20, "g": 30, "gb": 30, "t": 40, "tb": 40}


def _bytes(spark: SparkSession, name: str) -> int | None:
    setting = str(spark.conf.get(name, None) or "").strip().lower()
    number = setting.rstrip("bkmgt")
    unit = setting[len(number) :]
    return int(number) << _UNITS[unit] if number.isdecimal() and unit in _UNITS else None


def _parallelism(spark: SparkSession) -> int | None:
    """Return the number of concurrent tasks; Spark Connect only has it if it is configured."""
    for name in ("spark.sql.files.minPartitionNum", "spark.sql.leafNodeDefaultParallelism"):
        value = spark.conf.get(name, None)
        if value and value.isdecimal():
            return int(value)
    if is_connect(spark):
        return None
    return int(spark.sparkContext.defaultParallelism)
