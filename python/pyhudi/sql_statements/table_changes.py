"""Statements that change a table's columns, properties, partitions and indexes, for any engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa

from pyhudi.api.table import HudiTable
from pyhudi.sql_statements.statements import (
    AlterColumns,
    ColumnChange,
    CreateIndex,
    DropIndex,
    DropPartitions,
    SetProperties,
    Truncate,
)
from pyhudi.sql_statements.table_definitions import create_index, index_names
from pyhudi.txn.result import WriteResult

TableChange: TypeAlias = (
    AlterColumns | SetProperties | DropPartitions | Truncate | CreateIndex | DropIndex
)


@dataclass(frozen=True)
class ChangeRules:
    """How an engine understands names, values and types of a statement."""

    match_names: Callable[[Iterable[str], Sequence[str]], Sequence[str]]
    """Returns the columns that names mean; unknown names stay as they are."""
    partition_values: Callable[[Mapping[str, str | None]], dict[str, Any]]
    """Computes the values of a PARTITION clause."""
    column_type: Callable[[ColumnChange], pa.DataType | str]
    """Returns the type of a new or changed column, as `HudiTable.alter` takes it."""


def change_table(
    statement: TableChange, table: HudiTable, rules: ChangeRules
) -> WriteResult | None:
    """Run a statement that changes a table; the result of its commit, if it made one."""
    match statement:
        case Truncate(partition=partition) if not partition:
            return table.overwrite(table.schema.empty_table())
        case Truncate():
            return table.delete_partitions([rules.partition_values(statement.partition)])
        case DropPartitions():
            return table.delete_partitions(
                [rules.partition_values(spec) for spec in statement.partitions]
            )
        case AlterColumns():
            return _alter(statement.changes, table, rules)
        case SetProperties():
            table.set_properties(statement.properties)
        case CreateIndex():
            columns = rules.match_names(statement.columns, table.schema.names)
            create_index(table, statement, columns)
        case DropIndex():
            if not statement.if_exists or statement.name in index_names(table):
                table.drop_index(statement.name)
    return None


def _alter(changes: Iterable[ColumnChange], table: HudiTable, rules: ChangeRules) -> WriteResult:
    builder = table.alter()
    for change in (_in_case_of(table, change, rules) for change in changes):
        match change.action:
            case "add":
                builder = builder.add_column(
                    change.column,
                    rules.column_type(change),
                    first=change.first,
                    after=change.after,
                    doc=change.comment,
                )
            case "rename":
                builder = builder.rename_column(change.column, change.value or "")
            case "drop":
                builder = builder.drop_column(change.column)
            case "type":
                builder = builder.change_type(change.column, rules.column_type(change))
            case "comment":
                builder = builder.set_doc(change.column, change.value)
            case "nullable":
                builder = builder.make_nullable(change.column)
            case "move":
                builder = builder.move_column(change.column, first=change.first, after=change.after)
    return builder.execute()


def _in_case_of(table: HudiTable, change: ColumnChange, rules: ChangeRules) -> ColumnChange:
    """Return a change that names its column as the table does."""
    is_new = change.action == "add" and "." not in change.column
    names = table.schema.names
    (column,) = (change.column,) if is_new else rules.match_names([change.column], names)
    (after,) = (None,) if change.after is None else rules.match_names([change.after], names)
    return replace(change, column=column, after=after)
