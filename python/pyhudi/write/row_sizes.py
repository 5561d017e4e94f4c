"""What a writer has to know of a table's file groups besides their files: plans and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

import pyarrow as pa

from pyhudi.clock import is_bootstrap
from pyhudi.config.write_options import WriteOptions
from pyhudi.engine.partitioned_spill import RouteRows
from pyhudi.slices import write_tasks
from pyhudi.slices.row_selection import SelectedRows
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import WriteStat

_COMMITS_FOR_ROW_SIZE = 5
_SAMPLE_ROWS = 20_000
_SAMPLE_BYTES = 8 * 1024 * 1024
"""Of the rows in memory, however few they are."""
_PLACES = 8
"""Where the sample is taken from."""
_STRETCHES = 1024
"""So many of all rows are measured, unless they are shorter than `_MEASURED_ROWS`."""
_MEASURED_ROWS = 64
_META_BYTES = 4
"""Of the meta columns that a sample lacks, and a row's part of the bloom filter."""


class Stretch(NamedTuple):
    """Consecutive rows of about one size."""

    rows: int
    size: int
    """Their bytes."""


class CutRows(write_tasks.RowStream, Protocol):
    """Rows that can be cut."""

    def __len__(self) -> int: ...

    def slice(self, start: int, count: int) -> write_tasks.RowStream:
        """Some of the rows, in their order."""
        ...


def row_size(timeline: Timeline, options: WriteOptions) -> int:
    """Bytes of a row in a base file, by the newest commit that wrote enough, else by option.

    Enough is more than the small-file limit, times a factor, since small files are mostly footer
    (`AverageRecordSizeEstimator`, Hudi 1.2.0).
    """
    enough = options.small_file_limit * options.record_size_threshold
    for instant in reversed(timeline.commits[-_COMMITS_FOR_ROW_SIZE:]):
        if is_bootstrap(instant.requested):
            # Its files may be skeletons without the rows.
            continue
        stats = [stat for stat in timeline.commit_metadata(instant).write_stats if _is_base(stat)]
        size = sum(stat.total_write_bytes for stat in stats)
        rows = sum(stat.num_writes for stat in stats)
        if rows and size > enough:
            return max(-(-size // rows), 1)
    return options.record_size_estimate


def stretches(parts: Mapping[str, CutRows], options: WriteOptions) -> dict[str, list[Stretch]]:
    """The rows of each part in stretches, with the bytes that they come to in base files.

    What a write that makes new files alone cuts them by; Hudi's bulk insert looks at the size of
    the file that it writes. Where all rows fit into one file, their bytes in memory.
    """
    sizes = {path: _whole(rows) for path, rows in parts.items()}
    if sum(size for _, size in sizes.values()) <= options.max_file_size // 2:
        return {path: [Stretch(*size)] if size[0] else [] for path, size in sizes.items()}
    return measure(parts, options)


def measure(
    parts: Mapping[str, CutRows],
    options: WriteOptions,
    *,
    sample_bytes: int = _SAMPLE_BYTES,
    places: int = _STRETCHES,
) -> dict[str, list[Stretch]]:
    """As `stretches`, however few rows there are.

    Bytes in memory are known, or measured in many places; what Parquet makes of them is tried with
    some rows of a few places. sample_bytes: of those, in memory. places: how many are measured,
    about.
    """
    sizes = {path: _whole(rows) for path, rows in parts.items()}
    step = max(sum(rows for rows, _ in sizes.values()) // places, _MEASURED_ROWS)
    in_memory = {path: list(_in_memory(rows, step)) for path, rows in parts.items()}
    share = _share_in_file(parts, in_memory, options, sample_bytes)
    return {
        path: [Stretch(rows, int(size * share) + rows * _META_BYTES) for rows, size in found]
        for path, found in in_memory.items()
    }


def _whole(rows: CutRows) -> tuple[int, int]:
    """How many rows there are, and their bytes in memory."""
    if isinstance(rows, RouteRows):
        return len(rows), sum(size for _, size in rows.sizes())
    if isinstance(rows, SelectedRows):
        return len(rows), rows.table.nbytes * len(rows) // max(rows.table.num_rows, 1)
    return len(rows), pa.table(rows).nbytes


def _in_memory(rows: CutRows, step: int) -> Iterator[Stretch]:
    """Stretches of about so many rows, with their bytes in memory."""
    if isinstance(rows, RouteRows):
        yield from map(Stretch._make, rows.sizes())
        return
    for start in range(0, len(rows), step):
        count = min(step, len(rows) - start)
        some = pa.table(rows.slice(start, min(count, _MEASURED_ROWS)))
        yield Stretch(count, some.nbytes * count // some.num_rows)


def _share_in_file(
    parts: Mapping[str, CutRows],
    in_memory: Mapping[str, list[Stretch]],
    options: WriteOptions,
    sample_bytes: int,
) -> float:
    """Bytes in Parquet for a byte in memory, by rows of some places."""
    from pyarrow import parquet  # noqa: PLC0415 - its import takes as long as a small upsert

    total = sum(size for found in in_memory.values() for _, size in found)
    wanted = [total * (2 * place + 1) // (2 * _PLACES) for place in range(_PLACES)]
    pieces: list[pa.Table] = []
    passed = 0
    for path, found in in_memory.items():
        first = 0
        for rows, size in found:
            while wanted and wanted[0] < passed + size:
                at = first + rows * (wanted.pop(0) - passed) // size
                few = max(sample_bytes // _PLACES * rows // size, 1)
                piece = pa.table(parts[path].slice(at, min(_SAMPLE_ROWS // _PLACES, few)))
                # A copy: what came from a file is let go only as a whole.
                pieces.append(piece.take(pa.array(range(piece.num_rows), pa.int64())))
            first += rows
            passed += size
    if not pieces:
        return 1.0
    sample = pa.concat_tables(pieces)
    sink = pa.BufferOutputStream()
    codec = {"lz4_raw": "lz4", "uncompressed": "none"}.get(options.codec, options.codec)
    parquet.write_table(sample, sink, compression=codec, use_dictionary=options.dictionary)
    return float(sink.tell() / sample.nbytes)


def _is_base(stat: WriteStat) -> bool:
    return stat.log_version is None and stat.path is not None
