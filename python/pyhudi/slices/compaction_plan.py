"""Slices of a compaction: a table and its newest slices in, plan and tasks out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.read_tasks import ReadTask, ScanRequest, rewrite_tasks
from pyhudi.slices.write_tasks import WriteTarget
from pyhudi.table.table_snapshot import TableSnapshot

_MIB = 1024 * 1024
_LARGEST = 120 * _MIB
"""`hoodie.parquet.max.file.size`, which Hudi assumes for a slice without base file."""


@dataclass(frozen=True)
class CompactTask:
    """Merge one slice into its file group's next base file."""

    target: WriteTarget
    read: ReadTask
    """Reads all stored columns of the slice."""


def compaction_plan(
    slices: Iterable[FileSlice],
    extra: Mapping[str, str] | None = None,
    missing: Sequence[str] = (),
) -> Mapping[str, Any]:
    """Return the requested file's record (`HoodieCompactionPlan`, version 2: bare file names).

    missing: partitions with skipped slices, which Hudi's next plan checks in addition to those that
    were written.
    """
    return {
        "operations": [_operation(slice_) for slice_ in slices],
        "extraMetadata": dict(extra or {}),
        "version": 2,
        "preserveHoodieMetadata": False,
        "missingSchedulePartitions": list(missing),
    }


def io_mib(slice_: FileSlice) -> int:
    """Estimate the MiB that a compaction of a slice reads and writes."""
    return sum(_io_mib(slice_))


def _io_mib(slice_: FileSlice) -> tuple[int, int]:
    """Read, and written: the size of the base file, or the maximum file size."""
    written = slice_.base.whole_size if slice_.base else _LARGEST
    return slice_.size // _MIB, written // _MIB


def io_metrics(slice_: FileSlice) -> dict[str, float]:
    """Return the cost of a slice as a plan stores it."""
    read, write = _io_mib(slice_)
    return {
        "TOTAL_LOG_FILES": float(len(slice_.logs)),
        "TOTAL_IO_MB": float(read + write),
        "TOTAL_IO_READ_MB": float(read),
        "TOTAL_LOG_FILES_SIZE": float(slice_.log_size),
        "TOTAL_IO_WRITE_MB": float(write),
    }


def _operation(slice_: FileSlice) -> dict[str, Any]:
    return {
        "baseInstantTime": slice_.base_instant,
        "deltaFilePaths": [log.name for log in slice_.logs],
        "dataFilePath": slice_.base.name if slice_.base else None,
        "fileId": slice_.file_id,
        "partitionPath": slice_.partition,
        "metrics": io_metrics(slice_),
        "bootstrapFilePath": source_uri(slice_),
    }


def source_uri(slice_: FileSlice) -> str | None:
    """Return the source of a slice's skeleton: Hudi's executors know it by the plan alone."""
    source = slice_.base.source if slice_.base else None
    return None if source is None else source.uri


def compact_tasks(
    table: TableSnapshot,
    target: WriteTarget,
    slices: Sequence[FileSlice],
    memory_limit: int | None = None,
) -> list[CompactTask]:
    """Return one task per slice.

    memory_limit: bytes of log records that one buffers, None for no limit. Raises
    `UnsupportedTableFeature` for an unsupported merge rule.
    """
    request = ScanRequest(output=tuple(table.columns.names), memory_limit=memory_limit)
    return [CompactTask(target, read) for read in rewrite_tasks(table, request, slices)]
