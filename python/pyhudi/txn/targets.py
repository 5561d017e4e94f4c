"""What a writer has to know of a table's file groups besides their files: plans and sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.plan.write import FileGroup
from pyhudi.timeline.instants import CLUSTERING, COMPACTION, REPLACE_COMMIT

if TYPE_CHECKING:
    from pyhudi.timeline import Timeline
    from pyhudi.timeline.metadata import WriteStat
    from pyhudi.txn.options import WriteOptions
    from pyhudi.view.slices import FileSlice

_COMMITS_FOR_ROW_SIZE = 5
_SAMPLE_ROWS = 20_000
_META_BYTES = 4
"""Of the meta columns that a sample lacks, and a row's part of the bloom filter."""


def file_groups(
    timeline: Timeline, newest: Iterable[FileSlice], read: Sequence[FileSlice]
) -> list[FileGroup]:
    """The file groups of the slices `read`, in their order, as targets of a write.

    newest: the newest slice of each group, which a pending compaction has opened anew; `read`:
    what a snapshot reads of each.
    """
    appended_to = {(slice_.partition, slice_.file_id): slice_ for slice_ in newest}
    compactions = pending_compactions(timeline)
    clusterings = pending_clusterings(timeline)
    groups = []
    for slice_ in read:
        key = (slice_.partition, slice_.file_id)
        newest_slice = appended_to[key]
        group = FileGroup(
            newest_slice,
            compactions.get(key),
            clusterings.get(key),
            read=None if newest_slice == slice_ else slice_,
        )
        groups.append(group)
    return groups


def pending_compactions(timeline: Timeline) -> dict[tuple[str, str], str]:
    """Partition path and file id of every group that waits for a compaction, with its instant."""
    return {
        (operation["partitionPath"] or "", operation["fileId"]): instant.requested
        for instant in timeline.pending(COMPACTION)
        for operation in (timeline.plan(instant) or {}).get("operations") or ()
    }


def pending_clusterings(timeline: Timeline) -> dict[tuple[str, str], str]:
    """Partition path and file id of every group that waits for a clustering, with its instant."""
    return {
        (slice_["partitionPath"] or "", slice_["fileId"]): instant.requested
        for instant in timeline.pending(CLUSTERING, REPLACE_COMMIT)
        for group in _input_groups((timeline.plan(instant) or {}).get("clusteringPlan"))
        for slice_ in group.get("slices") or ()
    }


def _input_groups(
    plan: dict[str, list[dict[str, list[dict[str, str]]]]] | None,
) -> list[dict[str, list[dict[str, str]]]]:
    return (plan or {}).get("inputGroups") or []


def row_size(timeline: Timeline, options: WriteOptions) -> int:
    """Bytes of a row in a base file, by the newest commit that wrote enough, else by option.

    Enough is more than the small-file limit, times a factor, since small files are mostly footer
    (`AverageRecordSizeEstimator`, Hudi 1.2.0).
    """
    enough = options.small_file_limit * options.record_size_threshold
    for instant in reversed(timeline.commits[-_COMMITS_FOR_ROW_SIZE:]):
        stats = [stat for stat in timeline.commit_metadata(instant).write_stats if _is_base(stat)]
        size = sum(stat.total_write_bytes for stat in stats)
        rows = sum(stat.num_writes for stat in stats)
        if rows and size > enough:
            return max(-(-size // rows), 1)
    return options.record_size_estimate


def sampled_row_size(parts: Iterable[Any], options: WriteOptions) -> int:
    """Bytes of a row in a base file, as some rows of the greatest part come out in Parquet.

    What a write that makes new files alone cuts them by; Hudi's bulk insert looks at the size of
    the file that it writes. parts: tables or rows on a shelf.
    """
    from pyarrow import parquet  # noqa: PLC0415 - its import takes as long as a small upsert

    largest = max(parts, key=len, default=None)
    if largest is None or not len(largest):
        return options.record_size_estimate
    sample = pa.table(largest.slice(0, _SAMPLE_ROWS))
    sink = pa.BufferOutputStream()
    codec = "lz4" if options.codec == "lz4_raw" else options.codec
    parquet.write_table(sample, sink, compression="none" if codec == "uncompressed" else codec)
    size: int = sink.tell()
    rows: int = sample.num_rows
    return max(size // rows + _META_BYTES, 1)


def _is_base(stat: WriteStat) -> bool:
    return stat.log_version is None and stat.path is not None
