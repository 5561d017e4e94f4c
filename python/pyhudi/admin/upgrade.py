"""Upgrades and downgrades, in an order in which a crash leaves a table of one version.

Before anything changes, pyhudi checks everything that could prevent the upgrade: whether the table
is writable in its current and its new version, whether other writers are active, and whether each
instant can be converted.

1. The metadata table is removed, because its layout differs by version. The same change of the
  properties records its partitions, so that the next writer can rebuild it.
2. Failed writes are rolled back, log files compacted into base files.
3. The timeline is written to its new place; the old one is marked for removal.
4. The properties change in one step: from here on the table has the new version.
5. The old timeline is removed.
6. The metadata table is rebuilt, if there was one.

After a crash the table has one of the two versions; the next writer does the remaining steps
(`write/metadata_lifecycle.py`).

Hudi moves the files of the timeline one by one instead (`UpgradeDowngrade`, 1.2.0).

Up to version 6, Hudi 1.x uses the modification time of a commit's file as its completion time, and
assigns log files that are named by their own commit to slices by it. So the files get the times
that Hudi's downgrade gives them (`EightToSevenDowngradeHandler`, 1.2.0). Object stores cannot set
such times; a table with log files there raises `UnsupportedTableFeature`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from pyhudi.admin.upgrade_timeline import completions, convert_active_timeline, read_log_archive
from pyhudi.clock import Clock, SystemClock
from pyhudi.config import property_names as names
from pyhudi.config.actions import CLUSTERING, INDEXING, LOG_COMPACTION, REPLACE_COMMIT, RESTORE
from pyhudi.config.column_rules import MERGE_RULES
from pyhudi.config.formatting import HtmlRepr, names_text
from pyhudi.config.merge_mode import (
    OLD_STRATEGY_ID,
    PARTIAL_UPDATE_MODE,
    PAYLOAD_CLASS,
    STRATEGY_ID,
)
from pyhudi.config.property_names import PENDING_OPERATION
from pyhudi.config.table_config import TableConfig
from pyhudi.config.table_version import table_version
from pyhudi.config.version_properties import (
    BUILT_IN_STRATEGIES,
    LEGACY_PAYLOAD,
    MYSQL_PAYLOAD,
    VERSIONS,
    convert_properties,
    partial_mode,
    steps,
)
from pyhudi.errors import CommitConflict, ConfigError, UnsupportedTableFeature
from pyhudi.metadata.build_heartbeat import build_heartbeat
from pyhudi.metadata.index_definitions import change_definitions
from pyhudi.metadata.partition_types.registry import in_order
from pyhudi.metadata.pending_operation import PendingOperation, full_rebuild
from pyhudi.metadata.table_writer import remove_metadata_table
from pyhudi.schema.internal_schema import is_evolved
from pyhudi.schema.key_generator import CUSTOM, check_key_generator, custom_types
from pyhudi.schema.table_schema import field_at
from pyhudi.schema.virtual_keys import check_virtual_types
from pyhudi.services.compaction import (
    compact,
    complete_pending,
    row_compaction,
    slices_with_logs,
)
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.missing_files import complete_view
from pyhudi.storage.options import is_bucket
from pyhudi.storage.properties import CHECKSUM
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.timeline.archive_lsm_write import ArchivedInstant, add_to_history
from pyhudi.timeline.layout_change import MOVING, remove_instants, remove_other_timeline
from pyhudi.timeline.table_directories import make_timeline
from pyhudi.txn.recovery import check_no_live_writer
from pyhudi.write import metadata_lifecycle
from pyhudi.write.checks import check_config
from pyhudi.write.table_opening import Handle, WritableTable
from pyhudi.write.write_context import WriteContext

_COMPLEX = ("COMPLEX", "COMPLEX_AVRO")
_NULL_PARTITION = "default"


@dataclass(frozen=True)
class VersionChange(HtmlRepr):
    """A change of a table's version, done or, with `dry_run`, planned."""

    before: int
    after: int
    properties_set: dict[str, str]
    """Properties that are new or have another value."""
    properties_removed: tuple[str, ...]
    metadata_removed: tuple[str, ...]
    """Partitions of the metadata table, which is removed."""
    metadata_made: tuple[str, ...]
    """Partitions of the metadata table that are rebuilt in the new version."""
    compaction: str | None
    """Instant of the compaction before the change; None if there was nothing to compact."""
    dry_run: bool

    def __repr__(self) -> str:
        set_, removed = len(self.properties_set), len(self.properties_removed)
        parts = [f"properties: {set_} set, {removed} removed"]
        if self.metadata_removed:
            parts.append(f"metadata table removed: {names_text(self.metadata_removed)}")
        if self.metadata_made:
            parts.append(f"rebuilt: {names_text(self.metadata_made)}")
        if self.compaction is not None:
            parts.append(f"compacted first, at {self.compaction}")
        suffix = ", dry run" if self.dry_run else ""
        return f"<VersionChange {self.before} to {self.after}{suffix}: {'; '.join(parts)}>"


