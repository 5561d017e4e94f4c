"""From a table and a request to read tasks, one per file slice. No data is read here.

This module determines the columns for a filter, the pruned partitions and the merge rule;
`slices/read.py` executes the tasks, in this process or in another.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyhudi.query.file_pruning import select_file_slices
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.read_tasks import ReadTask, ScanRequest, merge_rule, slice_tasks
from pyhudi.table.table_snapshot import TableSnapshot


def plan_scan(table: TableSnapshot, request: ScanRequest) -> list[ReadTask]:
    """Return one task for every file slice that may have matching rows, in order of their keys.

    Raises `UnsupportedTableFeature` if a slice has an unsupported merge rule.
    """
    return slice_tasks(table, request, scan_slices(table, request), merge_rule(table))


def scan_slices(table: TableSnapshot, request: ScanRequest) -> list[FileSlice]:
    """Return the slices that a scan reads, without those that cannot match."""
    return select_file_slices(table, request).slices


def output_columns(
    names: Sequence[str], columns: Sequence[str] | None, *, meta: Sequence[str], meta_fields: bool
) -> tuple[str, ...]:
    """Return the columns of a scan's result: the requested ones in that order, else all.

    names: all columns of the table. meta: those of them that are Hudi's own.
    """
    if columns is None:
        return tuple(name for name in names if meta_fields or name not in meta)
    extra = [name for name in meta if name not in columns] if meta_fields else []
    return (*extra, *columns)
