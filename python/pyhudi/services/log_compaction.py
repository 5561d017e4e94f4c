"""Log compaction: many small log files of a file group come to one, without its base file.

Planned and carried out beside writers as a compaction is. The log files stay until a compaction
and a clean take them; readers pass over their blocks for those of the new one, which lists them. A
plan is dead once a compaction was planned after it, as with Hudi, and is taken off the timeline.
Sources: `ScheduleCompactionActionExecutor`, `LogCompactionExecutionHelper`, `HoodieCompactor`
(Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from pyhudi.config.actions import COMMIT, COMPACTION, DELTA_COMMIT, LOG_COMPACTION, Instant
from pyhudi.config.log_compaction_options import LogCompactionOptions
from pyhudi.errors import UnsupportedTableFeature, retryable_conflict
from pyhudi.schema import commit_schema
from pyhudi.services.archiving import since_compaction
from pyhudi.services.compaction import waits_for, with_logs
from pyhudi.services.result import ServiceResult
from pyhudi.slices.compaction_plan import CompactTask, compact_tasks, compaction_plan
from pyhudi.slices.file_groups import (
    pending_clusterings,
    pending_compactions,
    pending_log_compactions,
)
from pyhudi.slices.file_size_checks import check_sizes, checks_sizes
from pyhudi.slices.file_slice import FileSlice, LogFile
from pyhudi.slices.log_compaction_task import compact_logs
from pyhudi.slices.missing_files import whole_view
from pyhudi.slices.service_plans import as_planned, resolve_planned_slices
from pyhudi.slices.slice_builder import GroupKey
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline, serde
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.txn.conflicts import ConcurrentCommits
from pyhudi.txn.planned_services import PlannedTransaction, after_commit, cancel_plan, schedule
from pyhudi.txn.write_target import write_options, write_target

OPERATION = "LOG_COMPACT"
_SERVICE = "log_compact"
_EXECUTOR = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"
"""Hudi up to 1.0 takes a plan without it for a compaction's."""


@dataclass(frozen=True)
class LogCompactionRequest:
    """What is asked of one call."""

    partitions: tuple[str, ...] | None = None
    """A new plan takes slices of these alone; None for all."""
    schedule: bool = True
    """Plans what can be compacted."""
    execute: bool = True
    """Carries plans out, those that were pending too."""


def compact_log_files(
    table: TableSnapshot, options: LogCompactionOptions, asked: LogCompactionRequest
) -> ServiceResult:
    """Carries out what is pending, then plans anew and carries that out.

    table: cleaned up after dead writers. Raises `UnsupportedTableFeature` where records are merged
    column by column, `CorruptTable` for files of a plan that are gone or cut, `CommitConflict`
    where another writer is at a plan.
    """
    began_ms = table.clock.now_ms()
    result = ServiceResult(_SERVICE)
    for pending in table.timeline.pending(LOG_COMPACTION) if asked.execute else ():
        now = table.reload()
        if is_dead(now.timeline, pending.requested):
            cancel_plan(now, pending.requested, LOG_COMPACTION)
        else:
            result = _execute(result, now, pending.requested)
            table = after_commit(table)
    planned, waits = _schedule(table, options, asked) if asked.schedule else (None, "")
    if waits:
        result = replace(result, left=(*result.left, waits))
    if planned and asked.execute:
        result = _execute(result, table.reload(), planned)
    elif planned:
        result = replace(result, scheduled=(planned,))
    return replace(result, duration_ms=table.clock.now_ms() - began_ms)


def preview_log_compaction(
    table: TableSnapshot, options: LogCompactionOptions, asked: LogCompactionRequest
) -> ServiceResult:
    """What `compact_log_files` would do. Nothing changes."""
    pending = [
        found.requested
        for found in (table.timeline.pending(LOG_COMPACTION) if asked.execute else ())
        if not is_dead(table.timeline, found.requested)
    ]
    slices = [slice_ for instant in pending for slice_ in _read_plan(table, instant)]
    slices += _choice(table, options, asked.partitions) if asked.schedule else []
    return ServiceResult(_SERVICE, tuple(pending), dry_run=True).reading(slices)


def is_due(timeline: Timeline, options: LogCompactionOptions) -> bool:
    """Whether enough was written since the last compaction of either kind."""
    if timeline.pending(LOG_COMPACTION):
        return True
    last = max((instant.requested for instant, _ in _log_compactions(timeline)), default="")
    since = [delta for delta in since_compaction(timeline) if delta.requested > last]
    return len(since) >= options.least


