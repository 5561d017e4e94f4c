"""Bringing a table back to an earlier commit: what has to go, the deed, and the record of it.

A restore is an instant: requested (with the plan: what goes, and to which commit), inflight,
completed (with what was done). Each instant of the plan is rolled back, the newest first, as
`rollback.py` does it. Those rollbacks are never completed, and go when the restore is complete; but
up to table version 6 they stay, since the metadata table has commits of their instants, which
nobody may use again. A writer that dies leaves a pending restore, which the next one ends by its
plan, whoever began it; but Hudi shows no heartbeat, and only the age of what it has written tells
that it died.
Which instants go, `restore_target.py` says. What Hudi leaves to its users is refused: to lose
files that a clean has taken or will take, and to begin a restore that a later savepoint ends
halfway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyhudi.config.actions import CLEAN, CLUSTERING, INDEXING, RESTORE, ROLLBACK, Instant, State
from pyhudi.config.formatting import count_text, names_text, size_text
from pyhudi.config.html_repr import HtmlRepr
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
    """What a restore or a rollback did, or would do."""

    instant: str
    """Its own; "" where there was nothing to take back, and in a dry run."""
    restored_to: str
    """The newest commit that is left; "" for none."""
    instants: tuple[str, ...]
    """What it took back, the newest first."""
    files_deleted: int
    bytes_deleted: int
    log_files_called_off: int
    """Log files that stay and of which blocks count no more (up to table version 6)."""
    metadata_made: tuple[str, ...]
    """Partitions of the metadata table that could not follow, and were made anew."""
    dry_run: bool

    def __repr__(self) -> str:
        gone = f"{count_text(len(self.instants), 'instant')} taken back"
        files = (
            f"{count_text(self.files_deleted, 'file')} of {size_text(self.bytes_deleted)} deleted"
        )
        said = [gone, files, f"now at {self.restored_to or 'no commit'}"]
        if self.metadata_made:
            said.append(f"metadata table rebuilt: {names_text(self.metadata_made)}")
        kind = "dry run" if self.dry_run else self.instant or "nothing to restore"
        return f"<RestoreResult {kind}: {'; '.join(said)}>"


def commit_at(timeline: Timeline, time: str) -> Instant:
    """The newest completed commit that was requested by a time.

    Raises `HistoryUnavailable` for a time before the first on the active timeline.
    """
    found = [commit for commit in timeline.commits if commit.requested <= time]
    if not found:
        msg = f"the active timeline has no completed commit of {time} or before"
        raise HistoryUnavailable(msg, hint="inspect.commits() lists the commits.")
    return found[-1]


def plan_restore(table: TableSnapshot, to: Instant) -> list[Instant]:
    """What has to go for the table to be as it was when a commit was completed, newest first.

    What failed writes have left is not among it. Raises `ConfigError` where a later commit is
    saved, `HistoryUnavailable` where files that were current then are gone, `CommitConflict` while
    a clean or the making of an index is pending.
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
    check_kept(table, to, targets)
    return sorted(targets, key=partial(_age, timeline), reverse=True)


def check_kept(table: TableSnapshot, to: Instant, targets: Sequence[Instant]) -> None:
    """Raises where a table cannot be brought back to a commit: files are gone, or will be.

    See `plan_restore`.
    """
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
        there = {file.name for file in table.storage.list_dir(path)[1]}
        for name in names:
            if name not in there:
                lost = f"{path}/{name}" if path else name
                msg = f"{lost} of savepoint {saved.instant} is missing"
                raise CorruptTable(msg, file=lost)


def restore_to(table: TableSnapshot, to: Instant, targets: Iterable[Instant]) -> str:
    """Takes instants back, in their order, so that `to` is the newest; the restore's own instant.

    Within a section. Nobody else may be at work, and nothing but services be pending.
    """
    targets = list(targets)
    for companion in table.companions:
        companion.before_restore(table, [target.requested for target in targets])
    restore = PendingInstant(table, table.generator.next(), RESTORE)
    plan = {
        "instantsToRollback": [_info(target.requested, target.action) for target in targets],
        "version": _PLAN_VERSION,
        "savepointToRestoreTimestamp": to.requested,
    }
    with beating(table.storage, restore.time, table.clock):
        plan_file = serde.encode_container("HoodieRestorePlan", plan, table.clock)
        restore.request_planned(plan_file, table.timeline)
        restore.begin()
        _carry_out(restore, plan)
    return restore.time


def targets_of(timeline: Timeline, restore: Instant) -> list[str]:
    """The instants that a restore takes back, by its plan."""
    plan = timeline.plan(restore) or {}
    return [info["commitTime"] for info in plan.get("instantsToRollback") or ()]


def resume(
    table: TableSnapshot, timeline: Timeline, pending: Instant, *, force: bool = False
) -> None:
    """Ends a pending restore by its plan, within a section.

    force: somebody vouches that none is at it who shows no heartbeat. Raises `CommitConflict`
    where its writer is alive, for one that has no plan, as releases before 0.11 have them, and
    where a companion cannot follow.
    """
    plan = timeline.plan(pending)
    if plan is None and pending.state is not State.REQUESTED:
        msg = f"{pending} has no plan"
        raise CommitConflict(msg, hint="Complete the restore with Apache Hudi first.")
    if live_instants(table.storage, {pending.requested}, table.clock):
        msg = f"another writer is executing {pending}"
        raise CommitConflict(msg, hint="Write again when it is complete.", retry=True)
    if not force:
        _check_not_unseen(table, timeline, pending)
    restore = PendingInstant(table, pending.requested, RESTORE)
    if plan is None:
        restore.remove()
        return
    table = table.with_timeline(timeline)
    for companion in table.companions:
        companion.before_restore(table, targets_of(timeline, pending))
    with beating(table.storage, restore.time, table.clock):
        if pending.state is State.REQUESTED:
            restore.begin()
        _carry_out(restore, plan)


