"""Runs the operation of Hudi's options map on rows of any form.

The rows are a DataFrame (`pyhudi.spark.write`), or Arrow rows that executors staged for a driver
without a session (the format "pyhudi"). `hudi_options.py` interprets the options. The methods of
the table do the work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.api.create import create_and_fill
from pyhudi.api.table import HudiTable, open_table
from pyhudi.api.table_exists import has_table
from pyhudi.config.index_options import INDEX_TYPE, IndexOptions
from pyhudi.config.log import warn
from pyhudi.config.meta_columns import RECORD_KEY
from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.config.metadata_options import RECORD_INDEX_ENABLE
from pyhudi.config.new_table_properties import NewTable
from pyhudi.config.table_config import TableConfig
from pyhudi.config.write_options import COMBINE_INSERTS, COMBINE_UPSERTS
from pyhudi.engine.protocol import Engine
from pyhudi.errors import (
    ConfigError,
    MetadataTableWarning,
    SchemaMismatch,
    UnsupportedTableFeature,
    without_hint,
)
from pyhudi.index.detection import IndexDetector
from pyhudi.index.selection import choose
from pyhudi.schema.table_schema import is_meta
from pyhudi.spark.column_compatibility import match_names, missing_columns, resolve_name
from pyhudi.spark.hudi_defaults import warn_of_defaults
from pyhudi.spark.hudi_options import HUDIS_INDEX, OPERATION, TO_DELETE, WriteRequest
from pyhudi.spark.option_conflicts import check_write_options
from pyhudi.storage.storage import Storage
from pyhudi.write import input_rows
from pyhudi.write.partition_selection import paths_of
from pyhudi.write.upsert import open_write

if TYPE_CHECKING:
    from typing_extensions import Self

_MODES = ("append", "overwrite", "ignore", "error", "errorifexists", "default")
_DELETES = ("delete", "delete_partition")
_REPLACING = ("insert_overwrite", "insert_overwrite_table")

Rows = TypeVar("Rows", bound="InputRows")


class InputRows(Protocol):
    """Rows of a write, in a form that the methods of a table accept."""

    @property
    def case(self) -> bool:
        """Whether names that differ only in case are different."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""

    @property
    def schema(self) -> pa.Schema:
        """The columns in Arrow's types."""

    @property
    def data(self) -> Any:
        """The rows, for the methods of a table."""

    def select(self, names: Sequence[str]) -> Self:
        """Return these columns."""

    def rename(self, names: Sequence[str]) -> Self:
        """Return the rows with other names of all columns."""

    def add_nulls(self, names: Sequence[str], schema: pa.Schema) -> Self:
        """Return the rows with null columns in the types of a table's schema."""

    def partition_paths(self, table: HudiTable) -> list[str]:
        """Return the partition paths of rows with the partition columns, sorted."""

    def separate_keyless(self, key: Sequence[str]) -> AbstractContextManager[Self]:
        """Yield the rows that are to be written; the others are set aside, if the caller wants."""


@dataclass(frozen=True)
class Target:
    """Location and engine of a write."""

    path: str
    engine: Engine
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    is_session: bool = True
    """Whether the write applies Hudi's default index to an existing table, and may remove a record
    index that no option names; otherwise it uses the table's own index."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the table's methods, such as `memory_limit`."""

    @property
    def storage(self) -> Storage:
        """Return the storage of the table."""
        return Storage(self.path, self.storage_options)

    def open(self, request: WriteRequest) -> HudiTable:
        """Return the existing table."""
        return open_table(
            self.path,
            engine=self.engine,
            storage_options=self.storage_options,
            options=request.handle,
        )


