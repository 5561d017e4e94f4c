"""Keeps the metadata table in sync: it gets every commit and rollback of the data table.

A commit's records go into a delta commit of the same instant, which is complete before the data
table's commit is. A crash between the two leaves a delta commit that readers ignore, and that the
rollback of the commit rolls back. The partition types (`partition_types/`) find what to record in
the commit's metadata and its files. Order of steps: `HoodieBackedTableMetadataWriter` (Hudi 0.15.0
and 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from pyhudi import _native
from pyhudi.config.actions import (
    CLEAN,
    COMMIT,
    COMPACTION,
    DELTA_COMMIT,
    LOG_COMPACTION,
    ROLLBACK,
)
from pyhudi.config.file_names import file_name_of, parse_log_name
from pyhudi.config.metadata_names import (
    FILES,
    FOLDER,
    NO_PATH,
    PARTITION_STATS,
    PROPERTIES,
    REBUILD_HINT,
    RECORD_INDEX,
)
from pyhudi.engine.local import LocalEngine, choose_engine
from pyhudi.engine.protocol import Engine
from pyhudi.errors import CommitConflict, CorruptTable, HudiError, retryable_conflict
from pyhudi.metadata import compacted_rollbacks
from pyhudi.metadata.build_heartbeat import fence_build
from pyhudi.metadata.changed_slices import ChangedSlices
from pyhudi.metadata.consistency import check_not_stale
from pyhudi.metadata.index_definitions import definitions_path, index_definitions
from pyhudi.metadata.log_file_writer import GroupTarget, write_group
from pyhudi.metadata.new_file_groups import store_first_log
from pyhudi.metadata.partition_types.base import Change, CleanChange
from pyhudi.metadata.partition_types.files import FileTask
from pyhudi.metadata.partition_types.registry import clean_tasks, commit_tasks, new_groups
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.record_tasks import (
    RECORD_ROWS,
    RecordTask,
    RecordTaskContext,
    derive_rows,
)
from pyhudi.metadata.rollback_support import can_roll_back
from pyhudi.metadata.services import run_services
from pyhudi.metadata.table_writer import (
    GroupsByPartition,
    complete_delta_commit,
    delta_commit,
    groups_by_partition,
    observe,
    open_metadata_table,
    remove_delta_commit,
    roll_back_delta_commit,
)
from pyhudi.metadata.write_checks import check_replaceable
from pyhudi.schema.table_schema import table_schema
from pyhudi.slices.listing import ListedOnce
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.storage.storage import Storage
from pyhudi.table.participants import (
    ArchiveBound,
    Clean,
    Commit,
    CommitParticipant,
    Rollback,
    prefetch_publication_check,
)
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat
from pyhudi.txn import rollback
from pyhudi.txn.conflicts import ROW_PRESERVING_OPERATIONS
from pyhudi.txn.pending_instant import PendingInstant

OPERATION = "UPSERT_PREPPED"
STAGE = 2
"""The stage of the engine call that writes the log files."""
_RECORD_BYTES = 1 << 10
"""Estimated bytes of the record of one deleted file."""
_SERVICES = (CLEAN, COMMIT, COMPACTION, LOG_COMPACTION)
"""Service actions of the metadata table, pending and complete."""


class MetadataParticipant(CommitParticipant):
    """Keeps a table's metadata table in sync; does nothing for a table without one."""

    @contextmanager
    def prefetch(
        self, table: TableSnapshot, metadata: CommitMetadata, listed: Collection[str] = ()
    ) -> Iterator[None]:
        """Prefetch the metadata table, its files and indexes, and the changed slices."""
        partitions, layout = table.config.metadata_partitions, table.config.layout
        if FILES not in partitions:
            yield
            return
        folders = [layout.folder, *partitions]
        changed = {*metadata.partition_to_write_stats} if RECORD_INDEX in partitions else set()
        with (
            table.storage.below(FOLDER).prefetch(files=[PROPERTIES], folders=folders),
            table.storage.prefetch(
                files=[definitions_path(table.config)], folders=changed.difference(listed)
            ),
        ):
            yield

    def before_publish(self, table: TableSnapshot) -> None:
        """Fence a writer that builds a part of the metadata table, if it would miss the change."""
        fence_build(table)

    def before_complete(self, table: TableSnapshot, commit: Commit) -> Mapping[str, str]:
        """Write the delta commit, and count the keys that the record index gets.

        Raises `CommitConflict` if a newer delta commit of the same data partition would hide its
        partition statistics, and `StaleMetadataTable` if the metadata table misses earlier commits:
        readers would never use it again.
        """
        if FILES not in table.config.metadata_partitions:
            return {}
        _check_newest(table, commit)
        metadata_table = open_metadata_table(table)
        check_not_stale(table.timeline, metadata_table.timeline)
        metadata, avro = commit.metadata, _schema_with(table, commit)
        changes_rows = metadata.operation_type not in ROW_PRESERVING_OPERATIONS
        if metadata.partition_to_replace_file_ids and changes_rows:
            check_replaceable(table.config)
        schema = _native.arrow_schema(_native.with_meta_fields(avro))
        rows = ChangedSlices(table, commit.instant, metadata, schema, avro, commit.listed)
        delta = DeltaCommit(table, metadata_table, commit.instant)
        change = Change(table, metadata_table, commit, schema, rows, delta.groups, delta.listing)
        delta.add_groups(new_groups(change))
        size = sum(stat.file_size_in_bytes for stat in metadata.write_stats)
        engine = choose_engine(table.engine, table.storage, size=size)
        stats = delta.write(engine, commit_tasks(change))
        commit.metadata_table = delta.metadata_table
        commit.keys_indexed = sum(
            stat.num_writes for stat in stats if stat.partition_path == RECORD_INDEX
        )
        return {}

    def before_restore(self, table: TableSnapshot, targets: Collection[str]) -> None:
        """Check that the delta commits can be rolled back."""
        if not can_roll_back(table, targets):
            msg = "the pending restore cannot be applied to the metadata table"
            raise CommitConflict(
                msg,
                hint=(
                    "Call restore(to=...); it completes the restore and rebuilds the "
                    "metadata table."
                ),
            )

    def on_rollback(self, table: TableSnapshot, rollback: Rollback) -> None:
        """Roll back the delta commit, unless it belongs to a complete action of the same time.

        Up to table version 6 the log files that the rollback and the write left, or that the
        rollback deleted, are recorded first. On all versions, so are the files of a write that the
        metadata table has compacted already: see `compacted_rollbacks.py`.
        """
        if FILES not in table.config.metadata_partitions:
            return
        metadata_table, time = open_metadata_table(table), rollback.time
        action = rollback.record["instantsRollback"][0]["action"]
        others = table.timeline.of_same_time(rollback.target, action)
        is_shared = any(other.is_completed for other in others)
        is_merged = not is_shared and compacted_rollbacks.has_merged_records(
            table, metadata_table, rollback
        )
        if is_merged:
            table = compacted_rollbacks.drop_indexes(table)
        appends = table.config.version.rollback_appends_command
        if appends or is_merged:
            entries = (
                *(_leftover_log_files(table.storage, rollback) if appends else ()),
                *(compacted_rollbacks.file_deletions(rollback) if is_merged else ()),
            )
            _record_files(table, metadata_table, time, tuple(dict.fromkeys(entries)))
            metadata_table = metadata_table.reload()
        if not is_shared:
            time = f"{time}006" if appends else time
            roll_back_delta_commit(metadata_table, rollback.target, time)

    def on_revoke(self, table: TableSnapshot, instant: str) -> None:
        """Roll back the delta commit."""
        if FILES not in table.config.metadata_partitions:
            return
        remove_delta_commit(open_metadata_table(table), instant)

    def find_unlisted(
        self,
        table: TableSnapshot,
        listed: _native.FileGroups,
        includes_partition: Callable[[str], bool],
    ) -> Iterable[str]:
        """Return unlisted files of `files`; none if it is damaged, which a commit reports."""
        if FILES not in table.config.metadata_partitions:
            return []
        try:
            try:
                return MetadataTable.for_plan(table).find_unlisted(listed, includes_partition)
            except (HudiError, OSError):
                # Other writers may have cleaned its files since it was opened.
                storage, config, timeline = table.storage, table.config, table.timeline
                opened = MetadataTable(storage, config, timeline, for_write=True)
                return opened.find_unlisted(listed, includes_partition)
        except (HudiError, OSError):
            return []

    def archive_bound(self, table: TableSnapshot) -> ArchiveBound | None:
        """Return what its last compaction did not include (`TimelineArchiverV1` and `V2`)."""
        if FILES not in table.config.metadata_partitions:
            return None
        timeline = open_metadata_table(table).timeline
        compaction = next(reversed(timeline.filter_completed(COMMIT)), None)
        if compaction is None:
            return ArchiveBound("", "the metadata table has not been compacted yet")
        time = compaction.requested
        if timeline.completes_in_names:
            later = (c.requested for c in table.timeline.commits if (c.completed or "") > time)
            time = min(later, default=time)
        return ArchiveBound(
            time, f"the metadata table was compacted last at {compaction.requested}"
        )

    def before_clean(self, table: TableSnapshot, clean: Clean) -> None:
        """Write the delta commit, unless it is complete; roll back a pending one first."""
        if FILES not in table.config.metadata_partitions:
            return
        metadata_table = open_metadata_table(table)
        existing = delta_commit(metadata_table, clean.time)
        if existing is not None and existing.is_completed:
            return
        if existing is not None:
            observe(metadata_table)
            metadata_table = _roll_back_pending(metadata_table, clean.time)
        delta = DeltaCommit(table, metadata_table, clean.time)
        files = sum(map(len, clean.files.values()))
        engine = choose_engine(table.engine, table.storage, files=files, size=files * _RECORD_BYTES)
        delta.write(engine, clean_tasks(CleanChange(table, clean, delta.task_context)))
        clean.metadata_table = delta.metadata_table

    def after_complete(self, table: TableSnapshot, action: Commit | Clean) -> None:
        """Run the metadata table's own services."""
        run_services(table, action.metadata_table)


