"""`partition_stats`: counts and bounds of columns in each partition (from Hudi 1.0 on).

Statistics of a partition are computed from those of all its files, as Hudi does if it has
statistics of files (`PartitionStatsIndexer`, Hudi 1.2.0): the new record is complete, and readers
forget the old one. If statistics have no types (index version 1), readers widen the old record by
those of the written files. A column without an old record gets bounds then, and so does one that
had another type, because bounds of two types cannot be compared (`mergeColumnStatsRecords`, Hudi
1.0.2). Bytes are compared as signed there, and unsigned in filters, so they are never widened.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.cached_property import cached_property
from pyhudi.config.file_names import file_name_of, parse_base_name
from pyhudi.config.metadata_names import COLUMN_STATS, PARTITION_STATS
from pyhudi.config.metadata_options import (
    COLUMN_STATS_ENABLE,
    PARTITION_STATS_ENABLE,
    MetadataOptions,
)
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.metadata.file_group_handle import FileGroupHandle, open_groups
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.initial_records import InitialPartition, Source
from pyhudi.metadata.min_max_pruning import exclude_by_stats
from pyhudi.metadata.partition_types.base import (
    Change,
    DisplayRecords,
    MetadataPartitionType,
    PartitionLookup,
    PartitionRequest,
    StatisticsColumn,
)
from pyhudi.metadata.partition_types.column_stats import ColumnStats
from pyhudi.metadata.partition_types.file_stats import (
    FileStatsTask,
    columns_of,
    statistics_task,
    tasks_for_commit,
    tight_tasks,
)
from pyhudi.metadata.pruning_context import PruningContext
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.record_tasks import RecordTask
from pyhudi.metadata.statistics_columns import has_partition_statistics
from pyhudi.schema.internal_schema import LATEST_SCHEMA
from pyhudi.schema.predicates import Conjunct
from pyhudi.schema.table_schema import earlier_schemas, field_at
from pyhudi.slices.bootstrap import skeletons
from pyhudi.slices.file_slice import BootstrapFile, FileSlice
from pyhudi.slices.file_slices import FileSlices
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.listing import FileSource
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat
from pyhudi.txn.conflicts import ROW_PRESERVING_OPERATIONS

_COLUMN_STATS = ColumnStats()


class PartitionStats(MetadataPartitionType):
    """The statistics of the newest slices, computed with those of files by the same tasks."""

    name = PARTITION_STATS
    needs_parquet = True
    index_type_name = PARTITION_STATS
    lookup_cost = 3
    needs = COLUMN_STATS
    is_dropped_with_needed = True
    needs_definitions = True
    depends_on_column_names = True

    def is_requested(self, request: PartitionRequest) -> bool:
        """Return whether the table has statistics of files, and a version and partitions for it."""
        if not _COLUMN_STATS.is_requested(request):
            if request.options.partition_stats:
                msg = f"{PARTITION_STATS_ENABLE} without {COLUMN_STATS_ENABLE}"
                raise ConfigError(msg, hint="Set both to true.")
            return False
        flag, config = request.options.partition_stats, request.config
        if flag and not config.version.has_index_definitions:
            msg = f"{PARTITION_STATS_ENABLE}: not in tables of version {config.version.code}"
            raise UnsupportedTableFeature(msg, hint="Leave it out, or upgrade the table first.")
        with_bounds = config.version.has_index_definitions and bool(config.partition_fields)
        return with_bounds and flag is not False

    def options_for_create_index(
        self, options: MetadataOptions, request: IndexRequest
    ) -> MetadataOptions:
        """Return the options with statistics of files, which it needs."""
        if request.columns:
            msg = f"{self.name} takes no columns: they are those of {COLUMN_STATS}"
            raise ConfigError(msg, hint="Leave them out.")
        options_for_create_index = super().options_for_create_index(options, request)
        return replace(options_for_create_index, column_stats=True, partition_stats=True)

    def initial(self, source: Source, name: str) -> InitialPartition:
        groups = source.options.partition_stats_groups
        task = _task(source, name, groups)
        sources = skeletons(source.slices)
        tasks = [
            replace(task, partition=path, files=tuple(slice_files.items()), sources=sources)
            for path, slice_files in _newest_files(source).items()
        ]
        return InitialPartition(name, groups, tasks)

    def catch_up(
        self, before: Source, now: Source, name: str, groups: Sequence[FileGroup]
    ) -> Sequence[RecordTask]:
        """Return current statistics of partitions in which files were added or deleted.

        Bounds that are not tight are widened by the added files instead, as commits do.
        """
        earlier, current = _newest_files(before), _newest_files(now)
        task = replace(_task(now, name, len(groups)), sources=skeletons(now.slices))
        tasks: list[RecordTask] = []
        for path, slice_files in current.items():
            old = earlier.get(path, {})
            new_files = {file: is_log for file, is_log in slice_files.items() if file not in old}
            for part in _split_unwidened(task) if slice_files != old else ():
                files = new_files if part.other_files is None else slice_files
                if files:
                    tasks.append(replace(part, partition=path, files=tuple(files.items())))
        return tasks

    def on_commit(self, change: Change, name: str) -> Iterator[RecordTask]:
        """Return statistics of the commit's partitions and of its files."""
        columns = columns_of(change)
        if not columns.names:
            return
        others = OtherFiles(
            change.data, change.metadata_reader, change.metadata, change.rows.listing
        )
        tight = []
        for template in tasks_for_commit(change, columns):
            task = replace(template, sources=others.sources(template.partition))
            if task.value_types:
                tight.append(replace(task, other_files=others.of(task.partition)))
                continue
            unwidened = others.columns_without_widening(task.partition, columns)
            yield replace(task, columns=_without_columns(unwidened, columns))
            if unwidened.names:
                task = replace(task, columns=unwidened, bloom_filters=False)
                tight.append(replace(task, other_files=others.of(task.partition)))
        written = sum(stat.file_size_in_bytes for stat in change.metadata.write_stats)
        yield from tight_tasks(tight, others.column_stats_groups, written)

    def partition_lookups(
        self, context: PruningContext, name: str
    ) -> Iterator[tuple[str, PartitionLookup]]:
        usable = (
            context.reads_current_snapshot and not context.has_custom_merge and context.conjuncts
        )
        if not (usable and context.remaining_conjuncts and _are_trusted(context)):
            return
        out_of_order = _out_of_order_partitions(context.table.timeline)
        for conjunct in context.remaining_conjuncts:
            if _is_trusted_for(conjunct, context):
                look = partial(_within_bounds, conjunct=conjunct, out_of_order=out_of_order)
                yield f"{name}({conjunct[0]})", look

    def to_display(
        self, table: MetadataTable, name: str, column: StatisticsColumn
    ) -> DisplayRecords:
        return _COLUMN_STATS.to_display(table, name, column)


