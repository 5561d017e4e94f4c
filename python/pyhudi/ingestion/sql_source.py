"""A source of rows of a database that have an increasing column.

The checkpoint is the column's largest value as Spark casts it to a string, as with Hudi
(`JdbcSource`, 1.2.0). Hudi ends a batch after a number of rows, and misses the rows that have the
last value and are not in it. pyhudi ends it after all rows of a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.argument_checks import check_fields, function
from pyhudi.errors import ConfigError, HudiError, StorageError
from pyhudi.ingestion.checkpoint import Position
from pyhudi.ingestion.database_url import connect
from pyhudi.ingestion.source import SourceBatch, TableRows
from pyhudi.input.python_objects import table_from_columns
from pyhudi.input.type_tests import is_number
from pyhudi.suggestions import did_you_mean

CHECKPOINT_KIND = "_pyhudi_ingest_kind"
"""Entry with the kind of a checkpoint: "number" or "text". A number has no quotes in SQL."""

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([Ee][+-]?[0-9]+)?")


@dataclass(frozen=True)
class SqlSource:
    """Rows of a database table or query that have an increasing column, such as an id or a time.

    A row is read once, when its value of the column is larger than the checkpoint. So a row that
    changes must get a new value. Rows without a value are not read.
    """

    connection: str | Callable[[], Any] = field(repr=False)
    """A URL such as `postgresql://user:password@host/database`, `mysql://…` or
    `sqlite:///file.db`; or a function that opens a connection of any DB-API or ADBC driver."""
    query: str
    """A table's name, or a SELECT statement."""
    column: str
    """The increasing column."""
    max_rows: int = 500_000
    """Maximum number of rows of a commit; rows that have one value of the column are in one
    commit."""
    until: str | None = None
    """A SQL expression: only smaller values of the column are read. Transactions may complete in
    another order than their values: `now() - interval '1 minute'` waits for them."""

    def __post_init__(self) -> None:
        """Raise `ConfigError` for a wrong argument."""
        check_fields(self)
        if not isinstance(self.connection, str):
            function("connection", self.connection)
        # A statement may end so, and the query is a part of one.
        object.__setattr__(self, "query", re.sub(r"(\s*;)+\s*$", "", self.query))
        if self.max_rows < 1:
            raise ConfigError("max_rows must be at least 1")

    @property
    def name(self) -> str:
        """The source's name, by which commits tell whether they have its checkpoint."""
        return f"sql:{self.query} by {self.column}"

    def fetch(self, position: Position, columns: pa.Schema | None) -> SourceBatch | None:
        """Return the rows with the next larger values; None without new rows.

        Args:
            position: where to continue.
            columns: types of columns, as far as the table has them.

        Returns:
            The batch.

        Raises:
            ConfigError: the query has no such column, or its values have no order.
            StorageError: the database fails.
        """
        limits = [f"{self.column} IS NOT NULL"]
        if position.checkpoint is not None:
            limits.append(f"{self.column} > {_literal(position)}")
        if self.until is not None:
            limits.append(f"{self.column} < ({self.until})")
        with closing(self._connect()) as connection:
            rows = self._read(connection, limits, columns, self.max_rows + 1)
            if not rows.num_rows:
                return None
            values = self._values(rows)
            if rows.num_rows > self.max_rows:
                # The rows of the last value may not be complete.
                is_before = pc.not_equal(values, values[-1])
                before = rows.filter(is_before)
                if not before.num_rows:
                    same = [f"{self.column} = {_quote(_text(values), _kind(values.type))}"]
                    before = self._read(connection, same, columns, None)
                rows, values = before, self._values(before)
        kind = {CHECKPOINT_KIND: _kind(values.type)}
        return SourceBatch(TableRows(rows), _text(values), kind)

    def _connect(self) -> Any:
        if not isinstance(self.connection, str):
            connection = self.connection()
            if not callable(getattr(connection, "cursor", None)):
                kind = type(connection).__name__
                msg = f"the function of the SqlSource returned {kind}, not a connection"
                hint = "Return what `connect` of a DB-API or ADBC driver returns."
                raise ConfigError(msg, hint=hint)
            return connection
        try:
            return connect(self.connection)
        except HudiError:
            raise
        except Exception as error:
            msg = f"cannot connect to the database: {error}"
            raise StorageError(msg, hint="Check the URL and that the database runs.") from error

    def _values(self, rows: pa.Table) -> pa.ChunkedArray[Any]:
        """Return the increasing column. Raises `ConfigError` if it is missing."""
        name = self.column.rpartition(".")[2].strip('"`')
        if name not in rows.column_names:
            hint = did_you_mean(name, rows.column_names)
            raise ConfigError(f"the query has no column {name!r}", hint=hint)
        return rows.column(name)

    def _read(
        self, connection: Any, limits: list[str], columns: pa.Schema | None, max_rows: int | None
    ) -> pa.Table:
        """Return the rows within limits, in the order of the column."""
        source = f"({self.query}) AS source" if re.search(r"\s", self.query) else self.query
        statement = (
            f"SELECT * FROM {source} WHERE {' AND '.join(limits)} "  # noqa: S608 - of the caller
            f"ORDER BY {self.column}"
        )
        if max_rows is not None:
            statement += f" LIMIT {max_rows}"
        try:
            with closing(connection.cursor()) as cursor:
                cursor.execute(statement)
                if hasattr(cursor, "fetch_arrow_table"):
                    table: pa.Table = cursor.fetch_arrow_table()
                    return table
                names = [each[0] for each in cursor.description]
                values = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(names)
        except Exception as error:
            msg = f"the database failed: {error}"
            raise StorageError(msg, hint=f"The statement was: {statement}") from error
        by_name = {name: list(column) for name, column in zip(names, values, strict=True)}
        return table_from_columns(by_name, columns)


def _kind(data_type: pa.DataType) -> str:
    return "number" if is_number(data_type) else "text"


def _text(values: pa.ChunkedArray[Any]) -> str:
    """Return the largest value as Spark casts it to a string, with UTC's offset for a zone."""
    is_zoned = pa.types.is_timestamp(values.type) and values.type.tz is not None
    largest = pa.array([pc.max(values).as_py()], values.type)
    text: str = _native.shown_text(largest, "checkpoint")[0].as_py()
    return f"{text}+00:00" if is_zoned else text


def _literal(position: Position) -> str:
    return _quote(position.checkpoint or "", position.entries.get(CHECKPOINT_KIND, "text"))


def _quote(value: str, kind: str) -> str:
    """Return a value in SQL. Raises `ConfigError` for one that databases quote differently."""
    if kind == "number":
        if not _NUMBER.fullmatch(value):
            raise ConfigError(f"the checkpoint {value!r} is not a number")
        return value
    if "\\" in value or not value.isprintable():
        raise ConfigError(
            f"the checkpoint {value!r} has a backslash or a control character",
            hint="Use a column of numbers or times.",
        )
    doubled = value.replace("'", "''")
    return f"'{doubled}'"
