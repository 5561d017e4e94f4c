"""Keeping the metadata table in step: every commit and rollback of the data table is one here.

A commit's records go into a delta commit of the same instant, which is complete before the data
table's commit is. A crash between the two leaves a delta commit that readers do not count, and
that the rollback of the commit takes back. What is recorded is found in the commit's metadata and
its files (`records.py`). Order of steps: `HoodieBackedTableMetadataWriter` (Hudi 0.15.0 and 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import pyarrow as pa

from pyhudi import _native
from pyhudi.config.actions import DELTA_COMMIT
from pyhudi.config.metadata_names import (
    ALL_PARTITIONS,
    BLOOM_FILTERS,
    FILES,
    NO_PATH,
    PARTITION_STATS,
    RECORD_INDEX,
)
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Engine
from pyhudi.metadata import expression, partitioned, secondary
from pyhudi.metadata.changed_slices import SliceRows
from pyhudi.metadata.checks_before_write import check_replaceable, record_schema, statistics_columns
from pyhudi.metadata.definitions import COLUMN_STATS, IndexDefinition, index_definitions
from pyhudi.metadata.locations import is_log_path, location_tasks
from pyhudi.metadata.records import RECORD_ROWS, FactsTask, FileTask, Recording, RecordTask
from pyhudi.metadata.records import derive as derive_rows
from pyhudi.metadata.removed_files import removed_files
from pyhudi.metadata.services import run_services
from pyhudi.metadata.start_group import store_start_log
from pyhudi.metadata.table_writer import (
    GroupsByPartition,
    complete_delta_commit,
    delta_commit,
    groups_by_partition,
    observe,
    open_metadata_table,
    roll_back_delta_commit,
)
from pyhudi.metadata.unchanged_files import RestOfPartitions
from pyhudi.metadata.write_group import GroupTarget, write_group
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.storage.storage import Storage
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat
from pyhudi.txn.open_instant import OpenInstant
from pyhudi.txn.table import Commit, Companion, Rollback, Table

OPERATION = "UPSERT_PREPPED"
STAGE = 2
"""Of the engine call that writes the log files."""

_SAME_ROWS = frozenset({"COMPACT", "CLUSTER"})
"""Operations that change files and no values."""

Entries = tuple[tuple[str, str, int, bool], ...]


class MetadataCompanion(Companion):
    """Keeps a table's metadata table in step; does nothing for a table without one."""

    def before_complete(self, table: Table, commit: Commit) -> Mapping[str, str]:
        """Writes the delta commit, and counts the keys that the record index gets."""
        if FILES not in table.config.metadata_partitions:
            return {}
        metadata, avro = commit.metadata, commit.schema.avro
        if metadata.partition_to_replace_file_ids:
            check_replaceable(table.config)
        own = open_metadata_table(table)
        delta = DeltaCommit(table, own, commit.instant, by_record_index=commit.by_record_index)
        schema = _native.arrow_schema(_native.with_meta_fields(avro))
        rows = SliceRows(table, commit.instant, metadata, schema, avro)
        tasks = [*delta.tasks(metadata, schema, rows), *delta.expression_tasks(rows)]
        if metadata.operation_type not in _SAME_ROWS:
            tasks += delta.secondary_tasks(rows)
        stats = delta.write(table.engine, tasks)
        commit.keys_indexed = sum(
            stat.num_writes for stat in stats if stat.partition_path == RECORD_INDEX
        )
        return {}

    def on_rollback(self, table: Table, rollback: Rollback) -> None:
        """Takes the delta commit back.

        Up to table version 6 the log files that the rollback and the failed write left are recorded
        first.
        """
        if FILES not in table.config.metadata_partitions:
            return
        own, time = open_metadata_table(table), rollback.time
        if table.config.version.rollback_appends_command:
            _record_left_logs(table, own, rollback)
            own, time = own.reloaded(), f"{time}006"
        roll_back_delta_commit(own, rollback.target, time)

    def on_removal(self, table: Table, instant: str) -> None:
        """Takes the delta commit back."""
        if FILES not in table.config.metadata_partitions:
            return
        own = open_metadata_table(table)
        if delta_commit(own, instant) is not None:
            observe(own)
            roll_back_delta_commit(own, instant, own.generator.next())

    def after_complete(self, table: Table) -> None:
        """Runs the metadata table's own services."""
        run_services(table)


