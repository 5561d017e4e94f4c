"""Compaction: each slice with log files becomes a base file, in one commit. Rows do not change.

Data tables and metadata tables share plan, execution and completion; the caller's `CompactionWork`
writes the file of a slice. After a failure the compaction and its plan are rolled back. After a
crash it is pending, and any writer can complete it. Sources: `ScheduleCompactionActionExecutor`,
`RunCompactionActionExecutor` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from pyhudi.config.actions import COMMIT_ACTIONS, COMPACTION
from pyhudi.config.file_names import file_name_of, parse_base_name, parse_log_name
from pyhudi.config.property_names import PENDING_OPERATION
from pyhudi.engine.local import choose_engine
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import retryable_conflict
from pyhudi.schema import commit_schema
from pyhudi.schema.table_schema import TableSchema
from pyhudi.slices.compaction_plan import CompactTask, compact_tasks, compaction_plan
from pyhudi.slices.compaction_task import compact_file
from pyhudi.slices.file_size_checks import check_sizes, checks_sizes
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.service_plans import as_planned, resolve_planned_slices
from pyhudi.table.participants import Commit, prefetch_publication_check, run_participants
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import serde
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat, by_partition
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.planned_services import new_stage_id
from pyhudi.txn.write_target import write_options, write_target

TaskT = TypeVar("TaskT")


@dataclass(frozen=True)
class CompactionWork(Generic[TaskT]):
    """The compaction of the slices of one table."""

    tasks: Callable[[TableSnapshot, str, Sequence[FileSlice]], list[TaskT]]
    """Returns one task per slice. Raises for records that cannot be merged."""
    write: Callable[[TaskT, Attempt], WriteStat]
    """Writes the base file of a task's slice."""
    as_planned: Callable[[TableSnapshot, str, Sequence[FileSlice]], TableSnapshot] = (
        lambda table, *_: table
    )
    """Returns the table with the columns of the plan's files."""
    has_markers: bool = True
    """Whether tasks write markers; otherwise started files are found by listing partitions."""
    label: str = "compact files"
    extra: dict[str, str] = field(default_factory=dict)
    """Extra metadata of the plan."""


def row_compaction(
    operation: str = "", *, memory_limit: int | None = None
) -> CompactionWork[CompactTask]:
    """Return the work of a data table's compaction, which merges rows as a reader merges them.

    operation: the pending operation to which the compaction belongs, recorded in its plan.
    memory_limit: see `row_tasks`.
    """
    extra = {PENDING_OPERATION: operation} if operation else {}
    tasks = partial(row_tasks, memory_limit=memory_limit)
    return CompactionWork(tasks, compact_file, as_planned, extra=extra)


def row_tasks(
    table: TableSnapshot,
    instant: str,
    slices: Sequence[FileSlice],
    *,
    memory_limit: int | None = None,
) -> list[CompactTask]:
    """Return the tasks that merge the records of a data table's slices.

    memory_limit: bytes for log records of all concurrent tasks, None for no limit. Raises
    `UnsupportedTableFeature` for an unsupported merge rule, `CorruptTable` for a truncated log
    file: a compaction would make the loss final.
    """
    if checks_sizes(table.options):
        check_sizes(table.timeline, slices)
    target = write_target(table, write_options(table), instant)
    task_memory = None if memory_limit is None else memory_limit // table.engine.tasks_per_process
    return compact_tasks(table, target, slices, task_memory)


def slices_with_logs(view: FileSystemView) -> list[FileSlice]:
    """Return the newest slices that have log files."""
    return [newest for newest in view.slices() if newest.logs]


def compact(
    table: TableSnapshot,
    work: CompactionWork[Any],
    slices: Sequence[FileSlice],
    instant: str = "",
) -> str | None:
    """Plan and execute the compaction of slices; return its instant, None for no slices.

    instant: that of the compaction, "" for a new one. The slices must have no pending service, and
    the caller must exclude other writers. Raises `CommitConflict` if another writer is active.
    """
    if not slices:
        return None
    instant = instant or table.generator.next()
    tasks = work.tasks(table, instant, slices)
    compaction = PendingInstant(table, instant, COMPACTION)
    plan = compaction_plan(slices, work.extra)
    table.lock_manager.check_held()
    compaction.request(serde.encode_container("HoodieCompactionPlan", plan, table.clock))
    try:
        _check_newest(table)
        _execute(compaction, work, slices, tasks, table.schema)
    except BaseException:
        _roll_back(compaction, work, slices)
        raise
    return instant


def _check_newest(table: TableSnapshot) -> None:
    """Raise `CommitConflict` if another writer completed an action since the slices were chosen.

    The new base files would hide its log files. This happens only if this writer lost its lock.
    """
    completed = set(table.reload().timeline.filter_completed()) - set(
        table.timeline.filter_completed()
    )
    if completed:
        first = min(map(str, completed))
        msg = f"{table.storage.uri}: {first} completed while a compaction was planned"
        raise retryable_conflict(msg)