def existing_table(target: Target, request: WriteRequest, mode: str) -> HudiTable | None:
    """Return the table that a write changes; None if the write creates one.

    Raises `ConfigError` and `UnsupportedTableFeature` if the mode does not match the location or
    the operation, or the table differs from the options.
    """
    mode = mode.strip().lower()
    if mode not in _MODES:
        raise ConfigError(f"mode is {mode!r}", hint=f"One of {', '.join(_MODES)}.")
    storage = target.storage
    exists = has_table(storage)
    if request.operation in _DELETES and mode != "append":
        raise ConfigError(
            f"{OPERATION} is {request.operation}: it does not support mode {mode!r}",
            hint='Use mode="append".',
        )
    if exists and mode in ("error", "errorifexists", "default"):
        raise ConfigError(
            f"a Hudi table exists at {storage.uri}",
            hint='mode="append" writes to it, "overwrite" replaces it.',
        )
    if mode == "overwrite" and request.operation == "insert_overwrite":
        raise UnsupportedTableFeature(
            f'{OPERATION} is insert_overwrite with mode="overwrite": releases of Hudi differ in '
            "whether they drop the table",
            hint='Use mode="append" to replace partitions, or insert_overwrite_table.',
        )
    if request.operation not in _DELETES and (not exists or _replaces(request, mode)):
        return None
    table = target.open(request)
    if mode != "ignore":
        check_write_options(request, table.config)
    return table


def _replaces(request: WriteRequest, mode: str) -> bool:
    return mode.strip().lower() == "overwrite" and request.operation != "insert_overwrite_table"


def run_write(rows: InputRows, request: WriteRequest, target: Target, mode: str) -> HudiTable:
    """Write the rows in one commit, and return a handle of the table.

    Hudi's meta columns among the rows are dropped. Raises as `pyhudi.spark.write`.
    """
    table = existing_table(target, request, mode)
    names = rows.columns
    data = rows.select([name for name in names if not is_meta(name)])
    if table is not None and mode.strip().lower() == "ignore":
        return table
    warn_of_defaults(request, table)
    if table is None:
        return _create(data, request, target, replaces=_replaces(request, mode))
    _check_no_update(request, table.config, names)
    if target.is_session:
        table = _with_hudis_index(table, request)
    _write(table, request, target, _rename_as(data, table.schema.names))
    return table


def _rename_as(data: Rows, names: Sequence[str]) -> Rows:
    """Return the rows with the table's names, where they differ in case only."""
    before = data.columns
    new = [resolve_name(name, names, case=data.case) or name for name in before]
    return data if new == before else data.rename(new)


def _create(data: InputRows, request: WriteRequest, target: Target, *, replaces: bool) -> HudiTable:
    def fill(table: HudiTable, rows: Any) -> None:
        operation = operation_of(request, table.config)
        if operation != "upsert":
            _execute(table, request, target, operation, rows)
            return
        # The table is empty: inserting one row of each key needs no lookup.
        combine_option = {COMBINE_INSERTS: table.options.get(COMBINE_UPSERTS, "true")}
        as_upsert = HudiTable(table.storage, table.engine, {**table.options, **combine_option})
        _execute(as_upsert, request, target, "insert", rows)
        table.refresh()

    key = match_names(request.key or (), data.columns, case=data.case)
    with data.separate_keyless(key) as rows:
        return create_and_fill(
            target.path,
            rows.data,
            fill,
            key=key or None,
            partition_by=match_names(request.partition_by or (), data.columns, case=data.case)
            or None,
            order_by=match_names(request.order_by or (), data.columns, case=data.case) or None,
            type="mor" if request.type == "mor" else "cow",
            version=request.version or NewTable.version,
            index=None,
            mode="overwrite" if replaces else "error",
            options={**request.table_options, **request.for_new},
            storage_options=target.storage_options,
            engine=target.engine,
        )


