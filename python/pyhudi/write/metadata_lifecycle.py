"""Build, rebuild and removal of the metadata table and of its partitions.

`create_table`, `HudiTable.rebuild_metadata`, `create_index` and `drop_index` call this module, and
writes with `hoodie.metadata.enable=true` to a table with missing partitions. A partition is removed
from the properties first, then from the definitions, then from storage, so no reader sees a part of
it. The properties record a pending build (`metadata/pending_operation.py`), which the next writer
completes if its writer failed. `metadata/partition_types` defines the content of partitions.
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
from pyhudi.config.memory_size import MemorySize
from pyhudi.config.metadata_names import (
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
)
from pyhudi.config.metadata_options import METADATA_ENABLE, MetadataOptions
from pyhudi.config.option_parsing import parse_bool
from pyhudi.config.property_names import PENDING_OPERATION
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError, HudiError, MetadataTableWarning, without_hint
from pyhudi.metadata import catchup
from pyhudi.metadata.build_heartbeat import build_heartbeat
from pyhudi.metadata.index_definitions import (
    Definitions,
    change_definitions,
    index_definitions,
    parse_definitions,
)
from pyhudi.metadata.initialize import check_can_start, initialize_partitions
from pyhudi.metadata.partition_types.base import PartitionRequest
from pyhudi.metadata.partition_types.registry import (
    check_can_build,
    in_order,
    new_definitions,
    select_partitions,
)
from pyhudi.metadata.pending_operation import PendingOperation, full_rebuild
from pyhudi.metadata.statistics_columns import (
    UndefinedStatistics,
    check_defined,
    check_nested,
    with_column_selection,
)
from pyhudi.metadata.table_writer import clear_partitions, remove_metadata_table
from pyhudi.metadata.write_checks import (
    check_maintainable,
    check_not_building,
    maintainable_partitions,
)
from pyhudi.services.compaction import complete_pending, row_compaction
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import InstantGenerator
from pyhudi.timeline.layout_change import remove_other_timeline
from pyhudi.timeline.time_travel import incomplete_writes
from pyhudi.txn.heartbeat import live_instants
from pyhudi.txn.recovery import check_no_live_writer, open_recovered
from pyhudi.write import async_indexing
from pyhudi.write.checks import check_indexed_columns
from pyhudi.write.input_rows import memory_limit
from pyhudi.write.table_opening import Handle, WritableTable, open_for_change
from pyhudi.write.write_context import WriteContext


def partitions_for_new_table(config: TableConfig, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the partitions of a new table's metadata table; none for a table without one.

    They include a record index unless the options choose another index or the table has no key.
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
    heartbeat = InstantGenerator(clock, config.timezone).next()
    pending = PendingOperation(
        heartbeat, config.version.code, in_order(set(partitions)), definitions
    )
    return TableConfig({**config.properties, **pending.properties})


def build_partitions(table: WritableTable, partitions: Collection[str]) -> None:
    """Build partitions of the metadata table with the options of the table's handle."""
    clock = SystemClock()
    handle = Handle.of(table, clock)
    with build_session(handle, clock) as (_, heartbeat):
        build(handle, set(partitions), MetadataOptions.of(table.options), clock, heartbeat)


def before_write(table: WritableTable, clock: Clock | None) -> TableConfig:
    """Finish a pending operation, build requested partitions, and return the table's properties.

    Options request partitions only if `hoodie.metadata.enable` is true. Raises as
    `initialize_partitions` and `WriteContext.open` do, and `CommitConflict` if another writer is
    active.
    """
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    config = finish_pending_operation(handle, clock)
    if (
        not parse_bool(table.options, METADATA_ENABLE, default=False)
        or PendingOperation.of(config).is_concurrent
    ):
        return config
    options = MetadataOptions.of(table.options)
    requested = set(select_partitions(PartitionRequest(config, options)))
    if config.metadata_partitions:
        # Statistics that were dropped, or omitted at creation, are built only if requested by name.
        flags = {COLUMN_STATS: options.column_stats, PARTITION_STATS: options.partition_stats}
        requested -= {name for name, flag in flags.items() if not flag}
    if not requested - set(config.metadata_partitions):
        return config
    with build_session(handle, clock) as (_, heartbeat):
        build(handle, requested, options, clock, heartbeat)
    return TableConfig.load(table.storage, clock)


