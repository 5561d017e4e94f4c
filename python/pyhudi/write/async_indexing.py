"""Concurrent build of an index while writers go on: on the timeline an `indexing`, as Hudi's.

1. In a critical section: heartbeat, the property that records the build
(`metadata/pending_operation.py`),
   plan and inflight file. Active pyhudi writers abort on conflict and retry, once.
2. Outside: the files, from the snapshot of that critical section. Listings of partitions do not
   find their directory, and their delta commit, of the same instant, is not on the timeline yet.
3. In a second critical section, once no Apache Hudi writer is active that does not know of the
   index: the effect of slices that were added or removed since goes into log files. Then the
   indexing and the delta commit are completed, and last the table's properties name the index.

A failure is rolled back. A crashed writer leaves the property, by which the next writer builds the
index alone (`metadata_lifecycle.py`). Unlike with Hudi's indexer, no other writer has to maintain
an index that is not complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from pyhudi.cached_property import cached_property
from pyhudi.clock import Clock
from pyhudi.config import property_names as names
from pyhudi.config.actions import (
    CLUSTERING,
    COMMIT_ACTIONS,
    COMPACTION,
    DELTA_COMMIT,
    INDEXING,
    LOG_COMPACTION,
    Instant,
    State,
)
from pyhudi.config.metadata_names import FILES, FOLDER
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.config.property_names import UNFINISHED
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict, retryable_conflict
from pyhudi.metadata.index_definitions import (
    change_definitions,
    index_definitions,
    parse_definitions,
)
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.initial_records import (
    NO_INSTANT,
    PortionTask,
    Source,
    derive_initial,
)
from pyhudi.metadata.initialize import STAGE, PartitionBuild, end_making
from pyhudi.metadata.log_file_writer import GroupTarget, write_group
from pyhudi.metadata.new_file_groups import START_TOKEN, start_log
from pyhudi.metadata.partition_types.registry import (
    kinds_of,
)
from pyhudi.metadata.pending_operation import PendingOperation
from pyhudi.metadata.record_tasks import RECORD_ROWS, RecordTask
from pyhudi.metadata.table_writer import clear_partitions, delta_commit, open_metadata_table
from pyhudi.metadata.write_checks import check_kept
from pyhudi.slices.file_slice import FileSlice, LogFile
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline, serde
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.key_uniqueness import key_uniqueness_property
from pyhudi.txn import heartbeat, zombie_commits
from pyhudi.txn.heartbeat import Heartbeat
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.write.index_build import Wanted, plan_build
from pyhudi.write.input_rows import memory_limit
from pyhudi.write.write_context import Handle, WriteContext, open_for_change

PATIENCE_MS = 900_000
"""The timeout for writers that started earlier (`HoodieIndexer`, 1.2.0)."""
_POLL_S = 1.0
_SERVICES = (COMPACTION, LOG_COMPACTION, CLUSTERING)


def create(
    handle: Handle, asked: IndexRequest, options: MetadataOptions, clock: Clock
) -> tuple[str, ...]:
    """Build an index and return all partitions that the metadata table then has.

    options: the handle's. Raises `ConfigError` if the table has the index or has no metadata table,
    and as an exclusive build does; `UnsupportedTableFeature` if the index must not be older than
    the table; `CommitConflict` if another writer changes the metadata table, or a write of Apache
    Hudi does not end.
    """
    build = _start(handle, asked, options, clock)
    try:
        stats = [stat for making in build.makings for stat in making.write_files()]
        return build.finish(stats)
    except BaseException:
        with suppress(Exception), handle.lock_manager.critical_section():
            build.take_back()
        raise
    finally:
        build.heartbeat.stop_beating()


def _start(handle: Handle, asked: IndexRequest, options: MetadataOptions, clock: Clock) -> _Build:
    lock_manager = handle.lock_manager
    with lock_manager.critical_section():
        context = WriteContext.open(handle.without_index_options(), clock).recover()
        made_of, table = plan_build(context, asked, options), context.table
        table.generator.observe(context.timeline)
        began_ms = clock.now_ms()
        build = _Build(handle.without_index_options(), table, table.generator.next(), made_of)
        build.look()
        try:
            build.heartbeat.start()
            lock_manager.check_held()
            context.config.update(table.storage, build.undone.properties, clock)
            clear_partitions(table.storage, build.names, lock_manager)
            build.action.request_planned(build.record("HoodieIndexPlan"), context.timeline)
            build.action.begin()
        except BaseException:
            with suppress(Exception):
                build.take_back()
            build.heartbeat.stop_beating()
            raise
        lock_manager.wait_out_clock_skew(began_ms)
    return build


@dataclass(frozen=True)
class _Build:
    """One index build between its first critical section and its last."""

    handle: Handle
    table: TableSnapshot
    """The snapshot of the first critical section."""
    instant: str
    wanted: Wanted

    @property
    def names(self) -> tuple[str, ...]:
        return self.wanted.names

    @cached_property
    def heartbeat(self) -> Heartbeat:
        return Heartbeat(self.table.storage, self.instant, self.table.clock)

    @property
    def action(self) -> PendingInstant:
        return PendingInstant(self.table, self.instant, INDEXING)

    @property
    def undone(self) -> PendingOperation:
        only, definitions = self.names, self.wanted.definitions
        code = self.table.config.version.code
        return PendingOperation(self.instant, code, only, definitions, removed=only, beside=True)

    def record(self, schema: str) -> bytes:
        """The plan, or the completion record."""
        last = self.table.timeline.last_commit
        infos = [
            {
                "metadataPartitionPath": name,
                "indexUptoInstant": NO_INSTANT if last is None else last.requested,
                "extraMetadata": {},
            }
            for name in self.names
        ]
        return serde.encode_container(schema, {"indexPartitionInfos": infos}, self.table.clock)

    def source(self, table: TableSnapshot) -> Source:
        existing = index_definitions(table.storage, table.config)
        defined = {**existing, **parse_definitions(self.wanted.definitions)}
        return Source(table, self.wanted.options, defined, memory_limit(None), beside=True)

    @cached_property
    def first(self) -> Source:
        return self.source(self.table)

    def look(self) -> None:
        """List the files that catching up depends on."""
        for partition_type, name in kinds_of(self.names):
            partition_type.catch_up(self.first, self.first, name, ())

    @cached_property
    def makings(self) -> list[PartitionBuild]:
        metadata_table = open_metadata_table(self.table)
        builds = []
        for partition_type, name in kinds_of(self.names):
            partition = partition_type.initial(self.first, name)
            builds.append(
                PartitionBuild(self.table, metadata_table, partition, self.first, self.instant)
            )
        return builds

    # --- the end ---

    def finish(self, stats: list[WriteStat]) -> tuple[str, ...]:
        """Complete the build as soon as all active writers know of it."""
        table, clock = self.table, self.table.clock
        until = clock.now_ms() + PATIENCE_MS
        while True:
            with table.lock_manager.critical_section():
                timeline = zombie_commits.load_timeline(table)
                unaware = self._unknowing(timeline)
                if not unaware:
                    return self._complete(timeline, stats)
            if clock.now_ms() >= until:
                listed = ", ".join(self.names)
                msg = f"{unaware[0]} is active, and would not maintain {listed}"
                raise CommitConflict(msg, hint="Complete it, or roll it back, first.")
            clock.sleep(_POLL_S)

    def _unknowing(self, timeline: Timeline) -> list[Instant]:
        """Active Hudi writers: they do not check the table's properties before they complete."""
        pending = [
            instant
            for instant in timeline.pending(*COMMIT_ACTIONS, *_SERVICES)
            if instant.state is State.INFLIGHT or instant.action not in _SERVICES
        ]
        by_pyhudi = heartbeat.of_pyhudi(
            self.table.storage, {instant.requested for instant in pending}
        )
        return [instant for instant in pending if instant.requested not in by_pyhudi]

    def _complete(self, timeline: Timeline, stats: list[WriteStat]) -> tuple[str, ...]:
        table, clock, definitions = self.table, self.table.clock, self.wanted.definitions
        table.generator.observe(timeline)
        config = TableConfig.load(table.storage, clock)
        self._check_own(config)
        stats = [*stats, *self._catch_up(config, timeline)]
        self._check_own(TableConfig.load(table.storage, clock))
        # No delta commit without an instant of the table is left, whenever this writer fails.
        self.action.complete(self.record("HoodieIndexCommitMetadata"))
        # A writer that stalled here would remove files that another writer built in their place.
        table.lock_manager.check_held()
        self._end_delta(stats)
        table.lock_manager.check_held()
        changes = change_definitions(table.storage, config, definitions)
        listed = (*config.metadata_partitions, *self.names)
        changes[names.METADATA_PARTITIONS] = ",".join(sorted(listed))
        changes.update(self._count_files(stats))
        # A writer that took over while this one stalled has changed the properties (`fence_build`).
        config = config.update(table.storage, changes, clock, removed=(UNFINISHED,))
        self.heartbeat.stop()
        return config.metadata_partitions

    def _check_own(self, config: TableConfig) -> None:
        """Raise `CommitConflict` if other writers may regard this writer as failed."""
        self.table.lock_manager.check_held()
        listed = config.metadata_partitions
        ours = PendingOperation.of(config).by == self.instant and FILES in listed
        for partition_type, name in kinds_of(self.names):
            if name in listed:
                raise retryable_conflict(f"another writer created the index {name} concurrently")
            if partition_type.needs is not None and partition_type.needs not in (
                *listed,
                *self.names,
            ):
                raise retryable_conflict(
                    f"another writer dropped the index {partition_type.needs} concurrently"
                )
        if not ours or self.heartbeat.is_late or not self.action.is_inflight:
            raise retryable_conflict(
                f"the indexing {self.instant} was rolled back by another writer"
            )

    def _catch_up(self, config: TableConfig, timeline: Timeline) -> list[WriteStat]:
        """Append records of changes since the first critical section to the file groups."""
        now = open_for_change(self.handle, self.table.clock, config).with_timeline(timeline)
        source = self.source(now)
        # Columns may have been altered.
        check_kept(self.names, config, source.definitions, now.schema)
        stats: list[WriteStat] = []
        paths = {slice_.partition for slice_ in source.slices}
        for place, (partition_type, name) in enumerate(kinds_of(self.names)):
            definition, previous = source.definitions.get(name), _groups(self.makings[place])
            more = partition_type.new_groups(definition, previous, paths, self.instant)
            making = self.makings[place] = self.makings[place].with_more_groups(more)
            groups = _groups(making)
            tasks = partition_type.catch_up(self.first, source, name, groups)
            stats += self._write_groups(making, groups, tasks)
        return stats

    def _write_groups(
        self, making: PartitionBuild, groups: list[FileGroup], tasks: Sequence[RecordTask]
    ) -> list[WriteStat]:
        if not tasks:
            return []
        target, name, engine = making.target, making.partition.name, making.metadata_table.engine
        write = GroupTarget(
            target.storage,
            making.metadata_table.config.version,
            target.instant,
            target.avro_schema,
            {name: groups},
        )
        label = f"update {name}"
        routes = tuple(f"{name}/{number}" for number in range(len(groups)))
        own = [PortionTask(task, routes) for task in tasks]
        rows = engine.scan(derive_initial, own, RECORD_ROWS, label=label)
        stage = STAGE + making.partition.portions
        return engine.exchange(rows, "route", partial(write_group, write), stage=stage, label=label)

    def _end_delta(self, stats: list[WriteStat]) -> None:
        table = open_metadata_table(self.table)
        delta = PendingInstant(table, self.instant, DELTA_COMMIT)
        for making in self.makings:
            making.tell_folder()
        delta.request()
        delta.begin()
        end_making(delta, self.makings, stats)

    def _count_files(self, stats: list[WriteStat]) -> dict[str, str]:
        for making in self.makings:
            records = making.partition.records
            if records is not None:
                name = making.partition.name
                indexed = sum(stat.num_inserts for stat in stats if stat.partition_path == name)
                return key_uniqueness_property(self.table.timeline, unique=indexed == records)
        return {}

    def take_back(self) -> None:
        """Remove the files of the build, and its timeline files unless another writer owns them."""
        table, clock = self.table, self.table.clock
        config = TableConfig.load(table.storage, clock)
        if PendingOperation.of(config).by != self.instant:
            # This writer's timeline files from after another writer had taken the build over.
            remove_left(table, self.instant)
            return
        # A stalled writer that continued the build under its name must not list files deleted here.
        config = PendingOperation.of(config).fence(table.storage, config, clock)
        for name in self.names:
            self._remove_files(config, name)
        remove_left(table, self.instant)
        config.update(table.storage, {}, clock, removed=(UNFINISHED,))
        self.heartbeat.stop()

    def _remove_files(self, config: TableConfig, name: str) -> None:
        storage = self.table.storage
        if name not in config.metadata_partitions:
            clear_partitions(storage, [name], self.table.lock_manager)
            return
        for file in storage.list_dir(f"{FOLDER}/{name}")[1]:
            if f"_{self.instant}." in file.name:
                storage.delete(file.path)


def remove_left(table: TableSnapshot, instant: str) -> None:
    """Remove an indexing that its writer left pending from both timelines."""
    pending = Timeline.load(table.storage, table.config).pending(INDEXING)
    if instant in {pending_instant.requested for pending_instant in pending}:
        PendingInstant(table, instant, INDEXING).remove()
    if FILES in table.config.metadata_partitions:
        metadata_table = open_metadata_table(table)
        delta = delta_commit(metadata_table, instant)
        if delta is not None and not delta.is_completed:
            PendingInstant(metadata_table, instant, DELTA_COMMIT).remove()


def _groups(making: PartitionBuild) -> list[FileGroup]:
    """File groups with their first log files: up to version 6 the next is numbered after them."""
    target, groups = making.target, []
    for number, file_id in enumerate(target.file_ids):
        name = start_log(target, number).rsplit("/", 1)[-1]
        log = LogFile(target.partition, name, file_id, target.instant, 1, START_TOKEN, "", 0)
        slice_ = FileSlice(target.partition, file_id, target.instant, None, (log,))
        groups.append(FileGroup(slice_))
    return groups
