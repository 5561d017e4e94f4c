"""Runs SQL statements on Hudi tables: Spark evaluates expressions and queries, pyhudi writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeAlias
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pyhudi.api.table import open_table
from pyhudi.config import argument_checks as arg
from pyhudi.config.hint_spelling import for_sql, spell_hints
from pyhudi.config.lock_options import LockOptions
from pyhudi.config.log import warn
from pyhudi.config.options import check_options
from pyhudi.errors import ConfigError, MaintenanceWarning, UnsupportedTableFeature
from pyhudi.spark import sql_ddl
from pyhudi.spark.delta_style_dml import Change, ChangingTable
from pyhudi.spark.delta_style_merge_frame import SparkClause
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.hudi_format import read as read_by_options
from pyhudi.spark.job_watch import is_connect
from pyhudi.spark.sql_insert import insert_rows
from pyhudi.spark.sql_tables import (
    TableLocation,
    catalog_has,
    find_table,
    spark_sql,
    string_literal,
    uses_catalog,
)
from pyhudi.spark.to_dataframe import frame_of, frame_of_rows
from pyhudi.sql_statements.procedures import (
    PROCEDURES,
    call_procedure,
    filesystem_view,
    query_timeline,
)
from pyhudi.sql_statements.statement_parser import (
    column_to_set,
    first_word,
    name_of_source,
    parse_statement,
    query_of_source,
    target_table,
)
from pyhudi.sql_statements.statements import (
    AlterColumns,
    Assignment,
    Call,
    CreateTable,
    Delete,
    DropTable,
    Insert,
    MergeInto,
    Query,
    Show,
    Statement,
    TableName,
    Update,
)
from pyhudi.sql_statements.table_references import (
    TableReference,
    find_tables,
    range_of_changes,
    replace_tables,
    time_of_function,
)
from pyhudi.sql_statements.target_reads import StaleReadError, TargetReads
from pyhudi.storage.storage import Storage
from pyhudi.table.participants import participate
from pyhudi.txn.result import WriteResult

RowStatement: TypeAlias = MergeInto | Update | Delete | Insert


@arg.check_arguments()
def sql(
    spark: SparkSession,
    statement: str,
    *,
    storage_options: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
) -> DataFrame:
    """Run one SQL statement in which tables may be Hudi tables.

    pyhudi runs MERGE INTO, UPDATE, DELETE, INSERT, CREATE TABLE ... USING hudi, DROP, TRUNCATE and
    ALTER TABLE, statements about partitions, indexes and history, and CALL, each as one commit.
    Spark runs all other statements, with the current snapshot of each Hudi table. Spark evaluates
    all expressions and queries.

    A Hudi table is named by its path (hudi.`/lake/trips`), by a name given to `register`, by its
    name in Spark's catalog if its provider is Hudi, or by its directory in Spark's warehouse.

    Args:
        spark: a classic or Spark Connect session of PySpark 3.5 or 4.x.
        statement: one statement of Spark SQL.
        storage_options: access to the storage of tables that are not registered, as in
            `pyhudi.open_table`.
        options: `hoodie.…` options of tables that are not registered.

    Returns:
        The rows of a query. For a write, one row with the instant and the numbers of inserted,
        updated and deleted rows; for a procedure, its result.

    Raises:
        ConfigError: the statement is incomplete, or a value of it is wrong.
        UnsupportedTableFeature: the statement needs something that pyhudi or the table does not
            support.
        SchemaMismatch: columns or values do not match the table.
        TableNotFound: a path has no table.
        CommitConflict: another writer changed the same rows.
    """
    return SqlRunner(spark, TableLocation("", storage_options, options)).run(statement)


@dataclass(frozen=True)
class SqlRunner:
    """Runs the statements of a session."""

    spark: SparkSession
    default: TableLocation
    on_session: bool = False
    """Whether the caller is `spark.sql` itself: statements that pyhudi does not have are Spark's,
    if they change no Hudi table."""
    changed: str | None = None
    """The location of the table that the statement changes."""
    reads: TargetReads = field(default_factory=TargetReads)
    """The snapshots that the statement reads of this table."""

    @spell_hints(for_sql)
    def run(
        self, text: str, args: Any = None, kwargs: Mapping[str, Any] = MappingProxyType({})
    ) -> DataFrame:
        """Run one statement. Spark puts the arguments into a query."""
        try:
            statement = parse_statement(text)
        except ConfigError:
            table = target_table(text)
            is_hudis = first_word(text) == "CREATE" or (
                table is not None and self._find(table) is not None
            )
            if is_hudis or not self.on_session:
                raise
            return spark_sql(self.spark, text, args, **kwargs)
        location = self._location(statement)
        if location is None or isinstance(statement, Query):
            stored_in = statement.stored_in if isinstance(statement, Query) else None
            # A Connect session analyses a query again when it runs.
            stays = stored_in is not None or is_connect(self.spark)
            with self._views(text, stored_in, stays=stays) as query:
                return spark_sql(self.spark, query, args, **kwargs)
        if args or kwargs:
            raise UnsupportedTableFeature(
                f"arguments of spark.sql in {first_word(text)}, which pyhudi runs",
                hint="Put the query into a temporary view, or the values into the statement.",
            )
        match statement:
            case Call():
                return self._call(statement)
            case CreateTable():
                with self._views(statement.query or "") as query:
                    sql_ddl.create(self.spark, statement, query or None, self.default)
                return self._empty()
            case MergeInto() | Update() | Delete() | Insert():
                return self._result_frame(self._change_rows(statement, location))
            case Show():
                return sql_ddl.show(self.spark, statement, self._open(location))
            case DropTable():
                sql_ddl.drop(self.spark, statement, location)
                return self._empty()
            case _:
                result = sql_ddl.run(self.spark, statement, self._open(location))
                if isinstance(statement, AlterColumns):
                    self._alter_entry(statement.table, text)
                return self._empty() if result is None else self._result_frame(result)

    def _location(self, statement: Statement) -> TableLocation | None:
        """Return where the table of a statement is that pyhudi runs; None if Spark runs it."""
        match statement:
            case Query():
                return None
            case CreateTable():
                return self.default
            case Call():
                is_hudis = statement.procedure in {"help", *PROCEDURES}
                return self.default if is_hudis or not self.on_session else None
        location = self._find(statement.table)
        if location is None and not self.on_session:
            self._check_name(statement)
        return location

    def _find(self, table: TableName) -> TableLocation | None:
        return find_table(self.spark, table, self.default)

    def _alter_entry(self, table: TableName, text: str) -> None:
        """Repeat a change of columns on the entry of a table in Spark's catalog.

        A failure is a warning, because the change of the table has already succeeded.
        """
        if uses_catalog(self.spark) and catalog_has(self.spark, table):
            try:
                spark_sql(self.spark, text)
            except PySparkException as error:
                warn(
                    f"Spark's catalog keeps the former columns of {table}, and views miss new "
                    f"ones: {str(error).splitlines()[0]}",
                    MaintenanceWarning,
                )

    def _open(self, location: TableLocation) -> ChangingTable:
        storage = Storage(location.uri, location.storage_options)
        return ChangingTable(storage, SparkEngine(self.spark), check_options(location.options))

    def _empty(self) -> DataFrame:
        return self.spark.createDataFrame([], "status string")

    @staticmethod
    def _check_name(statement: Statement) -> None:
        """Raise `ConfigError` for a statement that only Hudi has, on a table that is not found."""
        if isinstance(statement, Show) and statement.what in {"history", "detail", "indexes"}:
            raise _not_found(statement.table)

    def _change_rows(self, statement: RowStatement, location: TableLocation) -> WriteResult:
        """Run a statement again if rows of its table that it read have changed since."""
        for _ in range(LockOptions.of(check_options(location.options)).retries):
            with suppress(StaleReadError):
                return self._change_rows_once(statement, location)
        return self._change_rows_once(statement, location)

    def _change_rows_once(self, statement: RowStatement, location: TableLocation) -> WriteResult:
        uri = Storage(location.uri, location.storage_options).uri
        runner = replace(self, reads=TargetReads(), changed=uri)
        with participate(runner.reads):
            if not isinstance(statement, Insert):
                return runner._change(statement, location)  # noqa: SLF001 - of its own class
            with runner._views(statement.query) as query:  # noqa: SLF001 - as above
                rows = spark_sql(self.spark, query)
                return insert_rows(self._open(location), statement, rows)

    def _change(
        self, statement: MergeInto | Update | Delete, location: TableLocation
    ) -> WriteResult:
        by_path = statement.table.path is not None
        alias = statement.alias or (None if by_path else statement.table.parts[-1])
        table = self._open(location)
        with ExitStack() as stack:

            def prepare(text: str | None) -> str | None:
                return None if text is None else stack.enter_context(self._views(text))

            def values(assignments: Sequence[Assignment]) -> dict[str, Any]:
                columns = [column_to_set(assignment, statement) for assignment in assignments]
                twice = next((name for name in columns if columns.count(name) > 1), None)
                if twice is not None:
                    raise ConfigError(f"a clause sets the column {twice!r} twice")
                texts = [prepare(assignment.value) for assignment in assignments]
                return dict(zip(columns, texts, strict=True))

            if isinstance(statement, Delete):
                clause = SparkClause("matched", "delete", prepare(statement.where))
                return table.change(Change((clause,), alias=alias, casts=True))
            if isinstance(statement, Update):
                set_values = values(statement.assignments)
                clause = SparkClause("matched", "update", prepare(statement.where), set_values)
                return table.change(Change((clause,), alias=alias, casts=True))
            source = spark_sql(self.spark, prepare(query_of_source(statement.source)) or "")
            name = statement.source_alias or name_of_source(statement.source)
            clauses = [
                SparkClause(
                    clause.when,
                    clause.action,
                    prepare(clause.condition),
                    None if clause.assignments is None else values(clause.assignments),
                )
                for clause in statement.clauses
            ]
            source = source if name is None else source.alias(name)
            change = Change(clauses, source, prepare(statement.condition), alias, casts=True)
            return table.change(change)

    def _call(self, statement: Call) -> DataFrame:
        def open_named(name: str | None, path: str | None) -> ChangingTable:
            table = TableName.parse(name or "") if path is None else TableName(("hudi", path))
            location = self._find(table)
            if location is None:
                raise _not_found(table)
            return self._open(location)

        return frame_of_rows(self.spark, call_procedure(statement, open_named))

    def _result_frame(self, result: WriteResult) -> DataFrame:
        return frame_of_rows(self.spark, _result_rows(result))

    @contextmanager
    def _views(
        self, text: str, stored_in: str | None = None, *, stays: bool = False
    ) -> Iterator[str]:
        """Yield a statement with other relations in place of its Hudi tables.

        They are temporary views, or entries of Spark's catalog if the catalog keeps the statement.
        The views of a classic session are global: SHOW TABLES does not list them. All users of a
        Connect server could read global views, so there they are the session's.

        stored_in: where Spark keeps the statement (`Query.stored_in`).
        stays: whether the statement needs the views after the block.
        """
        views: list[str] = []
        on_connect = is_connect(self.spark)

        def relation(reference: TableReference) -> str | None:
            location = self._find(reference.table)
            if location is None:
                if reference.function is not None:
                    raise _not_found(reference.table)
                return None
            if reference.time_error is not None:
                raise reference.time_error
            if stored_in == "catalog":
                return self._entry(reference, location)
            frame, name = self._frame(reference, location), f"_pyhudi_{uuid4().hex}"
            if on_connect:
                frame.createTempView(name)
            else:
                frame.createGlobalTempView(name)
            views.append(name)
            return f"`{name}`" if on_connect else f"`{self._global_database}`.`{name}`"

        def drop() -> None:
            catalog = self.spark.catalog
            for name in views:
                (catalog.dropTempView if on_connect else catalog.dropGlobalTempView)(name)

        try:
            yield replace_tables(text, find_tables(text), relation)
        except BaseException:
            drop()
            raise
        if not stays:
            drop()

    @property
    def _global_database(self) -> str:
        return str(self.spark.conf.get("spark.sql.globalTempDatabase", "global_temp"))

    def _entry(self, reference: TableReference, location: TableLocation) -> str:
        """Return an entry of Spark's catalog, with what the entry does not pass to its reader."""
        table = reference.table
        in_catalog = table.path is None and catalog_has(self.spark, table)
        if not in_catalog or reference.function not in {None, "as_of"}:
            raise UnsupportedTableFeature(
                f"a view in Spark's catalog of {reference.function or table}",
                hint="CREATE TEMPORARY VIEW, or on PySpark 4 call pyhudi.spark.enable_sql and name "
                "a table that CREATE TABLE adds to the catalog.",
            )
        as_of = time_of_function(reference) if reference.function else reference.as_of
        options = {"path": location.uri} | ({} if as_of is None else {"as_of": as_of})
        pairs = ", ".join(f"'{name}' = {string_literal(value)}" for name, value in options.items())
        return f"{table} WITH ({pairs})"

    def _frame(self, reference: TableReference, location: TableLocation) -> DataFrame:
        """Return the rows of a table, or of a function about it."""
        match reference.function:
            case None | "as_of":
                as_of = (
                    reference.as_of if reference.function is None else time_of_function(reference)
                )
                table = open_table(
                    location.uri,
                    as_of=as_of,
                    storage_options=location.storage_options,
                    options=location.options,
                    engine=SparkEngine(self.spark),
                )
                if as_of is None and table.uri == self.changed:
                    self.reads.add(table.state)
                return frame_of(table.scan())
            case "hudi_table_changes":
                return read_by_options(
                    self.spark,
                    location.uri,
                    {**(location.options or {}), **_options_of_changes(reference)},
                    storage_options=location.storage_options,
                )
            case "hudi_query_timeline":
                rows = query_timeline(self._open(location), *reference.arguments)
            case _:
                rows = filesystem_view(self._open(location), *reference.arguments)
        return frame_of_rows(self.spark, rows)


def _not_found(table: TableName) -> ConfigError:
    return ConfigError(
        f"{table} is not a Hudi table",
        hint="Register it with pyhudi.spark.register(spark, name, uri), or write hudi.`path`.",
    )


def _result_rows(result: WriteResult) -> pa.Table:
    return pa.table(
        {
            "instant": pa.array([result.instant], pa.string()),
            "rows_inserted": pa.array([result.rows_inserted], pa.int64()),
            "rows_updated": pa.array([result.rows_updated], pa.int64()),
            "rows_deleted": pa.array([result.rows_deleted], pa.int64()),
        }
    )


def _options_of_changes(reference: TableReference) -> dict[str, str]:
    """Return Hudi's options of the query that `hudi_table_changes` runs."""
    query, start, end = range_of_changes(reference)
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": query,
        "hoodie.datasource.read.begin.instanttime": "000" if start is None else start,
    }
    return options | ({} if end is None else {"hoodie.datasource.read.end.instanttime": end})
