"""What a writer has to know of a table's file groups besides their files: plans and sizes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from pyhudi.clock import is_bootstrap
from pyhudi.config.write_options import WriteOptions
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import WriteStat

_COMMITS_FOR_ROW_SIZE = 5
_SAMPLE_ROWS = 20_000
_META_BYTES = 4
"""Of the meta columns that a sample lacks, and a row's part of the bloom filter."""


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


def sampled_row_size(parts: Iterable[Any], options: WriteOptions) -> int:
    """Bytes of a row in a base file, as some rows of the greatest part come out in Parquet.

    What a write that makes new files alone cuts them by; Hudi's bulk insert looks at the size of
    the file that it writes. parts: tables or spilled rows.
    """
    from pyarrow import parquet  # noqa: PLC0415 - its import takes as long as a small upsert

    largest = max(parts, key=len, default=None)
    if largest is None or not len(largest):
        return options.record_size_estimate
    sample = pa.table(largest.slice(0, _SAMPLE_ROWS))
    sink = pa.BufferOutputStream()
    codec = {"lz4_raw": "lz4", "uncompressed": "none"}.get(options.codec, options.codec)
    parquet.write_table(sample, sink, compression=codec, use_dictionary=options.dictionary)
    size: int = sink.tell()
    rows: int = sample.num_rows
    return max(size // rows + _META_BYTES, 1)


def _is_base(stat: WriteStat) -> bool:
    return stat.log_version is None and stat.path is not None
