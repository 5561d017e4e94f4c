"""Keeping the metadata table in step: every commit and rollback of the data table is one here.

A commit's records go into a delta commit of the same instant, which is complete before the data
table's commit is. A crash between the two leaves a delta commit that readers do not count, and
that the rollback of the commit takes back. What is recorded is found in the commit's metadata and
its files (`derive.py`). Order of steps: `HoodieBackedTableMetadataWriter` (Hudi 0.15.0 and 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi import _native
from pyhudi.metadata import expression, partitioned, secondary
from pyhudi.metadata.definitions import COLUMN_STATS, IndexDefinition, index_definitions
from pyhudi.metadata.derive import RECORD_ROWS, FactsTask, FileTask, Recording, Task
from pyhudi.metadata.derive import derive as derive_rows
from pyhudi.metadata.files_left import RestOfPartitions
from pyhudi.metadata.locations import is_log_path, location_tasks
from pyhudi.metadata.own import GroupsByPartition, OwnTable, roll_back_delta_commit
from pyhudi.metadata.removed_files import removed_files
from pyhudi.metadata.slice_rows import SliceRows
from pyhudi.metadata.start_group import store_start_log
from pyhudi.metadata.support import check_replaceable, record_schema, statistics_columns
from pyhudi.metadata.table import (
    ALL_PARTITIONS,
    BLOOM_FILTERS,
    FILES,
    NO_PATH,
    PARTITION_STATS,
    RECORD_INDEX,
)
from pyhudi.metadata.write_group import GroupTarget, write_group
from pyhudi.timeline.instants import DELTA_COMMIT
from pyhudi.timeline.metadata import SCHEMA_KEY, CommitMetadata, WriteStat

if TYPE_CHECKING:
    from pyhudi.engine.protocol import Engine
    from pyhudi.plan.write import FileGroup
    from pyhudi.storage import Storage
    from pyhudi.txn.rollback import RollbackContext

OPERATION = "UPSERT_PREPPED"
STAGE = 2
"""Of the engine call that writes the log files."""

_SAME_ROWS = frozenset({"COMPACT", "CLUSTER"})
"""Operations that change files and no values."""

Entries = tuple[tuple[str, str, int, bool], ...]


def record_commit(
    context: RollbackContext,
    engine: Engine,
    instant: str,
    metadata: CommitMetadata,
    avro_schema: str,
    *,
    by_record_index: bool = False,
) -> int:
    """Brings the metadata table up to a commit that is about to complete.

    avro_schema: of the table, without meta fields. by_record_index: the commit's updates are of
    keys that the record index had. Gives the number of keys that the record index got.
    """
    if FILES not in context.config.metadata_partitions:
        return 0
    if metadata.partition_to_replace_file_ids:
        check_replaceable(context.config)
    own = OwnTable.open(context.storage)
    commit = _Commit(context, own, instant, by_record_index=by_record_index)
    schema = _native.arrow_schema(_native.with_meta_fields(avro_schema))
    rows = SliceRows(context, instant, metadata, schema, avro_schema)
    tasks = [*commit.tasks(metadata, schema, rows), *commit.expression_tasks(rows)]
    if metadata.operation_type not in _SAME_ROWS:
        tasks += commit.secondary_tasks(rows)
    stats = commit.write(engine, tasks)
    return sum(stat.num_writes for stat in stats if stat.partition_path == RECORD_INDEX)


def record_rollback(
    context: RollbackContext, time: str, target: str, record: Mapping[str, Any]
) -> None:
    """Takes back what the metadata table knows of a write that was rolled back.

    time: the rollback's instant. record: its `HoodieRollbackMetadata`. Up to table version 6 the
    log files that the rollback and the failed write left are recorded first.
    """
    if FILES not in context.config.metadata_partitions:
        return
    own = OwnTable.open(context.storage)
    if context.config.version.rollback_appends_command:
        _record_left_logs(context, own, time, record)
        own, time = own.reloaded(), f"{time}006"
    roll_back_delta_commit(own, context, target, time)


def forget_commit(context: RollbackContext, instant: str) -> None:
    """Takes back the delta commit of a write that the table's timeline has no more."""
    if FILES not in context.config.metadata_partitions:
        return
    own = OwnTable.open(context.storage)
    if own.find(instant) is not None:
        own.observe(context.generator)
        roll_back_delta_commit(own, context, instant, context.generator.next())


