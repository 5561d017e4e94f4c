"""`expr_index_…`: bounds, or a bloom filter, of an expression's values in each file.

`expression_values.py` has the functions and computes their values. Every file has its own records,
also a log file. Rules: `SparkMetadataWriterUtils` (Hudi 1.0.2 and 1.2.0).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from pyhudi.config.bloom_options import FilterOptions
from pyhudi.config.metadata_names import BLOOM_FILTERS, COLUMN_STATS
from pyhudi.config.table_config import TableConfig
from pyhudi.metadata.changed_slices import alone, read_columns
from pyhudi.metadata.expression_predicates import conjuncts_implied_by
from pyhudi.metadata.expression_values import (
    Bounds,
    filter_values,
    find_unsupported_value,
    value_bounds,
)
from pyhudi.metadata.index_definitions import IndexDefinition
from pyhudi.metadata.index_definitions_file import Definitions, new_definition
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.initial_records import InitialPartition, Source
from pyhudi.metadata.partition_types.base import (
    Change,
    Cleaned,
    Known,
    MetadataPartitionType,
    check_log_support,
)
from pyhudi.metadata.partition_types.file_stats import ForgetTask, find_removed_files
from pyhudi.metadata.pruning_context import Look, PruningContext
from pyhudi.metadata.record_tasks import Recording, RecordTask
from pyhudi.metadata.slice_pruning import in_filters, within_bounds
from pyhudi.schema.key_predicates import find_allowed_values
from pyhudi.slices.read import open_slice
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.storage.storage import Storage
from pyhudi.table.participants import Clean


@dataclass(frozen=True)
class ExpressionTask(RecordTask):
    """The files of one data partition in one index."""

    definition: IndexDefinition
    partition: str
    files: tuple[tuple[str, int, ReadTask], ...]
    """Name, bytes, and the task that reads the column of this file only."""
    instant: str
    tight: bool
    """The files are all files of the partition."""

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield a filter for each file, or bounds of each file and of the partition."""
        yield from (_filters if self.definition.kind == BLOOM_FILTERS else _statistics)(self)


class ExpressionIndex(MetadataPartitionType):
    """One index for each function of a column."""

    name = "expr_index_"
    lookup_cost = 4
    has_names = True
    of_parquet = True
    needs_definitions = True
    by_column_names = True

    def define(self, storage: Storage, config: TableConfig, asked: IndexRequest) -> Definitions:
        name, function = self.name + asked.name_for(config), (asked.function or "").lower()
        options = {"expr": function, **(asked.options or {})}
        return new_definition(config, name, asked.kind, function, asked.columns, options)

    def refusal(self, name: str, table: Known) -> str | None:
        """Refuse functions whose values are not certain, and what Hudi's writers fail on."""
        definition = table.definitions.get(name)
        if definition is None:
            return "the index definitions do not contain it"
        if definition.kind not in (COLUMN_STATS, BLOOM_FILTERS):
            return f"it is of kind {definition.kind}"
        if len(definition.columns) != 1 or definition.columns[0] not in table.schema.names:
            return f"it is of {', '.join(definition.columns)}, which is not a column"
        reason = find_unsupported_value(definition, table.schema.field(definition.columns[0]).type)
        if reason is None and definition.kind == BLOOM_FILTERS:
            reason = FilterOptions.refusal(definition.options)
            if table.config.is_merge_on_read:
                # HoodieMetadataPayload.createBloomFilterMetadataRecord takes base files only.
                reason = reason or "Hudi's writers fail on a log file under such bloom filters"
        return reason or check_log_support(table.config)

    def initial(self, source: Source, name: str) -> InitialPartition:
        """Return records of the newest slices' files (`initializeExpressionIndexPartition`)."""
        groups = source.options.expression_groups
        return InitialPartition(name, groups, _tasks(source, name, groups))

    def catch_up(
        self, before: Source, now: Source, name: str, groups: Sequence[FileGroup]
    ) -> Sequence[RecordTask]:
        """Return records of the files that were added, and remove those of deleted ones."""
        known = {(one.partition, file) for one in before.slices for file, _, _ in alone(one)}
        tasks: list[RecordTask] = [*_tasks(now, name, len(groups), known)]
        gone, definition = find_removed_files(before, now), now.definitions[name]
        if gone is not None:
            tasks.append(_forget(now.recording({name: len(groups)}), definition, gone))
        return tasks

    def on_commit(self, change: Change, name: str) -> Iterator[ExpressionTask]:
        """Return records of the commit's files, one task for each partition."""
        definition = change.definitions.get(name)
        if definition is None:
            return
        for path, files in change.rows.files.items():
            reads = tuple(
                (file, size, change.rows.read(of_file, definition.columns))
                for file, size, of_file in files
            )
            yield ExpressionTask(
                change.recording, definition, path, reads, change.instant, tight=False
            )

    def on_clean(self, cleaned: Cleaned, name: str) -> Iterator[ForgetTask]:
        definition = cleaned.definitions.get(name)
        if definition is not None:
            yield _forget(cleaned.recording, definition, cleaned.clean)

    def lookups(self, question: PruningContext, name: str) -> Iterator[tuple[str, Look]]:
        definition = question.definitions.get(name)
        if definition is None or not question.bounds_hold:
            return
        tests = (
            test for stored in question.stored for test in conjuncts_implied_by(definition, stored)
        )
        for conjunct in tests:
            if definition.kind == COLUMN_STATS:
                look = partial(within_bounds, conjunct=conjunct, partition=name)
                yield name, question.without_custom_merges(look)
            elif definition.kind == BLOOM_FILTERS:
                texts = find_allowed_values([conjunct], conjunct[0])
                if texts is not None:
                    yield name, partial(in_filters, keys=texts, partition=name)


