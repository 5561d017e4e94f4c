"""Making a new table: properties, timeline folders and, when rows are given, the first commit.

`config/new_table_properties.py` knows which properties each version needs,
`write/metadata_lifecycle.py` how a metadata table comes into being.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pyarrow as pa

from pyhudi import _native
from pyhudi.api.create_cleanup import table_in_making
from pyhudi.api.table import HudiTable, open_table
from pyhudi.api.table_exists import check_same, has_table
from pyhudi.clock import Clock, SystemClock, parse_zone
from pyhudi.config import argument_checks as arg
from pyhudi.config.catalog_sync_options import SYNC_OPTIONS
from pyhudi.config.concurrency_mode import MODE
from pyhudi.config.index_options import INDEX_TYPE
from pyhudi.config.lock_options import LOCK_OPTIONS
from pyhudi.config.merge_mode import (
    MERGE_MODE,
    MERGE_PROPERTY,
    PARTIAL_UPDATE_MODE,
    PAYLOAD_CLASS,
    delete_rule,
)
from pyhudi.config.new_table_properties import NewTable, new_table_config
from pyhudi.config.option_parsing import parse_bool, parse_enum
from pyhudi.config.options import (
    WRITE_MERGE_MODE,
    WRITE_PAYLOAD_CLASS,
    check_options,
    is_handle_option,
)
from pyhudi.config.properties import DATABASE_NAME, TABLE_NAME
from pyhudi.config.property_names import (
    BASE_FILE_FORMAT,
    CDC_ENABLED,
    CDC_MODE,
    HIVE_STYLE,
    KEY_GENERATOR_TYPE,
    META_FIELDS,
    PARTITION_SPEC,
    SLASH_DATES,
    TIMEZONE,
    URL_ENCODE,
)
from pyhudi.config.table_config import TableConfig, TableType
from pyhudi.config.timestamp_keygen_options import TIME_OPTIONS, ZONE
from pyhudi.config.version_properties import UNAVAILABLE
from pyhudi.config.write_options import WriteOptions
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Engine
from pyhudi.engine.spark_loader import is_spark_frame, spark
from pyhudi.engine.spill import local_files
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.input.conform import conform, data_schema, read_table
from pyhudi.input.decode_encodings import plain_schema
from pyhudi.schema.key_generator import GENERATORS, add_keys, key_spec
from pyhudi.schema.supported_types import avro_schema, check_reserved
from pyhudi.schema.table_schema import field_at
from pyhudi.slices.cdc_format import MODES
from pyhudi.storage.storage import Storage
from pyhudi.timeline.table_directories import make_table
from pyhudi.write.checks import check_config
from pyhudi.write.drop_table import check_no_files, remove_table
from pyhudi.write.metadata_lifecycle import (
    make_partitions,
    partitions_for_new_table,
    with_pending_partitions,
)
from pyhudi.write.write_context import Handle, WriteContext

__all__ = ["create_table", "make_table"]


TableKind = Literal["cow", "mor", "COPY_ON_WRITE", "MERGE_ON_READ"]
CreateMode = Literal["error", "ignore", "overwrite"]

_TYPES: dict[str, TableType] = {
    "cow": "COPY_ON_WRITE",
    "mor": "MERGE_ON_READ",
    "copy_on_write": "COPY_ON_WRITE",
    "merge_on_read": "MERGE_ON_READ",
}
"""By what they are called, in lower case."""
_MODES = ("error", "ignore", "overwrite")


@arg.check_arguments(
    uri=arg.location,
    key=arg.optional(arg.check_ordered_names),
    partition_by=arg.optional(arg.check_ordered_names),
    order_by=arg.optional(arg.check_ordered_names),
    type=arg.text,
    version=arg.whole,
    index=arg.optional(arg.text),
    mode=arg.text,
    options=arg.optional(arg.by_name),
    storage_options=arg.optional(arg.by_name),
    engine=arg.optional(arg.engine),
)
def create_table(
    uri: str | os.PathLike[str],
    schema_or_data: Any,
    *,
    key: str | Sequence[str] | None,
    partition_by: str | Sequence[str] | None = None,
    order_by: str | Sequence[str] | None = None,
    type: TableKind = "cow",  # noqa: A002 - the public name
    version: int = 9,
    index: str | None = None,
    mode: CreateMode = "error",
    options: Mapping[str, object] | None = None,
    storage_options: Mapping[str, str] | None = None,
    engine: Engine | None = None,
) -> HudiTable:
    """Makes a table, and fills it when rows are given.

    A metadata table is made unless `hoodie.metadata.enable` is false. Nothing is left of a table
    whose making or first write fails, neither files nor folders, but the lock of one that it was to
    take the place of. Data without rows make a table without a commit.

    Args:
        uri: where the table is to lie, as `open_table` takes it.
        schema_or_data: a `pyarrow.Schema`, or rows as `HudiTable.insert` takes them.
        key: the columns that tell rows apart, a dot reaching into a struct; None for a table that
            rows are only added to, under generated keys.
        partition_by: the columns that partition folders are named by, none by default; with
            `column:simple` and `column:timestamp` in it, Hudi's custom key generator.
        order_by: the columns whose greater value wins among rows of one key; without them the last
            write wins.
        type: "cow" or "mor", or the long name that Hudi has for it, in any case.
        version: the table version: 6, 8 or 9, those of Hudi 0.14, 1.0 and 1.1.
        index: how the handle's writes find keys, in lower case what `hoodie.index.type` takes:
            "record_index" (the default where keys are stored: a key is unique over all partitions),
            "record_level_index" (version 9: a key is unique in its partition), "simple",
            "global_simple", "bloom", "global_bloom" or "bucket". No table stores it but as a record
            index; a bucket index can be told from the files.
        mode: what to do where there is a table: "error" raises, "ignore" gives a handle of it and
            writes no rows, where key, partition columns and type are those asked for, and
            "overwrite" removes it with its history, under its lock, before the new one is made. The
            rows are looked at before; those of a DataFrame are worked out and kept on the
            executors' disks, so they may come from the table itself. A location with files that
            are not a table's own is never overwritten.
        options: `hoodie.…` options by name. The table's name is the last part of the location
            unless `hoodie.table.name` says otherwise; `hoodie.table.keygenerator.type` may choose
            another generator than Hudi would, and `hoodie.keygen.timebased.…` say how a timestamp
            generator renders (zone: UTC by default); `hoodie.payload.delete.field` and `.marker`
            say which rows delete their keys, `hoodie.compaction.payload.class` or
            `hoodie.table.partial.update.mode` how two rows of a key become one, for those of
            Hudi's own classes; `hoodie.table.cdc.enabled` has writers note
            changes for `changes`; `hoodie.table.base.file.format` may be ORC. Options that
            `open_table` takes too go with the handle that is given back.
        storage_options: how a bucket is reached, as in `open_table`.
        engine: what runs the work; by default threads of this process, one a processor.

    Returns:
        The new table's handle.

    Raises:
        ConfigError: there is a table already, or under "ignore" another one than asked for, or
            under "overwrite" files that are no table's; or arguments do not fit.
        CommitConflict: under "overwrite", a writer is at work on the table.
        LockTimeout: under "overwrite", its lock could not be had in time.
        SchemaMismatch: columns or keys cannot be stored.
        UnsupportedTableFeature: pyhudi could not write to such a table.
        StorageError: storage fails.
    """
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
        mode=mode,
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
    type: TableKind,  # noqa: A002 - the public name
    version: int,
    index: str | None,
    mode: CreateMode,
    options: Mapping[str, object] | None,
    storage_options: Mapping[str, str] | None,
    engine: Engine | None = None,
) -> HudiTable:
    """As `create_table`, which says more; `fill` writes into the new table as the last step.

    It gets the rows that are given, None of a schema; without it they are inserted. When it fails,
    nothing is left of the table. It is not called for one that is there already.
    """
    asked = dict(options or {})
    if index is not None:
        asked.setdefault(INDEX_TYPE, index.upper())
    chosen = check_options(asked, creating=True)
    _check_arguments(type, mode)
    storage = Storage(os.fspath(uri), storage_options)
    clock = SystemClock()
    if mode == "error":
        _check_absent(storage)
    frame = schema_or_data if is_spark_frame(schema_or_data) else None
    if frame is not None:
        schema_or_data = spark("executor_steps").arrow_schema(frame)
    schema, rows = _schema_and_rows(schema_or_data)
    new = _new_table(
        storage,
        schema,
        key=_names(key),
        partition_by=_names(partition_by),
        order_by=_names(order_by),
        table_type=_TYPES[type.lower()],
        version=version,
        options=chosen,
    )
    config = new_table_config(new)
    check_config(config)
    kept = {name: value for name, value in chosen.items() if is_handle_option(name)}
    if new.partition_types:
        pairs = zip(new.partition_fields, new.partition_types, strict=True)
        kept[PARTITION_SPEC] = ",".join(f"{name}:{kind}" for name, kind in pairs)
    if mode == "ignore" and has_table(storage):
        table = open_table(uri, storage_options=storage_options, options=kept, engine=engine)
        check_same(storage, table.config, config)
        return table
    if rows is not None:
        _check_rows(rows, config, kept)
    else:
        key_spec(config, prefixed=None, options=kept)
    wanted = partitions_for_new_table(config, kept)
    if wanted:
        config = with_pending_partitions(config, wanted, kept, clock)
    with ExitStack() as stack:
        if mode == "overwrite":
            if frame is not None and has_table(storage):
                look = partial(_check_rows, config=config, options=kept)
                frame = stack.enter_context(spark("materialize").materialize(frame, look))
            handle = Handle(storage, engine or LocalEngine(), kept)
            tried = fill if rows is not None or frame is not None else None
            _make_room(handle, config, wanted, clock, tried)
        stack.enter_context(table_in_making(storage, config, clock))
        table = open_table(uri, storage_options=storage_options, options=kept, engine=engine)
        _complete(table, wanted, clock)
        given = rows if frame is None else frame
        if fill is not None:
            fill(table, given)
        elif given is not None:
            table.insert(given)
    return table


def _complete(table: HudiTable, wanted: Collection[str], clock: Clock) -> None:
    """Gives a table in making its metadata table, and sees that it can be written to."""
    if wanted:
        make_partitions(table, wanted)
        table.refresh()
    _ = WriteContext.open(table, clock).index  # What no write could go to is not made.


def _make_room(
    handle: Handle,
    config: TableConfig,
    wanted: Collection[str],
    clock: Clock,
    fill: Callable[[HudiTable, Any], object] | None,
) -> None:
    """Removes the table that is to be overwritten.

    Before that one is made elsewhere, and no rows are written to it: what no write of that kind
    could go to removes nothing. fill: None where inserting needs no trial.
    """
    if not has_table(handle.storage):
        check_no_files(handle.storage)
        return
    with ExitStack() as block:
        with local_files():
            folder = block.enter_context(TemporaryDirectory(prefix="pyhudi-"))
        make_table(Storage(folder), config, clock)
        alone = {name: text for name, text in handle.options.items() if name not in _OF_OTHERS}
        table = open_table(folder, options=alone)
        _complete(table, wanted, clock)
        if fill is not None:
            fill(table, table.schema.empty_table())
    remove_table(handle, clock)


_OF_OTHERS = {*LOCK_OPTIONS, *SYNC_OPTIONS} - {MODE}
"""Options by which others would hear of a table that is made to be thrown away."""


def _check_arguments(kind: str, mode: str) -> None:
    if kind.lower() not in _TYPES:
        msg = f"type is {kind!r}"
        raise ConfigError(msg, hint='Give "cow" or "mor".')
    if mode not in _MODES:
        msg = f"mode is {mode!r}"
        raise ConfigError(msg, hint='Give "error", "ignore" or "overwrite".')


def _check_absent(storage: Storage) -> None:
    if has_table(storage):
        msg = f"a Hudi table exists at {storage.uri}"
        raise ConfigError(msg, hint="Open it with open_table, or choose another location.")


def _schema_and_rows(given: Any) -> tuple[pa.Schema, pa.Table | None]:
    if isinstance(given, pa.Schema):
        check_reserved(given)
        return data_schema(plain_schema(given)), None
    rows = read_table(given, uneven=True)
    check_reserved(rows.schema)
    return data_schema(rows.schema), rows


def _names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)


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
    name = options.get(TABLE_NAME) or storage.native.uri.rstrip("/").rsplit("/", 1)[-1]
    record = _avro_name(name)
    mode = options.get(WRITE_MERGE_MODE) or options.get(MERGE_MODE)
    zone = {TIMEZONE: parse_zone(options[TIMEZONE])} if TIMEZONE in options else {}
    virtual = not parse_bool(options, META_FIELDS, default=True)
    file_format = options.get(BASE_FILE_FORMAT)
    return NewTable(
        name=name,
        table_type=table_type,
        version=version,
        record_key_fields=key,
        partition_fields=partition_by,
        ordering_fields=order_by,
        merge_mode=_merge_mode(mode),
        payload=_one_of(options, PAYLOAD_CLASS, WRITE_PAYLOAD_CLASS),
        partial_update_mode=options.get(PARTIAL_UPDATE_MODE, "").upper(),
        unavailable=options.get(MERGE_PROPERTY + UNAVAILABLE, ""),
        deletes=delete_rule(options),
        database=options.get(DATABASE_NAME, ""),
        create_schema=avro_schema(schema, f"{record}_record", f"hoodie.{record}"),
        hive_style=parse_bool(options, HIVE_STYLE, default=False),
        url_encode=parse_bool(options, URL_ENCODE, default=False),
        partition_types=types,
        generator=_generator(options),
        extra={
            **zone,
            **_key_properties(options, types),
            **({META_FIELDS: "false"} if virtual else {}),
            **_change_logs(options),
            **({BASE_FILE_FORMAT: file_format.upper()} if file_format else {}),
        },
    )


def _one_of(options: Mapping[str, str], *names: str) -> str:
    """What those of the names say that are given, "" where none is.

    Raises `ConfigError` where they differ.
    """
    given = {name: options[name] for name in names if options.get(name)}
    if len(set(given.values())) > 1:
        msg = " and ".join(f"{name} is {value!r}" for name, value in given.items())
        raise ConfigError(msg, hint="Both say one thing: leave one out.")
    return next(iter(given.values()), "")


def _generator(options: Mapping[str, str]) -> str:
    chosen = options.get(KEY_GENERATOR_TYPE, "").upper()
    if chosen not in ("", *GENERATORS):
        msg = f"{KEY_GENERATOR_TYPE} is {options[KEY_GENERATOR_TYPE]!r}"
        raise ConfigError(msg, hint=f"One of {', '.join(GENERATORS)}, or leave it out.")
    return chosen


def _partition_types(given: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Fields and types of `field:type`; no types when none is given."""
    if not any(":" in part for part in given):
        return given, ()
    pairs = [part.partition(":") for part in given]
    for name, _, kind in pairs:
        if kind.upper() not in ("SIMPLE", "TIMESTAMP"):
            msg = f"partition_by has {name}:{kind}"
            raise ConfigError(msg, hint="Give each column as name:simple or name:timestamp.")
    return tuple(name for name, _, _ in pairs), tuple(kind.upper() for _, _, kind in pairs)