def _check_not_unseen(table: TableSnapshot, timeline: Timeline, pending: Instant) -> None:
    storage = table.storage
    begun = storage.head(timeline.path(pending))
    rollbacks = (
        storage.head(timeline.path(made))
        for made in timeline.instants
        if made.action == ROLLBACK and made.requested > pending.requested
    )
    written = (file for file in rollbacks if file is not None)
    if may_be_running_without_heartbeat(storage, pending.requested, begun, written, table.clock):
        msg = f"another writer may be executing {pending}: it has no heartbeat"
        hint = (
            "Write again when it is complete, or in an hour if its writer has failed; "
            "restore(to=...) completes it immediately."
        )
        raise CommitConflict(msg, hint=hint)


def _carry_out(restore: PendingInstant, plan: Mapping[str, Any]) -> None:
    table = restore.table
    started = table.clock.now_ms()
    done: list[tuple[str, str, rollback.Record]] = []
    infos = plan.get("instantsToRollback") or ()
    targets = [info["commitTime"] for info in infos]
    for info in infos:
        target, action = info["commitTime"], info["action"]
        record = _take_back(restore, target, action, targets)
        if record is not None:
            done.append((target, action, record))
    record = {
        "startRestoreTime": restore.time,
        "timeTakenInMillis": table.clock.now_ms() - started,
        "instantsToRollback": [target for target, _, _ in done],
        "hoodieRestoreMetadata": {target: [record] for target, _, record in done},
        "version": 1,
        "restoreInstantInfo": [_info(target, action) for target, action, _ in done],
    }
    restore.complete(serde.encode_container("HoodieRestoreMetadata", record, table.clock))
    remove_left(table, Timeline.load(table.storage, table.config))


def _take_back(
    restore: PendingInstant, target: str, action: str, targets: Sequence[str]
) -> rollback.Record | None:
    """One instant of the plan, `targets`; None where it has gone already."""
    table = restore.table
    timeline = Timeline.load(table.storage, table.config)
    found = timeline.find(target, action)
    publish = table.config.version.rollback_appends_command
    if found is None:
        for companion in table.companions:
            companion.on_revoke(table, target)
        return None
    for pending in timeline.pending(ROLLBACK):
        if rollback.target_of(timeline, pending) != (target, action):
            continue
        if pending.state is State.INFLIGHT:
            # Hudi begins first.
            rollback.reopen_instant(table, timeline, found)
            timeline = Timeline.load(table.storage, table.config)
        record = rollback.resume(table, timeline, pending, publish=publish, for_restore=True)
        if record is not None:
            return record
    return rollback.roll_back_completed(
        table, timeline, found, with_others=targets, publish=publish
    )[1]


def remove_left(table: TableSnapshot, timeline: Timeline) -> None:
    """Removes the rollbacks that completed restores have made and not completed."""
    for restore in timeline.filter_completed(RESTORE):
        targets = targets_of(timeline, restore)
        for made in timeline.pending(ROLLBACK):
            target = rollback.target_of(timeline, made)
            if made.requested > restore.requested and target and target[0] in targets:
                PendingInstant(table, made.requested, ROLLBACK).remove()


def preview_restore(
    table: TableSnapshot, targets: Iterable[Instant], *, restored_to: str, dry_run: bool
) -> RestoreResult:
    """What taking instants back will do, looked up without doing it."""
    storage, timeline = table.storage, table.timeline
    targets = list(targets)
    times = [target.requested for target in targets]
    sizes: dict[str, dict[str, int]] = {}
    deleted: set[tuple[str, str]] = set()
    called_off: set[tuple[str, str]] = set()
    for target in targets:
        for request in plan_rollback(storage, table.config.version, timeline, target, times):
            path = request.partition
            if path not in sizes:
                sizes[path] = {file.name: file.size for file in storage.list_dir(path)[1]}
            deleted |= {(path, name) for name in request.files if name in sizes[path]}
            called_off |= {(path, name) for name in request.log_blocks}
    return RestoreResult(
        instant="",
        restored_to=restored_to,
        instants=tuple(times),
        files_deleted=len(deleted),
        bytes_deleted=sum(sizes[path][name] for path, name in deleted),
        log_files_called_off=len(called_off - deleted),
        metadata_made=(),
        dry_run=dry_run,
    )


# --- which instants -------------------------------------------------------------------------------


def _age(timeline: Timeline, instant: Instant) -> tuple[bool, bool, str]:
    """Rises with how soon an instant has to go: clusterings first, then the newest.

    Up to table version 6 the newest by their requested times, since log files of a commit may stand
    above the compaction before it.
    """
    clustering = instant.action == CLUSTERING or (
        not instant.is_completed and timeline.is_clustering(instant)
    )
    if not timeline.completes_in_names:
        return clustering and not instant.is_completed, False, instant.requested
    pending = not instant.is_completed
    return clustering and pending, pending, instant.completed or instant.requested


def _info(time: str, action: str) -> dict[str, str]:
    return {"commitTime": time, "action": action}
