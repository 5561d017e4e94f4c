"""Making, making anew and taking away the metadata table or single partitions of it.

What carries out `create_table`, `HudiTable.rebuild_metadata`, `create_index` and `drop_index`, and
behind a write with `hoodie.metadata.enable=true` to a table that lacks something. What is taken
away leaves the properties first, then the definitions, then storage, so that nobody reads half of
it; what is to come back stands in the properties instead (`metadata/pending_operation.py`), and
whoever writes next makes it where its writer died. What a partition holds is not known here.
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
from pyhudi.metadata.index_definitions import index_definitions, parse_definitions
from pyhudi.metadata.index_definitions_file import Definitions, change_definitions
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
from pyhudi.timeline.layout_cleanup import remove_other_timeline
from pyhudi.txn.heartbeat import live_instants
from pyhudi.txn.recovery import check_no_live_writer, find_failed_writes
from pyhudi.write import abandoned_indexing, async_indexing
from pyhudi.write.checks import check_indexed_columns
from pyhudi.write.input_rows import memory_limit
from pyhudi.write.write_context import Handle, WritableTable, WriteContext, open_for_change

_INFLIGHT = "hoodie.table.metadata.partitions.inflight"


def partitions_for_new_table(config: TableConfig, options: Mapping[str, str]) -> tuple[str, ...]:
    """The partitions of a new table's metadata table, none where it gets no such table.

    A record index is among them unless another index is chosen or the table has no key. Raises
    `ConfigError` and `UnsupportedTableFeature` for options that do not go with the table.
    """
    chosen = MetadataOptions.of(options)
    if chosen.record_index and chosen.enable is False:
        msg = f"{METADATA_ENABLE} is false, but a record index is enabled"
        raise ConfigError(msg, hint="A record index is part of the metadata table.")
    if not chosen.for_new_table:
        return ()
    schema = _native.arrow_schema(_native.with_meta_fields(config.create_schema or ""))
    wish = PartitionRequest(config, chosen, by_default=INDEX_TYPE not in options, schema=schema)
    wanted = select_partitions(wish)
    new_definitions(wanted, wish)
    return wanted


def with_pending_partitions(
    config: TableConfig, wanted: Collection[str], options: Mapping[str, str], clock: Clock
) -> TableConfig:
    """A new table's properties that say which partitions it is about to get."""
    definitions = new_definitions(wanted, PartitionRequest(config, MetadataOptions.of(options)))
    by = InstantGenerator(clock, config.timezone).next()
    undone = PendingOperation(by, config.version.code, in_order(set(wanted)), definitions)
    return TableConfig({**config.properties, **undone.properties})


def make_partitions(table: WritableTable, wanted: Collection[str]) -> None:
    """Makes partitions of the metadata table by the options of the table's handle."""
    clock = SystemClock()
    handle = Handle.of(table, clock)
    with _at_work(handle, clock) as (_, by):
        _make(handle, set(wanted), MetadataOptions.of(table.options), clock, by)


