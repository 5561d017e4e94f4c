"""What Spark is told of sizes: bytes to plan joins with, and how much one task is to read."""

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
    """Bytes of files that hold the rows, of a scan the share of its columns.

    By the widths of their types: no footer is read for this.
    """
    if isinstance(rows, Changes):
        # How large a change log is nobody has looked up.
        logs = sum(len(task.change_logs) for task in rows.tasks)
        return sum(change_size(task) for task in rows.tasks) + logs * sizes.open_bytes
    read = sum(task_size(task) for task in rows.tasks)
    whole = pa.schema([field for field in rows.shown if not is_meta(field.name)])
    return read * min(row_bytes(rows.schema) / row_bytes(whole), 1.0)


def estimate_size(files: float, spark: SparkSession) -> int:
    """Bytes that Spark is to plan with: those of the files, as for its own file sources.

    A size costs time, so it is cut where it only says that the rows are too many to be broadcast.
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
    """How much one task is to read, by the settings of Spark's file sources."""
    given = {
        "most_bytes": _bytes(spark, "spark.sql.files.maxPartitionBytes"),
        "open_bytes": _bytes(spark, "spark.sql.files.openCostInBytes"),
        "wanted": _parallelism(spark),
    }
    return PackSizes(**{name: value for name, value in given.items() if value is not None})


_UNITS = {"b": 0, "": 0, "k": 10, "kb": 10, "m": 20, "mb": 20, "g": 30, "gb": 30, "t": 40, "tb": 40}


def _bytes(spark: SparkSession, name: str) -> int | None:
    text = str(spark.conf.get(name, None) or "").strip().lower()
    number = text.rstrip("bkmgt")
    unit = text[len(number) :]
    return int(number) << _UNITS[unit] if number.isdecimal() and unit in _UNITS else None


def _parallelism(spark: SparkSession) -> int | None:
    """Tasks that run at once; Spark Connect tells it only where it is set."""
    for name in ("spark.sql.files.minPartitionNum", "spark.sql.leafNodeDefaultParallelism"):
        found = spark.conf.get(name, None)
        if found and found.isdecimal():
            return int(found)
    if is_connect(spark):
        return None
    return int(spark.sparkContext.defaultParallelism)