def _key_properties(options: Mapping[str, str], types: tuple[str, ...]) -> dict[str, str]:
    """What a timestamp key generator needs, and dates with slashes."""
    found = {name: options[name] for name in TIME_OPTIONS if name in options}
    timed = "TIMESTAMP" in (_generator(options), *types)
    if timed and not any(name.endswith("timezone") for name in found):
        found[ZONE] = "UTC"
    if SLASH_DATES in options:
        slashes = parse_bool(options, SLASH_DATES, default=False)
        found[SLASH_DATES] = "true" if slashes else "false"
        if slashes and parse_bool(options, HIVE_STYLE, default=False):
            # Hudi's writers differ, and its readers do not take the paths apart.
            msg = f"{SLASH_DATES} and {HIVE_STYLE} are both true"
            raise UnsupportedTableFeature(msg, hint="Set one.")
    return found


def _change_logs(options: Mapping[str, str]) -> dict[str, str]:
    """What a table with change data capture has; Hudi stores the mode only there."""
    mode = parse_enum(options, CDC_MODE, MODES, MODES[0])
    if parse_bool(options, CDC_ENABLED, default=False):
        return {CDC_ENABLED: "true", CDC_MODE: mode}
    if CDC_MODE in options:
        msg = f"{CDC_MODE} is {options[CDC_MODE]!r}, but {CDC_ENABLED} is not true"
        raise ConfigError(msg, hint=f"Give {CDC_ENABLED} too, or leave the mode out.")
    return {}


