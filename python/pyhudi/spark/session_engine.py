"""The engine for a write method with a DataFrame: one with executors.

Keys are computed, looked up and written there (`write_rows.py`). The driver plans with counts and
commits; its memory grows with partitions and files, not with rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import DataFrame

from pyhudi.clock import SystemClock
from pyhudi.engine.local import LocalEngine
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.executor_steps import job_group
from pyhudi.write.write_context import Handle, WritableTable


@contextmanager
def on_session(table: WritableTable, data: DataFrame, verb: str) -> Iterator[WritableTable]:
    """Yield the table for one write of a DataFrame.

    A table without a Spark engine gets one of the DataFrame's session for this write.
    """
    if isinstance(table.engine, LocalEngine):
        handle = Handle.of(table, SystemClock())
        table = replace(handle, engine=SparkEngine(data.sparkSession))
    with job_group(data.sparkSession, f"pyhudi {verb}: {table.storage.uri}"):
        yield table
