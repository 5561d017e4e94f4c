"""The keys in files, as rows of Spark to join incoming rows with, for indexes that read files.

One task reads each slice, and skips most keys that no incoming row has. Bloom indexes exclude
slices that certainly have none of the keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pyhudi import _native
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine.protocol import Engine
from pyhudi.index.key_reader import KeySource
from pyhudi.index.protocol import Index, KeyFilter
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.tagged_rows import group_values, row_numbers
from pyhudi.slices.write_tasks import BASE_ROW
from pyhudi.spark.executor_steps import chunks, collect, map_batches
from pyhudi.spark.internal_columns import DESTINATION, GROUP

_KEY = "_pyhudi_key"
_PARTS = 1 << 23
"""Number of hash parts of all keys: a MiB with one bit each. If a million keys are looked up, one
other key in ten passes, too."""
_TASKS = 16
"""Maximum number of tasks, each of which sends that MiB to the driver."""
_BITS = pa.schema([("bits", pa.binary())])
_KEYS = pa.schema(
    [(_KEY, pa.string()), (DESTINATION, pa.string()), (GROUP, pa.string()), (BASE_ROW, pa.int64())]
)


@dataclass(frozen=True)
class KeysTask:
    """Reads the keys of one slice."""

    source: KeySource
    slice: FileSlice
    group: str
    """Identity of its file group (`Index.identity`)."""
    with_base: bool = True
    """Whether keys of its base file are read, too."""
    requested: pa.BooleanArray | None = None
    """For each part of all keys, whether such keys are looked up; None: all are."""


def read_stored_keys(task: KeysTask) -> Iterator[pa.RecordBatch]:
    """Yield the requested keys of the slice once, with their rows in the base file if useful."""
    source, slice_ = task.source, task.slice
    keys, rows = [pa.array([], pa.string())], [pa.array([], pa.int64())]
    if task.with_base and slice_.base is not None:
        first = 0
        for batch in source.keys_of(replace(slice_, logs=())):
            numbers = pc.add(row_numbers(batch.num_rows), first)
            first += batch.num_rows
            of_base, numbers = _only_requested(task, batch.column(0), numbers)
            keys.append(of_base)
            rows.append(numbers)
    if slice_.logs:
        for batch in source.keys_of(slice_, with_base=False):
            of_logs, none = _only_requested(
                task, batch.column(0), pa.nulls(batch.num_rows, pa.int64())
            )
            keys.append(of_logs)
            rows.append(none)
    unique_keys = pa.table({_KEY: pa.chunked_array(keys), BASE_ROW: pa.chunked_array(rows)})
    unique_keys = unique_keys.group_by(_KEY, use_threads=False).aggregate([(BASE_ROW, "max")])
    count = unique_keys.num_rows
    at = unique_keys.column(f"{BASE_ROW}_max") if source.positions else pa.nulls(count, pa.int64())
    destination, group = (pa.repeat(pa.scalar(t), count) for t in (slice_.partition, task.group))
    yield from pa.Table.from_arrays(
        [unique_keys.column(_KEY), destination, group, at], schema=_KEYS
    ).to_batches(max_chunksize=64 * 1024)


def _only_requested(
    task: KeysTask, keys: pa.Array[Any], rows: pa.Array[Any]
) -> tuple[pa.Array[Any], pa.Array[Any]]:
    if task.requested is None:
        return keys, rows
    keep = task.requested.take(_native.key_parts(keys, len(task.requested)))
    return keys.filter(keep), rows.filter(keep)


@dataclass(frozen=True)
class PartsWithKeys:
    """Finds the parts of the keys of one Spark task."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield one row with a bit for each part; none without keys."""
        bits = None
        for rows in chunks(batches):
            chunk_bits = _native.parts_with_keys(rows.column(RECORD_KEY).combine_chunks(), _PARTS)
            bits = chunk_bits if bits is None else pc.or_(bits, chunk_bits)
        if bits is not None:
            yield pa.table({"bits": [bits.buffers()[1].to_pybytes()]}, schema=_BITS)


def _find_requested_parts(engine: Engine, rows: DataFrame) -> pa.BooleanArray:
    """Return for each of `_PARTS` parts of all keys whether the rows have a key of it."""
    step = map_batches(rows.select(RECORD_KEY).coalesce(_TASKS), PartsWithKeys(), _BITS)
    requested = pa.repeat(pa.scalar(value=False), _PARTS)
    for row in collect(step, "collect key hashes", engine):
        bits = pa.py_buffer(bytes(row[0]))
        requested = pc.or_(
            requested, pa.BooleanArray.from_buffers(pa.bool_(), _PARTS, [None, bits])
        )
    return requested


def join_stored_keys(
    engine: Engine,
    rows: DataFrame,
    source: KeySource,
    slices: list[FileSlice],
    *,
    index: Index,
    any_partition: bool,
    filters: KeyFilter | None,
) -> DataFrame:
    """Return the rows with `DESTINATION`, `GROUP` and `BASE_ROW` of each file group with their key.

    A row whose key is in no file group comes once, with nulls in these columns.

    any_partition: look up keys in all slices (else: in those of the row's partition). filters: as
    in `simple.TagTask`.
    """
    requested = _find_requested_parts(engine, rows) if slices else None
    tasks = [
        KeysTask(source, slice_, index.identity(slice_.file_id), requested=requested)
        for slice_ in slices
    ]
    if filters is not None:
        hits = _candidates(engine, rows, filters, slices, any_partition=any_partition)
        tasks = [replace(task, with_base=n in hits) for n, task in enumerate(tasks)]
        tasks = [task for task in tasks if task.with_base or task.slice.logs]
    keys = engine.scan(read_stored_keys, tasks, _KEYS, label="find record keys")
    same = sf.col(RECORD_KEY) == sf.col(_KEY)
    if not any_partition:
        same &= sf.col(PARTITION_PATH) == sf.col(DESTINATION)
    # Spark estimates few keys, and would broadcast them all through the driver.
    joined_rows: DataFrame = rows.join(keys.hint("merge"), same, "left").drop(_KEY)
    return joined_rows


@dataclass(frozen=True)
class FindSlices:
    """Finds the slices whose base files may have some of the rows' keys."""

    filters: KeyFilter
    slices: tuple[FileSlice, ...]
    any_partition: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield numbers of the slices."""
        remaining = dict(enumerate(self.slices))
        for rows in chunks(batches):
            keys = rows.column(RECORD_KEY).combine_chunks()
            paths = rows.column(PARTITION_PATH).combine_chunks()
            of_path = {} if self.any_partition else dict(group_values(paths, keys))
            hits = [
                number
                for number, slice_ in remaining.items()
                if self._may_have_keys(slice_, keys if self.any_partition else of_path)
            ]
            remaining = {
                number: slice_ for number, slice_ in remaining.items() if number not in hits
            }
            yield pa.table({"slice": pa.array(hits, pa.int64())})

    def _may_have_keys(self, slice_: FileSlice, keys: Any) -> bool:
        requested = keys.get(slice_.partition) if isinstance(keys, dict) else keys
        return requested is not None and self.filters.may_contain(slice_, requested)


def _candidates(
    engine: Engine,
    rows: DataFrame,
    filters: KeyFilter,
    slices: list[FileSlice],
    *,
    any_partition: bool,
) -> set[int]:
    step = FindSlices(filters, tuple(slices), any_partition)
    keys = rows.select(RECORD_KEY, PARTITION_PATH)
    matches = map_batches(keys, step, pa.schema([("slice", pa.int64())])).distinct()
    return {row[0] for row in collect(matches, "check bloom filters", engine)}