def finish_pending_operation(table: WritableTable, clock: Clock | None) -> TableConfig:
    """Complete the operation of a failed writer and return the table's properties.

    If that fails, it warns with `MetadataTableWarning` and the operation stays pending. Lookups
    then read all keys instead of a missing record index. Raises `CommitConflict` if the operation's
    writer is active.
    """
    clock = clock or SystemClock()
    previous = table.previous_config if isinstance(table, Handle) else None
    config = TableConfig.load(table.storage, clock, previous)
    pending = PendingOperation.of(config)
    if not pending or not config.version.writable:
        return config
    if pending.is_concurrent and live_instants(table.storage, {pending.heartbeat}, clock):
        return config
    handle = Handle.of(table, clock)
    with build_session(handle, clock) as (config, heartbeat):
        # Another writer may have completed it.
        if PendingOperation.of(config):
            rebuild_dropped_partitions(handle, clock, heartbeat)
    return TableConfig.load(table.storage, clock)


def define_statistics(table: WritableTable, clock: Clock | None = None) -> None:
    """Rebuild column statistics without a definition, for the columns that Hudi selects.

    Without a definition, their columns and index version are unknown.
    """
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    config = TableConfig.load(handle.storage, clock)
    if not _has_undefined_statistics(handle, config):
        return
    with build_session(handle, clock) as (config, heartbeat):
        if _has_undefined_statistics(handle, config):
            undefined = [
                name
                for name in config.metadata_partitions
                if name in (COLUMN_STATS, PARTITION_STATS)
            ]
            previous = PendingOperation.of(config)
            rebuild_plan = replace(
                full_rebuild(handle.storage, config),
                heartbeat=heartbeat,
                changes_layout=previous.changes_layout,
            )
            remove_partitions(handle, config, undefined, clock, rebuild_plan)
            rebuild_dropped_partitions(handle, clock, heartbeat)


def _has_undefined_statistics(handle: Handle, config: TableConfig) -> bool:
    try:
        check_defined(config, index_definitions(handle.storage, config))
    except UndefinedStatistics:
        return True
    return False


def catch_up(table: WritableTable, clock: Clock | None = None) -> bool:
    """Add missing commits to the metadata table; return whether it worked (`catchup.py`)."""
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    with handle.lock_manager.critical_section():
        opened = open_for_change(handle, clock)
        check_no_live_writer(opened, opened.timeline)
        return catchup.catch_up(opened)


@contextmanager
def build_session(handle: Handle, clock: Clock) -> Iterator[tuple[TableConfig, str]]:
    """Hold a heartbeat for a build in a critical section; see `build_heartbeat`."""
    with build_heartbeat(handle.storage, clock, handle.lock_manager) as (config, heartbeat):
        if PendingOperation.of(config).is_concurrent:
            async_indexing.remove_pending_indexing(
                open_for_change(handle, clock, config), heartbeat
            )
        yield config, heartbeat


