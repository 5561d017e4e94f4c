"""Comparisons of a column, or of an expression, with literals, and the conjuncts that they imply.

Literals are converted to the type with which they are compared; the result is null for null.

Floating-point numbers compare by the rule of Spark SQL: NaN equals NaN and is greater than any
other number, and the two zeros are equal. Arrow compares by IEEE 754, where no comparison with NaN
is true, and finds values in a list by their bits. The expressions built here follow Spark's rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as at

from pyhudi.schema.predicate_literals import (
    as_strings,
    compare,
    fits_column,
    to_scalar,
    within_column,
)

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from pyhudi.schema.predicates import Conjunct
else:
    from pyhudi.schema import lazy_compute as pc


_OPPOSITE = {"!=": "=", "<=": ">", ">=": "<"}


def compare_value(
    left: pc.Expression, data_type: pa.DataType, op: str, value: Any, name: str
) -> pc.Expression:
    """Compare an expression of a type with a value. name: for messages. Raises `SchemaMismatch`."""
    if value is None:
        return boolean(None)
    literal = to_scalar(value, data_type, name)
    if at.is_floating(data_type):
        wide = left if literal.type == data_type else left.cast(literal.type)
        return _compare_floats(wide, op, literal)
    if literal.type != data_type:
        within = within_column(op, literal, data_type)
        if isinstance(within, bool):
            return left == left if within else left != left  # noqa: PLR0124 - null where null
        op, literal = within
    return compare(left, op, literal)


def among_values(
    left: pc.Expression, data_type: pa.DataType, values: Sequence[Any], name: str
) -> pc.Expression:
    """Return whether an expression is among values. Raises `SchemaMismatch`."""
    strings = as_strings(values, data_type)
    if strings is not None:
        return pc.if_else(left.is_valid(), left.isin(strings), boolean(None))
    literals = [to_scalar(v, data_type, name) for v in values if v is not None]
    # No row has a number that the type cannot represent.
    of_type = [literal for literal in literals if literal.type == data_type]
    if at.is_floating(data_type):
        among = _among_floats(left, (literal.as_py() for literal in of_type), data_type)
    else:
        among = left.isin(pa.array(of_type, data_type))
    outcome = pc.if_else(left.is_valid(), among, boolean(None))
    return outcome | boolean(None) if len(literals) < len(values) else outcome


def boolean(value: bool | None) -> pc.Expression:
    """True, false or null."""
    return pc.scalar(pa.scalar(value, pa.bool_()))


# --- floating-point numbers -----------------------------------------------------------------------


def _compare_floats(left: pc.Expression, op: str, literal: pa.Scalar) -> pc.Expression:
    """Compare a floating-point expression with a literal of its type; null if it is null."""
    if math.isnan(literal.as_py()):
        return _compare_with_nan(left, op)
    outcome = compare(left, op, literal)
    return pc.is_nan(left) | outcome if op in (">", ">=") else outcome


def _compare_with_nan(left: pc.Expression, op: str) -> pc.Expression:
    match op:
        case "=" | ">=":
            return pc.is_nan(left)
        case "!=" | "<":
            return ~pc.is_nan(left)
        case _:
            return pc.if_else(left.is_valid(), boolean(op == "<="), boolean(None))


def compare_any_floats(left: pc.Expression, op: str, right: pc.Expression) -> pc.Expression:
    """Compare two floating-point expressions of any type; null if either is null."""
    match op:
        case "=":
            return compare(left, "=", right) | (pc.is_nan(left) & pc.is_nan(right))
        case ">":
            return compare(left, ">", right) | (pc.is_nan(left) & ~pc.is_nan(right))
        case "<":
            return compare_any_floats(right, ">", left)
        case _:
            return ~compare_any_floats(left, _OPPOSITE[op], right)


def _among_floats(
    left: pc.Expression, values: Iterable[float], data_type: pa.DataType
) -> pc.Expression:
    """Return whether a floating-point column is one of some values; false if it is null."""
    floats = list(values)
    numbers = [number for number in floats if not math.isnan(number)]
    zeros = [0.0, -0.0] if 0.0 in numbers else []
    outcome = left.isin(pa.array([*numbers, *zeros], data_type))
    return outcome | pc.is_nan(left) if len(numbers) < len(floats) else outcome


def order_key(value: object) -> object:
    """Return a sort key for a value: its own order, for floating-point numbers the rule's."""
    if isinstance(value, float):
        return (True, 0.0) if math.isnan(value) else (False, value)
    return value


# --- conjuncts ------------------------------------------------------------------------------------


def conjuncts_of(
    name: str, data_type: pa.DataType, op: str, values: Sequence[Any]
) -> tuple[Conjunct, ...]:
    """Return what a comparison of a column implies in values of exactly the column's type.

    op: one of `predicates.COMPARISONS`, or `in`. Nothing if it has no such values.
    """
    if not values or any(value is None for value in values):
        return ()
    strings = as_strings(values, data_type)
    if strings is not None:
        return ((name, op, strings),)
    literals = [to_scalar(value, data_type, name) for value in values]
    if at.is_floating(data_type):
        op, literals = _round_to_column(op, literals, data_type)
    if at.is_date32(data_type) and op != "in" and at.is_timestamp(literals[0].type):
        within = within_column(op, literals[0], data_type)
        if isinstance(within, bool):
            return ()
        op, literals = within[0], [within[1]]
    if not all(fits_column(literal, data_type) for literal in literals):
        return ()
    if op == "!=" and at.is_floating(data_type):
        return ()  # NaN is unequal to everything, and statistics do not count it
    try:
        return ((name, op, pa.array([literal.as_py() for literal in literals], data_type)),)
    except (OverflowError, ValueError):
        return ()  # such as a time before the year 1, which Python cannot represent


def _round_to_column(
    op: str, literals: list[pa.Scalar], data_type: pa.DataType
) -> tuple[str, list[pa.Scalar]]:
    """Return what a comparison with literals implies in the type of a floating-point column.

    Rounding keeps the order of numbers, but can make two of them equal.
    """
    if all(literal.type == data_type for literal in literals):
        return op, literals
    return {"<": "<=", ">": ">="}.get(op, op), [literal.cast(data_type) for literal in literals]


def conjuncts_for_footers(conjuncts: Sequence[Conjunct]) -> list[Conjunct]:
    """Return the conjuncts that bounds in Parquet footers can exclude, in a form for footers.

    Most writers leave NaN out of the bounds, so a maximum says nothing about what is above it.
    Footers distinguish -0.0 and 0.0, so a zero becomes the one that is certainly within.
    """
    return [
        _with_both_zeros(conjunct) if at.is_floating(conjunct[2].type) else conjunct
        for conjunct in conjuncts
        if not (at.is_floating(conjunct[2].type) and conjunct[1] in (">", ">="))
    ]


def _with_both_zeros(conjunct: Conjunct) -> Conjunct:
    name, op, values = conjunct
    numbers = [0.0 if number == 0 else number for number in values.to_pylist()]
    if op in ("=", "in") and 0.0 in numbers:
        return name, "in", pa.array([*numbers, -0.0], values.type)
    return name, op, pa.array(numbers, values.type)
