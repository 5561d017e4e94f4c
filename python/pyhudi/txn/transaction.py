"""The life of one write on the timeline: clean up after dead writers, begin, publish, or roll back.

One writer at a time: there is no lock and no conflict detection here. The order of steps is Hudi's
(`BaseHoodieWriteClient`, 1.2.0), and each may be the last one before a crash:

1. `recover`: pending rollbacks are carried out, failed writes rolled back, left markers removed.
2. `Transaction` is entered: requested file.
3. `start`: inflight file with the workload profile.
4. Tasks write data files, each after its marker. Readers see none of it.
5. `commit`: marked files that are not in the statistics are removed, a table evolved by id gets its
   schema history, the metadata table its delta commit of the same instant, then the completed file
   publishes the write, then the markers go. Services of the metadata table that are due come last.

A rollback's instant is taken before the new write's, since Hudi 0.15's log reader stops at the
first block that is later than the last commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

from pyhudi.engine.local import LocalEngine
from pyhudi.errors import CommitConflict
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
from pyhudi.txn import markers, replace_commit, rollback, schema_ids
from pyhudi.txn.guard import check_writable
from pyhudi.txn.rollback import HEARTBEAT_FOLDER, RollbackContext

if TYPE_CHECKING:
    from pyhudi.clock import Clock
    from pyhudi.config import TableConfig
    from pyhudi.engine.protocol import Engine
    from pyhudi.storage import Storage
    from pyhudi.txn.schema_ids import SchemaWords

HEARTBEAT_EXPIRES_MS = 120_000
"""A heartbeat this old is dead: two beats of `hoodie.client.heartbeat.interval_in_ms` missed."""


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
    """A heartbeat that still beats belongs to a writer whose work must not be rolled back."""
    pending = {instant.requested for instant in failed_writes(timeline)}
    if not pending:
        return
    for file in writer.storage.list_dir(HEARTBEAT_FOLDER)[1]:
        age = writer.clock.now_ms() - file.modified_ms
        if file.name in pending and age < HEARTBEAT_EXPIRES_MS:
            msg = f"another writer is at work on instant {file.name}"
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
        if instant not in known and not timeline.is_before_start(instant):
            for marker in markers.read_all(storage, instant) or ():
                # Before table version 8 others may have written to a log file of an older name.
                if f"_{instant}." in marker.name:
                    storage.delete(marker.path)
        markers.delete_all(storage, instant)


# --- the write ------------------------------------------------------------------------------------


class Transaction:
    """One write. Leaving the block without `commit` rolls it back."""

    def __init__(self, writer: Writer, operation: str) -> None:
        """`operation`: Hudi's name, such as UPSERT."""
        self._writer = writer
        self._operation = operation
        self._action = replace_commit.action_of(writer.config, operation)
        self._state: State | None = None
        self.instant = ""
        """The write's requested time, once entered."""
        self.by_record_index = False
        """Keys were found by the record index: what was tagged is in it already."""

    @classmethod
    def resumed(cls, writer: Writer, operation: str, instant: str) -> Transaction:
        """One that another process has started."""
        txn = cls(writer, operation)
        txn.instant = instant
        txn._state = State.INFLIGHT
        return txn

    def __enter__(self) -> Transaction:
        if self.instant:
            return self
        writer = self._writer
        self.instant = writer.generator.next()
        plan = replace_commit.requested(writer.config.version, self._operation, writer.clock)
        writer.config.layout.request(writer.storage, self.instant, self._action, plan)
        self._state = State.REQUESTED
        return self

    def start(self, profile: Mapping[str, tuple[WriteStat, ...]] | None) -> None:
        """Says what is about to be written; None: nobody knows."""
        writer = self._writer
        data = b""
        if profile is not None:
            metadata = CommitMetadata(profile, operation_type=self._operation)
            data = metadata.encode_inflight(writer.config.version, writer.clock)
        writer.config.layout.inflight(writer.storage, self.instant, self._action, data)
        self._state = State.INFLIGHT

    def commit(
        self,
        stats: Iterable[WriteStat],
        schema: SchemaWords,
        replaced: Mapping[str, tuple[str, ...]] | None = None,
    ) -> str:
        """Publishes the write and gives its completion time.

        stats: of every file that belongs to it. schema: what the commit says of the table's schema.
        replaced: file ids by partition path that the write takes away, where it is a replace
        commit.
        """
        writer = self._writer
        metadata = CommitMetadata(
            by_partition(stats),
            extra_metadata={**writer.commit_metadata, **schema.extra_metadata(self.instant)},
            operation_type=self._operation,
            partition_to_replace_file_ids=replaced,
        )
        remove_unlisted(writer.storage, self.instant, metadata)
        if schema.internal is not None:
            history = schema.history_text(self.instant)
            schema_ids.persist(
                writer.storage, writer.config, writer.generator, self.instant, history
            )
        upkeep.record_commit(
            writer.rollback,
            writer.engine,
            self.instant,
            metadata,
            schema.avro,
            by_record_index=self.by_record_index,
        )
        data = metadata.encode(writer.config.version, self._action, writer.clock)
        completion = writer.generator.next()
        layout = writer.config.layout
        layout.complete(writer.storage, self.instant, self._action, completion, data)
        self._state = State.COMPLETED
        markers.delete_all(writer.storage, self.instant)
        run_services(writer.rollback, writer.engine, writer.services)
        return completion

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._state is State.COMPLETED or self._state is None:
            return
        try:
            self.roll_back()
        except Exception as secondary:
            if error is None:
                raise
            # The next writer rolls back; what went wrong first is what the caller must hear.
            error.__context__ = secondary

    def roll_back(self) -> None:
        """Takes the write back, unless it is complete or gone already."""
        writer = self._writer
        timeline = Timeline.load(writer.storage, writer.config)
        instant = timeline.find(self.instant, self._action)
        if instant is not None and not instant.is_completed:
            schema_ids.forget(writer.storage, self.instant)
            forget_rings(writer.storage, self.instant)
            rollback.roll_back(writer.rollback, timeline, instant)


def remove_unlisted(storage: Storage, instant: str, metadata: CommitMetadata) -> None:
    """Deletes files that markers name and the commit does not: of failed or repeated attempts.

    Log files go too, also up to table version 6: a log file here is one attempt's alone.
    """
    listed = {stat.path for stat in metadata.write_stats}
    listed |= {path for stat in metadata.write_stats for path in stat.cdc_stats or ()}
    for marker in markers.read_all(storage, instant) or ():
        if marker.path not in listed:
            storage.delete(marker.path)
