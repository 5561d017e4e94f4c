"""Cleaning: file slices that newer ones have replaced for long enough go.

What a clean does is the same for a data table and for a metadata table. It is planned beside
writers; in a section it gets its instant and its plan, files go beside writers again, and in a
second section the companions are brought up to it and it is complete. A writer that dies leaves a
pending clean, which any writer carries out again. Sources: `CleanPlanActionExecutor`,
`CleanActionExecutor` (Hudi 0.15.0, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyhudi.config.actions import CLEAN, COMMIT_ACTIONS, Instant, State
from pyhudi.config.clean_options import CleanOptions
from pyhudi.config.file_names import is_partition_metadata
from pyhudi.config.log import warn
from pyhudi.engine.local import choose_engine
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import AfterCommitWarning, retryable_conflict, without_hint
from pyhudi.services.clean_plan import FORM, CleanPlan, clean_plan, partitions_since
from pyhudi.services.clean_policy import Retention, hours_before, retention
from pyhudi.services.result import ServiceResult
from pyhudi.slices.cleaned_files import files_of_plan
from pyhudi.storage.storage import Storage
from pyhudi.table.participants import Clean, CommitParticipant
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline, serde
from pyhudi.timeline.commit_metadata import NO_PREVIOUS_COMMIT, CommitMetadata
from pyhudi.txn import conflicts
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.recovery import find_failed_writes
from pyhudi.txn.transaction import prefetch_commit_reads

_FILES_OF_A_TASK = 200


# --- a data table's -------------------------------------------------------------------------------


def clean_table(table: TableSnapshot, options: CleanOptions) -> ServiceResult:
    """Carries out the cleans that are pending, then what the options say.

    table: as it is now. Raises `CommitConflict` where a restore has begun, `LockTimeout`.
    """
    started = table.clock.now_ms()
    instants = complete_pending(table)
    if table.timeline.pending(CLEAN):
        table = table.reload()
    opened, plan = _schedule(table, options)
    if opened is not None:
        instants.append(_carry_out(opened, plan.record(opened.table), begun=False))
    return _result(table, instants, plan, started)


def preview_clean(table: TableSnapshot, options: CleanOptions) -> ServiceResult:
    """What `clean_table` would plan now."""
    started = table.clock.now_ms()
    plan = _plan(table, options) or CleanPlan(Retention())
    pending = table.timeline.pending(CLEAN)
    left = tuple(f"{clean.requested}: a pending clean must run first" for clean in pending)
    return replace(_result(table, [], plan, started), left=left, dry_run=True)


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
        duration_ms=table.clock.now_ms() - started,
    )


def is_due(table: TableSnapshot, options: CleanOptions) -> bool:
    """Whether there may be something to remove after a commit, as the timeline alone tells."""
    timeline = table.timeline
    if timeline.pending(CLEAN):
        return True
    if commits_since_clean(timeline) < options.after_commits:
        return False
    stays = _retention(table, options)
    if stays is None:
        return False
    known = partitions_since(timeline, stays) if options.incremental else None
    return not _has_no_effect(timeline, stays) if known is None else bool(known)


def commits_since_clean(timeline: Timeline) -> int:
    """How many commits were requested since the last clean, all where there was none."""
    last = max((clean.requested for clean in timeline.filter_completed(CLEAN)), default="")
    return sum(commit.requested > last for commit in timeline.commits)


def _retention(table: TableSnapshot, options: CleanOptions) -> Retention | None:
    since = hours_before(table.clock.now_ms(), options.hours, table.config.timezone)
    return retention(table.timeline, options, since)


def _plan(table: TableSnapshot, options: CleanOptions) -> CleanPlan | None:
    """What there is to remove, None where there is nothing."""
    stays = _retention(table, options)
    if stays is None:
        return None
    known = partitions_since(table.timeline, stays) if options.incremental else None
    plan = clean_plan(table, stays, known)
    return plan if plan.files else None


def _has_no_effect(timeline: Timeline, stays: Retention) -> bool:
    """Whether the commit that the horizon passed last left all slices the newest of their groups.

    Where only rows are added there is never a clean that would tell where to look, and each commit
    would list the whole table for nothing. What is overlooked here goes with a later clean.
    """
    if stays.horizon is None:
        return False
    until = stays.horizon.requested
    passed = [commit for commit in timeline.commits if commit.requested < until]
    return bool(passed) and not _supersedes(timeline.commit_metadata(passed[-1]))


def _supersedes(metadata: CommitMetadata) -> bool:
    return bool(metadata.partition_to_replace_file_ids) or any(
        stat.prev_commit != NO_PREVIOUS_COMMIT or stat.log_version is not None
        for stat in metadata.write_stats
    )


def _schedule(
    table: TableSnapshot, options: CleanOptions
) -> tuple[PendingInstant | None, CleanPlan]:
    """Plans beside writers and requests the clean; none where there is nothing to remove."""
    nothing = CleanPlan(Retention())
    plan = _plan(table, options)
    if plan is None:
        return None, nothing
    with table.guard.critical_section():
        now = table.with_timeline(conflicts.reload_timeline(table))
        if now.timeline.pending(CLEAN):
            return None, nothing
        if _overtaken(table.timeline, now.timeline):
            plan = _plan(now, options)
            if plan is None:
                return None, nothing
        began_ms = table.clock.now_ms()
        opened = PendingInstant(now, table.generator.next(), CLEAN)
        opened.request_planned(_encode("HoodieCleanerPlan", plan.record(now), table), now.timeline)
        table.guard.wait_out_clock_skew(began_ms)
    return opened, plan


def _overtaken(seen: Timeline, now: Timeline) -> bool:
    """Whether a plan may not hold any more. What was only written since it does not touch."""
    new = set(now.instants) - set(seen.instants)
    gone = {commit.requested for commit in seen.commits} - {
        commit.requested for commit in now.commits
    }
    return bool(gone) or any(
        instant.action not in COMMIT_ACTIONS or now.is_clustering(instant) for instant in new
    )


# --- any table's ----------------------------------------------------------------------------------


def clean(
    table: TableSnapshot, horizon: Instant, instant: str, partitions: Collection[str] | None = None
) -> str | None:
    """Removes what no query as of a commit or later reads; None where there is nothing.

    horizon: that commit, as `oldest_retained` gives it. instant: of the clean. partitions: in
    these alone, None for all. Nobody else may be at work.
    """
    plan = clean_plan(table, Retention(horizon=horizon), partitions)
    if not plan.files:
        return None
    record = plan.record(table)
    action = PendingInstant(table, instant, CLEAN)
    action.request_planned(_encode("HoodieCleanerPlan", record, table), table.timeline)
    return _carry_out(action, record, begun=False)


def complete_pending(table: TableSnapshot) -> list[str]:
    """Carries out the cleans that are pending, oldest first, by their plans; their instants.

    One that has no plan is taken away, as `CleanActionExecutor` does: its writer died as it
    requested it.
    """
    completed = []
    for pending in table.timeline.pending(CLEAN):
        plan = _plan_of(table.timeline, pending)
        if plan is None:
            _take_away(table, pending)
            continue
        action = PendingInstant(table, pending.requested, CLEAN)
        completed.append(_carry_out(action, plan, begun=pending.state is State.INFLIGHT))
    return completed


def _plan_of(timeline: Timeline, clean: Instant) -> dict[str, Any] | None:
    """The plan, of which the inflight file has a copy up to table version 6."""
    return timeline.plan(clean) or timeline.inflight(clean)


def _take_away(table: TableSnapshot, clean: Instant) -> None:
    """Looks once more, within a section, where nobody else can be about to write the plan."""
    with table.guard.critical_section():
        now = table.reload().timeline
        found = now.find(clean.requested, CLEAN)
        table.guard.check_held()
        if found is not None and not found.is_completed and _plan_of(now, found) is None:
            PendingInstant(table, clean.requested, CLEAN).remove()


def _carry_out(action: PendingInstant, plan: Mapping[str, Any], *, begun: bool) -> str:
    """Gives the instant that it is complete as."""
    table = action.table
    started = table.clock.now_ms()
    files = files_of_plan(plan)
    if not begun:
        _begin(action, plan)
    paths = [f"{path}/{name}".lstrip("/") for path, names in files.items() for name in names]
    tasks = [
        _DeleteTask(table.storage, tuple(paths[at : at + _FILES_OF_A_TASK]))
        for at in range(0, len(paths), _FILES_OF_A_TASK)
    ]
    engine = choose_engine(table.engine, files=len(paths))
    engine.run(_delete, tasks, label=f"clean {action.time}")
    with table.guard.critical_section():
        return _complete(action, plan, files, started)


def _begin(action: PendingInstant, plan: Mapping[str, Any]) -> None:
    repeats = action.table.config.version.clean_inflight_has_plan
    action.begin(_encode("HoodieCleanerPlan", plan, action.table) if repeats else b"")


@dataclass(frozen=True)
class _DeleteTask:
    storage: Storage
    paths: tuple[str, ...]


def _delete(task: _DeleteTask, attempt: Attempt) -> None:  # noqa: ARG001
    """Removes files; what is gone already is fine."""
    task.storage.delete_all(task.paths)


def _complete(
    action: PendingInstant,
    plan: Mapping[str, Any],
    files: Mapping[str, Sequence[str]],
    started: int,
) -> str:
    """Within a section: brings the companions up to the clean, and completes it.

    Gives its instant.
    """
    table = action.table
    with prefetch_commit_reads(table, CommitMetadata({})):
        now = table.reload()
        conflicts.check_may_begin(now.timeline)
        table.generator.observe(now.timeline)
        found = now.timeline.find(action.time, CLEAN)
        if found is None:
            msg = f"the clean {action.time} was rolled back by another writer"
            raise retryable_conflict(msg)
        if found.is_completed:
            return action.time
        if now.timeline.of_same_time(action.time, CLEAN):
            action = _at_another_time(action, plan)
        gone = _remove_emptied(now, plan)
        for companion in table.companions:
            companion.before_clean(now, Clean(action.time, files, gone))
    took_ms = table.clock.now_ms() - started
    record = _record(action.time, plan, files, gone, took_ms)
    began_ms = table.clock.now_ms()
    table.guard.check_held()
    action.complete(_encode("HoodieCleanMetadata", record, table))
    for companion in table.companions:
        _follow(companion, now)
    table.guard.wait_out_clock_skew(began_ms)
    return action.time


def _at_another_time(action: PendingInstant, plan: Mapping[str, Any]) -> PendingInstant:
    """Moves a clean whose time another action has, as the metadata table tells them by it.

    What it removed is gone, so it cannot give way.
    """
    moved = replace(action, time=action.table.generator.next())
    moved.request(_encode("HoodieCleanerPlan", plan, action.table))
    _begin(moved, plan)
    # Markers of this time are the other's.
    action.withdraw_beginning()
    action.withdraw_request()
    return moved


def _follow(companion: CommitParticipant, table: TableSnapshot) -> None:
    try:
        companion.after_complete(table)
    except Exception as error:  # noqa: BLE001 - the clean is complete
        msg = (
            f"{table.storage.uri}: cleaned, but a later step failed and will be retried: "
            f"{without_hint(error)}"
        )
        warn(msg, AfterCommitWarning)


def _remove_emptied(now: TableSnapshot, plan: Mapping[str, Any]) -> list[str]:
    """Removes the partitions that were planned so and hold nothing; which are gone.

    In none while a write is pending, which may be about to begin its first file there.
    """
    if find_failed_writes(now.timeline):
        return []
    gone = []
    for partition in plan.get("partitionsToBeDeleted") or ():
        folders, left = now.storage.list_dir(partition)
        if partition and not folders and all(_belongs_to_folder(file.name) for file in left):
            now.storage.delete_dir(partition)
            gone.append(partition)
    return gone


def _belongs_to_folder(name: str) -> bool:
    """What is left of a partition without data; Hadoop's checksums stay behind on local disks."""
    return is_partition_metadata(name) or (name.startswith(".") and name.endswith(".crc"))


# --- records --------------------------------------------------------------------------------------


def _record(
    instant: str,
    plan: Mapping[str, Any],
    files: Mapping[str, Sequence[str]],
    gone: Sequence[str],
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
                "isPartitionDeleted": partition in gone,
            }
            for partition in (*files, *(path for path in gone if path not in files))
        },
        "version": FORM,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": dict(plan.get("extraMetadata") or {}),
    }


def _encode(name: str, record: Mapping[str, Any], table: TableSnapshot) -> bytes:
    return serde.encode_container(name, record, table.clock)
