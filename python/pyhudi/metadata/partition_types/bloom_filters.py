"""`bloom_filters`: a filter of the record keys in each base file (`BloomFiltersIndexer`, 1.2.0)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from pyhudi.config.metadata_names import BLOOM_FILTERS
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.initial_records import InitialPartition, Source
from pyhudi.metadata.partition_types.base import (
    Change,
    CleanChange,
    MetadataPartitionType,
    PartitionRequest,
)
from pyhudi.metadata.partition_types.file_stats import (
    DeletedFilesTask,
    FileStatsTask,
    columns_of,
    find_removed_files,
    new_task,
    tasks_for_all_files,
    tasks_for_commit,
    tasks_for_new_files,
)
from pyhudi.metadata.pruning_context import PruningContext, SliceLookup
from pyhudi.metadata.record_tasks import RecordTask
from pyhudi.metadata.slice_pruning import slices_in_filters
from pyhudi.slices.write_tasks import FileGroup


class BloomFilters(MetadataPartitionType):
    """The filters of all base files of completed commits, also of replaced files."""

    name = BLOOM_FILTERS
    needs_parquet = True
    index_type_name = BLOOM_FILTERS
    lookup_cost = 5

    def is_requested(self, request: PartitionRequest) -> bool:
        return request.options.bloom_filters

    def options_for_create_index(
        self, options: MetadataOptions, request: IndexRequest
    ) -> MetadataOptions:
        return replace(super().options_for_create_index(options, request), bloom_filters=True)

    def initial(self, source: Source, name: str) -> InitialPartition:
        groups = source.options.bloom_groups
        task = replace(new_task(source, {name: groups}), bloom_filters=True)
        return InitialPartition(name, groups, tasks_for_all_files(source, task, logs=False))

    def catch_up(
        self, before: Source, now: Source, name: str, groups: Sequence[FileGroup]
    ) -> Sequence[RecordTask]:
        """Return filters of the base files that were added, and remove those of deleted ones."""
        task = replace(new_task(now, {name: len(groups)}), bloom_filters=True)
        tasks: list[RecordTask] = [*tasks_for_new_files(before, now, task, logs=False)]
        removed = find_removed_files(before, now)
        if removed is not None:
            tasks.append(DeletedFilesTask(task.task_context, name, removed, filters=True))
        return tasks

    def on_commit(self, change: Change, name: str) -> Iterator[FileStatsTask]:
        """Return filters of the commit's files, unless the task of the statistics builds them."""
        columns = columns_of(change)
        if not columns.names:
            yield from tasks_for_commit(change, columns)

    def on_clean(self, cleaned: CleanChange, name: str) -> Iterator[DeletedFilesTask]:
        yield DeletedFilesTask(cleaned.task_context, name, cleaned.clean, filters=True)

    def lookups(self, context: PruningContext, name: str) -> Iterator[tuple[str, SliceLookup]]:
        if context.keys is not None and context.key_locations is None:
            yield name, partial(slices_in_filters, keys=context.keys)