def before_write(table: WritableTable, clock: Clock | None) -> TableConfig:
    """Ends what a writer that died has begun, and makes what the handle's options want; the config.

    Options matter only where `hoodie.metadata.enable` is given as true. Raises as
    `initialize_partitions` does, and as opening the table for a write does; `CommitConflict` where
    another is at work.
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
    wanted = set(select_partitions(PartitionRequest(config, options)))
    if config.metadata_partitions:
        # What was dropped, or left out when the table was made, comes back by its own option alone.
        asked = {COLUMN_STATS: options.column_stats, PARTITION_STATS: options.partition_stats}
        wanted -= {name for name, flag in asked.items() if not flag}
    if not wanted - set(config.metadata_partitions):
        return config
    with _at_work(handle, clock) as (_, by):
        _make(handle, wanted, options, clock, by)
    return TableConfig.load(table.storage, clock)


def finish_pending_operation(table: WritableTable, clock: Clock | None) -> TableConfig:
    """The table's properties, after what a writer that died has begun was ended.

    Where that fails it stays undone, with a `MetadataTableWarning`. Rows are right all the same: a
    record index that is to be made again is stood in for by looking at all rows. Raises
    `CommitConflict` where who began it is at work.
    """
    clock = clock or SystemClock()
    known = table.known if isinstance(table, Handle) else None
    config = TableConfig.load(table.storage, clock, known)
    undone = PendingOperation.of(config)
    if not undone or not config.version.writable:
        return config
    if undone.beside and live_instants(table.storage, {undone.by}, clock):
        return config
    handle = Handle.of(table, clock)
    with _at_work(handle, clock) as (config, by):
        # Another writer may have been faster.
        if PendingOperation.of(config):
            rebuild_dropped_partitions(handle, clock, by)
    return TableConfig.load(table.storage, clock)


def define_statistics(table: WritableTable, clock: Clock | None = None) -> None:
    """Rebuilds column statistics that have no definition, with the columns that Hudi chooses.

    Which columns the old ones are of, and of which index version, nothing tells.
    """
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    config = TableConfig.load(handle.storage, clock)
    if not _has_undefined_statistics(handle, config):
        return
    with _at_work(handle, clock) as (config, by):
        if _has_undefined_statistics(handle, config):
            gone = [
                name
                for name in config.metadata_partitions
                if name in (COLUMN_STATS, PARTITION_STATS)
            ]
            before = PendingOperation.of(config)
            again = replace(all_of(handle.storage, config), by=by, moving=before.moving)
            _take_away(handle, config, gone, clock, again)
            rebuild_dropped_partitions(handle, clock, by)


def _has_undefined_statistics(handle: Handle, config: TableConfig) -> bool:
    try:
        check_defined(config, index_definitions(handle.storage, config))
    except UndefinedStatistics:
        return True
    return False


def catch_up(table: WritableTable, clock: Clock | None = None) -> bool:
    """Adds commits that the metadata table lacks; whether that was possible (`catching_up.py`)."""
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    with handle.guarded.critical_section():
        opened = open_for_change(handle, clock)
        check_no_live_writer(opened, opened.timeline)
        return catching_up.catch_up(opened)


@contextmanager
def _at_work(handle: Handle, clock: Clock) -> Iterator[tuple[TableConfig, str]]:
    with build_heartbeat(handle.storage, clock, handle.guarded) as (config, by):
        if PendingOperation.of(config).beside:
            async_indexing.remove_left(open_for_change(handle, clock, config), by)
        yield config, by


def rebuild_dropped_partitions(table: Handle, clock: Clock, by: str) -> None:
    """Gives back what the table's properties say it is to have again, if that can be."""
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
    """Makes the metadata table anew; see `HudiTable.rebuild_metadata`, whose limit is `memory`.

    stale: paths that it lists although their commits were rolled back.
    """
    clock, memory = clock or SystemClock(), memory_limit(memory)
    handle = Handle.of(table, clock)
    options = MetadataOptions.of(table.options)
    define_statistics(handle, clock)
    with _at_work(handle, clock) as (config, by):
        again = all_of(table.storage, config)
        check_makeable(again.partitions)
        wanted = again.partitions_for(config.version)
        if not again.partitions:
            wanted = select_partitions(PartitionRequest(config, options))
        context = WriteContext.open(handle.without_index_options(), clock)
        _check_free(context)
        context.check_files(stale)
        as_before = _as_before(context, options, again)
        new_definitions(wanted, PartitionRequest(config, as_before, schema=context.schema.arrow))
        if again.partitions:
            moving = PendingOperation.of(config).moving
            again = replace(again, by=by, moving=moving)
            _take_away(handle, config, config.metadata_partitions, clock, again)
        return _make(handle, set(wanted), options, clock, by, memory=memory)


