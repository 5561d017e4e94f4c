"""What a writing verb with a DataFrame needs besides its rows: an engine that has executors.

Keys are made, found and written there (`write_rows.py`). The driver plans with counts and commits;
what it holds grows with partitions and files, not with rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame

from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Engine
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.flow import job_group
from pyhudi.storage.storage import Storage
from pyhudi.write.write_context import WritableTable


@dataclass(frozen=True)
class _Handle:
    """A table's handle with an engine that has executors."""

    storage: Storage
    engine: Engine
    options: Mapping[str, str]


@contextmanager
def on_session(table: WritableTable, data: DataFrame, verb: str) -> Iterator[WritableTable]:
    """The table for one verb with a DataFrame as its data.

    One without a Spark engine gets one of the DataFrame's session for this write.
    """
    if isinstance(table.engine, LocalEngine):
        table = _Handle(table.storage, SparkEngine(data.sparkSession), table.options)
    with job_group(data.sparkSession, f"pyhudi {verb}: {table.storage.uri}"):
        yield table