def change_version(table: WritableTable, to: int, *, up: bool, dry_run: bool) -> VersionChange:
    """Run `HudiTable.upgrade` or `HudiTable.downgrade`."""
    clock = SystemClock()
    handle = Handle.of(table, clock)
    storage = table.storage
    planned = partial(_plan, handle, clock=clock, to=to, up=up, dry_run=dry_run)
    change = planned(TableConfig.load(storage, clock))
    if change.before == to:
        return change
    if dry_run:
        _check_convertible(handle, to, clock)
        return change
    with build_heartbeat(storage, clock, handle.lock_manager) as (config, heartbeat):
        # Another writer may have been faster.
        change = planned(config)
        _check_convertible(handle, to, clock)
        if PendingOperation.of(config).changes_layout:
            remove_other_timeline(storage, config)
        without_metadata = _without_metadata(handle, config, clock, heartbeat, to)
        if not without_metadata.version.writable:
            _set(
                storage, without_metadata, convert_properties(without_metadata.properties, 6), clock
            )
        merge = without_metadata.is_merge_on_read and any(
            step in _COMPACTED_BEFORE for step in steps(change.before, to)
        )
        compaction = _roll_back_and_compact(handle, clock, heartbeat, merge=merge)
        _move(handle, to, clock)
        if table_version(to).writable:
            metadata_lifecycle.rebuild_dropped_partitions(handle, clock, heartbeat)
        else:
            TableConfig.load(storage, clock).update(
                storage, {}, clock, removed=(PENDING_OPERATION,)
            )
        rebuilt = in_order(set(TableConfig.load(storage, clock).metadata_partitions))
    return replace(change, compaction=compaction, metadata_made=rebuilt)


# --- before anything is written -------------------------------------------------------------------


def _plan(
    handle: Handle, config: TableConfig, *, clock: Clock, to: int, up: bool, dry_run: bool
) -> VersionChange:
    storage = handle.storage
    _check(storage, config, Timeline.load(storage, config), to, up=up)
    if config.version.code == to:
        return VersionChange(to, to, {}, (), (), (), None, dry_run)
    context = _open(handle, config, clock, to)
    check_no_live_writer(context.table, context.timeline)
    context.check_files()
    after = TableConfig(_new_properties(context.config, to, handle.options))
    _check_after(context, after)
    return _change(storage, config, after, dry_run=dry_run)


def _open(handle: Handle, config: TableConfig, clock: Clock, to: int) -> WriteContext:
    """Open the table as it will be before the conversion, before anything changes.

    Raises what opening it for a write raises.
    """
    operation = _record_operation(handle.storage, config, "unknown", to)
    remaining = {k: v for k, v in config.properties.items() if k not in _METADATA_PROPERTIES}
    bare = TableConfig({**remaining, **operation.properties})
    writable = (
        bare if bare.version.writable else TableConfig(convert_properties(bare.properties, 6))
    )
    return WriteContext.open(handle, clock, writable)


