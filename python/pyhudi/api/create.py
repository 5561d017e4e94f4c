"""Creates a table: properties, timeline directories and, if rows are passed, the first commit.

`config/new_table_properties.py` has the properties of each table version,
`write/metadata_lifecycle.py` creates the metadata table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pyarrow as pa

from pyhudi import _native, events
from pyhudi.api.create_cleanup import create_or_undo
from pyhudi.api.new_name import NewName
from pyhudi.api.new_table import (
    Expressions,
    PartitionBy,
    config_of,
    names_of,
    new_table,
    with_generated,
)
from pyhudi.api.operation_events import as_location_operation, set_location
from pyhudi.api.table import HudiTable, open_table
from pyhudi.api.table_exists import check_same, has_table
from pyhudi.clock import Clock, SystemClock
from pyhudi.config import argument_checks as arg
from pyhudi.config.catalog_sync_options import SYNC_OPTIONS
from pyhudi.config.column_rules import MERGE_RULES, format_rules
from pyhudi.config.index_options import INDEX_TYPE
from pyhudi.config.lock_options import LOCK_OPTIONS, MODE
from pyhudi.config.options import (
    check_options,
    is_handle_option,
)
from pyhudi.config.property_names import (
    PARTITION_SPEC,
)
from pyhudi.config.table_config import TableConfig, TableType
from pyhudi.config.write_options import WriteOptions
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Engine
from pyhudi.engine.spark_loader import is_spark_frame, spark
from pyhudi.engine.spill import local_files
from pyhudi.errors import ConfigError
from pyhudi.input.conform import conform, data_schema, read_table
from pyhudi.input.decode_encodings import plain_schema
from pyhudi.schema.key_generator import add_keys, key_spec
from pyhudi.schema.row_rules import row_rules
from pyhudi.schema.supported_types import check_reserved
from pyhudi.storage.storage import Storage
from pyhudi.timeline.table_directories import make_table
from pyhudi.write.drop_table import check_no_files, remove_table
from pyhudi.write.metadata_lifecycle import (
    build_partitions,
    partitions_for_new_table,
    with_pending_partitions,
)
from pyhudi.write.table_opening import Handle
from pyhudi.write.write_context import WriteContext

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
    partition_by=arg.check_partition_columns,
    order_by=arg.check_ordered_names,
)
def create_table(
    uri: str | os.PathLike[str],
    schema_or_data: Any,
    *,
    key: str | Sequence[str] | None,
    partition_by: PartitionBy = None,
    order_by: str | Sequence[str] | None = None,
    type: TableTypeName = "cow",  # noqa: A002 - the public name
    version: int = 9,
    index: str | None = None,
    constraints: Mapping[str, str] | None = None,
    generated: Expressions | None = None,
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
            `column:timestamp` entries the table uses Hudi's custom key generator. An entry such as
            `pyhudi.day("at")` adds a generated column, `at_day`, and partitions by it.
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
        generated: SQL expressions by name of a generated column, such as {"day": "CAST(at AS
            DATE)"}, or transforms such as `pyhudi.day("at")`. Writers of pyhudi compute the columns
            if the rows do not have them, and check them otherwise; Apache Hudi's writers do
            neither.
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
        generated=generated,
        mode=mode,
        merge_rules=merge_rules,
        options=options,
        storage_options=storage_options,
        engine=engine,
    )


@as_location_operation("create_table")
def create_and_fill(
    uri: str | os.PathLike[str],
    schema_or_data: Any,
    fill: Callable[[HudiTable, Any], object] | None,
    *,
    key: str | Sequence[str] | None,
    partition_by: PartitionBy,
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
    generated: Expressions | None = None,
) -> HudiTable:
    """Create a table as `create_table` does; `fill` writes into it as the last step.

    `fill` gets the rows, or None if only a schema was passed; without `fill` the rows are inserted.
    If it fails, nothing of the table is left. It is not called if the table exists already.
    """
    name = NewName.of(uri, storage_options, options, mode)
    uri, storage_options = name.uri, name.storage_options
    checked = _check_options(name.options, index, merge_rules)
    _check_arguments(type, mode)
    storage = Storage(os.fspath(uri), storage_options)
    clock = SystemClock()
    if mode == "error":
        _check_absent(storage)
    frame = schema_or_data if is_spark_frame(schema_or_data) else None
    if frame is not None:
        schema_or_data = spark("new_columns").new_columns(frame.schema)
    schema, rows = _schema_and_rows(schema_or_data)
    schema, columns, expressions = with_generated(schema, partition_by, generated or {})
    new = new_table(
        storage,
        schema,
        key=names_of(key),
        partition_by=columns,
        order_by=names_of(order_by),
        table_type=_TYPES[type.lower()],
        version=version,
        options=checked,
    )
    config = config_of(new, schema, constraints or {}, expressions)
    set_location(storage.uri, config.name)
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
            with events.suppress_events():
                fill(table, table.schema.empty_table())
    remove_table(handle, clock)


_EXTERNAL_OPTIONS = {*LOCK_OPTIONS, *SYNC_OPTIONS} - {MODE}
"""Options that would make a temporary table visible to other systems."""


def _check_options(
    options: Mapping[str, object] | None,
    index: str | None,
    merge_rules: Mapping[str, str] | None,
) -> dict[str, str]:
    requested = dict(options or {})
    if index is not None:
        requested.setdefault(INDEX_TYPE, index.upper())
    requested |= {MERGE_RULES: format_rules(merge_rules)} if merge_rules else {}
    return check_options(requested, creating=True)


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


def _check_rows(rows: pa.Table, config: TableConfig, options: Mapping[str, str]) -> None:
    """Check that the first rows have keys, before the table is created."""
    fields = _native.arrow_schema(config.create_schema or "")
    spec = key_spec(config, prefixed=None, options=options)
    null_elements = WriteOptions.of(options, config.base_extension).null_elements
    columns = data_schema(fields)
    rules = row_rules(config, columns, null_elements=null_elements)
    rows = conform(rows, columns, rules=rules)
    add_keys(rows, spec, instant="")
