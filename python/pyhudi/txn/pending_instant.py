"""An instant that is not complete: its timeline files, and the data files of its write.

Every change of a data table or a metadata table goes from requested to completed by these steps,
for every action. The callers decide who may take a step, and when (`transaction.py`,
`rollback.py`, the services).
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
        """Create the requested file. Raises `CommitConflict` if the instant exists already."""
        instant_files.request(
            self.table.config.layout, self.table.storage, self.time, self.action, plan
        )

    def request_planned(self, plan: bytes, seen: Timeline) -> None:
        """Request an instant in a critical section, with a plan made from the timeline `seen`.

        Raises `CommitConflict`, with nothing left, if other writers went on since: a plan that does
        not know their files would hide them. That can happen only if the writer stalled while it
        created the file and lost its lock. The plan stays if other writers may have used it
        already.
        """
        self.table.lock_manager.check_held()
        self.request(plan)
        try:
            self.table.lock_manager.check_held()
        except CommitConflict:
            if self.has_newer_instants(seen) and not self._may_be_gone_by():
                self.withdraw_request()
                raise

    def has_newer_instants(self, seen: Timeline) -> bool:
        """Return whether the timeline has instants besides this one and those of `seen`."""
        table = self.table
        now = Timeline.load(table.storage, table.config)
        return any(instant.requested != self.time for instant in {*now.instants} - {*seen.instants})

    def _may_be_gone_by(self) -> bool:
        """Return whether writers may have written log files that are valid by this plan alone.

        Up to table version 6 those bear the instant of the planned compaction, and without it they
        belong to no slice. Log files written before the plan are merged as well
        (`services/compaction.py`).
        """
        table = self.table
        if self.action != COMPACTION or not table.config.version.logs_named_by_base_instant:
            return False
        # No writer begins or completes a write between this check and the end of the plan.
        table.lock_manager.reacquire()
        now = Timeline.load(table.storage, table.config)
        planned = now.find(self.time, self.action)
        if planned is None or any(not now.is_clustering(w) for w in now.pending(*COMMIT_ACTIONS)):
            return True
        partitions = {partition for partition, _ in groups_of_plan(now.plan(planned))}
        files = (file for path in partitions for file in table.storage.list_dir(path)[1])
        logs = (parse_log_name(file.name) for file in files)
        return any(log is not None and log.instant == self.time for log in logs)

    def begin(self, content: bytes = b"") -> None:
        """Create the inflight file. Raises `CommitConflict` if it exists."""
        instant_files.start(
            self.table.config.layout, self.table.storage, self.time, self.action, content
        )

    def delete_unnamed_files(
        self, metadata: CommitMetadata, begun: Iterable[str] | None = None
    ) -> None:
        """Delete files that were started and that the commit does not name, of failed attempts.

        begun: paths of all files that may have been started; None for those that markers name. Log
        files go too, also up to table version 6: a log file here belongs to one attempt.
        """
        storage = self.table.storage
        if begun is None:
            begun = self.read_marked_paths()
        listed = metadata.paths
        storage.delete_all(path for path in begun if path not in listed)

    def read_marked_paths(self) -> list[str]:
        """Return the paths of the files that markers name, of any writer."""
        return [marker.path for marker in markers.read_all(self.table.storage, self.time) or ()]

    def complete(self, content: bytes, files: Iterable[str] = ()) -> str:
        """Create the completed file and return the completion time.

        files: paths that the content names. Raises `CommitConflict` if another writer rolled the
        instant back or completed it, also while the file was created, or took it over and started
        it again without these files.
        """
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
        """Raise `CommitConflict` unless the instant is inflight, and not complete at any time."""
        table = self.table
        instant_files.check_inflight(table.config.layout, table.storage, self.time, self.action)

    def publish(self, completion: str, content: bytes) -> None:
        """`complete` for a caller that has just checked that the instant is inflight."""
        layout, storage = self.table.config.layout, self.table.storage
        try:
            instant_files.publish(layout, storage, self.time, self.action, completion, content)
        except CommitConflict:
            raise
        except Exception:
            # The response may have been lost.
            if storage.read_or_none(self.path_of_completed(completion)) != content:
                raise
        done = COMPLETED_ACTION.get(self.action, self.action)
        if layout.completion_in_name and done in COMMIT_ACTIONS:
            keep_commit(storage, self.path_of_completed(completion), content)

    def is_publication_lost(self, completion: str) -> bool:
        """Return whether another writer rolled the instant back while `publish` ran.

        Or took it over: then it is complete at another time, too.
        """
        table, layout = self.table, self.table.config.layout
        return not self.is_inflight or instant_files.is_completed_otherwise(
            layout, table.storage, self.time, self.action, completion
        )

    def delete_markers(self) -> None:
        """Delete its markers, once it is complete or removed."""
        markers.delete_all(self.table.storage, self.time)

    def revert_to_requested(self, begun: Iterable[str] | None = None) -> None:
        """Delete the written files, which no reader sees, and leave the instant requested.

        Raises `CommitConflict` if another writer may hold the lock: its files may have the same
        names.
        """
        if begun is None:
            begun = self.read_marked_paths()
        self.table.lock_manager.check_held()
        self.delete_unnamed_files(CommitMetadata(), begun)
        self.withdraw_attempt()

    def withdraw_attempt(self) -> None:
        """Leave the instant requested. The files of the attempt must be deleted."""
        self._remove(State.INFLIGHT)
        self.delete_markers()

    def remove(self, gone: Collection[str] | None = None) -> None:
        """Remove the instant from the timeline. Its files must be deleted.

        gone: their paths. If markers name more files, the markers stay: the writer has gone on, and
        the next writer finds its files by them (`recovery.py`). None: the writer does not go on.
        """
        self._remove(State.INFLIGHT)
        self._remove(State.REQUESTED)
        if gone is None or {*self.read_marked_paths()} <= {*gone}:
            self.delete_markers()

    def withdraw_request(self) -> None:
        """Remove the requested file of an instant that has written nothing."""
        self._remove(State.REQUESTED)

    def withdraw_beginning(self) -> None:
        """Remove the inflight file of an instant that has written nothing."""
        self._remove(State.INFLIGHT)

    def unpublish(self) -> None:
        """Make a completed instant inflight again: only the completed file is removed."""
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