def _check_after(context: WriteContext, after: TableConfig) -> None:
    """Raise `UnsupportedTableFeature` for rules that the table's new version cannot have."""
    before = context.config
    code = after.version.code
    merger = before.merge.strategy_id
    own = before.merge.mode == "CUSTOM" and merger not in {None, *BUILT_IN_STRATEGIES}
    if own and (after.merge.mode, after.merge.strategy_id) != ("CUSTOM", merger):
        name = next(k for k in (STRATEGY_ID, OLD_STRATEGY_ID) if before.properties.get(k))
        msg = f"{name} is {merger}: version {code} would not use that merger"
        raise UnsupportedTableFeature(msg, hint="Change the version with Apache Hudi.")
    if before.merge.column_rules and after.version.writes_old_property_names:
        msg = f"{MERGE_RULES}: version {code} has no merge modes"
        raise UnsupportedTableFeature(msg, hint="Stay at version 8 or later.")
    for name in after.ordering_fields:
        if name not in before.ordering_fields and field_at(context.schema.arrow, name) is None:
            msg = (
                f"{PAYLOAD_CLASS}: version {code} orders by {name}, which is not a column of "
                "the table"
            )
            raise UnsupportedTableFeature(msg)
    if not after.version.writable:
        return
    check_config(after)
    check_virtual_types(after, context.schema.arrow)


