"""Build, rebuild and removal of the metadata table or of single partitions of it.

This executes `create_table`, `HudiTable.rebuild_metadata`, `create_index` and `drop_index`, and
writes with `hoodie.metadata.enable=true` to a table with missing partitions. A removed partition is
deleted from the properties first, then from the definitions, then from storage, so that no reader
sees half of it. A pending rebuild is recorded in the properties (`metadata/pending_operation.py`),
and the next writer builds it if its writer failed. The content of partitions is not known here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace

from pyhudi import _native
from pyhudi.clock import Clock, SystemClock
from pyhudi.config import property_names as names
from pyhudi.config.actions import ROLLBACK
from pyhudi.config.index_options import INDEX_TYPE
from pyhudi.config.log import warn
from pyhudi.config.metadata_names import (
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
)
from pyhudi.config.metadata_options import METADATA_ENABLE, MetadataOptions
from pyhudi.config.option_parsing import parse_bool
from pyhudi.config.property_names import UNFINISHED
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError, HudiError, MetadataTableWarning, without_hint
from pyhudi.metadata import catching_up
from pyhudi.metadata.build_heartbeat import build_heartbeat
from pyhudi.metadata.index_definitions import (
    Definitions,
    change_definitions,
    index_definitions,
    parse_definitions,
)
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.initialize import check_can_start, initialize_partitions
from pyhudi.metadata.partition_types.base import PartitionRequest
from pyhudi.metadata.partition_types.registry import (
    KINDS,
    check_makeable,
    in_order,
    kind_asked,
    kinds_of,
    new_definitions,
    partitions_asked,
    select_partitions,
)
from pyhudi.metadata.pending_operation import PendingOperation, all_of
from pyhudi.metadata.statistics_columns import (
    UndefinedStatistics,
    check_defined,
    check_nested,
    with_column_choice,
)
from pyhudi.metadata.table_writer import clear_partitions, remove_metadata_table
from pyhudi.metadata.write_checks import (
    can_be_kept,
    check_kept,
    check_not_building,
)
from pyhudi.services.compaction import complete_pending
from pyhudi.services.row_compaction import row_compaction
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import InstantGenerator
from pyhudi.timeline.layout_change import remove_other_timeline
from pyhudi.txn.heartbeat import live_instants
from pyhudi.txn.recovery import check_no_live_writer, find_failed_writes
from pyhudi.write import abandoned_indexing, async_indexing
from pyhudi.write.checks import check_indexed_columns
from pyhudi.write.input_rows import memory_limit
from pyhudi.write.write_context import Handle, WritableTable, WriteContext, open_for_change


def partitions_for_new_table(config: TableConfig, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the partitions of a new table's metadata table, none if it gets no such table.

    A record index is among them unless the options choose another index or the table has no key.
    Raises `ConfigError` and `UnsupportedTableFeature` for options that do not match the table.
    """
    metadata_options = MetadataOptions.of(options)
    if metadata_options.record_index and metadata_options.enable is False:
        msg = f"{METADATA_ENABLE} is false, but a record index is enabled"
        raise ConfigError(msg, hint="A record index is part of the metadata table.")
    if not metadata_options.for_new_table:
        return ()
    schema = _native.arrow_schema(_native.with_meta_fields(config.create_schema or ""))
    request = PartitionRequest(
        config, metadata_options, by_default=INDEX_TYPE not in options, schema=schema
    )
    partitions = select_partitions(request)
    new_definitions(partitions, request)
    return partitions


def with_pending_partitions(
    config: TableConfig, partitions: Collection[str], options: Mapping[str, str], clock: Clock
) -> TableConfig:
    """Record the partitions to build in a new table's properties."""
    definitions = new_definitions(partitions, PartitionRequest(config, MetadataOptions.of(options)))
    by = InstantGenerator(clock, config.timezone).next()
    undone = PendingOperation(by, config.version.code, in_order(set(partitions)), definitions)
    return TableConfig({**config.properties, **undone.properties})


def make_partitions(table: WritableTable, partitions: Collection[str]) -> None:
    """Build partitions of the metadata table by the options of the table's handle."""
    clock = SystemClock()
    handle = Handle.of(table, clock)
    with _at_work(handle, clock) as (_, by):
        _make(handle, set(partitions), MetadataOptions.of(table.options), clock, by)