def is_dead(timeline: Timeline, instant: str) -> bool:
    """Whether a plan cannot be carried out any more: a compaction may have taken its log files."""
    others = (*timeline.filter_completed(COMMIT), *timeline.pending(COMPACTION))
    return any(other.requested > instant for other in others)


# --- planning -------------------------------------------------------------------------------------


def _schedule(
    table: TableSnapshot, options: LogCompactionOptions, asked: LogCompactionRequest
) -> tuple[str | None, str]:
    """The new plan's instant, if there is one, and what it has to wait for, if it has to."""
    waits = ""

    def plan(now: TableSnapshot, instant: str) -> bytes | None:
        nonlocal waits
        waits = waits_for(now)
        slices = _choice(now, options, asked.partitions)
        if waits or not slices:
            return None
        # Raises for what cannot be merged, before there is a plan.
        _tasks(now, instant, slices)
        record = {
            **compaction_plan(slices),
            "preserveHoodieMetadata": True,
            "strategy": {"compactorClassName": _EXECUTOR, "strategyParams": {}, "version": 1},
        }
        return serde.encode_container("HoodieCompactionPlan", record, now.clock)

    return schedule(table, LOG_COMPACTION, plan), waits


def _choice(
    table: TableSnapshot, options: LogCompactionOptions, partitions: tuple[str, ...] | None
) -> list[FileSlice]:
    timeline = table.timeline
    planned = {
        **pending_compactions(timeline),
        **pending_clusterings(timeline),
        **pending_log_compactions(timeline),
    }
    done = _newest_compacted_logs(timeline)
    return [
        slice_
        for slice_ in with_logs(whole_view(table, partitions))
        if slice_.key not in planned and _worth(slice_.logs, done.get(slice_.key)) >= options.least
    ]


def _worth(logs: Sequence[LogFile], last: str | None) -> int:
    """How many log files a reader has to merge: those that one stands for do not count."""
    for place, log in enumerate(logs):
        if log.name == last:
            return len(logs) - place
    return len(logs)


def _newest_compacted_logs(timeline: Timeline) -> dict[GroupKey, str]:
    """The newest log file of each file group that others came to."""
    return {
        (stat.partition_path or "", stat.file_id): (stat.path or "").rsplit("/", 1)[-1]
        for _, metadata in _log_compactions(timeline)
        for stat in metadata.write_stats
    }


def _log_compactions(timeline: Timeline) -> Iterator[tuple[Instant, CommitMetadata]]:
    for instant in timeline.filter_completed(DELTA_COMMIT):
        if any(file.action == LOG_COMPACTION for file in timeline.files(instant)):
            yield instant, timeline.commit_metadata(instant)


# --- carrying out ---------------------------------------------------------------------------------


def _execute(result: ServiceResult, table: TableSnapshot, instant: str) -> ServiceResult:
    slices = [slice_ for slice_ in _read_plan(table, instant) if slice_.logs]
    planned = as_planned(table, instant, slices)
    schema = commit_schema.commit_schema(planned.schema, table.config)
    tasks = _tasks(planned, instant, slices)
    check = _check_no_compaction
    try:
        with PlannedTransaction(table, OPERATION, instant, LOG_COMPACTION, check) as txn:
            label = f"compact log files of {instant}"
            found = table.engine.run(compact_logs, tasks, stage=txn.stage, label=label)
            stats = list(chain.from_iterable(found))
            txn.commit(stats, schema)
    except UnsupportedTableFeature:
        # Its file groups would wait for ever.
        cancel_plan(table, instant, LOG_COMPACTION)
        raise
    return result.reading(slices).writing(instant, stats)


def _check_no_compaction(since: ConcurrentCommits, metadata: CommitMetadata) -> None:
    mine = {(stat.partition_path or "", stat.file_id) for stat in metadata.write_stats}
    for other, theirs in since.commits:
        if theirs.operation_type == "COMPACT" and mine & {
            (stat.partition_path or "", stat.file_id) for stat in theirs.write_stats
        }:
            raise retryable_conflict(f"{other} compacted the same file groups concurrently")


def _read_plan(table: TableSnapshot, instant: str) -> list[FileSlice]:
    pending = table.timeline.find(instant, LOG_COMPACTION)
    plan = table.timeline.plan(pending) if pending is not None else None
    operations = (plan or {}).get("operations") or ()
    return resolve_planned_slices(table.storage, table.config, operations)


def _tasks(table: TableSnapshot, instant: str, slices: Sequence[FileSlice]) -> list[CompactTask]:
    if checks_sizes(table.options):
        check_sizes(table.timeline, slices)
    target = write_target(table, write_options(table), instant)
    return compact_tasks(table, target, slices)