def _task(source: Source, name: str, groups: int) -> FileStatsTask:
    """Return the task that reads the files of a partition, without files."""
    task = statistics_task(source, {COLUMN_STATS: 1, name: groups})
    return replace(task, partition_stats=True, other_files=() if task.value_types else None)


def _split_unwidened(task: FileStatsTask) -> Iterator[FileStatsTask]:
    """Return a separate task for columns whose bounds are never widened."""
    unwidened = binary_columns(task.columns)
    if task.value_types or not unwidened.names:
        yield task
        return
    yield replace(task, columns=_without_columns(unwidened, task.columns))
    yield replace(task, columns=unwidened, other_files=())


def _without_columns(excluded: pa.Schema, columns: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in columns if field.name not in excluded.names])


def _newest_files(source: Source) -> dict[str, dict[str, bool]]:
    """Return the files of the newest slices by partition, and whether each is a log file."""
    files: dict[str, dict[str, bool]] = {}
    for slice_ in source.slices:
        slice_files = files.setdefault(slice_.partition, {})
        slice_files.update({slice_.base.path: False} if slice_.base else {})
        slice_files.update({log.path: True for log in slice_.logs})
    return files


def _are_trusted(context: PruningContext) -> bool:
    """Return whether statistics of partitions can be trusted at all."""
    config = context.table.config
    # Hudi ignores the rows of skeleton files, whose own files do not have them.
    if config.bootstrap_path is not None:
        return False
    if not config.is_merge_on_read:
        return True
    # Hudi 1.0.2 ignores what waits for a compaction. An upgrade by Hudi keeps its records.
    return config.version.partition_statistics_hold and context.statistics_have_types