def before_write(table: WritableTable, clock: Clock | None) -> TableConfig:
    """Finish a pending operation, build the partitions that options request, return the properties.

    Options matter only if `hoodie.metadata.enable` is set to true. Raises as
    `initialize_partitions` does, and as opening the table for a write does; `CommitConflict` if
    another writer is active.
    """
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    config = finish_pending_operation(handle, clock)
    if (
        not parse_bool(table.options, METADATA_ENABLE, default=False)
        or PendingOperation.of(config).beside
    ):
        return config
    options = MetadataOptions.of(table.options)
    requested = set(select_partitions(PartitionRequest(config, options)))
    if config.metadata_partitions:
        # Partitions that were dropped, or omitted at creation, return by their own option alone.
        flags = {COLUMN_STATS: options.column_stats, PARTITION_STATS: options.partition_stats}
        requested -= {name for name, flag in flags.items() if not flag}
    if not requested - set(config.metadata_partitions):
        return config
    with _at_work(handle, clock) as (_, by):
        _make(handle, requested, options, clock, by)
    return TableConfig.load(table.storage, clock)


def finish_pending_operation(table: WritableTable, clock: Clock | None) -> TableConfig:
    """Return the table's properties after completing the operation of a failed writer.

    If that fails, the operation stays pending, with a `MetadataTableWarning`. Rows are correct all
    the same: while a record index waits for its rebuild, all rows are read instead. Raises
    `CommitConflict` if the operation's writer is active.
    """
    clock = clock or SystemClock()
    previous = table.previous_config if isinstance(table, Handle) else None
    config = TableConfig.load(table.storage, clock, previous)
    undone = PendingOperation.of(config)
    if not undone or not config.version.writable:
        return config
    if undone.beside and live_instants(table.storage, {undone.by}, clock):
        return config
    handle = Handle.of(table, clock)
    with _at_work(handle, clock) as (config, by):
        # Another writer may have completed it.
        if PendingOperation.of(config):
            rebuild_dropped_partitions(handle, clock, by)
    return TableConfig.load(table.storage, clock)


def define_statistics(table: WritableTable, clock: Clock | None = None) -> None:
    """Rebuild column statistics that have no definition, with the columns that Hudi chooses.

    Nothing records the columns and the index version of the old ones.
    """
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    config = TableConfig.load(handle.storage, clock)
    if not _has_undefined_statistics(handle, config):
        return
    with _at_work(handle, clock) as (config, by):
        if _has_undefined_statistics(handle, config):
            undefined = [
                name
                for name in config.metadata_partitions
                if name in (COLUMN_STATS, PARTITION_STATS)
            ]
            before = PendingOperation.of(config)
            again = replace(all_of(handle.storage, config), by=by, moving=before.moving)
            _take_away(handle, config, undefined, clock, again)
            rebuild_dropped_partitions(handle, clock, by)


def _has_undefined_statistics(handle: Handle, config: TableConfig) -> bool:
    try:
        check_defined(config, index_definitions(handle.storage, config))
    except UndefinedStatistics:
        return True
    return False


def catch_up(table: WritableTable, clock: Clock | None = None) -> bool:
    """Add commits missing in the metadata table; return whether it succeeded (`catching_up.py`)."""
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    with handle.lock_manager.critical_section():
        opened = open_for_change(handle, clock)
        check_no_live_writer(opened, opened.timeline)
        return catching_up.catch_up(opened)


@contextmanager
def _at_work(handle: Handle, clock: Clock) -> Iterator[tuple[TableConfig, str]]:
    with build_heartbeat(handle.storage, clock, handle.lock_manager) as (config, by):
        if PendingOperation.of(config).beside:
            async_indexing.remove_left(open_for_change(handle, clock, config), by)
        yield config, by


def rebuild_dropped_partitions(table: Handle, clock: Clock, by: str) -> None:
    """Rebuild the partitions that the table's properties record as pending, if possible."""
    try:
        _make(table, set(), MetadataOptions.of(table.options), clock, by)
    except HudiError as error:
        cause = without_hint(error)
        warn(
            f"{table.storage.uri}: the metadata table was not rebuilt; the next write tries "
            f"again: {cause}",
            MetadataTableWarning,
        )


def rebuild(
    table: WritableTable,
    clock: Clock | None = None,
    *,
    memory: int | None = None,
    stale: Collection[str] = (),
) -> tuple[str, ...]:
    """Rebuild the metadata table; see `HudiTable.rebuild_metadata`, whose limit is `memory`.

    stale: paths that it lists although their commits were rolled back.
    """
    clock, memory = clock or SystemClock(), memory_limit(memory)
    handle = Handle.of(table, clock)
    options = MetadataOptions.of(table.options)
    define_statistics(handle, clock)
    with _at_work(handle, clock) as (config, by):
        again = all_of(table.storage, config)
        check_makeable(again.partitions)
        partitions = again.partitions_for(config.version)
        if not again.partitions:
            partitions = select_partitions(PartitionRequest(config, options))
        context = WriteContext.open(handle.without_index_options(), clock)
        _check_free(context)
        context.check_files(stale)
        as_before = _as_before(context, options, again)
        new_definitions(
            partitions, PartitionRequest(config, as_before, schema=context.schema.arrow)
        )
        if again.partitions:
            moving = PendingOperation.of(config).moving
            again = replace(again, by=by, moving=moving)
            _take_away(handle, config, config.metadata_partitions, clock, again)
        return _make(handle, set(partitions), options, clock, by, memory=memory)


