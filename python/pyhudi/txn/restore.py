"""Restore of a table to an earlier commit: the plan, its execution, and the record of it.

A restore is an instant: requested (with the plan: the instants to revert and the target commit),
inflight, completed (with the record). It rolls back each instant of the plan, newest first
(`rollback.py`). These rollbacks stay inflight and are removed after the restore. Up to table
version 6 they are completed and kept, since the metadata table has commits with their instants,
which no writer may use again. The next writer completes the restore of a failed writer by its plan.
Hudi's restores have no heartbeat; only the age of their files shows that the writer failed.

`restore_target.py` determines the instants to revert. pyhudi rejects two restores that Hudi allows:
one whose files a clean has deleted or will delete, and one that stops at a later savepoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyhudi.config.actions import CLEAN, CLUSTERING, INDEXING, RESTORE, ROLLBACK, Instant, State
from pyhudi.config.formatting import HtmlRepr, count_text, names_text, size_text
from pyhudi.errors import CommitConflict, ConfigError, CorruptTable, HistoryUnavailable
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline, serde
from pyhudi.timeline.time_travel import timeline_as_of
from pyhudi.txn import rollback
from pyhudi.txn.heartbeat import beating, live_instants, may_be_running_without_heartbeat
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.restore_target import file_system_view_after_restore, instants_to_revert
from pyhudi.txn.rollback_plan import plan_rollback
from pyhudi.txn.savepoint import find_saved_instants, savepoints

_PLAN_VERSION = 2


@dataclass(frozen=True)
class RestoreResult(HtmlRepr):
    """The result of a restore or a rollback, or of its dry run."""

    instant: str
    """The instant of the restore; "" for a dry run and if there was nothing to revert."""
    restored_to: str
    """The newest remaining commit, or ""."""
    instants: tuple[str, ...]
    """The reverted instants, newest first."""
    files_deleted: int
    bytes_deleted: int
    log_files_called_off: int
    """Log files that are kept, with blocks rolled back in them (up to table version 6)."""
    metadata_made: tuple[str, ...]
    """Partitions of the metadata table that could not be rolled back, and were rebuilt."""
    dry_run: bool

    def __repr__(self) -> str:
        reverted = f"{count_text(len(self.instants), 'instant')} rolled back"
        files = (
            f"{count_text(self.files_deleted, 'file')} of {size_text(self.bytes_deleted)} deleted"
        )
        parts = [reverted, files, f"now at {self.restored_to or 'no commit'}"]
        if self.metadata_made:
            parts.append(f"metadata table rebuilt: {names_text(self.metadata_made)}")
        title = "dry run" if self.dry_run else self.instant or "nothing to restore"
        return f"<RestoreResult {title}: {'; '.join(parts)}>"


def commit_at(timeline: Timeline, time: str) -> Instant:
    """Return the newest completed commit that was requested at or before a time.

    Raises `HistoryUnavailable` for a time before the first commit of the active timeline.
    """
    commits = [commit for commit in timeline.commits if commit.requested <= time]
    if not commits:
        msg = f"the active timeline has no completed commit of {time} or before"
        raise HistoryUnavailable(msg, hint="inspect.commits() lists the commits.")
    return commits[-1]


def plan_restore(table: TableSnapshot, to: Instant) -> list[Instant]:
    """Return the instants to revert to the snapshot at which `to` completed, newest first.

    Failed writes are not included. Raises `ConfigError` if a later commit has a savepoint,
    `HistoryUnavailable` if files of that snapshot are deleted, and `CommitConflict` while a clean
    or an index build is pending.
    """
    timeline = table.timeline
    saved = find_saved_instants(timeline)
    targets = instants_to_revert(table, to)
    if not targets:
        return []
    for target in targets:
        if target.requested in saved:
            msg = f"{target} has a savepoint and would be removed"
            raise ConfigError(
                msg, hint=f'delete_savepoint("{target.requested}") deletes the savepoint.'
            )
    check_can_restore(table, to, targets)
    return sorted(targets, key=partial(_revert_order, timeline), reverse=True)


def check_can_restore(table: TableSnapshot, to: Instant, targets: Sequence[Instant]) -> None:
    """Raise if files of the commit are deleted or will be; see `plan_restore`."""
    timeline = table.timeline
    for pending in timeline.pending(CLEAN, INDEXING):
        hint = "Complete it with Apache Hudi first: it depends on commits that would be removed."
        raise CommitConflict(f"{pending} is pending", hint=hint)
    saved = next((point for point in savepoints(timeline) if point.instant == to.requested), None)
    if saved is None:
        timeline_as_of(timeline, to.requested)
    file_system_view_after_restore(table, to, targets)
    if saved is None:
        return
    for path, names in saved.files.items():
        existing = {file.name for file in table.storage.list_dir(path)[1]}
        for name in names:
            if name not in existing:
                missing = f"{path}/{name}" if path else name
                msg = f"{missing} of savepoint {saved.instant} is missing"
                raise CorruptTable(msg, file=missing)


def restore_to(table: TableSnapshot, to: Instant, targets: Iterable[Instant]) -> str:
    """Revert instants in order, after which `to` is the newest; return the restore's instant.

    Runs in a critical section. No other writer may be active, and only services may be pending.
    Raises `CommitConflict` if this writer loses its lock.
    """
    targets = list(targets)
    for participant in table.participants:
        participant.before_restore(table, [target.requested for target in targets])
    restore = PendingInstant(table, table.generator.next(), RESTORE)
    plan = {
        "instantsToRollback": [_info(target.requested, target.action) for target in targets],
        "version": _PLAN_VERSION,
        "savepointToRestoreTimestamp": to.requested,
    }
    with beating(table.storage, restore.time, table.clock):
        plan_file = serde.encode_container("HoodieRestorePlan", plan, table.clock)
        table.lock_manager.check_held()
        restore.request_planned(plan_file, table.timeline)
        restore.begin()
        _execute(restore, plan)
    return restore.time


def targets_of(timeline: Timeline, restore: Instant) -> list[str]:
    """Return the instants in a restore's plan."""
    plan = timeline.plan(restore) or {}
    return [info["commitTime"] for info in plan.get("instantsToRollback") or ()]


