"""Lazy rows as DataFrames: what `to_spark` of a scan, of changes and of a diff gives.

The plan and the work are those of every engine. What is Spark's own is here: tasks are packed and
split as Spark's file sources do it, and records that moved between file groups meet by a shuffle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi.api.changes import Changes, Diff, diff_rows
from pyhudi.api.outputs import Outputs
from pyhudi.api.scan import Scan
from pyhudi.errors import ConfigError, HudiError
from pyhudi.query.change_rows import change_task, diff_task
from pyhudi.query.moved_rows import paired
from pyhudi.schema.table_schema import is_meta
from pyhudi.slices.packs import Pack, PackSizes, change_size, packed, split, task_size
from pyhudi.slices.read import read_task
from pyhudi.slices.read_packs import read_pack
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.types import row_bytes, spark_schema, to_wire, wire_schema

Batches = Iterator[pa.RecordBatch]


def frame_of(rows: Outputs) -> DataFrame:
    """The rows as a DataFrame: planned now, read at each action.

    Raises `ConfigError` for rows of a table that was not opened with a `SparkEngine`.
    """
    engine = getattr(rows, "engine", None)
    if not isinstance(engine, SparkEngine):
        raise ConfigError(
            f"{type(engine).__name__} does not give DataFrames",
            hint="Open the table with engine=SparkEngine(spark).",
        )
    if isinstance(rows, Diff):
        return _diff(rows, engine)
    if not isinstance(rows, Scan | Changes):
        raise ConfigError(f"{type(rows).__name__} cannot be had as a DataFrame")
    sizes = pack_sizes(engine.spark)
    size = _reckoned(_files_read(rows, sizes), engine.spark)
    frame = engine.scan(read_pack, packs_of(rows, sizes), rows.schema, size=size)
    limit = rows.request.limit
    # Each task stops at the limit already; this one is over all of them.
    return frame if limit is None else frame.limit(limit)


def packs_of(rows: Scan | Changes, sizes: PackSizes) -> list[Pack[Any]]:
    """What there is to read, one pack a Spark task, for `read_pack`."""
    if isinstance(rows, Scan):
        return packed(read_task, split(rows.tasks, sizes), task_size, sizes)
    return packed(change_task, rows.tasks, change_size, sizes)


def _files_read(rows: Scan | Changes, sizes: PackSizes) -> float:
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


def _reckoned(files: float, spark: SparkSession) -> int:
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
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return None
    return int(spark.sparkContext.defaultParallelism)


def _diff(rows: Diff, engine: SparkEngine) -> DataFrame:
    sizes = pack_sizes(engine.spark)
    tasks = packed(diff_task, rows.tasks, change_size, sizes)
    read = sum(change_size(task) for task in rows.tasks)
    found = engine.scan(read_pack, tasks, diff_rows(rows.after), size=_reckoned(read, engine.spark))
    both = any(task.before for task in rows.tasks) and any(task.after for task in rows.tasks)
    if both:
        wire = wire_schema(diff_rows(rows.after))
        body = _pairing(wire, rows.held_bytes)
        found = found.repartition("key").mapInArrow(body, spark_schema(wire))
    return found.select(*rows.schema.names)


def _pairing(wire: pa.Schema, held_bytes: int) -> Callable[[Batches], Batches]:
    """Pairs the inserts and deletes of one key, which the shuffle brought together."""

    def body(batches: Batches) -> Batches:
        rows = (to_wire(batch, wire) for batch in batches)
        for batch in paired(pa.RecordBatchReader.from_batches(wire, rows), held_bytes):
            if batch.schema.names != wire.names:
                raise HudiError(f"pairing gave the columns {batch.schema.names}")
            yield to_wire(batch, wire)

    return body
