"""The life of one write on the timeline: begin, then publish or roll back.

Other writers may write concurrently. All timeline changes happen in two critical sections. The
order of steps is Hudi's (`BaseHoodieWriteClient`, 1.2.0). A crash can happen after each step:

1. `recovery.py` executes pending rollbacks, rolls back failed writes and removes leftover markers
   and staged files. The write is planned on the resulting timeline.
2. `Transaction` is entered. In one critical section: an instant later than all existing ones,
   heartbeat, requested file.
3. `start`: inflight file with the workload profile.
4. Tasks write data files, each after its marker. Readers see none of them.
5. `commit`. In one critical section: the timeline is reloaded and checked for concurrent changes
   (`conflicts.py`), marked files that are not in the statistics are removed, commit participants
   are synced. The completed file publishes the write. Then heartbeat and markers are removed, and
   participants run their post-commit steps. A failure after the publication is a warning: an error
   would make the caller write again.

A lock cannot stop a writer that lost it. So a write is published only while its lock, its heartbeat
and its inflight file exist.

The recovery's rollbacks take their instants before the new write takes one, because Hudi 0.15's log
reader stops at the first block that is later than the last commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pyhudi import events
from pyhudi.config.actions import Instant, State
from pyhudi.config.extra_metadata import commit_metadata
from pyhudi.config.lock_options import LockOptions
from pyhudi.errors import CommitConflict, retryable_conflict
from pyhudi.schema.commit_schema import CommitSchema
from pyhudi.slices import markers
from pyhudi.slices.listing import ListedOnce
from pyhudi.storage import properties_file
from pyhudi.table.participants import (
    Commit,
    CommitParticipant,
    prefetch_commit_reads,
    prefetch_publication_check,
    run_participants,
)
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat, by_partition
from pyhudi.txn import attempt_files, conflicts, replace_commit, rollback, zombie_commits
from pyhudi.txn.conflicts import CommitCheck, ConcurrentCommits
from pyhudi.txn.heartbeat import Heartbeat
from pyhudi.txn.orphan_files import remove_staged_of
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.post_commit import outcome_error, raise_after_commit, rollback_error, try_step

if TYPE_CHECKING:
    from typing_extensions import Self

_COMPACTING = frozenset({"COMPACT", "LOG_COMPACT"})


class Transaction:
    """One write. It is rolled back if the block ends without `commit`."""

    def __init__(
        self,
        table: TableSnapshot,
        operation: str,
        *,
        commit_checks: Iterable[CommitCheck] = (),
        appends: bool = False,
        shared: bool = False,
        files: ListedOnce | None = None,
    ) -> None:
        """Write nothing yet.

        table: the snapshot on which the write was planned. operation: Hudi's name, such as UPSERT.
        commit_checks: commit checks of what the write relied on. appends: other writers may append
        to the same file groups. shared: other processes continue the write, so its heartbeat does
        not depend on this one. files: the listing on which the write was planned.
        """
        self._table = table
        self._operation = operation
        self._commit_checks = tuple(commit_checks)
        self._appends = appends
        self._pending = PendingInstant(table, "", replace_commit.action_of(table.config, operation))
        self._state: State | None = None
        self._publishing = False
        self._is_rolled_back = False
        """Whether another writer has rolled it back."""
        self._has_run_participants = False
        self._shared = shared
        self._files = files
        self._heartbeat: Heartbeat | None = None
        self._latest_time = ""
        """The latest time on the timeline when the write began."""
        self._post_commit_steps: list[Callable[[], None]] = []
        self._written = CommitMetadata()
        self.by_record_index = False
        """Whether the record index tagged the keys, so it contains all tagged records."""
        self.has_overgrown = False
        """Whether it appends to a file group with far too many log files."""
        self.participants: list[CommitParticipant] = []
        """Commit participants of this write, in addition to those of the table."""

    @classmethod
    def resume(cls, table: TableSnapshot, operation: str, instant: str) -> Transaction:
        """Return the transaction of a write that another process started."""
        txn = cls(table, operation)
        txn._pending = replace(txn._pending, time=instant)
        txn._state = State.INFLIGHT
        # The other process may have run them.
        txn._has_run_participants = True
        return txn

    @property
    def instant(self) -> str:
        """The write's requested time, once entered."""
        return self._pending.time

    def __enter__(self) -> Self:
        """Begin the write. Raises `CommitConflict` and `LockTimeout`, without leftovers."""
        if self._state is State.INFLIGHT:
            self._heartbeat = self._new_heartbeat()
            self._heartbeat.start()
            return self
        try:
            with self._table.lock_manager.critical_section():
                self._begin()
        except BaseException:
            # The next writer removes files that cannot be deleted now.
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
            lock_lease_ms=table.lock_manager.lease_ms,
        )

    def _begin(self) -> None:
        table = self._table
        began_ms = table.clock.now_ms()
        heartbeat = self._take_instant()
        # The instant is later than those of the plan, and rarely has to be later than another.
        table.storage.run_concurrently(self._reload, heartbeat.start_new)
        while not heartbeat.has_started or self._latest_time >= self.instant:
            heartbeat.stop()
            began_ms = table.clock.now_ms()
            heartbeat = self._take_instant()
            heartbeat.start_new()
        table.lock_manager.check_held()
        self._state = State.REQUESTED
        plan = replace_commit.content_of_request(table.config.version, self._operation, table.clock)
        self._pending.request(plan)
        table.lock_manager.wait_out_clock_skew(began_ms)

    def _take_instant(self) -> Heartbeat:
        self._pending = replace(self._pending, time=self._table.generator.next())
        self._heartbeat = self._new_heartbeat()
        return self._heartbeat

    def _reload(self) -> None:
        table = self._table
        current = conflicts.reload_timeline(table)
        self._latest_time = current.latest_time() or ""
        conflicts.check_planned_commits_exist(table.timeline, current)

    def _withdraw_request(self) -> None:
        """Withdraw a write that has created at most its requested file."""
        heartbeat, is_requested = self._heartbeat, self._state is State.REQUESTED
        self._state = None
        if heartbeat is not None:
            heartbeat.stop_beating()
        if is_requested:
            self._pending.withdraw_request()
        if heartbeat is not None:
            heartbeat.stop()

    def start(self, profile: Mapping[str, tuple[WriteStat, ...]] | None) -> None:
        """Create the inflight file with the planned file groups, None if they are unknown."""
        table = self._table
        data = b""
        if profile is not None:
            metadata = CommitMetadata(profile, operation_type=self._operation)
            self._check_marker_conflicts(metadata)
            data = metadata.encode_inflight(table.config.version, table.clock)
        self._pending.begin(data)
        self._state = State.INFLIGHT

    def _check_marker_conflicts(self, profile: CommitMetadata) -> None:
        """Detect conflicts before files are written, if the options enable that."""
        table = self._table
        if LockOptions.of(table.options).early_detection and not table.lock_manager.is_held:
            conflicts.check_markers(
                table, self.instant, conflicts.collect_written_file_groups(profile)
            )

    def on_completed(self, step: Callable[[], None]) -> None:
        """Add a step that runs after the write is complete; its failure is a warning."""
        self._post_commit_steps.append(step)

    def commit(
        self,
        stats: Iterable[WriteStat],
        schema: CommitSchema,
        replaced: Mapping[str, tuple[str, ...]] | None = None,
    ) -> str:
        """Publish the write and return its completion time.

        stats: of all files of the write. schema: the table's schema in the commit. replaced:
        replaced file ids by partition path, for a replace commit. Raises `CommitConflict` if
        another writer rolled the write back or changed the same file groups.
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
        table.storage.sync_directories(metadata.paths)
        listed = {} if self._files is None else self._files.listed
        action = self._pending.action
        with (
            table.lock_manager.critical_section(),
            events.observe(events.Commit, table.storage.uri, action, self.instant),
        ):
            if self._heartbeat is not None:
                self._heartbeat.begin_publication()
            with prefetch_commit_reads(
                table,
                metadata,
                files=[properties_file.FILE],
                trees=[markers.folder(self.instant)],
                listed=listed,
            ):
                current = self._check_before_publish(metadata, schema)
                marked_paths = self._pending.read_marked_paths()
                # Otherwise the markers may be those of a writer that took the plan over.
                self._check_alive()
                self._pending.delete_unnamed_files(metadata, marked_paths)
                commit = Commit(self.instant, metadata, schema, self.by_record_index)
                commit.action = self._pending.action
                commit.has_overgrown = self.has_overgrown
                own = current.timeline.find(self.instant, action)
                if conflicts.has_only_planned_files(table.timeline, current.timeline, own):
                    commit.listed = listed
                for participant in (*table.participants, *self.participants):
                    participant.validate(current, commit)
                for participant in table.participants:
                    participant.before_publish(current)
                self._has_run_participants = True
                with prefetch_publication_check(table) as drop_old_listing:
                    metadata = run_participants(current, commit, self.participants)
                    data = metadata.encode(table.config.version, self._pending.action, table.clock)
                    drop_old_listing()
                    began_ms = table.clock.now_ms()
                    completion = table.generator.next()
                    self._publish(completion, data)
            commit.completion = completion
            table.lock_manager.wait_out_clock_skew(began_ms)
            delete_markers = self._pending.delete_markers_of_commit
            self._run_post_commit_steps(
                current, commit, partial(delete_markers, metadata.paths, marked_paths)
            )
        return completion

    def _check_before_publish(
        self, metadata: CommitMetadata, schema: CommitSchema
    ) -> TableSnapshot:
        """Return the current snapshot. Raises `CommitConflict` if the write must not complete."""
        table, instant = self._table, self.instant
        verified = {commit.requested for commit in table.timeline.commits}
        timeline = Timeline.load(table.storage, table.config)
        timeline = zombie_commits.revoke_zombies(table, timeline, verified)
        table.generator.observe(timeline)
        conflicts.check_still_inflight(timeline, instant, self._pending.action)
        self._check_alive()
        conflicts.check_config(table)
        concurrent = conflicts.commits_since_plan(table, timeline, instant)
        self._check_others(concurrent, metadata)
        conflicts.check_schema(concurrent, table, instant, metadata.table_schema and schema.avro)
        for commit_check in self._commit_checks:
            commit_check(concurrent)
        return concurrent.table

    def _check_others(self, concurrent: ConcurrentCommits, metadata: CommitMetadata) -> None:
        conflicts.check_idempotency(concurrent.table.timeline, metadata)
        conflicts.check_file_group_conflicts(
            concurrent,
            self._table.timeline,
            metadata,
            appends=self._appends,
            beats_clustering=LockOptions.of(self._table.options).prefers_writers,
        )

    def _check_alive(self, within_ms: int = 0) -> None:
        self._table.lock_manager.check_held(within_ms)
        if self._is_late:
            raise retryable_conflict(
                f"the writer of the {self._pending.action} {self.instant} stalled for longer than "
                "its heartbeat timeout; other writers may have rolled it back"
            )

    @property
    def _is_late(self) -> bool:
        return self._heartbeat is not None and self._heartbeat.is_late

    def _publish(self, completion: str, data: bytes) -> None:
        with nullcontext() if self._heartbeat is None else self._heartbeat.between_beats():
            self._pending.check_inflight()
            grace_ms = 0 if self._heartbeat is None else self._heartbeat.late_ms
            self._check_alive(min(grace_ms, self._table.lock_manager.lease_ms or 0))
            self._publishing = True
            try:
                self._pending.publish(completion, data)
            except CommitConflict:
                self._publishing = False
                raise
        # The writer may have stalled while it created the completed file.
        if not conflicts.is_satisfied(self._check_alive) and not self._is_committed(completion):
            self._pending.delete_completed_file(completion)
            self._publishing = False
            raise rollback_error(self._pending.action, self.instant)
        self._state = State.COMPLETED

    def _is_committed(self, completion: str) -> bool:
        """Return whether the publication counts, as other writers may have decided already."""
        table = self._table
        table.lock_manager.reacquire()
        if self._heartbeat is None or self._heartbeat.mark_zombie():
            return False
        timeline = Timeline.load(table.storage, table.config)
        if timeline.find(self.instant, self._pending.action) is None:
            return self._is_own(self._pending.find_archived(timeline))
        path = self._pending.path_of_completed(completion)
        return table.storage.exists(path) and not self._pending.is_publication_lost(completion)

    def _is_own(self, archived: CommitMetadata | None) -> bool:
        """Return whether this writer has published the archived commit."""
        return self._publishing and archived is not None and self._written.paths <= archived.paths

    def _run_post_commit_steps(
        self, table: TableSnapshot, commit: Commit, delete_markers: Callable[[], None]
    ) -> None:
        """Run the post-commit steps; a failure does not undo the commit."""
        for step in self._post_commit_steps:
            self._try(step)
        # Services would have to check a commit whose heartbeat is still there.
        steps = [delete_markers]
        if self._heartbeat is not None:
            steps.insert(0, self._heartbeat.stop)
        self._table.storage.run_concurrently(*(partial(self._try, step) for step in steps))
        for participant in (*table.participants, *self.participants):
            self._try(partial(participant.after_complete, table, commit))

    def _try(self, step: Callable[[], None]) -> None:
        try_step(self._table.storage.uri, self.instant, step)

    def withdraw(self, started_paths: Iterable[str] | None = None) -> None:
        """End a write that has nothing to commit, without a commit or a rollback.

        started_paths: of all files that may have been started; None for those that markers name.
        """
        paths = self._pending.read_marked_paths() if started_paths is None else {*started_paths}
        self._pending.delete_unnamed_files(CommitMetadata(), paths)
        self._pending.remove(paths if self._table.engine.has_late_tasks else None)
        self._state = None
        if self._heartbeat is not None:
            self._heartbeat.stop()

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        try:
            self._end(error)
        finally:
            if self._heartbeat is not None:
                self._heartbeat.stop_beating()

    def _end(self, error: BaseException | None) -> None:
        """Roll back an incomplete write; replace an error that came after the commit."""
        if self._state is None:
            return
        published = self._state is State.COMPLETED
        if not published:
            try:
                published = self._finish()
            except Exception as secondary:
                if error is None:
                    raise
                # The next writer rolls back; the caller needs the first error.
                error.__context__ = secondary
                if self._publishing and isinstance(error, Exception):
                    raise outcome_error(self.instant, error) from error
        if (
            self._is_rolled_back
            and isinstance(error, Exception)
            and not isinstance(error, CommitConflict)
        ):
            raise rollback_error(self._pending.action, self.instant) from error
        if published:
            raise_after_commit(self.instant, error)

    def roll_back(self) -> None:
        """Roll the write back, unless it is complete or removed."""
        self._finish()

    def _finish(self) -> bool:
        """Roll a pending write back; return whether it was complete."""
        lock_manager = self._table.lock_manager
        with lock_manager.critical_section():
            # The lock may have been lost before, or may be lost while this runs.
            try:
                lock_manager.check_held()
                return self._finish_under_lock()
            except Exception:
                if conflicts.is_satisfied(lock_manager.check_held):
                    raise
            lock_manager.reacquire()
            return self._finish_under_lock()

    def _finish_under_lock(self) -> bool:
        table = self._table
        timeline = zombie_commits.load_timeline(table)
        instant = timeline.find(self.instant, self._pending.action)
        if instant is not None and not instant.is_completed:
            self._roll_back_pending(timeline, instant)
            return False
        commit = (
            timeline.commit_metadata(instant) if instant else self._pending.find_archived(timeline)
        )
        if instant is None:
            if self._is_own(commit):
                return True
            self._is_rolled_back = True
        if commit is None:
            attempt_files.remove_attempt(self._pending, timeline, self._written.paths)
        elif commit.paths:
            # Another writer has completed the plan. Up to table version 6 Hudi's completed file is
            # empty at first, and has no paths then.
            own_paths = self._paths_of_files(commit.partition_to_write_stats)
            self._pending.delete_unnamed_files(
                commit, [*self._pending.read_marked_paths(), *own_paths]
            )
            self._pending.delete_markers()
        return instant is not None

    def _roll_back_pending(self, timeline: Timeline, pending: Instant) -> None:
        """Undo the pending write, within a critical section.

        If markers name all of its files, these are deleted and the instant is withdrawn. A pending
        rollback would be executed by Hudi, too, which fails if pyhudi is faster (up to 1.0.2). Up
        to table version 6 a merge-on-read table needs a rollback, since Hudi's compaction plans
        name log files of pending writes.
        """
        table = self._table
        if self._pending.shares_markers(timeline) and not self._has_run_participants:
            self._pending.delete_unnamed_files(CommitMetadata(), self._written.paths)
            self._pending.withdraw_inflight()
            self._pending.withdraw_request()
            return
        if self._is_late:
            # Another writer may have rolled it back before all files were written.
            files_after_rollback = attempt_files.files_after_rollback(table, timeline, self.instant)
            attempt_files.remove_unless_kept(
                table.storage, timeline, self.instant, files_after_rollback
            )
        logs = table.config.version.rollback_appends_command and table.config.is_merge_on_read
        needs_rollback = self._has_run_participants or self._shared or logs
        marked = None if needs_rollback else markers.read_all(table.storage, self.instant)
        if marked is None:
            rollback.roll_back(table, timeline, pending)
            if self._is_late:
                # Another writer may have removed markers, or started to remove the instant.
                current = Timeline.load(table.storage, table.config)
                written = self._written.paths
                attempt_files.remove_unless_kept(table.storage, current, self.instant, written)
            return
        # Another writer may have removed markers of this one, if it stalled.
        self.withdraw({marker.path for marker in marked} | self._written.paths)
        partitions = {marker.partition for marker in marked}
        remove_staged_of(table.storage, partitions, self.instant, table.clock)

    def _paths_of_files(self, partitions: Iterable[str]) -> Iterable[str]:  # noqa: ARG002
        """Return the paths of this writer's files, whose markers may be removed already."""
        return self._written.paths
