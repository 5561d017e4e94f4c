"""Compaction of a data table: each slice's rows are merged as a reader merges them."""

from __future__ import annotations

from collections.abc import Sequence

from pyhudi.config.property_names import UNFINISHED
from pyhudi.services.compaction import CompactionWork
from pyhudi.slices.compaction_plan import CompactTask, compact_tasks
from pyhudi.slices.compaction_task import compact_file
from pyhudi.slices.file_size_checks import check_sizes, checks_sizes
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.service_plans import as_planned
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.txn.write_target import write_options, write_target


def row_compaction(
    operation: str = "", *, memory_limit: int | None = None
) -> CompactionWork[CompactTask]:
    """Return the compaction work of a data table's slices.

    operation: the pending operation to which the compaction belongs, recorded in its plan.
    memory_limit: bytes for log records of all concurrent tasks, None for no limit. The tasks raise
    `UnsupportedTableFeature` for an unsupported merge rule, `CorruptTable` for a truncated log
    file: a compaction would make the loss final.
    """

    def tasks(table: TableSnapshot, instant: str, slices: Sequence[FileSlice]) -> list[CompactTask]:
        if checks_sizes(table.options):
            check_sizes(table.timeline, slices)
        target = write_target(table, write_options(table), instant)
        task_memory = (
            None if memory_limit is None else memory_limit // table.engine.tasks_per_process
        )
        return compact_tasks(table, target, slices, task_memory)

    extra = {UNFINISHED: operation} if operation else {}
    return CompactionWork(tasks, compact_file, as_planned, extra=extra)