@contextmanager
def without_metadata_table(handle: Handle, clock: Clock) -> Iterator[None]:
    """Remove the metadata table for the block, and rebuild it afterwards.

    If the block or the rebuild fails, the next write builds it.
    """
    with _at_work(handle, clock) as (config, by):
        again = replace(all_of(handle.storage, config), by=by)
        _take_away(handle, config, config.metadata_partitions, clock, again)
        yield
        rebuild_dropped_partitions(handle, clock, by)


def _check_free(context: WriteContext) -> None:
    """Raise `CommitConflict` for a pending instant that would abort a build halfway."""
    timeline = context.timeline
    check_no_live_writer(context.table, timeline)
    settled = {*find_failed_writes(timeline), *timeline.pending(ROLLBACK)}
    check_can_start(
        context.config, [pending for pending in timeline.pending() if pending not in settled]
    )


def _as_before(
    context: WriteContext, options: MetadataOptions, undone: PendingOperation
) -> MetadataOptions:
    """Return the options with the type of record index and the statistics columns of before.

    Columns that the options name take precedence.
    """
    version = context.config.version
    if RECORD_INDEX in undone.partitions_for(version):
        options = replace(options, record_index_by_partition=undone.by_partition)
    stats_choice = undone.column_stats if version.has_index_definitions else None
    if options.stats_columns or stats_choice is None or COLUMN_STATS not in undone.partitions:
        return options
    return with_column_choice(stats_choice, options, context.schema.arrow, version)


def create_index(
    table: WritableTable,
    asked: IndexRequest,
    clock: Clock | None = None,
    *,
    concurrently: bool = False,
) -> tuple[str, ...]:
    """Adds an index to the metadata table; see `HudiTable.create_index`."""
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    index_type = kind_asked(asked)
    options = MetadataOptions.of(table.options)
    finish_pending_operation(handle, clock)
    if concurrently:
        return async_indexing.create(handle, asked, options, clock)
    with _at_work(handle, clock) as (config, by):
        if index_type.has_names:
            defined = index_type.define(table.storage, config, asked)
            _check_new(config, *defined)
            return _make(handle, set(defined), options, clock, by, defined)
        _check_new(config, index_type.name)
        only = index_type.options_for_create_index(options, asked)
        partitions = partitions_asked(index_type, PartitionRequest(config, only))
        return _make(handle, set(partitions), only, clock, by)


def _check_new(config: TableConfig, name: str) -> None:
    if name in (*config.metadata_partitions, *PendingOperation.of(config).partitions):
        msg = f"the table already has the index {name}"
        raise ConfigError(msg, hint="Drop it first to create another one.")


def drop_index(table: WritableTable, name: str, clock: Clock | None = None) -> tuple[str, ...]:
    """Remove an index; see `HudiTable.drop_index`."""
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    left_by_hudi = abandoned_indexing.take_back(handle, name, clock)
    if left_by_hudi:
        return left_by_hudi
    with _at_work(handle, clock) as (config, by):
        dropped = _partitions_to_drop(config, name)
        undone = PendingOperation.of(config)
        remaining = replace(
            undone,
            by=by,
            partitions=tuple(kept for kept in undone.partitions if kept not in dropped),
            definitions={k: kept for k, kept in undone.definitions.items() if k not in dropped},
        )
        kept = _take_away(handle, config, dropped, clock, remaining)
        if undone:
            kept.update(table.storage, remaining.properties, clock)
        else:
            kept.update(table.storage, {}, clock, removed=(UNFINISHED,))
    return dropped


def _partitions_to_drop(config: TableConfig, name: str) -> tuple[str, ...]:
    """Return the partitions to drop with an index. Raises `ConfigError` if there is none.

    Partitions with a pending rebuild count as existing.
    """
    listed = tuple(
        dict.fromkeys((*config.metadata_partitions, *PendingOperation.of(config).partitions))
    )
    named = (partition_type.name + name for partition_type in KINDS if partition_type.has_names)
    index = next((partition for partition in (name, *named) if partition in listed), None)
    if index is None:
        msg = f"the table has no index {name!r}"
        raise ConfigError(msg, hint=f"It has {', '.join(listed) or 'no metadata table'}.")
    if index == FILES:
        return listed
    dropped = [index]
    for partition_type, other in kinds_of(listed):
        if partition_type.needs == index and not partition_type.goes_along:
            msg = f"the index {other} needs {index}"
            raise ConfigError(msg, hint=f"Drop {other} first.")
        if partition_type.needs == index:
            dropped.append(other)
    return tuple(partition for partition in listed if partition in dropped)


