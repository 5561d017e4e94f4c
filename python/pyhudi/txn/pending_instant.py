"""An instant that is not complete: its files on the timeline, and what is written in its name.

Every change of a data table or a metadata table goes from requested to completed by these steps,
whatever its action; who may take them, and when, is the caller's part (`transaction.py`,
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
from pyhudi.timeline import Timeline
from pyhudi.timeline.active import keep_commit
from pyhudi.timeline.commit_metadata import CommitMetadata


@dataclass(frozen=True)
class PendingInstant:
    """One instant of a table between its request and its completion."""

    table: TableSnapshot
    time: str
    """Its requested time."""
    action: str
    """Of its pending files, such as `compaction`."""

    def request(self, plan: bytes = b"") -> None:
        """Creates the requested file. Raises `CommitConflict` if the instant is there already."""
        self.table.config.layout.request(self.table.storage, self.time, self.action, plan)

    def request_planned(self, plan: bytes, seen: Timeline) -> None:
        """`request` within a section, of what was planned from a timeline.

        Raises `CommitConflict`, with nothing left, where others went on since: a plan that does not
        know of them would hide what they wrote. That takes a writer who stood still as the file was
        made, and whose lock was taken. It stays where they may have gone by it already.
        """
        self.table.guard.check_held()
        self.request(plan)
        try:
            self.table.guard.check_held()
        except CommitConflict:
            if self.has_newer_instants(seen) and not self._may_be_gone_by():
                self.withdraw_request()
                raise

    def has_newer_instants(self, seen: Timeline) -> bool:
        """Whether the timeline has more by now than this instant and what was seen of it."""
        table = self.table
        now = Timeline.load(table.storage, table.config)
        return any(known.requested != self.time for known in {*now.instants} - {*seen.instants})

    def _may_be_gone_by(self) -> bool:
        """Whether writers may have written log files that count by this plan alone.

        Up to table version 6 those bear the instant of the compaction that is planned, and no slice
        would have them without it. What was written before the plan was there is merged as well
        (`services/compaction.py`).
        """
        table = self.table
        if self.action != COMPACTION or not table.config.version.logs_named_by_base_instant:
            return False
        # Nobody begins or completes a write between the look and the plan's end.
        table.guard.reacquire()
        now = Timeline.load(table.storage, table.config)
        planned = now.find(self.time, self.action)
        if planned is None or any(not now.is_clustering(w) for w in now.pending(*COMMIT_ACTIONS)):
            return True
        partitions = {partition for partition, _ in groups_of_plan(now.plan(planned))}
        files = (file for path in partitions for file in table.storage.list_dir(path)[1])
        logs = (parse_log_name(file.name) for file in files)
        return any(log is not None and log.instant == self.time for log in logs)

    def begin(self, content: bytes = b"") -> None:
        """Creates the inflight file. Raises `CommitConflict` if there is one."""
        self.table.config.layout.inflight(self.table.storage, self.time, self.action, content)

    def delete_unnamed_files(
        self, metadata: CommitMetadata, begun: Iterable[str] | None = None
    ) -> None:
        """Deletes what was begun and the commit does not name: of failed or repeated attempts.

        begun: paths of all files that may have been begun; None for those that markers name. Log
        files go too, also up to table version 6: a log file here is one attempt's alone.
        """
        storage = self.table.storage
        if begun is None:
            begun = self.read_marked_paths()
        listed = metadata.paths
        storage.delete_all(path for path in begun if path not in listed)

    def read_marked_paths(self) -> list[str]:
        """Paths of the files that markers name, of whoever has begun them."""
        return [marker.path for marker in markers.read_all(self.table.storage, self.time) or ()]

    def complete(self, content: bytes, files: Iterable[str] = ()) -> str:
        """Creates the completed file, and gives the completion time.

        files: paths that the content names. Raises `CommitConflict` where another writer took the
        instant back or completed it, also while the file was made; or took it over and has begun it
        anew, without these files.
        """
        completion = self.table.generator.next()
        self.check_inflight()
        self.table.guard.check_held()
        self.publish(completion, content)
        try:
            self.table.guard.check_held()
        except CommitConflict:
            exists = self.table.storage.exists
            if self.is_publication_lost(completion) or not all(map(exists, files)):
                self.delete_completed_file(completion)
                raise
        return completion

    def check_inflight(self) -> None:
        """Raises `CommitConflict` unless it is inflight, and not complete by any time."""
        table = self.table
        table.config.layout.check_inflight(table.storage, self.time, self.action)

    def publish(self, completion: str, content: bytes) -> None:
        """`complete` for a caller that has just seen that the instant is inflight."""
        layout, storage = self.table.config.layout, self.table.storage
        try:
            layout.publish(storage, self.time, self.action, completion, content)
        except CommitConflict:
            raise
        except Exception:
            # The answer may have been lost on the way.
            if storage.read_or_none(self.path_of_completed(completion)) != content:
                raise
        done = COMPLETED_ACTION.get(self.action, self.action)
        if layout.completion_in_name and done in COMMIT_ACTIONS:
            keep_commit(storage, self.path_of_completed(completion), content)

    def is_publication_lost(self, completion: str) -> bool:
        """Whether another writer took the instant back while `publish` made the completed file.

        Or over: then it is complete by another time, too.
        """
        table, layout = self.table, self.table.config.layout
        return not self.is_inflight or layout.is_completed_otherwise(
            table.storage, self.time, self.action, completion
        )

    def delete_markers(self) -> None:
        """Removes its markers, once it is complete or gone."""
        markers.delete_all(self.table.storage, self.time)

    def revert_to_requested(self, begun: Iterable[str] | None = None) -> None:
        """Removes what was written, which no reader sees, and leaves it requested.

        Raises `CommitConflict` where the lock may be another's: its files may have the same names.
        """
        if begun is None:
            begun = self.read_marked_paths()
        self.table.guard.check_held()
        self.delete_unnamed_files(CommitMetadata(), begun)
        self.withdraw_attempt()

    def withdraw_attempt(self) -> None:
        """Leaves it requested. What the attempt wrote must be gone."""
        self._remove(State.INFLIGHT)
        self.delete_markers()

    def remove(self, gone: Collection[str] | None = None) -> None:
        """Takes it off the timeline. What it wrote must be gone.

        gone: paths of that. Where markers name more, they stay: its writer has gone on meanwhile,
        and by them the next one finds what it wrote (`recovery.py`). None: nobody goes on.
        """
        self._remove(State.INFLIGHT)
        self._remove(State.REQUESTED)
        if gone is None or {*self.read_marked_paths()} <= {*gone}:
            self.delete_markers()

    def withdraw_request(self) -> None:
        """Takes its requested file away, of an instant that has written nothing."""
        self._remove(State.REQUESTED)

    def withdraw_beginning(self) -> None:
        """Takes its inflight file away, of an instant that has written nothing."""
        self._remove(State.INFLIGHT)

    def unpublish(self) -> None:
        """Makes a completed instant inflight again: the completed file goes, the others stay."""
        self._remove(State.COMPLETED)

    def delete_completed_file(self, completion: str) -> None:
        """Removes the completed file that `publish` has made."""
        self.table.storage.delete(self.path_of_completed(completion))

    @property
    def is_requested(self) -> bool:
        """Whether its requested file is there."""
        return self._has(State.REQUESTED)

    @property
    def is_inflight(self) -> bool:
        """Whether its inflight file is there."""
        return self._has(State.INFLIGHT)

    def _has(self, state: State) -> bool:
        layout = self.table.config.layout
        return self.table.storage.exists(
            layout.path(layout.file_name(self.time, self.action, state))
        )

    def path_of_completed(self, completion: str) -> str:
        """The file that `publish` makes."""
        layout = self.table.config.layout
        name = layout.file_name(self.time, self.action, State.COMPLETED, completion)
        return layout.path(name)

    def _remove(self, state: State) -> None:
        self.table.config.layout.remove(self.table.storage, self.time, self.action, state)
