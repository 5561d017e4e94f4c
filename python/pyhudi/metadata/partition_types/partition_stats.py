"""`partition_stats`: counts and bounds of columns in each partition (from Hudi 1.0 on)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from pyhudi.config.metadata_names import COLUMN_STATS, PARTITION_STATS
from pyhudi.config.metadata_options import (
    COLUMN_STATS_ENABLE,
    PARTITION_STATS_ENABLE,
    MetadataOptions,
)
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.initial_records import InitialPartition, Source
from pyhudi.metadata.min_max_pruning import exclude_by_stats
from pyhudi.metadata.partition_types.base import (
    Change,
    Column,
    MetadataPartitionType,
    PartitionLook,
    PartitionRequest,
    Shown,
)
from pyhudi.metadata.partition_types.column_stats import ColumnStats
from pyhudi.metadata.partition_types.file_stats import (
    FactsTask,
    columns_of,
    statistics_task,
    tasks_for_commit,
    tight_tasks,
)
from pyhudi.metadata.pruning_context import PruningContext
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.record_tasks import RecordTask
from pyhudi.metadata.unchanged_files import RestOfPartitions, bytes_of
from pyhudi.schema.predicates import Conjunct
from pyhudi.slices.bootstrap import skeletons
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.timeline import Timeline
from pyhudi.txn.conflicts import ROW_PRESERVING_OPERATIONS

_OF_FILES = ColumnStats()


class PartitionStats(MetadataPartitionType):
    """The statistics of the newest slices, computed from those of files by the same tasks."""

    name = PARTITION_STATS
    of_parquet = True
    asked_as = PARTITION_STATS
    lookup_cost = 3
    needs = COLUMN_STATS
    goes_along = True
    needs_definitions = True
    by_column_names = True

    def is_wanted(self, wish: PartitionRequest) -> bool:
        """If there are statistics of files, and the table's version and partitions allow it."""
        if not _OF_FILES.is_wanted(wish):
            if wish.options.partition_stats:
                msg = f"{PARTITION_STATS_ENABLE} without {COLUMN_STATS_ENABLE}"
                raise ConfigError(msg, hint="Turn both on.")
            return False
        asked, config = wish.options.partition_stats, wish.config
        if asked and not config.version.has_index_definitions:
            msg = f"{PARTITION_STATS_ENABLE}: not in tables of version {config.version.code}"
            raise UnsupportedTableFeature(msg, hint="Leave it out, or upgrade the table first.")
        able = config.version.has_index_definitions and bool(config.partition_fields)
        return able and asked is not False

    def options_for_create_index(
        self, options: MetadataOptions, asked: IndexRequest
    ) -> MetadataOptions:
        """With those of files, if the table has none."""
        if asked.columns:
            msg = f"{self.name} takes no columns: they are those of {COLUMN_STATS}"
            raise ConfigError(msg, hint="Leave them out.")
        options_for_create_index = super().options_for_create_index(options, asked)
        return replace(options_for_create_index, column_stats=True, partition_stats=True)

    def initial(self, source: Source, name: str) -> InitialPartition:
        groups = source.options.partition_stats_groups
        task = _task(source, name, groups)
        sources = skeletons(source.slices)
        tasks = [
            replace(task, partition=path, files=tuple(here.items()), sources=sources)
            for path, here in _files(source).items()
        ]
        return InitialPartition(name, groups, tasks)

    def catch_up(
        self, before: Source, now: Source, name: str, groups: Sequence[FileGroup]
    ) -> Sequence[RecordTask]:
        """Return current statistics of partitions in which files were added or deleted.

        Bounds that are not tight are widened by the added files instead, as commits do.
        """
        known, found = _files(before), _files(now)
        task = replace(_task(now, name, len(groups)), sources=skeletons(now.slices))
        tasks: list[RecordTask] = []
        for path, here in found.items():
            old = known.get(path, {})
            came = {file: is_log for file, is_log in here.items() if file not in old}
            for part in _by_widening(task) if here != old else ():
                files = came if part.rest is None else here
                if files:
                    tasks.append(replace(part, partition=path, files=tuple(files.items())))
        return tasks

    def on_commit(self, change: Change, name: str) -> Iterator[RecordTask]:
        """Return those of the commit's partitions, with the statistics of its files."""
        columns = columns_of(change)
        if not columns.names:
            return
        rest = RestOfPartitions(change.data, change.known, change.metadata, change.rows.listing)
        tight = []
        for given in tasks_for_commit(change, columns):
            task = replace(given, sources=rest.sources(given.partition))
            if task.value_types:
                tight.append(replace(task, rest=rest.of(task.partition)))
                continue
            whole = rest.never_widened(task.partition, columns)
            yield replace(task, columns=_besides(whole, columns))
            if whole.names:
                task = replace(task, columns=whole, bloom_filters=False)
                tight.append(replace(task, rest=rest.of(task.partition)))
        yield from tight_tasks(tight, rest.known)

    def partition_lookups(
        self, question: PruningContext, name: str
    ) -> Iterator[tuple[str, PartitionLook]]:
        usable = question.reads_current_snapshot and not question.is_custom and question.conjuncts
        if not (usable and question.remaining_conjuncts and _hold(question)):
            return
        overtaken = _overtaken(question.table.timeline)
        for conjunct in question.remaining_conjuncts:
            if _holds_of(conjunct, question):
                look = partial(_within_bounds, conjunct=conjunct, overtaken=overtaken)
                yield f"{name}({conjunct[0]})", look

    def to_display(self, table: MetadataTable, name: str, column: Column) -> Shown:
        return _OF_FILES.to_display(table, name, column)