def rebuild_dropped_partitions(table: Handle, clock: Clock, heartbeat: str) -> None:
    """Rebuild the pending partitions of the table's properties; a failure is a warning."""
    try:
        build(table, set(), MetadataOptions.of(table.options), clock, heartbeat)
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
    memory: MemorySize | None = None,
    stale: Collection[str] = (),
) -> tuple[str, ...]:
    """Rebuild the metadata table; see `HudiTable.rebuild_metadata`, whose limit is `memory`.

    stale: paths that the metadata table lists although their commits were rolled back.
    """
    clock, memory = clock or SystemClock(), memory_limit(memory)
    handle = Handle.of(table, clock)
    options = MetadataOptions.of(table.options)
    define_statistics(handle, clock)
    with build_session(handle, clock) as (config, heartbeat):
        rebuild_plan = full_rebuild(table.storage, config)
        check_can_build(rebuild_plan.partitions)
        partitions = rebuild_plan.partitions_for(config.version)
        if not rebuild_plan.partitions:
            partitions = select_partitions(PartitionRequest(config, options))
        context = WriteContext.open(handle.without_index_options(), clock)
        _check_free(context)
        context.check_files(stale)
        options_of_build = _with_previous_choices(context, options, rebuild_plan)
        new_definitions(
            partitions, PartitionRequest(config, options_of_build, schema=context.schema.arrow)
        )
        if rebuild_plan.partitions:
            changes_layout = PendingOperation.of(config).changes_layout
            rebuild_plan = replace(rebuild_plan, heartbeat=heartbeat, changes_layout=changes_layout)
            remove_partitions(handle, config, config.metadata_partitions, clock, rebuild_plan)
        return build(handle, set(partitions), options, clock, heartbeat, memory=memory)


@contextmanager
def without_metadata_table(handle: Handle, clock: Clock) -> Iterator[None]:
    """Remove the metadata table for the block, and rebuild it afterwards.

    If the block or the rebuild fails, the next write builds it.
    """
    with build_session(handle, clock) as (config, heartbeat):
        rebuild_plan = replace(full_rebuild(handle.storage, config), heartbeat=heartbeat)
        remove_partitions(handle, config, config.metadata_partitions, clock, rebuild_plan)
        yield
        rebuild_dropped_partitions(handle, clock, heartbeat)


def _check_free(context: WriteContext) -> None:
    """Raise `CommitConflict` for a pending instant that would abort the build."""
    timeline = context.timeline
    check_no_live_writer(context.table, timeline)
    resolvable = {*incomplete_writes(timeline), *timeline.pending(ROLLBACK)}
    check_can_start(
        context.config, [pending for pending in timeline.pending() if pending not in resolvable]
    )


def _with_previous_choices(
    context: WriteContext, options: MetadataOptions, pending: PendingOperation
) -> MetadataOptions:
    """Return the options with the previous type of record index and columns of statistics.

    Columns that the options name take precedence.
    """
    version = context.config.version
    if RECORD_INDEX in pending.partitions_for(version):
        options = replace(options, record_index_by_partition=pending.has_partitioned_record_index)
    stats_choice = pending.column_stats if version.has_index_definitions else None
    if options.stats_columns or stats_choice is None or COLUMN_STATS not in pending.partitions:
        return options
    return with_column_selection(stats_choice, options, context.schema.arrow, version)


def remove_partitions(
    handle: Handle,
    config: TableConfig,
    removed: Collection[str],
    clock: Clock,
    pending: PendingOperation,
) -> TableConfig:
    """Remove partitions of the metadata table; return the new properties.

    Removing `files` removes the whole metadata table. pending: the operation that is pending
    afterwards, in addition to the removal of directories.
    """
    check_not_building(config)
    handle.lock_manager.check_held()
    storage = handle.storage
    remaining = [partition for partition in config.metadata_partitions if partition not in removed]
    pending = replace(pending, version=config.version.code, removed=in_order(set(removed)))
    if FILES in removed or not remaining:
        properties = (names.METADATA_PARTITIONS, names.METADATA_PARTITIONS_INFLIGHT)
        config = config.update(storage, pending.properties, clock, removed=properties)
        change_definitions(storage, config, {}, removed=removed)
        remove_metadata_table(storage, handle.lock_manager)
        return config
    changes = {names.METADATA_PARTITIONS: ",".join(remaining), **pending.properties}
    config = config.update(storage, changes, clock)
    change_definitions(storage, config, {}, removed=removed)
    clear_partitions(storage, removed, handle.lock_manager)
    return config