def _merge_mode(
    text: str | None,
) -> Literal["COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"] | None:
    if text is None:
        return None
    if text.upper() == "COMMIT_TIME_ORDERING":
        return "COMMIT_TIME_ORDERING"
    if text.upper() == "EVENT_TIME_ORDERING":
        return "EVENT_TIME_ORDERING"
    msg = f"{MERGE_MODE} is {text!r}"
    raise ConfigError(msg, hint="Give COMMIT_TIME_ORDERING or EVENT_TIME_ORDERING.")


def _check_columns(schema: pa.Schema, **roles: tuple[str, ...]) -> None:
    for role, names in roles.items():
        for name in names:
            if not (
                field_at(schema, name) is not None if role != "order_by" else name in schema.names
            ):
                msg = f"{role} names {name!r}, which is not a column of the table"
                raise ConfigError(msg, hint=f"The columns are {', '.join(schema.names)}.")
        if len(set(names)) < len(names):
            msg = f"{role} names a column twice"
            raise ConfigError(msg)


def _avro_name(table_name: str) -> str:
    """The table's name, with `__` for what Avro names cannot hold (`sanitizeName`, 1.2.0)."""
    name = re.sub(r"[^A-Za-z0-9_]", "__", table_name)
    return re.sub(r"^[^A-Za-z_]", "__", name)


def _check_rows(rows: pa.Table, config: TableConfig, options: Mapping[str, str]) -> None:
    """Finds out before there is a table whether its first rows have keys."""
    fields = _native.arrow_schema(config.create_schema or "")
    spec = key_spec(config, prefixed=None, options=options)
    null_elements = WriteOptions.of(options, config.base_extension).null_elements
    rows = conform(rows, data_schema(fields), null_elements=null_elements)
    add_keys(rows, spec, instant="")
