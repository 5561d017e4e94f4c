"""`column_stats`: counts and bounds of columns in each file (`ColumnStatsIndexer`, Hudi 1.2.0)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from pyhudi.config.metadata_names import COLUMN_STATS, PARTITION_STATS
from pyhudi.config.metadata_options import STATS_COLUMNS, MetadataOptions
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.metadata.index_definitions import Definitions, new_definition
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.initial_records import InitialPartition, Source
from pyhudi.metadata.partition_types.base import (
    Change,
    CleanChange,
    DefinitionContext,
    DisplayRecords,
    MetadataPartitionType,
    PartitionRequest,
    StatisticsColumn,
)
from pyhudi.metadata.partition_types.file_stats import (
    DeletedFilesTask,
    FileStatsTask,
    columns_of,
    find_removed_files,
    statistics_task,
    tasks_for_all_files,
    tasks_for_commit,
    tasks_for_new_files,
)
from pyhudi.metadata.pruning_context import PruningContext, SliceLookup
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.record_tasks import RecordTask
from pyhudi.metadata.slice_pruning import slices_within_bounds
from pyhudi.metadata.statistics_columns import (
    check_defined,
    check_nested,
    column_selection_properties,
    columns_of_any_definition,
    has_bounds,
    new_statistics_columns,
    statistics_columns,
)
from pyhudi.slices.write_tasks import FileGroup


class ColumnStats(MetadataPartitionType):
    """The statistics of all files of completed commits, also of replaced files."""

    name = COLUMN_STATS
    needs_parquet = True
    index_type_name = COLUMN_STATS
    lookup_cost = 3

    def is_requested(self, request: PartitionRequest) -> bool:
        """Return whether the option requests it; by default, what the version's release does."""
        stats = request.options.column_stats
        if stats is None:
            stats = request.config.version.column_stats_by_default and not self.check_base_files(
                request.config
            )
        if not stats:
            return False
        if request.options.stats_columns and not request.config.version.has_index_definitions:
            msg = (
                f"{STATS_COLUMNS}: tables of version {request.config.version.code} do not store it"
            )
            raise UnsupportedTableFeature(
                msg, hint=f"Leave {STATS_COLUMNS} out: every column gets statistics."
            )
        check_nested(request.config, request.options.stats_columns)
        return True

    def options_for_create_index(
        self, options: MetadataOptions, request: IndexRequest
    ) -> MetadataOptions:
        """Return the options with statistics of partitions, unless they disable those."""
        return replace(
            super().options_for_create_index(options, replace(request, columns=())),
            column_stats=True,
            partition_stats=options.partition_stats,
            stats_columns=request.columns or options.stats_columns,
        )

    def definition(self, request: PartitionRequest) -> Definitions:
        columns, version = request.options.stats_columns, request.config.version
        if request.schema is not None:
            typed = version.index_versions
            columns = new_statistics_columns(request.schema, request.options, typed=typed)
        if not version.has_index_definitions:
            return {}
        options = column_selection_properties(request.options)
        return new_definition(request.config, self.name, self.name, self.name, columns, options)

    def find_unsupported(self, name: str, table: DefinitionContext) -> str | None:
        check_defined(table.config, table.definitions)
        definition = table.definitions.get(name)
        if definition is None:
            missing = table.config.version.has_index_definitions
            return "the index definitions do not contain it" if missing else None
        for field in statistics_columns(table.definitions, table.schema):
            if not has_bounds(field.type, typed=definition.version > 1):
                return f"it is of {field.name}, which is {field.type}"
        return None

    def initial(self, source: Source, name: str) -> InitialPartition:
        groups = source.options.column_stats_groups
        task = statistics_task(source, {name: groups})
        return InitialPartition(
            name, groups, tasks_for_all_files(source, task, logs=_of_logs(source))
        )

    def catch_up(
        self, before: Source, now: Source, name: str, groups: Sequence[FileGroup]
    ) -> Sequence[RecordTask]:
        """Return statistics of the files that were added, and remove those of deleted ones."""
        task = statistics_task(now, {name: len(groups)})
        tasks: list[RecordTask] = [*tasks_for_new_files(before, now, task, logs=_of_logs(now))]
        removed = find_removed_files(before, now)
        if removed is not None:
            tasks.append(
                DeletedFilesTask(task.task_context, name, removed, tuple(task.columns.names))
            )
        return tasks

    def on_commit(self, change: Change, name: str) -> Iterator[FileStatsTask]:
        """Return statistics of the commit's files, unless partition statistics include them."""
        columns = columns_of(change)
        if columns.names and PARTITION_STATS not in change.groups:
            yield from tasks_for_commit(change, columns)

    def on_clean(self, cleaned: CleanChange, name: str) -> Iterator[DeletedFilesTask]:
        columns = columns_of_any_definition(cleaned.definitions, cleaned.data.columns)
        yield DeletedFilesTask(cleaned.task_context, name, cleaned.clean, columns)

    def lookups(self, context: PruningContext, name: str) -> Iterator[tuple[str, SliceLookup]]:
        for conjunct in context.remaining_conjuncts:
            if context.has_stable_names and context.has_statistics_of(conjunct[0]):
                look = partial(slices_within_bounds, conjunct=conjunct)
                yield f"{name}({conjunct[0]})", context.without_custom_merges(look)

    def to_display(
        self, table: MetadataTable, name: str, column: StatisticsColumn
    ) -> DisplayRecords:
        if column is None:
            return None
        return table.partition(name).all_stats(column.name, column.type)


def _of_logs(source: Source) -> bool:
    """Return whether log files have statistics: not if they can have blocks of failed commits."""
    return not source.table.config.version.blocks_need_commit_check
