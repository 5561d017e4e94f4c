"""Parses the SQL of a row filter into a condition tree. Types and schemas are not known here.

The dialect is standard SQL: strings in single quotes, names with odd characters in double quotes. A
comparison of a column with a value becomes a node of the tree, which can prune files;
`predicate_computed.py` handles computations (functions, arithmetic, columns against columns).
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, NoReturn

import pyarrow as pa
from sqlglot import exp

from pyhudi.errors import ConfigError
from pyhudi.schema import predicates
from pyhudi.schema.predicate_computed import constant, is_constant, parse_computed, path_of
from pyhudi.schema.predicate_literals import of_text
from pyhudi.schema.sql_casts import DAY_AND_TIME
from pyhudi.schema.sql_comparisons import FLIPPED
from pyhudi.schema.sql_evaluator import COMPARISONS
from pyhudi.schema.sql_parser import parse_one, too_deep
from pyhudi.schema.sql_precedence import AND_OR, has_bits

_MOMENTS = ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ", "DATETIME")

# An argument that no rule here looks at could turn the meaning around (sqlglot 30 reads NOT LIKE as
# LIKE with `negate`), so a node with any other argument set is refused.
_ARGUMENTS: dict[type[exp.Expression], frozenset[str]] = {
    exp.In: frozenset({"this", "expressions"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Like: frozenset({"this", "expression", "negate"}),
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.Cast: frozenset({"this", "to", "safe"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Literal: frozenset({"this", "is_string"}),
}
_OPERANDS = frozenset({"this", "expression"})


def parse_sql(text: str) -> predicates.Condition:
    """Parse the condition of a SQL expression. Raises `ConfigError` for invalid ones."""
    try:
        return _condition(parse_one(text, "where"))
    except RecursionError:
        raise too_deep("where") from None


def _condition(node: Any) -> predicates.Condition:
    if isinstance(node, exp.Paren):
        return _condition(node.this)
    if isinstance(node, (exp.And, exp.Or)):
        _check_arguments(node)
        kind = exp.And if isinstance(node, exp.And) else exp.Or
        parts = _parts(node, kind)
        return predicates.And(parts) if kind is exp.And else predicates.Or(parts)
    if isinstance(node, exp.Not):
        _check_arguments(node)
        return predicates.Not(_condition(node.this))
    if isinstance(node, exp.Boolean):
        return predicates.Const(bool(node.this))
    if isinstance(node, exp.Null):
        return predicates.Const(None)
    if isinstance(node, exp.Column):
        return predicates.Compare(_column(node), "=", value=True)
    if is_constant(node):
        return _of_constants(node)
    plain = _predicate(node)
    return parse_computed(node) if plain is None else plain


def _parts(node: Any, kind: type[exp.Connector]) -> tuple[predicates.Condition, ...]:
    """Return the operands of a chain of one connector, which the tree nests to the left."""
    parts: list[predicates.Condition] = []
    while isinstance(node, kind):
        _check_arguments(node)
        parts.append(_condition(node.expression))
        node = node.this
    parts.append(_condition(node))
    return tuple(reversed(parts))


def _predicate(node: Any) -> predicates.Condition | None:
    """Return a comparison of a column with a known value; None for any other."""
    if type(node) not in (*COMPARISONS, exp.Between, exp.In, exp.Is, exp.Like, exp.NullSafeEQ):
        return None
    _check_arguments(node)
    if type(node) in COMPARISONS:
        return _comparison(node, COMPARISONS[type(node)])
    if not isinstance(_bare(node.this), exp.Column):
        return None
    column = _column(node.this)
    others = [value for key, value in node.args.items() if key != "this"]
    known = [one for value in others for one in (value if isinstance(value, list) else [value])]
    if not all(is_constant(one) for one in known if isinstance(one, exp.Expression)):
        return None
    if isinstance(node, exp.Between):
        low, high = _value(node.args["low"]), _value(node.args["high"])
        return predicates.And(
            (predicates.Compare(column, ">=", low), predicates.Compare(column, "<=", high))
        )
    if isinstance(node, exp.In):
        return predicates.In(column, tuple(map(_value, node.expressions)))
    if isinstance(node, exp.Is):
        return _is(node)
    if isinstance(node, exp.Like):
        return _like(node)
    return _null_safe(column, _value(node.expression))


def _comparison(node: Any, op: str) -> predicates.Condition | None:
    left, right = _bare(node.this), _bare(node.expression)
    if isinstance(left, exp.Column) and is_constant(right):
        return predicates.Compare(_column(left), op, _value(right))
    if isinstance(right, exp.Column) and is_constant(left):
        return predicates.Compare(_column(right), FLIPPED[op], _value(left))
    return None


def _of_constants(node: Any) -> predicates.Condition:
    """Return a comparison without a column, as programs that generate SQL write it."""
    if type(node) not in COMPARISONS:
        _refuse(node)
    _check_arguments(node)
    return predicates.Const(constant(node))


def _is(node: Any) -> predicates.Condition:
    column = _column(node.this)
    if isinstance(node.expression, exp.Null):
        return predicates.IsNull(column)
    if isinstance(node.expression, exp.Boolean):
        return _null_safe(column, bool(node.expression.this))
    return _refuse(node)


def _null_safe(column: predicates.Path, value: Any) -> predicates.Condition:
    """Return equality, with null equal to null only; never null itself."""
    if value is None:
        return predicates.IsNull(column)
    return predicates.And(
        (predicates.Not(predicates.IsNull(column)), predicates.Compare(column, "=", value))
    )


def _like(node: Any) -> predicates.Condition:
    pattern = _value(node.expression)
    if not isinstance(pattern, str):
        _refuse(node)
    found = predicates.Like(_column(node.this), pattern)
    return predicates.Not(found) if node.args.get("negate") else found


def _bare(node: Any) -> Any:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _column(node: Any) -> predicates.Path:
    node = _bare(node)
    _check_arguments(node)
    return path_of(node)


def _value(node: Any) -> Any:
    """Return the value of a tree without columns."""
    node = _bare(node)
    if isinstance(node, exp.Cast) and node.to.this.name in _MOMENTS:
        _check_arguments(node)
        inner = _value(node.this)
        if isinstance(inner, str):
            return _moment(inner, node)
    return constant(node)


def _moment(text: str, node: Any) -> Any:
    """Parse a date or timestamp; a timestamp has a zone if the string has one."""
    kinds: tuple[pa.DataType, ...] = (pa.timestamp("us"), pa.timestamp("us", "UTC"))
    if node.to.this.name == "DATE":
        text, kinds = re.sub(DAY_AND_TIME, r"\1", text.strip()), (pa.date32(),)
    for kind in kinds:
        with suppress(OverflowError, ValueError):
            return of_text(text, kind).as_py()
    return _refuse(node)


def _check_arguments(node: Any) -> None:
    known = _ARGUMENTS.get(type(node), _OPERANDS)
    if any(value for name, value in node.args.items() if name not in known):
        _refuse(node)


def _refuse(node: Any) -> NoReturn:
    raise ConfigError(
        f"where: {node.sql() if isinstance(node, exp.Expression) else node} cannot be used here",
        hint=AND_OR
        if isinstance(node, exp.Expression) and has_bits(node)
        else "Compare a column, or what is computed from one, with a value or another column.",
    )