def _task(source: Source, name: str, groups: int) -> FactsTask:
    """Return the task that reads the files of a partition, without files."""
    task = statistics_task(source, {COLUMN_STATS: 1, name: groups})
    return replace(task, partition_stats=True, rest=() if task.value_types else None)


def _by_widening(task: FactsTask) -> Iterator[FactsTask]:
    """Return a separate task for columns whose bounds are never widened."""
    whole = bytes_of(task.columns)
    if task.value_types or not whole.names:
        yield task
        return
    yield replace(task, columns=_besides(whole, task.columns))
    yield replace(task, columns=whole, rest=())


def _besides(some: pa.Schema, columns: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in columns if field.name not in some.names])


def _files(source: Source) -> dict[str, dict[str, bool]]:
    """Return the files of the newest slices by partition, and whether each is a log file."""
    files: dict[str, dict[str, bool]] = {}
    for slice_ in source.slices:
        here = files.setdefault(slice_.partition, {})
        here.update({slice_.base.path: False} if slice_.base else {})
        here.update({log.path: True for log in slice_.logs})
    return files


def _hold(question: PruningContext) -> bool:
    """Return whether statistics of partitions can be trusted at all."""
    config = question.table.config
    # Hudi ignores the rows of skeleton files, whose own files do not have them.
    if config.bootstrap_path is not None:
        return False
    if not config.is_merge_on_read:
        return True
    # Hudi 1.0.2 ignores what waits for a compaction. An upgrade by Hudi keeps its records.
    return config.version.partition_statistics_hold and question.statistics_have_types


def _holds_of(conjunct: Conjunct, question: PruningContext) -> bool:
    """Return whether the statistics of a column can be trusted."""
    column, _, values = conjunct
    if not (question.bounds_hold and question.has_statistics_of(column)):
        return False
    # Hudi turns bounds of numbers into strings if a column became a string: 10 before 9.
    return not pa.types.is_string(values.type) or question.had_type(column, values.type)


def _overtaken(timeline: Timeline) -> set[str]:
    """Return the partitions of writes that completed after one that was requested later.

    The record of the later request counts, and need not include the other's files: Hudi's writers
    do not abort. Services change no row.
    """
    found: set[str] = set()
    soonest = None
    for commit in reversed(timeline.commits):
        completed = commit.completed or ""
        if soonest is not None and completed >= soonest:
            metadata = timeline.commit_metadata(commit)
            if metadata.operation_type not in ROW_PRESERVING_OPERATIONS:
                found.update(metadata.partition_to_write_stats)
        soonest = min(completed, soonest or completed)
    return found


def _within_bounds(
    table: MetadataTable, *, paths: Sequence[str], conjunct: Conjunct, overtaken: Collection[str]
) -> list[bool] | None:
    column, _, values = conjunct
    index = table.partition(PARTITION_STATS)
    stats = index.stats(column, values.type, pa.array(paths, pa.string()))
    out = exclude_by_stats(stats, conjunct).to_pylist()
    return [path in overtaken or not gone for path, gone in zip(paths, out, strict=True)]
