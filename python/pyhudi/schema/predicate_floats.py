"""Floating numbers in filters, by the rule of Spark's SQL.

NaN equals NaN and is greater than any other number, and the two zeros are equal. Arrow compares by
IEEE 754, where nothing about NaN is true, and looks values in a list up by their bits. Here are the
expressions that make both follow the rule.
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
    """A floating expression against a literal of its type; null where it is."""
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
    """What a comparison with literals says, at least, in the type of a floating column.

    Rounding keeps the order of numbers, but can make two of them equal.
    """
    if all(literal.type == kind for literal in literals):
        return op, literals
    return {"<": "<=", ">": ">="}.get(op, op), [literal.cast(kind) for literal in literals]


def compare_any_floats(left: pc.Expression, op: str, right: pc.Expression) -> pc.Expression:
    """Two floating expressions of any kind; null where either is null."""
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
    """Whether a floating column is one of some values; false where it is null."""
    given = list(values)
    numbers = [number for number in given if not math.isnan(number)]
    zeros = [0.0, -0.0] if 0.0 in numbers else []
    found = left.isin(pa.array([*numbers, *zeros], kind))
    return found | pc.is_nan(left) if len(numbers) < len(given) else found


def order_key(value: object) -> object:
    """What a value is compared by in Python: its own order, but for floating numbers the rule's."""
    if isinstance(value, float):
        return (True, 0.0) if math.isnan(value) else (False, value)
    return value


def conjuncts_for_footers(conjuncts: Sequence[Conjunct]) -> list[Conjunct]:
    """The conjuncts that bounds in Parquet footers can rule out, in a form that they can be asked.

    Most writers leave NaN out of the bounds, so a greatest value says nothing of what is above it.
    Footers tell -0.0 from 0.0, so zeros are given as the one that surely lies within.
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