def _record_files(
    data: TableSnapshot,
    metadata_table: TableSnapshot,
    time: str,
    entries: tuple[tuple[str, str, int, bool], ...],
) -> None:
    """Write entries of `files` in a rollback's delta commit, unless it is complete."""
    existing = delta_commit(metadata_table, time)
    if existing is not None and existing.is_completed:
        return
    if existing is not None:
        metadata_table = _roll_back_pending(metadata_table, time)
    delta = DeltaCommit(data, metadata_table, time)
    tasks = [FileTask(delta.task_context, entries)] if entries else []
    # Few entries need no other engine.
    delta.write(LocalEngine(), tasks)


def _roll_back_pending(metadata_table: TableSnapshot, time: str) -> TableSnapshot:
    """Roll back the pending delta commit of a failed rollback or clean.

    The rollback takes a new instant, since the data table's is that of the delta commit.
    """
    for pending in metadata_table.timeline.pending(ROLLBACK):
        if rollback.target_of(metadata_table.timeline, pending) == (time, DELTA_COMMIT):
            rollback.resume(metadata_table, metadata_table.timeline, pending)
            metadata_table = metadata_table.reload()
    suffix = "006" if metadata_table.config.version.metadata_services_have_suffixes else ""
    rollback_time = f"{metadata_table.generator.next()}{suffix}"
    roll_back_delta_commit(metadata_table, time, rollback_time)
    return metadata_table.reload()