@contextmanager
def without_metadata_table(handle: Handle, clock: Clock) -> Iterator[None]:
    """Takes the metadata table away for the block, and makes it anew after that.

    Where the block or the making fails, the next write makes it.
    """
    with _at_work(handle, clock) as (config, by):
        again = replace(all_of(handle.storage, config), by=by)
        _take_away(handle, config, config.metadata_partitions, clock, again)
        yield
        rebuild_dropped_partitions(handle, clock, by)


def _check_free(context: WriteContext) -> None:
    """Raises `CommitConflict` for what would end a making halfway."""
    timeline = context.timeline
    check_no_live_writer(context.table, timeline)
    settled = {*find_failed_writes(timeline), *timeline.pending(ROLLBACK)}
    check_can_start(context.config, [begun for begun in timeline.pending() if begun not in settled])


def _as_before(
    context: WriteContext, options: MetadataOptions, undone: PendingOperation
) -> MetadataOptions:
    """The options with the kind of record index and the columns with statistics that there were.

    Columns that the options name come before.
    """
    version = context.config.version
    if RECORD_INDEX in undone.partitions_for(version):
        options = replace(options, record_index_by_partition=undone.by_partition)
    known = undone.column_stats if version.has_index_definitions else None
    if options.stats_columns or known is None or COLUMN_STATS not in undone.partitions:
        return options
    return with_column_choice(known, options, context.schema.arrow, version)


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
    kind = kind_asked(asked)
    options = MetadataOptions.of(table.options)
    finish_pending_operation(handle, clock)
    if concurrently:
        return async_indexing.create(handle, asked, options, clock)
    with _at_work(handle, clock) as (config, by):
        if kind.has_names:
            defined = kind.define(table.storage, config, asked)
            _check_new(config, *defined)
            return _make(handle, set(defined), options, clock, by, defined)
        _check_new(config, kind.name)
        only = kind.options_for_create_index(options, asked)
        wanted = partitions_asked(kind, PartitionRequest(config, only))
        return _make(handle, set(wanted), only, clock, by)


def _check_new(config: TableConfig, name: str) -> None:
    if name in (*config.metadata_partitions, *PendingOperation.of(config).partitions):
        msg = f"the table already has the index {name}"
        raise ConfigError(msg, hint="Drop it first to create another one.")


def drop_index(table: WritableTable, name: str, clock: Clock | None = None) -> tuple[str, ...]:
    """Takes an index away; see `HudiTable.drop_index`."""
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    left_by_hudi = abandoned_indexing.take_back(handle, name, clock)
    if left_by_hudi:
        return left_by_hudi
    with _at_work(handle, clock) as (config, by):
        gone = _partitions_to_drop(config, name)
        undone = PendingOperation.of(config)
        left = replace(
            undone,
            by=by,
            partitions=tuple(kept for kept in undone.partitions if kept not in gone),
            definitions={k: kept for k, kept in undone.definitions.items() if k not in gone},
        )
        kept = _take_away(handle, config, gone, clock, left)
        if undone:
            kept.update(table.storage, left.properties, clock)
        else:
            kept.update(table.storage, {}, clock, removed=(UNFINISHED,))
    return gone


def _partitions_to_drop(config: TableConfig, name: str) -> tuple[str, ...]:
    """The partitions that go with an index. Raises `ConfigError` where there is none.

    Those that are to be made again count as there.
    """
    listed = tuple(
        dict.fromkeys((*config.metadata_partitions, *PendingOperation.of(config).partitions))
    )
    named = (kind.name + name for kind in KINDS if kind.has_names)
    found = next((partition for partition in (name, *named) if partition in listed), None)
    if found is None:
        msg = f"the table has no index {name!r}"
        raise ConfigError(msg, hint=f"It has {', '.join(listed) or 'no metadata table'}.")
    if found == FILES:
        return listed
    gone = [found]
    for kind, other in kinds_of(listed):
        if kind.needs == found and not kind.goes_along:
            msg = f"the index {other} needs {found}"
            raise ConfigError(msg, hint=f"Drop {other} first.")
        if kind.needs == found:
            gone.append(other)
    return tuple(partition for partition in listed if partition in gone)


