"""The life of one write on the timeline: clean up after dead writers, begin, publish, or roll back.

One writer at a time: there is no lock, and a writer that meets another one gives way
(`conflicts.py`). The order of steps is Hudi's (`BaseHoodieWriteClient`, 1.2.0), and each may be the
last one before a crash:

1. `recover`: pending rollbacks are carried out, failed writes rolled back, left markers and staged
   files removed.
2. `Transaction` is entered: heartbeat, requested file, a look whether others are at work.
3. `start`: inflight file with the workload profile.
4. Tasks write data files, each after its marker. Readers see none of it.
5. `commit`: marked files that are not in the statistics are removed, a table evolved by id gets its
   schema history, the metadata table its delta commit of the same instant, then the completed file
   publishes the write.
6. Heartbeat and markers go, and services of the metadata table that are due come last. What fails
   from here on is a warning: an error would have the caller write once more.

A rollback's instant is taken before the new write's, since Hudi 0.15's log reader stops at the
first block that is later than the last commit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING

from pyhudi.engine.local import LocalEngine
from pyhudi.errors import (
    AfterCommitError,
    AfterCommitWarning,
    CommitConflict,
    CommitUnknown,
    InterruptedAfterCommit,
)
from pyhudi.index.renewal import forget_rings
from pyhudi.metadata import upkeep
from pyhudi.metadata.service_options import ServiceOptions
from pyhudi.metadata.services import run_services
from pyhudi.options import commit_metadata
from pyhudi.timeline import InstantGenerator, Timeline
from pyhudi.timeline.instants import (
    COMMIT,
    DELTA_COMMIT,
    REPLACE_COMMIT,
    ROLLBACK,
    Instant,
    State,
)
from pyhudi.timeline.metadata import CommitMetadata, WriteStat, by_partition
from pyhudi.txn import conflicts, heartbeat, markers, replace_commit, rollback, schema_ids
from pyhudi.txn.guard import check_writable
from pyhudi.txn.heartbeat import Heartbeat
from pyhudi.txn.left_files import remove_left_files
from pyhudi.txn.rollback import RollbackContext

if TYPE_CHECKING:
    from pyhudi.clock import Clock
    from pyhudi.config import TableConfig
    from pyhudi.engine.protocol import Engine
    from pyhudi.storage import Storage
    from pyhudi.txn.key_claims import KeyClaim
    from pyhudi.txn.schema_ids import SchemaWords

_NO_LOOK_UP = frozenset({"INSERT", "BULK_INSERT"})
"""Operations that add rows whatever rows there are."""


@dataclass(frozen=True)
class Writer:
    """What every step of a write needs."""

    storage: Storage
    config: TableConfig
    clock: Clock
    generator: InstantGenerator
    engine: Engine = field(default_factory=LocalEngine)
    """What derives and writes the metadata table's records."""
    services: ServiceOptions = field(default_factory=ServiceOptions)
    """When the metadata table's own services are due."""
    commit_metadata: Mapping[str, str] = field(default_factory=dict)
    """What the handle's options add to the extra metadata of commits."""
    seen: Timeline | None = None
    """The timeline that the write is planned on, once the table is cleaned up."""

    @classmethod
    def of(
        cls,
        storage: Storage,
        config: TableConfig,
        clock: Clock,
        engine: Engine | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Writer:
        """With a fresh source of instants. options: the table handle's."""
        generator = InstantGenerator(clock, config.timezone)
        services = ServiceOptions.of(options or {})
        told = commit_metadata(options or {})
        return cls(storage, config, clock, generator, engine or LocalEngine(), services, told)

    @property
    def rollback(self) -> RollbackContext:
        """The part of it that a rollback needs."""
        return RollbackContext(self.storage, self.config, self.generator, self.clock)


# --- recovery -------------------------------------------------------------------------------------


def recover(writer: Writer) -> Timeline:
    """Makes the table fit for a new write and gives its timeline.

    Raises `UnsupportedTableFeature` or `CommitConflict`, with nothing changed, where pyhudi must
    not write, and `CommitConflict` where another writer is alive.
    """
    timeline = _load(writer)
    check_writable(writer.storage, writer.config, timeline)
    check_no_live_writer(writer, timeline)
    rollbacks = timeline.pending(ROLLBACK)
    for pending in rollbacks:
        rollback.resume(writer.rollback, timeline, pending)
    if rollbacks:
        timeline = _load(writer)
    failed = failed_writes(timeline)
    for instant in reversed(failed):
        # First, or nothing would tell of it once the write is gone.
        schema_ids.forget(writer.storage, instant.requested)
        forget_rings(writer.storage, instant.requested)
        rollback.roll_back(writer.rollback, timeline, instant)
    if failed:
        timeline = _load(writer)
    folders = remove_left_files(writer.storage, timeline, writer.clock)
    if markers.MARKER_FOLDER in folders:
        _remove_left_markers(writer.storage, timeline)
    return timeline


def _load(writer: Writer) -> Timeline:
    timeline = Timeline.load(writer.storage, writer.config)
    writer.generator.observe(timeline)
    return timeline


def failed_writes(timeline: Timeline) -> list[Instant]:
    """Pending writes, oldest first; pending compactions and clusterings are none."""
    pending = timeline.pending(COMMIT, DELTA_COMMIT, REPLACE_COMMIT)
    return [instant for instant in pending if not is_clustering(timeline, instant)]


def is_clustering(timeline: Timeline, instant: Instant) -> bool:
    """Whether a replace commit is a clustering, which up to table version 6 only its plan tells."""
    if instant.action != REPLACE_COMMIT:
        return False
    return (timeline.plan(instant) or {}).get("clusteringPlan") is not None


def check_no_live_writer(writer: Writer, timeline: Timeline) -> None:
    """A heartbeat that still beats belongs to a writer whose work must not be rolled back.

    Hudi 1.2 gives one to what it writes, compacts and rolls back beside others.
    """
    pending = {instant.requested for instant in timeline.pending()}
    for instant in heartbeat.live_instants(writer.storage, pending, writer.clock):
        msg = f"another writer is at work on instant {instant}"
        raise CommitConflict(
            msg, hint="Wait until it is done, or two minutes if it has died, then write again."
        )


def _remove_left_markers(storage: Storage, timeline: Timeline) -> None:
    """Removes markers of writers that died after they had committed or rolled back.

    With files of a write that was rolled back while a task of it went on: once the timeline no
    longer reaches so far, they would count.
    """
    pending = {instant.requested for instant in timeline.pending()}
    known = {instant.requested for instant in timeline.instants}
    newest = timeline.latest_time() or ""
    for instant in markers.instants_with_markers(storage):
        if instant in pending or instant > newest:
            continue
        # What a writer leaves that dies once it is done: the heartbeat goes before the markers.
        storage.delete(heartbeat.path_of(instant))
        if instant not in known and not timeline.is_before_start(instant):
            _remove_marked(storage, instant)
        markers.delete_all(storage, instant)


def _remove_marked(storage: Storage, instant: str) -> None:
    """Removes the files of a write that the timeline does not have any more."""
    for marker in markers.read_all(storage, instant) or ():
        # Before table version 8 others may have written to a log file of an older name.
        if f"_{instant}." in marker.name:
            storage.delete(marker.path)


# --- the write ------------------------------------------------------------------------------------


class Transaction:
    """One write. Leaving the block without `commit` rolls it back."""

    def __init__(self, writer: Writer, operation: str, *, shared: bool = False) -> None:
        """Nothing is written yet.

        operation: Hudi's name, such as UPSERT. shared: other processes go on with the write, so its
        heartbeat is no sign of this one.
        """
        self._writer = writer
        self._operation = operation
        self._action = replace_commit.action_of(writer.config, operation)
        self._state: State | None = None
        self._publishing = False
        self._shared = shared
        self._heartbeat: Heartbeat | None = None
        self._followers: list[Callable[[], None]] = []
        self._written = CommitMetadata()
        self.instant = ""
        """The write's requested time, once entered."""
        self.by_record_index = False
        """Keys were found by the record index: what was tagged is in it already."""
        self.key_claim: KeyClaim | None = None
        """What the commit says of the table's keys."""

    @classmethod
    def resumed(cls, writer: Writer, operation: str, instant: str) -> Transaction:
        """One that another process has started."""
        txn = cls(writer, operation)
        txn.instant = instant
        txn._state = State.INFLIGHT
        return txn

    def __enter__(self) -> Transaction:
        """Begins the write. Raises `CommitConflict`, with nothing left, beside another writer."""
        writer = self._writer
        resumed = bool(self.instant)
        self.instant = self.instant or writer.generator.next()
        beat = Heartbeat(writer.storage, self.instant, writer.clock, owned=not self._shared)
        self._heartbeat = beat
        plan = replace_commit.requested(writer.config.version, self._operation, writer.clock)
        try:
            beat.start()
            if resumed:
                return self
            writer.config.layout.request(writer.storage, self.instant, self._action, plan)
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
        writer = self._writer
        if writer.seen is not None:
            timeline = Timeline.load(writer.storage, writer.config)
            looks = self._operation not in _NO_LOOK_UP
            conflicts.check_alone(timeline, writer.seen, self.instant, looks_for_keys=looks)

    def _withdraw_request(self) -> None:
        """Takes back the beginning of a write, of which there is the requested file at most."""
        writer = self._writer
        if self._state is State.REQUESTED:
            layout = writer.config.layout
            layout.remove(writer.storage, self.instant, self._action, State.REQUESTED)
        self._state = None
        if self._heartbeat is not None:
            self._heartbeat.stop()

    def start(self, profile: Mapping[str, tuple[WriteStat, ...]] | None) -> None:
        """Says what is about to be written; None: nobody knows."""
        writer = self._writer
        data = b""
        if profile is not None:
            metadata = CommitMetadata(profile, operation_type=self._operation)
            data = metadata.encode_inflight(writer.config.version, writer.clock)
        writer.config.layout.inflight(writer.storage, self.instant, self._action, data)
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
        writer = self._writer
        metadata = CommitMetadata(
            by_partition(stats),
            extra_metadata={**writer.commit_metadata, **schema.extra_metadata(self.instant)},
            operation_type=self._operation,
            partition_to_replace_file_ids=replaced,
        )
        self._written = metadata
        self._check_own(metadata)
        remove_unlisted(writer.storage, self.instant, metadata)
        if schema.internal is not None:
            history = schema.history_text(self.instant)
            schema_ids.persist(
                writer.storage, writer.config, writer.generator, self.instant, history
            )
        indexed = upkeep.record_commit(
            writer.rollback,
            writer.engine,
            self.instant,
            metadata,
            schema.avro,
            by_record_index=self.by_record_index,
        )
        if self.key_claim is not None:
            told = self.key_claim.words(metadata.write_stats, indexed)
            metadata = replace(metadata, extra_metadata={**metadata.extra_metadata, **told})
        data = metadata.encode(writer.config.version, self._action, writer.clock)
        # Once more: the metadata table may have taken long.
        self._check_own(metadata)
        completion = writer.generator.next()
        self._publish(completion, data)
        self._follow()
        return completion

    def _check_own(self, metadata: CommitMetadata) -> None:
        writer = self._writer
        timeline = Timeline.load(writer.storage, writer.config)
        writer.generator.observe(timeline)
        conflicts.check_own(timeline, self.instant, self._action)
        if writer.seen is not None:
            conflicts.check_file_groups(timeline, writer.seen, self.instant, metadata)
        if self._is_late:
            msg = f"the {self._action} {self.instant} stood still so long that it counts as dead"
            raise CommitConflict(msg, hint="Run the operation again.")

    @property
    def _is_late(self) -> bool:
        return self._heartbeat is not None and self._heartbeat.is_late

    def _publish(self, completion: str, data: bytes) -> None:
        """Creates the completed file; an answer that was lost on the way is looked for."""
        writer = self._writer
        layout, storage = writer.config.layout, writer.storage
        self._publishing = True
        try:
            layout.publish(storage, self.instant, self._action, completion, data)
        except CommitConflict:
            self._publishing = False
            raise
        except Exception:
            name = layout.file_name(self.instant, self._action, State.COMPLETED, completion)
            if storage.read_or_none(layout.path(name)) != data:
                raise
        if self._is_late:
            self._check_not_taken_back(completion)
        self._state = State.COMPLETED

    def _check_not_taken_back(self, completion: str) -> None:
        """Takes the completed file back where others took the writer for dead as it was made."""
        writer = self._writer
        layout, storage = writer.config.layout, writer.storage
        inflight = layout.file_name(self.instant, self._action, State.INFLIGHT)
        if not storage.exists(layout.path(inflight)):
            name = layout.file_name(self.instant, self._action, State.COMPLETED, completion)
            storage.delete(layout.path(name))
            self._publishing = False
            msg = f"the {self._action} {self.instant} was taken back by another writer"
            raise CommitConflict(msg, hint="Run the operation again.")

    def _follow(self) -> None:
        """What comes after the commit, which stands whatever happens here."""
        writer = self._writer
        beat = self._heartbeat
        if beat is not None:
            self._try(beat.stop)
        self._try(lambda: markers.delete_all(writer.storage, self.instant))
        for step in self._followers:
            self._try(step)
        self._try(lambda: run_services(writer.rollback, writer.engine, writer.services))

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001  an error would say that the commit failed
            cause = str(error).split("\nHint:", 1)[0]
            warnings.warn(
                f"{self._writer.storage.uri}: committed as {self.instant}, but what follows a "
                f"commit waits for the next writer: {cause}",
                AfterCommitWarning,
                stacklevel=2,
            )

    def withdraw(self) -> None:
        """Ends a write that has nothing to commit: neither a commit nor a rollback tells of it."""
        writer = self._writer
        remove_unlisted(writer.storage, self.instant, CommitMetadata())
        forget_rings(writer.storage, self.instant)
        markers.delete_all(writer.storage, self.instant)
        for state in (State.INFLIGHT, State.REQUESTED):
            writer.config.layout.remove(writer.storage, self.instant, self._action, state)
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
            msg = f"the {self._action} {self.instant} was taken back by another writer"
            raise CommitConflict(msg, hint="Run the operation again.") from error
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
        writer = self._writer
        timeline = Timeline.load(writer.storage, writer.config)
        instant = timeline.find(self.instant, self._action)
        if instant is None:
            self._remove_what_came_late(timeline)
            return False, True
        if instant.is_completed:
            return True, False
        schema_ids.forget(writer.storage, self.instant)
        forget_rings(writer.storage, self.instant)
        rollback.roll_back(writer.rollback, timeline, instant)
        return False, False

    def _remove_what_came_late(self, timeline: Timeline) -> None:
        """Removes what was written after another writer had taken the write back."""
        writer = self._writer
        writer.generator.observe(timeline)
        upkeep.forget_commit(writer.rollback, self.instant)
        _remove_marked(writer.storage, self.instant)
        for path in _paths(self._written) - rollback.called_off(timeline, self.instant):
            writer.storage.delete(path)
        markers.delete_all(writer.storage, self.instant)
        writer.storage.delete(heartbeat.path_of(self.instant))


def remove_unlisted(storage: Storage, instant: str, metadata: CommitMetadata) -> None:
    """Deletes files that markers name and the commit does not: of failed or repeated attempts.

    Log files go too, also up to table version 6: a log file here is one attempt's alone.
    """
    listed = _paths(metadata)
    for marker in markers.read_all(storage, instant) or ():
        if marker.path not in listed:
            storage.delete(marker.path)


def _paths(metadata: CommitMetadata) -> set[str]:
    """The files that a commit names."""
    listed = {stat.path for stat in metadata.write_stats if stat.path}
    return listed | {path for stat in metadata.write_stats for path in stat.cdc_stats or ()}