def _tasks(
    source: Source, name: str, groups: int, known: Collection[tuple[str, str]] = ()
) -> list[ExpressionTask]:
    """Return records of the newest slices' files, without those that the index has."""
    definition = source.definitions[name]
    files: dict[str, list[tuple[str, int, ReadTask]]] = {}
    for slice_ in source.slices:
        for file, size, of_file in alone(slice_):
            if (slice_.partition, file) not in known:
                read = read_columns(source.table, of_file, definition.columns)
                files.setdefault(slice_.partition, []).append((file, size, read))
    recording, instant = source.recording({name: groups}), source.last_instant
    return [
        ExpressionTask(recording, definition, path, tuple(here), instant, tight=not known)
        for path, here in files.items()
    ]


def _forget(recording: Recording, definition: IndexDefinition, clean: Clean) -> ForgetTask:
    columns = definition.columns if definition.kind == COLUMN_STATS else ()
    filters = definition.kind == BLOOM_FILTERS
    return ForgetTask(recording, definition.name, clean, tuple(columns), filters)


def _filters(task: ExpressionTask) -> Iterator[pa.RecordBatch]:
    """Yield a filter for each file with rows."""
    options = FilterOptions.of(task.definition.options)
    for name, _, read in task.files:
        values = filter_values(task.definition, open_slice(read))
        if values is None:
            continue
        yield task.recording.recorder().expression_filter(
            task.definition.name,
            task.partition,
            name,
            task.instant,
            values.texts,
            simple=options.simple,
            entries=options.entries,
            fpp=options.fpp,
            max_entries=options.max_entries,
            passes_all=values.more,
        )


def _statistics(task: ExpressionTask) -> Iterator[pa.RecordBatch]:
    """Yield the statistics of each file with rows, and of the partition."""
    read = (
        (name, size, value_bounds(task.definition, open_slice(read)))
        for name, size, read in task.files
    )
    found = [(name, size, bounds) for name, size, bounds in read if bounds is not None]
    if not found:
        return
    yield task.recording.recorder().expression_stats(
        task.definition.name,
        task.definition.columns[0],
        task.partition,
        _batch(found),
        value_types=task.definition.version > 1,
        tight=task.tight,
    )


def _batch(found: list[tuple[str, int, Bounds]]) -> pa.RecordBatch:
    kind = found[0][2].kind
    columns: dict[str, pa.Array[Any]] = {
        "name": pa.array([name for name, _, _ in found], pa.string()),
        "size": pa.array([size for _, size, _ in found], pa.int64()),
        "nulls": pa.array([bounds.nulls for _, _, bounds in found], pa.int64()),
        "values": pa.array([bounds.values for _, _, bounds in found], pa.int64()),
        "min": pa.array([bounds.min for _, _, bounds in found], kind),
        "max": pa.array([bounds.max for _, _, bounds in found], kind),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
