"""Compaction of a data table beside its writers: planned under the lock, carried out by its plan.

A plan may be anybody's: pending ones, of Apache Hudi too, are carried out first. Writers that
append to a slice under compaction go on (`txn/conflicts.py` says which give way). Sources:
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
from pyhudi.slices.missing_files import whole_view
from pyhudi.slices.slice_builder import GroupKey
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline, serde
from pyhudi.txn.planned_services import PlannedTransaction, after_commit, schedule

_SERVICE = "compact"
_OVERGROWN = "pyhudi.overgrown"
"""In the extra metadata of a plan that no user has asked for."""
_LOGS_MOST = 24
_LOGS_FOR_A_MIB = 2
"""Log files that a slice may have, and for each MiB of its base file."""


@dataclass(frozen=True)
class CompactionRequest:
    """What is asked of one call."""

    partitions: tuple[str, ...] | None = None
    """A new plan takes slices of these alone; None for all."""
    groups: frozenset[GroupKey] | None = None
    """As `partitions`, of these file groups alone."""
    schedule: bool = True
    """Plans what can be compacted."""
    execute: bool = True
    """Carries plans out, those that were pending too."""
    instant: str | None = None
    """The one pending compaction to carry out, and nothing else: also where Hudi may be at it."""
    due_only: bool = False
    """Plans only where the trigger says that it is time."""
    overgrown_since: int | None = None
    """A new plan takes slices with far too many log files (`has_too_many_log_files`) alone, out of
    the partitions of so many newest commits; of the pending ones those are carried out that were
    made so."""
    memory_limit: int | None = None
    """Bytes for log records of all tasks at once; None for no limit."""


def compact_table(
    table: TableSnapshot, options: CompactionOptions, asked: CompactionRequest
) -> ServiceResult:
    """Carries out what is pending, then plans anew and carries that out.

    table: cleaned up after dead writers. Raises `UnsupportedTableFeature` for a merge rule that
    pyhudi lacks, `CorruptTable` for files of a plan that are gone or cut, `CommitConflict` where
    another writer is at a plan, each with the plan left for later.
    """
    began_ms = table.clock.now_ms()
    work = row_compaction(memory_limit=asked.memory_limit)
    result = ServiceResult(_SERVICE)
    force = asked.instant is not None
    for instant in _pending(table, asked) if asked.execute else ():
        result = _execute(result, table.reload(), instant, work, force=force)
        table = after_commit(table)
    if asked.schedule and asked.instant is None:
        planned, waits = _schedule(table, options, asked, work)
        if waits:
            result = replace(result, left=(*result.left, waits))
        if planned and asked.execute:
            result = _execute(result, table.reload(), planned, work)
        elif planned:
            result = replace(result, scheduled=(planned,))
    return replace(result, duration_ms=table.clock.now_ms() - began_ms)


def preview_compaction(
    table: TableSnapshot, options: CompactionOptions, asked: CompactionRequest
) -> ServiceResult:
    """What `compact_table` would do. Nothing changes."""
    pending = _pending(table, asked) if asked.execute else []
    slices = [slice_ for instant in pending for slice_ in _read_plan(table, instant)]
    if asked.schedule and asked.instant is None:
        now = table.generator.next()
        if not asked.due_only or is_due(table.timeline, options, now):
            slices += _choice(table, options, asked, now).slices
    return ServiceResult(_SERVICE, tuple(pending), dry_run=True).reading(slices)


def _pending(table: TableSnapshot, asked: CompactionRequest) -> list[str]:
    if asked.instant is not None:
        return [asked.instant]
    return [
        found.requested
        for found in table.timeline.pending_compactions
        if asked.overgrown_since is None or _OVERGROWN in _said(table.timeline.plan(found))
    ]


def _said(plan: Mapping[str, Any] | None) -> Mapping[str, str]:
    return (plan or {}).get("extraMetadata") or {}


# --- planning -------------------------------------------------------------------------------------


def _schedule(
    table: TableSnapshot,
    options: CompactionOptions,
    asked: CompactionRequest,
    work: CompactionWork[CompactTask],
) -> tuple[str | None, str]:
    """The new plan's instant, if there is one, and what it has to wait for, if it has to."""
    waits = ""

    def plan(now: TableSnapshot, instant: str) -> bytes | None:
        nonlocal waits
        if asked.due_only and not is_due(now.timeline, options, instant):
            return None
        waits = waits_for(now)
        chosen = _choice(now, options, asked, instant)
        if waits or not chosen.slices:
            return None
        # Raises for what cannot be merged, before there is a plan.
        work.tasks(now, instant, chosen.slices)
        own = {} if asked.overgrown_since is None else {_OVERGROWN: "true"}
        record = compaction_plan(chosen.slices, {**work.extra, **own}, chosen.missing)
        return serde.encode_container("HoodieCompactionPlan", record, now.clock)

    return schedule(table, COMPACTION, plan), waits


