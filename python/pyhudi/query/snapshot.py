"""From a table and a request to read tasks, one a file slice. No data is read here.

Which columns a filter needs, which partitions can be left out and how a slice is merged is decided
here; `slices/read.py` carries it out, in this process or in another.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyhudi.query.file_pruning import select_file_slices
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.read_tasks import ReadTask, ScanRequest, merge_rule, slice_tasks
from pyhudi.table.table_snapshot import TableSnapshot


def plan_scan(table: TableSnapshot, request: ScanRequest) -> list[ReadTask]:
    """One task for every file slice that may hold wanted rows, by partition and file id.

    Raises `UnsupportedTableFeature` when a slice must be merged by a rule that pyhudi lacks.
    """
    return slice_tasks(table, request, scan_slices(table, request), merge_rule(table))


def scan_slices(table: TableSnapshot, request: ScanRequest) -> list[FileSlice]:
    """The slices that a scan reads, those that cannot match left out."""
    return select_file_slices(table, request).slices


def output_columns(
    names: Sequence[str], columns: Sequence[str] | None, *, meta: Sequence[str], meta_fields: bool
) -> tuple[str, ...]:
    """The columns of a scan's result: those asked for, in that order, else all in table order.

    names: all columns of the table. meta: those of them that are Hudi's own.
    """
    if columns is None:
        return tuple(name for name in names if meta_fields or name not in meta)
    extra = [name for name in meta if name not in columns] if meta_fields else []
    return (*extra, *columns)