def _is_trusted_for(conjunct: Conjunct, context: PruningContext) -> bool:
    """Return whether the statistics of a column can be trusted."""
    column, _, values = conjunct
    if not (context.has_stable_names and context.has_statistics_of(column)):
        return False
    if not has_partition_statistics(column, context.definitions):
        return False
    # Hudi turns bounds of numbers into strings if a column became a string: 10 before 9.
    return not pa.types.is_string(values.type) or context.always_had_type(column, values.type)


def _out_of_order_partitions(timeline: Timeline) -> set[str]:
    """Return the partitions of writes that completed after one that was requested later.

    The record of the later request counts, and need not include the files of the other: Hudi's
    writers do not abort. Services change no row.
    """
    paths: set[str] = set()
    earliest_completion = None
    for commit in reversed(timeline.commits):
        completed = commit.completed or ""
        if earliest_completion is not None and completed >= earliest_completion:
            metadata = timeline.commit_metadata(commit)
            if metadata.operation_type not in ROW_PRESERVING_OPERATIONS:
                paths.update(metadata.partition_to_write_stats)
        earliest_completion = min(completed, earliest_completion or completed)
    return paths


def _within_bounds(
    table: MetadataTable, *, paths: Sequence[str], conjunct: Conjunct, out_of_order: Collection[str]
) -> list[bool] | None:
    column, _, values = conjunct
    index = table.partition(PARTITION_STATS)
    stats = index.stats(column, values.type, pa.array(paths, pa.string()))
    out = exclude_by_stats(stats, conjunct).to_pylist()
    return [path in out_of_order or not removed for path, removed in zip(paths, out, strict=True)]


# --- files that a commit does not change ----------------------------------------------------------


