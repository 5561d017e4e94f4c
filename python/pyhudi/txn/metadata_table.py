"""Making, making anew and taking away the metadata table or single partitions of it.

The deeds behind `create_table`, `HudiTable.rebuild_metadata`, `create_index` and `drop_index`, and
behind a write with `hoodie.metadata.enable=true` to a table that lacks something. What is taken
away leaves the properties first, then the definitions, then storage, so that nobody reads half of
it. What a partition holds is not known here.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyhudi import _native
from pyhudi import property_names as names
from pyhudi.clock import Clock, SystemClock
from pyhudi.config import TableConfig
from pyhudi.errors import ConfigError, HudiError, MetadataTableWarning, UnsupportedTableFeature
from pyhudi.index.options import INDEX_TYPE
from pyhudi.metadata.define import Definitions, change_definitions, stored_definitions
from pyhudi.metadata.definitions import SECONDARY_INDEX, index_definitions, parse_definitions
from pyhudi.metadata.initialise import check_can_start, initialise
from pyhudi.metadata.options import METADATA_ENABLE, MetadataOptions
from pyhudi.metadata.partitioned import is_partitioned
from pyhudi.metadata.support import check_index
from pyhudi.metadata.table import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    FOLDER,
    PARTITION_STATS,
    RECORD_INDEX,
)
from pyhudi.metadata.wanted import (
    check_makeable,
    check_nested,
    in_order,
    stats_columns,
    wanted_partitions,
)
from pyhudi.schema import field_at
from pyhudi.timeline.instants import ROLLBACK
from pyhudi.txn.intake import memory_limit
from pyhudi.txn.row_indexes import IndexRequest, definition
from pyhudi.txn.schema_ids import check_names
from pyhudi.txn.session import Session
from pyhudi.txn.transaction import check_no_live_writer, failed_writes

if TYPE_CHECKING:
    from pyhudi.engine.protocol import Engine
    from pyhudi.storage import Storage
    from pyhudi.txn.session import WritableTable
    from pyhudi.version import TableVersion

_INFLIGHT = "hoodie.table.metadata.partitions.inflight"
_MADE_HERE = (COLUMN_STATS, BLOOM_FILTERS, RECORD_INDEX, SECONDARY_INDEX)
_OTHER_INDEXES = ("secondary_index_", "expr_index_")
_GO_TOGETHER = {COLUMN_STATS: PARTITION_STATS}
"""A partition that is of no use without another one."""


@dataclass(frozen=True)
class _Plain:
    """A table's handle without options of how to find keys, which a table may not allow yet."""

    storage: Storage
    engine: Engine
    options: Mapping[str, str] = field(default_factory=dict)


def wanted_for_new(config: TableConfig, options: Mapping[str, str]) -> tuple[str, ...]:
    """The partitions of a new table's metadata table, none where it gets no such table.

    A record index is among them unless another index is chosen or the table has no key. Raises
    `ConfigError` and `UnsupportedTableFeature` for options that do not go with the table.
    """
    chosen = MetadataOptions.of(options)
    if chosen.record_index and chosen.enable is False:
        msg = f"{METADATA_ENABLE} is false, but a record index is wanted"
        raise ConfigError(msg, hint="A record index is part of the metadata table.")
    if not chosen.for_new_table:
        return ()
    wanted = wanted_partitions(config, chosen, index_by_default=INDEX_TYPE not in options)
    if COLUMN_STATS in wanted:
        schema = _native.arrow_schema(_native.with_meta_fields(config.create_schema or ""))
        stats_columns(schema, chosen)
    return wanted


def make_partitions(table: WritableTable, wanted: Collection[str]) -> None:
    """Makes partitions of the metadata table by the options of the table's handle."""
    _make(table, set(wanted), MetadataOptions.of(table.options), SystemClock())


def before_write(table: WritableTable, clock: Clock | None) -> None:
    """Makes what the handle's options want of a metadata table and the table lacks.

    Only where `hoodie.metadata.enable` is given as true. Raises as `initialise` does, and as
    opening the table for a write does.
    """
    if table.options.get(METADATA_ENABLE, "").strip().lower() != "true":
        return
    clock = clock or SystemClock()
    config = TableConfig.load(table.storage, clock)
    options = MetadataOptions.of(table.options)
    wanted = set(wanted_partitions(config, options, index_by_default=False))
    if config.metadata_partitions:
        # What was dropped, or left out when the table was made, comes back by its own option alone.
        asked = {COLUMN_STATS: options.column_stats, PARTITION_STATS: options.partition_stats}
        wanted -= {name for name, flag in asked.items() if not flag}
    if wanted - set(config.metadata_partitions):
        _make(table, wanted, options, clock)