def _with_hudis_index(table: HudiTable, request: WriteRequest) -> HudiTable:
    """Return the table with the index that Hudi uses, if the options name none.

    A record index with table-wide unique keys is removed if the write uses an index with keys per
    partition, as in Hudi: it would have one location of a key that has several. An index with the
    same results stays in use, and buckets stay buckets.
    """
    config, options = table.config, table.options
    detected = IndexDetector(table.storage, config, table.state.timeline)
    by_partition = detected.record_index_by_partition
    same_rows = by_partition or (by_partition is False and not config.partition_fields)
    if INDEX_TYPE not in options:
        if same_rows or detected.has_buckets:
            return table
        options = {**options, INDEX_TYPE: HUDIS_INDEX}
    if by_partition is False and not (same_rows or request.requests_record_index):
        index = choose(table.storage, config, detected.timeline, IndexOptions.of(options))
        if not index.is_global:
            _remove_record_index(table)
    return HudiTable(table.storage, table.engine, options)


def _remove_record_index(table: HudiTable) -> None:
    enable = RECORD_INDEX_ENABLE[0]
    try:
        table.drop_index(RECORD_INDEX)
    except ConfigError as error:
        cause = without_hint(error)
        msg = f"no option asks for the table's record index, which cannot be removed: {cause}"
        raise ConfigError(
            msg, hint=f"Pass {enable}=true with {INDEX_TYPE}=RECORD_INDEX."
        ) from error
    warn(
        f"{table.storage.uri}: the record index was removed, as Apache Hudi removes it where no "
        "option asks for it: a key is unique in its partition from now on, and no longer over all "
        f"partitions; {enable}=true with {INDEX_TYPE}=RECORD_INDEX keeps it",
        MetadataTableWarning,
    )


def operation_of(request: WriteRequest, config: TableConfig) -> str:
    """Return the operation as `HoodieSparkSqlWriter.deduceOperation` (1.2.0) does.

    Rows with generated keys cannot be looked up, so the default is a bulk insert.
    """
    return request.operation or ("upsert" if config.record_key_fields else "bulk_insert")


def _check_no_update(request: WriteRequest, config: TableConfig, columns: Sequence[str]) -> None:
    """Raise for rows that were read from a table without a key with their generated keys.

    In Hudi they are an update (`deduceOperation` and `canDoPreppedWrites`, 1.2.0).
    """
    if request.operation is None and not config.record_key_fields and RECORD_KEY in columns:
        raise UnsupportedTableFeature(
            f"hoodie.table.recordkey.fields is not set and the data have {RECORD_KEY}: an update "
            "by generated keys",
            hint=f"To add the rows, drop the meta columns, or set {OPERATION}=bulk_insert.",
        )


def _write(table: HudiTable, request: WriteRequest, target: Target, data: InputRows) -> None:
    config = table.config
    if request.operation == "delete_partition":
        metadata = target.arguments.get("commit_metadata")
        table.delete_partitions(_partitions(table, request, data), commit_metadata=metadata)
        return
    operation = operation_of(request, config)
    with data.separate_keyless(config.record_key_fields) as rows:
        if operation == "delete":
            _delete(table, target, rows)
        else:
            _put(table, request, target, operation, rows)


def _delete(table: HudiTable, target: Target, rows: InputRows) -> None:
    """Delete the keys of the rows, in their partitions; under a global index in all partitions."""
    config, timeline = table.config, table.state.timeline
    index = choose(table.storage, config, timeline, IndexOptions.of(table.options))
    partition_fields = () if index.is_global else config.partition_fields
    tops = (name.split(".")[0] for name in (*config.record_key_fields, *partition_fields))
    named = [name for name in dict.fromkeys(tops) if name in rows.columns]
    table.delete_keys(rows.select(named).data, **target.arguments)


def _put(
    table: HudiTable, request: WriteRequest, target: Target, operation: str, rows: InputRows
) -> None:
    missing = missing_columns(rows.schema, table.schema, case=rows.case)
    if missing and not request.nulls_for_missing:
        raise SchemaMismatch(
            f"the input is missing the columns {', '.join(missing)}",
            hint="With hoodie.datasource.write.reconcile.schema=true they get nulls.",
        )
    if operation in _REPLACING:
        rows = rows.add_nulls(
            [name for name in table.schema.names if name in missing], table.schema
        )
    _execute(table, request, target, operation, rows.data)


