"""The simple index: finds keys by reading the keys of every file in their partitions.

It stores nothing. For each file slice of a partition with incoming rows, one task reads the slice's
keys and returns which of these rows it has. With bloom filters, it reads a base file only if the
file may contain one of the keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.index_options import UPDATE_PATH_SIMPLE
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine.protocol import Attempt, Engine
from pyhudi.index.key_reader import KeySource
from pyhudi.index.protocol import Index, IndexedTable, KeyFilter, TagResult
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.tagged_rows import Tagged, flat, group_values, row_numbers
from pyhudi.slices.task_packing import engine_for_slices


class SimpleIndex(Index):
    """Looks up keys in files of the row's own partition."""

    index_type = "SIMPLE"
    supports_virtual_keys = True

    def find(self, table: IndexedTable, keys: pa.Table, *, any_partition: bool) -> TagResult:
        return tag_from_files(table, keys, any_partition=any_partition)


class GlobalSimpleIndex(SimpleIndex):
    """Looks up keys in all files."""

    index_type = "GLOBAL_SIMPLE"
    is_global = True
    supports_virtual_keys = False
    update_path_option = UPDATE_PATH_SIMPLE


def tag_from_files(table: IndexedTable, keys: pa.Table, *, any_partition: bool) -> TagResult:
    """Return every location of the keys, by reading the keys of files."""
    partitions = None if any_partition else keys.column(PARTITION_PATH).unique().to_pylist()
    groups, slices = table.groups(partitions)
    filters = table.index.filters(table)
    tagged = tag(
        table.engine,
        table.key_source,
        keys,
        slices,
        any_partition=any_partition,
        filters=filters,
    )
    return TagResult(tagged, groups)


@dataclass(frozen=True)
class TagTask:
    """Check which keys one slice has."""

    source: KeySource
    slice: FileSlice
    group: int
    """Number of the slice's file group."""
    rows: pa.Array[Any]
    """Numbers of the incoming rows that the slice may have."""
    keys: pa.Array[Any]
    """Their record keys."""
    filters: KeyFilter | None = None
    """Checks first whether the base file may contain any of the keys; None to read it."""


def tag(
    engine: Engine,
    source: KeySource,
    keys: pa.Table,
    slices: Sequence[FileSlice],
    *,
    any_partition: bool = False,
    filters: KeyFilter | None = None,
) -> Tagged:
    """Return the locations of the incoming rows.

    keys: columns record key and, unless `any_partition`, partition path. slices: one for each file
    group; their positions are the group numbers in the result. filters: as in `TagTask`.
    """
    tasks = list(_tasks(source, keys, slices, any_partition=any_partition, filters=filters))
    engine = engine_for_slices(engine, source.storage, (task.slice for task in tasks))
    results = engine.run(find_keys, tasks, label="find record keys")
    rows, groups, base_rows = (
        flat(pa.chunked_array([parts[at] for parts in results], type=pa.int64())) for at in range(3)
    )
    return Tagged(rows, groups, base_rows=base_rows if source.positions else None)


def _tasks(
    source: KeySource,
    keys: pa.Table,
    slices: Sequence[FileSlice],
    *,
    any_partition: bool,
    filters: KeyFilter | None,
) -> Iterator[TagTask]:
    record_keys = flat(keys.column(RECORD_KEY))
    numbers = row_numbers(len(record_keys))
    if any_partition:
        rows_by_partition = {slice_.partition: numbers for slice_ in slices} if len(numbers) else {}
    else:
        rows_by_partition = dict(group_values(flat(keys.column(PARTITION_PATH)), numbers))
    for group, slice_ in enumerate(slices):
        rows = rows_by_partition.get(slice_.partition)
        if rows is not None:
            yield TagTask(source, slice_, group, rows, record_keys.take(rows), filters)


def find_keys(
    task: TagTask, _attempt: Attempt
) -> tuple[pa.Array[Any], pa.Array[Any], pa.Array[Any]]:
    """Return the task's rows whose keys the slice has, with group number and base row."""
    tagger = _native.KeyTagger(task.keys)
    slice_ = task.slice
    with_base = slice_.base is not None
    if task.filters is not None and with_base:
        with_base = task.filters.may_contain(slice_, task.keys)
    if with_base and task.source.positions:
        tagger.probe_rows(task.source.keys_of(replace(slice_, logs=())))
        with_base = False
    if with_base or slice_.logs:
        tagger.probe(task.source.keys_of(slice_, with_base=with_base), 0)
    positions = tagger.positions()
    hit = pc.or_(pc.is_valid(tagger.locations()), pc.is_valid(positions))
    rows = task.rows.filter(hit)
    return rows, pa.repeat(pa.scalar(task.group, pa.int64()), len(rows)), positions.filter(hit)
