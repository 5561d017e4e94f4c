"""Making a new table: properties, timeline folders and, when rows are given, the first commit.

`new_config.py` knows which properties each version needs, `metadata_table.py` how a metadata table
comes into being.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from pyhudi import _native
from pyhudi.clock import Clock, SystemClock
from pyhudi.config import TableConfig
from pyhudi.config_file import FILE
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.frames import is_spark_frame
from pyhudi.index.options import (
    INDEX_TYPE,
    PARTITIONED_RECORD_INDEX,
    IndexOptions,
)
from pyhudi.key_times import TIME_OPTIONS, ZONE
from pyhudi.keys import GENERATORS, PARTITION_SPEC, add_keys, key_spec
from pyhudi.merge_config import MERGE_MODE
from pyhudi.metadata.options import METADATA_OPTIONS
from pyhudi.new_config import NewTable, new_table_config
from pyhudi.properties import DATABASE_NAME, TABLE_NAME
from pyhudi.property_names import (
    HIVE_STYLE,
    KEY_GENERATOR_TYPE,
    META_FIELDS,
    SLASH_DATES,
    TIMEZONE,
    URL_ENCODE,
)
from pyhudi.schema import field_at
from pyhudi.storage import Storage
from pyhudi.txn.metadata_table import make_partitions, wanted_for_new
from pyhudi.txn.options import WRITE_OPTIONS
from pyhudi.txn.rows import conform, data_schema, to_table
from pyhudi.txn.virtual import check_virtual_keys

if TYPE_CHECKING:
    from pyhudi.engine.protocol import Engine
    from pyhudi.table import HudiTable

TableKind = Literal["cow", "mor"]

_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
_WRITE_MERGE_MODE = "hoodie.write.record.merge.mode"
_CREATE_OPTIONS = (
    TABLE_NAME,
    DATABASE_NAME,
    HIVE_STYLE,
    URL_ENCODE,
    SLASH_DATES,
    KEY_GENERATOR_TYPE,
    TIMEZONE,
    META_FIELDS,
    MERGE_MODE,
    _WRITE_MERGE_MODE,
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
    options: Mapping[str, object] | None = None,
    storage_options: Mapping[str, str] | None = None,
    engine: Engine | None = None,
) -> HudiTable:
    """Makes a table, and fills it when rows are given.

    schema_or_data: a `pyarrow.Schema`, or rows as `HudiTable.insert` takes them. key: the columns
    that tell rows apart, a dot reaching into a struct; None for a table that rows are only added
    to, under generated keys. partition_by: the columns that partition folders are named by; with
    `column:simple` and `column:timestamp` in it, Hudi's custom key generator. order_by: the columns
    whose greater value wins among rows of one key; without them the last write wins.
    type: "cow" (copy-on-write) or "mor" (merge-on-read). version: 6, 8 or 9, the table version of
    Hudi 0.14, 1.0 and 1.1. index: how the handle's writes find keys, in lower case what
    `hoodie.index.type` takes: "record_index" (the default where keys are stored: a key stands once
    in the table), "simple", "global_simple", "bloom", "global_bloom" or "bucket". No table stores
    it but as a record index; a bucket index can be told from the files. A metadata table is made
    unless `hoodie.metadata.enable` is false. options: `hoodie.…` options; the
    table's name is the last part of the location unless `hoodie.table.name` says otherwise;
    `hoodie.table.keygenerator.type` may choose another generator than Hudi would, and
    `hoodie.keygen.timebased.…` say how a timestamp generator renders (zone: UTC by default).

    Raises `ConfigError` when there is a table already or arguments do not fit, `SchemaMismatch` for
    columns or keys that cannot be stored.
    """
    from pyhudi.table import open_table  # noqa: PLC0415 - it imports this module's caller

    chosen = _as_text(options or {})
    if index is not None:
        chosen.setdefault(INDEX_TYPE, index.upper())
    _check_arguments(type, chosen)
    storage = Storage(os.fspath(uri), storage_options)
    clock = SystemClock()
    _check_absent(storage)
    frame = schema_or_data if is_spark_frame(schema_or_data) else None
    if frame is not None:
        from pyhudi.spark.flow import arrow_schema  # noqa: PLC0415 - an extra

        schema_or_data = arrow_schema(frame)
    schema, rows = _schema_and_rows(schema_or_data)
    new = _new_table(
        storage,
        schema,
        key=_names(key),
        partition_by=_names(partition_by),
        order_by=_names(order_by),
        table_type=type,
        version=version,
        options=chosen,
    )
    config = new_table_config(new)
    check_virtual_keys(config)
    kept = {
        name: value
        for name, value in chosen.items()
        if name in WRITE_OPTIONS or name in METADATA_OPTIONS
    }
    if new.partition_types:
        pairs = zip(new.partition_fields, new.partition_types, strict=True)
        kept[PARTITION_SPEC] = ",".join(f"{name}:{kind}" for name, kind in pairs)
    if rows is not None:
        _check_rows(rows, config, kept)
    else:
        key_spec(config, existing_key=None, options=kept)
    wanted = wanted_for_new(config, kept)
    make_table(storage, config, clock)
    table = open_table(uri, storage_options=storage_options, options=kept, engine=engine)
    if wanted:
        make_partitions(table, wanted)
        table.refresh()
    if rows is not None or frame is not None:
        table.insert(rows if frame is None else frame)
    return table


def make_table(storage: Storage, config: TableConfig, clock: Clock) -> None:
    """Puts an empty table on storage; the properties come last, since they make it a table."""
    for folder in (config.timeline_path, config.history_folder):
        _make_folder(storage, folder, clock)
    config.save_new(storage, clock)


def _make_folder(storage: Storage, folder: str, clock: Clock) -> None:
    """Leaves an empty folder where storage has folders: Hudi 1.x wants to list the timeline's."""
    path = f"{folder}/.{clock.uuid()}"
    storage.put(path, b"")
    storage.delete(path)