def _record_left_logs(data: Table, own: Table, rollback: Rollback) -> None:
    time = rollback.time
    known = delta_commit(own, time)
    if known is not None and known.is_completed:
        return
    if known is not None:
        roll_back_delta_commit(own, time, f"{time}006")
        own = own.reloaded()
    entries = tuple(_left_logs(data.storage, rollback.record["partitionMetadata"]))
    delta = DeltaCommit(data, own, time)
    tasks = [FileTask(delta.recording, entries)] if entries else []
    # A handful of names.
    delta.write(LocalEngine(), tasks)


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


class DeltaCommit:
    """One delta commit of the metadata table."""

    def __init__(
        self,
        data: Table,
        own: Table,
        instant: str,
        *,
        by_record_index: bool = False,
    ) -> None:
        self._data = data
        self._by_record_index = by_record_index
        self._own = own
        self._instant = instant
        self._partitions: tuple[str, ...] = data.config.metadata_partitions
        self._groups: GroupsByPartition = groups_by_partition(own, self._partitions)
        self._new_groups: list[FileGroup] = []
        self._schema = record_schema(data.config.version.metadata_schema)
        self.recording = self._recording()

    def _recording(self) -> Recording:
        data = self._data
        by_partition = partitioned.is_partitioned(data.storage, data.config)
        return Recording(
            data.storage,
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

    def tasks(
        self, metadata: CommitMetadata, schema: pa.Schema, rows: SliceRows
    ) -> list[RecordTask]:
        """What every commit changes. schema: the table's, with meta fields."""
        self._add_groups(metadata)
        removed = removed_files(self._own, self._groups[FILES], metadata)
        entries = (*file_entries(metadata), *removed)
        tasks: list[RecordTask] = [FileTask(self.recording, entries)]
        tasks += self._facts(metadata, schema)
        if RECORD_INDEX in self._partitions:
            tasks += location_tasks(
                self._data,
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
        return index_definitions(self._data.storage, self._data.config)

    def expression_tasks(self, rows: SliceRows) -> Iterator[RecordTask]:
        """What files add to expression indexes."""
        indexes = expression.maintained(self._definitions, self._partitions)
        return expression.expression_tasks(self.recording, indexes, rows, self._instant)

    def secondary_tasks(self, rows: SliceRows) -> Iterator[RecordTask]:
        """What changed values change in secondary indexes."""
        indexes = secondary.maintained(self._definitions, self._partitions)
        return secondary.secondary_tasks(self.recording, indexes, rows)

    def _facts(self, metadata: CommitMetadata, schema: pa.Schema) -> Iterator[RecordTask]:
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
            rest = RestOfPartitions(self._data, metadata)
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

    def write(self, engine: Engine, tasks: Sequence[RecordTask]) -> list[WriteStat]:
        """Begins the delta commit, writes what the tasks give, and completes it.

        Gives what was written.
        """
        own, version = self._own, self._own.config.version
        delta = OpenInstant(own, self._instant, DELTA_COMMIT)
        delta.request()
        profile = CommitMetadata(self._profile(), operation_type=OPERATION)
        delta.begin(profile.encode_inflight(version, own.clock))
        rows = engine.scan(derive_rows, tasks, RECORD_ROWS, label="find metadata records")
        target = GroupTarget(own.storage, version, self._instant, self._schema, self._groups)
        for group in self._new_groups:
            store_start_log(target, group.slice.logs[0].path)
        stats = engine.exchange(
            rows, "route", partial(write_group, target), stage=STAGE, label="write metadata"
        )
        complete_delta_commit(delta, OPERATION, stats)
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
