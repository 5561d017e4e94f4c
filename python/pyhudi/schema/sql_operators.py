"""SQL's comparisons and arithmetic on operands of any types.

Floating-point numbers compare by the rule of `predicate_comparisons.py`. Integers are computed in
64 bits and fail on overflow, decimals are exact, floating-point numbers are doubles. `/` returns a
double, and null for a division by zero. `%` returns the remainder of integers with the sign of the
dividend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from pyhudi.errors import SchemaMismatch
from pyhudi.input.type_tests import is_number
from pyhudi.schema.predicate_comparisons import (
    among_values,
    compare_any_floats,
    compare_value,
    conjuncts_of,
)
from pyhudi.schema.predicate_literals import OPERATORS
from pyhudi.schema.predicates import Conjunct
from pyhudi.schema.sql_expressions import (
    Literal,
    Operand,
    Value,
    boolean,
    call,
    check_size,
    common_type,
    in_type,
    null,
    to_value,
)
from pyhudi.schema.sql_times import add_interval, interval_of

_INT64_DIGITS = 19
_FUNCTIONS = {"+": "add_checked", "-": "subtract_checked", "*": "multiply_checked"}
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compare(left: Operand, op: str, right: Operand, what: str) -> Value:
    """Compare by one of `predicates.COMPARISONS`; null if a side is. Raises `SchemaMismatch`."""
    if isinstance(left, Literal) and isinstance(right, Literal):
        left = to_value(left, what)
    if isinstance(left, Literal):
        left, op, right = right, _FLIPPED[op], left
    if isinstance(left, Value) and isinstance(right, Literal) and not at.is_null(left.data_type):
        if not left.column:
            _check_comparable(left.data_type, what)
        name = left.label(what)
        outcome = compare_value(left.expression, left.data_type, op, right.value, name)
        conjuncts = _conjuncts(left, op, (right.value,))
        return _outcome(outcome, left.calls * 2 + 2, what, conjuncts)
    data_type = common_type((left, right), what)
    if at.is_null(data_type):
        return null(pa.bool_())
    _check_comparable(data_type, what)
    sides = [in_type(side, data_type, what) for side in (left, right)]
    calls = sides[0].calls + sides[1].calls
    if at.is_floating(data_type):
        outcome = compare_any_floats(sides[0].expression, op, sides[1].expression)
        return _outcome(outcome, calls * 2 + 6, what)
    outcome = OPERATORS[op](sides[0].expression, sides[1].expression)
    return _outcome(outcome, calls + 1, what)


def among(operand: Operand, values: Sequence[Operand], what: str) -> Value:
    """Return whether an operand is among values; null if none matches and one is null."""
    literals = [value.value for value in values if isinstance(value, Literal)]
    parts = [compare(operand, "=", value, what) for value in values if isinstance(value, Value)]
    if literals or not values:
        left = to_value(operand, what)
        if at.is_null(left.data_type):
            return null(pa.bool_())
        if not left.column:
            _check_comparable(left.data_type, what)
        name = left.label(what)
        outcome = among_values(left.expression, left.data_type, literals, name)
        conjuncts = _conjuncts(left, "in", literals)
        parts.append(_outcome(outcome, left.calls * 3 + 3, what, conjuncts))
    return reduce(lambda a, b: call("or_kleene", a, b, what=what), parts)


def null_safe(left: Operand, right: Operand, what: str) -> Value:
    """Return whether operands are equal, with null equal to null only; never null."""
    if isinstance(right, Literal) and right.value is None:
        return call("is_null", to_value(left, what), what=what)
    same = coalesce_false(compare(left, "=", right, what), what)
    if isinstance(right, Literal):
        return same
    nulls = [call("is_null", to_value(side, what), what=what) for side in (left, right)]
    return call("or_kleene", same, call("and_kleene", *nulls, what=what), what=what)


def coalesce_false(value: Value, what: str) -> Value:
    """Return a condition that is false instead of null."""
    outcome = call("coalesce", value, boolean(value=False), what=what)
    return replace(outcome, conjuncts=value.conjuncts)


def both(left: Value, right: Value, what: str) -> Value:
    """Return the conjunction of two conditions."""
    outcome = call("and_kleene", left, right, what=what)
    return replace(outcome, conjuncts=(*left.conjuncts, *right.conjuncts))


def truth(operand: Operand, node: Any, what: str) -> Value:
    """Return what a node computes as a condition. Raises `SchemaMismatch` for another type."""
    value = to_value(operand, what)
    if at.is_null(value.data_type):
        return null(pa.bool_())
    if not at.is_boolean(value.data_type):
        raise SchemaMismatch(
            f"{what}: {node.sql()} is {value.data_type}, expected a boolean",
            hint="Compare it with a value.",
        )
    return value


def _outcome(
    expression: pc.Expression, calls: int, what: str, conjuncts: tuple[Conjunct, ...] = ()
) -> Value:
    return check_size(Value(expression, pa.bool_(), calls, conjuncts=conjuncts), what)


def _conjuncts(value: Value, op: str, literals: Sequence[Any]) -> tuple[Conjunct, ...]:
    if len(value.column) != 1:
        return ()
    return conjuncts_of(value.column[0], value.data_type, op, literals)


def _check_comparable(data_type: pa.DataType, what: str) -> None:
    if at.is_nested(data_type):
        raise SchemaMismatch(f"{what}: {data_type} cannot be compared")


# --- arithmetic -----------------------------------------------------------------------------------


def arithmetic(left: Operand, op: str, right: Operand, what: str) -> Value:
    """Join two operands by one of `+ - * / %`, or add an interval to a date or timestamp.

    Raises `SchemaMismatch` if one is not a number.
    """
    if interval_of(left) or interval_of(right):
        return add_interval(left, op, right, what)
    for side in (left, right):
        _check_number(side, what)
    if op == "/":
        first, second = (in_type(side, pa.float64(), what) for side in (left, right))
        return call("divide", first, _nonzero(second, what), what=what)
    data_type = common_type((left, right), what)
    if at.is_decimal(data_type) and op in _FUNCTIONS:
        # Arrow finds the digits of the outcome by those of each side.
        return call(_FUNCTIONS[op], _decimal(left, what), _decimal(right, what), what=what)
    if op == "%" and not (at.is_integer(data_type) or at.is_null(data_type)):
        raise SchemaMismatch(
            f"{what}: % needs integers, not {data_type}", hint="Use CAST(x AS BIGINT)."
        )
    wide = pa.float64() if at.is_floating(data_type) else pa.int64()
    first, second = in_type(left, wide, what), in_type(right, wide, what)
    return (
        _remainder(first, second, what)
        if op == "%"
        else call(_FUNCTIONS[op], first, second, what=what)
    )


def _check_number(side: Operand, what: str) -> None:
    if isinstance(side, Value):
        is_valid, formatted = (
            at.is_null(side.data_type) or is_number(side.data_type),
            str(side.data_type),
        )
    else:
        is_valid, formatted = not isinstance(side.value, (str, bool)), repr(side.value)
    if not is_valid:
        is_time = isinstance(side, Value) and at.is_temporal(side.data_type)
        raise SchemaMismatch(
            f"{what}: cannot compute {formatted}: it is not a number",
            hint="Use x + INTERVAL '1 day'."
            if is_time
            else "Use CAST(x AS DOUBLE) or CAST(x AS BIGINT).",
        )


def _decimal(side: Operand, what: str) -> Value:
    data_type = common_type([side], what)
    return in_type(
        side, data_type if at.is_decimal(data_type) else pa.decimal128(_INT64_DIGITS, 0), what
    )


def _nonzero(value: Value, what: str) -> Value:
    zero = Value(pc.scalar(pa.scalar(0, value.data_type)), value.data_type)
    is_zero = call("equal", value, zero, what=what)
    return call("if_else", is_zero, null(value.data_type), value, what=what)


def _remainder(left: Value, right: Value, what: str) -> Value:
    unit, minus = (Value(pc.scalar(pa.scalar(n)), pa.int64()) for n in (1, -1))
    # The minimum integer divided by -1 overflows; its remainder is that of a division by 1.
    is_minus = call("equal", right, minus, what=what)
    divisor = call("if_else", is_minus, unit, _nonzero(right, what), what=what)
    whole = call("divide", left, divisor, what=what)
    product = call("multiply", whole, divisor, what=what)
    return call("subtract", left, product, what=what)
