"""Compaction: every slice with log files becomes a base file, in one commit. Rows do not change.

Plan, execution and completion are the same for a data table and for a metadata table; the caller's
`CompactionWork` writes the file of one slice. A failure is rolled back completely, including the
plan; a crash leaves a pending compaction, which any writer can complete. Sources:
`ScheduleCompactionActionExecutor`, `RunCompactionActionExecutor` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pyhudi.config.actions import COMMIT_ACTIONS, COMPACTION
from pyhudi.config.file_names import parse_base_name, parse_log_name
from pyhudi.engine.local import choose_io_engine
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import retryable_conflict
from pyhudi.schema import commit_schema
from pyhudi.schema.table_schema import TableSchema
from pyhudi.slices.compaction_plan import compaction_plan
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.service_plans import resolve_planned_slices
from pyhudi.table.participants import Commit, run_participants
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import serde
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat, by_partition
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.planned_services import new_stage_id

TaskT = TypeVar("TaskT")


@dataclass(frozen=True)
class CompactionWork(Generic[TaskT]):
    """The compaction of the slices of one table."""

    tasks: Callable[[TableSnapshot, str, Sequence[FileSlice]], list[TaskT]]
    """One task per slice, for a compaction's instant. Raises for records that cannot be merged."""
    write: Callable[[TaskT, Attempt], WriteStat]
    """Writes the base file of a task's slice."""
    as_planned: Callable[[TableSnapshot, str, Sequence[FileSlice]], TableSnapshot] = (
        lambda table, *_: table
    )
    """The table with the columns of the files of a plan."""
    has_markers: bool = True
    """Whether markers name the started files; otherwise their partitions are listed."""
    label: str = "compact files"
    extra: dict[str, str] = field(default_factory=dict)
    """Extra metadata of the plan."""


def with_logs(view: FileSystemView) -> list[FileSlice]:
    """Return the newest slices that have log files."""
    return [newest for newest in view.slices() if newest.logs]


def compact(
    table: TableSnapshot,
    work: CompactionWork[Any],
    slices: Sequence[FileSlice],
    instant: str = "",
) -> str | None:
    """Plan and execute the compaction of slices; return its instant, None for no slices.

    instant: that of the compaction, "" for a new one. The slices must have no pending compaction or
    clustering. Raises `CommitConflict` if another writer is active, which the caller must exclude.
    """
    if not slices:
        return None
    instant = instant or table.generator.next()
    tasks = work.tasks(table, instant, slices)
    compaction = PendingInstant(table, instant, COMPACTION)
    plan = compaction_plan(slices, work.extra)
    table.lock_manager.check_held()
    _check_newest(table)
    compaction.request(serde.encode_container("HoodieCompactionPlan", plan, table.clock))
    try:
        _check_newest(table)
        _carry_out(compaction, work, slices, tasks, table.schema)
    except BaseException:
        _take_back(compaction, work, slices)
        raise
    return instant


def _check_newest(table: TableSnapshot) -> None:
    """Raise `CommitConflict` if another writer completed an action since the slices were chosen.

    The new base files would hide it. That happens only if this writer stalled and lost its lock.
    """
    new = set(table.reload().timeline.filter_completed()) - set(table.timeline.filter_completed())
    if new:
        raise retryable_conflict(
            f"{table.storage.uri}: {min(map(str, new))} completed while a compaction was planned"
        )


def complete_pending(
    table: TableSnapshot, work: CompactionWork[Any], *, own: bool = False
) -> list[str]:
    """Execute the pending compactions by their plans; return their instants.

    own: only those with the extra metadata of `work`. The files of another writer's attempt are
    removed first, so none may be active. Raises `CorruptTable` for a plan whose files are missing.
    """
    completed = []
    for pending in table.timeline.pending_compactions:
        plan = table.timeline.plan(pending) or {}
        extra_metadata = plan.get("extraMetadata") or {}
        if own and any(extra_metadata.get(name) != value for name, value in work.extra.items()):
            continue
        slices = slices_of_plan(table, pending.requested, plan)
        compaction = PendingInstant(table, pending.requested, COMPACTION)
        compaction.revert_to_requested(_files_of_attempts(compaction, work, slices))
        planned = work.as_planned(table, compaction.time, slices)
        tasks = work.tasks(planned, compaction.time, slices)
        _carry_out(compaction, work, slices, tasks, planned.schema)
        completed.append(compaction.time)
    return completed