@dataclass(frozen=True)
class _Chosen:
    slices: list[FileSlice]
    missing: tuple[str, ...]
    """Partitions with slices that are left, which the next plan of Hudi's has to look at."""


def _choice(
    table: TableSnapshot, options: CompactionOptions, asked: CompactionRequest, instant: str
) -> _Chosen:
    timeline = table.timeline
    planned = {
        **pending_compactions(timeline),
        **pending_clusterings(timeline),
        # One that ended above the compaction would bring back what came after its log files.
        **pending_log_compactions(timeline),
    }
    looked_at, beside = None, set[str]()
    if asked.overgrown_since is not None:
        newest = since_compaction(timeline)[-asked.overgrown_since :]
        looked_at = _partitions_of(timeline, newest)
        beside = _waiting(table) - looked_at
    view = whole_view(table, looked_at)
    free = [slice_ for slice_ in view.slices() if slice_.logs and slice_.key not in planned]
    wanted = (
        free if looked_at is None else [slice_ for slice_ in free if has_too_many_log_files(slice_)]
    )
    if asked.groups is not None:
        wanted = [slice_ for slice_ in free if slice_.key in asked.groups]
    today = datetime.strptime(instant[:8], "%Y%m%d").date()  # noqa: DTZ007 - the table's own zone
    among = view.partitions if asked.partitions is None else asked.partitions
    chosen = choose(wanted, options, today, among)
    taken = {slice_.key for slice_ in chosen}
    left = {slice_.partition for slice_ in free if slice_.key not in taken}
    return _Chosen(chosen, tuple(sorted(left | beside)))


def has_too_many_log_files(slice_: FileSlice) -> bool:
    """Whether a slice has so many log files that even writers feel it.

    The more, the larger the file that has to be written anew for it.
    """
    base = slice_.base.size if slice_.base is not None else 0
    return len(slice_.logs) >= _LOGS_MOST + _LOGS_FOR_A_MIB * (base >> 20)


def _waiting(table: TableSnapshot) -> set[str]:
    """Partitions that may have log files: written to since the last compaction, or left by it.

    All where none is known, since archiving keeps few of the commits before the first one.
    """
    timeline = table.timeline
    last = next(reversed(timeline.filter_completed(COMMIT)), None)
    if last is None:
        return set(FileSystemView(table.storage, table.config, timeline).partitions)
    left = set((timeline.plan(last) or {}).get("missingSchedulePartitions") or ())
    return left | _partitions_of(timeline, since_compaction(timeline))


def _partitions_of(timeline: Timeline, commits: Iterable[Instant]) -> set[str]:
    return {
        path
        for commit in commits
        for path in timeline.commit_metadata(commit).partition_to_write_stats
    }


# --- carrying out ---------------------------------------------------------------------------------


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
        # Hudi 1.0 plans groups whose log files do not count yet.
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
