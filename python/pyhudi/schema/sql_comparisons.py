"""Comparisons of SQL, of operands of any types, and what joins their outcomes.

Floating numbers compare by the rule of `predicate_floats.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from pyhudi.errors import SchemaMismatch
from pyhudi.schema.predicate_floats import compare_any_floats
from pyhudi.schema.predicate_literals import OPERATORS
from pyhudi.schema.predicate_values import among_values, compare_value
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

FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compare(left: Operand, op: str, right: Operand, what: str) -> Value:
    """One of `predicates.COMPARISONS`; null where a side is. Raises `SchemaMismatch`."""
    if isinstance(left, Literal) and isinstance(right, Literal):
        left = to_value(left, what)
    if isinstance(left, Literal):
        left, op, right = right, FLIPPED[op], left
    if isinstance(left, Value) and isinstance(right, Literal) and not at.is_null(left.kind):
        _check_comparable(left.kind, what)
        found = compare_value(left.expression, left.kind, op, right.value, f"computed in {what}")
        return _outcome(found, left.calls * 2 + 2, what)
    kind = common_type((left, right), what)
    if at.is_null(kind):
        return null(pa.bool_())
    _check_comparable(kind, what)
    sides = [in_type(side, kind, what) for side in (left, right)]
    calls = sides[0].calls + sides[1].calls
    if at.is_floating(kind):
        found = compare_any_floats(sides[0].expression, op, sides[1].expression)
        return _outcome(found, calls * 2 + 6, what)
    found = OPERATORS[op](sides[0].expression, sides[1].expression)
    return _outcome(found, calls + 1, what)


def among(given: Operand, values: Sequence[Operand], what: str) -> Value:
    """Whether an operand is among some; null where none fits and one is null."""
    literals = [one.value for one in values if isinstance(one, Literal)]
    parts = [compare(given, "=", one, what) for one in values if isinstance(one, Value)]
    if literals:
        value = to_value(given, what)
        if at.is_null(value.kind):
            return null(pa.bool_())
        _check_comparable(value.kind, what)
        found = among_values(value.expression, value.kind, literals, f"computed in {what}")
        parts.append(_outcome(found, value.calls * 3 + 3, what))
    return reduce(lambda a, b: call("or_kleene", a, b, what=what), parts)


def null_safe(left: Operand, right: Operand, what: str) -> Value:
    """Equal, with null equal to null only; never null itself."""
    same = coalesce_false(compare(left, "=", right, what), what)
    nulls = [call("is_null", to_value(side, what), what=what) for side in (left, right)]
    return call("or_kleene", same, call("and_kleene", *nulls, what=what), what=what)


def coalesce_false(value: Value, what: str) -> Value:
    """False where it is null."""
    return call("coalesce", value, boolean(value=False), what=what)


def truth(operand: Operand, node: Any, what: str) -> Value:
    """What a node computes, which is true, false or null. Raises `SchemaMismatch`."""
    value = to_value(operand, what)
    if at.is_null(value.kind):
        return null(pa.bool_())
    if not at.is_boolean(value.kind):
        raise SchemaMismatch(
            f"{what}: {node.sql()} is {value.kind}, expected a boolean",
            hint="Compare it with a value.",
        )
    return value


def _outcome(found: pc.Expression, calls: int, what: str) -> Value:
    return check_size(Value(found, pa.bool_(), calls), what)


def _check_comparable(kind: pa.DataType, what: str) -> None:
    if at.is_nested(kind):
        raise SchemaMismatch(f"{what}: {kind} cannot be compared")
