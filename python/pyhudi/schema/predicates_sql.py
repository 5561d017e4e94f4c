"""SQL text of a row filter as a condition tree. Types and schemas are not known here.

The dialect is standard SQL: text in single quotes, names with odd characters in double quotes. What
the tree cannot say (functions, arithmetic, columns against columns) is an error, never left out.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NoReturn

from sqlglot import exp

from pyhudi.errors import ConfigError
from pyhudi.schema import predicates
from pyhudi.schema.sql_text import number, parse_one, too_deep

_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TEMPORAL_CASTS = ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ", "DATETIME")

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
    """The condition of a SQL expression. Raises `ConfigError` for what cannot be used as one."""
    try:
        return _condition(parse_one(text, "where"))
    except RecursionError:
        raise too_deep("where") from None


def _condition(node: Any) -> predicates.Condition:
    _check_arguments(node)
    if isinstance(node, exp.Paren):
        return _condition(node.this)
    if isinstance(node, exp.And):
        return predicates.And(_parts(node, exp.And))
    if isinstance(node, exp.Or):
        return predicates.Or(_parts(node, exp.Or))
    if isinstance(node, exp.Not):
        return predicates.Not(_condition(node.this))
    if isinstance(node, exp.Boolean):
        return predicates.Const(bool(node.this))
    if isinstance(node, exp.Null):
        return predicates.Const(None)
    if isinstance(node, exp.Column):
        return predicates.Compare(_column(node), "=", value=True)
    return _predicate(node)


def _parts(node: Any, kind: type[exp.Connector]) -> tuple[predicates.Condition, ...]:
    """What a chain of one connector joins, which the tree nests to the left, one in the other."""
    parts: list[predicates.Condition] = []
    while isinstance(node, kind):
        _check_arguments(node)
        parts.append(_condition(node.expression))
        node = node.this
    parts.append(_condition(node))
    return tuple(reversed(parts))


def _predicate(node: Any) -> predicates.Condition:
    if type(node) in _COMPARISONS:
        return _comparison(node, _COMPARISONS[type(node)])
    if isinstance(node, exp.Between):
        column = _column(node.this)
        low, high = _value(node.args["low"]), _value(node.args["high"])
        return predicates.And(
            (predicates.Compare(column, ">=", low), predicates.Compare(column, "<=", high))
        )
    if isinstance(node, exp.In):
        return predicates.In(_column(node.this), tuple(map(_value, node.expressions)))
    if isinstance(node, exp.Is):
        return _is(node)
    if isinstance(node, exp.Like):
        return _like(node)
    if isinstance(node, exp.NullSafeEQ):
        return _null_safe(_column(node.this), _value(node.expression))
    return _refuse(node)


def _comparison(node: Any, op: str) -> predicates.Condition:
    left, right = _bare(node.this), _bare(node.expression)
    if isinstance(left, exp.Column):
        return predicates.Compare(_column(left), op, _value(right))
    if isinstance(right, exp.Column):
        return predicates.Compare(_column(right), _FLIPPED[op], _value(left))
    return _refuse(node)


def _is(node: Any) -> predicates.Condition:
    column = _column(node.this)
    if isinstance(node.expression, exp.Null):
        return predicates.IsNull(column)
    if isinstance(node.expression, exp.Boolean):
        return _null_safe(column, bool(node.expression.this))
    return _refuse(node)


def _null_safe(column: predicates.Path, value: Any) -> predicates.Condition:
    """Equal, with null equal to null only; never null itself."""
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
    if not isinstance(node, exp.Column):
        _refuse(node)
    _check_arguments(node)
    parts = [node.args.get(name) for name in ("catalog", "db", "table", "this")]
    names = [part for part in parts if part is not None]
    if not all(isinstance(name, exp.Identifier) for name in names):
        _refuse(node)
    return tuple(str(name.this) for name in names)


def _value(node: Any) -> Any:
    node = _bare(node)
    _check_arguments(node)
    if isinstance(node, exp.Neg):
        value = _value(node.this)
        if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
            return -value
    elif isinstance(node, exp.Literal):
        return str(node.this) if node.is_string else number(str(node.this), "where")
    elif isinstance(node, exp.Boolean):
        return bool(node.this)
    elif isinstance(node, exp.Null):
        return None
    elif isinstance(node, exp.Cast) and node.to.this.name in _TEMPORAL_CASTS:
        inner = _value(node.this)
        if isinstance(inner, str):
            return inner
    elif isinstance(node, exp.Column):
        _refuse_column(node)
    return _refuse(node)


def _check_arguments(node: Any) -> None:
    known = _ARGUMENTS.get(type(node), _OPERANDS)
    if any(value for name, value in node.args.items() if name not in known):
        _refuse(node)


def _refuse_column(node: Any) -> NoReturn:
    """Says what double quotes mean where a lone name in them stands in a value's place."""
    if not node.this.args.get("quoted") or node.args.get("table"):
        _refuse(node)
    text = exp.Literal.string(str(node.this.this)).sql()
    raise ConfigError(
        f"where: {node.sql()} cannot be used here: double quotes make it the name of a column",
        hint=f"Text goes in single quotes: {text}. Columns are not compared with columns.",
    )


def _refuse(node: Any) -> NoReturn:
    raise ConfigError(
        f"where: {node.sql() if isinstance(node, exp.Expression) else node} cannot be used here",
        hint="Compare a column with a value; for anything else give a pyarrow expression.",
    )
