"""Runs SQL statements without Spark: DuckDB evaluates queries, pyhudi's methods change tables."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import pyarrow as pa

from pyhudi.api.table import HudiTable
from pyhudi.config import argument_checks as arg
from pyhudi.config.hint_spelling import for_sql, spell_hints
from pyhudi.config.lock_options import LockOptions
from pyhudi.errors import ConfigError
from pyhudi.sql_statements.definition_statements import (
    run_call,
    run_create,
    run_drop,
    run_show,
    run_table_change,
)
from pyhudi.sql_statements.duckdb_queries import QueryRows
from pyhudi.sql_statements.merge_statement import run_merge
from pyhudi.sql_statements.relations import Relations
from pyhudi.sql_statements.row_statements import SETTINGS, run_delete, run_insert, run_update
from pyhudi.sql_statements.statement_parser import parse_statement
from pyhudi.sql_statements.statements import (
    Call,
    CreateTable,
    Delete,
    DropTable,
    Insert,
    MergeInto,
    Query,
    Show,
    TableName,
    Update,
)
from pyhudi.sql_statements.target_reads import StaleReadError, TargetReads
from pyhudi.sql_statements.tokens import Tokens
from pyhudi.table.participants import participate
from pyhudi.txn.result import WriteResult

SqlResult: TypeAlias = "pa.Table | WriteResult | HudiTable | None"
RowStatement: TypeAlias = MergeInto | Update | Delete | Insert

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

    pyhudi runs UPDATE, DELETE, MERGE INTO and INSERT, each as one commit; CREATE TABLE ... USING
    hudi, DROP, TRUNCATE and ALTER TABLE, statements about partitions, indexes and history, and
    CALL. DuckDB (the extra `duckdb`) evaluates queries, also those of an INSERT and of the source
    of a MERGE: they are in DuckDB's SQL. Conditions and values are SQL expressions of pyhudi.

    Args:
        statement: the statement; names are not case-sensitive.
        tables: tables by name: handles, locations, or rows that queries may read, in any form that
            `HudiTable.upsert` takes. A statement can also name a table by its location:
            hudi.`/lake/trips`.
        storage_options: access to the storage of tables that are named by location, as in
            `open_table`.
        options: `hoodie.…` options of these tables.

    Returns:
        The rows of a query, a description or a procedure; the result of a write; the table of
        CREATE TABLE. None for a statement without any of these.

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
    """Runs statements over tables that keep their names, with settings that SET changes."""

    def __init__(self, relations: Relations) -> None:
        self.relations = relations
        self._settings: dict[str, str] = {}

    @spell_hints(for_sql)
    def run(self, text: str) -> SqlResult:
        """Run one statement; see `sql` for its result and errors."""
        statement = parse_statement(text, "standard")
        match statement:
            case Query():
                return self._query(statement.sql)
            case MergeInto() | Update() | Delete() | Insert():
                return self._change_rows(statement)
            case CreateTable():
                return run_create(statement, self.relations)
            case DropTable():
                run_drop(statement, self.relations)
                return None
            case Call():
                return run_call(statement, self.relations)
            case Show():
                table = self.relations.find(statement.table)
                if table is not None and not isinstance(table, HudiTable):
                    return self._query(text)
                return run_show(statement, self.relations.table(statement.table))
            case _:
                return run_table_change(statement, self._open(statement.table))

    def _query(self, sql: str) -> pa.Table | None:
        tokens = Tokens(sql, "standard")
        if tokens.accept("SHOW", "TABLES"):
            return pa.table({"name": pa.array(self.relations.names, pa.string())})
        if tokens.accept("SET"):
            self._set(tokens)
            return None
        if tokens.word() not in _QUERIES:
            words = " ".join(sql.split()[:2])
            raise ConfigError(
                f"the statement {words} ... is not supported",
                hint="Give a query, INSERT, UPDATE, DELETE, MERGE INTO, CREATE TABLE ... USING "
                "hudi, DROP TABLE, ALTER TABLE or CALL.",
            )
        return QueryRows(sql, self.relations).read()

    def _set(self, tokens: Tokens) -> None:
        """Run SET with one of the settings of INSERT."""
        name = ".".join(tokens.names())
        if name not in SETTINGS:
            raise ConfigError(
                f"SET {name} is not supported", hint=f"The settings are {' and '.join(SETTINGS)}."
            )
        tokens.expect("=")
        value = tokens.string() if tokens.is_string() else tokens.name()
        tokens.finish()
        if value.lower() not in SETTINGS[name]:
            raise ConfigError(
                f"{name} is {value!r}", hint=f"Choose one of {', '.join(SETTINGS[name])}."
            )
        self._settings[name] = value.lower()

    def _open(self, name: TableName) -> HudiTable:
        """Return the table that a statement changes, with its current columns."""
        table = self.relations.table(name)
        return table if table.as_of is not None else table.refresh()

    def _change_rows(self, statement: RowStatement) -> WriteResult:
        """Run a statement again if rows of the table that it read have changed since."""
        table = self._open(statement.table)
        for _ in range(LockOptions.of(table.options).retries):
            with suppress(StaleReadError):
                return self._change_rows_once(statement, table)
            table = table.refresh()
        return self._change_rows_once(statement, table)

    def _change_rows_once(self, statement: RowStatement, table: HudiTable) -> WriteResult:
        self.relations.target_reads = TargetReads()
        with participate(self.relations.target_reads):
            match statement:
                case MergeInto():
                    return run_merge(statement, table, self.relations)
                case Update():
                    return run_update(statement, table, self.relations)
                case Delete():
                    return run_delete(statement, table, self.relations)
                case Insert():
                    return run_insert(statement, table, self.relations, self._settings)
