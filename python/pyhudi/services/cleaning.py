"""Cleaning: removal of file slices that newer slices replaced long enough ago.

It is the same for a data table and a metadata table. The plan is computed concurrently with
writers, and a critical section creates the requested file. Files are deleted concurrently with
writers, too. A second critical section syncs the commit participants and completes the clean. After
a failure it is pending, and any writer executes it again. Sources: `CleanPlanActionExecutor`,
`CleanActionExecutor` (Hudi 0.15.0, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyhudi.clock import early_now_ms
from pyhudi.config.actions import CLEAN, COMMIT_ACTIONS, Instant, State
from pyhudi.config.file_names import is_partition_metadata
from pyhudi.config.log import warn
from pyhudi.config.retention_options import CleanOptions
from pyhudi.engine.local import choose_engine
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import AfterCommitWarning, retryable_conflict, without_hint
from pyhudi.services.clean_plan import (
    PLAN_VERSION,
    CleanPlan,
    clean_plan,
    is_log_append,
    partitions_since,
)
from pyhudi.services.clean_policy import Retention, hours_before, retention
from pyhudi.services.result import ServiceResult
from pyhudi.slices.cleaned_files import files_of_plan
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.storage.storage import Storage
from pyhudi.table.participants import (
    Clean,
    CommitParticipant,
    prefetch_commit_reads,
    prefetch_publication_check,
)
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline, serde
from pyhudi.timeline.commit_metadata import NO_PREVIOUS_COMMIT, CommitMetadata
from pyhudi.timeline.time_travel import first_incomplete_commit
from pyhudi.txn import conflicts
from pyhudi.txn.pending_instant import PendingInstant

_FILES_PER_TASK = 200


# --- data tables ----------------------------------------------------------------------------------


def clean_table(table: TableSnapshot, options: CleanOptions) -> ServiceResult:
    """Execute the pending cleans, then a new one by the options.

    table: the current snapshot. Raises `CommitConflict` during a restore, and `LockTimeout`.
    """
    started = table.clock.ticks_ms()
    instants = complete_pending(table)
    if table.timeline.pending(CLEAN):
        table = table.reload()
    pending_clean, plan = _schedule(table, options)
    if pending_clean is not None:
        instants.append(
            _execute(pending_clean, plan.record(pending_clean.table), is_inflight=False)
        )
    return _result(table, instants, plan, started)


def preview_clean(
    table: TableSnapshot, options: CleanOptions, view: FileSystemView | None = None
) -> ServiceResult:
    """Return what `clean_table` would plan now. view: of all files, if the caller has one."""
    started = table.clock.ticks_ms()
    plan = _plan(table, options, view) or CleanPlan(Retention())
    pending = table.timeline.pending(CLEAN)
    skipped = tuple(f"{clean.requested}: a pending clean must run first" for clean in pending)
    return replace(_result(table, [], plan, started), left=skipped, dry_run=True)


def _result(
    table: TableSnapshot, instants: Sequence[str], plan: CleanPlan, started: int
) -> ServiceResult:
    sizes = [size for names in plan.files.values() for size in names.values()]
    return ServiceResult(
        "clean",
        instants=tuple(instants),
        file_groups=plan.file_groups,
        files_removed=len(sizes),
        bytes_removed=sum(sizes),
        duration_ms=table.clock.ticks_ms() - started,
    )


def is_due(table: TableSnapshot, options: CleanOptions) -> bool:
    """Return whether a clean may be due after a commit. Reads the timeline only."""
    timeline = table.timeline
    if timeline.pending(CLEAN):
        return True
    if commits_since_clean(timeline) < options.after_commits:
        return False
    retained = _retention(table, options)
    if retained is None:
        return False
    partitions = partitions_since(timeline, retained) if options.incremental else None
    return not _has_no_effect(timeline, retained) if partitions is None else bool(partitions)


def commits_since_clean(timeline: Timeline) -> int:
    """Return the number of commits requested since the last clean, or of all."""
    last = max((clean.requested for clean in timeline.filter_completed(CLEAN)), default="")
    return sum(commit.requested > last for commit in timeline.commits)


def _retention(table: TableSnapshot, options: CleanOptions) -> Retention | None:
    start = hours_before(early_now_ms(table.clock), options.hours, table.config.timezone)
    return retention(table.timeline, options, start)


def _plan(
    table: TableSnapshot, options: CleanOptions, view: FileSystemView | None = None
) -> CleanPlan | None:
    """Return the plan, None if there is nothing to remove."""
    retained = _retention(table, options)
    if retained is None:
        return None
    partitions = partitions_since(table.timeline, retained) if options.incremental else None
    plan = clean_plan(table, retained, partitions, view and view.with_change_logs())
    return plan if plan.files else None


def _has_no_effect(timeline: Timeline, retained: Retention) -> bool:
    """Return whether no commit before the earliest retained one superseded a slice.

    If rows are only added, or appended to log files, no clean records an earliest retained commit,
    so each check would list the whole table. A later clean removes what this check misses.
    """
    if retained.earliest_retained is None:
        return False
    earliest = retained.earliest_retained.requested
    earlier = [commit for commit in timeline.commits if commit.requested < earliest]
    return bool(earlier) and not any(map(_supersedes, map(timeline.commit_metadata, earlier)))


def _supersedes(metadata: CommitMetadata) -> bool:
    # Hudi's compactions of log files alone name no previous commit.
    return bool(metadata.partition_to_replace_file_ids) or any(
        (stat.prev_commit != NO_PREVIOUS_COMMIT or metadata.compacted) and not is_log_append(stat)
        for stat in metadata.write_stats
    )


def _schedule(
    table: TableSnapshot, options: CleanOptions
) -> tuple[PendingInstant | None, CleanPlan]:
    """Plan and request a clean; return no instant if there is nothing to remove."""
    nothing = CleanPlan(Retention())
    plan = _plan(table, options)
    if plan is None:
        return None, nothing
    with table.lock_manager.critical_section():
        current = table.with_timeline(conflicts.reload_timeline(table))
        if current.timeline.pending(CLEAN):
            return None, nothing
        if _is_outdated(table.timeline, current.timeline):
            plan = _plan(current, options)
            if plan is None:
                return None, nothing
        began_ms = table.clock.now_ms()
        pending_clean = PendingInstant(current, table.generator.next(), CLEAN)
        pending_clean.request_planned(
            _encode("HoodieCleanerPlan", plan.record(current), table), current.timeline
        )
        table.lock_manager.wait_out_clock_skew(began_ms)
    return pending_clean, plan


def _is_outdated(planned_on: Timeline, current: Timeline) -> bool:
    """Return whether a plan may be out of date. Commits that only added files do not affect it."""
    new = set(current.instants) - set(planned_on.instants)
    rolled_back = {commit.requested for commit in planned_on.commits} - {
        commit.requested for commit in current.commits
    }
    return bool(rolled_back) or any(
        instant.action not in COMMIT_ACTIONS or current.is_clustering(instant) for instant in new
    )


# --- all tables -----------------------------------------------------------------------------------


def clean(
    table: TableSnapshot,
    earliest_retained: Instant,
    instant: str,
    partitions: Collection[str] | None = None,
) -> str | None:
    """Remove slices that no query from the earliest commit to retain on reads; None without any.

    earliest_retained: see `oldest_retained`. instant: that of the clean. partitions: None for all.
    No other writer may be active.
    """
    plan = clean_plan(table, Retention(earliest_retained=earliest_retained), partitions)
    if not plan.files:
        return None
    record = plan.record(table)
    action = PendingInstant(table, instant, CLEAN)
    action.request_planned(_encode("HoodieCleanerPlan", record, table), table.timeline)
    return _execute(action, record, is_inflight=False)


def complete_pending(table: TableSnapshot) -> list[str]:
    """Execute the pending cleans, oldest first, by their plans; return their instants.

    A clean without a plan is removed, as in `CleanActionExecutor`: its writer failed before it
    wrote the plan.
    """
    completed = []
    for pending in table.timeline.pending(CLEAN):
        plan = _plan_of(table.timeline, pending)
        if plan is None:
            _remove_without_plan(table, pending)
            continue
        action = PendingInstant(table, pending.requested, CLEAN)
        completed.append(_execute(action, plan, is_inflight=pending.state is State.INFLIGHT))
    return completed


def _plan_of(timeline: Timeline, clean: Instant) -> dict[str, Any] | None:
    """Return the plan. Up to table version 6 the inflight file has a copy."""
    return timeline.plan(clean) or timeline.inflight(clean)


def _remove_without_plan(table: TableSnapshot, clean: Instant) -> None:
    """Remove a clean without a plan, after a check in a critical section."""
    with table.lock_manager.critical_section():
        timeline = table.reload().timeline
        current = timeline.find(clean.requested, CLEAN)
        table.lock_manager.check_held()
        if current is not None and not current.is_completed and _plan_of(timeline, current) is None:
            PendingInstant(table, clean.requested, CLEAN).remove()


def _execute(action: PendingInstant, plan: Mapping[str, Any], *, is_inflight: bool) -> str:
    """Execute a clean and return the instant of its completed file."""
    table = action.table
    started = table.clock.ticks_ms()
    files = files_of_plan(plan)
    if not is_inflight:
        _begin(action, plan)
    paths = [f"{path}/{name}".lstrip("/") for path, names in files.items() for name in names]
    tasks = [
        _DeleteTask(table.storage, tuple(paths[start : start + _FILES_PER_TASK]))
        for start in range(0, len(paths), _FILES_PER_TASK)
    ]
    engine = choose_engine(table.engine, table.storage, files=len(paths))
    engine.run(_delete, tasks, label="delete files")
    with table.lock_manager.critical_section():
        return _complete(action, plan, files, started)


def _begin(action: PendingInstant, plan: Mapping[str, Any]) -> None:
    has_plan = action.table.config.version.clean_inflight_has_plan
    action.begin(_encode("HoodieCleanerPlan", plan, action.table) if has_plan else b"")


@dataclass(frozen=True)
class _DeleteTask:
    storage: Storage
    paths: tuple[str, ...]


def _delete(task: _DeleteTask, attempt: Attempt) -> None:  # noqa: ARG001
    """Delete files; missing ones are ignored."""
    task.storage.delete_all(task.paths)


def _complete(
    action: PendingInstant,
    plan: Mapping[str, Any],
    files: Mapping[str, Sequence[str]],
    started: int,
) -> str:
    """Sync the commit participants with the clean and complete it, within a critical section.

    Returns its instant.
    """
    table = action.table
    with prefetch_commit_reads(table, CommitMetadata({})):
        latest = table.reload()
        conflicts.check_may_begin(latest.timeline)
        table.generator.observe(latest.timeline)
        current = latest.timeline.find(action.time, CLEAN)
        if current is None:
            msg = f"the clean {action.time} was rolled back by another writer"
            raise retryable_conflict(msg)
        if current.is_completed:
            return action.time
        if latest.timeline.of_same_time(action.time, CLEAN):
            action = _move_to_new_time(action, plan)
        emptied = _remove_emptied(latest, plan)
        clean = Clean(action.time, files, emptied)
        with prefetch_publication_check(table) as drop_old_listing:
            for participant in table.participants:
                participant.before_clean(latest, clean)
            took_ms = table.clock.ticks_ms() - started
            record = _record(action.time, plan, files, emptied, took_ms)
            began_ms = table.clock.now_ms()
            table.lock_manager.check_held()
            drop_old_listing()
            action.complete(_encode("HoodieCleanMetadata", record, table))
    for participant in table.participants:
        _run_after_complete(participant, latest, clean)
    table.lock_manager.wait_out_clock_skew(began_ms)
    return action.time


def _move_to_new_time(action: PendingInstant, plan: Mapping[str, Any]) -> PendingInstant:
    """Move a clean to another time, since another action has the same time in the metadata table.

    The clean cannot abort, because its files are deleted.
    """
    retimed = replace(action, time=action.table.generator.next())
    retimed.request(_encode("HoodieCleanerPlan", plan, action.table))
    _begin(retimed, plan)
    # Markers of this time belong to the other action.
    action.withdraw_inflight()
    action.withdraw_request()
    return retimed


def _run_after_complete(participant: CommitParticipant, table: TableSnapshot, clean: Clean) -> None:
    try:
        participant.after_complete(table, clean)
    except Exception as error:  # noqa: BLE001 - the clean is complete
        msg = (
            f"{table.storage.uri}: cleaned, but a later step failed and will be retried: "
            f"{without_hint(error)}"
        )
        warn(msg, AfterCommitWarning)


def _remove_emptied(latest: TableSnapshot, plan: Mapping[str, Any]) -> list[str]:
    """Remove planned partitions that are empty, and return them.

    Removes none while a write is pending, which may create its first file there.
    """
    if first_incomplete_commit(latest.timeline) is not None:
        return []
    removed = []
    for partition in plan.get("partitionsToBeDeleted") or ():
        folders, files = latest.storage.list_dir(partition)
        # Hadoop writes checksums on local disks.
        only_metadata = all(
            is_partition_metadata(file.name)
            or (file.name.startswith(".") and file.name.endswith(".crc"))
            for file in files
        )
        if partition and not folders and only_metadata:
            latest.storage.delete_dir(partition)
            removed.append(partition)
    return removed


# --- records --------------------------------------------------------------------------------------


def _record(
    instant: str,
    plan: Mapping[str, Any],
    files: Mapping[str, Sequence[str]],
    emptied: Sequence[str],
    took_ms: int,
) -> dict[str, Any]:
    retained = plan.get("earliestInstantToRetain") or {}
    return {
        "startCleanTime": instant,
        "timeTakenInMillis": took_ms,
        "totalFilesDeleted": sum(map(len, files.values())),
        "earliestCommitToRetain": retained.get("timestamp") or "",
        "lastCompletedCommitTimestamp": plan.get("lastCompletedCommitTimestamp") or "",
        "partitionMetadata": {
            partition: {
                "partitionPath": partition,
                "policy": plan.get("policy") or Retention().policy,
                "deletePathPatterns": list(files.get(partition, ())),
                "successDeleteFiles": list(files.get(partition, ())),
                "failedDeleteFiles": [],
                "isPartitionDeleted": partition in emptied,
            }
            for partition in (*files, *(path for path in emptied if path not in files))
        },
        "version": PLAN_VERSION,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": dict(plan.get("extraMetadata") or {}),
    }


def _encode(name: str, record: Mapping[str, Any], table: TableSnapshot) -> bytes:
    return serde.encode_container(name, record, table.clock)
