"""SQL expressions, as filters and new values may have them, as pyarrow expressions.

A syntax tree becomes one expression for given columns. Results are those of Spark's SQL with ANSI
mode off, but for what would change a value without a word: a number that overflows, a cast that
fails. Those fail when rows are evaluated. Integers are computed in 64 bits, `/` gives a double and
null for a division by zero. What is not known here is an error, never left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.types as at
from sqlglot import exp

from pyhudi.errors import ConfigError
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
from pyhudi.schema.sql_parser import number, too_deep
from pyhudi.schema.sql_precedence import AND_OR, has_bits

Resolve = Callable[[Any], Value]
"""The column that an `exp.Column` names. Raises for one that is not there."""

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
}
_OPERANDS = frozenset({"this", "expression"})


def evaluate(node: Any, resolve: Resolve, what: str) -> Operand:
    """What a syntax tree computes: a literal where it is one, else a pyarrow expression.

    what: for messages. Raises `ConfigError` for what cannot be used, `SchemaMismatch` for types
    that do not go together.
    """
    try:
        return Evaluator(resolve, what).read(node)
    except RecursionError:
        raise too_deep(what) from None


class Evaluator:
    """Translates nodes for one set of columns."""

    _hint = "Use a pyarrow expression instead."
    """What to do instead of something that cannot be used."""

    def __init__(self, resolve: Resolve, what: str) -> None:
        self._resolve, self._what = resolve, what
        self._guard: Value | None = None
        """True on the rows that are asked for, within a branch of CASE."""

    def read(self, node: Any) -> Operand:
        """Translate a node. Raises as `evaluate` does."""
        kind = type(node)
        if kind in _ARITHMETIC or kind in COMPARISONS:
            self._check(node)
            return self._two_sided(node)
        found = call_of(node)
        if found is not None:
            return self._call(node, *found)
        self._check(node)
        if kind in (exp.And, exp.Or):
            return self._evaluate_chain(node, kind)
        match node:
            case exp.Paren():
                return self.read(node.this)
            case exp.Column():
                return self._resolve(node)
            case exp.Neg():
                return self._evaluate_not(self.read(node.this))
            case exp.Not():
                return self._not(self._boolean(node.this))
            case exp.Case() | exp.If():
                return self._case(node)
            case exp.Nullif():
                return self._nullif(node)
            case _:
                return self._predicate(node)

    def _predicate(self, node: Any) -> Operand:
        match node:
            case exp.Cast() if type(node) is exp.Cast:
                return self._cast(node)
            case exp.Between():
                given = self.read(node.this)
                low, high = self.read(node.args["low"]), self.read(node.args["high"])
                return both(
                    compare(given, ">=", low, self._what),
                    compare(given, "<=", high, self._what),
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
                text, pattern = self.read(node.this), self.read(node.expression)
                found = like(self._what, text, pattern, ignore_case=isinstance(node, exp.ILike))
                return self._not(found) if node.args.get("negate") else found
            case _:
                return self._literal(node)

    def _two_sided(self, node: Any) -> Value:
        left, right = self.read(node.this), self.read(node.expression)
        comparison = COMPARISONS.get(type(node))
        if comparison is not None:
            return compare(left, comparison, right, self._what)
        op = _ARITHMETIC[type(node)]
        return arithmetic(
            self._evaluate_guarded(left), op, self._evaluate_guarded(right), self._what
        )

    # --- functions --------------------------------------------------------------------------------

    def _call(self, node: Any, name: str, arguments: Sequence[Any]) -> Operand:
        given = [
            Literal(str(one.this)) if isinstance(one, exp.Var) else self.read(one)
            for one in arguments
        ]
        if name in ("abs", "round"):
            given[0] = self._evaluate_guarded(given[0])
        found = call_function(name, given, self._what)
        return found if found is not None else self._refuse(node)

    def _nullif(self, node: Any) -> Value:
        first, second = self.read(node.this), self.read(node.expression)
        value = to_value(first, self._what)
        same = self._evaluate_condition(compare(first, "=", second, self._what))
        return call("if_else", same, null(value.kind), value, what=self._what)

    def _case(self, node: Any) -> Value:
        """Branches are computed for the rows that come to them, since what is computed can fail."""
        if isinstance(node, exp.If):
            branches, default = [node], node.args.get("false")
        else:
            branches, default = node.args["ifs"], node.args.get("default")
        outer = self._guard
        conditions: list[Value] = []
        results: list[Operand] = []
        for branch in branches:
            holds = self._evaluate_condition(self._boolean(branch.this))
            conditions.append(holds)
            others = self._guard
            self._guard = holds if others is None else self._two("and_kleene", others, holds)
            results.append(self.read(branch.args["true"]))
            left = self._not(holds)
            self._guard = left if others is None else self._two("and_kleene", others, left)
        results.append(Literal(None) if default is None else self.read(default))
        self._guard = outer
        kind = common_type(results, self._what)
        *values, rest = (in_type(result, kind, self._what) for result in results)
        for holds, value in zip(reversed(conditions), reversed(values), strict=True):
            rest = call("if_else", holds, value, rest, what=self._what)
        return rest

    def _cast(self, node: Any) -> Operand:
        kind = type_of(node.args["to"])
        if kind is None:
            self._refuse(node)
        given = self._evaluate_guarded(self.read(node.this))
        return cast_value(to_value(given, self._what), kind, self._what)

    def _evaluate_guarded(self, operand: Operand) -> Operand:
        if self._guard is None or isinstance(operand, Literal):
            return operand
        return call("if_else", self._guard, operand, null(operand.kind), what=self._what)

    def _evaluate_not(self, operand: Operand) -> Operand:
        if isinstance(operand, Literal):
            value = operand.value
            if value is None or (
                isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
            ):
                return Literal(None if value is None else -value)
        value = to_value(self._evaluate_guarded(operand), self._what)
        wide = cast(value, pa.int64()) if at.is_integer(value.kind) else value
        return call("negate_checked", wide, what=self._what)

    # --- what is true, false or null --------------------------------------------------------------

    def _is(self, node: Any) -> Value:
        given = to_value(self.read(node.this), self._what)
        if isinstance(node.expression, exp.Null):
            return call("is_null", given, what=self._what)
        if not isinstance(node.expression, exp.Boolean):
            self._refuse(node)
        held = truth(given, node.this, self._what)
        return self._evaluate_condition(held if node.expression.this else self._not(held))

    def _evaluate_chain(self, node: Any, kind: type[exp.Connector]) -> Value:
        """A chain of one connector, which the tree nests to the left."""
        function = "and_kleene" if kind is exp.And else "or_kleene"
        parts: list[Value] = []
        while type(node) is kind:
            self._check(node)
            parts.append(self._boolean(node.expression))
            node = node.this
        parts.append(self._boolean(node))
        return reduce(lambda a, b: self._two(function, a, b), reversed(parts))

    def _boolean(self, node: Any) -> Value:
        return truth(self.read(node), node, self._what)

    def _two(self, function: str, left: Value, right: Value) -> Value:
        return call(function, left, right, what=self._what)

    def _not(self, value: Value) -> Value:
        return call("invert", value, what=self._what)

    def _evaluate_condition(self, value: Value) -> Value:
        return coalesce_false(value, self._what)

    # --- leaves -----------------------------------------------------------------------------------

    def _literal(self, node: Any) -> Operand:
        match node:
            case exp.Null():
                return Literal(None)
            case exp.Boolean():
                return Literal(bool(node.this))
            case exp.Literal():
                text = str(node.this)
                return Literal(text if node.is_string else number(text, self._what))
            case _:
                return self._refuse(node)

    def _check(self, node: Any) -> None:
        known = _ARGUMENTS.get(type(node), _OPERANDS)
        if any(value for name, value in node.args.items() if name not in known):
            self._refuse(node)

    def _refuse(self, node: Any) -> NoReturn:
        text, hint = str(node), self._hint
        if isinstance(node, exp.Expression):
            text = node.sql()
            hint = AND_OR if has_bits(node) else hint
        if isinstance(node, exp.Alias):
            hint = f"Text takes single quotes: \"'{node.this.name} {node.alias}'\"."
        raise ConfigError(f"{self._what}: {text} cannot be used here", hint=hint)
