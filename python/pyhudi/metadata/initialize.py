"""Builds partitions of the metadata table, for a new table or one without them.

Each partition is one delta commit: a log file without records for every file group, and a base file
for groups with records. All partitions are built before the table's properties name the first of
them, so a failed writer leaves nothing that readers use; the next attempt starts over. The
properties then also say that no operation is pending (`pending_operation.py`). Instants, names and
order are those of `HoodieBackedTableMetadataWriter` (0.15.0 and 1.2.0). `partition_types/` defines
the partitions and their records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyhudi.cached_property import cached_property
from pyhudi.clock import INSTANT_DIGITS
from pyhudi.config import merge_mode as merging
from pyhudi.config import property_names as names
from pyhudi.config.actions import DELTA_COMMIT, INDEXING, Instant
from pyhudi.config.file_names import PARTITION_METADATA_PREFIX
from pyhudi.config.metadata_names import FILES, FOLDER
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.config.property_names import PENDING_OPERATION
from pyhudi.config.table_config import TableConfig
from pyhudi.config.table_version import TableVersion
from pyhudi.config.timeline_layout import META_FOLDER
from pyhudi.errors import CommitConflict
from pyhudi.metadata.index_definitions import (
    Definitions,
    change_definitions,
    index_definitions,
    parse_definitions,
)
from pyhudi.metadata.initial_records import (
    NO_INSTANT,
    InitialPartition,
    Source,
    initial_record_rows,
)
from pyhudi.metadata.new_file_groups import (
    FirstFilesTarget,
    first_log_path,
    store_first_log,
    write_base,
)
from pyhudi.metadata.partition_types.base import PartitionRequest
from pyhudi.metadata.partition_types.registry import in_order, new_definitions, partition_types_of
from pyhudi.metadata.record_tasks import RECORD_ROWS, record_schema
from pyhudi.metadata.table_writer import (
    clear_partitions,
    complete_delta_commit,
    open_metadata_table,
    remove_metadata_table,
)
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.storage.properties import CHECKSUM, TABLE_NAME, checksum, partition_metadata
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat, by_partition
from pyhudi.timeline.instant_range import InstantRange
from pyhudi.timeline.key_uniqueness import key_uniqueness_property
from pyhudi.timeline.table_directories import make_table
from pyhudi.txn.pending_instant import PendingInstant

OPERATION = "BULK_INSERT"
STAGE = 3
"""The stage of the engine call that writes base files."""

_FIRST_SUFFIX = 10


def initialize_partitions(
    data: TableSnapshot,
    partitions: set[str],
    options: MetadataOptions,
    memory: int,
    definitions: Definitions | None = None,
) -> TableConfig:
    """Build partitions that the table does not have; return its properties with them.

    data: the data table, after the rollback of failed writers. Without a metadata table `files` is
    built too. memory: bytes of records on their way to files. definitions: of partitions with names
    of their own. With a record index the properties record whether a key is duplicate.

    Raises `CommitConflict` while other work is pending that excludes it, or if the table's lock was
    lost.
    """
    config = data.config
    existing_partitions = config.metadata_partitions
    requested = in_order((partitions | {FILES}) - set(existing_partitions))
    if not requested:
        return config
    check_can_start(config, data.timeline.pending())
    added = {
        **new_definitions(requested, PartitionRequest(config, options, schema=data.columns)),
        **(definitions or {}),
    }
    existing = index_definitions(data.storage, config)
    definitions_after = {**existing, **parse_definitions(added)}
    source = Source(data, options, definitions_after, memory)
    before = TableConfig.load(data.storage, data.clock)
    # A build takes long. A writer that lost the lock would remove what another writer built.
    data.lock_manager.check_held()
    metadata_table = _clear_failed_attempt(data, existing_partitions)
    uniqueness: dict[str, str] = {}
    for partition_type, name in partition_types_of(requested):
        data.lock_manager.check_held()
        metadata_table = metadata_table.reload()
        partition = partition_type.initial(source, name)
        records = PartitionBuild(data, metadata_table, partition, source).execute()
        if partition.records is not None:
            uniqueness = key_uniqueness_property(data.timeline, unique=records == partition.records)
    data.lock_manager.check_held()
    changes = change_definitions(data.storage, config, added)
    changes[names.METADATA_PARTITIONS] = ",".join(sorted((*existing_partitions, *requested)))
    changes.update(uniqueness)
    # Fails if another writer took the build over and changed the properties.
    return before.update(data.storage, changes, data.clock, removed=(PENDING_OPERATION,))


def check_can_start(config: TableConfig, pending: Sequence[Instant]) -> None:
    """Raise `CommitConflict` if pending work excludes building partitions.

    Up to table version 6 log files have the names of instants that may be pending (0.15.0).
    """
    pending = [instant for instant in pending if instant.action != INDEXING]
    if pending and config.version.logs_named_by_base_instant:
        msg = f"{pending[0]} is pending: the metadata table cannot be built"
        raise CommitConflict(msg, hint="Complete it first.")


def _clear_failed_attempt(data: TableSnapshot, existing: Sequence[str]) -> TableSnapshot:
    """Return the metadata table without leftovers of a failed attempt; create it if missing."""
    if not existing:
        _create_table(data)
        return open_metadata_table(data)
    metadata_table = open_metadata_table(data)
    folders = metadata_table.storage.list_dir("")[0]
    leftover = [folder for folder in folders if folder not in {META_FOLDER, *existing}]
    clear_partitions(data.storage, leftover, data.lock_manager)
    for instant in metadata_table.timeline.pending(DELTA_COMMIT):
        if _is_initial(instant.requested):
            PendingInstant(metadata_table, instant.requested, DELTA_COMMIT).remove()
    return metadata_table.reload()


def _is_initial(time: str) -> bool:
    """Return whether the instant is that of a delta commit that builds a partition."""
    return time.startswith(NO_INSTANT) or len(time) > INSTANT_DIGITS


def _create_table(data: TableSnapshot) -> None:
    remove_metadata_table(data.storage, data.lock_manager)
    make_table(data.storage.below(FOLDER), metadata_config(data.config), data.clock)


@dataclass(frozen=True)
class PartitionBuild:
    """The delta commit that builds one partition."""

    data: TableSnapshot
    metadata_table: TableSnapshot
    partition: InitialPartition
    source: Source
    time: str | None = None
    """The time of the delta commit; None for the first unused one."""

    def execute(self) -> int:
        """Build the partition and return the number of its records."""
        delta = self.delta
        clear_partitions(self.data.storage, [self.partition.name], self.data.lock_manager)
        delta.request()
        delta.begin()
        self.write_partition_metadata()
        stats = self.write_files()
        complete_build(delta, [self], stats)
        return sum(stat.num_inserts for stat in stats)

    @cached_property
    def delta(self) -> PendingInstant:
        """The delta commit; its instant is chosen at the first access."""
        return PendingInstant(self.metadata_table, self.time or self._instant(), DELTA_COMMIT)

    @cached_property
    def target(self) -> FirstFilesTarget:
        """The settings shared by the writers of its first files."""
        table = self.metadata_table
        schema = record_schema(table.config.version.metadata_schema)
        name, ids = self.partition.name, self.partition.file_ids
        return FirstFilesTarget(table.storage, name, self.delta.time, schema, ids)

    def _instant(self) -> str:
        """Return the first instant that was never used (`generateUniqueInstantTime`)."""
        timeline = self.metadata_table.timeline
        used = {instant.requested for instant in timeline.instants}
        start, offset = NO_INSTANT, 0
        if self.data.config.version.metadata_starts_with_data:
            start, offset = self.source.last_instant, _FIRST_SUFFIX
        elif used and f"{start}{offset:03d}" not in used:
            # Hudi's instant could be reused. Open handles regard an instant before their timeline's
            # start as committed.
            archived = timeline.archive.instants(InstantRange(until=f"{start}~"))
            used |= {instant.requested for instant in archived}
        while f"{start}{offset:03d}" in used:
            offset += 1
        return f"{start}{offset:03d}"

    def write_partition_metadata(self) -> None:
        """Write the partition metadata file, by which listings find the directory."""
        target = self.target
        path = f"{target.partition}/{PARTITION_METADATA_PREFIX}"
        target.storage.put(path, partition_metadata(target.instant, 1))

    def write_files(self) -> list[WriteStat]:
        """Write a log file without records for each file group, and base files with the records."""
        target = self.target
        paths = [first_log_path(target, number) for number in range(self.partition.groups)]
        target.storage.run_concurrently(*(partial(store_first_log, target, path) for path in paths))
        return self._write_bases()

    def _write_bases(self) -> list[WriteStat]:
        target = self.target
        if not self.partition.tasks:
            return []
        label = f"build {target.partition}"
        stats: list[WriteStat] = []
        for round_number, tasks in enumerate(self.partition.task_rounds()):
            rows = self.metadata_table.engine.scan(
                initial_record_rows, tasks, RECORD_ROWS, label=label
            )
            write = partial(write_base, target)
            stats += self.metadata_table.engine.exchange(
                rows, "route", write, stage=STAGE + round_number, label=label
            )
        return stats

    def with_more_groups(self, groups: Sequence[FileGroup]) -> PartitionBuild:
        """Return the build with additional file groups, whose first log files it writes."""
        if not groups:
            return self
        ids = tuple(sorted([*self.target.file_ids, *(group.slice.file_id for group in groups)]))
        partition = replace(self.partition, groups=len(ids), ids=ids)
        grown = replace(self, partition=partition, time=self.delta.time)
        for group in groups:
            store_first_log(grown.target, group.slice.logs[0].path)
        return grown

    def files_with_records(self) -> list[str]:
        """Return files of this instant with records, including those of failed attempts."""
        target = self.target
        start = {first_log_path(target, number) for number in range(self.partition.groups)}
        files = self.metadata_table.storage.list_dir(self.partition.name)[1]
        suffixes = (f"_{target.instant}.hfile", f"_{target.instant}.log.")
        data = [file.path for file in files if any(part in file.name for part in suffixes)]
        return [path for path in data if path not in start]


def complete_build(
    delta: PendingInstant, builds: Sequence[PartitionBuild], stats: Sequence[WriteStat]
) -> None:
    """Remove files of failed attempts and complete the delta commit that builds partitions."""
    started_paths = [path for build in builds for path in build.files_with_records()]
    delta.delete_unnamed_files(CommitMetadata(by_partition(stats)), started_paths)
    complete_delta_commit(delta, OPERATION, stats)


_KEY_GENERATOR = "HOODIE_TABLE_METADATA"
_PAYLOAD = "org.apache.hudi.metadata.HoodieMetadataPayload"
_PAYLOAD_STRATEGY = "00000000-0000-0000-0000-000000000000"


def metadata_config(data: TableConfig) -> TableConfig:
    """Return the configuration of a data table's new metadata table.

    Its properties are those that the release of the table's version writes
    (`HoodieBackedTableMetadataWriter`, 0.15.0, 1.0.2 and 1.2.0).
    """
    version = data.version
    properties = {
        TABLE_NAME: f"{data.name}_metadata",
        names.TABLE_TYPE: "MERGE_ON_READ",
        names.TABLE_VERSION: str(version.code),
        names.LAYOUT_VERSION: str(version.layout.version),
        names.BASE_FILE_FORMAT: "HFILE",
        names.RECORD_KEY_FIELDS: "key",
        names.META_FIELDS: "false",
        names.DROP_PARTITION_COLUMNS: "false",
        merging.PAYLOAD_CLASS: _PAYLOAD,
        **_by_version(version),
    }
    return TableConfig({**properties, CHECKSUM: checksum(properties)})


def _by_version(version: TableVersion) -> dict[str, str]:
    if version.writes_old_property_names:
        return {
            names.ARCHIVE_FOLDER: "archived",
            names.KEY_GENERATOR_CLASS: names.KEY_GENERATOR_CLASSES[_KEY_GENERATOR],
            merging.OLD_STRATEGY_ID: merging.EVENT_TIME_STRATEGY,
        }
    return {
        "hoodie.table.initial.version": str(version.code),
        names.TIMELINE_PATH: "timeline",
        names.HISTORY_PATH: "history",
        names.ARCHIVE_FOLDER: "history",
        names.KEY_GENERATOR_TYPE: _KEY_GENERATOR,
        merging.MERGE_MODE: "CUSTOM",
        merging.STRATEGY_ID: _PAYLOAD_STRATEGY,
    }
