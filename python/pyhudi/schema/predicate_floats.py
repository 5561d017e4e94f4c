"""Floating-point numbers in filters, by the rule of Spark SQL.

NaN equals NaN and is greater than any other number, and the two zeros are equal. Arrow compares by
IEEE 754, where no comparison with NaN is true, and finds values in a list by their bits. This
module builds expressions that follow the rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as at

from pyhudi.schema.predicate_literals import compare

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from pyhudi.schema.predicates import Conjunct
else:
    from pyhudi.schema import lazy_compute as pc


_OPPOSITE = {"!=": "=", "<=": ">", ">=": "<"}


def compare_floats(left: pc.Expression, op: str, literal: pa.Scalar) -> pc.Expression:
    """Compare a floating-point expression with a literal of its type; null if it is null."""
    if math.isnan(literal.as_py()):
        return _compare_with_nan(left, op)
    found = compare(left, op, literal)
    return pc.is_nan(left) | found if op in (">", ">=") else found


def _compare_with_nan(left: pc.Expression, op: str) -> pc.Expression:
    match op:
        case "=" | ">=":
            return pc.is_nan(left)
        case "!=" | "<":
            return ~pc.is_nan(left)
        case outcome:
            always = pc.scalar(pa.scalar(outcome == "<=", pa.bool_()))
            return pc.if_else(left.is_valid(), always, pc.scalar(pa.scalar(None, pa.bool_())))


def in_column(op: str, literals: list[pa.Scalar], kind: pa.DataType) -> tuple[str, list[pa.Scalar]]:
    """Return what a comparison with literals implies in the type of a floating-point column.

    Rounding keeps the order of numbers, but can make two of them equal.
    """
    if all(literal.type == kind for literal in literals):
        return op, literals
    return {"<": "<=", ">": ">="}.get(op, op), [literal.cast(kind) for literal in literals]


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


def among_floats(left: pc.Expression, values: Iterable[float], kind: pa.DataType) -> pc.Expression:
    """Return whether a floating-point column is one of some values; false if it is null."""
    given = list(values)
    numbers = [number for number in given if not math.isnan(number)]
    zeros = [0.0, -0.0] if 0.0 in numbers else []
    found = left.isin(pa.array([*numbers, *zeros], kind))
    return found | pc.is_nan(left) if len(numbers) < len(given) else found


def order_key(value: object) -> object:
    """Return a sort key for a value: its own order, for floating-point numbers the rule's."""
    if isinstance(value, float):
        return (True, 0.0) if math.isnan(value) else (False, value)
    return value


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
