"""Making a new table: properties, timeline folders and, when rows are given, the first commit.

There is no metadata table; `new_config.py` knows which properties each version needs.
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
from pyhudi.keys import add_keys, key_spec
from pyhudi.merge_config import MERGE_MODE
from pyhudi.new_config import NewTable, new_table_config
from pyhudi.properties import DATABASE_NAME, TABLE_NAME
from pyhudi.property_names import HIVE_STYLE, TIMEZONE, URL_ENCODE
from pyhudi.storage import Storage
from pyhudi.txn.options import WRITE_OPTIONS
from pyhudi.txn.rows import conform, data_schema, to_table

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
    TIMEZONE,
    MERGE_MODE,
    _WRITE_MERGE_MODE,
)


def create_table(
    uri: str | os.PathLike[str],
    schema_or_data: Any,
    *,
    key: str | Sequence[str],
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
    that tell rows apart. partition_by: the columns that partition folders are named by. order_by:
    the columns whose greater value wins among rows of one key; without them the last write wins.
    type: "cow" (copy-on-write) or "mor" (merge-on-read). version: 6, 8 or 9, the table version of
    Hudi 0.14, 1.0 and 1.1. index: None or "simple". options: `hoodie.…` options; the table's name
    is the last part of the location unless `hoodie.table.name` says otherwise.

    Raises `ConfigError` when there is a table already or arguments do not fit, `SchemaMismatch` for
    columns or keys that cannot be stored.
    """
    from pyhudi.table import open_table  # noqa: PLC0415 - it imports this module's caller

    chosen = _as_text(options or {})
    _check_arguments(type, index, chosen)
    storage = Storage(os.fspath(uri), storage_options)
    clock = SystemClock()
    _check_absent(storage)
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
    if rows is not None:
        _check_rows(rows, config)
    make_table(storage, config, clock)
    kept = {name: value for name, value in chosen.items() if name in WRITE_OPTIONS}
    table = open_table(uri, storage_options=storage_options, options=kept, engine=engine)
    if rows is not None:
        table.insert(rows)
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


def _check_arguments(kind: str, index: str | None, options: Mapping[str, str]) -> None:
    if kind not in _TYPES:
        msg = f"type is {kind!r}"
        raise ConfigError(msg, hint='Give "cow" or "mor".')
    if index not in (None, "simple"):
        msg = f"hoodie.index.type {index!r} is not supported"
        raise UnsupportedTableFeature(msg, hint='Leave it out, or give "simple".')
    known = (*_CREATE_OPTIONS, *WRITE_OPTIONS)
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
    _check_columns(schema, key=key, partition_by=partition_by, order_by=order_by)
    name = options.get(TABLE_NAME) or storage.native.uri.rstrip("/").rsplit("/", 1)[-1]
    record = _avro_name(name)
    mode = options.get(_WRITE_MERGE_MODE) or options.get(MERGE_MODE)
    zone = {TIMEZONE: options[TIMEZONE].upper()} if TIMEZONE in options else {}
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
        extra=zone,
    )


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
    if not roles["key"]:
        msg = "key names no column"
        raise ConfigError(msg, hint="Give the columns that tell rows apart.")
    for role, names in roles.items():
        for name in names:
            if name not in schema.names:
                msg = f"{role} names {name!r}, which is no column of the table"
                raise ConfigError(msg, hint=f"The columns are {', '.join(schema.names)}.")
        if len(set(names)) < len(names):
            msg = f"{role} names a column twice"
            raise ConfigError(msg)


def _avro_name(table_name: str) -> str:
    """The table's name, with `__` for what Avro names cannot hold (`sanitizeName`, 1.2.0)."""
    name = re.sub(r"[^A-Za-z0-9_]", "__", table_name)
    return re.sub(r"^[^A-Za-z_]", "__", name)


def _check_rows(rows: pa.Table, config: TableConfig) -> None:
    """Finds out before there is a table whether its first rows have keys."""
    fields = _native.arrow_schema(config.create_schema or "")
    add_keys(conform(rows, data_schema(fields)), key_spec(config, existing_key=None))
