"""UPDATE, DELETE and INSERT without Spark: each calls one method of the table."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from pyhudi.api.table import HudiTable
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.input.batches import read_batches
from pyhudi.schema.assignments import set_value
from pyhudi.schema.computed_columns import project
from pyhudi.schema.sql_parser import SqlTree
from pyhudi.sql_statements.changed_rows import NamedColumns
from pyhudi.sql_statements.column_names import Side, own_name, resolve_names
from pyhudi.sql_statements.duckdb_queries import QueryRows
from pyhudi.sql_statements.insert_columns import columns_to_fill
from pyhudi.sql_statements.relations import Relations
from pyhudi.sql_statements.statement_parser import column_to_set
from pyhudi.sql_statements.statements import Delete, Insert, Update
from pyhudi.sql_statements.subqueries import split_condition, with_values
from pyhudi.sql_statements.tokens import quote_name
from pyhudi.txn.result import WriteResult
from pyhudi.write.merge_clauses import TARGET

OPERATION = "hoodie.spark.sql.insert.into.operation"
OVERWRITE_MODE = "hoodie.datasource.overwrite.mode"
SETTINGS: Mapping[str, tuple[str, ...]] = {
    OPERATION: ("insert", "bulk_insert", "upsert"),
    OVERWRITE_MODE: ("static", "dynamic"),
}
"""The settings of INSERT INTO and INSERT OVERWRITE with their values, the default first."""

_ALL = SqlTree("TRUE", exp.true())


def run_update(statement: Update, table: HudiTable, relations: Relations) -> WriteResult:
    """Run UPDATE. Raises as `HudiTable.update` does, and `ConfigError` for invalid expressions."""
    where, keys = _condition(statement, table, relations)
    side = _side(statement, table, TARGET if keys else None)
    values: dict[str, SqlTree] = {}
    for assignment in statement.assignments:
        column = own_name(column_to_set(assignment, statement), table.schema.names)
        if column in values:
            raise ConfigError(f"the statement sets the column {column!r} twice")
        value = with_values(assignment.value, relations, table)
        values[column] = resolve_names(value, [side], f"SET {column}")
    condition = resolve_names(where, [side], "WHERE")
    if keys is not None:
        return table.merge(keys).when_matched_update(values, where=condition).execute()
    return table.update(condition, values)


def run_delete(statement: Delete, table: HudiTable, relations: Relations) -> WriteResult:
    """Run DELETE. Raises as `HudiTable.delete` does, and `ConfigError` for invalid expressions."""
    where, keys = _condition(statement, table, relations)
    side = _side(statement, table, TARGET if keys else None)
    condition = resolve_names(where, [side], "WHERE")
    if keys is not None:
        return table.merge(keys).when_matched_delete(where=condition).execute()
    return table.delete(condition)


def run_insert(
    statement: Insert, table: HudiTable, relations: Relations, settings: Mapping[str, str]
) -> WriteResult:
    """Run INSERT INTO or INSERT OVERWRITE with the rows of a query.

    Raises as `HudiTable.insert` does, `SchemaMismatch` for columns that do not match the table's,
    and `ConfigError` for an invalid query or PARTITION clause.
    """
    names = table.schema.names
    query = QueryRows(statement.query, relations, table, by_position=True)
    query_columns = query.columns
    columns, static = columns_to_fill(
        statement,
        query_columns,
        names,
        table.config.partition_fields,
        lambda name: own_name(name, names),
    )
    values = partition_values(static, table)
    # Generated columns are computed.
    filled = {*columns, *static, *table.generated_columns}
    rest = [field for field in table.schema if field.name not in filled]
    constants = [*values.items(), *((field.name, pa.scalar(None, field.type)) for field in rest)]
    rows = NamedColumns(query, [(name, at) for at, name in enumerate(columns)], constants)
    if not statement.overwrite:
        match settings.get(OPERATION):
            case "bulk_insert":
                return table.bulk_insert(rows)
            case "upsert":
                return table.upsert(rows)
            case _:
                return table.insert(rows)
    if static and len(static) == len(statement.partition) and _is_empty(rows):
        return table.delete_partitions([{name: value.as_py() for name, value in values.items()}])
    is_dynamic = settings.get(OVERWRITE_MODE) == "dynamic" and table.config.partition_fields
    return table.overwrite_partitions(rows) if static or is_dynamic else table.overwrite(rows)


def partition_values(spec: Mapping[str, str], table: HudiTable) -> dict[str, pa.Scalar]:
    """Compute the values of a PARTITION clause, in the types of the table's columns.

    Raises `ConfigError` for anything but constants, `SchemaMismatch` if a value does not fit.
    """
    values = {
        name: set_value(value, table.schema.field(name).type, {}, f"PARTITION {name}")
        for name, value in spec.items()
    }
    computed = project(pa.table({"row": [0]}), values)
    return {name: computed.column(name)[0] for name in values}


def _side(statement: Update | Delete, table: HudiTable, prefix: str | None = None) -> Side:
    return Side.of(table.schema.names, _name(statement), prefix)


def _name(statement: Update | Delete) -> str | None:
    by_path = statement.table.path is not None
    return statement.alias or (None if by_path else statement.table.parts[-1])


def _condition(
    statement: Update | Delete, table: HudiTable, relations: Relations
) -> tuple[SqlTree, QueryRows | None]:
    """Return the condition, and the keys of the rows for which DuckDB finds its part of it true.

    None for a condition without a subquery that depends on the row: pyhudi evaluates it.
    """
    if statement.where is None:
        return _ALL, None
    condition, where = split_condition(statement.where, relations, table)
    if where is None:
        return condition, None
    fields = table.config.record_key_fields
    if not fields:
        raise UnsupportedTableFeature(
            "hoodie.table.recordkey.fields is not set: a subquery that depends on the row needs "
            "the key",
            hint="Use IN (SELECT ...) with a query that can run on its own.",
        )
    names = [quote_name(name) for name in dict.fromkeys((*fields, *table.config.partition_fields))]
    name = _name(statement)
    alias = "" if name is None else f"AS {quote_name(name)}"
    columns = ", ".join(names)
    message = "the condition is true for some rows of a key only"
    checked = f"CASE WHEN bool_and(_pyhudi_match) THEN {names[0]} ELSE error('{message}') END"
    keys = ", ".join([f"{checked} AS {names[0]}", *names[1:]])
    match = f"coalesce({where}, false) AS _pyhudi_match"
    source = ".".join(map(quote_name, statement.table.parts))
    rows = f"SELECT {columns}, {match} FROM {source} {alias}"  # noqa: S608 - the caller wrote it
    query = " ".join(
        ("SELECT", keys, f"FROM ({rows})", "GROUP BY", columns, "HAVING bool_or(_pyhudi_match)")
    )
    return condition, QueryRows(query, relations, table)


def _is_empty(rows: NamedColumns) -> bool:
    _, batches = read_batches(rows)
    return all(batch.num_rows == 0 for batch in batches)
