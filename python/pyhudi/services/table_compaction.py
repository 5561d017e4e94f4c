"""Compaction of a data table concurrently with writers: planned under the lock, then executed.

Pending plans of any writer, including Apache Hudi, are executed first. Writers that append to a
slice under compaction go on (`txn/conflicts.py` defines which abort). Sources:
`ScheduleCompactionActionExecutor`, `RunCompactionActionExecutor`, `HoodieCompactor` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pyhudi.config.actions import COMMIT, COMPACTION, Instant
from pyhudi.config.compaction_options import CompactionOptions
from pyhudi.schema import commit_schema
from pyhudi.services.archiving import since_compaction
from pyhudi.services.compaction import CompactionWork, slices_of_plan, waits_for
from pyhudi.services.compaction_strategy import choose, is_due
from pyhudi.services.result import ServiceResult
from pyhudi.services.row_compaction import row_compaction
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
from pyhudi.txn.planned_services import PlannedTransaction, after_commit, schedule

_SERVICE = "compact"
_OVERGROWN = "pyhudi.overgrown"
"""Extra metadata of a plan that no user has requested."""
_LOGS_MOST = 24
_LOGS_FOR_A_MIB = 2
"""Log files that a slice may have, and for each MiB of its base file."""


@dataclass(frozen=True)
class CompactionRequest:
    """The arguments of one call."""

    partitions: tuple[str, ...] | None = None
    """Partitions of a new plan; None for all."""
    groups: frozenset[GroupKey] | None = None
    """As `partitions`, with file groups."""
    schedule: bool = True
    """Create a new plan."""
    execute: bool = True
    """Execute plans, including pending ones."""
    instant: str | None = None
    """The only pending compaction to execute, even if Hudi may be executing it."""
    due_only: bool = False
    """Plan only if the trigger fires."""
    overgrown_since: int | None = None
    """A new plan takes only slices with far too many log files (`has_too_many_log_files`), from
    the partitions of this number of newest commits; of the pending plans only those made for such
    slices are executed."""
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
    began_ms = table.clock.now_ms()
    work = row_compaction(memory_limit=request.memory_limit)
    result = ServiceResult(_SERVICE)
    force = request.instant is not None
    for instant in _pending(table, request) if request.execute else ():
        result = _execute(result, table.reload(), instant, work, force=force)
        table = after_commit(table)
    if request.schedule and request.instant is None:
        planned, waits = _schedule(table, options, request, work)
        if waits:
            result = replace(result, left=(*result.left, waits))
        if planned and request.execute:
            result = _execute(result, table.reload(), planned, work)
        elif planned:
            result = replace(result, scheduled=(planned,))
    return replace(result, duration_ms=table.clock.now_ms() - began_ms)


def preview_compaction(
    table: TableSnapshot, options: CompactionOptions, request: CompactionRequest
) -> ServiceResult:
    """Return what `compact_table` would do. Nothing changes."""
    pending = _pending(table, request) if request.execute else []
    slices = [slice_ for instant in pending for slice_ in _read_plan(table, instant)]
    if request.schedule and request.instant is None:
        now = table.generator.next()
        if not request.due_only or is_due(table.timeline, options, now):
            slices += _choice(table, options, request, now).slices
    return ServiceResult(_SERVICE, tuple(pending), dry_run=True).reading(slices)


def _pending(table: TableSnapshot, request: CompactionRequest) -> list[str]:
    if request.instant is not None:
        return [request.instant]
    return [
        compaction.requested
        for compaction in table.timeline.pending_compactions
        if request.overgrown_since is None or _OVERGROWN in _said(table.timeline.plan(compaction))
    ]


def _said(plan: Mapping[str, Any] | None) -> Mapping[str, str]:
    return (plan or {}).get("extraMetadata") or {}


# --- planning -------------------------------------------------------------------------------------


def _schedule(
    table: TableSnapshot,
    options: CompactionOptions,
    request: CompactionRequest,
    work: CompactionWork[CompactTask],
) -> tuple[str | None, str]:
    """Return the new plan's instant, or None, and the reason for which it has to wait, if any."""
    waits = ""

    def plan(now: TableSnapshot, instant: str) -> bytes | None:
        nonlocal waits
        if request.due_only and not is_due(now.timeline, options, instant):
            return None
        waits = waits_for(now)
        chosen = _choice(now, options, request, instant)
        if waits or not chosen.slices:
            return None
        # Raises for records that cannot be merged, before the plan exists.
        work.tasks(now, instant, chosen.slices)
        own = {} if request.overgrown_since is None else {_OVERGROWN: "true"}
        record = compaction_plan(chosen.slices, {**work.extra, **own}, chosen.missing)
        return serde.encode_container("HoodieCompactionPlan", record, now.clock)

    return schedule(table, COMPACTION, plan), waits


@dataclass(frozen=True)
class _Chosen:
    slices: list[FileSlice]
    missing: tuple[str, ...]
    """Partitions with skipped slices, which the next plan of Hudi has to check."""


def _choice(
    table: TableSnapshot, options: CompactionOptions, request: CompactionRequest, instant: str
) -> _Chosen:
    timeline = table.timeline
    planned = {
        **pending_compactions(timeline),
        **pending_clusterings(timeline),
        # A log compaction that ends above the compaction would restore superseded records.
        **pending_log_compactions(timeline),
    }
    partitions, unchecked = None, set[str]()
    if request.overgrown_since is not None:
        newest = since_compaction(timeline)[-request.overgrown_since :]
        partitions = _partitions_of(timeline, newest)
        unchecked = _waiting(table) - partitions
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
    among = view.partitions if request.partitions is None else request.partitions
    chosen = choose(candidates, options, today, among)
    selected = {slice_.key for slice_ in chosen}
    skipped = {slice_.partition for slice_ in free if slice_.key not in selected}
    return _Chosen(chosen, tuple(sorted(skipped | unchecked)))


def has_too_many_log_files(slice_: FileSlice) -> bool:
    """Return whether a slice has so many log files that they slow down even writers.

    The limit grows with the file that has to be rewritten.
    """
    base = slice_.base.size if slice_.base is not None else 0
    return len(slice_.logs) >= _LOGS_MOST + _LOGS_FOR_A_MIB * (base >> 20)


def _waiting(table: TableSnapshot) -> set[str]:
    """Return partitions that may have log files: written since the last compaction, or skipped.

    All partitions if there was none, since archiving keeps few of the commits before the first one.
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
    result: ServiceResult,
    table: TableSnapshot,
    instant: str,
    work: CompactionWork[CompactTask],
    *,
    force: bool = False,
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
        label = f"{work.label} of {instant}"
        stats = table.engine.run(work.write, tasks, stage=txn.stage, label=label)
        txn.commit(stats, schema)
    return result.reading(slices).writing(instant, stats)


def _read_plan(table: TableSnapshot, instant: str) -> list[FileSlice]:
    pending = table.timeline.find(instant, COMPACTION)
    plan = None if pending is None else table.timeline.plan(pending)
    return slices_of_plan(table, instant, plan or {})
