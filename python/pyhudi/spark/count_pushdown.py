"""Row count of a scan, computed by pyhudi: no row crosses to Spark."""

from __future__ import annotations

from collections.abc import Iterator

from pyhudi.api.scan import Scan
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Attempt
from pyhudi.query.concurrent_clean import detect_concurrent_clean
from pyhudi.slices.read import count_task, read_task
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.slices.row_counts import is_whole_base_file, rows_from_commits
from pyhudi.slices.task_packing import Pack, PackSizes, pack_tasks, split_tasks, task_size
from pyhudi.spark.engine import SparkEngine

_FOOTERS_HERE = 64
"""Number of footers that the driver reads itself: a Spark job costs more."""


def count_rows(scan: Scan, engine: SparkEngine, sizes: PackSizes) -> int:
    """Count the rows of the scan, whose columns should be few. Raises as `Scan.count`."""
    label = f"count {scan.table.storage.uri}"
    counted, tasks = rows_from_commits(scan.table.timeline, scan.tasks)
    footers = [task for task in tasks if is_whole_base_file(task)]
    remaining = [task for task in tasks if not is_whole_base_file(task)]
    # One task reads a footer; only the other files are worth splitting.
    parts = split_tasks(remaining, sizes)
    whole: list[ReadTask] = []
    if len(footers) > _FOOTERS_HERE:
        footers, whole = whole, footers
    packs = pack_tasks(read_task, [*whole, *parts], task_size, sizes)

    def counts() -> Iterator[int]:
        yield from LocalEngine().run(count_task, footers, label=label)
        yield from engine.run(_count_pack, packs, label=label)

    return counted + sum(detect_concurrent_clean(counts(), scan.table))


def _count_pack(pack: Pack[ReadTask], attempt: Attempt) -> int:
    return sum(count_task(task, attempt) for task in pack.tasks)