def _leftover_log_files(
    storage: Storage, rollback: Rollback
) -> Iterator[tuple[str, str, int, bool]]:
    """Return log files with rolled back blocks, and those with the rollback blocks.

    Deleted log files are included: other commits, and earlier rollbacks, may have added them.
    """
    for path, part in rollback.record["partitionMetadata"].items():
        for name in compacted_rollbacks.names_of_deleted_files(part):
            if parse_log_name(name) is not None:
                yield (path or NO_PATH, name, 0, True)
        paths = {*part["rollbackLogFiles"], *part["logFilesFromFailedCommit"]}
        for name in sorted(file_name_of(path) for path in paths):
            file = storage.head(f"{path}/{name}" if path else name)
            if file is not None:
                yield (path or NO_PATH, name, file.size, False)


def _schema_with(table: TableSnapshot, commit: Commit) -> str:
    """Return the table's Avro schema after a commit.

    A planned service writes with the schema of its plan; other files may have wider types now.
    """
    if commit.metadata.is_service:
        current = table_schema(table.storage, table.config, table.timeline)
        # Columns with ids may have been renamed: the names in the files count.
        if current.history is None:
            return current.avro
    return commit.schema.avro


def _check_newest(table: TableSnapshot, commit: Commit) -> None:
    """Raise `CommitConflict` if a write that was requested later is complete already.

    Partition statistics cover all files of a partition, and the record that was requested last
    counts, whichever completed last. If rows stay as they were, that record is right.
    """
    if PARTITION_STATS not in table.config.metadata_partitions:
        return
    if commit.metadata.operation_type in ROW_PRESERVING_OPERATIONS:
        return
    timeline, own_partitions = table.timeline, set(commit.metadata.partition_to_write_stats)
    for other in timeline.commits:
        if other.requested > commit.instant and own_partitions.intersection(
            timeline.commit_metadata(other).partition_to_write_stats
        ):
            msg = f"{other} was requested later and wrote to the same partition concurrently"
            raise retryable_conflict(msg)


