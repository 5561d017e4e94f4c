"""Changes properties of a table in use: the few that can change safely, and reasons for the others.

A property can change if no file of the table depends on it: whether changes are recorded from now
on; how much of them while none is recorded; the merge class and the delete rule if the table does
not set them; and the user's own names, which Apache Hudi keeps and does not read.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.clock import Clock, SystemClock
from pyhudi.config import merge_mode
from pyhudi.config import property_names as names
from pyhudi.config.argument_checks import is_whole
from pyhudi.config.lock_options import LockOptions
from pyhudi.config.option_parsing import parse_bool, parse_enum
from pyhudi.config.table_config import TableConfig, find_unsupported_merge
from pyhudi.errors import ConfigError
from pyhudi.metadata.write_checks import check_not_building
from pyhudi.schema.delete_field import check_delete_field
from pyhudi.slices.cdc_format import MODES
from pyhudi.storage import properties
from pyhudi.timeline import Timeline
from pyhudi.txn.locks.foreign_locks import check_no_other_lock
from pyhudi.txn.recovery import check_no_live_writer
from pyhudi.write.checks import check_writable
from pyhudi.write.table_opening import WritableTable, open_for_change

_PATHS = "the table's directories are named by it"
_WINNER = "it decides which of two stored rows of a key wins"
_LOCATION = "the table's files are at that location"
_VERSION = "use upgrade() and downgrade()"
_INDEX = "use create_index, drop_index and rebuild_metadata"
_NAME = "locks, catalogs and schemas depend on it"

_REASONS = {
    names.RECORD_KEY_FIELDS: "the stored keys depend on it",
    names.KEY_GENERATOR_TYPE: "the stored keys and directories depend on it",
    names.KEY_GENERATOR_CLASS: "the stored keys and directories depend on it",
    names.PARTITION_FIELDS: _PATHS,
    names.HIVE_STYLE: _PATHS,
    names.URL_ENCODE: _PATHS,
    names.SLASH_DATES: _PATHS,
    names.DROP_PARTITION_COLUMNS: "it would not match the columns of existing files",
    names.META_FIELDS: "it would not match the meta columns of existing files",
    names.TABLE_TYPE: "all files would have to be rewritten",
    names.ORDERING_FIELDS: _WINNER,
    names.PRECOMBINE_FIELD: _WINNER,
    merge_mode.MERGE_MODE: _WINNER,
    merge_mode.PAYLOAD_CLASS: _WINNER,
    merge_mode.STRATEGY_ID: _WINNER,
    merge_mode.OLD_STRATEGY_ID: _WINNER,
    names.TABLE_VERSION: _VERSION,
    names.LAYOUT_VERSION: _VERSION,
    names.METADATA_PARTITIONS: _INDEX,
    names.CREATE_SCHEMA: "alter() changes columns",
    names.TIMEZONE: "the timeline's instants are times in this zone",
    names.TIMELINE_PATH: _LOCATION,
    names.HISTORY_PATH: _LOCATION,
    names.ARCHIVE_FOLDER: _LOCATION,
    properties.TABLE_NAME: _NAME,
    properties.DATABASE_NAME: _NAME,
    properties.CHECKSUM: "it is computed",
}
_DELETES = (merge_mode.DELETE_FIELD, merge_mode.DELETE_MARKER)
_HINT = (
    f"{names.CDC_ENABLED}, {names.CDC_MODE}, and names that begin with neither hoodie. nor "
    f"pyhudi. can be set; {merge_mode.PAYLOAD_CLASS} where a copy-on-write table up to version 6 "
    f"names none; {merge_mode.DELETE_FIELD} and {merge_mode.DELETE_MARKER} where a table up to "
    "version 8 has none, or no table without commits."
)


def set_properties(
    handle: WritableTable, changes: Mapping[str, object], *, clock: Clock | None = None
) -> None:
    """Change all of these properties, or none; the value None removes a property of the user.

    Raises `ConfigError` for a property that cannot change, `CommitConflict` while a writer is
    active, `LockTimeout`, and `UnsupportedTableFeature` if pyhudi could not write to the table
    afterwards.
    """
    clock = clock or SystemClock()
    values = {name: _check_value(name, value) for name, value in changes.items()}
    storage = handle.storage
    table = open_for_change(handle, clock, _without_class(TableConfig.load(storage, clock), values))
    with table.lock_manager.critical_section():
        config = TableConfig.load(storage, clock)
        after, removed = _new_properties(config, values)
        timeline = Timeline.load(storage, config)
        if any(name in values for name in _DELETES):
            # Writers of Hudi 0.15 and 1.0 pass the rule each time, and do not store it.
            if not config.version.merge_inferred and timeline.instants:
                raise _delete_rule_error()
            check_delete_field(table.schema.arrow, after.merge.delete_field)
        if after.properties == config.properties:
            return
        check_no_other_lock(storage, config, timeline, LockOptions.of(table.options), clock)
        check_not_building(config)
        check_no_live_writer(table, timeline)
        if after.cdc_mode != config.cdc_mode:
            _check_no_changes(timeline, config)
        check_writable(storage, _without_class(after, values), timeline)
        table.lock_manager.check_held()
        new = {
            name: value
            for name, value in after.properties.items()
            if config.properties.get(name) != value
        }
        config.update(storage, new, clock, removed=removed)


def _check_value(name: str, value: object) -> str | None:
    """Return the value as text. Raises `ConfigError` for a fixed property, or for a bad value."""
    string = (
        str(value).lower() if isinstance(value, bool) else None if value is None else str(value)
    )
    if name == names.CDC_ENABLED and string is not None:
        return "true" if parse_bool({name: string}, name, default=False) else "false"
    if name == names.CDC_MODE and string is not None:
        return parse_enum({name: string}, name, MODES, MODES[0])
    if not is_whole(name) or not is_whole(string or ""):
        msg = f"{name!a} cannot be set to {value!a}: it contains half of a surrogate pair"
        raise ConfigError(msg)
    own = not name.lower().startswith(("hoodie.", "pyhudi.", "_hoodie"))
    if name and (own or name == merge_mode.PAYLOAD_CLASS or name in _DELETES):
        return string
    reason = _REASONS.get(name, "pyhudi does not know whether the change is safe")
    if name in (names.CDC_ENABLED, names.CDC_MODE):
        reason = "it has to have a value"
    msg = f"{name} cannot be set to {value!r}: {reason}"
    raise ConfigError(msg, hint=_HINT)


def _new_properties(
    config: TableConfig, values: Mapping[str, str | None]
) -> tuple[TableConfig, tuple[str, ...]]:
    """Return the new properties, and the names of those that are removed."""
    if merge_mode.PAYLOAD_CLASS in values:
        _check_may_name_class(config)
    if any(name in values for name in _DELETES) and config.merge.delete_field is not None:
        raise _delete_rule_error()
    if not config.version.merge_inferred:
        prefix = merge_mode.MERGE_PROPERTY
        values = {prefix + k if k in _DELETES else k: value for k, value in values.items()}
    removed = tuple(name for name, value in values.items() if value is None)
    remaining = {name: value for name, value in config.properties.items() if name not in removed}
    after = TableConfig({**remaining, **{k: v for k, v in values.items() if v is not None}})
    if after.cdc_enabled:
        # Hudi stores the mode if changes are recorded.
        after = TableConfig({**after.properties, names.CDC_MODE: after.cdc_mode})
    elif names.CDC_MODE in values:
        msg = f"{names.CDC_MODE} is {after.cdc_mode!r}, but {names.CDC_ENABLED} is not true"
        raise ConfigError(msg, hint=f"Give {names.CDC_ENABLED} too, or leave the mode out.")
    return after, removed


def _check_may_name_class(config: TableConfig) -> None:
    """Raise `ConfigError` unless rows are merged only when written, without a known class.

    Hudi 0.15 stores the class for merge-on-read tables only, and its writers pass it each time. A
    class whose rules pyhudi does not know may be replaced: pyhudi wrote nothing with it.
    """
    old = config.version.payload_outranks_strategy
    counts = config.merge.payload_class is not None and find_unsupported_merge(config) is None
    if counts or config.is_merge_on_read or not old:
        raise ConfigError(f"{merge_mode.PAYLOAD_CLASS} cannot be set: {_WINNER}", hint=_HINT)


def _without_class(config: TableConfig, values: Mapping[str, str | None]) -> TableConfig:
    """Return the properties that must be writable, without a class that may be the obstacle."""
    ignored = {merge_mode.PAYLOAD_CLASS} & values.keys()
    return TableConfig({k: v for k, v in config.properties.items() if k not in ignored})


def _delete_rule_error() -> ConfigError:
    return ConfigError(f"{merge_mode.DELETE_FIELD} cannot be set: {_WINNER}", hint=_HINT)


def _check_no_changes(timeline: Timeline, config: TableConfig) -> None:
    for instant in timeline.commits:
        if any(stat.cdc_stats for stat in timeline.commit_metadata(instant).write_stats):
            msg = (
                f"{names.CDC_MODE} is {config.cdc_mode} and cannot change: {instant.requested} "
                "has logged changes, which are read by that mode"
            )
            raise ConfigError(msg, hint="It can change once such commits are archived.")
