"""Small DataFrames are fetched by one query and written by the driver.

A cluster takes several jobs to write a DataFrame: to make keys, to count rows by file, to write.
For few rows, starting these jobs takes longer than the work. `fetch_if_small` returns such rows
as Arrow data, which is written like that of a local program; calls of the engine that open large
files still run on the cluster (`choose_engine`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from pyhudi.engine.protocol import Engine
from pyhudi.spark.executor_steps import arrow_schema, collect, map_batches
from pyhudi.spark.job_watch import is_connect
from pyhudi.spark.key_steps import Batches
from pyhudi.spark.types import wire_schema

MAX_ROWS = 10_000
"""Rows of a small DataFrame."""
_MAX_BYTES = 16 * 1024 * 1024
_ROWS = pa.schema([("rows", pa.binary())])
_SIZE = re.compile(r"Statistics\(sizeInBytes=([\d.E+]+) (\w+)")
_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}
_UNKNOWN = 2**60
"""Spark's estimate for rows of Python objects, RDDs and streams: 8 EiB."""


def fetch_if_small(engine: Engine, frame: DataFrame) -> pa.Table | None:
    """Return the rows of a small DataFrame as a step on executors gets them, otherwise None.

    Spark runs one query at most, of one or two jobs; it stops early if there are more rows.
    """
    size = engine.small_call_bytes
    return _fetch(engine, frame, size) if size and _may_be_small(frame, size) else None


def fetch(engine: Engine, frame: DataFrame) -> pa.Table | None:
    """Return the rows as `fetch_if_small` does, for a frame that is computed anyway."""
    size = engine.small_call_bytes
    return _fetch(engine, frame, size) if size else None


def _fetch(engine: Engine, frame: DataFrame, size: int) -> pa.Table | None:
    gather = _Gather(min(_MAX_BYTES, size))
    gathered = collect(
        map_batches(frame.limit(MAX_ROWS + 1), gather, _ROWS), "read the rows", engine
    )
    if any(part is None for (part,) in gathered):
        return None
    # There is one task, unless Spark removed the limit of few rows in several partitions.
    parts = [pa.ipc.open_stream(part).read_all() for (part,) in gathered]
    rows = pa.concat_tables(parts or [wire_schema(arrow_schema(frame)).empty_table()])
    return rows if rows.num_rows <= MAX_ROWS else None


def _may_be_small(frame: DataFrame, size: int) -> bool:
    """Return whether to look for the end of the rows, by Spark's plan.

    That is cheap if no rows have to be shuffled before the first comes out: each task stops after
    as many rows as a small DataFrame has.
    """
    plan = _explain(frame)
    match = _SIZE.search(plan)
    estimate = _UNKNOWN if match is None else float(match[1]) * _UNITS.get(match[2], _UNKNOWN)
    if estimate <= size:
        return True
    is_narrow = "Exchange" not in plan
    return is_narrow and (estimate >= _UNKNOWN or "Filter" in plan)


def _explain(frame: Any) -> str:
    """Return what `frame.explain(mode="cost")` prints."""
    if is_connect(frame):
        return str(frame._explain_string(mode="cost"))  # noqa: SLF001
    utils = frame.sparkSession._jvm.PythonSQLUtils  # noqa: SLF001
    return str(utils.explainString(frame._jdf.queryExecution(), "cost"))  # noqa: SLF001


@dataclass(frozen=True)
class _Gather:
    """Returns all rows of its one task in one value; null if they are too many."""

    max_bytes: int

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        rows: list[pa.RecordBatch] = []
        count = size = 0
        for batch in batches:
            rows.append(batch)
            count, size = count + batch.num_rows, size + batch.nbytes
            if count > MAX_ROWS or size > self.max_bytes:
                yield pa.table({"rows": pa.nulls(1, pa.binary())}, schema=_ROWS)
                return
        if rows:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, rows[0].schema) as writer:
                for batch in rows:
                    writer.write_batch(batch)
            yield pa.table({"rows": [sink.getvalue().to_pybytes()]}, schema=_ROWS)
