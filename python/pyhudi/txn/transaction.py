"""The life of one write on the timeline: begin, publish, or roll back.

Other writers may write concurrently. All timeline changes happen in two critical sections. The
order of steps is Hudi's (`BaseHoodieWriteClient`, 1.2.0), and a crash can come after each:

1. `recovery.py` executes pending rollbacks, rolls back failed writes and removes leftover markers
   and staged files. The write is planned on the resulting timeline.
2. `Transaction` is entered. In one critical section: an instant later than all existing ones,
   heartbeat, requested file.
3. `start`: inflight file with the workload profile.
4. Tasks write data files, each after its marker. Readers see none of them.
5. `commit`. In one critical section: the timeline is reloaded and checked for concurrent changes
   (`conflicts.py`), marked files that are not in the statistics are removed, commit participants
   are brought in sync. The completed file publishes the write. Then participants run their
   post-commit steps, and heartbeat and markers are removed. A failure after the publication is a
   warning: an error would make the caller write again.

No lock can stop a writer that lost it from writing. So a write is published only while its lock,
its heartbeat and its inflight file exist.

A rollback's instant is taken before the new write's, because Hudi 0.15's log reader stops at the
first block that is later than the last commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from pyhudi.config import properties_file
from pyhudi.config.actions import COMMIT_ACTIONS, COMPLETED_ACTION, Instant, State
from pyhudi.config.extra_metadata import commit_metadata
from pyhudi.config.lock_options import LockOptions
from pyhudi.config.log import warn
from pyhudi.errors import (
    AfterCommitError,
    AfterCommitWarning,
    CommitConflict,
    CommitUnknown,
    InterruptedAfterCommit,
    LockTimeout,
    retryable_conflict,
    without_hint,
)
from pyhudi.schema.commit_schema import CommitSchema
from pyhudi.slices import markers
from pyhudi.table.participants import (
    Commit,
    CommitParticipant,
    prefetch_commit_reads,
    run_participants,
)
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat, by_partition
from pyhudi.txn import attempt_files, conflicts, replace_commit, rollback, zombie_commits
from pyhudi.txn.conflicts import CommitCheck
from pyhudi.txn.heartbeat import Heartbeat
from pyhudi.txn.orphan_files import remove_staged_of
from pyhudi.txn.pending_instant import PendingInstant

if TYPE_CHECKING:
    from typing_extensions import Self

_COMPACTING = frozenset({"COMPACT", "LOG_COMPACT"})


class Transaction:
    """One write. Leaving the block without `commit` rolls it back."""

    def __init__(
        self,
        table: TableSnapshot,
        operation: str,
        *,
        commit_checks: Iterable[CommitCheck] = (),
        appends: bool = False,
        shared: bool = False,
    ) -> None:
        """Nothing is written yet.

        table: the snapshot that the write was planned on. operation: Hudi's name, such as UPSERT.
        commit_checks: commit checks of what the write relied on. appends: other writers may append
        to the same file groups. shared: other processes continue the write, so its heartbeat does
        not depend on this one.
        """
        self._table = table
        self._operation = operation
        self._commit_checks = tuple(commit_checks)
        self._appends = appends
        self._open = PendingInstant(table, "", replace_commit.action_of(table.config, operation))
        self._state: State | None = None
        self._publishing = False
        # Another writer has rolled it back.
        self._is_rolled_back = False
        self._has_run_participants = False
        self._shared = shared
        self._heartbeat: Heartbeat | None = None
        self._post_commit_steps: list[Callable[[], None]] = []
        self._written = CommitMetadata()
        self.by_record_index = False
        """The record index tagged the keys: it already contains all tagged records."""
        self.participants: list[CommitParticipant] = []
        """Commit participants of this write, in addition to those of the table."""

    @classmethod
    def resume(cls, table: TableSnapshot, operation: str, instant: str) -> Transaction:
        """Return the transaction of a write that another process has started."""
        txn = cls(table, operation)
        txn._open = replace(txn._open, time=instant)
        txn._state = State.INFLIGHT
        # The other process may have reached that step.
        txn._has_run_participants = True
        return txn

    @property
    def instant(self) -> str:
        """The write's requested time, once entered."""
        return self._open.time

    def __enter__(self) -> Self:
        """Begin the write. Raises `CommitConflict` and `LockTimeout`, with nothing left."""
        if self._state is State.INFLIGHT:
            self._heartbeat = self._new_heartbeat()
            self._heartbeat.start()
            return self
        try:
            with self._table.lock_manager.critical_section():
                self._begin()
        except BaseException:
            # The next writer removes what the storage fails to delete.
            with suppress(Exception):
                self._withdraw_request()
            raise
        if self._shared and self._heartbeat is not None:
            self._heartbeat.stop_beating()
        return self

    def _new_heartbeat(self) -> Heartbeat:
        table = self._table
        return Heartbeat(
            table.storage,
            self.instant,
            table.clock,
            owned=not self._shared,
            lock_lasts_ms=table.lock_manager.lease_ms,
        )

    def _begin(self) -> None:
        table = self._table
        conflicts.check_planned_commits_exist(table.timeline, conflicts.reload_timeline(table))
        began_ms = table.clock.now_ms()
        self._open = replace(self._open, time=table.generator.next())
        self._heartbeat = self._new_heartbeat()
        self._heartbeat.start()
        table.lock_manager.check_held()
        self._state = State.REQUESTED
        plan = replace_commit.content_of_request(table.config.version, self._operation, table.clock)
        self._open.request(plan)
        table.lock_manager.wait_out_clock_skew(began_ms)

    def _withdraw_request(self) -> None:
        """Withdraw a write that has at most its requested file."""
        beat, is_requested = self._heartbeat, self._state is State.REQUESTED
        self._state = None
        if beat is not None:
            beat.stop_beating()
        if is_requested:
            self._open.withdraw_request()
        if beat is not None:
            beat.stop()

    def start(self, profile: Mapping[str, tuple[WriteStat, ...]] | None) -> None:
        """Create the inflight file with the planned file groups; None: they are unknown."""
        table = self._table
        data = b""
        if profile is not None:
            metadata = CommitMetadata(profile, operation_type=self._operation)
            self._check_early(metadata)
            data = metadata.encode_inflight(table.config.version, table.clock)
        self._open.begin(data)
        self._state = State.INFLIGHT

    def _check_early(self, profile: CommitMetadata) -> None:
        """Detect conflicts before files are written, if the options ask for it."""
        table = self._table
        if LockOptions.of(table.options).early_detection and not table.lock_manager.is_held:
            conflicts.check_markers(
                table, self.instant, conflicts.collect_written_file_groups(profile)
            )

    def on_completed(self, step: Callable[[], None]) -> None:
        """Add a step to run once the write is complete. Its failure is then a warning."""
        self._post_commit_steps.append(step)

    def commit(
        self,
        stats: Iterable[WriteStat],
        schema: CommitSchema,
        replaced: Mapping[str, tuple[str, ...]] | None = None,
    ) -> str:
        """Publish the write and return its completion time.

        stats: of every file that belongs to it. schema: the table's schema in the commit. replaced:
        replaced file ids by partition path, for a replace commit. Raises `CommitConflict` if the
        write lost its instant to another writer, or another writer changed file groups of it.
        """
        table = self._table
        extra_metadata = {**commit_metadata(table.options), **schema.extra_metadata(self.instant)}
        metadata = CommitMetadata(
            by_partition(stats),
            extra_metadata=extra_metadata,
            operation_type=self._operation,
            compacted=self._operation in _COMPACTING,
            partition_to_replace_file_ids=replaced,
        )
        self._written = metadata
        with table.lock_manager.critical_section():
            if self._heartbeat is not None:
                self._heartbeat.begin_publication()
            with prefetch_commit_reads(
                table, metadata, files=[properties_file.FILE], trees=[markers.folder(self.instant)]
            ):
                now = self._check_before_publish(metadata, schema)
                started = self._open.read_marked_paths()
                # A writer that took the plan over in between has started files of the same instant.
                self._check_alive()
                self._open.delete_unnamed_files(metadata, started)
                commit = Commit(self.instant, metadata, schema, self.by_record_index)
                for participant in table.participants:
                    participant.before_publish(now)
                self._has_run_participants = True
                metadata = run_participants(now, commit, self.participants)
            data = metadata.encode(table.config.version, self._open.action, table.clock)
            began_ms = table.clock.now_ms()
            completion = table.generator.next()
            self._publish(completion, data)
            self._run_post_commit(now)
            self._clear(partial(table.lock_manager.wait_out_clock_skew, began_ms))
        return completion

    def _check_before_publish(
        self, metadata: CommitMetadata, schema: CommitSchema
    ) -> TableSnapshot:
        """Return the current snapshot if the write may complete on it."""
        table, instant = self._table, self.instant
        verified = {commit.requested for commit in table.timeline.commits}
        timeline = Timeline.load(table.storage, table.config)
        timeline = zombie_commits.revoke_zombies(table, timeline, verified)
        table.generator.observe(timeline)
        conflicts.check_still_inflight(timeline, instant, self._open.action)
        self._check_alive()
        conflicts.check_config(table)
        since = conflicts.commits_since_plan(table, timeline, instant)
        self._check_others(since, metadata)
        conflicts.check_schema(since, table, instant, metadata.table_schema and schema.avro)
        for recheck in self._commit_checks:
            recheck(since)
        return since.table

    def _check_others(self, since: conflicts.ConcurrentCommits, metadata: CommitMetadata) -> None:
        conflicts.check_idempotency(since.table.timeline, metadata)
        conflicts.check_file_group_conflicts(
            since,
            self._table.timeline,
            metadata,
            appends=self._appends,
            beats_clustering=LockOptions.of(self._table.options).prefers_writers,
        )

    def _check_alive(self, within_ms: int = 0) -> None:
        self._table.lock_manager.check_held(within_ms)
        if self._is_late:
            write = f"the {self._open.action} {self.instant}"
            msg = (
                f"the writer of {write} stalled for longer than its heartbeat timeout; other "
                "writers may have rolled it back"
            )
            raise retryable_conflict(msg)

    @property
    def _is_late(self) -> bool:
        return self._heartbeat is not None and self._heartbeat.is_late

    def _publish(self, completion: str, data: bytes) -> None:
        with nullcontext() if self._heartbeat is None else self._heartbeat.between_beats():
            self._open.check_inflight()
            late_ms = 0 if self._heartbeat is None else self._heartbeat.late_ms
            self._check_alive(min(late_ms, self._table.lock_manager.lease_ms or 0))
            self._publishing = True
            try:
                self._open.publish(completion, data)
            except CommitConflict:
                self._publishing = False
                raise
        # The writer may have stalled while the completed file was created, and other writers gone
        # on.
        if not conflicts.passes(self._check_alive) and not self._is_committed(completion):
            self._open.delete_completed_file(completion)
            self._publishing = False
            raise self._conflict_error()
        self._state = State.COMPLETED

    def _is_committed(self, completion: str) -> bool:
        """Return whether the publication counts: other writers that found it may have decided."""
        table = self._table
        table.lock_manager.reacquire()
        if self._heartbeat is None or self._heartbeat.mark_zombie():
            return False
        timeline = Timeline.load(table.storage, table.config)
        if timeline.find(self.instant, self._open.action) is None:
            return self._is_own(self._find_archived(timeline))
        path = self._open.path_of_completed(completion)
        return table.storage.exists(path) and not self._open.is_publication_lost(completion)

    def _is_own(self, archived: CommitMetadata | None) -> bool:
        """Return whether an archived commit is the one that this writer has published."""
        return self._publishing and archived is not None and self._written.paths <= archived.paths

    def _find_archived(self, timeline: Timeline) -> CommitMetadata | None:
        action = COMPLETED_ACTION.get(self._open.action, self._open.action)
        commit = timeline.archive.find(self.instant, action)
        return None if commit is None else timeline.archive.commit_metadata(commit)

    def _conflict_error(self) -> CommitConflict:
        msg = f"the {self._open.action} {self.instant} was rolled back by another writer"
        return retryable_conflict(msg)

    def _run_post_commit(self, table: TableSnapshot) -> None:
        """Run the post-commit steps; the commit stands whatever happens here."""
        for step in self._post_commit_steps:
            self._try(step)
        for participant in (*table.participants, *self.participants):
            self._try(partial(participant.after_complete, table))

    def _clear(self, settle: Callable[[], None]) -> None:
        """Remove heartbeat and markers while waiting out clock skew: other writers wait anyway."""
        steps = [self._open.delete_markers, settle]
        if self._heartbeat is not None:
            steps.insert(0, self._heartbeat.stop)
        self._table.storage.run_concurrently(*(partial(self._try, step) for step in steps))

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001  an error would say that the commit failed
            cause = without_hint(error)
            warn(
                f"{self._table.storage.uri}: committed as {self.instant}, but a post-commit "
                f"step failed and is left to the next writer: {cause}",
                AfterCommitWarning,
            )

    def withdraw(self, begun: Iterable[str] | None = None) -> None:
        """End a write that has nothing to commit, without a commit or a rollback.

        begun: paths of all files that may have been started; None for those that markers name.
        """
        self._open.delete_unnamed_files(CommitMetadata(), begun)
        self._open.remove()
        self._state = None
        if self._heartbeat is not None:
            self._heartbeat.stop()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._end(error)
        finally:
            if self._heartbeat is not None:
                self._heartbeat.stop_beating()

    def _end(self, error: BaseException | None) -> None:
        """Roll back what is not complete; raise for an error that came after the commit."""
        if self._state is None:
            return
        published = self._state is State.COMPLETED
        if not published:
            try:
                published = self._finish()
            except Exception as secondary:
                if error is None:
                    raise
                # The next writer rolls back; the caller must see the first error.
                error.__context__ = secondary
                if self._publishing and isinstance(error, Exception):
                    raise self._outcome_unknown_error(error) from error
        if (
            self._is_rolled_back
            and isinstance(error, Exception)
            and not isinstance(error, CommitConflict)
        ):
            raise self._conflict_error() from error
        if published and isinstance(error, KeyboardInterrupt):
            raise InterruptedAfterCommit(self.instant) from error
        if published and isinstance(error, Exception):
            raise AfterCommitError(
                f"committed as {self.instant}; a post-commit step failed: {error}",
                instant=self.instant,
            ) from error

    def _outcome_unknown_error(self, error: Exception) -> CommitUnknown:
        what = (
            "the table's lock was lost" if isinstance(error, LockTimeout) else "the storage failed"
        )
        return CommitUnknown(
            f"{what} while {self.instant} was being committed: it may be committed or not",
            instant=self.instant,
        )

    def roll_back(self) -> None:
        """Roll the write back, unless it is complete or removed already."""
        self._finish()

    def _finish(self) -> bool:
        """Roll a pending write back; return whether it was complete."""
        lock_manager = self._table.lock_manager
        with lock_manager.critical_section():
            # A critical section may go on without its lock, or lose it during this check.
            try:
                lock_manager.check_held()
                return self._finish_under_lock()
            except Exception:
                if conflicts.passes(lock_manager.check_held):
                    raise
            lock_manager.reacquire()
            return self._finish_under_lock()

    def _finish_under_lock(self) -> bool:
        table = self._table
        timeline = zombie_commits.load_timeline(table)
        instant = timeline.find(self.instant, self._open.action)
        if instant is not None and not instant.is_completed:
            self._roll_back_pending(timeline, instant)
            return False
        commit = timeline.commit_metadata(instant) if instant else self._find_archived(timeline)
        if instant is None:
            if self._is_own(commit):
                return True
            self._is_rolled_back = True
        if commit is None:
            attempt_files.remove_attempt(self._open, timeline, self._written.paths)
        elif commit.paths:
            # Another writer has completed the plan. Up to table version 6 Hudi's completed file may
            # be empty for a moment.
            own = self._own(commit.partition_to_write_stats)
            self._open.delete_unnamed_files(commit, [*self._open.read_marked_paths(), *own])
            self._open.delete_markers()
        return instant is not None

    def _roll_back_pending(self, timeline: Timeline, pending: Instant) -> None:
        """Undo the write, which is still pending, within a critical section.

        If its markers alone name its files, they are deleted with the instant, without a pending
        rollback: Hudi would execute that rollback as well, and fail if it is slower (up to 1.0.2).
        Up to table version 6 Hudi's compaction plans name log files of pending writes.
        """
        table = self._table
        if self._shares_markers(timeline) and not self._has_run_participants:
            self._open.delete_unnamed_files(CommitMetadata(), self._written.paths)
            self._open.withdraw_beginning()
            self._open.withdraw_request()
            return
        if self._is_late:
            # Other writers may have rolled it back before, and not have seen all files.
            missed = attempt_files.files_after_rollback(table, timeline, self.instant)
            attempt_files.remove_unless_kept(table.storage, timeline, self.instant, missed)
        logs = table.config.version.rollback_appends_command and table.config.is_merge_on_read
        needs_rollback = self._has_run_participants or self._shared or logs
        marked = None if needs_rollback else markers.read_all(table.storage, self.instant)
        if marked is None:
            rollback.roll_back(table, timeline, pending)
            if self._is_late:
                # Other writers may have removed markers, or started to remove the instant.
                now = Timeline.load(table.storage, table.config)
                written = self._written.paths
                attempt_files.remove_unless_kept(table.storage, now, self.instant, written)
            return
        # Other writers may have removed markers of a stalled writer.
        self.withdraw({marker.path for marker in marked} | self._written.paths)
        partitions = {marker.partition for marker in marked}
        remove_staged_of(table.storage, partitions, self.instant, table.clock)

    def _shares_markers(self, now: Timeline) -> bool:
        """Return whether another write of the same time is pending, which deletes unnamed files."""
        others = now.of_same_time(self.instant, self._open.action)
        return any(not o.is_completed and o.completed_action in COMMIT_ACTIONS for o in others)

    def _own(self, partitions: Iterable[str]) -> Iterable[str]:  # noqa: ARG002
        """Paths of this writer's files, whose markers other writers may have removed."""
        return self._written.paths