def waits_for(table: TableSnapshot) -> str:
    """Return why a plan has to wait; empty if it does not.

    Up to table version 6 an active write may append to a log file that the plan would name, or have
    created one that is deleted if the write fails.
    """
    if not table.config.version.logs_named_by_base_instant:
        return ""
    writes = table.timeline.pending(*COMMIT_ACTIONS)
    writing = [write for write in writes if not table.timeline.is_clustering(write)]
    return f"no compaction is planned while {writing[0]} is pending" if writing else ""


def slices_of_plan(table: TableSnapshot, instant: str, plan: Mapping[str, Any]) -> list[FileSlice]:
    """Return the slices of a pending compaction's plan, with log files written without knowing it.

    Raises `CorruptTable` for a plan whose files are missing.
    """
    operations = plan.get("operations") or ()
    if table.config.version.logs_named_by_base_instant:
        late = _late_logs(table, instant)
        operations = [_with_logs(operation, late) for operation in operations]
    return resolve_planned_slices(table.storage, table.config, operations)


def _late_logs(table: TableSnapshot, planned: str) -> dict[tuple[str, str, str], set[str]]:
    """Return log files of commits after a plan, by partition, file id and instant in their names.

    Up to table version 6 those of the planned slices would be lost once the plan is executed. No
    writer adds such files once the plan exists: their writer stalled before the plan existed, and
    has failed since, or other writers have already used the plan.
    """
    late: dict[tuple[str, str, str], set[str]] = {}
    for commit in table.timeline.commits:
        if commit.requested < planned:
            continue
        for stat in table.timeline.commit_metadata(commit).write_stats:
            name = (stat.path or "").rsplit("/", 1)[-1]
            log = parse_log_name(name)
            if log is not None and not log.suffix:
                key = (stat.partition_path or "", log.file_id, log.instant)
                late.setdefault(key, set()).add(name)
    return late


def _with_logs(
    operation: Mapping[str, Any], late: Mapping[tuple[str, str, str], set[str]]
) -> dict[str, Any]:
    """Return an operation of a plan with these log files added to its slice."""
    paths = list(operation.get("deltaFilePaths") or ())
    named = {path.rsplit("/", 1)[-1] for path in paths}
    key = (operation["partitionPath"] or "", operation["fileId"], operation["baseInstantTime"])
    return {**operation, "deltaFilePaths": [*paths, *sorted(late.get(key, set()) - named)]}


def _carry_out(
    compaction: PendingInstant,
    work: CompactionWork[TaskT],
    slices: Sequence[FileSlice],
    tasks: Sequence[TaskT],
    columns: TableSchema,
) -> None:
    table, instant = compaction.table, compaction.time
    schema = commit_schema.commit_schema(columns, table.config)
    compaction.begin()
    label = f"{work.label} of {instant}"
    engine = choose_io_engine(table.engine, table.storage, sum(slice_.size for slice_ in slices))
    stats = engine.run(work.write, tasks, stage=new_stage_id(table), label=label)
    metadata = CommitMetadata(
        by_partition(stats),
        compacted=True,
        extra_metadata=schema.extra_metadata(instant),
        operation_type="COMPACT",
    )
    started = _files_of_attempts(compaction, work, slices)
    # A stalled writer may find files of another writer that has executed the plan.
    table.lock_manager.check_held()
    compaction.delete_unnamed_files(metadata, started)
    metadata = run_participants(table.reload(), Commit(instant, metadata, schema))
    content = metadata.encode(table.config.version, COMPACTION, table.clock)
    compaction.complete(content, metadata.paths)
    compaction.delete_markers()


def _take_back(
    compaction: PendingInstant, work: CompactionWork[Any], slices: Sequence[FileSlice]
) -> None:
    """Undo the compaction and its plan, unless it is complete."""
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