def rebuild(table: WritableTable, clock: Clock | None = None) -> tuple[str, ...]:
    """Makes the metadata table anew; see `HudiTable.rebuild_metadata`."""
    clock = clock or SystemClock()
    config = TableConfig.load(table.storage, clock)
    options = MetadataOptions.of(table.options)
    wanted = config.metadata_partitions or wanted_partitions(
        config, options, index_by_default=False
    )
    check_makeable(tuple(wanted))
    session = Session.open(_Plain(table.storage, table.engine), clock)
    _check_free(session)
    options = _as_before(session, options)
    if COLUMN_STATS in wanted:
        stats_columns(session.schema.arrow, options)
    kept = {
        name: one
        for name, one in stored_definitions(table.storage, config).items()
        if name in wanted and name.startswith(_OTHER_INDEXES)
    }
    _take_away(table.storage, config, config.metadata_partitions, clock)
    return _make(table, set(wanted), options, clock, kept)


def _check_free(session: Session) -> None:
    """Raises `CommitConflict` for what would end a making halfway."""
    timeline = session.timeline
    check_no_live_writer(session.writer, timeline)
    settled = {*failed_writes(timeline), *timeline.pending(ROLLBACK)}
    check_can_start(session.config, [one for one in timeline.pending() if one not in settled])


def _as_before(session: Session, options: MetadataOptions) -> MetadataOptions:
    """The options with the kind of record index and the columns with statistics that there are.

    Columns that the options name come before.
    """
    config = session.config
    defined = index_definitions(session.storage, config)
    known = defined.get(RECORD_INDEX)
    if RECORD_INDEX in config.metadata_partitions:
        by_partition = known is not None and known.is_partitioned
        options = replace(options, record_index_by_partition=by_partition)
    known = defined.get(COLUMN_STATS)
    if options.stats_columns or known is None or COLUMN_STATS not in config.metadata_partitions:
        return options
    return replace(options, stats_columns=_left(session, known.columns))


def _left(session: Session, columns: Iterable[str]) -> tuple[str, ...]:
    """Those of columns with statistics that the table still has."""
    return tuple(name for name in columns if field_at(session.schema.arrow, name) is not None)


@dataclass(frozen=True)
class Remaking:
    """A metadata table that goes because the table's version changes, to be made again."""

    partitions: tuple[str, ...]
    """None where the new version's writers have no metadata table of pyhudi's."""
    stats_columns: tuple[str, ...] = ()
    """Columns that have statistics now, where the table says which."""


def remaking(storage: Storage, config: TableConfig, version: TableVersion) -> Remaking:
    """What there will be of the metadata table when the table has another version.

    Partitions that the version does not have, or that pyhudi does not make, are left out.
    """
    if not version.writable:
        return Remaking(())
    kept = {*config.metadata_partitions} & {*_MADE_HERE, FILES, PARTITION_STATS}
    if not version.has_index_definitions:
        kept -= {PARTITION_STATS}
    if is_partitioned(storage, config):
        kept -= {RECORD_INDEX}
    if not version.has_index_definitions or not config.version.has_index_definitions:
        return Remaking(in_order(kept))
    known = index_definitions(storage, config).get(COLUMN_STATS)
    columns = () if known is None else known.columns
    # Writers of version 8 fail on the fields of structs.
    left = (name for name in columns if version.index_versions or "." not in name)
    return Remaking(in_order(kept), tuple(left))


def make_again(table: WritableTable, wanted: Remaking, clock: Clock) -> None:
    """Makes a metadata table after the table's version has changed.

    Where that fails the table stays without, with a `MetadataTableWarning`.
    """
    if not wanted.partitions:
        return
    options = MetadataOptions.of(table.options)
    try:
        session = Session.open(_Plain(table.storage, table.engine), clock)
        _check_free(session)
        check_nested(session.config, options.stats_columns)
        columns = options.stats_columns or _left(session, wanted.stats_columns)
        options = replace(options, stats_columns=columns)
        _make(table, set(wanted.partitions), options, clock)
    except HudiError as error:
        warnings.warn(
            f"{table.storage.uri}: the metadata table was not made again: {error}",
            MetadataTableWarning,
            stacklevel=2,
        )