def resume(
    table: TableSnapshot, timeline: Timeline, pending: Instant, *, force: bool = False
) -> None:
    """Complete a pending restore by its plan, in a critical section.

    force: do not check for an executor without a heartbeat. Raises `CommitConflict` if its writer
    is active, if it has no plan (releases before 0.11), or if a commit participant cannot be rolled
    back.
    """
    plan = timeline.plan(pending)
    if plan is None and pending.state is not State.REQUESTED:
        msg = f"{pending} has no plan"
        raise CommitConflict(msg, hint="Complete the restore with Apache Hudi first.")
    if live_instants(table.storage, {pending.requested}, table.clock):
        msg = f"another writer is executing {pending}"
        raise CommitConflict(msg, hint="Write again when it is complete.", retry=True)
    if not force:
        _check_without_heartbeat(table, timeline, pending)
    restore = PendingInstant(table, pending.requested, RESTORE)
    if plan is None:
        restore.remove()
        return
    table = table.with_timeline(timeline)
    for participant in table.participants:
        participant.before_restore(table, targets_of(timeline, pending))
    with beating(table.storage, restore.time, table.clock):
        if pending.state is State.REQUESTED:
            restore.begin()
        _execute(restore, plan)


def _check_without_heartbeat(table: TableSnapshot, timeline: Timeline, pending: Instant) -> None:
    storage = table.storage
    started = storage.head(timeline.path(pending))
    rollbacks = (
        storage.head(timeline.path(instant))
        for instant in timeline.instants
        if instant.action == ROLLBACK and instant.requested > pending.requested
    )
    written = (file for file in rollbacks if file is not None)
    if may_be_running_without_heartbeat(storage, pending.requested, started, written, table.clock):
        msg = f"another writer may be executing {pending}: it has no heartbeat"
        hint = (
            "Write again when it is complete, or in an hour if its writer has failed; "
            "restore(to=...) completes it immediately."
        )
        raise CommitConflict(msg, hint=hint)


