"""Grouping of rows by the value of their route column, without a loop over rows.

Shared by the engines' `exchange`. The source of the rows and the work are not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.engine.spill import PartitionedSpill, runs

_SPILL = 2
"""A spill has several copies of its rows in memory while it writes them."""

GroupRows = Callable[[], pa.Table]
"""Returns the rows of one route value."""


def group_by_route(
    stack: ExitStack, rows: Any, route: str, in_memory: int
) -> list[tuple[str, GroupRows]]:
    """Return each route value, in ascending order, with its rows, which keep their order.

    rows: any object with the Arrow PyCapsule interface. Beyond `in_memory` bytes they spill to
    local files that `stack` removes. Raises as `groups` does.
    """
    own = isinstance(rows, pa.RecordBatchReader)
    # Through a C stream errors would lose their type.
    reader = rows if own else pa.RecordBatchReader.from_stream(rows)
    buffered: list[pa.RecordBatch] = []
    size = 0
    for batch in reader:
        buffered.append(batch)
        size += batch.nbytes
        if size > in_memory:
            break
    else:
        # One chunk, so that taking a group's rows does not scan all chunks for each group.
        table = pa.Table.from_batches(buffered, reader.schema).combine_chunks()
        return [(value, partial(table.take, indices)) for value, indices in groups(table, route)]
    spill: PartitionedSpill[str] = stack.enter_context(PartitionedSpill(in_memory // _SPILL))
    while buffered:
        _put(spill, buffered.pop(0), route)
    for batch in reader:
        _put(spill, batch, route)
    return [(value, part.to_table) for value, part in spill.routes().items()]


def _put(spill: PartitionedSpill[str], batch: pa.RecordBatch, route: str) -> None:
    spill.add(_route_values(batch, route), pa.Table.from_batches([batch]))


def groups(rows: pa.Table, route: str) -> list[tuple[str, pa.Array]]:
    """Return each route value, in ascending order, with the indices of its rows.

    Raises:
        TypeError: the route column does not hold strings.
        ValueError: it holds a null.
    """
    values = _route_values(rows, route)
    order = pc.sort_indices(values)
    ordered = pc.take(values, order)
    return [(value, order.slice(start, stop - start)) for value, start, stop in runs(ordered)]


def cut(batches: Iterable[pa.RecordBatch], route: str) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of each route value, from batches sorted by it; one value is in memory.

    Raises:
        TypeError: the route column does not hold strings.
        ValueError: it holds a null.
    """
    current: str | None = None
    buffered: list[pa.RecordBatch] = []
    for batch in batches:
        for value, start, stop in runs(_route_values(batch, route)):
            if current is not None and value != current:
                yield current, pa.Table.from_batches(buffered)
                buffered = []
            current = value
            buffered.append(batch.slice(start, stop - start))
    if current is not None:
        yield current, pa.Table.from_batches(buffered)


def _route_values(rows: pa.Table | pa.RecordBatch, route: str) -> pa.Array:
    column = rows.column(route)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise TypeError(f"the route column {route!r} holds {column.type}, not strings")
    if column.null_count:
        raise ValueError(f"the route column {route!r} holds nulls")
    if isinstance(column, pa.ChunkedArray):
        # 64-bit offsets: the values of a large table can pass 2 GiB together.
        return column.cast(pa.large_string()).combine_chunks()
    return column
