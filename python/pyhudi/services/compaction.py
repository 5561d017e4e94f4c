"""Compaction: every slice with log files becomes a base file, in one commit. Rows do not change.

What is planned, carried out and completed is the same for a data table and for a metadata table;
how the file of one slice is written is the caller's `CompactionWork`. What fails is taken back
whole, plan included; a writer that dies leaves a pending compaction, which any writer can complete.
Sources: `ScheduleCompactionActionExecutor`, `RunCompactionActionExecutor` (1.2.0).
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
from pyhudi.table.participants import Commit
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import serde
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat, by_partition
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.planned_services import new_stage_id
from pyhudi.txn.transaction import run_participants

TaskT = TypeVar("TaskT")


@dataclass(frozen=True)
class CompactionWork(Generic[TaskT]):
    """How the slices of one table are compacted."""

    tasks: Callable[[TableSnapshot, str, Sequence[FileSlice]], list[TaskT]]
    """One task a slice, for a compaction of an instant. Refuses what cannot be merged."""
    write: Callable[[TaskT, Attempt], WriteStat]
    """Writes the base file of a task's slice."""
    as_planned: Callable[[TableSnapshot, str, Sequence[FileSlice]], TableSnapshot] = (
        lambda table, *_: table
    )
    """The table with the columns that the files of a plan get."""
    has_markers: bool = True
    """Whether markers name the files that were begun; else their partitions are listed."""
    label: str = "compact files"
    extra: dict[str, str] = field(default_factory=dict)
    """Extra metadata of the plan."""


def with_logs(view: FileSystemView) -> list[FileSlice]:
    """The newest slices that have log files."""
    return [newest for newest in view.slices() if newest.logs]


def compact(
    table: TableSnapshot,
    work: CompactionWork[Any],
    slices: Sequence[FileSlice],
    instant: str = "",
) -> str | None:
    """Plans and carries out the compaction of slices; its instant, None for no slices.

    instant: that of the compaction, "" for a new one. No other compaction or clustering of the
    slices may be pending, and nobody else at work. Raises `CommitConflict` where others are.
    """
    if not slices:
        return None
    instant = instant or table.generator.next()
    tasks = work.tasks(table, instant, slices)
    compaction = PendingInstant(table, instant, COMPACTION)
    plan = compaction_plan(slices, work.extra)
    table.guard.check_held()
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
    """Raises `CommitConflict` where others have completed something since the slices were chosen.

    The new base files would hide it. That takes a writer who stood still, and whose lock was taken.
    """
    new = set(table.reload().timeline.filter_completed()) - set(table.timeline.filter_completed())
    if new:
        raise retryable_conflict(
            f"{table.storage.uri}: {min(map(str, new))} completed while a compaction was planned"
        )


def complete_pending(
    table: TableSnapshot, work: CompactionWork[Any], *, own: bool = False
) -> list[str]:
    """Carries out the compactions that are pending, by their plans; their instants.

    own: only those whose plans say what the work's would. What another writer began of them is
    removed first, so none must be at work. Raises `CorruptTable` for a plan whose files are gone.
    """
    completed = []
    for pending in table.timeline.pending_compactions:
        plan = table.timeline.plan(pending) or {}
        said = plan.get("extraMetadata") or {}
        if own and any(said.get(name) != text for name, text in work.extra.items()):
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
    """What a plan has to wait for; empty where it has not to.

    Up to table version 6 a write at work may append to a log file that the plan would name, or have
    begun one that goes if it dies.
    """
    if not table.config.version.logs_named_by_base_instant:
        return ""
    writes = table.timeline.pending(*COMMIT_ACTIONS)
    writing = [write for write in writes if not table.timeline.is_clustering(write)]
    return f"no compaction is planned while {writing[0]} is pending" if writing else ""


def slices_of_plan(table: TableSnapshot, instant: str, plan: Mapping[str, Any]) -> list[FileSlice]:
    """The slices that the plan of a pending compaction names, with what came without knowing of it.

    Raises `CorruptTable` for a plan whose files are gone.
    """
    operations = plan.get("operations") or ()
    if table.config.version.logs_named_by_base_instant:
        late = _late_logs(table, instant)
        operations = [_with_logs(one, late) for one in operations]
    return resolve_planned_slices(table.storage, table.config, operations)


def _late_logs(table: TableSnapshot, planned: str) -> dict[tuple[str, str, str], set[str]]:
    """Log files of commits after a plan, by partition, file id and instant in their names.

    Up to table version 6 those of the slices that it names would not count any more once it is
    carried out. Nobody adds such files once there is the plan: who made it stood still before it
    was there, and has died since, or others have gone by it by the time.
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
    """An operation of a plan with these log files of its slice, besides those that it names."""
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
    begun = _files_of_attempts(compaction, work, slices)
    # Who stood still may find files of whoever carried the plan out meanwhile.
    table.guard.check_held()
    compaction.delete_unnamed_files(metadata, begun)
    metadata = run_participants(table.reload(), Commit(instant, metadata, schema))
    content = metadata.encode(table.config.version, COMPACTION, table.clock)
    compaction.complete(content, metadata.paths)
    compaction.delete_markers()


def _take_back(
    compaction: PendingInstant, work: CompactionWork[Any], slices: Sequence[FileSlice]
) -> None:
    """Leaves the table as if the compaction had not been planned, unless it is complete."""
    found = compaction.table.reload().timeline.find(compaction.time, COMPACTION)
    if found is None or found.is_completed:
        return
    compaction.revert_to_requested(_files_of_attempts(compaction, work, slices))
    compaction.remove()


def _files_of_attempts(
    compaction: PendingInstant, work: CompactionWork[Any], slices: Sequence[FileSlice]
) -> list[str] | None:
    """Base files that attempts of the compaction wrote; None where their markers tell."""
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