def _record_left_logs(
    context: RollbackContext, own: OwnTable, time: str, record: Mapping[str, Any]
) -> None:
    from pyhudi.engine.local import LocalEngine  # noqa: PLC0415 - for a handful of names

    known = own.find(time)
    if known is not None and known.is_completed:
        return
    if known is not None:
        roll_back_delta_commit(own, context, time, f"{time}006")
        own = own.reloaded()
    entries = tuple(_left_logs(context.storage, record["partitionMetadata"]))
    commit = _Commit(context, own, time)
    tasks = [FileTask(commit.recording, entries)] if entries else []
    commit.write(LocalEngine(), tasks)


def _left_logs(
    storage: Storage, partitions: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str, int, bool]]:
    """Log files with called-off blocks, and those that call them off."""
    for path, part in partitions.items():
        paths = {*part["rollbackLogFiles"], *part["logFilesFromFailedCommit"]}
        for name in sorted(one.rsplit("/", 1)[-1] for one in paths):
            found = storage.head(f"{path}/{name}" if path else name)
            if found is not None:
                yield (path or NO_PATH, name, found.size, False)


class _Commit:
    """One delta commit of the metadata table."""

    def __init__(
        self,
        context: RollbackContext,
        own: OwnTable,
        instant: str,
        *,
        by_record_index: bool = False,
    ) -> None:
        self._context = context
        self._by_record_index = by_record_index
        self._own = own
        self._instant = instant
        self._partitions: tuple[str, ...] = context.config.metadata_partitions
        self._groups: GroupsByPartition = own.groups(self._partitions)
        self._new_groups: list[FileGroup] = []
        self._schema = record_schema(context.config.version.metadata_schema)
        self.recording = self._recording()

    def _recording(self) -> Recording:
        context = self._context
        by_partition = partitioned.is_partitioned(context.storage, context.config)
        return Recording(
            context.storage,
            self._schema,
            {name: len(groups) for name, groups in self._groups.items()},
            partitioned.ranges(self._groups[RECORD_INDEX]) if by_partition else None,
        )

    def _add_groups(self, metadata: CommitMetadata) -> None:
        """File groups for data partitions that a record index by data partition does not know."""
        known = self.recording.index_ranges
        if known is None:
            return
        paths = [path for path, stats in metadata.partition_to_write_stats.items() if stats]
        self._new_groups = partitioned.new_groups(known, paths, self._instant)
        groups = [*self._groups[RECORD_INDEX], *self._new_groups]
        self._groups[RECORD_INDEX] = sorted(groups, key=lambda group: group.slice.file_id)
        self.recording = self._recording()

    def tasks(self, metadata: CommitMetadata, schema: pa.Schema, rows: SliceRows) -> list[Task]:
        """What every commit changes. schema: the table's, with meta fields."""
        self._add_groups(metadata)
        removed = removed_files(self._own, self._groups[FILES], metadata)
        entries = (*file_entries(metadata), *removed)
        tasks: list[Task] = [FileTask(self.recording, entries)]
        tasks += self._facts(metadata, schema)
        if RECORD_INDEX in self._partitions:
            tasks += location_tasks(
                self._context,
                self.recording,
                self._instant,
                metadata,
                schema,
                rows,
                every_log=not self._by_record_index,
            )
        return tasks

    @cached_property
    def _definitions(self) -> Mapping[str, IndexDefinition]:
        return index_definitions(self._context.storage, self._context.config)

    def expression_tasks(self, rows: SliceRows) -> Iterator[Task]:
        """What files add to expression indexes."""
        indexes = expression.maintained(self._definitions, self._partitions)
        return expression.expression_tasks(self.recording, indexes, rows, self._instant)

    def secondary_tasks(self, rows: SliceRows) -> Iterator[Task]:
        """What changed values change in secondary indexes."""
        indexes = secondary.maintained(self._definitions, self._partitions)
        return secondary.secondary_tasks(self.recording, indexes, rows)

    def _facts(self, metadata: CommitMetadata, schema: pa.Schema) -> Iterator[Task]:
        columns, value_types = pa.schema([]), False
        if COLUMN_STATS in self._partitions:
            columns = statistics_columns(self._definitions, schema)
            known = self._definitions.get(COLUMN_STATS)
            value_types = known is not None and known.version > 1
        blooms = BLOOM_FILTERS in self._partitions
        if not blooms and not columns.names:
            return
        rest = None
        if columns.names and PARTITION_STATS in self._partitions:
            rest = RestOfPartitions(self._context, metadata)
        for partition, stats in metadata.partition_to_write_stats.items():
            task = FactsTask(
                self.recording,
                partition,
                tuple((stat.path, is_log(stat)) for stat in stats if stat.path),
                columns=columns,
                value_types=value_types,
                partition_stats=rest is not None,
                bloom_filters=blooms,
                instant=self._instant,
            )
            if rest is not None and value_types:
                yield replace(task, rest=rest.of(partition), known=rest.known)
                continue
            late = pa.schema([]) if rest is None else rest.late_columns(partition, columns)
            early = pa.schema([field for field in columns if field.name not in late.names])
            yield replace(task, columns=early)
            if rest is not None and late.names:
                yield replace(task, columns=late, bloom_filters=False, rest=rest.of(partition))

    def write(self, engine: Engine, tasks: Sequence[Task]) -> list[WriteStat]:
        """Begins the delta commit, writes what the tasks give, and completes it.

        Gives what was written.
        """
        own, context = self._own, self._context
        version, layout = own.config.version, own.config.layout
        layout.request(own.storage, self._instant, DELTA_COMMIT)
        profile = CommitMetadata(self._profile(), operation_type=OPERATION)
        data = profile.encode_inflight(version, context.clock)
        layout.inflight(own.storage, self._instant, DELTA_COMMIT, data)
        rows = engine.scan(derive_rows, tasks, RECORD_ROWS, label="find metadata records")
        target = GroupTarget(own.storage, version, self._instant, self._schema, self._groups)
        for group in self._new_groups:
            store_start_log(target, group.slice.logs[0].path)
        stats = engine.exchange(
            rows, "route", partial(write_group, target), stage=STAGE, label="write metadata"
        )
        metadata = CommitMetadata(
            _by_partition(stats),
            extra_metadata={SCHEMA_KEY: _native.without_meta_fields(self._schema)},
            operation_type=OPERATION,
        )
        data = metadata.encode(version, DELTA_COMMIT, context.clock)
        own.observe(context.generator)
        layout.complete(own.storage, self._instant, DELTA_COMMIT, context.generator.next(), data)
        return stats

    def _profile(self) -> dict[str, tuple[WriteStat, ...]]:
        """Every slice that may be appended to: a rollback by listing goes by it."""
        return {
            name: (
                WriteStat(),
                *(
                    WriteStat(file_id=one.slice.file_id, prev_commit=one.slice.base_instant)
                    for one in groups
                ),
            )
            for name, groups in self._groups.items()
        }


def file_entries(metadata: CommitMetadata) -> Iterator[tuple[str, str, int, bool]]:
    """What a commit adds to `files`: each touched partition and each written file."""
    for partition, stats in metadata.partition_to_write_stats.items():
        key = partition or NO_PATH
        yield (ALL_PARTITIONS, key, 0, False)
        for stat in stats:
            if stat.path:
                yield (key, _name(stat.path), stat.file_size_in_bytes, False)
            for path, size in (stat.cdc_stats or {}).items():
                yield (key, _name(path), size, False)


def is_log(stat: WriteStat) -> bool:
    """Whether a file is a log file."""
    return is_log_path(stat.path)


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _by_partition(stats: Iterable[WriteStat]) -> dict[str, tuple[WriteStat, ...]]:
    found: dict[str, tuple[WriteStat, ...]] = {}
    for stat in stats:
        partition = stat.partition_path or ""
        found[partition] = (*found.get(partition, ()), stat)
    return found