def create_index(
    table: WritableTable, asked: IndexRequest, clock: Clock | None = None
) -> tuple[str, ...]:
    """Adds an index to the metadata table; see `HudiTable.create_index`."""
    clock = clock or SystemClock()
    kind, columns = asked.kind, asked.columns
    if kind not in _MADE_HERE:
        msg = f"hoodie.table.metadata.partitions: pyhudi makes no index of the kind {kind!r}"
        raise UnsupportedTableFeature(msg, hint=f"One of {', '.join(_MADE_HERE)}.")
    config = TableConfig.load(table.storage, clock)
    options = MetadataOptions.of(table.options)
    if asked.is_named:
        defined = definition(table.storage, config, asked)
        _check_new(config, *defined)
        return _make(table, set(defined), options, clock, defined)
    _check_new(config, kind)
    if columns and kind != COLUMN_STATS:
        msg = f"the index {kind} is over the record key: it takes no columns"
        raise ConfigError(msg)
    only = replace(
        options,
        column_stats=kind == COLUMN_STATS,
        partition_stats=options.partition_stats if kind == COLUMN_STATS else None,
        bloom_filters=kind == BLOOM_FILTERS,
        record_index=kind == RECORD_INDEX,
        record_index_by_partition=asked.partitioned or options.record_index_by_partition,
        stats_columns=columns or options.stats_columns,
    )
    wanted = wanted_partitions(config, only, index_by_default=False)
    return _make(table, set(wanted), only, clock)


def _check_new(config: TableConfig, name: str) -> None:
    if name in config.metadata_partitions:
        msg = f"the table has the index {name} already"
        raise ConfigError(msg, hint="Drop it first to make another one.")


def drop_index(table: WritableTable, name: str, clock: Clock | None = None) -> tuple[str, ...]:
    """Takes an index away; see `HudiTable.drop_index`."""
    clock = clock or SystemClock()
    config = TableConfig.load(table.storage, clock)
    gone = _dropped(config, name)
    _take_away(table.storage, config, gone, clock)
    return gone


def _dropped(config: TableConfig, name: str) -> tuple[str, ...]:
    """The partitions that go with an index. Raises `ConfigError` where there is none."""
    listed = config.metadata_partitions
    found = next(
        (one for one in (name, *(prefix + name for prefix in _OTHER_INDEXES)) if one in listed),
        None,
    )
    if found is None:
        msg = f"the table has no index {name!r}"
        raise ConfigError(msg, hint=f"It has {', '.join(listed) or 'no metadata table'}.")
    if found == FILES:
        return listed
    secondary = [one for one in listed if one.startswith(_OTHER_INDEXES[0])]
    if found == RECORD_INDEX and secondary:
        msg = f"the index {secondary[0]} needs {RECORD_INDEX}"
        raise ConfigError(msg, hint=f"Drop {secondary[0]} first.")
    return tuple(one for one in listed if one in (found, _GO_TOGETHER.get(found)))


def _take_away(storage: Storage, config: TableConfig, gone: Collection[str], clock: Clock) -> None:
    """Partitions of the metadata table, or with `files` all of it."""
    building = config.properties.get(_INFLIGHT, "").strip()
    if building:
        msg = f"{_INFLIGHT} is {building}: another writer is building an index"
        raise UnsupportedTableFeature(msg, hint="Complete the indexing with Apache Hudi first.")
    left = [one for one in config.metadata_partitions if one not in gone]
    if FILES in gone or not left:
        properties = (names.METADATA_PARTITIONS, _INFLIGHT)
        config = config.updated(storage, {}, clock, removed=properties)
        change_definitions(storage, config, {}, removed=gone)
        storage.delete_dir(FOLDER)
        return
    config = config.updated(storage, {names.METADATA_PARTITIONS: ",".join(left)}, clock)
    change_definitions(storage, config, {}, removed=gone)
    for name in gone:
        storage.delete_dir(f"{FOLDER}/{name}")


def _make(
    table: WritableTable,
    wanted: set[str],
    options: MetadataOptions,
    clock: Clock,
    definitions: Definitions | None = None,
) -> tuple[str, ...]:
    """Makes partitions, and gives all that the table has then.

    definitions: those of secondary and expression indexes among them.
    """
    session = Session.open(_Plain(table.storage, table.engine), clock)
    check_names(session.schema, definitions or ())
    for name, one in parse_definitions(definitions or {}).items():
        check_index(session.config, name, one, session.schema.arrow)
    session = session.recovered()
    config = initialise(
        session.writer.rollback,
        session.engine,
        session.state(),
        wanted,
        options,
        memory_limit(None),
        definitions,
    )
    return config.metadata_partitions
