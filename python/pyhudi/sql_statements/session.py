"""Runs SQL statements without Spark: DuckDB evaluates queries, pyhudi's methods change tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from pyhudi.api.table import HudiTable
from pyhudi.config import argument_checks as arg
from pyhudi.errors import ConfigError
from pyhudi.sql_statements.duckdb_queries import QueryRows
from pyhudi.sql_statements.merge_statement import run_merge
from pyhudi.sql_statements.relations import Relations
from pyhudi.sql_statements.row_statements import run_delete, run_insert, run_update
from pyhudi.sql_statements.statement_parser import parse_statement
from pyhudi.sql_statements.statements import Delete, Insert, MergeInto, Query, Update
from pyhudi.sql_statements.tokens import Tokens
from pyhudi.txn.result import WriteResult

SqlResult: TypeAlias = "pa.Table | WriteResult | HudiTable | None"

_QUERIES = frozenset(
    [
        "SELECT",
        "WITH",
        "VALUES",
        "FROM",
        "TABLE",
        "(",
        "DESCRIBE",
        "DESC",
        "SUMMARIZE",
        "EXPLAIN",
        "PIVOT",
        "UNPIVOT",
    ]
)
"""First words of the statements that DuckDB runs: they change nothing that a later one reads."""


@arg.check_arguments()
def sql(
    statement: str,
    tables: Mapping[str, Any] | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
) -> pa.Table | WriteResult | HudiTable | None:
    """Run one SQL statement that reads or changes tables.

    pyhudi runs UPDATE, DELETE, MERGE INTO and INSERT, each as one commit. DuckDB (the extra
    `duckdb`) evaluates queries, also those of an INSERT and of the source of a MERGE: they are in
    DuckDB's SQL. Conditions and values are SQL expressions of pyhudi.

    Args:
        statement: the statement; names are not case-sensitive.
        tables: tables by name: handles, locations, or rows that queries may read, in any form that
            `HudiTable.upsert` takes. A statement can also name a table by its location:
            hudi.`/lake/trips`.
        storage_options: access to the storage of tables that are named by location, as in
            `open_table`.
        options: `hoodie.…` options of these tables.

    Returns:
        The rows of a query, the result of a write.

    Raises:
        ConfigError: the statement is incomplete, names an unknown table, or a value of it is wrong;
            or it needs DuckDB, which is not installed.
        UnsupportedTableFeature: the statement needs something that pyhudi or the table does not
            support.
        SchemaMismatch: columns or values do not match the table.
        TableNotFound: a location has no table.
        CommitConflict: a pending operation rules the write out, or another writer changed the same
            file groups.
        StorageError: the storage fails.
    """
    return SqlSession(Relations(tables, storage_options, options)).run(statement)


def sql_on_table(table: HudiTable, statement: str, tables: Mapping[str, Any] | None) -> SqlResult:
    """Run a statement for which a table is called `t`, and by its own name."""
    names = {name.lower() for name in tables or {}}
    if table.name.lower() in names:
        raise ConfigError(
            f"`tables` has the name {table.name!r}, which is that of the table itself",
            hint="Choose another name.",
        )
    own = {name: table for name in dict.fromkeys(("t", table.name)) if name.lower() not in names}
    return SqlSession(
        Relations({**own, **(tables or {})}, table.storage.options, table.options)
    ).run(statement)


class SqlSession:
    """Runs statements over tables that keep their names."""

    def __init__(self, relations: Relations) -> None:
        self.relations = relations

    def run(self, text: str) -> SqlResult:
        """Run one statement; see `sql` for its result and errors."""
        statement = parse_statement(text, "standard")
        match statement:
            case Query():
                return self._query(statement)
            case MergeInto() | Update() | Delete() | Insert():
                return self._change(statement)
            case _:
                raise _statement_error(text)

    def _query(self, statement: Query) -> pa.Table:
        if Tokens(statement.sql, "standard").word() not in _QUERIES:
            raise _statement_error(statement.sql)
        return QueryRows(statement.sql, self.relations).read()

    def _change(self, statement: MergeInto | Update | Delete | Insert) -> WriteResult:
        table = self.relations.table(statement.table)
        if table.as_of is None:
            # The statement's names are those of the current columns.
            table.refresh()
        match statement:
            case MergeInto():
                return run_merge(statement, table, self.relations)
            case Update():
                return run_update(statement, table, self.relations)
            case Delete():
                return run_delete(statement, table, self.relations)
            case Insert():
                return run_insert(statement, table, self.relations)


def _statement_error(text: str) -> ConfigError:
    words = " ".join(text.split()[:2])
    return ConfigError(
        f"the statement {words} ... is not supported",
        hint="Give a query, INSERT, UPDATE, DELETE or MERGE INTO.",
    )
