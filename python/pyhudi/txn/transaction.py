"""The life of one write on the timeline: begin, publish, or roll back.

One writer at a time: there is no lock, and a writer that meets another one gives way
(`conflicts.py`). The order of steps is Hudi's (`BaseHoodieWriteClient`, 1.2.0), and each may be the
last one before a crash:

1. `recovery.py`: pending rollbacks are carried out, failed writes rolled back, left markers and
   staged files removed.
2. `Transaction` is entered: heartbeat, requested file, a look whether others are at work.
3. `start`: inflight file with the workload profile.
4. Tasks write data files, each after its marker. Readers see none of it.
5. `commit`: marked files that are not in the statistics are removed, companions are brought up to
   the commit, then the completed file publishes the write.
6. Heartbeat and markers go, and companions do what is due. What fails from here on is a warning: an
   error would have the caller write once more.

A rollback's instant is taken before the new write's, since Hudi 0.15's log reader stops at the
first block that is later than the last commit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import TracebackType

from pyhudi.config.actions import State
from pyhudi.config.options import commit_metadata
from pyhudi.errors import (
    AfterCommitError,
    AfterCommitWarning,
    CommitConflict,
    CommitUnknown,
    InterruptedAfterCommit,
)
from pyhudi.schema.schema_history import SchemaWords
from pyhudi.slices.table import Commit, Companion, Table
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat, by_partition
from pyhudi.txn import conflicts, heartbeat, replace_commit, rollback
from pyhudi.txn.heartbeat import Heartbeat
from pyhudi.txn.open_instant import OpenInstant
from pyhudi.txn.recovery import remove_marked

_NO_LOOK_UP = frozenset({"INSERT", "BULK_INSERT"})
"""Operations that add rows whatever rows there are."""


class Transaction:
    """One write. Leaving the block without `commit` rolls it back."""

    def __init__(self, table: Table, operation: str, *, shared: bool = False) -> None:
        """Nothing is written yet.

        operation: Hudi's name, such as UPSERT. shared: other processes go on with the write, so its
        heartbeat is no sign of this one.
        """
        self._table = table
        self._operation = operation
        self._open = OpenInstant(table, "", replace_commit.action_of(table.config, operation))
        self._state: State | None = None
        self._publishing = False
        self._shared = shared
        self._heartbeat: Heartbeat | None = None
        self._followers: list[Callable[[], None]] = []
        self._written = CommitMetadata()
        self.by_record_index = False
        """Keys were found by the record index: what was tagged is in it already."""
        self.companions: list[Companion] = []
        """What keeps step with this write, besides those of the table."""

    @classmethod
    def resumed(cls, table: Table, operation: str, instant: str) -> Transaction:
        """One that another process has started."""
        txn = cls(table, operation)
        txn._open = replace(txn._open, time=instant)
        txn._state = State.INFLIGHT
        return txn

    @property
    def instant(self) -> str:
        """The write's requested time, once entered."""
        return self._open.time

    def __enter__(self) -> Transaction:
        """Begins the write. Raises `CommitConflict`, with nothing left, beside another writer."""
        table = self._table
        resumed = bool(self.instant)
        if not resumed:
            self._open = replace(self._open, time=table.generator.next())
        beat = Heartbeat(table.storage, self.instant, table.clock, owned=not self._shared)
        self._heartbeat = beat
        plan = replace_commit.requested(table.config.version, self._operation, table.clock)
        try:
            beat.start()
            if resumed:
                return self
            self._open.request(plan)
            self._state = State.REQUESTED
            self._check_alone()
        except BaseException:
            beat.rest()
            # What the storage does not let go, the next writer removes.
            with suppress(Exception):
                self._withdraw_request()
            raise
        if self._shared:
            beat.rest()
        return self

    def _check_alone(self) -> None:
        table = self._table
        timeline = Timeline.load(table.storage, table.config)
        looks = self._operation not in _NO_LOOK_UP
        conflicts.check_alone(timeline, table.timeline, self.instant, looks_for_keys=looks)

    def _withdraw_request(self) -> None:
        """Takes back the beginning of a write, of which there is the requested file at most."""
        if self._state is State.REQUESTED:
            self._open.withdraw_request()
        self._state = None
        if self._heartbeat is not None:
            self._heartbeat.stop()

    def start(self, profile: Mapping[str, tuple[WriteStat, ...]] | None) -> None:
        """Says what is about to be written; None: nobody knows."""
        table = self._table
        data = b""
        if profile is not None:
            metadata = CommitMetadata(profile, operation_type=self._operation)
            data = metadata.encode_inflight(table.config.version, table.clock)
        self._open.begin(data)
        self._state = State.INFLIGHT

    def on_completed(self, step: Callable[[], None]) -> None:
        """Has a step done once the write is complete. Its failure is a warning then."""
        self._followers.append(step)

    def commit(
        self,
        stats: Iterable[WriteStat],
        schema: SchemaWords,
        replaced: Mapping[str, tuple[str, ...]] | None = None,
    ) -> str:
        """Publishes the write and gives its completion time.

        stats: of every file that belongs to it. schema: what the commit says of the table's schema.
        replaced: file ids by partition path that the write takes away, where it is a replace
        commit. Raises `CommitConflict` where the write is not its writer's own any more, or another
        one changed file groups of it.
        """
        table = self._table
        said = {**commit_metadata(table.options), **schema.extra_metadata(self.instant)}
        metadata = CommitMetadata(
            by_partition(stats),
            extra_metadata=said,
            operation_type=self._operation,
            partition_to_replace_file_ids=replaced,
        )
        self._written = metadata
        self._check_own(metadata)
        self._open.keep_only(metadata)
        commit = Commit(self.instant, metadata, schema, self.by_record_index)
        metadata = in_step(table, commit, self.companions)
        data = metadata.encode(table.config.version, self._open.action, table.clock)
        # Once more: the metadata table may have taken long.
        self._check_own(metadata)
        completion = table.generator.next()
        self._publish(completion, data)
        self._follow()
        return completion

    def _check_own(self, metadata: CommitMetadata) -> None:
        table = self._table
        timeline = Timeline.load(table.storage, table.config)
        table.generator.observe(timeline)
        conflicts.check_own(timeline, self.instant, self._open.action)
        conflicts.check_file_groups(timeline, table.timeline, self.instant, metadata)
        if self._is_late:
            write = f"the {self._open.action} {self.instant}"
            msg = f"{write} stood still so long that it counts as dead"
            raise CommitConflict(msg, hint="Run the operation again.")

    @property
    def _is_late(self) -> bool:
        return self._heartbeat is not None and self._heartbeat.is_late

    def _publish(self, completion: str, data: bytes) -> None:
        self._publishing = True
        try:
            self._open.publish(completion, data)
        except CommitConflict:
            self._publishing = False
            raise
        # Others may have taken the writer for dead as the completed file was made.
        if self._is_late and not self._open.is_inflight:
            self._open.take_publication_back(completion)
            self._publishing = False
            raise self._taken_back()
        self._state = State.COMPLETED

    def _taken_back(self) -> CommitConflict:
        msg = f"the {self._open.action} {self.instant} was taken back by another writer"
        return CommitConflict(msg, hint="Run the operation again.")

    def _follow(self) -> None:
        """What comes after the commit, which stands whatever happens here."""
        table = self._table
        beat = self._heartbeat
        if beat is not None:
            self._try(beat.stop)
        self._try(self._open.clear)
        for step in self._followers:
            self._try(step)
        for companion in (*table.companions, *self.companions):
            self._try(partial(companion.after_complete, table))

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001  an error would say that the commit failed
            cause = str(error).split("\nHint:", 1)[0]
            warnings.warn(
                f"{self._table.storage.uri}: committed as {self.instant}, but what follows a "
                f"commit waits for the next writer: {cause}",
                AfterCommitWarning,
                stacklevel=2,
            )

    def withdraw(self) -> None:
        """Ends a write that has nothing to commit: neither a commit nor a rollback tells of it."""
        table = self._table
        self._open.keep_only(CommitMetadata())
        for companion in table.companions:
            companion.on_removal(table, self.instant)
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
        if self._state is None:
            return
        published, gone = self._state is State.COMPLETED, False
        if not published:
            try:
                published, gone = self._settled()
            except Exception as secondary:
                if error is None:
                    raise
                # The next writer rolls back; what went wrong first is what the caller must hear.
                error.__context__ = secondary
                if self._publishing and isinstance(error, Exception):
                    raise self._unknown() from error
            finally:
                if self._heartbeat is not None:
                    self._heartbeat.rest()
        if gone and isinstance(error, Exception) and not isinstance(error, CommitConflict):
            raise self._taken_back() from error
        if published and isinstance(error, KeyboardInterrupt):
            raise InterruptedAfterCommit(self.instant) from error
        if published and isinstance(error, Exception):
            raise AfterCommitError(
                f"committed as {self.instant}; what follows a commit failed: {error}",
                instant=self.instant,
            ) from error

    def _unknown(self) -> CommitUnknown:
        return CommitUnknown(
            f"the storage failed while {self.instant} was committed: it may be committed or not",
            instant=self.instant,
        )

    def roll_back(self) -> None:
        """Takes the write back, unless it is complete or gone already."""
        self._settled()

    def _settled(self) -> tuple[bool, bool]:
        """Takes a pending write back; whether it was complete, or gone."""
        table = self._table
        timeline = Timeline.load(table.storage, table.config)
        instant = timeline.find(self.instant, self._open.action)
        if instant is None:
            self._remove_what_came_late(timeline)
            return False, True
        if instant.is_completed:
            return True, False
        rollback.roll_back(table, timeline, instant)
        return False, False

    def _remove_what_came_late(self, timeline: Timeline) -> None:
        """Removes what was written after another writer had taken the write back."""
        table = self._table
        table.generator.observe(timeline)
        for companion in table.companions:
            companion.on_removal(table, self.instant)
        remove_marked(table.storage, self.instant)
        for path in self._written.paths - rollback.called_off(timeline, self.instant):
            table.storage.delete(path)
        self._open.clear()
        table.storage.delete(heartbeat.path_of(self.instant))


def in_step(table: Table, commit: Commit, others: Iterable[Companion] = ()) -> CommitMetadata:
    """Brings what keeps step with a table up to a commit, and gives what the commit then says."""
    said = dict(commit.metadata.extra_metadata)
    for companion in (*table.companions, *others):
        said |= companion.before_complete(table, commit)
    return replace(commit.metadata, extra_metadata=said)
