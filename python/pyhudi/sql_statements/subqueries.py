"""Subqueries in conditions and values: DuckDB computes them, before the statement runs.

One without a reference to the row is computed once. For others DuckDB finds the rows.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from pyhudi.api.table import HudiTable
from pyhudi.config.formatting import count_text
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.schema.sql_parser import SqlTree, parse_one
from pyhudi.sql_statements.duckdb_queries import QueryRows
from pyhudi.sql_statements.relations import Relations
from pyhudi.sql_statements.tokens import Tokens, quote_name, quote_text

_MAX_VALUES = 10_000
"""Maximum number of values of a subquery: they become part of the expression."""
_PREDICATES = frozenset({"EXISTS", "ANY", "ALL", "SOME"})
_QUERY_WORDS = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE"})
_COMPARISONS = (
    *(exp.And, exp.Or, exp.Not, exp.Paren, exp.Is, exp.In, exp.Between, exp.Any, exp.NullSafeEQ),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
    *(exp.Column, exp.Identifier, exp.Literal, exp.Neg, exp.Null, exp.Boolean, exp.DataType),
)
"""Nodes that mean the same in DuckDB's SQL and in SQL expressions of pyhudi."""


def split_condition(
    sql: str, relations: Relations, target: HudiTable
) -> tuple[SqlTree, str | None]:
    """Split a condition at its ANDs into what pyhudi evaluates, and what DuckDB evaluates.

    DuckDB evaluates parts with a subquery of EXISTS, ANY or ALL, or with one that is invalid on its
    own: it may refer to the row. Outside of the subquery they compare columns and constants, which
    means the same in both.

    Returns pyhudi's part, "TRUE" without one, and SQL of DuckDB's part, None without one.

    Raises as `with_values` does, and `UnsupportedTableFeature` for another operation in DuckDB's
    part.
    """
    queries: dict[str, str] = {}
    own: list[Any] = []
    parts: list[str] = []
    for part in conjuncts(parse_one(_replace_subqueries(sql, relations, target, queries), "WHERE")):
        if not any(column.name in queries for column in part.find_all(exp.Column)):
            own.append(part)
            continue
        odd = next((node for node in part.walk() if not _means_the_same(node)), None)
        if odd is not None:
            raise UnsupportedTableFeature(
                f"{odd.sql()} next to a subquery that depends on the row",
                hint="Join it with AND, or move it into the subquery, which is DuckDB's SQL.",
            )
        text = part.sql(dialect="duckdb", identify=True)
        for name, query in queries.items():
            text = text.replace(quote_name(name), query)
        parts.append(f"({text})")
    tree = exp.and_(*own) if own else exp.true()
    return SqlTree(tree.sql(), tree), " AND ".join(parts) or None


def conjuncts(tree: Any) -> list[Any]:
    """Return the conditions that AND joins."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.And):
        return [*conjuncts(tree.this), *conjuncts(tree.expression)]
    return [tree]


def with_values(sql: str, relations: Relations, target: HudiTable) -> str:
    """Return an expression with the values of its subqueries in their places.

    Raises `ConfigError` for a subquery that is invalid, depends on the row, or has too many values;
    `UnsupportedTableFeature` for EXISTS, ANY and ALL.
    """
    return _replace_subqueries(sql, relations, target, None)


def _replace_subqueries(
    sql: str, relations: Relations, target: HudiTable, dependent: dict[str, str] | None
) -> str:
    """Return an expression with the values of its subqueries in their places.

    dependent: gets the subqueries that may depend on the row, by the names that replace them;
    None if there must be none.
    """
    tokens, result, at = Tokens(sql, "standard"), [], 0
    while tokens.raw():
        if tokens.raw() != "(" or tokens.word(1) not in _QUERY_WORDS:
            tokens.at += 1
            continue
        before = tokens.word(-1)
        if before in _PREDICATES and dependent is None:
            raise UnsupportedTableFeature(
                f"a subquery of {before} here", hint="WHERE can have it, or use MERGE INTO."
            )
        start = tokens.start(tokens.at - (before == "EXISTS"))
        query = tokens.text_in_parentheses("the subquery")
        if dependent is not None and (
            before in _PREDICATES or _is_dependent(query, relations, target)
        ):
            name = f"_pyhudi_subquery_{len(dependent)}"
            dependent[name] = f"EXISTS ({query}\n)" if before == "EXISTS" else f"{query}\n"
            text = name if before == "EXISTS" else f"({name})"
        else:
            rows = _rows(query, relations, target)
            values = _distinct(rows, query) if before == "IN" else _single(rows, query)
            text = f"({', '.join(map(_literal, values))})"
        result += [sql[at:start], text]
        at = tokens.end(tokens.at - 1)
    return "".join([*result, sql[at:]])


def _means_the_same(node: Any) -> bool:
    """Return whether a node means the same in DuckDB's SQL and in expressions of pyhudi."""
    if type(node) is exp.Anonymous:
        return str(node.this).upper() in _PREDICATES
    if type(node) is exp.Cast:  # such as DATE '2026-01-31'
        return isinstance(node.this, exp.Literal)
    return type(node) in _COMPARISONS


def _is_dependent(query: str, relations: Relations, target: HudiTable) -> bool:
    """Return whether a query is invalid on its own."""
    try:
        _ = QueryRows(query, relations, target).columns
    except ConfigError:
        return True
    return False


def _rows(query: str, relations: Relations, target: HudiTable) -> pa.ChunkedArray[Any]:
    rows = QueryRows(query, relations, target).read()
    if rows.num_columns != 1:
        raise ConfigError(
            f"the subquery {query!r} has {count_text(rows.num_columns, 'column')}",
            hint="Select one column.",
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
            return quote_text(value)
        case datetime():
            return f"CAST('{value.isoformat(' ')}' AS TIMESTAMP)"
        case date():
            return f"CAST('{value.isoformat()}' AS DATE)"
        case _:
            raise ConfigError(
                f"a subquery has values of the type {type(value).__name__}",
                hint="Select numbers, strings, dates or timestamps.",
            )