def _execute(
    table: HudiTable, request: WriteRequest, target: Target, operation: str, data: Any
) -> None:
    """Run the method of an operation that writes rows."""
    writers: dict[str, Callable[..., object]] = {
        "upsert": table.upsert,
        "insert": table.insert,
        "bulk_insert": table.bulk_insert,
        "insert_overwrite": table.overwrite_partitions,
        "insert_overwrite_table": table.overwrite,
    }
    arguments = {**target.arguments, "schema_mode": "merge"}
    if operation == "bulk_insert":
        arguments |= {"sort": request.sort, "sort_columns": request.sort_columns}
    writers[operation](data, **arguments)


def _partitions(table: HudiTable, request: WriteRequest, data: InputRows) -> list[str]:
    """Return the partitions for `delete_partitions`: those of the option, or those of the rows."""
    if request.delete:
        existing = table.inspect.partitions().column("partition").to_pylist()
        return sorted(
            {path for pattern in request.delete for path in _match_partitions(pattern, existing)}
        )
    names = list(table.config.partition_fields)
    if not names:
        raise ConfigError(f"{OPERATION} is delete_partition, and the table has no partitions")
    missing = [name for name in names if name.split(".")[0] not in data.columns]
    if missing:
        raise SchemaMismatch(
            f"the input is missing the partition column {missing[0]!r}",
            hint=f"Or give {TO_DELETE}.",
        )
    tops = dict.fromkeys(name.split(".")[0] for name in names)
    return data.select(list(tops)).partition_paths(table)


def _match_partitions(pattern: str, existing: list[str]) -> list[str]:
    """Return the partition paths that match an entry of the option.

    As in `HoodieSparkSqlWriter.resolvePartitionWildcards` (1.2.0), only the star is a pattern,
    which Spark SQL may have encoded.
    """
    star = next((text for text in ("*", "%2A") if text in pattern), None)
    if star is None:
        return [pattern]
    pattern_of_paths = re.compile(".*".join(map(re.escape, pattern.split(star))), re.DOTALL)
    return [path for path in existing if pattern_of_paths.fullmatch(path)]


@dataclass(frozen=True)
class ArrowRows:
    """Rows as an Arrow table, which may be in a mapped file."""

    data: pa.Table
    case: bool = False

    @property
    def columns(self) -> list[str]:
        """Return the names of the columns."""
        names: list[str] = self.data.column_names
        return names

    @property
    def schema(self) -> pa.Schema:
        """Return the columns in Arrow's types."""
        return self.data.schema

    def select(self, names: Sequence[str]) -> ArrowRows:
        """Return these columns."""
        return ArrowRows(self.data.select(list(names)), self.case)

    def rename(self, names: Sequence[str]) -> ArrowRows:
        """Return the rows with other names of all columns."""
        return ArrowRows(self.data.rename_columns(list(names)), self.case)

    def add_nulls(self, names: Sequence[str], schema: pa.Schema) -> ArrowRows:
        """Return the rows with null columns in the types of a table's schema."""
        data = self.data
        for name in names:
            data = data.append_column(name, pa.nulls(data.num_rows, schema.field(name).type))
        return ArrowRows(data, self.case)

    def partition_paths(self, table: HudiTable) -> list[str]:
        """Return the partition paths of rows with the partition columns, sorted."""
        context = open_write(table, None, input_rows.MIN_MEMORY)
        return sorted(pc.unique(paths_of(context, self.data)).to_pylist())

    def separate_keyless(self, key: Sequence[str]) -> AbstractContextManager[ArrowRows]:  # noqa: ARG002
        """Yield all rows: those without a key are an error."""
        return nullcontext(self)