def _as_text(options: Mapping[str, object]) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }


def _check_arguments(kind: str, options: Mapping[str, str]) -> None:
    if kind not in _TYPES:
        msg = f"type is {kind!r}"
        raise ConfigError(msg, hint='Give "cow" or "mor".')
    if IndexOptions.of(options).kind == PARTITIONED_RECORD_INDEX:
        msg = f"{INDEX_TYPE} is {options[INDEX_TYPE]}: pyhudi makes no such index"
        raise UnsupportedTableFeature(msg, hint="Choose another index.")
    known = (*_CREATE_OPTIONS, *WRITE_OPTIONS, *METADATA_OPTIONS)
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]}?" if near else ""
            msg = f"the option {name} is not known"
            raise ConfigError(msg, hint=hint)


def _check_absent(storage: Storage) -> None:
    if storage.exists(FILE) or storage.exists(f"{FILE}.backup"):
        msg = f"there is a Hudi table at {storage.uri} already"
        raise ConfigError(msg, hint="Open it with open_table, or choose another location.")


def _schema_and_rows(given: Any) -> tuple[pa.Schema, pa.Table | None]:
    if isinstance(given, pa.Schema):
        return data_schema(given), None
    rows = to_table(given)
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
    table_type: TableKind,
    version: int,
    options: Mapping[str, str],
) -> NewTable:
    partition_by, types = _partition_types(partition_by)
    _check_columns(schema, key=key, partition_by=partition_by, order_by=order_by)
    name = options.get(TABLE_NAME) or storage.native.uri.rstrip("/").rsplit("/", 1)[-1]
    record = _avro_name(name)
    mode = options.get(_WRITE_MERGE_MODE) or options.get(MERGE_MODE)
    zone = {TIMEZONE: options[TIMEZONE].upper()} if TIMEZONE in options else {}
    virtual = options.get(META_FIELDS, "").lower() == "false"
    return NewTable(
        name=name,
        table_type="COPY_ON_WRITE" if table_type == "cow" else "MERGE_ON_READ",
        version=version,
        record_key_fields=key,
        partition_fields=partition_by,
        ordering_fields=order_by,
        merge_mode=_merge_mode(mode),
        database=options.get(DATABASE_NAME, ""),
        create_schema=_native.avro_schema(schema, f"{record}_record", f"hoodie.{record}"),
        hive_style=options.get(HIVE_STYLE, "").lower() == "true",
        url_encode=options.get(URL_ENCODE, "").lower() == "true",
        partition_types=types,
        generator=_generator(options),
        extra={
            **zone,
            **_key_properties(options, types),
            **({META_FIELDS: "false"} if virtual else {}),
        },
    )


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
        found[SLASH_DATES] = options[SLASH_DATES].lower()
    return found


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
                msg = f"{role} names {name!r}, which is no column of the table"
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
    spec = key_spec(config, existing_key=None, options=options)
    add_keys(conform(rows, data_schema(fields)), spec, instant="")
