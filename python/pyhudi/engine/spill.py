"""Spilled batches: in memory up to a limit, then in local files. Not a table's files.

Rows that do not fit in memory pass through a `PartitionedSpill` on their way to the files of a
table: they arrive in any order of routes, and are returned one route at a time. Rows of one route
keep their order, unless the spill sorts them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.engine.memory_pool import release_free_memory
from pyhudi.errors import HudiError, StorageError


@contextmanager
def local_files() -> Iterator[None]:
    """Turn a failure of local files, such as a full disk, into a `StorageError`."""
    try:
        yield
    except OSError as error:
        if isinstance(error, HudiError):
            raise
        msg = f"local files failed: {error}"
        raise StorageError(msg, hint="Set TMPDIR to another directory.") from error


IN_MEMORY = 64 * 1024 * 1024
"""Bytes that a spill buffers before it writes to disk."""


class Spill:
    """Batches of one schema, to be read repeatedly once all were added.

    The file, if there is one, has no name and is deleted with the spill.
    """

    def __init__(self, schema: pa.Schema, in_memory: int = IN_MEMORY) -> None:
        self.schema = schema
        self.size = 0
        """Bytes of all batches in memory."""
        self._limit = in_memory
        self._buffered: list[pa.RecordBatch] = []
        self._buffered_bytes = 0
        self._file: IO[bytes] | None = None
        self._writer: pa.RecordBatchStreamWriter | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        self._buffered.append(batch)
        self._buffered_bytes += batch.nbytes
        self.size += batch.nbytes
        if self._buffered_bytes > self._limit:
            with local_files():
                self._write()

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield all batches in their order; one reader at a time, and after the last `add`."""
        if self._file is not None:
            with local_files():
                if self._writer is not None:
                    self._writer.close()
                    self._writer = None
                self._file.seek(0)
                stored = pa.ipc.open_stream(self._file)
            yield from stored
        yield from self._buffered

    def close(self) -> None:
        """Release the buffer and the file."""
        self._buffered = []
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self) -> None:
        if self._writer is None:
            self._file = tempfile.TemporaryFile(prefix="pyhudi-")  # noqa: SIM115 - closed by close
            self._writer = pa.ipc.new_stream(self._file, self.schema)
        for batch in self._buffered:
            self._writer.write_batch(batch)
        self._buffered = []
        self._buffered_bytes = 0


Route = TypeVar("Route", str, int)

_BATCH_ROWS = 16 * 1024
_LONG_RUN = 64
"""Average run length from which rows are written unsorted."""
_ROUTE = "__route"
"""Name of the route column while rows are sorted; no column of a table may have it."""


@dataclass(frozen=True)
class _Segment:
    """Some rows of one batch of a file."""

    path: str
    batch: int
    start: int
    rows: int
    size: int
    """Bytes in memory."""


