"""An index that is made while writers go on: on the timeline an `indexing`, as Hudi's.

1. In a section: heartbeat, the property that says what is being made (`metadata/unfinished.py`),
   plan and inflight file. Writers of pyhudi that were under way give way, once.
2. Outside: the files, from the table as it was in that section. Their folder is none that listings
   of partitions find, and their delta commit, of the same instant, is not on the timeline yet.
3. In a second section, once no writer of Apache Hudi is under way that does not know of the index:
   what slices that came or went since mean for it goes into log files. Then the indexing and the
   delta commit are completed, and the table's properties name the index as the last act.

What fails alive is taken back. A writer that died leaves the property, by which the next one makes
the index alone (`metadata_lifecycle.py`). Unlike Hudi's indexer no other writer has to keep an
index that is not there yet.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial

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
from pyhudi.errors import CommitConflict, ConfigError, UnsupportedTableFeature, overtaken
from pyhudi.metadata.bootstrap import STAGE, Making
from pyhudi.metadata.definitions import index_definitions, parse_definitions
from pyhudi.metadata.definitions_file import Definitions, change_definitions
from pyhudi.metadata.initial import NO_INSTANT, InitialPartition, Source
from pyhudi.metadata.kinds.protocol import PartitionKind, Wish
from pyhudi.metadata.records import RECORD_ROWS, RecordTask, derive
from pyhudi.metadata.table_writer import delta_commit, open_metadata_table
from pyhudi.metadata.unfinished import Unfinished
from pyhudi.metadata.write_group import GroupTarget, write_group
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.table import Table
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.timeline import Timeline, content
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.unique_keys import counted_words
from pyhudi.txn import heartbeat
from pyhudi.txn.heartbeat import Heartbeat
from pyhudi.txn.open_instant import OpenInstant
from pyhudi.write.incoming import memory_limit
from pyhudi.write.write_context import Handle, WriteContext

PATIENCE_MS = 900_000
"""How long writers that were there first are waited for (`HoodieIndexer`, 1.2.0)."""
_POLL_S = 1.0
_SERVICES = (COMPACTION, LOG_COMPACTION, CLUSTERING)


def create(
    handle: Handle, kind: PartitionKind, options: MetadataOptions, clock: Clock
) -> tuple[str, ...]:
    """Makes an index and gives all partitions that the metadata table has then.

    options: by which the index is made alone. Raises `ConfigError` where the table has it or has no
    metadata table, `UnsupportedTableFeature` where the index must not be older than the table,
    `CommitConflict` where others are at the metadata table, or a write of Apache Hudi does not end.
    """
    build = _begun(handle, kind, options, clock)
    try:
        stats = build.making.write_files()
        return build.ended(stats)
    except BaseException:
        with suppress(Exception), handle.guarded.section():
            build.take_back()
        raise
    finally:
        build.heartbeat.rest()


def _begun(handle: Handle, kind: PartitionKind, options: MetadataOptions, clock: Clock) -> _Build:
    guard = handle.guarded
    with guard.section():
        context = WriteContext.open(handle.plain(), clock).recovered()
        _check(context, kind)
        table, config = context.table, context.config
        definitions = kind.definition(Wish(config, options, schema=table.columns))
        table.generator.observe(context.timeline)
        began_ms = clock.now_ms()
        instant = table.generator.next()
        build = _Build(table, instant, kind, options, definitions)
        build.check_can_catch_up()
        try:
            build.heartbeat.start()
            guard.check()
            config.updated(table.storage, build.undone.properties, clock)
            build.action.request(build.record("HoodieIndexPlan"))
            build.action.begin()
        except BaseException:
            with suppress(Exception):
                build.take_back()
            build.heartbeat.rest()
            raise
        guard.settle(began_ms)
    return build


def _check(context: WriteContext, kind: PartitionKind) -> None:
    config = context.config
    if config.version.logs_named_by_base_instant:
        msg = f"{names.TABLE_VERSION} is {config.version.code}: no index is made beside writers"
        raise UnsupportedTableFeature(msg, hint="Upgrade the table, or make it alone.")
    if FILES not in config.metadata_partitions:
        msg = "the table has no metadata table, which is not made beside writers"
        raise ConfigError(msg, hint="Use rebuild_metadata first.")
    if kind.name in config.metadata_partitions:
        msg = f"the table has the index {kind.name} already"
        raise ConfigError(msg, hint="Drop it first to make another one.")
    if Unfinished.of(config):
        msg = "another writer is making the metadata table, or changing the table's version"
        raise CommitConflict(msg, hint="Wait until it is done, then try again.")


@dataclass(frozen=True)
class _Build:
    """One index between its first section and its last."""

    table: Table
    """As it was in the first section."""
    instant: str
    kind: PartitionKind
    options: MetadataOptions
    definitions: Definitions

    @property
    def name(self) -> str:
        return self.kind.name

    @cached_property
    def heartbeat(self) -> Heartbeat:
        return Heartbeat(self.table.storage, self.instant, self.table.clock)

    @property
    def action(self) -> OpenInstant:
        return OpenInstant(self.table, self.instant, INDEXING)

    @property
    def undone(self) -> Unfinished:
        only = (self.name,)
        code = self.table.config.version.code
        return Unfinished(self.instant, code, only, self.definitions, removed=only, beside=True)

    def record(self, schema: str) -> bytes:
        """The plan, or what is said at the end."""
        last = self.table.timeline.last_commit
        info = {
            "metadataPartitionPath": self.name,
            "indexUptoInstant": NO_INSTANT if last is None else last.requested,
            "extraMetadata": {},
        }
        return content.encode_container(schema, {"indexPartitionInfos": [info]}, self.table.clock)

    def source(self, table: Table) -> Source:
        known = index_definitions(table.storage, table.config)
        defined = {**known, **parse_definitions(self.definitions)}
        return Source(table, self.options, defined, memory_limit(None))

    @cached_property
    def first(self) -> Source:
        return self.source(self.table)

    @cached_property
    def making(self) -> Making:
        metadata_table = open_metadata_table(self.table)
        metadata_table.storage.delete_dir(self.name)
        partition = self.kind.initial(self.first, self.name)
        return Making(self.table, metadata_table, partition, self.first, self.instant)

    def check_can_catch_up(self) -> None:
        """Raises `UnsupportedTableFeature` for an index that must be made alone."""
        if self.kind.catch_up(self.first, self.first, {self.name: 1}) is None:
            msg = f"{names.METADATA_PARTITIONS}: {self.name} is not made beside writers"
            raise UnsupportedTableFeature(msg, hint="Leave concurrently out.")

    # --- the end ---

    def ended(self, stats: list[WriteStat]) -> tuple[str, ...]:
        """Completes what was made, as soon as all who write know of it or are done."""
        table, clock = self.table, self.table.clock
        until = clock.now_ms() + PATIENCE_MS
        while True:
            with table.guard.section():
                timeline = Timeline.load(table.storage, table.config)
                others = self._unknowing(timeline)
                if not others:
                    return self._complete(timeline, stats)
            if clock.now_ms() >= until:
                msg = f"{others[0]} is under way, and would not keep {self.name} up to date"
                raise CommitConflict(msg, hint="Complete it, or roll it back, first.")
            clock.sleep(_POLL_S)

    def _unknowing(self, timeline: Timeline) -> list[Instant]:
        """Writers that do not look at the table's properties before they complete: Hudi's."""
        pending = [
            instant
            for instant in timeline.pending(*COMMIT_ACTIONS, *_SERVICES)
            if instant.state is State.INFLIGHT or instant.action not in _SERVICES
        ]
        known = heartbeat.of_pyhudi(self.table.storage, {instant.requested for instant in pending})
        return [instant for instant in pending if instant.requested not in known]

    def _complete(self, timeline: Timeline, stats: list[WriteStat]) -> tuple[str, ...]:
        table, clock = self.table, self.table.clock
        table.generator.observe(timeline)
        config = TableConfig.load(table.storage, clock)
        self._check_own(config)
        now = self.source(table.at(timeline))
        groups = {self.name: self.making.partition.groups}
        later = list(self.kind.catch_up(self.first, now, groups) or ())
        stats = [*stats, *self._written(later)]
        self._check_own(TableConfig.load(table.storage, clock))
        # No delta commit without an instant of the table is left, whenever this writer dies.
        self.action.complete(self.record("HoodieIndexCommitMetadata"))
        self._end_delta(stats)
        changes = change_definitions(table.storage, config, self.definitions)
        listed = (*config.metadata_partitions, self.name)
        changes[names.METADATA_PARTITIONS] = ",".join(sorted(listed))
        changes.update(self._counted(stats))
        config = config.updated(table.storage, changes, clock, removed=(UNFINISHED,))
        self.heartbeat.stop()
        return config.metadata_partitions

    def _check_own(self, config: TableConfig) -> None:
        """Raises `CommitConflict` where others may have taken this writer for dead."""
        self.table.guard.check()
        listed = config.metadata_partitions
        ours = Unfinished.of(config).by == self.instant and FILES in listed
        if self.name in listed:
            raise overtaken(f"another writer has made the index {self.name} meanwhile")
        if not ours or self.heartbeat.is_late or not self.action.is_inflight:
            raise overtaken(f"the indexing {self.instant} was taken back by another writer")

    def _written(self, tasks: list[RecordTask]) -> list[WriteStat]:
        """What came since, appended to the file groups."""
        if not tasks:
            return []
        making, label = self.making, f"bring {self.name} up to date"
        target = making.target
        write = GroupTarget(
            target.storage,
            making.metadata_table.config.version,
            target.instant,
            target.avro_schema,
            {self.name: _groups(making.partition, target.instant)},
        )
        rows = making.metadata_table.engine.scan(derive, tasks, RECORD_ROWS, label=label)
        stage = STAGE + making.partition.portions
        return making.metadata_table.engine.exchange(
            rows, "route", partial(write_group, write), stage=stage, label=label
        )

    def _end_delta(self, stats: list[WriteStat]) -> None:
        making = self.making
        table = making.metadata_table.reloaded()
        delta = OpenInstant(table, self.instant, DELTA_COMMIT)
        making.tell_folder()
        delta.request()
        delta.begin()
        making.end(delta, stats)

    def _counted(self, stats: list[WriteStat]) -> dict[str, str]:
        records = self.making.partition.records
        if records is None:
            return {}
        made = sum(stat.num_inserts for stat in stats)
        return counted_words(self.table.timeline, unique=made == records)

    def take_back(self) -> None:
        """Removes what there is of it, unless it is complete or another's by now."""
        table, clock = self.table, self.table.clock
        config = TableConfig.load(table.storage, clock)
        if Unfinished.of(config).by != self.instant:
            return
        self._remove_files(config)
        remove_left(table, self.instant)
        config.updated(table.storage, {}, clock, removed=(UNFINISHED,))
        self.heartbeat.stop()

    def _remove_files(self, config: TableConfig) -> None:
        storage, folder = self.table.storage, f"{FOLDER}/{self.name}"
        if self.name not in config.metadata_partitions:
            storage.delete_dir(folder)
            return
        for file in storage.list_dir(folder)[1]:
            if f"_{self.instant}." in file.name:
                storage.delete(file.path)


def remove_left(table: Table, instant: str) -> None:
    """Takes an indexing off both timelines that its writer left pending."""
    pending = Timeline.load(table.storage, table.config).pending(INDEXING)
    if instant in {left.requested for left in pending}:
        OpenInstant(table, instant, INDEXING).remove()
    if FILES in table.config.metadata_partitions:
        metadata_table = open_metadata_table(table)
        delta = delta_commit(metadata_table, instant)
        if delta is not None and not delta.is_completed:
            OpenInstant(metadata_table, instant, DELTA_COMMIT).remove()


def _groups(partition: InitialPartition, instant: str) -> list[FileGroup]:
    return [
        FileGroup(FileSlice(partition.name, file_id, instant, None))
        for file_id in partition.file_ids
    ]
