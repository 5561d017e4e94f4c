"""Rolls back completed commits: the newest one, or all after an earlier one.

`txn/restore.py` and `txn/rollback.py` decide what is removed, and how. This module handles the
metadata table, which is removed first and rebuilt if it cannot be rolled back too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from pyhudi.clock import Clock, Moment, SystemClock, is_bootstrap
from pyhudi.config.actions import COMMIT_ACTIONS, RESTORE, ROLLBACK, Instant
from pyhudi.config.formatting import count_text, names_text
from pyhudi.config.property_names import BOOTSTRAP_PATH
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import (
    AfterRollbackError,
    CommitConflict,
    CommitUnknown,
    ConfigError,
    HistoryUnavailable,
    InterruptedAfterRollback,
    UnsupportedTableFeature,
    without_hint,
)
from pyhudi.metadata.build_heartbeat import fence_build
from pyhudi.metadata.pending_operation import full_rebuild
from pyhudi.metadata.rollback_support import can_roll_back
from pyhudi.services.clustering import pending as pending_clusterings
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.named_instants import resolve_requested_time
from pyhudi.timeline.time_travel import incomplete_writes
from pyhudi.txn import restore as restoring
from pyhudi.txn import rollback
from pyhudi.txn.planned_services import cancel_plan
from pyhudi.txn.recovery import (
    check_no_live_writer,
    open_recovered,
    recover,
)
from pyhudi.txn.restore import RestoreResult
from pyhudi.txn.savepoint import find_saved_instants
from pyhudi.write import metadata_lifecycle
from pyhudi.write.checks import check_writable
from pyhudi.write.table_opening import Handle, WritableTable, open_for_change


def restore(
    table: WritableTable, to: Moment, *, dry_run: bool = False, clock: Clock | None = None
) -> RestoreResult:
    """Run `HudiTable.restore`."""
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    if dry_run:
        return _plan_restore(_load_table(handle, clock), to, dry_run=True)[0]
    # Fail before a lock is created if there is no table.
    TableConfig.load(handle.storage, clock)
    with _report_partial_rollback() as started, handle.lock_manager.critical_section():
        opened = _load_without_writers(handle, clock)
        result, commit, targets = _plan_restore(opened, to, dry_run=False)
        if not targets:
            return result
        started.append((opened, targets))
        with _without_metadata_if_needed(handle, opened, result, clock) as table_at_rest:
            return replace(result, instant=restoring.restore_to(table_at_rest, commit, targets))


def _plan_restore(
    table: TableSnapshot, to: Moment, *, dry_run: bool
) -> tuple[RestoreResult, Instant, list[Instant]]:
    commit = restoring.commit_at(
        table.timeline, resolve_requested_time(table.timeline, to, table.config.timezone)
    )
    targets = restoring.plan_restore(table, commit)
    _check_no_bootstrap(table, targets)
    result = restoring.preview_restore(
        table, targets, restored_to=commit.requested, dry_run=dry_run
    )
    return _with_metadata(table, result), commit, targets


def roll_back(
    table: WritableTable, instant: str, *, dry_run: bool = False, clock: Clock | None = None
) -> RestoreResult:
    """Run `HudiTable.rollback`."""
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    if dry_run:
        return _plan_rollback(_load_table(handle, clock), instant, dry_run=True)[0]
    TableConfig.load(handle.storage, clock)
    with _report_partial_rollback() as started, handle.lock_manager.critical_section():
        opened = _load_table(handle, clock)
        if _find_instant(opened.timeline, instant).is_completed:
            opened = _load_without_writers(handle, clock)
        result, target = _plan_rollback(opened, instant, dry_run=False)
        if not target.is_completed:
            return replace(result, instant=_roll_back_failed(opened, target))
        started.append((opened, [target]))
        with _without_metadata_if_needed(handle, opened, result, clock) as table_at_rest:
            time, _ = rollback.roll_back_completed(table_at_rest, opened.timeline, target)
        return replace(result, instant=time)


def _plan_rollback(
    table: TableSnapshot, instant: str, *, dry_run: bool
) -> tuple[RestoreResult, Instant]:
    target = _find_instant(table.timeline, instant)
    _check_no_bootstrap(table, [target])
    if target.is_completed:
        _check_newest(table, target)
    else:
        _check_failed(table, target)
    before = [commit.requested for commit in table.timeline.commits if commit != target]
    result = restoring.preview_restore(
        table, [target], restored_to=max(before, default=""), dry_run=dry_run
    )
    return (_with_metadata(table, result) if target.is_completed else result), target


def _check_no_bootstrap(table: TableSnapshot, targets: Sequence[Instant]) -> None:
    """Raise for a bootstrap: its index would stay, and the table would lose its rows."""
    for target in targets:
        if is_bootstrap(target.requested):
            msg = f"{BOOTSTRAP_PATH} is {table.config.bootstrap_path}: {target} is the bootstrap"
            raise UnsupportedTableFeature(msg, hint="Remove the table; its source files stay.")


# --- loading the table ----------------------------------------------------------------------------


def _load_table(handle: Handle, clock: Clock) -> TableSnapshot:
    """Return the current table. Raises `CommitConflict` while a restore is pending."""
    table = open_for_change(handle, clock)
    check_writable(table.storage, table.config, table.timeline)
    table.generator.observe(table.timeline)
    for pending in table.timeline.pending(RESTORE):
        hint = (
            "Call restore(to=...) to complete it. The next write completes it, too, once its "
            "writer has failed."
        )
        raise CommitConflict(f"{pending} is pending", hint=hint)
    return table


def _load_without_writers(handle: Handle, clock: Clock) -> TableSnapshot:
    """Return the table without active writers, recovered from failed ones."""
    fence_build(
        open_for_change(handle, clock, metadata_lifecycle.finish_pending_operation(handle, clock))
    )
    table = open_for_change(handle, clock)
    check_no_live_writer(table, table.timeline)
    check = partial(check_writable, table.storage, table.config)
    targets = [
        target
        for pending in table.timeline.pending(RESTORE)
        for target in restoring.targets_of(table.timeline, pending)
    ]
    if not can_roll_back(table, targets):
        with metadata_lifecycle.without_metadata_table(handle, clock):
            recover(open_for_change(handle, clock), check, force=True)

    def open_once() -> TableSnapshot:
        table = open_for_change(handle, clock)
        return table.with_timeline(recover(table, check, force=True))

    return open_recovered(open_once)


def _with_metadata(table: TableSnapshot, result: RestoreResult) -> RestoreResult:
    """Return the result with the partitions of the metadata table that must be rebuilt."""
    if can_roll_back(table, result.instants):
        return result
    rebuilt = full_rebuild(table.storage, table.config)
    return replace(result, metadata_made=rebuilt.partitions_for(table.config.version))


@contextmanager
def _without_metadata_if_needed(
    handle: Handle, table: TableSnapshot, result: RestoreResult, clock: Clock
) -> Iterator[TableSnapshot]:
    """Yield the table for the rollback, without a metadata table that cannot be rolled back."""
    if not result.metadata_made:
        yield table
        return
    with metadata_lifecycle.without_metadata_table(handle, clock):
        without = open_for_change(handle, clock)
        yield replace(without, generator=table.generator)


# --- failures after rows have changed -------------------------------------------------------------


@contextmanager
def _report_partial_rollback() -> Iterator[list[tuple[TableSnapshot, Sequence[Instant]]]]:
    """Run a block that rolls back commits; its errors report the commits already rolled back.

    Yields a list, for the table and the instants that the block is about to roll back. Raises
    `AfterRollbackError` or `InterruptedAfterRollback` if one of them is rolled back,
    `CommitUnknown` if the storage fails and the state is unknown.
    """
    started: list[tuple[TableSnapshot, Sequence[Instant]]] = []
    try:
        yield started
    except (KeyboardInterrupt, Exception) as error:
        for table, targets in started:
            _raise_if_rolled_back(table, targets, error)
        raise


def _raise_if_rolled_back(
    table: TableSnapshot, targets: Sequence[Instant], error: KeyboardInterrupt | Exception
) -> None:
    try:
        timeline = Timeline.load(table.storage, table.config)
        removed, own = _find_removed_instants(timeline, targets), _own_instant(timeline, targets)
    except Exception:  # noqa: BLE001 - the reason why the storage cannot be read does not matter
        if isinstance(error, KeyboardInterrupt):
            return
        msg = f"the storage failed while {targets[0]} was rolled back: it may be rolled back or not"
        raise CommitUnknown(msg, instant=targets[0].requested) from error
    if not removed:
        return
    description = f"{count_text(len(removed), 'commit')} rolled back ({names_text(removed)})"
    if isinstance(error, KeyboardInterrupt):
        msg = f"interrupted by the user: {description}"
        raise InterruptedAfterRollback(msg, instant=own, instants=removed) from error
    msg = f"{description}, but {own or 'the rollback'} failed after that: {without_hint(error)}"
    raise AfterRollbackError(msg, instant=own, instants=removed) from error


def _find_removed_instants(timeline: Timeline, targets: Sequence[Instant]) -> tuple[str, ...]:
    """Return the completed instants that are rolled back now."""
    current = (timeline.find(target.requested, target.action) for target in targets)
    return tuple(
        target.requested
        for target, instant in zip(targets, current, strict=True)
        if target.is_completed and (instant is None or not instant.is_completed)
    )


def _own_instant(timeline: Timeline, targets: Sequence[Instant]) -> str:
    """Return the restore of the targets, else the rollback of one; or ""."""
    times = {target.requested for target in targets}
    last = max(times)
    for instant in reversed(timeline.instants):
        if instant.action not in (RESTORE, ROLLBACK) or instant.requested < last:
            continue
        if instant.action == RESTORE:
            targets_of_instant = restoring.targets_of(timeline, instant)
        else:
            targets_of_instant = [(rollback.target_of(timeline, instant) or ("",))[0]]
        if times.intersection(targets_of_instant) and (
            instant.action == RESTORE or len(times) == 1
        ):
            return instant.requested
    return ""


# --- checks of the target -------------------------------------------------------------------------


def _find_instant(timeline: Timeline, instant: str) -> Instant:
    for commit in timeline.instants:
        if commit.requested == instant and commit.completed_action in COMMIT_ACTIONS:
            return commit
    msg = f"the active timeline has no commit {instant}"
    raise HistoryUnavailable(msg, hint="inspect.timeline() lists the instants.")


def _check_failed(table: TableSnapshot, target: Instant) -> None:
    """Raise unless a pending instant is a clustering, or the newest write of a failed writer.

    An instant with a damaged plan, which nothing can execute, is accepted too.
    """
    timeline = table.timeline
    if timeline.has_damaged_plan(target) or target in pending_clusterings(timeline):
        return
    failed = [*incomplete_writes(table.timeline)]
    if target not in failed:
        msg = f"{target} is planned: there is nothing to roll back"
        raise ConfigError(msg, hint="restore(to=...) an earlier commit cancels plans, too.")
    _check_last(failed, target)
    check_no_live_writer(table, table.timeline)


def _roll_back_failed(table: TableSnapshot, target: Instant) -> str:
    """Roll back a failed write, with the plan of a started rollback; return the rollback's instant.

    A planned clustering is cancelled, as in Hudi, without a rollback instant.
    """
    timeline = table.timeline
    if timeline.has_damaged_plan(target) or target in pending_clusterings(timeline):
        cancel_plan(table, target.requested, target.action, force=True)
        return ""
    for rollback_instant in timeline.pending(ROLLBACK):
        target_of_rollback = rollback.target_of(timeline, rollback_instant)
        if target_of_rollback is not None and target_of_rollback[0] == target.requested:
            rollback.resume(table, timeline, rollback_instant)
            return rollback_instant.requested
    return rollback.roll_back(table, timeline, target)


def _check_newest(table: TableSnapshot, target: Instant) -> None:
    """Raise unless a completed commit is the newest of all, and can be rolled back.

    Hudi has the same limit, but does not check for files that the commit before needs.
    """
    timeline = table.timeline
    _check_last(timeline.commits, target)
    if target.requested in find_saved_instants(timeline):
        msg = f"{target} has a savepoint"
        raise ConfigError(
            msg, hint=f'delete_savepoint("{target.requested}") deletes the savepoint.'
        )
    to_roll_back = {*incomplete_writes(timeline), *timeline.pending(ROLLBACK)}
    for pending in timeline.pending():
        if pending.requested > target.requested and pending not in to_roll_back:
            hint = "Complete it first, or restore(to=...) an earlier commit, which removes it."
            raise CommitConflict(
                f"{pending} was planned with files that would be removed", hint=hint
            )
    before = [commit for commit in timeline.commits if commit != target]
    if before:
        restoring.check_can_restore(table, before[-1], [target])
    elif timeline.archive.commits():
        msg = f"the commits before {target} are archived"
        raise HistoryUnavailable(msg, hint="A table cannot be restored to an archived commit.")


def _check_last(instants: Sequence[Instant], target: Instant) -> None:
    if instants[-1] != target:
        msg = f"{target} is not the newest: {instants[-1]} is later"
        raise ConfigError(msg, hint="Roll that back first, or restore(to=...) an earlier commit.")