class DeltaCommit:
    """One delta commit of the metadata table."""

    def __init__(self, data: TableSnapshot, metadata_table: TableSnapshot, instant: str) -> None:
        self._data = data
        self._metadata_table = metadata_table
        self._instant = instant
        partitions = data.config.metadata_partitions
        self.listing = ListedOnce(metadata_table.storage)
        """The files of the metadata table before this commit."""
        self.groups: GroupsByPartition = groups_by_partition(
            metadata_table, partitions, self.listing
        )
        """The file groups of each partition, in the order of their numbers."""
        self._new_groups: list[FileGroup] = []
        self.metadata_table: TableSnapshot | None = None
        """The metadata table right after it; None also if that would take a listing."""

    @property
    def task_context(self) -> RecordTaskContext:
        """The arguments that all tasks share; valid once all file groups are known."""
        return RecordTaskContext.of(self._data.storage, self._metadata_table.config, self.groups)

    def add_groups(self, groups: Iterable[FileGroup]) -> None:
        """Add file groups that begin with this commit."""
        for group in groups:
            self._new_groups.append(group)
            self.groups[group.slice.partition].append(group)
            self.groups[group.slice.partition].sort(key=lambda existing: existing.slice.file_id)

    def write(self, engine: Engine, tasks: Sequence[RecordTask]) -> list[WriteStat]:
        """Start the delta commit, write the records of the tasks, and complete it.

        Returns the write stats. Raises `CommitConflict` if a service of the metadata table
        has the instant.
        """
        metadata_table, version = self._metadata_table, self._metadata_table.config.version
        self._check_instant_is_free()
        self._check_files_exist()
        delta = PendingInstant(metadata_table, self._instant, DELTA_COMMIT)
        delta.request()
        profile = CommitMetadata(self._workload_profile(), operation_type=OPERATION)
        delta.begin(profile.encode_inflight(version, metadata_table.clock))
        rows = engine.scan(derive_rows, tasks, RECORD_ROWS, label="find metadata records")
        target = GroupTarget(
            metadata_table.storage,
            version,
            self._instant,
            self.task_context.avro_schema,
            self.groups,
        )
        for group in self._new_groups:
            store_first_log(target, group.slice.logs[0].path)
        with prefetch_publication_check(metadata_table) as drop_old_listing:
            stats = engine.exchange(
                rows, "route", partial(write_group, target), stage=STAGE, label="write metadata"
            )
            drop_old_listing()
            try:
                completion = complete_delta_commit(delta, OPERATION, stats)
            except CommitConflict:
                self._remove_unnamed(delta, stats)
                raise
        if metadata_table.timeline.completes_in_names:
            timeline = metadata_table.timeline.with_completed(
                self._instant, DELTA_COMMIT, completion
            )
            self.metadata_table = metadata_table.with_timeline(timeline)
        return stats

    def _remove_unnamed(self, delta: PendingInstant, stats: Iterable[WriteStat]) -> None:
        """Remove what was written after another writer completed the same delta commit.

        Up to table version 6 it would count as part of that commit, before the commits in between.
        """
        now = self._metadata_table.reload().timeline
        done = now.find(self._instant, DELTA_COMMIT)
        if done is not None and done.is_completed:
            own = [stat.path for stat in stats if stat.path is not None]
            delta.delete_unnamed_files(now.commit_metadata(done), own)

    def _check_instant_is_free(self) -> None:
        """Check that no service has the instant: a rollback would delete the service's files.

        Instants are unique on the data table's timeline. The metadata table's services take theirs
        from the clock of the writer that runs them, and another writer's clock may be slow.
        """
        for existing in self._metadata_table.timeline.instants:
            if existing.requested == self._instant and existing.action in _SERVICES:
                msg = f"the metadata table has the {existing.action} {self._instant} already"
                raise retryable_conflict(msg)

    def _check_files_exist(self) -> None:
        """Raise `CorruptTable` if all files of a partition are missing."""
        for name in (name for name, groups in self.groups.items() if not groups):
            definition = index_definitions(self._data.storage, self._data.config).get(name)
            # A partitioned record index has no files while there are no rows.
            if definition is None or not definition.is_partitioned:
                raise CorruptTable(f"{FOLDER}/{name} has no files", hint=REBUILD_HINT)

    def _workload_profile(self) -> dict[str, tuple[WriteStat, ...]]:
        """Return every slice that may be appended to: a rollback by listing needs it."""
        return {
            name: (
                WriteStat(),
                *(
                    WriteStat(file_id=group.slice.file_id, prev_commit=group.slice.base_instant)
                    for group in groups
                ),
            )
            for name, groups in self.groups.items()
        }
