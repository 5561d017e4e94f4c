"""CREATE, DROP, ALTER, TRUNCATE, DESCRIBE and CALL without Spark. None of them needs DuckDB.

CREATE TABLE AS is the exception, because it has a query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pyhudi.api.create import create_and_fill
from pyhudi.api.drop import drop_table
from pyhudi.api.table import HudiTable
from pyhudi.api.table_exists import has_table
from pyhudi.config.merge_mode import PAYLOAD_CLASS
from pyhudi.config.new_table_properties import NewTable
from pyhudi.errors import ConfigError, without_hint
from pyhudi.input.batches import read_batches
from pyhudi.schema.sql_types import columns_of, type_name
from pyhudi.sql_statements.changed_rows import NamedColumns
from pyhudi.sql_statements.column_names import match_name
from pyhudi.sql_statements.duckdb_queries import QueryRows
from pyhudi.sql_statements.procedures import call_procedure
from pyhudi.sql_statements.relations import Relations
from pyhudi.sql_statements.row_statements import partition_values
from pyhudi.sql_statements.statements import Call, CreateTable, DropTable, Show, TableName
from pyhudi.sql_statements.table_changes import ChangeRules, TableChange, change_table
from pyhudi.sql_statements.table_definitions import (
    KEY,
    ORDERING,
    PAYLOAD,
    TABLE_TYPE,
    check_partition_spec,
    describe,
    name_option,
    options_of_properties,
    order_partitions_last,
)
from pyhudi.sql_statements.tokens import Tokens, quote_name
from pyhudi.storage.storage import Storage
from pyhudi.txn.result import WriteResult

_PARTITIONS = "hoodie.datasource.write.partitionpath.field"
_PRECOMBINE = "hoodie.datasource.write.precombine.field"
_VERSION = "hoodie.write.table.version"


def run_create(statement: CreateTable, relations: Relations) -> HudiTable:
    """Run CREATE TABLE, with the rows of a query if there is one.

    As in Hudi's SQL, partition columns come last, and directories are named `column=value`. Returns
    the table, which gets its name among the relations.

    Raises as `create_table` does, and `ConfigError` for a table without location or columns, or
    whose name is in use.
    """
    existing = find_existing(statement, relations)
    if existing is not None:
        return _add_name(statement, relations, existing)
    uri = _location(statement)
    if uri is None:
        raise ConfigError(
            f"CREATE TABLE {statement.table} has no location", hint="Add LOCATION '/path'."
        )
    _check_name(statement, uri, relations)
    declared = _column_list(statement)
    if not declared and statement.query is None:
        raise ConfigError(f"{statement.table} has no columns", hint="Declare them, or AS SELECT.")
    schema, rows = _columns_and_rows(statement, declared, relations)
    options = options_of_properties(statement)

    def columns_of_option(*names: str) -> list[str]:
        values = [options.pop(name, None) for name in names]
        text = next((value for value in values if value is not None), "")
        return _match_names(
            [part.strip() for part in text.split(",") if part.strip()], schema.names
        )

    partition_by = _match_names(statement.partition_by, schema.names)
    listed = columns_of_option(_PARTITIONS)
    version = options.pop(_VERSION, str(NewTable.version))
    table_type = options.pop(TABLE_TYPE, "COPY_ON_WRITE")
    key, order_by = columns_of_option(KEY), columns_of_option(ORDERING, _PRECOMBINE)
    if PAYLOAD in options:
        options[PAYLOAD_CLASS] = options.pop(PAYLOAD)
    table = create_and_fill(
        uri,
        order_partitions_last(schema, partition_by),
        None if rows is None else lambda table, _: table.insert(rows),
        key=key or None,
        partition_by=partition_by or listed or None,
        order_by=order_by or None,
        type=table_type,  # type: ignore[arg-type]
        version=_number(version),
        index=None,
        mode="error",
        options={**name_option(statement), **(relations.options or {}), **options},
        storage_options=relations.storage_options,
    )
    return _add_name(statement, relations, table)


def find_existing(statement: CreateTable, relations: Relations) -> HudiTable | None:
    """Return the table that exists, so that CREATE TABLE changes nothing; None to create one.

    IF NOT EXISTS looks for the name first. Without columns and query, a statement names the table
    of a location.
    """
    named = _table_of_name(statement, relations)
    if statement.if_not_exists and named is not None:
        return named
    uri = _location(statement)
    names_a_table = not _column_list(statement) and statement.query is None
    if uri is None or not (statement.if_not_exists or names_a_table):
        return None
    exists = has_table(Storage(uri, relations.storage_options))
    return relations.open(uri) if exists else None


def _table_of_name(statement: CreateTable, relations: Relations) -> HudiTable | None:
    table = None if statement.table.path is not None else relations.find(statement.table)
    return table if isinstance(table, HudiTable) else None


def _check_name(statement: CreateTable, uri: str, relations: Relations) -> None:
    """Raise `ConfigError` if the statement's name is that of a table in another location."""
    named = _table_of_name(statement, relations)
    if named is not None and named.uri != Storage(uri, relations.storage_options).uri:
        raise ConfigError(
            f"{statement.table} is the table at {named.uri}",
            hint="Choose another name, or add IF NOT EXISTS to keep the table.",
        )


