"""Log compaction: merges many small log files of a file group into one, without its base file.

It is planned and executed concurrently with writers, like a compaction. The new block lists the
merged ones, and readers skip these; the files stay until a compaction and a clean remove them. As
in Hudi, a plan is obsolete once a later compaction is planned, and is cancelled. Sources:
`ScheduleCompactionActionExecutor`, `LogCompactionExecutionHelper`, `HoodieCompactor` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from pyhudi.config.actions import COMMIT, COMPACTION, DELTA_COMMIT, LOG_COMPACTION, Instant
from pyhudi.config.compaction_options import LogCompactionOptions
from pyhudi.config.file_names import file_name_of
from pyhudi.errors import UnsupportedTableFeature, retryable_conflict
from pyhudi.schema import commit_schema
from pyhudi.services.archiving import since_compaction
from pyhudi.services.compaction import reason_to_wait, row_tasks, slices_with_logs
from pyhudi.services.result import ServiceResult
from pyhudi.services.service_runner import ServiceRequest, run_service
from pyhudi.slices.compaction_plan import compaction_plan
from pyhudi.slices.compaction_task import compact_logs
from pyhudi.slices.file_groups import (
    pending_clusterings,
    pending_compactions,
    pending_log_compactions,
)
from pyhudi.slices.file_slice import FileSlice, LogFile
from pyhudi.slices.missing_files import complete_view
from pyhudi.slices.service_plans import as_planned, resolve_planned_slices
from pyhudi.slices.slice_builder import GroupKey
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline, serde
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.txn.conflicts import ConcurrentCommits
from pyhudi.txn.planned_services import NewPlan, PlannedTransaction, cancel_plan

OPERATION = "LOG_COMPACT"
_SERVICE = "log_compact"
_EXECUTOR = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"
"""Without it, Hudi up to 1.0 reads the plan as that of a compaction."""


@dataclass(frozen=True)
class LogCompactionRequest(ServiceRequest):
    """The arguments of one call."""

    partitions: tuple[str, ...] | None = None
    """Partitions of a new plan; None for all."""


def compact_log_files(
    table: TableSnapshot, options: LogCompactionOptions, request: LogCompactionRequest
) -> ServiceResult:
    """Execute pending plans, then create a new one and execute it.

    table: recovered from failed writers. Raises `UnsupportedTableFeature` if records are merged
    column by column, `CorruptTable` for missing or truncated files of a plan, `CommitConflict` if
    another writer executes a plan.
    """
    pending = [plan.requested for plan in table.timeline.pending(LOG_COMPACTION)]

    def execute(result: ServiceResult, current: TableSnapshot, instant: str) -> ServiceResult:
        if instant in pending and is_obsolete(current.timeline, instant):
            cancel_plan(current, instant, LOG_COMPACTION)
            return result
        return _execute(result, current, instant)

    plan = partial(_new_plan, options, request)
    return run_service(table, _SERVICE, LOG_COMPACTION, request, pending, plan, execute)


def preview_log_compaction(
    table: TableSnapshot, options: LogCompactionOptions, request: LogCompactionRequest
) -> ServiceResult:
    """Return what `compact_log_files` would do. Nothing changes."""
    pending = [
        plan.requested
        for plan in (table.timeline.pending(LOG_COMPACTION) if request.execute else ())
        if not is_obsolete(table.timeline, plan.requested)
    ]
    slices = [slice_ for instant in pending for slice_ in _read_plan(table, instant)]
    slices += _choose_slices(table, options, request.partitions) if request.schedule else []
    return ServiceResult(_SERVICE, tuple(pending), dry_run=True).reading(slices)


def is_due(timeline: Timeline, options: LogCompactionOptions) -> bool:
    """Return whether enough was written since the last compaction or log compaction."""
    if timeline.pending(LOG_COMPACTION):
        return True
    last = max((instant.requested for instant, _ in _log_compactions(timeline)), default="")
    deltas = [delta for delta in since_compaction(timeline) if delta.requested > last]
    return len(deltas) >= options.min_log_files


def is_obsolete(timeline: Timeline, instant: str) -> bool:
    """Return whether a plan is obsolete: a compaction may have taken its log files."""
    compactions = (*timeline.filter_completed(COMMIT), *timeline.pending(COMPACTION))
    return any(other.requested > instant for other in compactions)


# --- planning -------------------------------------------------------------------------------------


def _new_plan(
    options: LogCompactionOptions,
    request: LogCompactionRequest,
    table: TableSnapshot,
    instant: str,
) -> NewPlan:
    reason = reason_to_wait(table)
    slices = _choose_slices(table, options, request.partitions)
    if reason or not slices:
        return None, reason
    # Raises for records that cannot be merged, before the plan exists.
    row_tasks(table, instant, slices)
    record = {
        **compaction_plan(slices),
        "preserveHoodieMetadata": True,
        "strategy": {"compactorClassName": _EXECUTOR, "strategyParams": {}, "version": 1},
    }
    return serde.encode_container("HoodieCompactionPlan", record, table.clock), ""


def _choose_slices(
    table: TableSnapshot, options: LogCompactionOptions, partitions: tuple[str, ...] | None
) -> list[FileSlice]:
    timeline = table.timeline
    planned = {
        **pending_compactions(timeline),
        **pending_clusterings(timeline),
        **pending_log_compactions(timeline),
    }
    compacted = _newest_compacted_logs(timeline)
    return [
        slice_
        for slice_ in slices_with_logs(complete_view(table, partitions))
        if slice_.key not in planned
        and _count_new_logs(slice_.logs, compacted.get(slice_.key)) >= options.min_log_files
    ]


def _count_new_logs(logs: Sequence[LogFile], last: str | None) -> int:
    """Return the number of log files from the last compacted one on."""
    for index, log in enumerate(logs):
        if log.name == last:
            return len(logs) - index
    return len(logs)


def _newest_compacted_logs(timeline: Timeline) -> dict[GroupKey, str]:
    """Return the newest compacted log file of each file group."""
    return {
        (stat.partition_path or "", stat.file_id): file_name_of(stat.path)
        for _, metadata in _log_compactions(timeline)
        for stat in metadata.write_stats
    }


def _log_compactions(timeline: Timeline) -> Iterator[tuple[Instant, CommitMetadata]]:
    for instant in timeline.filter_completed(DELTA_COMMIT):
        if any(file.action == LOG_COMPACTION for file in timeline.files(instant)):
            yield instant, timeline.commit_metadata(instant)


# --- execution ------------------------------------------------------------------------------------


def _execute(result: ServiceResult, table: TableSnapshot, instant: str) -> ServiceResult:
    slices = [slice_ for slice_ in _read_plan(table, instant) if slice_.logs]
    planned = as_planned(table, instant, slices)
    schema = commit_schema.commit_schema(planned.schema, table.config)
    tasks = row_tasks(planned, instant, slices)
    check = _check_no_compaction
    try:
        with PlannedTransaction(table, OPERATION, instant, LOG_COMPACTION, check) as txn:
            label = "compact log files"
            results = table.engine.run(compact_logs, tasks, stage=txn.stage, label=label)
            stats = list(chain.from_iterable(results))
            txn.commit(stats, schema)
    except UnsupportedTableFeature:
        # Otherwise the plan would block its file groups forever.
        cancel_plan(table, instant, LOG_COMPACTION)
        raise
    return result.reading(slices).writing(instant, stats)


def _check_no_compaction(concurrent: ConcurrentCommits, metadata: CommitMetadata) -> None:
    own_groups = {(stat.partition_path or "", stat.file_id) for stat in metadata.write_stats}
    for other, other_metadata in concurrent.commits:
        if other_metadata.operation_type == "COMPACT" and own_groups & {
            (stat.partition_path or "", stat.file_id) for stat in other_metadata.write_stats
        }:
            raise retryable_conflict(f"{other} compacted the same file groups concurrently")


def _read_plan(table: TableSnapshot, instant: str) -> list[FileSlice]:
    pending = table.timeline.find(instant, LOG_COMPACTION)
    plan = table.timeline.plan(pending) if pending is not None else None
    operations = (plan or {}).get("operations") or ()
    return resolve_planned_slices(table.storage, table.config, operations)
