"""Task of one group of a clustering: slices in, new file groups out. Nothing is planned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi import _native
from pyhudi.config.clustering_options import Layout
from pyhudi.config.file_names import base_file_name
from pyhudi.engine.protocol import Attempt
from pyhudi.slices import write_base
from pyhudi.slices.clustering_plan import PlannedGroup
from pyhudi.slices.read import open_counted, spec_of_matches
from pyhudi.slices.read_tasks import ReadTask, ScanRequest, rewrite_tasks
from pyhudi.slices.write_tasks import NewFiles, WriteTarget
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import RuntimeStats, WriteStat

_FOR_LOGS = 4
"""A task's slices buffer this part of its memory for log records; sorted rows have half."""


@dataclass(frozen=True)
class ClusterTask:
    """Write the rows of some slices of one partition into new file groups."""

    target: WriteTarget
    partition: str
    reads: tuple[ReadTask, ...]
    """Reads all stored columns of each slice."""
    file_ids: str
    """Prefix of the ids of its file groups."""
    sort_columns: tuple[str, ...]
    layout: Layout
    target_bytes: int
    memory_limit: int


def cluster_tasks(
    table: TableSnapshot,
    target: WriteTarget,
    groups: Sequence[PlannedGroup],
    *,
    sort_columns: tuple[str, ...],
    layout: Layout,
    target_bytes: int,
    memory_limit: int,
) -> list[ClusterTask]:
    """Return one task per group.

    memory_limit: bytes that each may use. Raises `UnsupportedTableFeature` for an unsupported merge
    rule.
    """
    logs = max(memory_limit // _FOR_LOGS, 1)
    request = ScanRequest(tuple(table.columns.names), memory_limit=logs, two_threads=True)
    return [
        ClusterTask(
            target,
            group.partition,
            tuple(rewrite_tasks(table, request, group.slices)),
            table.clock.uuid(),
            sort_columns,
            layout,
            target_bytes,
            memory_limit,
        )
        for group in groups
    ]


def cluster_group(task: ClusterTask, attempt: Attempt) -> tuple[WriteStat, ...]:
    """Write the merged rows of all slices, and keep their commit times."""
    stats, merged = write_sorted(task, attempt)
    written = sum(stat.num_writes for stat in stats)
    if merged != written:
        raise AssertionError(f"{merged} rows were read and {written} were written")
    return stats


def write_sorted(
    task: ClusterTask,
    attempt: Attempt,
    chosen: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]] | None = None,
) -> tuple[tuple[WriteStat, ...], int]:
    """Write the merged rows of all slices in order, and count them.

    chosen: filters rows that are not written but counted; None writes all.
    """
    target = task.target

    def file_name(number: int) -> str:
        file_id, extension = f"{task.file_ids}-{number}", target.options.extension
        return base_file_name(file_id, attempt.write_token, target.instant, extension)

    paths = NewFiles(target, task.partition, "CREATE", file_name)
    if not task.sort_columns and chosen is None:
        slices = [spec_of_matches(read) for read in task.reads]
        joined = write_base.join_base_files(target, paths, slices, task.target_bytes)
        return _stats(task, joined[0]), _count_merged_rows(joined[1])
    opened = [open_counted(read) for read in task.reads]
    rows: _native.BatchReader | pa.RecordBatchReader = _native.sort_rows(
        [reader for reader, _ in opened],
        columns=list(task.sort_columns),
        layout=task.layout,
        memory_limit=task.memory_limit // 2,
    )
    if chosen is not None:
        rows = pa.RecordBatchReader.from_batches(rows.schema, chosen(rows))
    written = write_base.store_base_files(target, paths, rows, task.target_bytes)
    return _stats(task, written), _count_merged_rows(stats for _, stats in opened)


def _count_merged_rows(slices: Iterable[_native.MergeStats]) -> int:
    return sum(stats.base_rows - stats.deleted + stats.inserted for stats in slices)


def _stats(task: ClusterTask, written: Sequence[_native.BaseFile]) -> tuple[WriteStat, ...]:
    return tuple(
        WriteStat(
            file_id=f"{task.file_ids}-{number}",
            path=file.path,
            num_writes=file.rows,
            num_inserts=file.rows,
            total_write_bytes=file.size,
            file_size_in_bytes=file.size,
            partition_path=task.partition,
            runtime_stats=RuntimeStats(),
        )
        for number, file in enumerate(written)
    )
