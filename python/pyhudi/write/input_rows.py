"""Input data as the rows of a write: whole in memory, or in chunks that spill to local files.

No files are planned here. A chunk is a fraction of the memory limit, so that data derived from it
fits in memory. A Spark DataFrame stays where it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pyarrow as pa

from pyhudi.engine.spark_loader import is_spark_frame, spark
from pyhudi.errors import ConfigError
from pyhudi.input.batches import read_batches
from pyhudi.input.conform import read_table
from pyhudi.write.memory_rows import MemoryRows, assign_deletes
from pyhudi.write.non_blocking import check_appends
from pyhudi.write.partial_update import partial_rows
from pyhudi.write.row_counters import RowCounters
from pyhudi.write.row_protocols import AssignedRows, UnassignedRows
from pyhudi.write.spilled_rows import SpilledRows
from pyhudi.write.write_context import WriteContext

LEAST_MEMORY = 1024 * 1024
_FRAME_MEMORY = 512 * 1024 * 1024
_PIECES = 16
"""A chunk is this part of the limit."""
_WHOLE = 4
"""Data up to this part of the limit is written from memory."""


def memory_limit(given: int | None, data: Any = None) -> int:
    """Return the bytes that a write may use; a quarter of the machine's memory by default.

    For a DataFrame the bytes that each task may use, 512 MiB. Raises `ConfigError` for less than a
    megabyte.
    """
    if given is None:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return _FRAME_MEMORY if is_spark_frame(data) else whole // 4
    if given < LEAST_MEMORY:
        msg = f"memory_limit is {given}; it must be at least {LEAST_MEMORY} bytes"
        raise ConfigError(msg)
    return given


@contextmanager
def read_rows(
    context: WriteContext,
    data: Any,
    limit: int,
    *,
    schema_mode: str = "strict",
    generate: bool = False,
    partial: bool = False,
) -> Iterator[UnassignedRows]:
    """The data as keyed rows, which stay readable in the block.

    Data is read to its end, or until it exceeds memory. schema_mode: as in `WriteContext.evolve`.
    generate: keys may be generated. partial: rows may have missing columns, and must fit in memory.
    Raises the errors of `WriteContext.with_keys` and `read_table`; for later chunks when they are
    read.
    """
    with ExitStack() as stack:
        if is_spark_frame(data):
            rows = spark("write_rows").read_keyed_rows(
                context, data, limit, schema_mode, generate=generate, partial=partial
            )
            yield stack.enter_context(rows)
        elif partial:
            rows = partial_rows(context, data)
            yield MemoryRows(context, rows, RowCounters(rows.num_rows))
        else:
            yield _take_rows(stack, context, data, limit, schema_mode, generate=generate)


@contextmanager
def read_delete_keys(
    context: WriteContext, keys: Any
) -> Iterator[tuple[AssignedRows, RowCounters | None]]:
    """The keys to delete, assigned to the file groups of a recovered table, and their counts."""
    if is_spark_frame(keys):
        with spark("write_rows").assign_deletes(context, keys) as placed:
            yield placed, None
        return
    table = read_table(keys, context.input_types)
    named, in_partitions = context.delete_keys(table)
    check_appends(context, "delete_keys without partition columns", appends=in_partitions)
    counters = RowCounters(table.num_rows, table.num_rows - named.num_rows)
    yield assign_deletes(context.recover(), named, in_partitions=in_partitions), counters


def _take_rows(
    stack: ExitStack,
    context: WriteContext,
    data: Any,
    limit: int,
    schema_mode: str,
    *,
    generate: bool,
) -> UnassignedRows:
    schema, batches = read_batches(data, context.input_types, uneven=True)
    context, _ = context.evolve(schema.empty_table(), schema_mode)
    keyed = (
        context.with_keys(piece, schema_mode, instant=context.key_instant() if generate else None)
        for piece in pieces(schema, batches, limit)
    )
    counters = RowCounters()
    return buffer_rows(stack, context, counters.count_pieces(keyed), limit, counters)


def buffer_rows(
    stack: ExitStack,
    context: WriteContext,
    pieces: Iterator[pa.Table],
    limit: int,
    counters: RowCounters | None = None,
) -> MemoryRows | SpilledRows:
    """Buffer keyed rows of at least one chunk, in memory if the limit allows it.

    stack: closes spilled rows.
    """
    buffered: list[pa.Table] = []
    size = 0
    for piece in pieces:
        buffered.append(piece)
        size += piece.nbytes
        if size > limit // _WHOLE:
            return SpilledRows(context, stack, drain(buffered, pieces), limit, counters=counters)
    return MemoryRows(context, pa.concat_tables(buffered), counters)


def drain(buffered: list[pa.Table], rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Chunks that were read, each released when it is yielded, and the rest."""
    while buffered:
        yield buffered.pop(0)
    yield from rest


def pieces(schema: pa.Schema, batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.Table]:
    """Batches as at least one table, each of a fraction of the limit of bytes."""
    piece_bytes = limit // _PIECES
    buffered: list[pa.RecordBatch] = []
    size, has_yielded = 0, False
    for batch in batches:
        for part in _cut(batch, piece_bytes):
            buffered.append(part)
            size += part.nbytes
            if size >= piece_bytes:
                yield pa.Table.from_batches(buffered, schema)
                buffered, size, has_yielded = [], 0, True
    if buffered or not has_yielded:
        yield pa.Table.from_batches(buffered, schema)


def _cut(batch: pa.RecordBatch, piece_bytes: int) -> Iterator[pa.RecordBatch]:
    """The batch in slices of about `piece_bytes`."""
    if batch.num_rows == 0:
        return
    rows = max(batch.num_rows * piece_bytes // max(batch.nbytes, 1), 1)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