def _new_properties(config: TableConfig, to: int, options: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of another version.

    Up to version 6 an option has the types of a custom key generator's fields, from 8 on the
    property. Raises `UnsupportedTableFeature` if neither has them.
    """
    converted = convert_properties(config.properties, to)
    custom = check_key_generator(config) == CUSTOM and config.partition_fields
    if custom and (6, 8) in steps(config.version.code, to):
        types = custom_types(config, options).items()
        converted[names.PARTITION_FIELDS] = ",".join(
            f"{name}:{field_type}" for name, field_type in types
        )
    return converted


def _check_convertible(handle: Handle, to: int, clock: Clock) -> None:
    """Raise the errors that writing the timeline's new files would raise."""
    old = TableConfig.load(handle.storage, clock)
    new = TableConfig(_new_properties(old, to, handle.options))
    if new.layout.folder != old.layout.folder:
        _, files = _convert_timeline(handle.storage, old, new, clock)
        deque(files, maxlen=0)


def _check(storage: Storage, config: TableConfig, timeline: Timeline, to: int, *, up: bool) -> None:
    code = config.version.code
    if to not in VERSIONS:
        msg = f"there is no table version {to}"
        raise ConfigError(msg, hint=f"Choose one of {', '.join(map(str, VERSIONS))}.")
    timeline.check_whole()
    if (to < code) if up else (to > code):
        verb, other = ("upgrade", "downgrade") if up else ("downgrade", "upgrade")
        msg = f"the table has version {code}: {verb} does not lead to {to}"
        raise ConfigError(msg, hint=f"Use {other}.")
    # Failed overwrites are rolled back like any write; clusterings have a plan.
    services = timeline.pending(LOG_COMPACTION, CLUSTERING, REPLACE_COMMIT, INDEXING, RESTORE)
    services = tuple(
        instant
        for instant in services
        if instant.action != REPLACE_COMMIT or timeline.is_clustering(instant)
    )
    if services and to != code:
        msg = f"{services[0]} is pending"
        raise CommitConflict(msg, hint="Complete it, or roll it back, first.")
    if to != code and config.base_extension is None:
        msg = f"{config.not_parquet}: pyhudi only reads such tables"
        raise UnsupportedTableFeature(msg, hint="Change the version with Apache Hudi.")
    if to != code and is_evolved(storage, timeline):
        msg = "hoodie.schema.on.read.enable: the schema history differs by table version"
        raise UnsupportedTableFeature(msg, hint="Change the version with Apache Hudi.")
    for step in steps(code, to):
        _check_step(storage, config, timeline, step)
    if (6, 8) in steps(code, to) and config.is_merge_on_read:
        _check_log_commits(storage, config, timeline)
    if (8, 6) in steps(code, to) and config.is_merge_on_read:
        _check_times(storage, config, timeline)


def _check_log_commits(storage: Storage, config: TableConfig, timeline: Timeline) -> None:
    """Raise `UnsupportedTableFeature` for log files whose commits are no longer recorded.

    From version 8 on, a log file belongs to a slice by the completion time of its commit. A log
    file from before a downgrade is named by its commit, and Hudi's downgrade drops archived commits
    (1.2.0).
    """
    old = [
        log
        for group in FileSystemView(storage, config, timeline).groups.values()
        for log in group.logs
        if timeline.is_before_start(log.instant)
        and all(base.instant != log.instant for base in group.bases)
    ]
    archived = {instant.requested for instant in timeline.archive.instants()} if old else set()
    lost = next((log for log in old if log.instant not in archived), None)
    if lost is not None:
        raise UnsupportedTableFeature(
            f"{lost.path}: neither the timeline nor the archive has its commit, so version 8 "
            "cannot order it",
            hint=_WITHOUT_LOGS.format("upgrade"),
        )


def _check_times(storage: Storage, config: TableConfig, timeline: Timeline) -> None:
    """Raise `UnsupportedTableFeature` for log files if the storage cannot set file times."""
    if not is_bucket(storage.uri):
        return
    for group in FileSystemView(storage, config, timeline).groups.values():
        for log in group.logs:
            msg = (
                f"{names.TABLE_VERSION}: Hudi 1.x orders {log.path} in version 6 by the "
                "modification time of its instant file, which object stores cannot set"
            )
            raise UnsupportedTableFeature(msg, hint=_WITHOUT_LOGS.format("downgrade"))


def _check_step(
    storage: Storage, config: TableConfig, timeline: Timeline, step: tuple[int, int]
) -> None:
    """Raise `UnsupportedTableFeature` with the property that rules out one step."""
    problem = None
    indexes = [name for name in full_rebuild(storage, config).partitions if "_index_" in name]
    single = len(config.record_key_fields) == 1
    legacy = config.properties.get(LEGACY_PAYLOAD)
    if indexes:
        problem = f"{names.METADATA_PARTITIONS} has {indexes[0]}: drop the index first"
    elif step == (4, 5) and _NULL_PARTITION in {
        path.rsplit("/", 1)[-1].rsplit("=", 1)[-1] for path in storage.list_dir("")[0]
    }:
        problem = f"{names.PARTITION_FIELDS}: rows without a value are in the directory default"
    elif step in ((8, 9), (9, 8)) and config.key_generator in _COMPLEX and single:
        problem = (
            f"{names.KEY_GENERATOR_TYPE} is {config.key_generator} with one key field, whose keys "
            "versions 8 and 9 format differently"
        )
    elif step == (8, 6) and timeline.archive.instants():
        problem = f"{names.HISTORY_PATH}: the archived timeline cannot be converted back"
    elif step == (9, 8) and len(config.ordering_fields) > 1 and legacy != MYSQL_PAYLOAD:
        problem = f"{names.ORDERING_FIELDS} names several fields, version 8 supports one"
    elif step == (9, 8) and config.merge.partial_update_mode != partial_mode(legacy):
        mode = config.merge.partial_update_mode
        problem = f"{PARTIAL_UPDATE_MODE} is {mode}, but {LEGACY_PAYLOAD} {legacy}"
    if problem:
        msg = f"{problem}, so version {step[0]} cannot become {step[1]}"
        raise UnsupportedTableFeature(msg, hint="Keep the version, or change the table first.")


def _change(
    storage: Storage, config: TableConfig, after: TableConfig, *, dry_run: bool
) -> VersionChange:
    before, new = (
        {k: v for k, v in each.properties.items() if k not in _NOT_LISTED}
        for each in (config, after)
    )
    return VersionChange(
        before=config.version.code,
        after=after.version.code,
        properties_set={k: v for k, v in sorted(new.items()) if before.get(k) != v},
        properties_removed=tuple(sorted(before.keys() - new.keys())),
        metadata_removed=config.metadata_partitions,
        metadata_made=full_rebuild(storage, config).partitions_for(after.version),
        compaction=None,
        dry_run=dry_run,
    )


_COMPACTED_BEFORE = ((6, 8), (8, 9), (9, 8), (8, 6), (6, 5))
"""Steps before which Hudi compacts too, so that no log file is read under another rule."""

_WITHOUT_LOGS = (
    "Call compact(), then clean(policy='KEEP_LATEST_FILE_VERSIONS', retain=1), which removes old "
    "file slices, then {}()."
)
_METADATA_PROPERTIES = (names.METADATA_PARTITIONS, names.METADATA_PARTITIONS_INFLIGHT)
_NOT_LISTED = (PENDING_OPERATION, CHECKSUM)
"""Properties whose changes a `VersionChange` does not list."""


# --- the change -----------------------------------------------------------------------------------


def _without_metadata(
    handle: Handle, config: TableConfig, clock: Clock, heartbeat: str, to: int
) -> TableConfig:
    """Remove the metadata table, and record in the properties that it must be rebuilt.

    The properties change first, so that no reader uses a part of it.
    """
    storage, listed = handle.storage, config.metadata_partitions
    operation = _record_operation(storage, config, heartbeat, to)
    config = config.update(storage, operation.properties, clock, removed=_METADATA_PROPERTIES)
    change_definitions(storage, config, {}, removed=listed)
    remove_metadata_table(storage, handle.lock_manager)
    return config


def _record_operation(
    storage: Storage, config: TableConfig, heartbeat: str, to: int
) -> PendingOperation:
    changes_layout = config.version.layout.version != table_version(to).layout.version
    removed = config.metadata_partitions
    return replace(
        full_rebuild(storage, config, heartbeat), removed=removed, changes_layout=changes_layout
    )


def _roll_back_and_compact(
    table: Handle, clock: Clock, heartbeat: str, *, merge: bool
) -> str | None:
    """Roll back failed writes and compact log files; return the compaction's instant."""
    context = WriteContext.open(table, clock).recover()
    if complete_pending(context.table, row_compaction()):
        context = WriteContext.open(table, clock).recover()
    if not merge:
        return None
    work = row_compaction(heartbeat)
    return compact(context.table, work, slices_with_logs(complete_view(context.table)))


def _move(handle: Handle, to: int, clock: Clock) -> None:
    """Move the timeline and change the properties.

    If this writer stalls, the next writer takes the operation over, and this one must not go on.
    Raises `CommitConflict` then.
    """
    storage, check = handle.storage, handle.lock_manager.check_held
    old = TableConfig.load(storage, clock)
    properties = _new_properties(old, to, handle.options)
    new = TableConfig(properties)
    if not new.version.writable:
        # Releases with this table version write metadata tables in another format.
        properties.update(replace(PendingOperation.of(old), partitions=()).properties)
    check()
    if new.layout.folder == old.layout.folder:
        _set(storage, old, properties, clock)
        return
    storage.put(old.layout.path(MOVING), b"")
    archived, files = _convert_timeline(storage, old, new, clock)
    if new.layout.completion_in_name:
        storage.delete_dir(new.layout.folder)
        make_timeline(storage, new, clock)
        add_to_history(storage, new.history_folder, archived, check)
    else:
        remove_instants(storage, new.layout)
    for path, data, modified in files:
        check()
        storage.put(path, data)
        if modified is not None:
            storage.set_modified(path, modified)
    check()
    written = _set(storage, old, properties, clock)
    try:
        check()
    except CommitConflict:
        # Concurrent commits are on the old timeline only.
        _set(storage, written, old.properties, clock)
        raise
    _remove_old(storage, old)


def _convert_timeline(
    storage: Storage, old: TableConfig, new: TableConfig, clock: Clock
) -> tuple[list[ArchivedInstant], Iterator[tuple[str, bytes, int | None]]]:
    """Return the history and the files of the timeline in its new layout."""
    timeline = Timeline.load(storage, old)
    times = completions(storage, timeline, old)
    to_history = new.layout.completion_in_name
    archived = read_log_archive(timeline, times, clock) if to_history else []
    return archived, convert_active_timeline(storage, timeline, times, old, new, clock)


def _set(
    storage: Storage, config: TableConfig, properties: Mapping[str, str], clock: Clock
) -> TableConfig:
    removed = config.properties.keys() - properties.keys()
    return config.update(storage, properties, clock, removed=removed)


def _remove_old(storage: Storage, old: TableConfig) -> None:
    """Remove the old timeline; the file that marks it for removal is deleted last."""
    remove_instants(storage, old.layout)
    storage.delete_dir(old.history_folder)
    storage.delete(old.layout.path(MOVING))
    if old.layout.completion_in_name:
        storage.delete_dir(old.layout.folder)
