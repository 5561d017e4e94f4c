"""The rows of a table that takes another one's place, worked out before that one goes."""

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
    """The same rows, which stay on the executors' disks in the block.

    They may come from the very table that is to go. look: what each piece of them is given to;
    picklable. Raises what it and the frame raise.
    """
    with CachedFrames() as keep:
        # Of a plan of its own: the caller may have cached the frame, in memory alone, and keeps it.
        kept = keep.keep(frame.where(sf.lit(True)))
        collect(map_batches(kept, _Look(look), _NOTHING), "look at the rows")
        yield kept
