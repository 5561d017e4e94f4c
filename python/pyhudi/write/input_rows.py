"""Input data as the rows of a write: in memory, or in chunks that spill to local files.

A chunk is a fraction of the memory limit, so data derived from it fits in memory. The rows of a
Spark DataFrame stay in Spark. Files are planned elsewhere (`file_assignment.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial as partial_function
from typing import Any

import pyarrow as pa

from pyhudi.config.memory_size import MemorySize, parse_memory_size
from pyhudi.engine.spark_loader import is_spark_frame, spark
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.input.batches import read_batches
from pyhudi.input.conform import read_table
from pyhudi.write.memory_rows import MemoryRows, assign_deletes
from pyhudi.write.non_blocking import check_appends
from pyhudi.write.partial_update import partial_rows
from pyhudi.write.rejected_rows import RejectedRows
from pyhudi.write.row_counters import RowCounters
from pyhudi.write.row_protocols import AssignedRows, UnassignedRows
from pyhudi.write.spilled_rows import SpilledRows
from pyhudi.write.write_context import WriteContext

MIN_MEMORY = 1024 * 1024
_FRAME_MEMORY = 512 * 1024 * 1024
_CHUNKS = 16
"""A chunk is this part of the limit."""
_IN_MEMORY = 4
"""Data up to this part of the limit is written from memory."""


def memory_limit(requested: MemorySize | None, data: Any = None) -> int:
    """Return the bytes that a write may use, by default a quarter of the machine's memory.

    For a DataFrame, the bytes of each task, by default 512 MiB. Raises `ConfigError` for less than
    1 MiB, and for text that is not a size.
    """
    if requested is None:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return _FRAME_MEMORY if is_spark_frame(data) else total // 4
    size = parse_memory_size(requested)
    if size < MIN_MEMORY:
        msg = f"memory_limit is {requested}; it must be at least {MIN_MEMORY} bytes"
        raise ConfigError(msg)
    return size


@contextmanager
def read_rows(
    context: WriteContext,
    data: Any,
    limit: int,
    *,
    schema_mode: str = "strict",
    generate: bool = False,
    partial: bool = False,
    rejected: RejectedRows | None = None,
) -> Iterator[UnassignedRows]:
    """Yield the data as keyed rows, which can be read within the block.

    The data is read until its end or until it exceeds the memory limit. schema_mode: see
    `WriteContext.evolve`. generate: keys may be generated. partial: rows may have missing columns;
    they must fit in memory. rejected: gets the rows that break a rule of the table, which raise
    otherwise. Raises the errors of `WriteContext.with_keys` and `read_table`, for
    later chunks when these are read.
    """
    with ExitStack() as stack:
        if rejected is not None and (partial or is_spark_frame(data)):
            what = "a partial update" if partial else "a Spark DataFrame"
            hint = (
                "Leave partial out, and pass whole rows."
                if partial
                else "Write frame.where(condition) and its other rows separately, or pass Arrow."
            )
            msg = f"rejected: rows of {what} cannot go to another table"
            raise UnsupportedTableFeature(msg, hint=hint)
        if is_spark_frame(data):
            rows = spark("write_rows").read_keyed_rows(
                context, data, limit, schema_mode, generate=generate, partial=partial
            )
            yield stack.enter_context(rows)
        elif partial:
            rows = partial_rows(context, data)
            yield MemoryRows(context, rows, RowCounters(rows.num_rows))
        else:
            yield _rows_of_data(
                stack, context, data, limit, schema_mode, generate=generate, rejected=rejected
            )


@contextmanager
def read_delete_keys(
    context: WriteContext, keys: Any
) -> Iterator[tuple[AssignedRows, RowCounters | None]]:
    """Yield the keys to delete, assigned to file groups of the recovered table, and counters."""
    if is_spark_frame(keys):
        with spark("write_rows").assign_deletes(context, keys) as assigned:
            yield assigned, None
        return
    table = read_table(keys, context.input_types)
    keyed, in_partitions = context.delete_keys(table)
    check_appends(context, "delete_keys without partition columns", appends=in_partitions)
    counters = RowCounters(table.num_rows, table.num_rows - keyed.num_rows)
    yield assign_deletes(context.recover(), keyed, in_partitions=in_partitions), counters


def _rows_of_data(
    stack: ExitStack,
    context: WriteContext,
    data: Any,
    limit: int,
    schema_mode: str,
    *,
    generate: bool,
    rejected: RejectedRows | None,
) -> UnassignedRows:
    schema, batches = read_batches(data, context.input_types, allow_missing_keys=True)
    context, _ = context.evolve(schema.empty_table(), schema_mode)
    tables = chunks(schema, batches, limit)
    if rejected is not None:
        rejected.begin(context)
        stack.callback(rejected.close)
        split = partial_function(rejected.split, context, mode=schema_mode)
        tables = map(split, tables)
    keyed = (
        context.with_keys(chunk, schema_mode, instant=context.key_instant() if generate else None)
        for chunk in tables
    )
    counters = RowCounters()
    return buffer_rows(stack, context, counters.count_chunks(keyed), limit, counters)


def buffer_rows(
    stack: ExitStack,
    context: WriteContext,
    chunks: Iterator[pa.Table],
    limit: int,
    counters: RowCounters | None = None,
) -> MemoryRows | SpilledRows:
    """Buffer keyed rows in memory if the limit allows it, otherwise return rows that spill.

    chunks: at least one. stack: closes the spills.
    """
    buffered: list[pa.Table] = []
    size = 0
    for chunk in chunks:
        buffered.append(chunk)
        size += chunk.nbytes
        if size > limit // _IN_MEMORY:
            return SpilledRows(context, stack, drain(buffered, chunks), limit, counters=counters)
    return MemoryRows(context, pa.concat_tables(buffered), counters)


def drain(buffered: list[pa.Table], rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield buffered chunks, which releases each of them, then the rest."""
    while buffered:
        yield buffered.pop(0)
    yield from rest


def chunks(schema: pa.Schema, batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.Table]:
    """Yield batches as tables of a fraction of the limit each, at least one table."""
    chunk_bytes = limit // _CHUNKS
    buffered: list[pa.RecordBatch] = []
    size, has_yielded = 0, False
    for batch in batches:
        for part in _cut(batch, chunk_bytes):
            buffered.append(part)
            size += part.nbytes
            if size >= chunk_bytes:
                yield pa.Table.from_batches(buffered, schema)
                buffered, size, has_yielded = [], 0, True
    if buffered or not has_yielded:
        yield pa.Table.from_batches(buffered, schema)


def _cut(batch: pa.RecordBatch, chunk_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield slices of the batch, of about `chunk_bytes` each."""
    if batch.num_rows == 0:
        return
    rows = max(batch.num_rows * chunk_bytes // max(batch.nbytes, 1), 1)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