def _execute(restore: PendingInstant, plan: Mapping[str, Any]) -> None:
    table = restore.table
    started = table.clock.ticks_ms()
    reverted: list[tuple[str, str, rollback.Record]] = []
    infos = plan.get("instantsToRollback") or ()
    targets = [info["commitTime"] for info in infos]
    for info in infos:
        target, action = info["commitTime"], info["action"]
        record = _revert_instant(restore, target, action, targets)
        if record is not None:
            reverted.append((target, action, record))
    record = {
        "startRestoreTime": restore.time,
        "timeTakenInMillis": table.clock.ticks_ms() - started,
        "instantsToRollback": [target for target, _, _ in reverted],
        "hoodieRestoreMetadata": {target: [record] for target, _, record in reverted},
        "version": 1,
        "restoreInstantInfo": [_info(target, action) for target, action, _ in reverted],
    }
    restore.complete(serde.encode_container("HoodieRestoreMetadata", record, table.clock))
    remove_rollbacks_of_restores(table, Timeline.load(table.storage, table.config))


def _revert_instant(
    restore: PendingInstant, target: str, action: str, targets: Sequence[str]
) -> rollback.Record | None:
    """Revert one instant of the plan; return None if it was reverted already."""
    table = restore.table
    timeline = Timeline.load(table.storage, table.config)
    instant = timeline.find(target, action)
    publish = table.config.version.rollback_appends_command
    if instant is None:
        for participant in table.participants:
            participant.on_revoke(table, target)
        return None
    for pending in timeline.pending(ROLLBACK):
        if rollback.target_of(timeline, pending) != (target, action):
            continue
        if pending.state is State.INFLIGHT:
            # Hudi creates the inflight file first.
            rollback.reopen_instant(table, timeline, instant)
            timeline = Timeline.load(table.storage, table.config)
        record = rollback.resume(table, timeline, pending, publish=publish, for_restore=True)
        if record is not None:
            return record
    return rollback.roll_back_completed(
        table, timeline, instant, reverted_together=targets, publish=publish
    )[1]


def remove_rollbacks_of_restores(table: TableSnapshot, timeline: Timeline) -> None:
    """Remove pending rollbacks of completed restores."""
    for restore in timeline.filter_completed(RESTORE):
        targets = targets_of(timeline, restore)
        for pending in timeline.pending(ROLLBACK):
            target = rollback.target_of(timeline, pending)
            if pending.requested > restore.requested and target and target[0] in targets:
                PendingInstant(table, pending.requested, ROLLBACK).remove()


def preview_restore(
    table: TableSnapshot, targets: Iterable[Instant], *, restored_to: str, dry_run: bool
) -> RestoreResult:
    """Return the result that reverting instants would have. Changes nothing."""
    storage, timeline = table.storage, table.timeline
    targets = list(targets)
    times = [target.requested for target in targets]
    sizes: dict[str, dict[str, int]] = {}
    deleted: set[tuple[str, str]] = set()
    rolled_back: set[tuple[str, str]] = set()
    for target in targets:
        for request in plan_rollback(storage, table.config.version, timeline, target, times):
            path = request.partition
            if path not in sizes:
                sizes[path] = {file.name: file.size for file in storage.list_dir(path)[1]}
            deleted |= {(path, name) for name in request.files if name in sizes[path]}
            rolled_back |= {(path, name) for name in request.log_blocks}
    return RestoreResult(
        instant="",
        restored_to=restored_to,
        instants=tuple(times),
        files_deleted=len(deleted),
        bytes_deleted=sum(sizes[path][name] for path, name in deleted),
        log_files_called_off=len(rolled_back - deleted),
        metadata_made=(),
        dry_run=dry_run,
    )


def _revert_order(timeline: Timeline, instant: Instant) -> tuple[bool, bool, str]:
    """Return the sort key of reverts, in reverse: clusterings first, then the newest instant.

    Up to table version 6 the newest by requested time, since log files of a commit may belong to
    the compaction before it.
    """
    pending = not instant.is_completed
    is_planned_clustering = pending and (
        instant.action == CLUSTERING or timeline.is_clustering(instant)
    )
    if not timeline.completes_in_names:
        return is_planned_clustering, False, instant.requested
    return is_planned_clustering, pending, instant.completed or instant.requested


def _info(time: str, action: str) -> dict[str, str]:
    return {"commitTime": time, "action": action}
