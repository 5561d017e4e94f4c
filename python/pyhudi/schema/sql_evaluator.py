"""Translates SQL expressions of filters and of assigned values into pyarrow expressions.

Results are those of Spark SQL with ANSI mode off, with one exception: an overflow and a failed cast
are errors when rows are evaluated, because Spark would change the value silently. Integers are
computed in 64 bits. `/` returns a double, and null for a division by zero. Unsupported syntax is an
error, never ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.types as at
from sqlglot import exp

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.computed_columns import project_values
from pyhudi.schema.sql_casts import cast_value, type_of
from pyhudi.schema.sql_expressions import (
    Literal,
    Operand,
    Value,
    call,
    cast,
    common_type,
    in_type,
    null,
    to_value,
)
from pyhudi.schema.sql_functions import call_function, call_of, like
from pyhudi.schema.sql_operators import (
    among,
    arithmetic,
    both,
    coalesce_false,
    compare,
    null_safe,
    truth,
)
from pyhudi.schema.sql_parser import AND_OR, has_bits, number, time_of_call, too_deep
from pyhudi.schema.sql_times import interval_of

Resolve = Callable[[Any], Value]
"""Returns the column that an `exp.Column` names. Raises if it does not exist."""

_ARITHMETIC: dict[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_ARGUMENTS: dict[type[exp.Expression], frozenset[str]] = {
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Div: frozenset({"this", "expression", "typed", "safe"}),
    exp.In: frozenset({"this", "expressions"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Like: frozenset({"this", "expression", "negate"}),
    exp.ILike: frozenset({"this", "expression", "negate"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.If: frozenset({"this", "true", "false"}),
    exp.Case: frozenset({"ifs", "default"}),
    exp.Array: frozenset({"expressions", "bracket_notation"}),
    exp.Date: frozenset({"this"}),
}
_OPERANDS = frozenset({"this", "expression"})


def evaluate(node: Any, resolve: Resolve, what: str) -> Operand:
    """Translate a syntax tree; a literal stays a literal.

    what: for messages. Raises `ConfigError` for unsupported syntax, `SchemaMismatch` for types that
    cannot be combined.
    """
    try:
        return Evaluator(resolve, what).read(node)
    except RecursionError:
        raise too_deep(what) from None


def compute_constant(value: Value, node: Any, what: str) -> Any:
    """Compute a value that uses no column. Raises `ConfigError` if it cannot be computed."""
    try:
        values = project_values(pa.table({"row": [0]}), {"value": value.expression})
    except SchemaMismatch as error:
        raise ConfigError(
            f"{what}: {node.sql()} cannot be computed: {error.__cause__}",
            hint="Write the value itself.",
        ) from error
    return values["value"][0].as_py()


class Evaluator:
    """Translates nodes for one set of columns."""

    _hint = "Use a pyarrow expression instead."
    """The hint for unsupported syntax."""

    def __init__(self, resolve: Resolve, what: str) -> None:
        self._resolve, self._what = resolve, what
        self._guard: Value | None = None
        """Within a branch of CASE: true for the rows that reach it."""

    def read(self, node: Any) -> Operand:
        """Translate a node. Raises as `evaluate` does."""
        node_type = type(node)
        if node_type in _ARITHMETIC or node_type in COMPARISONS:
            self._check(node)
            return self._binary(node)
        function = call_of(node)
        if function is not None:
            return self._call(node, *function)
        self._check(node)
        if node_type in (exp.And, exp.Or):
            return self._chain(node, node_type)
        match node:
            case exp.Paren():
                return self.read(node.this)
            case exp.Column():
                return self._resolve(node)
            case exp.Neg():
                return self._negate(self.read(node.this))
            case exp.Not():
                return self._not(self._boolean(node.this))
            case exp.Case() | exp.If():
                return self._case(node)
            case exp.Nullif():
                return self._nullif(node)
            case exp.Array():
                return Literal([self._constant(element) for element in node.expressions])
            case exp.Date():
                return self._cast(exp.Cast(this=node.this, to=exp.DataType.build("date")))
            case _:
                return self._predicate(node)

    def _predicate(self, node: Any) -> Operand:
        match node:
            case exp.Cast() if type(node) is exp.Cast:
                return self._cast(node)
            case exp.Between():
                value = self.read(node.this)
                low, high = self.read(node.args["low"]), self.read(node.args["high"])
                return both(
                    compare(value, ">=", low, self._what),
                    compare(value, "<=", high, self._what),
                    self._what,
                )
            case exp.In():
                return among(self.read(node.this), [*map(self.read, node.expressions)], self._what)
            case exp.Is():
                return self._is(node)
            case exp.NullSafeEQ():
                return null_safe(self.read(node.this), self.read(node.expression), self._what)
            case exp.NullSafeNEQ():
                same = null_safe(self.read(node.this), self.read(node.expression), self._what)
                return self._not(same)
            case exp.Like() | exp.ILike():
                string, pattern = self.read(node.this), self.read(node.expression)
                matches = like(self._what, string, pattern, ignore_case=isinstance(node, exp.ILike))
                return self._not(matches) if node.args.get("negate") else matches
            case _:
                return self._literal(node)

    def _binary(self, node: Any) -> Value:
        left, right = self.read(node.this), self.read(node.expression)
        comparison = COMPARISONS.get(type(node))
        if comparison is not None:
            return compare(left, comparison, right, self._what)
        op = _ARITHMETIC[type(node)]
        return arithmetic(
            self._restrict_to_guard(left), op, self._restrict_to_guard(right), self._what
        )

    # --- functions --------------------------------------------------------------------------------

    def _call(self, node: Any, name: str, arguments: Sequence[Any]) -> Operand:
        operands = [
            Literal(str(argument.this)) if isinstance(argument, exp.Var) else self.read(argument)
            for argument in arguments
        ]
        if name in ("abs", "round"):
            operands[0] = self._restrict_to_guard(operands[0])
        outcome = call_function(name, operands, self._what)
        return outcome if outcome is not None else self._refuse(node)

    def _constant(self, node: Any) -> Any:
        """Compute an element of an array literal."""
        operand = self.read(node)
        if isinstance(operand, Literal):
            return operand.value
        if node.find(exp.Column):
            self._refuse(node, hint="The elements of an array must be constants.")
        return compute_constant(operand, node, self._what)

    def _nullif(self, node: Any) -> Value:
        first, second = self.read(node.this), self.read(node.expression)
        value = to_value(first, self._what)
        same = self._coalesce_false(compare(first, "=", second, self._what))
        return call("if_else", same, null(value.data_type), value, what=self._what)

    def _case(self, node: Any) -> Value:
        """Translate CASE; a branch is evaluated only for its rows, because evaluation can fail."""
        if isinstance(node, exp.If):
            branches, default = [node], node.args.get("false")
        else:
            branches, default = node.args["ifs"], node.args.get("default")
        outer = self._guard
        conditions: list[Value] = []
        results: list[Operand] = []
        for branch in branches:
            holds = self._coalesce_false(self._boolean(branch.this))
            conditions.append(holds)
            others = self._guard
            self._guard = holds if others is None else self._join("and_kleene", others, holds)
            results.append(self.read(branch.args["true"]))
            remaining = self._not(holds)
            self._guard = (
                remaining if others is None else self._join("and_kleene", others, remaining)
            )
        results.append(Literal(None) if default is None else self.read(default))
        self._guard = outer
        data_type = common_type(results, self._what)
        *values, rest = (in_type(result, data_type, self._what) for result in results)
        for holds, value in zip(reversed(conditions), reversed(values), strict=True):
            rest = call("if_else", holds, value, rest, what=self._what)
        return rest

    def _cast(self, node: Any) -> Operand:
        data_type = type_of(node.args["to"])
        if data_type is None:
            self._refuse(node)
        value = self._restrict_to_guard(self.read(node.this))
        return cast_value(to_value(value, self._what), data_type, self._what)

    def _restrict_to_guard(self, operand: Operand) -> Operand:
        if self._guard is None or isinstance(operand, Literal):
            return operand
        return call("if_else", self._guard, operand, null(operand.data_type), what=self._what)

    def _negate(self, operand: Operand) -> Operand:
        if isinstance(operand, Literal):
            value = operand.value
            if interval_of(operand):
                return Literal(-value)
            if value is None or (
                isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
            ):
                return Literal(None if value is None else -value)
        value = to_value(self._restrict_to_guard(operand), self._what)
        wide = cast(value, pa.int64()) if at.is_integer(value.data_type) else value
        return call("negate_checked", wide, what=self._what)

    # --- conditions -------------------------------------------------------------------------------

    def _is(self, node: Any) -> Value:
        value = to_value(self.read(node.this), self._what)
        if isinstance(node.expression, exp.Null):
            return call("is_null", value, what=self._what)
        if not isinstance(node.expression, exp.Boolean):
            self._refuse(node)
        holds = truth(value, node.this, self._what)
        return self._coalesce_false(holds if node.expression.this else self._not(holds))

    def _chain(self, node: Any, connector: type[exp.Connector]) -> Value:
        """Translate a chain of one connector, which the tree nests to the left."""
        function = "and_kleene" if connector is exp.And else "or_kleene"
        parts: list[Value] = []
        while type(node) is connector:
            self._check(node)
            parts.append(self._boolean(node.expression))
            node = node.this
        parts.append(self._boolean(node))
        return reduce(lambda a, b: self._join(function, a, b), reversed(parts))

    def _boolean(self, node: Any) -> Value:
        return truth(self.read(node), node, self._what)

    def _join(self, function: str, left: Value, right: Value) -> Value:
        return call(function, left, right, what=self._what)

    def _not(self, value: Value) -> Value:
        return call("invert", value, what=self._what)

    def _coalesce_false(self, value: Value) -> Value:
        return coalesce_false(value, self._what)

    # --- leaves -----------------------------------------------------------------------------------

    def _literal(self, node: Any) -> Operand:
        match node:
            case exp.Null():
                return Literal(None)
            case exp.Boolean():
                return Literal(bool(node.this))
            case exp.Literal():
                token = str(node.this)
                return Literal(token if node.is_string else number(token, self._what))
            case _:
                return self._refuse(node)

    def _check(self, node: Any) -> None:
        allowed = _ARGUMENTS.get(type(node), _OPERANDS)
        if any(value for name, value in node.args.items() if name not in allowed):
            self._refuse(node)

    def _refuse(self, node: Any, hint: str = "") -> NoReturn:
        sql, hint = str(node), hint or self._hint
        if time_of_call(node):
            raise ConfigError(
                f"{self._what}: {node.sql()} is the time of a call: it cannot be used here",
                hint="Compare with a constant: CAST('2026-01-31' AS DATE).",
            )
        if isinstance(node, exp.Expression):
            sql = node.sql()
            hint = AND_OR if has_bits(node) else hint
        if isinstance(node, exp.Alias):
            hint = f"Text takes single quotes: \"'{node.this.name} {node.alias}'\"."
        what = f"{sql} cannot be used here"
        if isinstance(node, exp.Anonymous):
            what = f"pyhudi has no SQL function {node.name}"
            hint = "Use a function of the SQL expressions page, or a pyarrow expression."
        raise ConfigError(f"{self._what}: {what}", hint=hint)
