"""Incremental queries: from the commits of a range (`commit_range`) to their files and read tasks.

They return the rows that commits of the range wrote, in their state at the end of the range,
without deletes. Only the files in the commits' write stats are read. Sources:
`MergeOnReadIncrementalRelationV1` and `V2` (Hudi 1.2.0).

Archived commits are read from the archive, while Hudi below version 8 ignores them. If a file was
cleaned, the rows that are still current can replace it (a full scan, filtered by commit): Hudi does
so from version 8 on by default, and so does pyhudi, with a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

import pyarrow as pa

from pyhudi.config.log import warn
from pyhudi.errors import ConfigError, HistoryUnavailable, UnsupportedTableFeature
from pyhudi.query.commit_range import (
    HollowCommits,
    IncrementalRange,
    Selection,
    by_completion_times,
    check_no_commit_missing,
    check_range_end,
    select_commits,
)
from pyhudi.query.file_pruning import plan_scan
from pyhudi.schema.predicates import Where, both
from pyhudi.slices.file_size_checks import checks_sizes
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.listing import GivenFiles, list_files
from pyhudi.slices.partition_values import partition_filter
from pyhudi.slices.read_tasks import (
    MergeRule,
    ReadTask,
    ScanRequest,
    WholeSlice,
    merge_rule,
    slice_tasks,
)
from pyhudi.storage.storage import Entry
from pyhudi.table.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from pyhudi.slices.file_slice import FileSlice
else:
    from pyhudi.schema import lazy_compute as pc

COMMIT_TIME = "_hoodie_commit_time"


def check_incremental(table: TableSnapshot, incremental_range: IncrementalRange) -> None:
    """Check that a table supports an incremental query of the range.

    Raises `UnsupportedTableFeature` for a table without meta columns, `ConfigError` for arguments
    that exclude each other, `HistoryUnavailable` for a range before the first commit.
    """
    if not table.config.populate_meta_fields:
        raise UnsupportedTableFeature(
            "hoodie.populate.meta.fields=false: rows do not record their commit, so there "
            "are no incremental queries",
        )
    if incremental_range.hollow_commits not in get_args(HollowCommits):
        raise ConfigError(
            f"hollow_commits is {incremental_range.hollow_commits!r}",
            hint=f"It is one of {', '.join(get_args(HollowCommits))}.",
        )
    if (
        incremental_range.hollow_commits == "transition_time"
        and incremental_range.fallback_full_scan
    ):
        raise ConfigError(
            "fallback_full_scan cannot be combined with hollow_commits='transition_time'"
        )
    by_completion = by_completion_times(table, incremental_range.hollow_commits)
    check_range_end(table, incremental_range.end, by_completion=by_completion)


def plan_incremental(
    table: TableSnapshot, request: ScanRequest, incremental_range: IncrementalRange
) -> Sequence[ReadTask]:
    """Return one task for every file slice that may have rows of the range, in order of their keys.

    Raises `HistoryUnavailable` for a hollow commit, and for missing files;
    `UnsupportedTableFeature` if a slice has an unsupported merge rule.
    """
    selection = select_commits(table, incremental_range)
    if not selection.commits:
        return []
    check_no_commit_missing(table, incremental_range, selection)
    narrowed = replace(
        request, where=both(_commit_filter(selection, incremental_range), request.where)
    )
    last = selection.instants[-1]
    at_end = replace(table, timeline=table.timeline.until(last))
    slices = _slices(at_end, narrowed, selection)
    shard = incremental_range.shard
    if shard is not None:
        slices = [slice_ for slice_ in slices if shard.has(slice_.file_id)]
    combines = bool(table.config.merge.column_rules) and table.config.is_merge_on_read
    if combines:
        slices = _whole_slices(at_end, slices)
    missing = _first_missing(at_end, slices)
    if missing is None and combines:
        return slice_tasks(at_end, narrowed, slices, merge_rule(at_end), incremental=True)
    if missing is None:
        rule = _block_filter(at_end, selection)
        tasks = slice_tasks(at_end, narrowed, slices, rule, incremental=True)
        return _with_whole_slices(at_end, list(tasks))
    _check_fallback(table, incremental_range, missing)
    return plan_scan(table, narrowed)


def _check_fallback(
    table: TableSnapshot, incremental_range: IncrementalRange, missing: str
) -> None:
    """Check whether a full scan may replace missing files; rows are lost, so it warns."""
    loss = f"{missing} was written in the requested range and has been cleaned since"
    fallback = incremental_range.fallback_full_scan
    if fallback is None and table.config.version.incremental_by_completion_time:
        warn(
            f"{loss}: the result misses rows of the range that were updated after it "
            "(fallback_full_scan=False raises instead, True accepts it without this warning)",
        )
    elif not fallback:
        raise HistoryUnavailable(
            loss, hint="fallback_full_scan=True gives the rows of the range that are still current."
        )


def _whole_slices(table: TableSnapshot, slices: Sequence[FileSlice]) -> list[FileSlice]:
    """Return the same slices with the files of older commits.

    A record of a table with merge rules is a part of its row.
    """
    keys = {slice_.key for slice_ in slices}
    touched = sorted({slice_.partition for slice_ in slices})
    view = FileSystemView(table.storage, table.config, table.timeline, touched, with_replaced=True)
    return [slice_ for slice_ in view.slices() if slice_.key in keys]


def _with_whole_slices(table: TableSnapshot, tasks: list[ReadTask]) -> list[ReadTask]:
    """Let tasks complete partial records from the whole slice, including older files.

    Only the open log files show whether there are any. Hudi 1.2.0 fails on this range.
    """
    if table.config.version.blocks_need_commit_check or not any(t.slice.logs for t in tasks):
        return tasks
    touched = sorted({task.slice.partition for task in tasks if task.slice.logs})
    view = FileSystemView(table.storage, table.config, table.timeline, touched, with_replaced=True)
    full_slices = {slice_.key: slice_ for slice_ in view.slices()}
    rule = merge_rule(table)
    return [
        replace(task, whole=WholeSlice(full_slices[key], rule))
        if (key := (task.slice.partition, task.slice.file_id)) in full_slices and task.slice.logs
        else task
        for task in tasks
    ]


def _commit_filter(selection: Selection, incremental_range: IncrementalRange) -> Where:
    """Return the filter on rows that commits of the selection wrote."""
    column, string = pc.field(COMMIT_TIME), pa.string()
    if selection.exact:
        instants = pa.array(selection.instants, string)
        return Where(column.isin(instants), (COMMIT_TIME,), ((COMMIT_TIME, "in", instants),))
    last = selection.instants[-1]
    upper = Where(column <= last, (COMMIT_TIME,), ((COMMIT_TIME, "<=", pa.array([last], string)),))
    if incremental_range.start is None:
        return upper
    bound = ((COMMIT_TIME, ">", pa.array([incremental_range.start], string)),)
    return both(Where(column > incremental_range.start, (COMMIT_TIME,), bound), upper)


def _slices(table: TableSnapshot, request: ScanRequest, selection: Selection) -> list[FileSlice]:
    """Return the newest slice of every written group, from files of the commits alone."""
    conjuncts = request.where.conjuncts if request.where else ()
    is_selected = partition_filter(table.config, table.columns, conjuncts, incremental=True)
    files = _collect_written_files(selection)
    if is_selected is not None:
        files = {partition: of for partition, of in files.items() if is_selected(partition)}
    view = FileSystemView(
        table.storage, table.config, table.timeline, files=GivenFiles(files), with_replaced=True
    )
    slices = view.slices() if table.config.is_merge_on_read else view.base_slices()
    replaced = _collect_replaced_groups(selection)
    remaining = [slice_ for slice_ in slices if slice_.key not in replaced]
    if not checks_sizes(table.options):
        return [slice_.unchecked for slice_ in remaining]
    commits = frozenset(selection.instants)
    return [_with_growing_logs(slice_, commits) for slice_ in remaining]


def _with_growing_logs(slice_: FileSlice, commits: frozenset[str]) -> FileSlice:
    """Mark log files of the slice to which later commits may have appended.

    Log files not named by a commit of the selection are named by a base instant. That can be of a
    compaction after the end of the range, so that the slice's base instant differs from the name.
    """
    logs = tuple(
        log if log.instant in commits else replace(log, appended=True) for log in slice_.logs
    )
    return replace(slice_, logs=logs)


def _collect_written_files(selection: Selection) -> dict[str, list[Entry]]:
    """Return the files of the write stats by partition, each once; a log file can be in several."""
    entries: dict[str, dict[str, Entry]] = {}
    for metadata in selection.metadata:
        for partition, stats in metadata.partition_to_write_stats.items():
            of_partition = entries.setdefault(partition, {})
            of_partition.update(
                (stat.path, Entry(stat.path, stat.file_size_in_bytes, 0))
                for stat in stats
                if stat.path
            )
    return {partition: list(entries[partition].values()) for partition in sorted(entries)}


def _collect_replaced_groups(selection: Selection) -> set[tuple[str, str]]:
    """Return groups that commits of the selection replaced.

    Not those that other commits did: a clustering that was planned before the last commit of the
    range and completes after its end removes no rows of the range. Hudi 1.2.0 loses them, 1.0.2
    does not.
    """
    return {key for metadata in selection.metadata for key in metadata.replaced}


def _first_missing(table: TableSnapshot, slices: Sequence[FileSlice]) -> str | None:
    """Return a file of the slices that storage no longer has, or None."""
    touched = sorted({slice_.partition for slice_ in slices})
    existing = {file.path for _, files in list_files(table.storage, touched) for file in files}
    needed = (
        file.path
        for slice_ in slices
        for file in (*([slice_.base] if slice_.base else ()), *slice_.logs)
    )
    return next((path for path in needed if path not in existing), None)


def _block_filter(table: TableSnapshot, selection: Selection) -> MergeRule:
    """Return the merge rule in which only log blocks of the selected commits are valid.

    A log compaction only repeats the records of others. Its blocks are valid if one that they
    replace is (`BaseHoodieLogRecordReader.scanInternal`, 1.2.0), with all their rows; those that
    Hudi writes have its own commit time, even for records of an older commit.
    """
    rule = merge_rule(table)
    if not table.config.is_merge_on_read:
        return rule
    instants = selection.instants
    return replace(rule, valid_instants=instants, timeline_start=None, drops_repeated=True)
