"""Table services with a plan, which any writer can execute concurrently with writes.

A plan is created in a critical section and stays on the timeline until a writer has executed it.
The executor takes it over in a critical section, if no other writer is executing it, and removes
the files of a failed attempt. Whether an executor without a heartbeat, such as Hudi, is active
depends on the age of its files. The rest is like any write (`transaction.py`). After a failure the
plan stays for the next writer. Sources: `BaseHoodieTableServiceClient` and its executors (Hudi
1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from pyhudi.config.actions import COMPACTION, LOG_COMPACTION, Instant, State
from pyhudi.config.property_names import PENDING_OPERATION
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict, retryable_conflict
from pyhudi.slices import markers
from pyhudi.slices.clustering_plan import has_early_log_files
from pyhudi.storage.storage import Entry
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.txn import conflicts, heartbeat
from pyhudi.txn.attempt_files import base_files_of_plan, files_of_stage, partitions_of_plan
from pyhudi.txn.conflicts import ConcurrentCommits
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.transaction import Transaction

NewPlan: TypeAlias = tuple[bytes | None, str]
"""The requested file of a plan, None if nothing is due; and why no plan is possible, or ""."""

Check = Callable[[ConcurrentCommits, CommitMetadata], None]
"""Raises `CommitConflict` if a commit since the plan invalidates the service's result."""


def schedule(
    table: TableSnapshot, action: str, plan: Callable[[TableSnapshot, str], NewPlan]
) -> tuple[str | None, str]:
    """Plan and request a service in a critical section.

    Returns its instant, or None, and the reason why no plan is possible, if any. plan: plans it for
    the current snapshot and the instant. Raises the errors of `plan`, and `CommitConflict`, without
    leftovers, if the lock was lost.
    """
    with table.lock_manager.critical_section():
        timeline = conflicts.reload_timeline(table)
        began_ms = table.clock.now_ms()
        instant = table.generator.next()
        content, reason = plan(table.with_timeline(timeline), instant)
        if content is None:
            return None, reason
        PendingInstant(table, instant, action).request_planned(content, timeline)
        table.lock_manager.wait_out_clock_skew(began_ms)
    return instant, reason


def cancel_plan(table: TableSnapshot, instant: str, action: str, *, force: bool = False) -> None:
    """Cancel a plan and remove the files of an attempt to execute it.

    force: do not check for an executor without a heartbeat. Raises `CommitConflict` if a writer
    executes the plan, if it is no longer pending, or if writers depend on it.
    """
    with table.lock_manager.critical_section():
        timeline = conflicts.reload_timeline(table)
        pending = _check_free(table, timeline, instant, action, force=force)
        is_damaged = timeline.has_damaged_plan(pending)
        if not is_damaged and has_early_log_files(table.storage, timeline.plan(pending)):
            msg = f"writers wrote to buckets that the {action} {instant} creates"
            raise CommitConflict(msg, hint="Execute it with cluster().")
        table.lock_manager.check_held()
        pending_instant = PendingInstant(table, instant, action)
        _revert_to_plan(pending_instant, timeline, pending)
        pending_instant.withdraw_request()


def after_commit(table: TableSnapshot) -> TableSnapshot:
    """Return the table with the properties after the caller's commit, for its next plan.

    A commit may fence the writer of a pending operation in the properties
    (`metadata/pending_operation.py`), which would look like a concurrent change of the properties.
    """
    current = TableConfig.load(table.storage, table.clock)
    current = replace(current, handle_delete_rule=table.config.handle_delete_rule)
    return (
        replace(table, config=current)
        if _without_pending_operation(current) == _without_pending_operation(table.config)
        else table
    )


def _without_pending_operation(config: TableConfig) -> dict[str, str]:
    return {name: option for name, option in config.properties.items() if name != PENDING_OPERATION}


def _check_free(
    table: TableSnapshot, timeline: Timeline, instant: str, action: str, *, force: bool
) -> Instant:
    """Return the pending instant. Raises `CommitConflict` if it is not pending, or is executing."""
    pending = _find_pending(timeline, instant, action)
    if heartbeat.live_instants(table.storage, {instant}, table.clock):
        msg = f"another writer is executing the {action} {instant}"
        raise CommitConflict(msg, hint="Wait until it is done, or two minutes if it has failed.")
    if pending.state is State.INFLIGHT and not force:
        _check_without_heartbeat(table, timeline, pending)
    return pending


def _check_without_heartbeat(table: TableSnapshot, timeline: Timeline, pending: Instant) -> None:
    storage, instant = table.storage, pending.requested
    started = storage.head(timeline.path(pending))
    written = _files_of_attempt(table, timeline, pending)
    if not heartbeat.may_be_running_without_heartbeat(
        storage, instant, started, written, table.clock
    ):
        return
    msg = f"another writer may be executing the {pending.action} {instant}: it has no heartbeat"
    hint = "Wait until it is done, or one hour if it has failed"
    if pending.action == COMPACTION:
        hint += f'; compact(instant="{instant}") does not wait'
    elif pending.action != LOG_COMPACTION:
        hint += f'; rollback("{instant}") cancels it'
    raise CommitConflict(msg, hint=f"{hint}.")


