"""Queries over the tables of a session, which DuckDB evaluates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.api.table import HudiTable
from pyhudi.errors import ConfigError
from pyhudi.input.lazy_rows import LazyRows
from pyhudi.sql_statements.procedures import filesystem_view, query_timeline
from pyhudi.sql_statements.relations import Relations
from pyhudi.sql_statements.statements import TableName
from pyhudi.sql_statements.table_references import (
    TableReference,
    find_tables,
    range_of_changes,
    replace_tables,
    time_of_function,
)
from pyhudi.sql_statements.tokens import Tokens, quote_name

if TYPE_CHECKING:
    import duckdb

_Run = Callable[[Callable[[], Any]], Any]

_RESERVED_COLUMNS = """SELECT keyword_name FROM duckdb_columns() JOIN duckdb_keywords()
    ON lower(column_name) = keyword_name
    WHERE NOT internal AND keyword_category IN ('reserved', 'type_function')"""
"""The columns of a connection's views that a query must quote."""
_VIEW = "_pyhudi_"
"""Prefix of the views of tables that a query names by location or with a time."""


class QueryRows(LazyRows):
    """The rows of a query; each use of them runs it again."""

    def __init__(
        self,
        sql: str,
        relations: Relations,
        target: HudiTable | None = None,
        *,
        by_position: bool = False,
    ) -> None:
        """Describe a query.

        target: the table that the statement changes. The query reads its current snapshot, also if
        the change is retried after a conflict. by_position: the columns are called by their
        positions.
        """
        self._sql, self._relations, self._target = sql, relations, target
        self._by_position = by_position

    @property
    def columns(self) -> list[str]:
        """The names of the query's columns. Raises `ConfigError` for an invalid query."""
        with self._relation() as (relation, _):
            return list(relation.columns)

    def read(self) -> pa.Table:
        """Return all rows. Raises as `to_reader` does."""
        return self.to_reader().read_all()

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream.

        Raises `ConfigError` for an invalid query, for two columns of one name, and if DuckDB is not
        installed.
        """
        batches = self._batches()
        schema = next(batches)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _batches(self) -> Iterator[Any]:
        """Yield the schema, then the batches."""
        with self._relation() as (relation, run):
            # DuckDB 1.1 has the last name only.
            reader = run(partial(arrow_reader, relation))
            schema = self._schema(relation, reader.schema)
            yield schema
            while (batch := run(partial(next, reader, None))) is not None:
                columns = [
                    pa.nulls(len(column), field.type) if pa.types.is_null(field.type) else column
                    for field, column in zip(schema, batch.columns, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _schema(self, relation: duckdb.DuckDBPyRelation, schema: pa.Schema) -> pa.Schema:
        """Return the columns with null as the type of a bare NULL, an integer in DuckDB 1."""
        if not self._by_position:
            _check_names(relation.columns)
        fields = []
        for at, (field, data_type) in enumerate(zip(schema, relation.types, strict=True)):
            is_null = str(data_type).strip('"') == "NULL"
            own_field = field.with_type(pa.null()) if is_null else field
            fields.append(own_field.with_name(str(at)) if self._by_position else own_field)
        return pa.schema(fields)

    @contextmanager
    def _relation(self) -> Iterator[tuple[duckdb.DuckDBPyRelation, _Run]]:
        """Yield the query as DuckDB's relation, and what runs its calls.

        Errors of DuckDB become `ConfigError`.
        """
        if find_spec("duckdb") is None:
            raise ConfigError(
                "queries need DuckDB, which is not installed", hint="pip install 'pyhudi[duckdb]'"
            )
        import duckdb  # noqa: PLC0415 - an extra

        with duckdb.connect() as connection, ThreadPoolExecutor(1) as thread:

            def run(call: Callable[[], Any]) -> Any:
                """Run a call that Ctrl-C cancels, which a call in this thread would ignore."""
                future = thread.submit(call)
                try:
                    return future.result()
                except KeyboardInterrupt:
                    connection.interrupt()
                    raise

            # UTC as everywhere else, instead of this machine's zone.
            connection.execute("SET TimeZone = 'UTC'")
            # Otherwise a name may be that of a variable of this module.
            connection.execute("SET python_enable_replacements = false")
            text = _register(connection, self._sql, self._relations, self._target)
            try:
                relation = run(partial(connection.sql, text))
                if relation is None:
                    raise ConfigError("the statement has no result", hint="Give a query.")
                yield relation, run
            except duckdb.Error as error:
                hint = duckdb_hint(error, self._sql, connection)
                raise ConfigError(f"DuckDB: {error}", hint=hint) from error


def duckdb_hint(error: duckdb.Error, sql: str, connection: duckdb.DuckDBPyConnection) -> str:
    """Return what to do about an error of DuckDB; "" if its message says enough."""
    if "Function with name" in str(error):
        return "Queries have DuckDB's functions, conditions and values have Spark's."
    if type(error).__name__ != "ParserException":
        return ""
    reserved = {name for (name,) in connection.execute(_RESERVED_COLUMNS).fetchall()}
    tokens = Tokens(sql, "standard")
    words: dict[str, None] = {}
    while tokens.raw():
        is_word = not tokens.is_quoted() and tokens.raw(-1) != "."
        if is_word and tokens.raw().lower() in reserved:
            words[quote_name(tokens.raw())] = None
        tokens.at += 1
    names = " and ".join(words)
    if not names:
        return "Queries are DuckDB's SQL. Put names that are words of SQL into double quotes."
    return f"Put {names} into double quotes if a column is meant: DuckDB reserves the word."


def arrow_reader(relation: duckdb.DuckDBPyRelation) -> pa.RecordBatchReader:
    """Return the rows of a relation as a stream, by the method that the release of DuckDB has."""
    names = ("to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader")
    read = getattr(relation, next(name for name in names if hasattr(relation, name)))
    reader: pa.RecordBatchReader = read()
    return reader


def _check_names(columns: Sequence[str]) -> None:
    """Raise `ConfigError` for two columns of one name."""
    names = [name.lower() for name in columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(
            f"two columns of the result are called {twice!r}", hint="Rename one with AS."
        )


def _register(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    relations: Relations,
    target: HudiTable | None,
) -> str:
    """Register the relations that a query names, and return its text with their names."""
    views: list[str] = []

    def relation(reference: TableReference) -> str | None:
        """Return the view of a reference that DuckDB cannot resolve by its name."""
        if reference.time_error is not None:
            raise reference.time_error
        table = reference.table
        is_plain = reference.function is None and reference.as_of is None and table.path is None
        rows = relations.find(table)
        if rows is None and (reference.function is not None or reference.as_of is not None):
            raise relations.not_found(table)
        if rows is None or (is_plain and len(table.parts) == 1):
            return None
        name = f"{_VIEW}{len(views)}"
        views.append(name)
        _register_rows(connection, name, _rows_of(reference, relations, target))
        return name

    text = replace_tables(sql, find_tables(sql, "standard"), relation, "standard")
    mentioned = {name.lower() for name in _names_in(text)}
    for name in relations.names:
        if name.lower() in mentioned:
            reference = TableReference(TableName((name,)), 0, 0)
            _register_rows(connection, name, _rows_of(reference, relations, target))
    return _with_double_quotes(text)


def _names_in(sql: str) -> Iterator[str]:
    tokens = Tokens(sql, "standard")
    while tokens.raw():
        if tokens.is_name():
            yield tokens.name()
        else:
            tokens.at += 1


def _with_double_quotes(sql: str) -> str:
    """Return a query with double quotes around names, where it has backticks."""
    tokens, result, at = Tokens(sql, "standard"), [], 0
    while tokens.raw():
        start, is_backtick = tokens.start(tokens.at), tokens.raw().startswith("`")
        if is_backtick:
            result += [sql[at:start], quote_name(tokens.name())]
            at = tokens.end(tokens.at - 1)
        else:
            tokens.at += 1
    return "".join([*result, sql[at:]])


def _rows_of(reference: TableReference, relations: Relations, target: HudiTable | None) -> Any:
    """Return the rows of a table, or of a function about it."""
    if reference.function is None and reference.as_of is None:
        rows = relations.find(reference.table)
        if isinstance(rows, HudiTable):
            return _current(rows, relations, target).scan()
        return rows
    table = _current(relations.table(reference.table), relations, target)
    match reference.function:
        case None:
            return table.scan(as_of=reference.as_of)
        case "as_of":
            return table.scan(as_of=time_of_function(reference))
        case "hudi_table_changes":
            query, start, end = range_of_changes(reference)
            return (table.incremental if query == "latest_state" else table.changes)(start, end)
        case "hudi_query_timeline":
            return query_timeline(table, *reference.arguments)
        case _:
            return filesystem_view(table, *reference.arguments)


def _current(table: HudiTable, relations: Relations, target: HudiTable | None) -> HudiTable:
    """Return a table, at its current snapshot if the statement changes it."""
    if target is None or table.uri != target.uri:
        return table
    current = HudiTable(table.storage, table.engine, table.options)
    relations.target_reads.add(current.state)
    return current


def _register_rows(connection: duckdb.DuckDBPyConnection, name: str, rows: Any) -> None:
    if isinstance(rows, LazyRows) and hasattr(rows, "to_duckdb"):
        rows.to_duckdb(connection, name)
    else:
        connection.register(
            name, rows.to_reader().read_all() if isinstance(rows, LazyRows) else rows
        )
