"""Arithmetic of SQL on numbers of any types.

Whole numbers are computed in 64 bits and fail where they overflow, decimals are exact, floating
numbers are doubles. `/` gives a double and null for a division by zero, `%` the rest of whole
numbers with the sign of what is divided.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from pyhudi.errors import SchemaMismatch
from pyhudi.schema.sql_expressions import (
    Operand,
    Value,
    call,
    common_type,
    in_type,
    is_number,
    null,
)

_INT64_DIGITS = 19
_FUNCTIONS = {"+": "add_checked", "-": "subtract_checked", "*": "multiply_checked"}


def arithmetic(left: Operand, op: str, right: Operand, what: str) -> Value:
    """Two operands joined by one of `+ - * / %`. Raises `SchemaMismatch` for what is no number."""
    for side in (left, right):
        _check_number(side, what)
    if op == "/":
        first, second = (in_type(side, pa.float64(), what) for side in (left, right))
        return call("divide", first, _nonzero(second, what), what=what)
    kind = common_type((left, right), what)
    if at.is_decimal(kind) and op in _FUNCTIONS:
        # Arrow finds the digits of the outcome by those of each side.
        return call(_FUNCTIONS[op], _decimal(left, what), _decimal(right, what), what=what)
    if op == "%" and not (at.is_integer(kind) or at.is_null(kind)):
        raise SchemaMismatch(f"{what}: % needs integers, not {kind}", hint="Use CAST(x AS BIGINT).")
    wide = pa.float64() if at.is_floating(kind) else pa.int64()
    first, second = in_type(left, wide, what), in_type(right, wide, what)
    return (
        _rest(first, second, what) if op == "%" else call(_FUNCTIONS[op], first, second, what=what)
    )


def _check_number(side: Operand, what: str) -> None:
    if isinstance(side, Value):
        is_one, shown = at.is_null(side.kind) or is_number(side.kind), str(side.kind)
    else:
        is_one, shown = not isinstance(side.value, (str, bool)), repr(side.value)
    if not is_one:
        raise SchemaMismatch(
            f"{what}: cannot compute {shown}: it is not a number",
            hint="Use CAST(x AS DOUBLE) or CAST(x AS BIGINT).",
        )


def _decimal(side: Operand, what: str) -> Value:
    kind = common_type([side], what)
    return in_type(side, kind if at.is_decimal(kind) else pa.decimal128(_INT64_DIGITS, 0), what)


def _nonzero(value: Value, what: str) -> Value:
    zero = Value(pc.scalar(pa.scalar(0, value.kind)), value.kind)
    is_zero = call("equal", value, zero, what=what)
    return call("if_else", is_zero, null(value.kind), value, what=what)


def _rest(left: Value, right: Value, what: str) -> Value:
    one, minus = (Value(pc.scalar(pa.scalar(n)), pa.int64()) for n in (1, -1))
    # The least integer divided by -1 overflows, and its rest is that of a division by 1.
    is_minus = call("equal", right, minus, what=what)
    divisor = call("if_else", is_minus, one, _nonzero(right, what), what=what)
    whole = call("divide", left, divisor, what=what)
    product = call("multiply", whole, divisor, what=what)
    return call("subtract", left, product, what=what)
