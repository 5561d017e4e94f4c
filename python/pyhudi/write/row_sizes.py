"""Measured and estimated sizes of rows, for the planning of files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

import pyarrow as pa

from pyhudi.clock import is_bootstrap
from pyhudi.config.write_options import WriteOptions
from pyhudi.engine.spill import RouteRows
from pyhudi.slices import write_tasks
from pyhudi.slices.row_selection import SelectedRows
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import WriteStat

_COMMITS_FOR_ROW_SIZE = 5
_SAMPLE_ROWS = 20_000
_SAMPLE_BYTES = 8 * 1024 * 1024
"""Limit of a sample in memory, independent of the number of rows."""
_SAMPLE_OFFSETS = 8
"""Number of offsets at which rows are sampled."""
_MEASURED_RANGES = 256
"""Number of measured ranges, unless these would be shorter than `_MEASURED_ROWS`."""
_MEASURED_ROWS = 64
_META_BYTES = 4
"""Bytes of a row in the meta columns, which are not sampled, and in the bloom filter."""


class RowRange(NamedTuple):
    """Consecutive rows of similar size."""

    rows: int
    size: int
    """Their bytes."""


class SliceableRows(write_tasks.RowStream, Protocol):
    """Rows that can be sliced."""

    def __len__(self) -> int: ...

    def slice(self, start: int, count: int) -> write_tasks.RowStream:
        """Return a range of the rows, in their order."""


def row_size(timeline: Timeline, options: WriteOptions) -> int:
    """Return a row's bytes in a base file: from the newest large commit, otherwise from the option.

    A commit is large if its files exceed the small-file limit times a factor. Small files are
    mostly footer (`AverageRecordSizeEstimator`, Hudi 1.2.0).
    """
    min_bytes = options.small_file_limit * options.record_size_threshold
    for instant in reversed(timeline.commits[-_COMMITS_FOR_ROW_SIZE:]):
        if is_bootstrap(instant.requested):
            # Its files may be skeletons without the rows.
            continue
        stats = [stat for stat in timeline.commit_metadata(instant).write_stats if _is_base(stat)]
        size = sum(stat.total_write_bytes for stat in stats)
        rows = sum(stat.num_writes for stat in stats)
        if rows and size > min_bytes:
            return max(-(-size // rows), 1)
    return options.record_size_estimate


def row_ranges(
    parts: Mapping[str, SliceableRows], options: WriteOptions
) -> dict[str, list[RowRange]]:
    """Return the rows of each part as ranges, with their estimated bytes in base files.

    A write of new files only is split by these sizes; Hudi's bulk insert checks the file's size
    while it writes. If all rows fit into one file, the size is that in memory.
    """
    sizes = {path: _total_size(rows) for path, rows in parts.items()}
    if sum(size for _, size in sizes.values()) <= options.max_file_size // 2:
        return {path: [RowRange(*size)] if size[0] else [] for path, size in sizes.items()}
    return measure(parts, options)


def measure(
    parts: Mapping[str, SliceableRows],
    options: WriteOptions,
    *,
    sample_bytes: int = _SAMPLE_BYTES,
    max_ranges: int = _MEASURED_RANGES,
) -> dict[str, list[RowRange]]:
    """Return `row_ranges` for any number of rows.

    Bytes in memory are known or measured in many ranges; the Parquet size is measured with a sample
    from a few offsets. sample_bytes: the sample's size in memory. max_ranges: the approximate
    number of ranges.
    """
    sizes = {path: _total_size(rows) for path, rows in parts.items()}
    step = max(sum(rows for rows, _ in sizes.values()) // max_ranges, _MEASURED_ROWS)
    in_memory = {path: list(_sizes_in_memory(rows, step)) for path, rows in parts.items()}
    share = _share_in_file(parts, in_memory, options, sample_bytes)
    return {
        path: [RowRange(rows, int(size * share) + rows * _META_BYTES) for rows, size in ranges]
        for path, ranges in in_memory.items()
    }


def _total_size(rows: SliceableRows) -> tuple[int, int]:
    """Return the number of rows and their bytes in memory."""
    if isinstance(rows, RouteRows):
        return len(rows), sum(size for _, size in rows.sizes())
    if isinstance(rows, SelectedRows):
        return len(rows), rows.table.nbytes * len(rows) // max(rows.table.num_rows, 1)
    return len(rows), pa.table(rows).nbytes


def _sizes_in_memory(rows: SliceableRows, step: int) -> Iterator[RowRange]:
    """Yield ranges of about `step` rows, with their bytes in memory."""
    if isinstance(rows, RouteRows):
        yield from map(RowRange._make, rows.sizes())
        return
    for start in range(0, len(rows), step):
        count = min(step, len(rows) - start)
        sample = pa.table(rows.slice(start, min(count, _MEASURED_ROWS)))
        yield RowRange(count, sample.nbytes * count // sample.num_rows)


def _share_in_file(
    parts: Mapping[str, SliceableRows],
    in_memory: Mapping[str, list[RowRange]],
    options: WriteOptions,
    sample_bytes: int,
) -> float:
    """Return the Parquet bytes per byte in memory, from a sample of rows."""
    from pyarrow import parquet  # noqa: PLC0415 - its import takes as long as a small upsert

    total = sum(size for ranges in in_memory.values() for _, size in ranges)
    offsets = [
        total * (2 * number + 1) // (2 * _SAMPLE_OFFSETS) for number in range(_SAMPLE_OFFSETS)
    ]
    chunks: list[pa.Table] = []
    bytes_before = 0
    for path, ranges in in_memory.items():
        first = 0
        for rows, size in ranges:
            while offsets and offsets[0] < bytes_before + size:
                start = first + rows * (offsets.pop(0) - bytes_before) // size
                sample_rows = max(sample_bytes // _SAMPLE_OFFSETS * rows // size, 1)
                chunk = pa.table(
                    parts[path].slice(start, min(_SAMPLE_ROWS // _SAMPLE_OFFSETS, sample_rows))
                )
                # A copy: data from a file is freed only as a whole.
                chunks.append(chunk.take(pa.array(range(chunk.num_rows), pa.int64())))
            first += rows
            bytes_before += size
    if not chunks:
        return 1.0
    sample = pa.concat_tables(chunks)
    sink = pa.BufferOutputStream()
    codec = {"lz4_raw": "lz4", "uncompressed": "none"}.get(options.codec, options.codec)
    parquet.write_table(sample, sink, compression=codec, use_dictionary=options.dictionary)
    return float(sink.tell() / sample.nbytes)


def _is_base(stat: WriteStat) -> bool:
    return stat.log_version is None and stat.path is not None