def _files_of_attempt(
    table: TableSnapshot, timeline: Timeline, pending: Instant
) -> Iterator[Entry]:
    """Yield the markers and base files of an attempt."""
    yield from table.storage.list(markers.folder(pending.requested))
    yield from base_files_of_plan(table, timeline, pending)


def _find_pending(timeline: Timeline, instant: str, action: str) -> Instant:
    pending = timeline.find(instant, action)
    if pending is None or pending.is_completed:
        msg = f"the {action} {instant} is not pending any more"
        raise retryable_conflict(msg)
    return pending


def _revert_to_plan(pending_instant: PendingInstant, timeline: Timeline, pending: Instant) -> None:
    """Remove written files, including those of commit participants; keep the instant requested."""
    table, started_paths = pending_instant.table, None
    for participant in table.participants:
        participant.on_revoke(table, pending_instant.time)
    if markers.read_all(table.storage, pending_instant.time) is None:
        # Another writer may have removed the markers, so find the files by name.
        started_paths = [file.path for file in base_files_of_plan(table, timeline, pending)]
    pending_instant.revert_to_requested(started_paths)


def new_stage_id(table: TableSnapshot) -> int:
    """Return a stage id that is unique to this attempt at a plan, for the names of its files.

    The writer of an earlier attempt may still write or remove its files, even if the plan looks
    unstarted. Hudi parses the id as a number of 32 bits (`FSUtils.LOG_FILE_PATTERN`, 0.15.0).
    """
    return 1 + table.clock.now_ms() % 2_000_000_000


class PlannedTransaction(Transaction):
    """The execution of one plan. The plan stays pending if the block ends without `commit`."""

    def __init__(
        self,
        table: TableSnapshot,
        operation: str,
        instant: str,
        action: str,
        check: Check | None = None,
        *,
        force: bool = False,
    ) -> None:
        """Take nothing over yet.

        table: the snapshot that the execution reads. operation: Hudi's name, such as COMPACT.
        action: that of the pending files. check: checks the commits since the table was loaded, if
        these matter. force: see `cancel_plan`.
        """
        super().__init__(table, operation)
        self._pending = replace(self._pending, time=instant, action=action)
        self._check = check
        self._force = force
        self._takes_over = False
        """Whether another writer has started it; if stalled, that writer may still publish it."""
        self.stage = 0
        """The stage of the engine call that writes the files, as in `Engine.run`."""

    def _begin(self) -> None:
        table, instant = self._table, self.instant
        timeline = conflicts.reload_timeline(table)
        action = self._pending.action
        pending = _check_free(table, timeline, instant, action, force=self._force)
        self._takes_over = pending.state is State.INFLIGHT
        self._heartbeat = self._new_heartbeat()
        self._heartbeat.start()
        table.lock_manager.check_held()
        if self._takes_over:
            # The previous executor may be publishing it now, and checks for a heartbeat afterwards.
            timeline = conflicts.reload_timeline(table)
            pending = _find_pending(timeline, instant, action)
            _revert_to_plan(self._pending, timeline, pending)
        self.stage = new_stage_id(table)
        self._pending.begin()
        if not self._pending.is_requested:
            # While this writer stalled, another one executed and archived the plan.
            self._pending.withdraw_inflight()
            raise retryable_conflict(f"the {action} {instant} is not pending any more")
        self._state = State.INFLIGHT

    def _check_others(self, concurrent: ConcurrentCommits, metadata: CommitMetadata) -> None:
        if self._check is not None:
            self._check(concurrent, metadata)

    def _withdraw_request(self) -> None:
        if self._takes_over and self._heartbeat is not None:
            # Writers detect a zombie commit by the heartbeat (`zombie_commits.py`).
            self._heartbeat.stop_beating()
        else:
            super()._withdraw_request()

    def _roll_back_pending(self, timeline: Timeline, pending: Instant) -> None:
        storage = self._table.storage
        if conflicts.is_satisfied(self._check_alive):
            _revert_to_plan(self._pending, timeline, pending)
            if not self._takes_over:
                storage.delete(heartbeat.path_of(self.instant))
        else:
            storage.delete_all(self._paths_of_files(partitions_of_plan(timeline, pending)))

    def _paths_of_files(self, partitions: Iterable[str]) -> Iterator[str]:
        """Yield the paths of the attempt's files, even if it failed before it had results.

        A writer that takes the plan over lists files once and removes all markers.
        """
        yield from super()._paths_of_files(())
        yield from files_of_stage(self._table, partitions, self.instant, self.stage)
