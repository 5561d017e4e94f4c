"""Subqueries in conditions and values: DuckDB computes them once, before the statement runs."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from pyhudi.api.table import HudiTable
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.sql_statements.duckdb_queries import QueryRows
from pyhudi.sql_statements.relations import Relations
from pyhudi.sql_statements.tokens import Tokens

_MAX_VALUES = 10_000
"""Maximum number of values of a subquery: they become part of the expression."""
_PREDICATES = frozenset({"EXISTS", "ANY", "ALL", "SOME"})
_QUERY_WORDS = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE"})


def depends_on_rows(sql: str, relations: Relations, target: HudiTable) -> bool:
    """Return whether a condition has a subquery of EXISTS, or one that is invalid on its own.

    It may refer to the row for which the condition is computed.
    """
    tokens = Tokens(sql, "standard")
    while tokens.raw():
        if tokens.raw() != "(" or tokens.word(1) not in _QUERY_WORDS:
            tokens.at += 1
            continue
        if tokens.word(-1) in _PREDICATES:
            return True
        try:
            _ = QueryRows(tokens.text_in_parentheses("the subquery"), relations, target).columns
        except ConfigError:
            return True
    return False


def with_values(sql: str, relations: Relations, target: HudiTable) -> str:
    """Return an expression with the values of its subqueries in their places.

    Raises `ConfigError` for a subquery that is invalid, depends on the row, or has too many values;
    `UnsupportedTableFeature` for EXISTS, ANY and ALL.
    """
    tokens, result, at = Tokens(sql, "standard"), [], 0
    while tokens.raw():
        if tokens.raw() != "(" or tokens.word(1) not in _QUERY_WORDS:
            tokens.at += 1
            continue
        before = tokens.word(-1)
        if before in _PREDICATES:
            raise UnsupportedTableFeature(
                f"a subquery of {before} here", hint="WHERE can have it, or use MERGE INTO."
            )
        start = tokens.start(tokens.at)
        query = tokens.text_in_parentheses("the subquery")
        rows = _rows(query, relations, target)
        values = _distinct(rows, query) if before == "IN" else _single(rows, query)
        result += [sql[at:start], f"({', '.join(map(_literal, values))})"]
        at = tokens.end(tokens.at - 1)
    return "".join([*result, sql[at:]])


def _rows(query: str, relations: Relations, target: HudiTable) -> pa.ChunkedArray[Any]:
    rows = QueryRows(query, relations, target).read()
    if rows.num_columns != 1:
        raise ConfigError(
            f"the subquery {query!r} has {rows.num_columns} columns", hint="Select one column."
        )
    return rows.column(0)


def _distinct(rows: pa.ChunkedArray[Any], query: str) -> list[Any]:
    values: list[Any] = rows.unique().to_pylist()
    if len(values) > _MAX_VALUES:
        raise ConfigError(
            f"the subquery {query!r} has {len(values):,} values; at most {_MAX_VALUES:,} can be in "
            "an expression",
            hint="Use MERGE INTO.",
        )
    return values


def _single(rows: pa.ChunkedArray[Any], query: str) -> list[Any]:
    """Return the value of a subquery that is a value; null if it has no row."""
    if len(rows) > 1:
        raise ConfigError(f"the subquery {query!r} has several rows", hint="Use IN, or LIMIT 1.")
    return rows.to_pylist() or [None]


def _literal(value: Any) -> str:
    """Return a value as SQL."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int() | Decimal() if not isinstance(value, Decimal) or value.is_finite():
            return f"{value:f}" if isinstance(value, Decimal) else str(value)
        case float() if math.isfinite(value):
            return f"{value:.17e}"
        case float():
            return f"CAST('{value}' AS DOUBLE)"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            return f"CAST('{value.isoformat(' ')}' AS TIMESTAMP)"
        case date():
            return f"CAST('{value.isoformat()}' AS DATE)"
        case _:
            raise ConfigError(
                f"a subquery has values of the type {type(value).__name__}",
                hint="Select numbers, strings, dates or timestamps.",
            )
