"""What SQL expressions are made of while they are read: typed pyarrow expressions and literals.

Here is how they are joined to calls of Arrow's functions, and how several get one type, as in
Spark's SQL. Which functions SQL has is not known here (`sql_functions.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from pyhudi.errors import SchemaMismatch
from pyhudi.schema.predicate_literals import is_text, to_scalar
from pyhudi.schema.predicates import Conjunct, Path
from pyhudi.schema.sql_parser import too_deep

_CALLS_MOST = 5000
"""Calls in one expression: comparisons of floating numbers have their sides twice."""
_INT64_DIGITS = 19
_DIGITS_MOST = 38


@dataclass(frozen=True)
class Literal:
    """A value that was written down, which takes the type of what it meets."""

    value: Any


@dataclass(frozen=True)
class Value:
    """An expression with the type of its values."""

    expression: pc.Expression
    kind: pa.DataType
    calls: int = 0
    """How many calls it consists of."""
    column: Path = ()
    """The column or struct field that it is, for pruning and messages."""
    conjuncts: tuple[Conjunct, ...] = ()
    """Conditions that every row satisfies for which a condition is true."""

    def label(self, what: str) -> str:
        """Return the name of the column, for messages."""
        return ".".join(self.column) or f"computed in {what}"


Operand = Value | Literal


def call(function: str, *arguments: Value, options: Any = None, what: str) -> Value:
    """A function of Arrow's. Raises `SchemaMismatch` where it takes no such types."""
    empty = [pa.array([], argument.kind) for argument in arguments]
    try:
        kind = pc.call_function(function, empty, options).type
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        shown = ", ".join(str(argument.kind) for argument in arguments)
        raise SchemaMismatch(f"{what}: cannot compute {shown}: {error}") from error
    given = [argument.expression for argument in arguments]
    made = pc.Expression._call(function, given, options)  # noqa: SLF001 - there is no other way
    return check_size(Value(made, kind, 1 + sum(argument.calls for argument in arguments)), what)


def check_size(value: Value, what: str) -> Value:
    """The value itself. Raises `ConfigError` where it consists of too many calls."""
    if value.calls > _CALLS_MOST:
        raise too_deep(what)
    return value


def cast(value: Value, kind: pa.DataType, *, safe: bool = True) -> Value:
    """A value in another type. safe: an error for what would change."""
    if value.kind == kind:
        return value
    if at.is_decimal(value.kind) and at.is_floating(kind):
        # By way of text the nearest is found; Arrow's own cast may be the next but one.
        value = cast(value, pa.string())
    return Value(value.expression.cast(kind, safe=safe), kind, value.calls + 1)


def null(kind: pa.DataType) -> Value:
    """No value of a type."""
    return Value(pc.scalar(pa.scalar(None, kind)), kind)


def boolean(value: bool) -> Value:  # noqa: FBT001 - it is the value
    """True or false."""
    return Value(pc.scalar(pa.scalar(value, pa.bool_())), pa.bool_())


def to_value(operand: Operand, what: str) -> Value:
    """An operand by itself, a literal in the type that suits it."""
    if isinstance(operand, Value):
        return operand
    return in_type(operand, common_type([operand], what), what)


def in_type(operand: Operand, kind: pa.DataType, what: str) -> Value:
    """An operand in the type that `common_type` found for it and others."""
    if isinstance(operand, Value):
        lossy = at.is_floating(kind)
        return cast(operand, kind, safe=not lossy)
    if operand.value is None:
        return null(kind)
    scalar = to_scalar(operand.value, kind, f"computed in {what}")
    if scalar.type != kind:
        raise SchemaMismatch(f"{what}: {operand.value!r} does not fit {kind}")
    return Value(pc.scalar(scalar), kind)


def common_type(operands: Sequence[Operand], what: str) -> pa.DataType:
    """The type that several operands are computed in, by the rules of Spark's SQL.

    Numbers with a point are decimals, but where they meet floating numbers. Raises
    `SchemaMismatch`.
    """
    kinds = [operand.kind for operand in operands if isinstance(operand, Value)]
    known = [kind for kind in kinds if not at.is_null(kind)]
    literals = [one.value for one in operands if isinstance(one, Literal) and one.value is not None]
    if not known or all(is_number(kind) for kind in known):
        literal_kinds = [_literal_type(value, known, what) for value in literals]
        known += [kind for kind in literal_kinds if kind is not None]
    if not known:
        return pa.null()
    found = known[0]
    for kind in known[1:]:
        found = _both(found, kind, what)
    return found


def is_number(kind: pa.DataType) -> bool:
    """Whether arithmetic takes a type."""
    return bool(at.is_integer(kind) or at.is_floating(kind) or at.is_decimal(kind))


def _literal_type(value: Any, known: Sequence[pa.DataType], what: str) -> pa.DataType | None:
    """What a literal adds to the common type; None where it takes that of the others."""
    if isinstance(value, str):
        return None if known else pa.string()
    if isinstance(value, bool):
        return pa.bool_()
    is_written = isinstance(value, (int, Decimal))
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return pa.int64()
    if isinstance(value, float) or (is_written and any(map(at.is_floating, known))):
        return pa.float64()
    if is_written:
        return _decimal_of(Decimal(value), what)
    if isinstance(value, datetime):
        return pa.timestamp("us", "UTC" if value.tzinfo else None)
    return pa.date32() if isinstance(value, date) else pa.scalar(value).type


def _decimal_of(value: Decimal, what: str) -> pa.DataType:
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    width = max(len(digits), scale + 1)
    if width > _DIGITS_MOST:
        msg = f"{what}: {value} has more than {_DIGITS_MOST} digits"
        raise SchemaMismatch(msg, hint="Write a floating number with an exponent.")
    return pa.decimal128(width, scale)


def _both(left: pa.DataType, right: pa.DataType, what: str) -> pa.DataType:
    if left == right:
        return left
    if is_number(left) and is_number(right):
        return _number_type(left, right, what)
    if is_text(left) and is_text(right):
        return pa.string()
    moments = [kind for kind in (left, right) if at.is_timestamp(kind)]
    if moments and all(at.is_timestamp(kind) or at.is_date(kind) for kind in (left, right)):
        zone = "UTC" if any(kind.tz for kind in moments) else None
        return pa.timestamp("ns" if any(kind.unit == "ns" for kind in moments) else "us", zone)
    raise SchemaMismatch(
        f"{what}: {left} and {right} cannot be combined",
        hint="Cast one of them: CAST(x AS type).",
    )


def _number_type(left: pa.DataType, right: pa.DataType, what: str) -> pa.DataType:
    if at.is_floating(left) or at.is_floating(right):
        return pa.float64()
    if at.is_integer(left) and at.is_integer(right):
        return pa.int64()
    sides = [_as_decimal(left), _as_decimal(right)]
    scale = max(side.scale for side in sides)
    width = max(side.precision - side.scale for side in sides) + scale
    if width > _DIGITS_MOST:
        raise SchemaMismatch(
            f"{what}: {left} and {right} together have more than {_DIGITS_MOST} digits",
            hint="Cast one of them: CAST(x AS DOUBLE).",
        )
    return pa.decimal128(width, scale)


def _as_decimal(kind: pa.DataType) -> Any:
    return kind if at.is_decimal(kind) else pa.decimal128(_INT64_DIGITS, 0)
