"""`record_index`: the file group of each record key, for the whole table or by data partition.

Rows that were only updated keep their location. If a commit removes a record from one location and
adds it at another, the new location counts (`rust/metadata/src/write` ensures that). Sources:
`HoodieBackedTableMetadataWriter.getRecordIndexAdditionalUpserts`, `RecordIndexMapper` (Hudi 0.15.0,
1.0.2, 1.2.0). Unlike Hudi, pyhudi finds what log files delete by merging, so that a delete that
loses by its ordering value leaves the record in the index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate

from pyhudi.clock import is_bootstrap, parse_instant
from pyhudi.config.meta_columns import RECORD_KEY
from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.config.metadata_options import (
    PARTITIONED_RECORD_INDEX_ENABLE,
    RECORD_INDEX_ENABLE,
    MetadataOptions,
)
from pyhudi.config.table_config import TableConfig
from pyhudi.config.table_version import TableVersion
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.metadata import partitioned_record_index
from pyhudi.metadata.changed_groups import find_changed_groups
from pyhudi.metadata.changed_slices import is_log_path
from pyhudi.metadata.index_definitions import Definitions, IndexDefinition, new_definition
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.initial_records import InitialPartition, Source
from pyhudi.metadata.partition_types.base import (
    Change,
    DisplayRecords,
    MetadataPartitionType,
    PartitionLookup,
    PartitionRequest,
    StatisticsColumn,
)
from pyhudi.metadata.pruning_context import PruningContext, SliceLookup
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.record_locations import KeysTask, Ranges, SliceTask
from pyhudi.metadata.record_tasks import RecordTask
from pyhudi.metadata.slice_pruning import slices_with_keys
from pyhudi.schema.payloads import field_merge
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.timeline.commit_metadata import NO_PREVIOUS_COMMIT, WriteStat

_KEEP_LOCATIONS = frozenset({"COMPACT", "LOG_COMPACT"})
_CLUSTER = "CLUSTER"
_DELETE = "DELETE"
_RECORD_BYTES = 128
"""Bytes of a key in an exchange, where many keys share a location."""


class RecordIndex(MetadataPartitionType):
    """The location of the record of each key."""

    name = RECORD_INDEX
    index_type_name = RECORD_INDEX
    lookup_cost = 1

    def is_requested(self, request: PartitionRequest) -> bool:
        """Return whether the option requests it; by default, whether rows have stored keys."""
        config, options = request.config, request.options
        by_partition = options.record_index and options.record_index_by_partition
        if by_partition and not config.version.index_versions:
            name = PARTITIONED_RECORD_INDEX_ENABLE
            msg = f"{name}: not in tables of version {config.version.code}"
            raise UnsupportedTableFeature(msg, hint="Upgrade the table first.")
        if options.record_index is None:
            has_keys = bool(config.record_key_fields) and config.populate_meta_fields
            return request.by_default and has_keys
        if options.record_index and not config.record_key_fields:
            msg = (
                f"{RECORD_INDEX_ENABLE[0]}: the table's keys are generated, and no lookup uses them"
            )
            raise ConfigError(msg, hint="Leave the option out.")
        return options.record_index

    def options_for_create_index(
        self, options: MetadataOptions, request: IndexRequest
    ) -> MetadataOptions:
        return replace(
            super().options_for_create_index(options, request),
            record_index=True,
            record_index_by_partition=request.partitioned or options.record_index_by_partition,
        )

    def definition(self, request: PartitionRequest) -> Definitions:
        """Record whether it is partitioned (Hudi 1.1 and later)."""
        if not request.config.version.index_versions:
            return {}
        by_partition = {
            "isPartitioned": str(request.options.record_index_by_partition is True).lower()
        }
        return new_definition(
            request.config, self.name, self.name, options=by_partition, version="V1"
        )

    def exists_in(self, version: TableVersion, definition: IndexDefinition | None) -> bool:
        return version.index_versions or definition is None or not definition.is_partitioned

    def initial(self, source: Source, name: str) -> InitialPartition:
        """Return all keys, over file groups of the whole table or of each data partition."""
        _check_times(source)
        counts = source.counts()
        records = sum(counts)
        ids, ranges, groups = None, None, source.options.record_groups(records)
        definition = source.definitions.get(name)
        if definition is not None and definition.is_partitioned:
            ids, ranges = _groups_by_partition(source, counts)
            groups = len(ids)
        task_context, zone = source.task_context({name: groups}), source.table.config.timezone
        tasks = [
            SliceTask(
                task_context, read, parse_instant(read.slice.base_instant, zone), ranges=ranges
            )
            for read in source.reads(RECORD_KEY)
        ]
        rounds = source.rounds(records, groups, _RECORD_BYTES)
        return InitialPartition(name, groups, tasks, rounds, records, ids)

    def on_commit(self, change: Change, name: str) -> Iterator[RecordTask]:
        """Return the keys that were added and removed, one task for each file group."""
        operation, rows = change.metadata.operation_type, change.rows
        if operation in _KEEP_LOCATIONS:
            return
        config, ranges = change.data.config, None
        if _is_partitioned(change):
            ranges = partitioned_record_index.ranges(change.groups[name])
        ms = parse_instant(change.instant, config.timezone)
        # A clustering adds each key that it removes at another location, which counts.
        for slice_ in rows.iter_replaced() if operation != _CLUSTER else ():
            yield SliceTask(change.task_context, rows.keys(slice_), ms, removed=True, ranges=ranges)
        for stats in _by_group(change.metadata.write_stats):
            first = stats[0]
            # A row that was appended to a log as an update may have a key that is not in the index:
            # new in its bucket, or inserted again where it was deleted. A write that used the index
            # counts this row as an insert.
            uses_index = change.commit.by_record_index or not is_log_path(first.path)
            if not uses_index or any(stat.num_inserts or stat.num_deletes for stat in stats):
                group = (first.partition_path or "", first.file_id)
                task = KeysTask(change.task_context, change.schema, *group, ms, ranges=ranges)
                yield _with_changed_files(task, change, stats)

    def catch_up(
        self, before: Source, now: Source, name: str, groups: Sequence[FileGroup]
    ) -> Sequence[RecordTask]:
        """Return removals of the keys of replaced slices, and locations of those of new ones."""
        definition, zone = now.definitions.get(name), now.table.config.timezone
        task_context, changed = (
            now.task_context({name: len(groups)}),
            find_changed_groups(before, now),
        )
        ranges = None
        if definition is not None and definition.is_partitioned:
            ranges = partitioned_record_index.ranges(groups)
        return [
            SliceTask(
                task_context,
                read,
                parse_instant(read.slice.base_instant, zone),
                removed,
                ranges=ranges,
            )
            for source, removed in ((before, True), (now, False))
            for read in source.reads(RECORD_KEY)
            if read.slice.key in changed
        ]

    def new_groups(
        self,
        definition: IndexDefinition | None,
        groups: Sequence[FileGroup],
        paths: Iterable[str],
        instant: str,
    ) -> Sequence[FileGroup]:
        """Return file groups for new data partitions, if the index is partitioned."""
        if definition is None or not definition.is_partitioned:
            return ()
        return partitioned_record_index.new_groups(
            partitioned_record_index.ranges(groups), paths, instant
        )

    def partition_lookups(
        self, context: PruningContext, name: str
    ) -> Iterator[tuple[str, PartitionLookup]]:
        """Prune partitions without the keys before their files are listed."""
        locations = context.key_locations
        if locations is not None:
            yield name, partial(_is_in_partitions, partitions={path for path, _ in locations})

    def lookups(self, context: PruningContext, name: str) -> Iterator[tuple[str, SliceLookup]]:
        locations, keys = context.key_locations, context.keys
        if locations is not None:
            yield name, lambda _, slices: slices.in_groups(locations)
        elif keys is not None and context.reads_current_snapshot and context.has_unique_keys:
            yield name, partial(slices_with_keys, keys=keys)

    def to_display(
        self, table: MetadataTable, name: str, column: StatisticsColumn
    ) -> DisplayRecords:
        return table.partition(name).locations()


def _check_times(source: Source) -> None:
    """Raise `UnsupportedTableFeature` for base files of a bootstrap, whose instant is not a time.

    A record of the index contains the time of its location. Hudi fails to create it
    (`createRecordIndexUpdate`, 0.15.0, 1.0.2 and 1.2.0).
    """
    if any(is_bootstrap(slice_.base_instant) for slice_ in source.slices):
        msg = (
            f"{RECORD_INDEX_ENABLE[0]}: the table has base files of the bootstrap from "
            f"{source.table.config.bootstrap_path}, whose instant is not a time"
        )
        raise UnsupportedTableFeature(msg, hint="Call cluster() to rewrite them.")


def _is_in_partitions(
    _table: MetadataTable, *, paths: Sequence[str], partitions: Collection[str]
) -> list[bool]:
    return [path in partitions for path in paths]


def _is_partitioned(change: Change) -> bool:
    definition = change.definitions.get(RECORD_INDEX)
    return definition is not None and definition.is_partitioned


def _groups_by_partition(source: Source, counts: Sequence[int]) -> tuple[tuple[str, ...], Ranges]:
    """Return file ids and ranges of data partitions (`initializeRecordIndexPartition`, 1.2.0)."""
    records: dict[str, int] = {}
    for slice_, count in zip(source.slices, counts, strict=True):
        records[slice_.partition] = records.get(slice_.partition, 0) + count
    sizes = {path: source.options.groups_per_partition(count) for path, count in records.items()}
    # File groups are numbered in the order of their ids.
    ordered = sorted(sizes, key=lambda path: partitioned_record_index.file_id(path, 0))
    starts = accumulate((sizes[path] for path in ordered), initial=0)
    ranges = {path: (start, sizes[path]) for path, start in zip(ordered, starts, strict=False)}
    ids = (
        partitioned_record_index.file_id(path, number)
        for path in ordered
        for number in range(sizes[path])
    )
    return tuple(ids), ranges


def _by_group(stats: Iterable[WriteStat]) -> Iterator[list[WriteStat]]:
    """Return the write stats of each file group: several if its log continued in another file."""
    groups: dict[tuple[str, str], list[WriteStat]] = {}
    for stat in stats:
        if stat.path:
            groups.setdefault((stat.partition_path or "", stat.file_id), []).append(stat)
    yield from groups.values()


def _with_changed_files(task: KeysTask, change: Change, stats: list[WriteStat]) -> KeysTask:
    """Return the task with the files that show which keys were added and removed."""
    config, rows, operation = change.data.config, change.rows, change.metadata.operation_type
    first = stats[0]
    if is_log_path(first.path):
        task = replace(task, logs=tuple(stat.path for stat in stats if stat.path))
        if not any(stat.num_deletes for stat in stats):
            return task
        after = rows.after(stats, only_new_files=_always_wins(config, operation))
        return replace(task, after=rows.keys(after, with_pending=True))
    stays = not any(stat.num_deletes for stat in stats) and operation != _CLUSTER
    task = replace(
        task,
        base=first.path,
        added_at=change.instant if stays and config.populate_meta_fields else None,
        may_add=any(stat.num_inserts for stat in stats),
    )
    if first.prev_commit == NO_PREVIOUS_COMMIT:
        return task
    before = rows.before(first)
    if before is None:
        return task
    if config.is_merge_on_read:
        return replace(task, before=rows.keys(before))
    return replace(task, previous=None if before.base is None else before.base.path)


def _always_wins(config: TableConfig, operation: str | None) -> bool:
    """Return whether a delete always removes the record: it has no ordering value then."""
    by_commit_time = field_merge(config) is None and config.merge.mode == "COMMIT_TIME_ORDERING"
    return operation == _DELETE or by_commit_time
