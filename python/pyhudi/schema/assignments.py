"""Values that a verb sets: SQL expressions and plain values as pyarrow expressions.

The dialect is that of filters (`predicates_sql.py`), with arithmetic, `||`, `CASE`, `CAST`,
`COALESCE`, `UPPER`, `LOWER` and `ABS`. Anything else is an error, never left out. Integers overflow
to an error, `/` gives a fraction. Floating numbers compare as in filters (`predicate_floats.py`).
No value changes on its way into a column, but a float that was computed or written down is rounded
to the nearest of the column's type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
from sqlglot import exp

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.casts import literal
from pyhudi.schema.computed import Names, SetValue, projected
from pyhudi.schema.elements import check_elements
from pyhudi.schema.near_names import near_name
from pyhudi.schema.predicate_floats import compare_any_floats
from pyhudi.schema.predicate_literals import OPERATORS
from pyhudi.schema.sql_text import number, parse_one, too_deep

_OPERATORS: dict[type[exp.Expression], Callable[[Any, Any], Any]] = {
    exp.Add: lambda a, b: a + b,
    exp.Sub: lambda a, b: a - b,
    exp.Mul: lambda a, b: a * b,
    exp.Div: lambda a, b: a.cast(pa.float64()) / b.cast(pa.float64()),
    exp.DPipe: lambda a, b: _call("binary_join_element_wise", a, b, pc.scalar("")),
    exp.And: lambda a, b: a & b,
    exp.Or: lambda a, b: a | b,
}
_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_WITHIN_MOST = 4
"""Comparisons within what another one compares: each of floating numbers has its sides twice."""
_FUNCTIONS: dict[type[exp.Expression], str] = {
    exp.Upper: "utf8_upper",
    exp.Lower: "utf8_lower",
    exp.Abs: "abs_checked",
}
_TYPES = {
    "BOOLEAN": pa.bool_(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "TEXT": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
}
_ARGUMENTS = frozenset({"this", "expression", "expressions", "to", "ifs", "default", "true"})
_MORE: dict[type[exp.Expression], frozenset[str]] = {
    exp.Column: frozenset({"this", "table"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Div: frozenset({"this", "expression", "typed", "safe"}),
    exp.DPipe: frozenset({"this", "expression", "safe"}),
    exp.Coalesce: frozenset({"this", "expressions", "is_nvl", "is_null"}),
}


def set_value(value: Any, kind: pa.DataType, names: Names, what: str) -> SetValue:
    """A value for a column of a type.

    Text is a SQL expression, a pyarrow expression itself, anything else a literal. what: for
    messages. Raises `ConfigError` for text that cannot be used, `SchemaMismatch` for a literal that
    does not fit and a column that is not among `names`.
    """
    if isinstance(value, str):
        value = parse_expression(value, names, what)
    if isinstance(value, pc.Expression):
        is_column = any(value.equals(pc.field(field.name)) for field in names.values())
        return SetValue(value, kind, is_column)
    made = literal(value, kind, what)
    check_elements(pa.chunked_array([pa.repeat(made, 1)]), what)
    return SetValue(pc.scalar(made), kind, is_column=False)


def parse_expression(text: str, names: Names, what: str) -> pc.Expression:
    """A SQL expression. Raises as `set_value` does."""
    tree = parse_one(text, what, hint="Text takes single quotes within: \"'text'\".")
    try:
        return _Reader(names, what).read(tree)
    except RecursionError:
        raise too_deep(what) from None


class _Reader:
    """Turns nodes into expressions, for one set of columns."""

    def __init__(self, names: Names, what: str) -> None:
        self._names, self._what = names, what
        self._within = 0
        self._columns = pa.schema({field.name: field for field in names.values()}.values())

    def read(self, node: Any) -> pc.Expression:
        self._check(node)
        operator = _OPERATORS.get(type(node))
        if operator is not None:
            return operator(self.read(node.this), self.read(node.expression))
        comparison = _COMPARISONS.get(type(node))
        if comparison is not None:
            return self._compare(node, comparison)
        function = _FUNCTIONS.get(type(node))
        if function is not None:
            return _call(function, self.read(node.this))
        match node:
            case exp.Paren():
                return self.read(node.this)
            case exp.Column():
                return self._column(node)
            case exp.Neg():
                return _call("negate_checked", self.read(node.this))
            case exp.Not():
                return ~self.read(node.this)
            case exp.Coalesce():
                return _call("coalesce", *map(self.read, (node.this, *node.expressions)))
            case exp.Cast():
                return self._cast(node)
            case exp.Case():
                return self._case(node)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return self.read(node.this).is_null()
            case _:
                return self._literal(node)

    def _compare(self, node: Any, op: str) -> pc.Expression:
        if self._within > _WITHIN_MOST:
            raise too_deep(self._what)
        self._within += 1
        sides = self.read(node.this), self.read(node.expression)
        self._within -= 1
        if any(at.is_floating(self._kind(side)) for side in sides):
            return compare_any_floats(sides[0], op, sides[1])
        return OPERATORS[op](*sides)

    def _kind(self, expression: pc.Expression) -> pa.DataType:
        """The type of its values; null where it has none, which is said when they are made."""
        try:
            return projected(self._columns.empty_table(), {"x": expression}).schema.field("x").type
        except SchemaMismatch:
            return pa.null()

    def _column(self, node: Any) -> pc.Expression:
        parts = tuple(str(part.this) for part in (node.args.get("table"), node.this) if part)
        if parts not in self._names:
            known = ", ".join(sorted({name[-1] for name in self._names}))
            msg = f"{self._what}: there is no column {'.'.join(parts)!r}"
            near = near_name(".".join(parts), [".".join(name) for name in self._names])
            meant = f"Did you mean {near!r}? " if near else ""
            raise SchemaMismatch(msg, hint=f"{meant}Columns: {known}. Text takes single quotes.")
        return pc.field(self._names[parts].name)

    def _cast(self, node: Any) -> pc.Expression:
        kind = _TYPES.get(node.to.this.name)
        return self.read(node.this).cast(kind) if kind is not None else self._refuse(node)

    def _case(self, node: Any) -> pc.Expression:
        if node.this is not None:
            self._refuse(node)
        default = node.args.get("default")
        start = pc.scalar(None) if default is None else self.read(default)

        def within(rest: pc.Expression, branch: Any) -> pc.Expression:
            holds = _call("coalesce", self.read(branch.this), pc.scalar(value=False))
            return _call("if_else", holds, self.read(branch.args["true"]), rest)

        return reduce(within, reversed(node.args["ifs"]), start)

    def _literal(self, node: Any) -> pc.Expression:
        if isinstance(node, exp.Null):
            return pc.scalar(None)
        if isinstance(node, exp.Boolean):
            return pc.scalar(bool(node.this))
        if not isinstance(node, exp.Literal):
            return self._refuse(node)
        text = str(node.this)
        if node.is_string:
            return pc.scalar(text)
        value = number(text, self._what)
        try:
            return pc.scalar(value if isinstance(value, int) else float(value))
        except OverflowError as error:
            msg = f"{self._what}: {text} is beyond the integers of 64 bits"
            raise ConfigError(msg, hint="Write it with a point or an exponent.") from error

    def _check(self, node: Any) -> None:
        known = _MORE.get(type(node), _ARGUMENTS)
        if any(value for name, value in node.args.items() if name not in known):
            self._refuse(node)

    def _refuse(self, node: Any) -> NoReturn:
        text = node.sql() if isinstance(node, exp.Expression) else str(node)
        msg = f"{self._what}: {text} cannot be used here"
        raise ConfigError(msg, hint="Give a pyarrow expression for it.")


def _call(function: str, *arguments: pc.Expression) -> pc.Expression:
    return pc.Expression._call(function, list(arguments))  # noqa: SLF001 - there is no other way
