"""Clustering of a data table concurrently with writers: joins small files, sorts rows.

It is planned under the lock and executed by its plan, by any writer. Writes to file groups of a
pending plan are rejected (`write/file_assignment.py`). A plan whose groups were changed all the
same is cancelled, since executing it would lose rows. Sources: `ClusteringPlanActionExecutor`,
`SparkSortAndSizeExecutionStrategy`, `BaseCommitActionExecutor` (Hudi 0.15.0, 1.0.2, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

from pyhudi.config.actions import (
    CLUSTERING,
    COMMIT,
    COMPACTION,
    DELTA_COMMIT,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    Instant,
)
from pyhudi.config.clustering_options import SORT_COLUMNS, ClusteringOptions, Layout
from pyhudi.config.file_names import are_buckets
from pyhudi.config.formatting import names_text
from pyhudi.config.lock_options import LockOptions
from pyhudi.config.log import logger
from pyhudi.errors import ConfigError, UnsupportedTableFeature, retryable_conflict, without_hint
from pyhudi.input.conform import data_schema
from pyhudi.schema import commit_schema
from pyhudi.services import bucket_resize
from pyhudi.services.clustering_strategy import (
    EarlierClusterings,
    GroupChoice,
    choose,
    select_partitions,
)
from pyhudi.services.clustering_validation import check_unchanged, find_change_since
from pyhudi.services.result import ServiceResult
from pyhudi.services.service_runner import ServiceRequest, run_service
from pyhudi.slices.clustering_plan import (
    OPERATION,
    ClusteringPlan,
    clustering_record,
    has_early_log_files,
    new_buckets,
    order_of_plan,
    read_plan,
)
from pyhudi.slices.clustering_task import ClusterTask, cluster_group, cluster_tasks
from pyhudi.slices.file_groups import pending_clusterings
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.hashing_metadata import has_consistent_hashing
from pyhudi.slices.missing_files import complete_view
from pyhudi.slices.read_tasks import ScanRequest, merge_rule, slice_tasks
from pyhudi.slices.service_plans import as_planned
from pyhudi.slices.slice_builder import groups_of_plan
from pyhudi.suggestions import case_hint
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline, serde
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat
from pyhudi.txn.conflicts import ConcurrentCommits, check_no_active_writer_in
from pyhudi.txn.planned_services import NewPlan, PlannedTransaction, cancel_plan
from pyhudi.txn.write_target import write_options, write_target

_SERVICE = "cluster"
_MEMORY = 1024 * 1024 * 1024


@dataclass(frozen=True)
class ClusteringRequest(ServiceRequest):
    """The arguments of one call."""

    due_only: bool = False
    """Plan only if enough was written since the last clustering."""
    layout: Layout | None = None
    """The layout of sorted rows; None for that of the plan, or the options, or linear."""
    memory_limit: int = _MEMORY
    """Bytes for rows and log records of all concurrent tasks."""


def cluster_table(
    table: TableSnapshot, options: ClusteringOptions, request: ClusteringRequest
) -> ServiceResult:
    """Execute pending plans, then create a new one and execute it.

    table: recovered from failed writers. Raises `UnsupportedTableFeature` for a table or a plan
    that pyhudi does not cluster, `CorruptTable` for missing or truncated files of a plan,
    `CommitConflict` if another writer executes a plan or was faster. A failure or an interrupt
    cancels the plan of this call, which would block writers to its file groups. Other plans stay.
    """
    _check(table, options)
    earlier = [plan.requested for plan in pending(table.timeline)]

    def execute(result: ServiceResult, current: TableSnapshot, instant: str) -> ServiceResult:
        with nullcontext() if instant in earlier else _cancel_on_failure(current, instant):
            return _execute_or_cancel(result, current, instant, options, request)

    plan = partial(_new_plan, options, request)
    return run_service(table, _SERVICE, _action(table), request, earlier, plan, execute)


@contextmanager
def _cancel_on_failure(table: TableSnapshot, instant: str) -> Iterator[None]:
    """Cancel a new plan if the block fails.

    The plan stays if another writer executes it, or if the table can no longer be changed.
    """
    try:
        yield
    except BaseException:
        try:
            cancel_plan(table, instant, _action(table))
        except Exception as error:  # noqa: BLE001 - the caller gets the failure that came first
            cause = without_hint(error)
            logger.info(
                "%s: the clustering %s stays planned: %s", table.storage.uri, instant, cause
            )
        raise


def preview_clustering(
    table: TableSnapshot, options: ClusteringOptions, request: ClusteringRequest
) -> ServiceResult:
    """Return what `cluster_table` would do. Nothing changes."""
    _check(table, options)
    instants = pending(table.timeline) if request.execute else []
    slices = [
        slice_ for instant in instants for slice_ in _read_plan(table, instant).inputs.values()
    ]
    is_plan_due = not request.due_only or is_due(table.timeline, options)
    if request.schedule and is_plan_due and (request.execute or not pending(table.timeline)):
        chosen = _choose_groups(table, options, request, table.generator.next())
        slices += [slice_ for group in chosen.groups for slice_ in group.slices]
    times = tuple(instant.requested for instant in instants)
    return ServiceResult(_SERVICE, times, dry_run=True).reading(slices)


def pending(timeline: Timeline) -> list[Instant]:
    """Return the pending clusterings, oldest first."""
    candidates = timeline.pending(CLUSTERING, REPLACE_COMMIT)
    return [
        instant
        for instant in candidates
        if instant.action == CLUSTERING or timeline.is_clustering(instant)
    ]


def _check(table: TableSnapshot, options: ClusteringOptions) -> None:
    """Reject a table whose buckets cannot be resized, and unknown columns."""
    bucket_resize.check_table(table)
    unknown = [name for name in options.sort_columns if name not in table.columns.names]
    if unknown:
        msg = f"sort_by, or {SORT_COLUMNS}, has {unknown[0]!r}, which is not a column of the table"
        is_field = unknown[0].split(".", 1)[0] in table.columns.names
        hint = "Sort by whole columns: a field of a struct does not sort a clustering."
        names = data_schema(table.columns).names
        columns = case_hint(unknown, names) or f"Its columns are {names_text(names)}."
        raise ConfigError(msg, hint=hint if is_field else columns)


# --- planning -------------------------------------------------------------------------------------


def _new_plan(
    options: ClusteringOptions, request: ClusteringRequest, table: TableSnapshot, instant: str
) -> NewPlan:
    if request.due_only and not is_due(table.timeline, options):
        return None, ""
    reason = _reason_to_wait(table)
    chosen = _choose_groups(table, options, request, instant)
    if reason or not chosen.groups:
        return None, reason
    # Raises for unreadable slices before the plan exists.
    slices = [slice_ for group in chosen.groups for slice_ in group.slices]
    slice_tasks(table, ScanRequest(tuple(table.columns.names)), slices, merge_rule(table))
    record = clustering_record(
        table.storage.native.uri,
        chosen.groups,
        options.sort_columns,
        request.layout or options.layout,
        chosen.missing,
    )
    return serde.encode_container("HoodieRequestedReplaceMetadata", record, table.clock), ""


def _reason_to_wait(table: TableSnapshot) -> str:
    """Return why no plan can be created now; "" if one can."""
    for plan in pending(table.timeline):
        return f"no clustering is scheduled while {plan} is pending"
    return bucket_resize.reason_to_wait(table) if has_consistent_hashing(table.storage) else ""


def _action(table: TableSnapshot) -> str:
    return CLUSTERING if table.config.layout.has_clustering_action else REPLACE_COMMIT


def is_due(timeline: Timeline, options: ClusteringOptions) -> bool:
    """Return whether enough commits were completed since the last clustering was planned."""
    commits = timeline.filter_completed(COMMIT, DELTA_COMMIT, REPLACE_COMMIT)
    commits_since = list(
        takewhile(lambda commit: _clustering_plan_of(timeline, commit) is None, reversed(commits))
    )
    return len(commits_since) >= options.max_commits


def _clustering_plan_of(timeline: Timeline, commit: Instant) -> Mapping[str, object] | None:
    """Return the plan of a completed clustering; None for another commit."""
    if commit.action != REPLACE_COMMIT:
        return None
    if timeline.completes_in_names and timeline.files(commit)[0].action != CLUSTERING:
        return None
    record = timeline.plan(commit) or {}
    return None if record.get("clusteringPlan") is None else record


def _choose_groups(
    table: TableSnapshot, options: ClusteringOptions, request: ClusteringRequest, instant: str
) -> GroupChoice:
    timeline = table.timeline
    planned = {
        key
        for other in timeline.pending(COMPACTION, LOG_COMPACTION)
        for key in groups_of_plan(timeline.plan(other))
    }
    planned |= set(pending_clusterings(timeline))
    view = complete_view(table)
    slices = view.slices()
    selected = select_partitions(view.partitions, options, hour=int(instant[8:10]))
    free = [slice_ for slice_ in slices if slice_.key not in planned]
    if has_consistent_hashing(table.storage):
        return bucket_resize.choose_buckets(table, free, options, selected)
    if are_buckets({slice_.file_id for slice_ in slices}):
        msg = "hoodie.index.type is BUCKET: rows of a bucket stay in its file group"
        raise UnsupportedTableFeature(msg, hint="Use compact() for log files of this table.")
    order = (options.sort_columns, request.layout or options.layout)
    earlier = (
        _find_finished_clusterings(timeline, free)
        if options.sort_columns
        else EarlierClusterings({})
    )
    write = write_options(table)
    return choose(free, options, write, earlier, order, selected)


def _find_finished_clusterings(
    timeline: Timeline, slices: Iterable[FileSlice]
) -> EarlierClusterings:
    """Return the clusterings that wrote the base files of slices."""
    bases = {slice_.base_instant for slice_ in slices}
    commits = (
        commit for commit in timeline.filter_completed(REPLACE_COMMIT) if commit.requested in bases
    )
    records = ((commit.requested, _clustering_plan_of(timeline, commit)) for commit in commits)
    return EarlierClusterings(
        {time: order_of_plan(record) for time, record in records if record is not None}
    )


# --- execution ------------------------------------------------------------------------------------


def _execute_or_cancel(
    result: ServiceResult,
    table: TableSnapshot,
    time: str,
    options: ClusteringOptions,
    request: ClusteringRequest,
) -> ServiceResult:
    """Execute a plan, or cancel it if its file groups were changed after it was planned.

    A plan of this call is checked, too: the writer may have stalled and planned on an old snapshot.
    """
    instant = next((plan for plan in pending(table.timeline) if plan.requested == time), None)
    if instant is None:
        msg = f"the clustering {time} is not pending any more"
        raise retryable_conflict(msg)
    record = table.timeline.plan(instant)
    if record is None or record.get("clusteringPlan") is None:
        # A stalled writer may have started a plan that was executed already; it will undo that.
        return result.skipping(f'{instant} has no plan: rollback("{time}") cancels it')
    changed = find_change_since(table, instant) or bucket_resize.find_changed_hashing(
        table, _read_plan(table, instant)
    )
    if changed and has_early_log_files(table.storage, record):
        return result.skipping(
            f"{instant} stays as it is: {changed}, and other writers have written to its buckets"
        )
    if changed:
        cancel_plan(table, instant.requested, instant.action)
        return result.skipping(f"{instant} was cancelled: {changed} since it was planned")
    plan = _read_plan(table, instant)
    stats = _execute(table, instant, plan, options, request)
    return result.reading(plan.inputs.values()).writing(instant.requested, stats)


def _read_plan(table: TableSnapshot, instant: Instant) -> ClusteringPlan:
    return read_plan(table.storage, table.config, table.timeline.plan(instant) or {})


def _execute(
    table: TableSnapshot,
    instant: Instant,
    plan: ClusteringPlan,
    options: ClusteringOptions,
    request: ClusteringRequest,
) -> list[WriteStat]:
    inputs = plan.inputs.keys()
    children = new_buckets(table.timeline.plan(instant))

    def check(concurrent: ConcurrentCommits, _: CommitMetadata) -> None:
        check_unchanged(inputs, children, concurrent)
        if LockOptions.of(table.options).prefers_writers:
            check_no_active_writer_in(concurrent.table, inputs)

    planned = as_planned(table, instant.requested, [*plan.inputs.values()])
    schema = commit_schema.commit_schema(planned.schema, table.config)
    tasks = _tasks(planned, instant, plan, options, request)
    with PlannedTransaction(table, OPERATION, instant.requested, instant.action, check) as txn:
        label = "cluster files"
        if plan.resized or has_consistent_hashing(table.storage):
            stats = bucket_resize.write_buckets(table, plan, tasks, txn.stage, label)
            bucket_resize.store_new_hashing_metadata(txn, table, plan)
        else:
            results = table.engine.run(cluster_group, tasks, stage=txn.stage, label=label)
            stats = [stat for written in results for stat in written]
        txn.commit(stats, schema, plan.replaced)
    return stats


def _tasks(
    table: TableSnapshot,
    instant: Instant,
    plan: ClusteringPlan,
    options: ClusteringOptions,
    request: ClusteringRequest,
) -> list[ClusterTask]:
    target = write_target(table, write_options(table), instant.requested)
    return cluster_tasks(
        table,
        target,
        plan.groups,
        # Hudi leaves rows unsorted if a column is missing, so the order is not guaranteed.
        sort_columns=tuple(name for name in plan.sort_columns if name in table.columns.names),
        layout=request.layout or plan.layout or options.layout or "linear",
        target_bytes=options.target_bytes,
        memory_limit=request.memory_limit // table.engine.tasks_per_process,
    )
