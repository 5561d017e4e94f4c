"""Creates a table: properties, timeline directories and, if rows are passed, the first commit.

`config/new_table_properties.py` has the properties of each table version,
`write/metadata_lifecycle.py` creates the metadata table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pyarrow as pa

from pyhudi import _native
from pyhudi.api.create_cleanup import create_or_undo
from pyhudi.api.new_name import NewName
from pyhudi.api.table import HudiTable, open_table
from pyhudi.api.table_exists import check_same, has_table
from pyhudi.clock import Clock, SystemClock, parse_zone
from pyhudi.config import argument_checks as arg
from pyhudi.config.catalog_sync_options import SYNC_OPTIONS
from pyhudi.config.column_rules import MERGE_RULES, choose_rules, format_rules
from pyhudi.config.constraints import format_constraints
from pyhudi.config.index_options import INDEX_TYPE
from pyhudi.config.lock_options import LOCK_OPTIONS, MODE
from pyhudi.config.merge_mode import (
    MERGE_MODE,
)
from pyhudi.config.meta_columns import IS_DELETED
from pyhudi.config.new_table_properties import NewTable, new_table_config
from pyhudi.config.option_parsing import parse_enum
from pyhudi.config.options import (
    CreateOptions,
    check_options,
    is_handle_option,
)
from pyhudi.config.property_names import (
    BASE_FILE_FORMAT,
    CDC_ENABLED,
    CDC_MODE,
    CONSTRAINTS,
    HIVE_STYLE,
    KEY_GENERATOR_TYPE,
    META_FIELDS,
    PARTITION_SPEC,
    SLASH_DATES,
    TIMEZONE,
)
from pyhudi.config.table_config import TableConfig, TableType
from pyhudi.config.timestamp_keygen_options import TIME_OPTIONS, ZONE
from pyhudi.config.write_options import WriteOptions
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Engine
from pyhudi.engine.spark_loader import is_spark_frame, spark
from pyhudi.engine.spill import local_files
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.input.conform import conform, data_schema, read_table
from pyhudi.input.decode_encodings import plain_schema
from pyhudi.schema.column_rules import check_rules
from pyhudi.schema.constraints import (
    build_constraint,
    check_merge_mode,
    row_rules,
)
from pyhudi.schema.key_generator import GENERATORS, add_keys, key_spec
from pyhudi.schema.supported_types import avro_schema, check_reserved
from pyhudi.schema.table_schema import field_at
from pyhudi.slices.cdc_format import MODES
from pyhudi.storage.storage import Storage
from pyhudi.suggestions import case_hint
from pyhudi.timeline.table_directories import make_table
from pyhudi.write.checks import check_config
from pyhudi.write.drop_table import check_no_files, remove_table
from pyhudi.write.metadata_lifecycle import (
    build_partitions,
    partitions_for_new_table,
    with_pending_partitions,
)
from pyhudi.write.write_context import Handle, WriteContext

__all__ = ["create_table", "make_table"]


TableTypeName = Literal["cow", "mor", "COPY_ON_WRITE", "MERGE_ON_READ"]
CreateMode = Literal["error", "ignore", "overwrite"]

_TYPES: dict[str, TableType] = {
    "cow": "COPY_ON_WRITE",
    "mor": "MERGE_ON_READ",
    "copy_on_write": "COPY_ON_WRITE",
    "merge_on_read": "MERGE_ON_READ",
}
"""Table types by the names that callers may use, in lower case."""
_MODES = ("error", "ignore", "overwrite")


@arg.check_arguments(
    key=arg.check_ordered_names,
    partition_by=arg.check_ordered_names,
    order_by=arg.check_ordered_names,
)
def create_table(
    uri: str | os.PathLike[str],
    schema_or_data: Any,
    *,
    key: str | Sequence[str] | None,
    partition_by: str | Sequence[str] | None = None,
    order_by: str | Sequence[str] | None = None,
    type: TableTypeName = "cow",  # noqa: A002 - the public name
    version: int = 9,
    index: str | None = None,
    constraints: Mapping[str, str] | None = None,
    mode: CreateMode = "error",
    merge_rules: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
    storage_options: Mapping[str, str] | None = None,
    engine: Engine | None = None,
    filesystem: Any = None,
) -> HudiTable:
    """Create a table, and insert rows if you pass some.

    The table gets a metadata table unless `hoodie.metadata.enable` is false. If creating or the
    first write fails, pyhudi removes all its files and directories; only the lock of a table that
    was to be overwritten stays. Data without rows make a table without a commit.

    Args:
        uri: location of the new table, as in `open_table`; or a name such as `prod.sales.trips`,
            for a table in the directory of its name below the location of its database.
        schema_or_data: a `pyarrow.Schema`, or rows as in `HudiTable.insert`.
        key: record key columns, dotted for a field of a struct; None for an append-only table with
            generated keys.
        partition_by: partition columns, none by default; with `column:simple` and
            `column:timestamp` entries the table uses Hudi's custom key generator.
        order_by: ordering columns: among rows of one key the largest value wins; without them the
            last write wins.
        type: "cow" or "mor", or Hudi's long name for it, in any case.
        version: the table version: 6, 8 or 9, of Hudi 0.14, 1.0 and 1.1.
        index: index that the handle's writes use, in lower case what `hoodie.index.type` takes:
            "record_index" (the default if keys are stored: a key is unique over all partitions),
            "record_level_index" (version 9: a key is unique in its partition), "simple",
            "global_simple", "bloom", "global_bloom" or "bucket". Only a record index is stored in
            the table; a bucket index is detected from the files.
        constraints: SQL conditions by name, such as {"fare": "fare >= 0"}, which writers of pyhudi
            check: a row for which one is false raises `ConstraintViolation`. Apache Hudi's writers
            do not check them.
        mode: what to do if a table exists: "error" raises; "ignore" returns a handle of it and
            writes no rows, if its key, partition columns and type are the requested ones;
            "overwrite" removes the table with its history, under its lock, before it creates the
            new one. pyhudi checks the rows before it removes anything; a Spark DataFrame is
            computed first and kept on the executors' disks, so it may read the table itself. A
            location with files that are not a table's own is never overwritten.
        merge_rules: by column how the values of two rows of one key are combined: "sum", "max",
            "min", "first", "last_non_null", "append" or "union". Other columns have the values of
            the row that wins. Apache Hudi refuses a table with rules.
        options: `hoodie.…` options by name. `hoodie.table.name` is the table's name, by default the
            last part of the location. `hoodie.table.keygenerator.type` chooses another key
            generator than Hudi would, and `hoodie.keygen.timebased.…` set how a timestamp generator
            renders (zone: UTC by default). `hoodie.payload.delete.field` and `.marker` set which
            rows delete their keys; `hoodie.compaction.payload.class` (one of Hudi's own classes) or
            `hoodie.table.partial.update.mode` how two rows of a key are merged.
            `hoodie.table.cdc.enabled` has writers record changes for `changes`.
            `hoodie.table.base.file.format` may be ORC. The returned handle keeps the options that
            `open_table` takes too.
        storage_options: access to the storage, as in `open_table`.
        engine: what runs the work; by default threads of this process, one for each processor.
        filesystem: a filesystem object of pyarrow or fsspec, as in `open_table`.

    Returns:
        A handle of the new table.

    Raises:
        ConfigError: a table of this location or name exists already; under "ignore" it is not the
            requested one; under "overwrite" the location has files that are not a table's; the
            catalog or its database does not exist; or arguments do not fit together.
        CommitConflict: under "overwrite", another writer is active on the table.
        LockTimeout: under "overwrite", the table's lock was not free in time.
        SchemaMismatch: columns or keys cannot be stored.
        UnsupportedTableFeature: pyhudi could not write to the table.
        StorageError: the storage fails.
    """
    if filesystem is not None:
        from pyhudi.storage.filesystems import with_filesystem  # noqa: PLC0415 - few calls pass one

        uri, storage_options = with_filesystem(uri, storage_options, filesystem)
    return create_and_fill(
        uri,
        schema_or_data,
        None,
        key=key,
        partition_by=partition_by,
        order_by=order_by,
        type=type,
        version=version,
        index=index,
        constraints=constraints,
        mode=mode,
        merge_rules=merge_rules,
        options=options,
        storage_options=storage_options,
        engine=engine,
    )


def create_and_fill(
    uri: str | os.PathLike[str],
    schema_or_data: Any,
    fill: Callable[[HudiTable, Any], object] | None,
    *,
    key: str | Sequence[str] | None,
    partition_by: str | Sequence[str] | None,
    order_by: str | Sequence[str] | None,
    type: TableTypeName,  # noqa: A002 - the public name
    version: int,
    index: str | None,
    mode: CreateMode,
    merge_rules: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None,
    storage_options: Mapping[str, str] | None,
    engine: Engine | None = None,
    constraints: Mapping[str, str] | None = None,
) -> HudiTable:
    """Create a table as `create_table` does; `fill` writes into it as the last step.

    `fill` gets the rows, or None if only a schema was passed; without `fill` the rows are inserted.
    If it fails, nothing of the table is left. It is not called if the table exists already.
    """
    name = NewName.of(uri, storage_options, options, mode)
    uri, storage_options = name.uri, name.storage_options
    requested = dict(name.options or {})
    if index is not None:
        requested.setdefault(INDEX_TYPE, index.upper())
    requested |= {MERGE_RULES: format_rules(merge_rules)} if merge_rules else {}
    checked = check_options(requested, creating=True)
    _check_arguments(type, mode)
    storage = Storage(os.fspath(uri), storage_options)
    clock = SystemClock()
    if mode == "error":
        _check_absent(storage)
    frame = schema_or_data if is_spark_frame(schema_or_data) else None
    if frame is not None:
        schema_or_data = spark("new_columns").new_columns(frame.schema)
    schema, rows = _schema_and_rows(schema_or_data)
    new = _new_table(
        storage,
        schema,
        key=_names(key),
        partition_by=_names(partition_by),
        order_by=_names(order_by),
        table_type=_TYPES[type.lower()],
        version=version,
        options=checked,
    )
    config = _config_of(new, schema, constraints or {})
    handle_options = {name: value for name, value in checked.items() if is_handle_option(name)}
    if new.partition_types:
        pairs = zip(new.partition_fields, new.partition_types, strict=True)
        handle_options[PARTITION_SPEC] = ",".join(f"{name}:{key_type}" for name, key_type in pairs)
    if mode == "ignore" and has_table(storage):
        table = open_table(
            uri, storage_options=storage_options, options=handle_options, engine=engine
        )
        check_same(storage, table.config, config)
        return name.register(table)
    if rows is not None:
        _check_rows(rows, config, handle_options)
    else:
        key_spec(config, prefixed=None, options=handle_options)
    partitions = partitions_for_new_table(config, handle_options)
    if partitions:
        config = with_pending_partitions(config, partitions, handle_options, clock)
    with ExitStack() as stack:
        if mode == "overwrite":
            if frame is not None and has_table(storage):
                check_rows = partial(_check_rows, config=config, options=handle_options)
                frame = stack.enter_context(spark("executor_steps").materialize(frame, check_rows))
            handle = Handle(storage, engine or LocalEngine(), handle_options)
            trial = fill if rows is not None or frame is not None else None
            _remove_existing(handle, config, partitions, clock, trial)
        stack.enter_context(name.unregister_on_error(storage))
        stack.enter_context(create_or_undo(storage, config, clock))
        table = open_table(
            uri, storage_options=storage_options, options=handle_options, engine=engine
        )
        table = name.register(_complete(table, partitions, clock))
        data = rows if frame is None else frame
        if fill is not None:
            fill(table, data)
        elif data is not None:
            table.insert(data)
    return table


def _config_of(new: NewTable, schema: pa.Schema, constraints: Mapping[str, str]) -> TableConfig:
    """Return the configuration of a new table with constraints."""
    for name, condition in constraints.items():
        build_constraint(name, condition, schema)
    if constraints:
        new = replace(new, extra={**new.extra, CONSTRAINTS: format_constraints(constraints)})
    config = new_table_config(new)
    check_config(config)
    if constraints:
        check_merge_mode(config)
    return config


def _complete(table: HudiTable, partitions: Collection[str], clock: Clock) -> HudiTable:
    """Create the metadata table of a new table, and check that the table can be written to."""
    if partitions:
        build_partitions(table, partitions)
        table.refresh()
    _ = WriteContext.open(table, clock).index  # Fails if no write is possible.
    return table


def _remove_existing(
    handle: Handle,
    config: TableConfig,
    partitions: Collection[str],
    clock: Clock,
    fill: Callable[[HudiTable, Any], object] | None,
) -> None:
    """Remove the table that is to be overwritten.

    The new table is first created in a temporary directory, and `fill` writes an empty batch to it:
    if no write can succeed, nothing is removed.

    fill: None if the insert needs no trial.
    """
    if not has_table(handle.storage):
        check_no_files(handle.storage)
        return
    with ExitStack() as block:
        with local_files():
            directory = block.enter_context(TemporaryDirectory(prefix="pyhudi-"))
        make_table(Storage(directory), config, clock)
        own_options = {
            name: value for name, value in handle.options.items() if name not in _EXTERNAL_OPTIONS
        }
        table = open_table(directory, options=own_options)
        _complete(table, partitions, clock)
        if fill is not None:
            fill(table, table.schema.empty_table())
    remove_table(handle, clock)


_EXTERNAL_OPTIONS = {*LOCK_OPTIONS, *SYNC_OPTIONS} - {MODE}
"""Options that would make a temporary table visible to other systems."""


def _check_arguments(table_type: str, mode: str) -> None:
    if table_type.lower() not in _TYPES:
        raise ConfigError(f"type is {table_type!r}", hint='Pass "cow" or "mor".')
    if mode not in _MODES:
        raise ConfigError(f"mode is {mode!r}", hint='Pass "error", "ignore" or "overwrite".')


def _check_absent(storage: Storage) -> None:
    if has_table(storage):
        msg = f"a Hudi table exists at {storage.uri}"
        raise ConfigError(
            msg,
            hint="Open it with open_table, choose another location, or pass "
            'mode="ignore" or mode="overwrite".',
        )


def _schema_and_rows(schema_or_data: Any) -> tuple[pa.Schema, pa.Table | None]:
    if isinstance(schema_or_data, pa.Schema):
        check_reserved(schema_or_data)
        return data_schema(plain_schema(schema_or_data)), None
    rows = read_table(schema_or_data, allow_missing_keys=True)
    check_reserved(rows.schema)
    return data_schema(rows.schema), rows


def _names(columns: str | Sequence[str] | None) -> tuple[str, ...]:
    if columns is None:
        return ()
    return (columns,) if isinstance(columns, str) else tuple(columns)


def _new_table(
    storage: Storage,
    schema: pa.Schema,
    *,
    key: tuple[str, ...],
    partition_by: tuple[str, ...],
    order_by: tuple[str, ...],
    table_type: TableType,
    version: int,
    options: Mapping[str, str],
) -> NewTable:
    partition_by, types = _partition_types(partition_by)
    _check_columns(schema, key=key, partition_by=partition_by, order_by=order_by)
    requested = CreateOptions.of(options)
    rules = choose_rules(requested.merge_rules)
    deletes = () if requested.deletes is None else requested.deletes[:1]
    check_rules(schema, rules, (*key, *partition_by, *order_by, *deletes, IS_DELETED))
    name = requested.name or storage.native.uri.rstrip("/").rsplit("/", 1)[-1]
    record = _avro_name(name)
    zone = {} if requested.timezone is None else {TIMEZONE: parse_zone(requested.timezone)}
    file_format = requested.file_format
    return NewTable(
        name=name,
        table_type=table_type,
        version=version,
        record_key_fields=key,
        partition_fields=partition_by,
        ordering_fields=order_by,
        merge_mode=_merge_mode(requested.merge_mode),
        payload=requested.payload,
        partial_update_mode=requested.partial_update_mode.upper(),
        unavailable=requested.unavailable,
        column_rules=rules,
        deletes=requested.deletes,
        database=requested.database,
        create_schema=avro_schema(schema, f"{record}_record", f"hoodie.{record}"),
        hive_style=requested.hive_style,
        url_encode=requested.url_encode,
        partition_types=types,
        generator=_generator(requested),
        extra={
            **zone,
            **_key_properties(options, requested, types),
            **({} if requested.meta_fields else {META_FIELDS: "false"}),
            **_change_logs(requested),
            **({BASE_FILE_FORMAT: file_format.upper()} if file_format else {}),
        },
    )


def _generator(requested: CreateOptions) -> str:
    generator = requested.generator.upper()
    if generator not in ("", *GENERATORS):
        msg = f"{KEY_GENERATOR_TYPE} is {requested.generator!r}"
        raise ConfigError(msg, hint=f"One of {', '.join(GENERATORS)}, or leave it out.")
    return generator


def _partition_types(columns: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields and types of `field:type` entries; no types if no entry has one."""
    if not any(":" in part for part in columns):
        return columns, ()
    pairs = [part.partition(":") for part in columns]
    for name, _, field_type in pairs:
        if field_type.upper() not in ("SIMPLE", "TIMESTAMP"):
            msg = f"partition_by has {name}:{field_type}"
            raise ConfigError(msg, hint="Give each column as name:simple or name:timestamp.")
    # Hudi stores the types as the writer spells them, too (1.2.0).
    return tuple(name for name, _, _ in pairs), tuple(field_type for _, _, field_type in pairs)


def _key_properties(
    options: Mapping[str, str], requested: CreateOptions, types: tuple[str, ...]
) -> dict[str, str]:
    """Return the properties of a timestamp key generator and of dates with slashes."""
    properties = {name: options[name] for name in TIME_OPTIONS if name in options}
    timed = "TIMESTAMP" in (_generator(requested), *map(str.upper, types))
    if timed and not any(name.endswith("timezone") for name in properties):
        properties[ZONE] = "UTC"
    if requested.slash_dates is not None:
        properties[SLASH_DATES] = "true" if requested.slash_dates else "false"
        if requested.slash_dates and requested.hive_style:
            # Hudi's writers differ here, and its readers do not parse the paths.
            msg = f"{SLASH_DATES} and {HIVE_STYLE} are both true"
            raise UnsupportedTableFeature(msg, hint="Set one.")
    return properties


def _change_logs(requested: CreateOptions) -> dict[str, str]:
    """Return the properties of change data capture; Hudi stores the mode only if it is enabled."""
    chosen = {} if requested.change_log_mode is None else {CDC_MODE: requested.change_log_mode}
    mode = parse_enum(chosen, CDC_MODE, MODES, MODES[0])
    if requested.change_logs:
        return {CDC_ENABLED: "true", CDC_MODE: mode}
    if chosen:
        msg = f"{CDC_MODE} is {chosen[CDC_MODE]!r}, but {CDC_ENABLED} is not true"
        raise ConfigError(msg, hint=f"Pass {CDC_ENABLED} too, or leave the mode out.")
    return {}


def _merge_mode(
    mode: str | None,
) -> Literal["COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"] | None:
    if mode is None:
        return None
    if mode.upper() == "COMMIT_TIME_ORDERING":
        return "COMMIT_TIME_ORDERING"
    if mode.upper() == "EVENT_TIME_ORDERING":
        return "EVENT_TIME_ORDERING"
    msg = f"{MERGE_MODE} is {mode!r}"
    raise ConfigError(msg, hint="Pass COMMIT_TIME_ORDERING or EVENT_TIME_ORDERING.")


def _check_columns(schema: pa.Schema, **roles: tuple[str, ...]) -> None:
    for role, names in roles.items():
        for name in names:
            if not (
                field_at(schema, name) is not None if role != "order_by" else name in schema.names
            ):
                msg = f"{role} names {name!r}, which is not a column of the table"
                hint = (
                    case_hint([name], schema.names) or f"The columns are {', '.join(schema.names)}."
                )
                raise ConfigError(msg, hint=hint)
        if len(set(names)) < len(names):
            raise ConfigError(f"{role} names a column twice")


def _avro_name(table_name: str) -> str:
    """Return the table name with `__` for characters that Avro forbids (`sanitizeName`, 1.2.0)."""
    name = re.sub(r"[^A-Za-z0-9_]", "__", table_name)
    return re.sub(r"^[^A-Za-z_]", "__", name)


def _check_rows(rows: pa.Table, config: TableConfig, options: Mapping[str, str]) -> None:
    """Check that the first rows have keys, before the table is created."""
    fields = _native.arrow_schema(config.create_schema or "")
    spec = key_spec(config, prefixed=None, options=options)
    null_elements = WriteOptions.of(options, config.base_extension).null_elements
    columns = data_schema(fields)
    rules = row_rules(config, columns, null_elements=null_elements)
    rows = conform(rows, columns, rules=rules)
    add_keys(rows, spec, instant="")