class OtherFiles:
    """The other files of the table when a commit is about to complete."""

    def __init__(
        self,
        data: TableSnapshot,
        metadata_table: MetadataTable,
        metadata: CommitMetadata,
        listing: FileSource,
    ) -> None:
        """`data`, `metadata_table`: current. `metadata`: of the commit.

        listing: has the files of the data table.
        """
        self._data = data
        self._metadata_table = metadata_table
        self._metadata = metadata
        self._listing = listing
        self._without_stats: dict[str, set[str]] = {}

    def of(self, partition: str) -> tuple[tuple[str, bool], ...]:
        """Return paths of a partition's files, and whether each is a log file."""
        changed = self._groups_to_leave_out(partition)
        files = [
            file
            for file_id, paths in self._merged_files.get(partition, ())
            if file_id not in changed
            for file in paths
        ]
        files += (
            file
            for slice_ in self._slices_after_compaction(partition)
            for file in _files_of_slice(slice_)
        )
        return tuple(files)

    def sources(self, partition: str) -> dict[str, BootstrapFile]:
        """Return the location of the source rows of each skeleton file, by path."""
        if not self._data.config.bootstrap_path:
            return {}
        changed = self._groups_to_leave_out(partition)
        slices = self._merged_slices.get(partition, ())
        return skeletons(slice_ for slice_ in slices if slice_.file_id not in changed)

    @cached_property
    def column_stats_groups(self) -> tuple[FileGroupHandle, ...]:
        """The file groups of `column_stats` before the commit."""
        return tuple(self._metadata_table.file_groups(COLUMN_STATS))

    def columns_without_widening(self, partition: str, columns: pa.Schema) -> pa.Schema:
        """Return columns of bytes, and those that are new in a partition."""
        new_columns = self._new_columns(partition, columns).names
        unwidened = set(binary_columns(columns).names)
        return pa.schema([field for field in columns if field.name in unwidened.union(new_columns)])

    def _new_columns(self, partition: str, columns: pa.Schema) -> pa.Schema:
        """Return columns without statistics in a partition with other files, or of another type."""
        widened = [field for field in columns if self._had_other_type(field)]
        may_be_new = self._has_altered_schema or partition in self._partitions_without_stats(
            columns.field(-1)
        )
        new_columns = [
            f
            for f in (columns if may_be_new else widened)
            if partition in self._partitions_without_stats(f)
        ]
        is_alone = not (new_columns and self.of(partition))
        return pa.schema(
            [field for field in new_columns if field in widened] if is_alone else new_columns
        )

    @cached_property
    def _has_altered_schema(self) -> bool:
        """Return whether a new column may be elsewhere than in the last position."""
        return LATEST_SCHEMA in self._metadata.extra_metadata

    def _partitions_without_stats(self, field: pa.Field[Any]) -> set[str]:
        """Return the partitions of the commit without statistics of a column's current type."""
        if field.name not in self._without_stats:
            paths = pa.array([*self._metadata.partition_to_write_stats], pa.string())
            stats = self._partition_stats.stats(field.name, field.type, paths)
            missing = pc.is_null(stats.column("value_count"))
            if self._had_other_type(field):
                missing = pc.or_(missing, self._may_have_other_type(field, paths, stats))
            self._without_stats[field.name] = set(paths.filter(missing).to_pylist())
        return self._without_stats[field.name]

    def _may_have_other_type(
        self, field: pa.Field[Any], paths: pa.StringArray, stats: pa.RecordBatch
    ) -> pa.BooleanArray:
        """Return whether bounds may be of another type. Those of an int become long too."""
        if pa.types.is_int64(field.type):
            return pc.is_valid(
                self._partition_stats.stats(field.name, pa.int32(), paths).column("min")
            )
        return pc.and_not(pc.is_null(stats.column("min")), stats.column("only_nulls"))

    def _had_other_type(self, field: pa.Field[Any]) -> bool:
        """Return whether a column had another type, which an older partition may have kept."""
        had = (field_at(schema, field.name) for schema in self._earlier)
        return any(earlier is not None and earlier.type != field.type for earlier in had)

    @cached_property
    def _earlier(self) -> list[pa.Schema]:
        return earlier_schemas(self._data.config, self._data.timeline)

    @cached_property
    def _partition_stats(self) -> _native.MetadataPartition:
        return open_groups(self._metadata_table.file_groups(PARTITION_STATS))

    def _groups_to_leave_out(self, partition: str) -> set[str]:
        """Return file groups that are replaced or rewritten. A log file rewrites nothing."""
        replaced = self._metadata.partition_to_replace_file_ids or {}
        return {*replaced.get(partition, ()), *self._new_base_instants(partition)}

    def _new_base_instants(self, partition: str) -> dict[str, str]:
        return dict(_new_bases(self._metadata.partition_to_write_stats.get(partition, ())))

    def _slices_after_compaction(self, partition: str) -> Iterator[FileSlice]:
        """Return what was appended to rewritten groups since their compaction was scheduled."""
        rewritten = self._new_base_instants(partition)
        for slice_ in self._unmerged.get(partition, ()) if rewritten else ():
            if slice_.base is None and rewritten.get(slice_.file_id) == slice_.base_instant:
                yield slice_

    @cached_property
    def _merged_files(self) -> dict[str, list[tuple[str, list[tuple[str, bool]]]]]:
        """The file id and the files of each slice, by partition."""
        files: dict[str, list[tuple[str, list[tuple[str, bool]]]]] = {}
        for partition, file_id, paths in self._merged.file_paths():
            files.setdefault(partition, []).append((file_id, paths))
        return files

    @cached_property
    def _merged(self) -> FileSlices:
        return self._view.slices()

    @cached_property
    def _merged_slices(self) -> dict[str, list[FileSlice]]:
        return _by_partition(self._merged)

    @cached_property
    def _unmerged(self) -> dict[str, list[FileSlice]]:
        return _by_partition(self._view.iter_newest_slices())

    @cached_property
    def _view(self) -> FileSystemView:
        """One view for all partitions of the commit: a view reads plans and replace commits."""
        data, partitions = self._data, self._metadata.partition_to_write_stats
        return FileSystemView(
            data.storage, data.config, data.timeline, set(partitions), self._listing
        )


def binary_columns(columns: pa.Schema) -> pa.Schema:
    """Return the columns of bytes."""
    return pa.schema([field for field in columns if pa.types.is_binary(field.type)])


def _new_bases(stats: Iterable[WriteStat]) -> Iterator[tuple[str, str]]:
    """Return file groups with a new base file, and its instant."""
    for stat in stats:
        name = file_name_of(stat.path)
        base = None if name.startswith(".") else parse_base_name(name)
        if base is not None:
            yield base.file_id, base.instant


def _by_partition(slices: Iterable[FileSlice]) -> dict[str, list[FileSlice]]:
    by_partition: dict[str, list[FileSlice]] = {}
    for slice_ in slices:
        by_partition.setdefault(slice_.partition, []).append(slice_)
    return by_partition


def _files_of_slice(slice_: FileSlice) -> Iterator[tuple[str, bool]]:
    if slice_.base is not None:
        yield slice_.base.path, False
    yield from ((log.path, True) for log in slice_.logs)
