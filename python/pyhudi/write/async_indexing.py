"""Index build that runs concurrently with writers: an `indexing` on the timeline, as in Hudi.

1. In a critical section, it starts a heartbeat, records the build in a property
   (`metadata/pending_operation.py`) and creates the plan and the inflight file. Active pyhudi
   writers abort on conflict and retry once.
2. Without the lock, it writes the files from the snapshot of that critical section. Readers do not
   see them: partition listings ignore their directory, and their delta commit does not exist yet.
3. It waits for active Apache Hudi writers, which do not know of the index. In a second critical
   section it writes log files with the changes since the snapshot, and completes the indexing and
   the delta commit. Finally the table's properties name the index.

A failure is rolled back. After a crash the next writer finds the property and builds the index
under the lock (`metadata_lifecycle.py`). Unlike with Hudi's indexer, other writers do not maintain
an incomplete index.
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
from pyhudi.config.file_names import file_name_of
from pyhudi.config.metadata_names import FILES, FOLDER
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.config.property_names import PENDING_OPERATION
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict, ConfigError, retryable_conflict
from pyhudi.metadata.index_definitions import (
    Definitions,
    change_definitions,
    index_definitions,
    parse_definitions,
)
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.initial_records import (
    NO_INSTANT,
    RoundTask,
    Source,
    initial_record_rows,
)
from pyhudi.metadata.initialize import STAGE, PartitionBuild, complete_build
from pyhudi.metadata.log_file_writer import GroupTarget, write_group
from pyhudi.metadata.new_file_groups import FIRST_LOG_TOKEN, first_log_path
from pyhudi.metadata.partition_types.base import PartitionRequest
from pyhudi.metadata.partition_types.registry import (
    in_order,
    new_definitions,
    partition_types_of,
    partitions_to_build,
    type_to_build,
)
from pyhudi.metadata.pending_operation import PendingOperation
from pyhudi.metadata.record_tasks import RECORD_ROWS, RecordTask
from pyhudi.metadata.statistics_columns import check_nested
from pyhudi.metadata.table_writer import clear_partitions, delta_commit, open_metadata_table
from pyhudi.metadata.write_checks import check_maintainable, maintainable_partitions
from pyhudi.slices.file_slice import FileSlice, LogFile
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline, serde
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.key_uniqueness import key_uniqueness_property
from pyhudi.txn import heartbeat, zombie_commits
from pyhudi.txn.heartbeat import Heartbeat
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.recovery import open_recovered
from pyhudi.write.checks import check_indexed_columns
from pyhudi.write.input_rows import memory_limit
from pyhudi.write.table_opening import Handle, open_for_change
from pyhudi.write.write_context import WriteContext

WRITER_TIMEOUT_MS = 900_000
"""The timeout for writers that started earlier (`HoodieIndexer`, 1.2.0)."""
_POLL_S = 1.0
_SERVICES = (COMPACTION, LOG_COMPACTION, CLUSTERING)


@dataclass(frozen=True)
class _PlannedIndex:
    """The partitions of an index and the options of their build."""

    names: tuple[str, ...]
    """In build order."""
    options: MetadataOptions
    definitions: Definitions


def _plan_build(
    context: WriteContext, request: IndexRequest, options: MetadataOptions
) -> _PlannedIndex:
    """Plan an index build.

    Raises `ConfigError` if the table has the index or has no metadata table, `CommitConflict` if
    another writer is building the metadata table.
    """
    _check_can_start(context)
    config, index_type, table = context.config, type_to_build(request), context.table
    if index_type.has_names:
        definitions = index_type.define(table.storage, config, request)
        check_indexed_columns(definitions, context.schema)
        partitions = tuple(definitions)
    else:
        options = index_type.options_for_create_index(options, request)
        partition_request = PartitionRequest(config, options, schema=table.columns)
        existing = config.metadata_partitions
        supported = maintainable_partitions(
            partitions_to_build(index_type, partition_request), context.schema, options
        )
        partitions = tuple(name for name in in_order(set(supported)) if name not in existing)
        partitions = partitions if index_type.name in partitions else (index_type.name,)
        definitions = new_definitions(partitions, partition_request)
    check_index_is_new(config, *partitions)
    check_maintainable(partitions, config, parse_definitions(definitions), context.schema)
    check_nested(config, options.stats_columns)
    return _PlannedIndex(partitions, options, definitions)


def _check_can_start(context: WriteContext) -> None:
    config = context.config
    if FILES not in config.metadata_partitions:
        msg = "the table has no metadata table, which cannot be built concurrently"
        raise ConfigError(msg, hint="Use rebuild_metadata first.")
    if PendingOperation.of(config):
        msg = "another writer is building the metadata table or changing the table's version"
        raise CommitConflict(msg, hint="Wait until it is done, then try again.")


def check_index_is_new(config: TableConfig, *names: str) -> None:
    """Raise `ConfigError` if the table has one of these indexes, or a pending build of it."""
    existing = {*config.metadata_partitions, *PendingOperation.of(config).partitions}
    for name in names:
        if name in existing:
            msg = f"the table already has the index {name}"
            raise ConfigError(msg, hint="Drop it first to create another one.")


def create(
    handle: Handle, request: IndexRequest, options: MetadataOptions, clock: Clock
) -> tuple[str, ...]:
    """Build an index; return all partitions of the metadata table.

    options: the handle's. Raises as a build under the lock does; `ConfigError` if the table has the
    index or no metadata table; `CommitConflict` if another writer changes the metadata table, or an
    Apache Hudi write does not end in time.
    """
    build = _start(handle, request, options, clock)
    try:
        stats = [stat for partition_build in build.builds for stat in partition_build.write_files()]
        return build.finish(stats)
    except BaseException:
        with suppress(Exception), handle.lock_manager.critical_section():
            build.roll_back()
        raise
    finally:
        build.heartbeat.stop_beating()


def _start(handle: Handle, request: IndexRequest, options: MetadataOptions, clock: Clock) -> _Build:
    lock_manager = handle.lock_manager
    with lock_manager.critical_section():
        context = open_recovered(
            lambda: WriteContext.open(handle.without_index_options(), clock).recover()
        )
        planned, table = _plan_build(context, request, options), context.table
        table.generator.observe(context.timeline)
        began_ms = clock.now_ms()
        build = _Build(handle.without_index_options(), table, table.generator.next(), planned)
        build.list_files()
        try:
            build.heartbeat.start()
            lock_manager.check_held()
            context.config.update(table.storage, build.pending.properties, clock)
            clear_partitions(table.storage, build.names, lock_manager)
            build.action.request_planned(build.record("HoodieIndexPlan"), context.timeline)
            build.action.begin()
        except BaseException:
            with suppress(Exception):
                build.roll_back()
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
    planned: _PlannedIndex

    @property
    def names(self) -> tuple[str, ...]:
        return self.planned.names

    @cached_property
    def heartbeat(self) -> Heartbeat:
        return Heartbeat(self.table.storage, self.instant, self.table.clock)

    @property
    def action(self) -> PendingInstant:
        return PendingInstant(self.table, self.instant, INDEXING)

    @property
    def pending(self) -> PendingOperation:
        only, definitions = self.names, self.planned.definitions
        code = self.table.config.version.code
        return PendingOperation(
            self.instant, code, only, definitions, removed=only, is_concurrent=True
        )

    def record(self, schema: str) -> bytes:
        """Return the plan, or the completion record."""
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
        defined = {**existing, **parse_definitions(self.planned.definitions)}
        return Source(table, self.planned.options, defined, memory_limit(None), concurrent=True)

    @cached_property
    def source_at_start(self) -> Source:
        return self.source(self.table)

    def list_files(self) -> None:
        """List the files on which `_catch_up` depends."""
        for partition_type, name in partition_types_of(self.names):
            partition_type.catch_up(self.source_at_start, self.source_at_start, name, ())

    @cached_property
    def builds(self) -> list[PartitionBuild]:
        metadata_table = open_metadata_table(self.table)
        builds = []
        for partition_type, name in partition_types_of(self.names):
            partition = partition_type.initial(self.source_at_start, name)
            builds.append(
                PartitionBuild(
                    self.table, metadata_table, partition, self.source_at_start, self.instant
                )
            )
        return builds

    # --- the end ---

    def finish(self, stats: list[WriteStat]) -> tuple[str, ...]:
        """Complete the build once all active writers know of it."""
        table, clock = self.table, self.table.clock
        deadline_ms = clock.ticks_ms() + WRITER_TIMEOUT_MS
        while True:
            with table.lock_manager.critical_section():
                timeline = zombie_commits.load_timeline(table)
                unaware_writers = self._unaware_writers(timeline)
                if not unaware_writers:
                    return self._complete(timeline, stats)
            if clock.ticks_ms() >= deadline_ms:
                listed = ", ".join(self.names)
                msg = f"{unaware_writers[0]} is active, and would not maintain {listed}"
                raise CommitConflict(msg, hint="Complete it, or roll it back, first.")
            clock.sleep(_POLL_S)

    def _unaware_writers(self, timeline: Timeline) -> list[Instant]:
        """Return active Hudi writers, which do not check the properties before they complete."""
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
        table, clock, definitions = self.table, self.table.clock, self.planned.definitions
        table.generator.observe(timeline)
        config = TableConfig.load(table.storage, clock)
        self._check_own(config)
        stats = [*stats, *self._catch_up(config, timeline)]
        self._check_own(TableConfig.load(table.storage, clock))
        # First, so a failure leaves no delta commit without an instant of the table.
        self.action.complete(self.record("HoodieIndexCommitMetadata"))
        # If this writer stalls here, another writer may build the same files.
        table.lock_manager.check_held()
        self._complete_delta_commit(stats)
        table.lock_manager.check_held()
        changes = change_definitions(table.storage, config, definitions)
        listed = (*config.metadata_partitions, *self.names)
        changes[names.METADATA_PARTITIONS] = ",".join(sorted(listed))
        changes.update(self._key_uniqueness_property(stats))
        # Fails if another writer took over and changed the properties (`fence_build`).
        config = config.update(table.storage, changes, clock, removed=(PENDING_OPERATION,))
        self.heartbeat.stop()
        return config.metadata_partitions

    def _check_own(self, config: TableConfig) -> None:
        """Raise `CommitConflict` if another writer may have taken this build over."""
        self.table.lock_manager.check_held()
        listed = config.metadata_partitions
        is_own = PendingOperation.of(config).heartbeat == self.instant and FILES in listed
        for partition_type, name in partition_types_of(self.names):
            if name in listed:
                raise retryable_conflict(f"another writer created the index {name} concurrently")
            if partition_type.needs is not None and partition_type.needs not in (
                *listed,
                *self.names,
            ):
                raise retryable_conflict(
                    f"another writer dropped the index {partition_type.needs} concurrently"
                )
        if not is_own or self.heartbeat.is_late or not self.action.is_inflight:
            raise retryable_conflict(
                f"the indexing {self.instant} was rolled back by another writer"
            )

    def _catch_up(self, config: TableConfig, timeline: Timeline) -> list[WriteStat]:
        """Append records of changes since the first critical section."""
        current = open_for_change(self.handle, self.table.clock, config).with_timeline(timeline)
        source = self.source(current)
        # Columns may have been altered in the meantime.
        check_maintainable(self.names, config, source.definitions, current.schema)
        stats: list[WriteStat] = []
        paths = {slice_.partition for slice_ in source.slices}
        for number, (partition_type, name) in enumerate(partition_types_of(self.names)):
            definition, previous = source.definitions.get(name), _groups(self.builds[number])
            new_groups = partition_type.new_groups(definition, previous, paths, self.instant)
            partition_build = self.builds[number] = self.builds[number].with_more_groups(new_groups)
            groups = _groups(partition_build)
            tasks = partition_type.catch_up(self.source_at_start, source, name, groups)
            stats += self._write_groups(partition_build, groups, tasks)
        return stats

    def _write_groups(
        self, partition_build: PartitionBuild, groups: list[FileGroup], tasks: Sequence[RecordTask]
    ) -> list[WriteStat]:
        if not tasks:
            return []
        target, name, engine = (
            partition_build.target,
            partition_build.partition.name,
            partition_build.metadata_table.engine,
        )
        write = GroupTarget(
            target.storage,
            partition_build.metadata_table.config.version,
            target.instant,
            target.avro_schema,
            {name: groups},
        )
        label = f"update {name}"
        routes = tuple(f"{name}/{number}" for number in range(len(groups)))
        rounds = [RoundTask(task, routes) for task in tasks]
        rows = engine.scan(initial_record_rows, rounds, RECORD_ROWS, label=label)
        stage = STAGE + partition_build.partition.rounds
        return engine.exchange(rows, "route", partial(write_group, write), stage=stage, label=label)

    def _complete_delta_commit(self, stats: list[WriteStat]) -> None:
        table = open_metadata_table(self.table)
        delta = PendingInstant(table, self.instant, DELTA_COMMIT)
        for partition_build in self.builds:
            partition_build.write_partition_metadata()
        delta.request()
        delta.begin()
        complete_build(delta, self.builds, stats)

    def _key_uniqueness_property(self, stats: list[WriteStat]) -> dict[str, str]:
        """Return the property that records whether keys are unique, if a record index was built."""
        for partition_build in self.builds:
            records = partition_build.partition.records
            if records is not None:
                name = partition_build.partition.name
                indexed = sum(stat.num_inserts for stat in stats if stat.partition_path == name)
                return key_uniqueness_property(self.table.timeline, unique=indexed == records)
        return {}

    def roll_back(self) -> None:
        """Remove the build's files, and its timeline files unless another writer took it over."""
        table, clock = self.table, self.table.clock
        config = TableConfig.load(table.storage, clock)
        if PendingOperation.of(config).heartbeat != self.instant:
            # This writer may have created timeline files after the takeover.
            remove_pending_indexing(table, self.instant)
            return
        # Fence a stalled writer that continued this build: it must not list the deleted files.
        config = PendingOperation.of(config).fence(table.storage, config, clock)
        for name in self.names:
            self._remove_files(config, name)
        remove_pending_indexing(table, self.instant)
        config.update(table.storage, {}, clock, removed=(PENDING_OPERATION,))
        self.heartbeat.stop()

    def _remove_files(self, config: TableConfig, name: str) -> None:
        storage = self.table.storage
        if name not in config.metadata_partitions:
            clear_partitions(storage, [name], self.table.lock_manager)
            return
        for file in storage.list_dir(f"{FOLDER}/{name}")[1]:
            if f"_{self.instant}." in file.name:
                storage.delete(file.path)


def remove_pending_indexing(table: TableSnapshot, instant: str) -> None:
    """Remove an indexing that its writer left pending from both timelines."""
    pending = Timeline.load(table.storage, table.config).pending(INDEXING)
    if instant in {pending_instant.requested for pending_instant in pending}:
        PendingInstant(table, instant, INDEXING).remove()
    if FILES in table.config.metadata_partitions:
        metadata_table = open_metadata_table(table)
        delta = delta_commit(metadata_table, instant)
        if delta is not None and not delta.is_completed:
            PendingInstant(metadata_table, instant, DELTA_COMMIT).remove()


def _groups(partition_build: PartitionBuild) -> list[FileGroup]:
    """Return file groups with their first log files, which the next version number follows."""
    target, groups = partition_build.target, []
    for number, file_id in enumerate(target.file_ids):
        name = file_name_of(first_log_path(target, number))
        log = LogFile(target.partition, name, file_id, target.instant, 1, FIRST_LOG_TOKEN, "", 0)
        slice_ = FileSlice(target.partition, file_id, target.instant, None, (log,))
        groups.append(FileGroup(slice_))
    return groups
