"""Row counts of read tasks by partition path and commits. Reads no data file.

A commit records the number of rows of each base file. The number is used if it is the only commit
that names the file, has its size, and had no errors: so it was in every base file of every table
that releases 0.12 to 1.2 of Hudi wrote for the tests. Log files change rows, so their slices are
not counted this way. Other files are counted by their footer (`read.count_task`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from pyhudi.errors import ConfigError, HudiError
from pyhudi.schema.predicates import filter_rows
from pyhudi.slices.file_slice import BaseFile
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import WriteStat


def is_whole_base_file(task: ReadTask) -> bool:
    """Return whether the task reads all rows of a base file, and no others."""
    parts = task.slice.logs or task.where or task.whole or task.base_part
    return task.slice.base is not None and not parts and task.limit is None


def rows_from_commits(timeline: Timeline, tasks: Sequence[ReadTask]) -> tuple[int, list[ReadTask]]:
    """Return the rows that commits of the timeline record, and the tasks still to be counted.

    Filters that the partition path decides are removed from those tasks.
    """
    remaining = [task for task in map(resolve_path_filter, tasks) if task is not None]
    written = _row_counts_from_commits(timeline, remaining)
    counts = [written.get(task.slice.base.path) if task.slice.base else None for task in remaining]
    uncounted = [task for task, count in zip(remaining, counts, strict=True) if count is None]
    return sum(count for count in counts if count is not None), uncounted


def resolve_path_filter(task: ReadTask) -> ReadTask | None:
    """Return the task without a filter that all rows of its partition match; None if none does.

    Values that come from the path are the same for every row.
    """
    where, values = task.where, dict(task.path_values)
    if where is None or not where.columns or not set(where.columns) <= values.keys():
        return task
    row = pa.table({name: pa.array([values[name].as_py()], values[name].type) for name in values})
    try:
        matches = filter_rows(row, where).num_rows
    except ConfigError:
        # A file without rows has no row for which the filter cannot be computed.
        return task
    return replace(task, where=None) if matches else None


def _row_counts_from_commits(timeline: Timeline, tasks: Sequence[ReadTask]) -> dict[str, int]:
    """Return the row counts of whole base files that commits record, by path."""
    whole = (task.slice.base for task in tasks if is_whole_base_file(task))
    bases = {base.path: base for base in whole if base is not None}
    instants = {base.instant for base in bases.values()}
    stats_by_path: dict[str, list[WriteStat]] = {}
    for commit in timeline.commits:
        if commit.requested not in instants:
            continue
        try:
            stats = timeline.commit_metadata(commit).write_stats
        except HudiError:
            continue
        for stat in stats:
            if stat.path is not None and stat.path in bases:
                stats_by_path.setdefault(stat.path, []).append(stat)
    return {
        path: stats[0].num_writes
        for path, stats in stats_by_path.items()
        if len(stats) == 1 and _is_sure(stats[0], bases[path])
    }


def _is_sure(stat: WriteStat, base: BaseFile) -> bool:
    """A missing number is read as 0, and a skeleton's rows are in another file."""
    is_of_file = base.source is None and stat.file_size_in_bytes == base.size
    return is_of_file and stat.num_writes > 0 and stat.total_write_errors == 0