@dataclass(frozen=True)
class RouteRows:
    """Rows of a route: an Arrow stream that can be read repeatedly while the spill is open.

    It pickles as the rows themselves, since another machine does not have the files.
    """

    schema: pa.Schema
    segments: tuple[_Segment, ...]

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return sum(segment.rows for segment in self.segments)

    def __len__(self) -> int:
        return self.num_rows

    def slice(self, start: int, count: int | None = None) -> RouteRows:
        """Return a range of the rows, in their order."""
        stop = self.num_rows if count is None else start + count
        selected, first = [], 0
        for segment in self.segments:
            low, high = max(start - first, 0), min(stop - first, segment.rows)
            if low < high:
                size = segment.size * (high - low) // segment.rows
                selected.append(
                    _Segment(segment.path, segment.batch, segment.start + low, high - low, size)
                )
            first += segment.rows
        return RouteRows(self.schema, tuple(selected))

    def __add__(self, other: RouteRows) -> RouteRows:
        return RouteRows(self.schema, self.segments + other.segments)

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Return numbers of rows in their order, each with their bytes in memory."""
        return ((segment.rows, segment.size) for segment in self.segments)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, one batch in memory at a time."""
        path, reader = None, None
        for segment in self.segments:
            with local_files():
                if reader is None or segment.path != path:
                    path, reader = segment.path, pa.ipc.open_file(pa.OSFile(segment.path))
                batch = reader.get_batch(segment.batch)
            yield batch.slice(segment.start, segment.rows)

    def to_table(self) -> pa.Table:
        """Return all of the rows in memory."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return _same, (self.to_table(),)


def _same(rows: pa.Table) -> pa.Table:
    return rows


class PartitionedSpill(Generic[Route]):
    """Takes rows with their routes, and returns them by route once all are added."""

    def __init__(self, in_memory: int, order: Sequence[str] = ()) -> None:
        """`in_memory`: bytes to buffer before they are written to a file.

        order: columns by which the rows of one route in one file are sorted.
        """
        self._limit = in_memory
        self._order = [(name, "ascending") for name in order]
        with local_files():
            self._folder = tempfile.TemporaryDirectory(prefix="pyhudi-")
        self._buffered: list[pa.Table] = []
        self._buffered_bytes = 0
        self._files = 0
        self._segments: dict[Route, list[_Segment]] = {}
        self._schema: pa.Schema | None = None

    def add(self, routes: pa.Array[Any], rows: pa.Table) -> None:
        """Add rows; `routes` has one string or number for each."""
        self._schema = rows.schema
        if not rows.num_rows:
            return
        self._buffered.append(rows.append_column(_ROUTE, routes))
        self._buffered_bytes += rows.nbytes
        if self._buffered_bytes > self._limit:
            self._write()

    def routes(self) -> dict[Route, RouteRows]:
        """Return the rows of every route, in ascending order of routes."""
        if self._buffered:
            self._write()
        schema = self._schema
        if schema is None:
            return {}
        return {
            route: RouteRows(schema, tuple(self._segments[route]))
            for route in sorted(self._segments)
        }

    def close(self) -> None:
        """Remove the files."""
        self._buffered = []
        self._folder.cleanup()

    def __enter__(self) -> PartitionedSpill[Route]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self) -> None:
        buffered, self._buffered, self._buffered_bytes = self._buffered, [], 0
        path = str(Path(self._folder.name) / f"{self._files}.arrow")
        self._files += 1
        numbers = count()
        with (
            local_files(),
            pa.OSFile(path, "wb") as file,
            pa.ipc.new_file(file, self._schema) as writer,
        ):
            for route, part in self._parts(buffered):
                writer.write_batch(part)
                segment = _Segment(path, next(numbers), 0, part.num_rows, part.nbytes)
                self._segments.setdefault(route, []).append(segment)
        buffered.clear()
        release_free_memory()

    def _parts(self, buffered: list[pa.Table]) -> Iterator[tuple[Route, pa.RecordBatch]]:
        """Yield the rows in parts of one route each."""
        if not self._order and all(map(_has_long_runs, buffered)):
            for rows in buffered:
                (batch,) = rows.combine_chunks().to_batches()
                without_route = batch.drop_columns([_ROUTE])
                for route, start, size in _cuts(batch.column(_ROUTE)):
                    yield route, without_route.slice(start, size)
            return
        # One chunk, because taking rows from many chunks scans all of them for each part.
        rows = pa.concat_tables(buffered).combine_chunks()
        order = pc.sort_indices(rows, sort_keys=[(_ROUTE, "ascending"), *self._order])
        unsorted = rows.drop_columns([_ROUTE])
        for route, start, size in _cuts(rows.column(_ROUTE).combine_chunks().take(order)):
            part = unsorted.take(order.slice(start, size))
            yield route, part.combine_chunks().to_batches()[0]


def _has_long_runs(rows: pa.Table) -> bool:
    """Return whether rows of one route are consecutive, so that no sort is needed."""
    routes = rows.column(_ROUTE).combine_chunks()
    return len(routes) >= _LONG_RUN * len(pc.run_end_encode(routes).values)


def runs(values: pa.Array[Any]) -> Iterator[tuple[Any, int, int]]:
    """Yield runs of equal neighbors: value, first index, index after the last."""
    if len(values) == 0:
        return
    encoded = pc.run_end_encode(values)
    start = 0
    for value, stop in zip(encoded.values.to_pylist(), encoded.run_ends.to_pylist(), strict=True):
        yield value, start, stop
        start = stop


def _cuts(routes: pa.Array[Any]) -> Iterator[tuple[Any, int, int]]:
    """Yield runs of equal routes in chunks: route, first row, number of rows."""
    for route, start, stop in runs(routes):
        for first in range(start, stop, _BATCH_ROWS):
            yield route, first, min(_BATCH_ROWS, stop - first)