def _location(statement: CreateTable) -> str | None:
    return statement.location or statement.table.path


def _column_list(statement: CreateTable) -> str:
    return ", ".join(filter(None, (statement.columns, statement.partition_columns)))


def _number(version: str) -> int:
    if not version.isdecimal():
        raise ConfigError(f"{_VERSION} is {version!r}", hint="Pass 6, 8 or 9.")
    return int(version)


def _columns_and_rows(
    statement: CreateTable, declared: str, relations: Relations
) -> tuple[pa.Schema, NamedColumns | None]:
    """Return the columns of a new table, and the rows of its query."""
    if statement.query is None:
        try:
            return pa.schema(columns_of(_with_backticks(declared))), None
        except ConfigError as error:
            msg = f"CREATE TABLE {statement.table}: {without_hint(error)}"
            raise ConfigError(msg, hint=error.hint) from error
    if declared:
        raise ConfigError(
            f"CREATE TABLE {statement.table} has both columns and a query",
            hint="Leave the columns out; cast them in the query.",
        )
    query = QueryRows(statement.query, relations)
    schema = read_batches(query)[0]
    return schema, NamedColumns(query, [(name, at) for at, name in enumerate(schema.names)])


def _with_backticks(columns: str) -> str:
    """Return columns with the quotes that Spark's syntax of types has."""
    tokens, result, at = Tokens(columns, "standard"), [], 0
    while tokens.raw():
        if tokens.is_quoted():
            start = tokens.start(tokens.at)
            result += [columns[at:start], quote_name(tokens.name(), "spark")]
            at = tokens.end(tokens.at - 1)
        else:
            tokens.at += 1
    return "".join([*result, columns[at:]])


def _add_name(statement: CreateTable, relations: Relations, table: HudiTable) -> HudiTable:
    if statement.table.path is None:
        relations.add(".".join(statement.table.parts), table)
    return table


def run_drop(statement: DropTable, relations: Relations) -> None:
    """Run DROP TABLE: remove the table, and its names. Raises as `drop_table` does."""
    if drops_nothing(statement, relations):
        return
    table = relations.table(statement.table)
    drop_table(table.uri, storage_options=table.storage.options, options=table.options)
    relations.remove(table)


def drops_nothing(statement: DropTable, relations: Relations) -> bool:
    """Return whether DROP TABLE IF EXISTS finds no table."""
    path = statement.table.path
    if not statement.if_exists:
        return False
    if path is None:
        return relations.find(statement.table) is None
    return not has_table(Storage(path, relations.storage_options))


def run_table_change(statement: TableChange, table: HudiTable) -> WriteResult | None:
    """Run a statement that changes columns, properties, partitions or indexes."""

    def values_of(spec: Mapping[str, str | None]) -> dict[str, Any]:
        names = _match_names(spec, table.config.partition_fields)
        check_partition_spec(names, table, spec.values())
        texts = {name: text or "" for name, text in zip(names, spec.values(), strict=True)}
        return {name: value.as_py() for name, value in partition_values(texts, table).items()}

    rules = ChangeRules(_match_names, values_of, lambda change: change.value or "")
    return change_table(statement, table, rules)


def run_show(statement: Show, table: HudiTable) -> pa.Table:
    """Return the rows of a statement that describes a table."""
    match statement.what:
        case "history":
            return table.history(statement.limit)
        case "detail":
            return _detail(table)
        case _:
            columns = [(field.name, type_name(field.type)) for field in table.schema]
            return describe(statement, table, columns)


def run_call(statement: Call, relations: Relations) -> pa.Table:
    """Run CALL. Raises as `call_procedure` does."""

    def open_named(name: str | None, path: str | None) -> HudiTable:
        named = TableName.parse(name or "") if path is None else TableName(("hudi", path))
        return relations.table(named)

    return call_procedure(statement, open_named)


def _detail(table: HudiTable) -> pa.Table:
    config, commits = table.config, table.state.timeline.commits
    strings = pa.list_(pa.string())
    columns: dict[str, tuple[object, pa.DataType]] = {
        "format": ("hudi", pa.string()),
        "name": (table.name, pa.string()),
        "location": (table.uri, pa.string()),
        "type": (table.type, pa.string()),
        "version": (table.version, pa.int32()),
        "recordKeys": (list(config.record_key_fields), strings),
        "partitionColumns": (list(config.partition_fields), strings),
        "orderingColumns": (list(config.ordering_fields), strings),
        "lastInstant": (commits[-1].requested if commits else None, pa.string()),
        "numPartitions": (table.inspect.partitions().num_rows, pa.int64()),
    }
    return pa.table({name: pa.array([value], kind) for name, (value, kind) in columns.items()})


def _match_names(names: Iterable[str], columns: Sequence[str]) -> list[str]:
    """Return the columns that names mean; paths into structs, and unknown names, stay."""
    result = []
    for name in names:
        top, dot, rest = name.partition(".")
        result.append(f"{match_name(top, columns) or top}{dot}{rest}")
    return result
