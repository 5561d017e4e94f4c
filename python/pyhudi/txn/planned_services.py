"""Table services with a plan: any writer can execute it, concurrently with writes.

A plan is created in one critical section and stays on the timeline until a writer has executed it.
That writer takes the plan over in a critical section: no other writer may be executing it, and the
files of a failed attempt are removed. An executor without a heartbeat, such as Hudi, is judged by
the age of its files alone. The rest is like any write (`transaction.py`). A failure leaves the plan
to the next writer. Sources: `BaseHoodieTableServiceClient` and its executors (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from pyhudi.config.actions import COMPACTION, LOG_COMPACTION, Instant, State
from pyhudi.config.property_names import UNFINISHED
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

Check = Callable[[ConcurrentCommits, CommitMetadata], None]
"""Raises `CommitConflict` if a commit since the plan invalidates the result of a service."""


def schedule(
    table: TableSnapshot, action: str, plan: Callable[[TableSnapshot, str], bytes | None]
) -> str | None:
    """Plan a service in a critical section, request it and return its instant; None if none is due.

    plan: returns the content of the requested file, from the current snapshot and the instant.
    Raises what `plan` raises, and `CommitConflict`, with nothing left, if other writers went on.
    """
    with table.lock_manager.critical_section():
        timeline = conflicts.reload_timeline(table)
        began_ms = table.clock.now_ms()
        instant = table.generator.next()
        content = plan(table.with_timeline(timeline), instant)
        if content is None:
            return None
        PendingInstant(table, instant, action).request_planned(content, timeline)
        table.lock_manager.wait_out_clock_skew(began_ms)
    return instant


def cancel_plan(table: TableSnapshot, instant: str, action: str, *, force: bool = False) -> None:
    """Cancel a plan, and remove the files of an attempt at it.

    force: the caller vouches that no writer without a heartbeat executes it. Raises
    `CommitConflict` if a writer executes the plan, if it is not pending any more, or if writers
    depend on it.
    """
    with table.lock_manager.critical_section():
        timeline = conflicts.reload_timeline(table)
        pending = _check_free(table, timeline, instant, action, force=force)
        is_damaged = timeline.has_damaged_plan(pending)
        if not is_damaged and has_early_log_files(table.storage, timeline.plan(pending)):
            msg = f"writers wrote to buckets that the {action} {instant} creates"
            raise CommitConflict(msg, hint="Execute it with cluster().")
        table.lock_manager.check_held()
        opened = PendingInstant(table, instant, action)
        _revert_to_plan(opened, timeline, pending)
        opened.withdraw_request()


def after_commit(table: TableSnapshot) -> TableSnapshot:
    """Return the table with its current properties, for the next plan of the same caller.

    A commit counts in the properties how often other writers have gone on without the writer of a
    pending operation (`metadata/pending_operation.py`). That writer does not conflict with itself.
    """
    now = TableConfig.load(table.storage, table.clock)
    now = replace(now, told=table.config.told)
    return replace(table, config=now) if _but_undone(now) == _but_undone(table.config) else table


def _but_undone(config: TableConfig) -> dict[str, str]:
    return {name: option for name, option in config.properties.items() if name != UNFINISHED}


def _check_free(
    table: TableSnapshot, timeline: Timeline, instant: str, action: str, *, force: bool
) -> Instant:
    """Return the pending instant. Raises `CommitConflict` if there is none, or it is executing."""
    pending = _pending(timeline, instant, action)
    if heartbeat.live_instants(table.storage, {instant}, table.clock):
        msg = f"another writer is executing the {action} {instant}"
        raise CommitConflict(msg, hint="Wait until it is done, or two minutes if it has failed.")
    if pending.state is State.INFLIGHT and not force:
        _check_not_unseen(table, timeline, pending)
    return pending


def _check_not_unseen(table: TableSnapshot, timeline: Timeline, pending: Instant) -> None:
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
    """Markers of an attempt, and its base files."""
    yield from table.storage.list(markers.folder(pending.requested))
    yield from base_files_of_plan(table, timeline, pending)


def _pending(timeline: Timeline, instant: str, action: str) -> Instant:
    pending = timeline.find(instant, action)
    if pending is None or pending.is_completed:
        msg = f"the {action} {instant} is not pending any more"
        raise retryable_conflict(msg)
    return pending


def _revert_to_plan(opened: PendingInstant, timeline: Timeline, pending: Instant) -> None:
    """Remove written files, also those of commit participants, and leave the instant requested."""
    table, started = opened.table, None
    for participant in table.participants:
        participant.on_revoke(table, opened.time)
    if markers.read_all(table.storage, opened.time) is None:
        # Another writer may have removed the markers.
        started = [file.path for file in base_files_of_plan(table, timeline, pending)]
    opened.revert_to_requested(started)


def new_stage_id(table: TableSnapshot) -> int:
    """Return a stage id that only one attempt at a plan has in the names of its files.

    The writer of an earlier attempt may still be writing or removing its own files, even if the
    plan looks as if it was never started. The id is a number of 32 bits, as Hudi reads it
    (`FSUtils.LOG_FILE_PATTERN`, 0.15.0).
    """
    return 1 + table.clock.now_ms() % 2_000_000_000


class PlannedTransaction(Transaction):
    """One service by its plan. Leaving the block without `commit` leaves the plan unexecuted."""

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
        """Nothing is taken over yet.

        table: the snapshot that the execution reads. operation: Hudi's name, such as COMPACT.
        action: that of the pending files. check: checks the commits since the table was loaded;
        None if they do not matter. force: as in `cancel_plan`.
        """
        super().__init__(table, operation)
        self._open = replace(self._open, time=instant, action=action)
        self._check = check
        self._force = force
        self._takes_over = False
        """Whether another writer, maybe a stalled one, has started it and can still publish it."""
        self.stage = 0
        """The stage of the engine call that writes the files, as in `Engine.run`."""

    def _begin(self) -> None:
        table, instant = self._table, self.instant
        timeline = conflicts.reload_timeline(table)
        action = self._open.action
        pending = _check_free(table, timeline, instant, action, force=self._force)
        self._takes_over = pending.state is State.INFLIGHT
        self._heartbeat = self._new_heartbeat()
        self._heartbeat.start()
        table.lock_manager.check_held()
        if self._takes_over:
            # The previous executor may be publishing it now, and then checks for a heartbeat.
            timeline = conflicts.reload_timeline(table)
            pending = _pending(timeline, instant, action)
            _revert_to_plan(self._open, timeline, pending)
        self.stage = new_stage_id(table)
        self._open.begin()
        if not self._open.is_requested:
            # This writer stalled, and another one has executed the plan and archived it.
            self._open.withdraw_beginning()
            raise retryable_conflict(f"the {action} {instant} is not pending any more")
        self._state = State.INFLIGHT

    def _check_others(self, since: ConcurrentCommits, metadata: CommitMetadata) -> None:
        if self._check is not None:
            self._check(since, metadata)

    def _withdraw_request(self) -> None:
        if self._takes_over and self._heartbeat is not None:
            # A zombie commit is detected by it (`zombie_commits.py`).
            self._heartbeat.stop_beating()
        else:
            super()._withdraw_request()

    def _roll_back_pending(self, timeline: Timeline, pending: Instant) -> None:
        storage = self._table.storage
        if conflicts.passes(self._check_alive):
            _revert_to_plan(self._open, timeline, pending)
            if not self._takes_over:
                storage.delete(heartbeat.path_of(self.instant))
        else:
            storage.delete_all(self._own(partitions_of_plan(timeline, pending)))

    def _own(self, partitions: Iterable[str]) -> Iterator[str]:
        """Paths of the attempt's files, also if it failed before it received its results.

        Other writers list files once, as they take the plan over, and then remove all markers.
        """
        yield from super()._own(())
        yield from files_of_stage(self._table, partitions, self.instant, self.stage)