def build(
    table: Handle,
    partitions: set[str],
    options: MetadataOptions,
    clock: Clock,
    heartbeat: str,
    definitions: Definitions | None = None,
    *,
    memory: MemorySize | None = None,
) -> tuple[str, ...]:
    """Build partitions and pending ones; return all partitions of the metadata table.

    heartbeat: name of the caller's heartbeat. definitions: of the secondary and expression indexes
    to build. memory: see `memory_limit`.
    """
    context, pending, definitions = open_recovered(
        lambda: _open_for_build(table, options, clock, definitions or {})
    )
    options = _with_previous_choices(context, options, pending)
    context = _without_leftovers(table, context, pending, clock)
    config = context.config
    partitions = partitions | set(pending.partitions_for(config.version))
    partitions = set(maintainable_partitions(partitions, context.schema, options))
    if not partitions - set(config.metadata_partitions):
        return _clear_record(context.table, config, pending).metadata_partitions
    arguments = (context.table, partitions, options, memory_limit(memory), definitions)
    if pending:
        return initialize_partitions(*arguments).metadata_partitions
    with _record_build(context, partitions, options, definitions, heartbeat):
        return initialize_partitions(*arguments).metadata_partitions


def _open_for_build(
    table: Handle, options: MetadataOptions, clock: Clock, definitions: Definitions
) -> tuple[WriteContext, PendingOperation, Definitions]:
    """Return the recovered table, its pending operation, and all definitions to build."""
    context = WriteContext.open(table.without_index_options(), clock)
    pending = PendingOperation.of(context.config)
    check_indexed_columns(definitions, context.schema)
    definitions = {**pending.index_definitions, **definitions}
    check_maintainable(definitions, context.config, parse_definitions(definitions), context.schema)
    check_nested(context.config, options.stats_columns)
    check_no_live_writer(context.table, context.timeline)
    return context.recover(), pending, definitions


@contextmanager
def _record_build(
    context: WriteContext,
    partitions: Collection[str],
    options: MetadataOptions,
    definitions: Definitions,
    heartbeat: str,
) -> Iterator[None]:
    """Record the build in the properties during the block; a failure removes the record."""
    config, clock = context.config, context.table.clock
    new = in_order({*partitions, FILES} - {*config.metadata_partitions})
    own_definitions = new_definitions(
        new, PartitionRequest(config, options, schema=context.schema.arrow)
    )
    pending = PendingOperation(
        heartbeat, config.version.code, new, {**own_definitions, **definitions}, removed=new
    )
    try:
        config.update(context.storage, pending.properties, clock)
        yield
    except BaseException:
        with suppress(Exception):
            # A writer that takes the build over, once the lock is lost, uses the same name.
            context.table.lock_manager.check_held()
            config = TableConfig.load(context.storage, clock)
            if PendingOperation.of(config).heartbeat == heartbeat:
                _clear_record(context.table, config, pending)
        raise


def _without_leftovers(
    table: Handle, context: WriteContext, pending: PendingOperation, clock: Clock
) -> WriteContext:
    """Clean up after an interrupted change of the table's version; return the context."""
    if pending.changes_layout:
        remove_other_timeline(context.storage, context.config)
    # The compaction is not possible if Hudi has built a metadata table in the meantime.
    if not pending or context.config.metadata_partitions:
        return context
    work = row_compaction(pending.heartbeat)
    if complete_pending(context.table, work, own_only=bool(pending.heartbeat)):
        return WriteContext.open(table.without_index_options(), clock).recover()
    return context


def _clear_record(
    table: TableSnapshot, config: TableConfig, pending: PendingOperation
) -> TableConfig:
    """Remove the record of a finished operation and leftover directories."""
    if not pending:
        return config
    storage, clock = table.storage, table.clock
    existing = config.metadata_partitions
    if not existing:
        remove_metadata_table(storage, table.lock_manager)
    leftover = [name for name in pending.removed if name not in existing]
    clear_partitions(storage, leftover, table.lock_manager)
    return config.update(storage, {}, clock, removed=(PENDING_OPERATION,))
