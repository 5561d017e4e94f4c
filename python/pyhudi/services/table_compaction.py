"""Compaction of a data table, concurrently with writers: planned under the lock, then executed.

Pending plans of any writer, including Apache Hudi, are executed first. Writers can append to a
slice during its compaction (`txn/conflicts.py` defines which writers abort). Sources:
`ScheduleCompactionActionExecutor`, `RunCompactionActionExecutor`, `HoodieCompactor` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from pyhudi.config.actions import COMMIT, COMPACTION, DELTA_COMMIT, Instant
from pyhudi.config.compaction_options import CompactionOptions
from pyhudi.schema import commit_schema
from pyhudi.services.archiving import since_compaction
from pyhudi.services.compaction import (
    CompactionWork,
    reason_to_wait,
    row_compaction,
    slices_of_plan,
)
from pyhudi.services.compaction_strategy import choose, is_due
from pyhudi.services.result import ServiceResult
from pyhudi.services.service_runner import ServiceRequest, run_service
from pyhudi.slices.compaction_plan import CompactTask, compaction_plan
from pyhudi.slices.file_groups import (
    pending_clusterings,
    pending_compactions,
    pending_log_compactions,
)
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.missing_files import complete_view
from pyhudi.slices.slice_builder import GroupKey
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline, serde
from pyhudi.txn.planned_services import NewPlan, PlannedTransaction

_SERVICE = "compact"
_MANY_LOGS = "pyhudi.overgrown"
"""Extra metadata of an automatic plan for slices with too many log files."""
_MAX_LOGS = 24
_MAX_LOGS_PER_MIB = 2
"""Log files that a slice may have, plus those for each MiB of its base file."""


@dataclass(frozen=True)
class CompactionRequest(ServiceRequest):
    """The arguments of one call."""

    partitions: tuple[str, ...] | None = None
    """Partitions of a new plan; None for all."""
    groups: frozenset[GroupKey] | None = None
    """File groups of a new plan; None for all."""
    instant: str | None = None
    """The pending compaction to execute, even if Hudi may be executing it; no other one."""
    due_only: bool = False
    """Plan only if the trigger fires."""
    many_logs_in_commits: int | None = None
    """Plan only slices with too many log files (`has_too_many_log_files`), in the partitions of
    this number of newest commits, and execute only pending plans for such slices."""
    memory_limit: int | None = None
    """Bytes for log records of all concurrent tasks; None for no limit."""


def compact_table(
    table: TableSnapshot, options: CompactionOptions, request: CompactionRequest
) -> ServiceResult:
    """Execute pending plans, then create a new one and execute it.

    table: recovered from failed writers. Raises `UnsupportedTableFeature` for an unsupported merge
    rule, `CorruptTable` for missing or truncated files of a plan, `CommitConflict` if another
    writer executes a plan, each with the plan left for later.
    """
    work = row_compaction(memory_limit=request.memory_limit)
    force = request.instant is not None
    request = replace(request, schedule=request.schedule and not force)
    plan = partial(_new_plan, options, request, work)
    execute = partial(_execute, work, force=force)
    pending = _pending(table, request)
    return run_service(table, _SERVICE, COMPACTION, request, pending, plan, execute)


def preview_compaction(
    table: TableSnapshot, options: CompactionOptions, request: CompactionRequest
) -> ServiceResult:
    """Return what `compact_table` would do. Nothing changes."""
    pending = _pending(table, request) if request.execute else []
    slices = [slice_ for instant in pending for slice_ in _read_plan(table, instant)]
    if request.schedule and request.instant is None:
        now = table.generator.next()
        if not request.due_only or is_due(table.timeline, options, now):
            slices += _choose_slices(table, options, request, now).slices
    return ServiceResult(_SERVICE, tuple(pending), dry_run=True).reading(slices)


def _pending(table: TableSnapshot, request: CompactionRequest) -> list[str]:
    if request.instant is not None:
        return [request.instant]
    return [
        compaction.requested
        for compaction in table.timeline.pending_compactions
        if request.many_logs_in_commits is None
        or _MANY_LOGS in _extra_metadata(table.timeline.plan(compaction))
    ]


def is_last_for_overgrown(timeline: Timeline) -> bool:
    """Return whether the last compaction was that of slices with too many log files."""
    last = next(reversed(timeline.filter_completed(COMMIT)), None)
    return last is not None and _MANY_LOGS in _extra_metadata(timeline.plan(last))


def _extra_metadata(plan: Mapping[str, Any] | None) -> Mapping[str, str]:
    return (plan or {}).get("extraMetadata") or {}


# --- planning -------------------------------------------------------------------------------------


def _new_plan(
    options: CompactionOptions,
    request: CompactionRequest,
    work: CompactionWork[CompactTask],
    table: TableSnapshot,
    instant: str,
) -> NewPlan:
    if request.due_only and not is_due(table.timeline, options, instant):
        return None, ""
    reason = reason_to_wait(table)
    choice = _choose_slices(table, options, request, instant)
    if reason or not choice.slices:
        return None, reason
    # Raises for records that cannot be merged, before the plan exists.
    work.tasks(table, instant, choice.slices)
    extra = {} if request.many_logs_in_commits is None else {_MANY_LOGS: "true"}
    record = compaction_plan(choice.slices, {**work.extra, **extra}, choice.missing)
    return serde.encode_container("HoodieCompactionPlan", record, table.clock), ""


@dataclass(frozen=True)
class _SliceChoice:
    slices: list[FileSlice]
    missing: tuple[str, ...]
    """Partitions with skipped slices, which Hudi's next plan must check."""


