"""An incomplete instant: its timeline files and the data files of its write.

Each change of a data table or a metadata table uses these steps from requested to completed. The
callers decide when a writer may take a step (`transaction.py`, `rollback.py`, the services).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pyhudi.config.actions import COMMIT_ACTIONS, COMPACTION, COMPLETED_ACTION, State
from pyhudi.config.file_names import parse_log_name
from pyhudi.errors import CommitConflict
from pyhudi.slices import markers
from pyhudi.slices.slice_builder import groups_of_plan
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline, instant_files
from pyhudi.timeline.active import keep_commit
from pyhudi.timeline.commit_metadata import CommitMetadata


@dataclass(frozen=True)
class PendingInstant:
    """One instant of a table between its request and its completion."""

    table: TableSnapshot
    time: str
    """The requested time."""
    action: str
    """The action of its pending files, such as `compaction`."""

    def request(self, plan: bytes = b"") -> None:
        """Create the requested file. Raises `CommitConflict` if the instant exists."""
        instant_files.request(
            self.table.config.layout, self.table.storage, self.time, self.action, plan
        )

    def request_planned(self, plan: bytes, planned_on: Timeline) -> None:
        """Request an instant in a critical section, with a plan based on the timeline `planned_on`.

        If this writer stalls while it creates the file and loses its lock, other writers may go on,
        and the plan would hide their files. Then the plan is withdrawn with a `CommitConflict`,
        unless other writers may have used it already.
        """
        self.table.lock_manager.check_held()
        self.request(plan)
        try:
            self.table.lock_manager.check_held()
        except CommitConflict:
            if self.has_newer_instants(planned_on) and not self._may_have_log_files():
                self.withdraw_request()
                raise

    def has_newer_instants(self, planned_on: Timeline) -> bool:
        """Return whether another instant was added to the timeline since `planned_on`."""
        table = self.table
        current = Timeline.load(table.storage, table.config)
        return any(
            instant.requested != self.time
            for instant in {*current.instants} - {*planned_on.instants}
        )

    def find_archived(self, timeline: Timeline) -> CommitMetadata | None:
        """Return the metadata of the archived commit that the instant has become, if any."""
        commit = timeline.archive.find(self.time, COMPLETED_ACTION.get(self.action, self.action))
        return None if commit is None else timeline.archive.commit_metadata(commit)

    def shares_markers(self, current: Timeline) -> bool:
        """Return whether a pending write of the same time has its files in the same markers."""
        return any(
            not other.is_completed and other.completed_action in COMMIT_ACTIONS
            for other in current.of_same_time(self.time, self.action)
        )

    def _may_have_log_files(self) -> bool:
        """Return whether there may be log files that depend on this plan.

        Up to table version 6, log files bear the instant of a planned compaction, and without it
        they belong to no slice. The compaction merges log files from before the plan, too
        (`services/compaction.py`).
        """
        table = self.table
        if self.action != COMPACTION or not table.config.version.logs_named_by_base_instant:
            return False
        # Under the lock, no write begins or completes before the plan is withdrawn.
        table.lock_manager.reacquire()
        current = Timeline.load(table.storage, table.config)
        planned = current.find(self.time, self.action)
        if planned is None or any(
            not current.is_clustering(write) for write in current.pending(*COMMIT_ACTIONS)
        ):
            return True
        partitions = {partition for partition, _ in groups_of_plan(current.plan(planned))}
        files = (file for path in partitions for file in table.storage.list_dir(path)[1])
        logs = (parse_log_name(file.name) for file in files)
        return any(log is not None and log.instant == self.time for log in logs)

    def begin(self, content: bytes = b"") -> None:
        """Create the inflight file. Raises `CommitConflict` if it exists."""
        instant_files.start(
            self.table.config.layout, self.table.storage, self.time, self.action, content
        )

    def delete_unnamed_files(
        self, metadata: CommitMetadata, started_paths: Iterable[str] | None = None
    ) -> None:
        """Delete started files that the commit does not name: those of failed attempts.

        started_paths: of all files that may have been started; None for those that markers name.
        This includes log files, each of which belongs to one attempt.
        """
        storage = self.table.storage
        if started_paths is None:
            started_paths = self.read_marked_paths()
        named_paths = metadata.paths
        storage.delete_all(path for path in started_paths if path not in named_paths)

    def read_marked_paths(self) -> list[str]:
        """Return the paths of all files that markers name."""
        return [marker.path for marker in markers.read_all(self.table.storage, self.time) or ()]

    def complete(self, content: bytes, files: Collection[str] = ()) -> str:
        """Create the completed file and return the completion time.

        files: paths that the content names; their names become durable before. Raises
        `CommitConflict` if another writer has rolled the instant back, completed it, or restarted
        it without these files.
        """
        self.table.storage.sync_directories(files)
        completion = self.table.generator.next()
        self.check_inflight()
        self.table.lock_manager.check_held()
        self.publish(completion, content)
        try:
            self.table.lock_manager.check_held()
        except CommitConflict:
            exists = self.table.storage.exists
            if self.is_publication_lost(completion) or not all(map(exists, files)):
                self.delete_completed_file(completion)
                raise
        return completion

    def check_inflight(self) -> None:
        """Raise `CommitConflict` unless the instant is inflight and not complete."""
        table = self.table
        instant_files.check_inflight(table.config.layout, table.storage, self.time, self.action)

    def publish(self, completion: str, content: bytes) -> None:
        """Create the completed file. The caller has just checked that the instant is inflight."""
        layout, storage = self.table.config.layout, self.table.storage
        try:
            instant_files.publish(layout, storage, self.time, self.action, completion, content)
        except CommitConflict:
            raise
        except Exception:
            # The response may have been lost.
            if storage.read_or_none(self.path_of_completed(completion)) != content:
                raise
        completed_action = COMPLETED_ACTION.get(self.action, self.action)
        if layout.completion_in_name and completed_action in COMMIT_ACTIONS:
            keep_commit(storage, self.path_of_completed(completion), content)

    def is_publication_lost(self, completion: str) -> bool:
        """Return whether another writer rolled it back or completed it during `publish`."""
        table, layout = self.table, self.table.config.layout
        return not self.is_inflight or instant_files.is_completed_otherwise(
            layout, table.storage, self.time, self.action, completion
        )

    def delete_markers(self) -> None:
        """Delete its markers, after it is complete or removed."""
        markers.delete_all(self.table.storage, self.time)

    def delete_markers_of_commit(
        self, named_paths: Collection[str], marked_paths: Collection[str]
    ) -> None:
        """Delete the markers of a complete instant, and files that late tasks wrote.

        named_paths: those of the commit. marked_paths: those of the markers that it read before it
        deleted unnamed files. A late task may have written files since; from now on it removes them
        itself (`late_files.py`).
        """
        if self.table.engine.has_late_tasks:
            marked_paths = {*marked_paths, *self.read_marked_paths()}
        self.delete_markers()
        self.table.storage.delete_all(path for path in marked_paths if path not in named_paths)

    def revert_to_requested(self, started_paths: Iterable[str] | None = None) -> None:
        """Delete the written files and make the instant requested again.

        Raises `CommitConflict` if another writer may hold the lock, since its files may have the
        same names.
        """
        if started_paths is None:
            started_paths = self.read_marked_paths()
        self.table.lock_manager.check_held()
        self.delete_unnamed_files(CommitMetadata(), started_paths)
        self.withdraw_attempt()

    def withdraw_attempt(self) -> None:
        """Make the instant requested again, after the files of the attempt were deleted."""
        self._remove(State.INFLIGHT)
        self.delete_markers()

    def remove(self, deleted_paths: Collection[str] | None = None) -> None:
        """Remove the instant from the timeline, after its files were deleted.

        deleted_paths: if markers name other files, the markers stay, because the writer is still
        writing and the next writer needs them to find its files (`recovery.py`). None: the writer
        has ended.
        """
        self._remove(State.INFLIGHT)
        self._remove(State.REQUESTED)
        if deleted_paths is None or {*self.read_marked_paths()} <= {*deleted_paths}:
            self.delete_markers()

    def withdraw_request(self) -> None:
        """Remove the requested file of an instant that has written nothing."""
        self._remove(State.REQUESTED)

    def withdraw_inflight(self) -> None:
        """Remove the inflight file of an instant that has written nothing."""
        self._remove(State.INFLIGHT)

    def unpublish(self) -> None:
        """Make a completed instant inflight again by removing the completed file."""
        self._remove(State.COMPLETED)

    def delete_completed_file(self, completion: str) -> None:
        """Remove the completed file that `publish` created."""
        self.table.storage.delete(self.path_of_completed(completion))

    @property
    def is_requested(self) -> bool:
        """Whether its requested file exists."""
        return self._has(State.REQUESTED)

    @property
    def is_inflight(self) -> bool:
        """Whether its inflight file exists."""
        return self._has(State.INFLIGHT)

    def _has(self, state: State) -> bool:
        layout = self.table.config.layout
        return self.table.storage.exists(
            layout.path(layout.file_name(self.time, self.action, state))
        )

    def path_of_completed(self, completion: str) -> str:
        """Return the path of the file that `publish` creates."""
        layout = self.table.config.layout
        name = layout.file_name(self.time, self.action, State.COMPLETED, completion)
        return layout.path(name)

    def _remove(self, state: State) -> None:
        instant_files.remove(
            self.table.config.layout, self.table.storage, self.time, self.action, state
        )