def _take_away(
    handle: Handle,
    config: TableConfig,
    removed: Collection[str],
    clock: Clock,
    undone: PendingOperation,
) -> TableConfig:
    """Remove partitions of the metadata table, all with `files`; return the new properties.

    undone: the operation that then remains, in addition to the removal of directories.
    """
    check_not_building(config)
    handle.lock_manager.check_held()
    storage = handle.storage
    remaining = [partition for partition in config.metadata_partitions if partition not in removed]
    undone = replace(undone, version=config.version.code, removed=in_order(set(removed)))
    if FILES in removed or not remaining:
        properties = (names.METADATA_PARTITIONS, names.METADATA_PARTITIONS_INFLIGHT)
        config = config.update(storage, undone.properties, clock, removed=properties)
        change_definitions(storage, config, {}, removed=removed)
        remove_metadata_table(storage, handle.lock_manager)
        return config
    changes = {names.METADATA_PARTITIONS: ",".join(remaining), **undone.properties}
    config = config.update(storage, changes, clock)
    change_definitions(storage, config, {}, removed=removed)
    clear_partitions(storage, removed, handle.lock_manager)
    return config


def _make(
    table: Handle,
    partitions: set[str],
    options: MetadataOptions,
    clock: Clock,
    by: str,
    definitions: Definitions | None = None,
    *,
    memory: int | None = None,
) -> tuple[str, ...]:
    """Build partitions, including pending ones, and return all that the table then has.

    by: name of the caller's heartbeat. definitions: those of the secondary and expression indexes
    to build. memory: as in `memory_limit`.
    """
    context = WriteContext.open(table.without_index_options(), clock)
    undone = PendingOperation.of(context.config)
    check_indexed_columns(definitions or {}, context.schema)
    definitions = {**undone.index_definitions, **(definitions or {})}
    check_kept(definitions, context.config, parse_definitions(definitions), context.schema)
    check_nested(context.config, options.stats_columns)
    options = _as_before(context, options, undone)
    check_no_live_writer(context.table, context.timeline)
    context = _without_leftovers(table, context.recover(), undone, clock)
    config = context.config
    partitions = partitions | set(undone.partitions_for(config.version))
    partitions = set(can_be_kept(partitions, context.schema, options))
    if not partitions - set(config.metadata_partitions):
        return _clear_record(context.table, config, undone).metadata_partitions
    arguments = (context.table, partitions, options, memory_limit(memory), definitions)
    if undone:
        return initialize_partitions(*arguments).metadata_partitions
    with _record_build(context, partitions, options, definitions, by):
        return initialize_partitions(*arguments).metadata_partitions


@contextmanager
def _record_build(
    context: WriteContext,
    partitions: Collection[str],
    options: MetadataOptions,
    definitions: Definitions,
    by: str,
) -> Iterator[None]:
    """Record the build in the properties for the block; a failure removes the record."""
    config, clock = context.config, context.table.clock
    new = in_order({*partitions, FILES} - {*config.metadata_partitions})
    own = new_definitions(new, PartitionRequest(config, options, schema=context.schema.arrow))
    pending = PendingOperation(by, config.version.code, new, {**own, **definitions}, removed=new)
    try:
        config.update(context.storage, pending.properties, clock)
        yield
    except BaseException:
        with suppress(Exception):
            # A writer that takes it over after the lock was lost uses the same name.
            context.table.lock_manager.check_held()
            config = TableConfig.load(context.storage, clock)
            if PendingOperation.of(config).by == by:
                _clear_record(context.table, config, pending)
        raise


def _without_leftovers(
    table: Handle, context: WriteContext, undone: PendingOperation, clock: Clock
) -> WriteContext:
    """Return the context after the cleanup of an interrupted change of the table's version."""
    if undone.moving:
        remove_other_timeline(context.storage, context.config)
    # If Hudi has built a metadata table since, the compaction would have to go into it.
    if not undone or context.config.metadata_partitions:
        return context
    work = row_compaction(undone.by)
    if complete_pending(context.table, work, own=bool(undone.by)):
        return WriteContext.open(table.without_index_options(), clock).recover()
    return context


def _clear_record(
    table: TableSnapshot, config: TableConfig, undone: PendingOperation
) -> TableConfig:
    """Remove the record of a finished operation, and leftover directories."""
    if not undone:
        return config
    storage, clock = table.storage, table.clock
    listed = config.metadata_partitions
    if not listed:
        remove_metadata_table(storage, table.lock_manager)
    leftover = [name for name in undone.removed if name not in listed]
    clear_partitions(storage, leftover, table.lock_manager)
    return config.update(storage, {}, clock, removed=(UNFINISHED,))