def _choose_slices(
    table: TableSnapshot, options: CompactionOptions, request: CompactionRequest, instant: str
) -> _SliceChoice:
    timeline = table.timeline
    planned = {
        **pending_compactions(timeline),
        **pending_clusterings(timeline),
        # A log compaction that completes after the compaction would restore superseded records.
        **pending_log_compactions(timeline),
    }
    partitions, unchecked = None, set[str]()
    if request.many_logs_in_commits is not None:
        newest = timeline.filter_completed(DELTA_COMMIT)[-request.many_logs_in_commits :]
        partitions = _partitions_of(timeline, newest)
        unchecked = _partitions_with_logs(table) - partitions
    view = complete_view(table, partitions)
    free = [slice_ for slice_ in view.slices() if slice_.logs and slice_.key not in planned]
    candidates = (
        free
        if partitions is None
        else [slice_ for slice_ in free if has_too_many_log_files(slice_)]
    )
    if request.groups is not None:
        candidates = [slice_ for slice_ in free if slice_.key in request.groups]
    today = datetime.strptime(instant[:8], "%Y%m%d").date()  # noqa: DTZ007 - the table's own zone
    # Listing all partitions takes a while; the search for many log files is in known ones.
    listed = partitions if request.partitions is None else request.partitions
    partitions_to_choose = view.partitions if listed is None else listed
    chosen = choose(candidates, options, today, partitions_to_choose)
    selected = {slice_.key for slice_ in chosen}
    skipped = {slice_.partition for slice_ in free if slice_.key not in selected}
    return _SliceChoice(chosen, tuple(sorted(skipped | unchecked)))


def has_too_many_log_files(slice_: FileSlice) -> bool:
    """Return whether a slice has enough log files to slow down writers, too.

    The limit grows with the size of the base file, which has to be rewritten.
    """
    base = slice_.base.size if slice_.base is not None else 0
    return len(slice_.logs) >= _MAX_LOGS + _MAX_LOGS_PER_MIB * (base >> 20)


def _partitions_with_logs(table: TableSnapshot) -> set[str]:
    """Return partitions that may have log files: written since the last compaction, or skipped.

    Without a compaction, all partitions, since earlier commits may be archived.
    """
    timeline = table.timeline
    last = next(reversed(timeline.filter_completed(COMMIT)), None)
    if last is None:
        return set(FileSystemView(table.storage, table.config, timeline).partitions)
    skipped = set((timeline.plan(last) or {}).get("missingSchedulePartitions") or ())
    return skipped | _partitions_of(timeline, since_compaction(timeline))


def _partitions_of(timeline: Timeline, commits: Iterable[Instant]) -> set[str]:
    return {
        path
        for commit in commits
        for path in timeline.commit_metadata(commit).partition_to_write_stats
    }


# --- execution ------------------------------------------------------------------------------------


def _execute(
    work: CompactionWork[CompactTask],
    result: ServiceResult,
    table: TableSnapshot,
    instant: str,
    *,
    force: bool,
) -> ServiceResult:
    slices = [
        slice_
        for slice_ in _read_plan(table, instant)
        # Hudi 1.0 plans groups whose log files are not committed yet.
        if slice_.base is not None or slice_.logs
    ]
    planned = work.as_planned(table, instant, slices)
    schema = commit_schema.commit_schema(planned.schema, table.config)
    tasks = work.tasks(planned, instant, slices)
    with PlannedTransaction(table, "COMPACT", instant, COMPACTION, force=force) as txn:
        label = work.label
        stats = table.engine.run(work.write, tasks, stage=txn.stage, label=label)
        txn.commit(stats, schema)
    return result.reading(slices).writing(instant, stats)


def _read_plan(table: TableSnapshot, instant: str) -> list[FileSlice]:
    pending = table.timeline.find(instant, COMPACTION)
    plan = None if pending is None else table.timeline.plan(pending)
    return slices_of_plan(table, instant, plan or {})
