"""Computes the rows that replace a table, before the table is removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pyhudi.spark.executor_steps import CachedFrames, collect, map_batches, pieces

_NOTHING = pa.schema([("nothing", pa.bool_())])


@dataclass(frozen=True)
class _Look:
    look: Callable[[pa.Table], None]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        for rows in pieces(batches):
            self.look(rows)
        yield _NOTHING.empty_table()


@contextmanager
def materialize(frame: DataFrame, look: Callable[[pa.Table], None]) -> Iterator[DataFrame]:
    """Yield the same rows, cached on the executors' disks for the duration of the block.

    They may come from the table that is to be removed. look: a picklable function that gets each
    chunk of them. Raises what it and the frame raise.
    """
    with CachedFrames() as keep:
        # A plan of its own: the caller may have cached the frame in memory only, and keeps it
        # cached.
        cached = keep.keep(frame.where(sf.lit(True)))
        collect(map_batches(cached, _Look(look), _NOTHING), "look at the rows")
        yield cached