def _take_away(
    handle: Handle,
    config: TableConfig,
    gone: Collection[str],
    clock: Clock,
    undone: PendingOperation,
) -> TableConfig:
    """Partitions of the metadata table, or with `files` all of it; gives the new properties.

    undone: what is left to be done then, beside removing folders.
    """
    check_not_building(config)
    handle.guarded.check_held()
    storage = handle.storage
    left = [partition for partition in config.metadata_partitions if partition not in gone]
    undone = replace(undone, version=config.version.code, removed=in_order(set(gone)))
    if FILES in gone or not left:
        properties = (names.METADATA_PARTITIONS, _INFLIGHT)
        config = config.update(storage, undone.properties, clock, removed=properties)
        change_definitions(storage, config, {}, removed=gone)
        remove_metadata_table(storage, handle.guarded)
        return config
    changes = {names.METADATA_PARTITIONS: ",".join(left), **undone.properties}
    config = config.update(storage, changes, clock)
    change_definitions(storage, config, {}, removed=gone)
    clear_partitions(storage, gone, handle.guarded)
    return config


def _make(
    table: Handle,
    wanted: set[str],
    options: MetadataOptions,
    clock: Clock,
    by: str,
    definitions: Definitions | None = None,
    *,
    memory: int | None = None,
) -> tuple[str, ...]:
    """Makes partitions with those that are undone, and gives all that the table has then.

    by: name of the caller's heartbeat. definitions: those of secondary and expression indexes among
    them. memory: as of `memory_limit`.
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
    wanted = wanted | set(undone.partitions_for(config.version))
    wanted = set(can_be_kept(wanted, context.schema, options))
    if not wanted - set(config.metadata_partitions):
        return _clear_record(context.table, config, undone).metadata_partitions
    arguments = (context.table, wanted, options, memory_limit(memory), definitions)
    if undone:
        return initialize_partitions(*arguments).metadata_partitions
    with _record_build(context, wanted, options, definitions, by):
        return initialize_partitions(*arguments).metadata_partitions


@contextmanager
def _record_build(
    context: WriteContext,
    wanted: Collection[str],
    options: MetadataOptions,
    definitions: Definitions,
    by: str,
) -> Iterator[None]:
    """For the block the properties say what is being made; what fails alive is made by nobody."""
    config, clock = context.config, context.table.clock
    new = in_order({*wanted, FILES} - {*config.metadata_partitions})
    own = new_definitions(new, PartitionRequest(config, options, schema=context.schema.arrow))
    begun = PendingOperation(by, config.version.code, new, {**own, **definitions}, removed=new)
    try:
        config.update(context.storage, begun.properties, clock)
        yield
    except BaseException:
        with suppress(Exception):
            # One who goes on with it after the lock was lost does so under the same name.
            context.table.guard.check_held()
            config = TableConfig.load(context.storage, clock)
            if PendingOperation.of(config).by == by:
                _clear_record(context.table, config, begun)
        raise


def _without_leftovers(
    table: Handle, context: WriteContext, undone: PendingOperation, clock: Clock
) -> WriteContext:
    """The context after what a change of the table's version has left was ended or removed."""
    if undone.moving:
        remove_other_timeline(context.storage, context.config)
    # Where Hudi has made a metadata table since, the compaction would have to go into it.
    if not undone or context.config.metadata_partitions:
        return context
    work = row_compaction(undone.by)
    if complete_pending(context.table, work, own=bool(undone.by)):
        return WriteContext.open(table.without_index_options(), clock).recover()
    return context


def _clear_record(
    table: TableSnapshot, config: TableConfig, undone: PendingOperation
) -> TableConfig:
    """The properties without what was undone and is done; left folders go."""
    if not undone:
        return config
    storage, clock = table.storage, table.clock
    listed = config.metadata_partitions
    if not listed:
        remove_metadata_table(storage, table.guard)
    left = [name for name in undone.removed if name not in listed]
    clear_partitions(storage, left, table.guard)
    return config.update(storage, {}, clock, removed=(UNFINISHED,))