def complete_pending(
    table: TableSnapshot, work: CompactionWork[Any], *, own_only: bool = False
) -> list[str]:
    """Execute the pending compactions by their plans; return their instants.

    own_only: only those with the extra metadata of `work`. No other writer may be active, since the
    files of earlier attempts are removed. Raises `CorruptTable` for a plan whose files are missing.
    """
    completed = []
    for pending in table.timeline.pending_compactions:
        plan = table.timeline.plan(pending) or {}
        extra_metadata = plan.get("extraMetadata") or {}
        if own_only and any(
            extra_metadata.get(name) != value for name, value in work.extra.items()
        ):
            continue
        slices = slices_of_plan(table, pending.requested, plan)
        compaction = PendingInstant(table, pending.requested, COMPACTION)
        compaction.revert_to_requested(_files_of_attempts(compaction, work, slices))
        planned = work.as_planned(table, compaction.time, slices)
        tasks = work.tasks(planned, compaction.time, slices)
        _execute(compaction, work, slices, tasks, planned.schema)
        completed.append(compaction.time)
    return completed


def reason_to_wait(table: TableSnapshot) -> str:
    """Return why no plan can be created now; "" if one can.

    Up to table version 6 an active write may append to a log file that the plan would name, or
    delete one if it fails.
    """
    if not table.config.version.logs_named_by_base_instant:
        return ""
    writes = table.timeline.pending(*COMMIT_ACTIONS)
    writing = [write for write in writes if not table.timeline.is_clustering(write)]
    return f"no compaction is planned while {writing[0]} is pending" if writing else ""


def slices_of_plan(table: TableSnapshot, instant: str, plan: Mapping[str, Any]) -> list[FileSlice]:
    """Return the slices of a pending plan, including log files of writers that did not know it.

    Raises `CorruptTable` for a plan whose files are missing.
    """
    operations = plan.get("operations") or ()
    if table.config.version.logs_named_by_base_instant:
        late_log_files = _find_late_log_files(table, instant)
        operations = [_add_log_files(operation, late_log_files) for operation in operations]
    return resolve_planned_slices(table.storage, table.config, operations)


def _find_late_log_files(
    table: TableSnapshot, planned: str
) -> dict[tuple[str, str, str], set[str]]:
    """Return log files of commits after a plan, by partition, file id and instant in their names.

    Up to table version 6 the executed plan would lose those of its slices. Only a writer that
    stalled before the plan existed writes such files.
    """
    late_log_files: dict[tuple[str, str, str], set[str]] = {}
    for commit in table.timeline.commits:
        if commit.requested < planned:
            continue
        for stat in table.timeline.commit_metadata(commit).write_stats:
            name = file_name_of(stat.path)
            log = parse_log_name(name)
            if log is not None and not log.suffix:
                key = (stat.partition_path or "", log.file_id, log.instant)
                late_log_files.setdefault(key, set()).add(name)
    return late_log_files


def _add_log_files(
    operation: Mapping[str, Any], late_log_files: Mapping[tuple[str, str, str], set[str]]
) -> dict[str, Any]:
    """Return an operation of a plan with these log files in its slice."""
    paths = list(operation.get("deltaFilePaths") or ())
    named_logs = {file_name_of(path) for path in paths}
    key = (operation["partitionPath"] or "", operation["fileId"], operation["baseInstantTime"])
    return {
        **operation,
        "deltaFilePaths": [*paths, *sorted(late_log_files.get(key, set()) - named_logs)],
    }


def _execute(
    compaction: PendingInstant,
    work: CompactionWork[TaskT],
    slices: Sequence[FileSlice],
    tasks: Sequence[TaskT],
    columns: TableSchema,
) -> None:
    table, instant = compaction.table, compaction.time
    schema = commit_schema.commit_schema(columns, table.config)
    compaction.begin()
    size = sum(slice_.size for slice_ in slices)
    engine = choose_engine(table.engine, table.storage, size=size)
    stats = engine.run(work.write, tasks, stage=new_stage_id(table), label=work.label)
    metadata = CommitMetadata(
        by_partition(stats),
        compacted=True,
        extra_metadata=schema.extra_metadata(instant),
        operation_type="COMPACT",
    )
    with prefetch_publication_check(table) as drop_old_listing:
        written_paths = _files_of_attempts(compaction, work, slices)
        # If this writer stalled, the files may be those of another writer that executed the plan.
        table.lock_manager.check_held()
        compaction.delete_unnamed_files(metadata, written_paths)
        if table.participants:
            metadata = run_participants(table.reload(), Commit(instant, metadata, schema))
        content = metadata.encode(table.config.version, COMPACTION, table.clock)
        drop_old_listing()
        compaction.complete(content, metadata.paths)
    if work.has_markers:
        compaction.delete_markers()


def _roll_back(
    compaction: PendingInstant, work: CompactionWork[Any], slices: Sequence[FileSlice]
) -> None:
    """Roll back the compaction and its plan, unless it is complete."""
    current = compaction.table.reload().timeline.find(compaction.time, COMPACTION)
    if current is None or current.is_completed:
        return
    compaction.revert_to_requested(_files_of_attempts(compaction, work, slices))
    compaction.remove()


def _files_of_attempts(
    compaction: PendingInstant, work: CompactionWork[Any], slices: Sequence[FileSlice]
) -> list[str] | None:
    """Return base files of the compaction's attempts; None if their markers name them."""
    if work.has_markers:
        return None
    extension = compaction.table.config.base_extension
    partitions = sorted({planned.partition for planned in slices})
    return [
        file.path
        for _, files in compaction.table.storage.list_dirs(partitions)
        for file in files
        if (base := parse_base_name(file.name, extension)) is not None
        and base.instant == compaction.time
    ]
