"""Operands of SQL expressions: typed pyarrow expressions and literals.

This module builds calls of Arrow functions and finds the common type of operands by the rules of
Spark SQL. `sql_functions.py` has the functions of SQL.
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

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.input.type_tests import is_number, is_text
from pyhudi.schema.predicate_literals import to_scalar
from pyhudi.schema.predicates import Conjunct, Path
from pyhudi.schema.sql_parser import too_deep

_MAX_CALLS = 5000
"""Maximum calls in one expression: comparisons of floats contain their operands twice."""
_INT64_DIGITS = 19
_MAX_DIGITS = 38


@dataclass(frozen=True)
class Literal:
    """A literal, which takes the type of the operands that it is combined with."""

    value: Any


@dataclass(frozen=True)
class Value:
    """An expression with the type of its values."""

    expression: pc.Expression
    data_type: pa.DataType
    calls: int = 0
    """The number of calls in it."""
    column: Path = ()
    """The column or struct field that it is, for pruning and messages."""
    conjuncts: tuple[Conjunct, ...] = ()
    """Conditions that every row satisfies for which a condition is true."""

    def label(self, what: str) -> str:
        """Return the name of the column, for messages."""
        return ".".join(self.column) or f"computed in {what}"


Operand = Value | Literal


def call(function: str, *arguments: Value, options: Any = None, what: str) -> Value:
    """Call an Arrow function. Raises `SchemaMismatch` if it does not accept the types."""
    empty = [pa.array([], argument.data_type) for argument in arguments]
    try:
        data_type = pc.call_function(function, empty, options).type
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        types = ", ".join(str(argument.data_type) for argument in arguments)
        raise SchemaMismatch(f"{what}: cannot compute {types}: {error}") from error
    operands = [argument.expression for argument in arguments]
    expression = pc.Expression._call(function, operands, options)  # noqa: SLF001 - there is no other way
    return check_size(
        Value(expression, data_type, 1 + sum(argument.calls for argument in arguments)), what
    )


def check_size(value: Value, what: str) -> Value:
    """Return the value. Raises `ConfigError` if it has too many calls."""
    if value.calls > _MAX_CALLS:
        raise too_deep(what)
    return value


def cast(value: Value, data_type: pa.DataType, *, safe: bool = True) -> Value:
    """Cast a value to another type. safe: evaluation fails if a value would change."""
    if value.data_type == data_type:
        return value
    if at.is_decimal(value.data_type) and at.is_floating(data_type):
        # A cast through strings finds the nearest float; Arrow's own cast may miss it.
        value = cast(value, pa.string())
    return Value(value.expression.cast(data_type, safe=safe), data_type, value.calls + 1)


def null(data_type: pa.DataType) -> Value:
    """Return the null of a type."""
    return Value(pc.scalar(pa.scalar(None, data_type)), data_type)


def boolean(value: bool) -> Value:  # noqa: FBT001 - it is the value
    """Return a constant condition."""
    return Value(pc.scalar(pa.scalar(value, pa.bool_())), pa.bool_())


def to_value(operand: Operand, what: str) -> Value:
    """Return an operand as a value; a literal gets its own type."""
    if isinstance(operand, Value):
        return operand
    return in_type(operand, common_type([operand], what), what)


def literal_argument(what: str, operand: Operand, function: str, python_type: type) -> Any:
    """Return an argument that must be a literal; None for null."""
    if isinstance(operand, Literal) and (
        operand.value is None
        or (isinstance(operand.value, python_type) and not isinstance(operand.value, bool))
    ):
        return operand.value
    expected = "a text" if python_type is str else "an integer"
    raise ConfigError(
        f"{what}: this argument of {function} must be {expected} literal",
        hint="Columns are not allowed there; use a pyarrow expression.",
    )


def in_type(operand: Operand, data_type: pa.DataType, what: str) -> Value:
    """Return an operand in the common type of operands."""
    if isinstance(operand, Value):
        lossy = at.is_floating(data_type)
        return cast(operand, data_type, safe=not lossy)
    if operand.value is None:
        return null(data_type)
    scalar = to_scalar(operand.value, data_type, f"computed in {what}")
    if scalar.type != data_type:
        raise SchemaMismatch(f"{what}: {operand.value!r} does not fit {data_type}")
    return Value(pc.scalar(scalar), data_type)


def common_type(operands: Sequence[Operand], what: str) -> pa.DataType:
    """Return the type in which operands are computed, by the rules of Spark SQL.

    Literals with a decimal point are decimals, or floats if another operand is a float. Raises
    `SchemaMismatch` for types that cannot be combined.
    """
    types = [operand.data_type for operand in operands if isinstance(operand, Value)]
    concrete = [data_type for data_type in types if not at.is_null(data_type)]
    literals = [
        operand.value
        for operand in operands
        if isinstance(operand, Literal) and operand.value is not None
    ]
    if not concrete or all(is_number(data_type) for data_type in concrete):
        literal_types = [_literal_type(value, concrete, what) for value in literals]
        concrete += [data_type for data_type in literal_types if data_type is not None]
    if not concrete:
        return pa.null()
    common = concrete[0]
    for data_type in concrete[1:]:
        common = _wider_type(common, data_type, what)
    return common


def _literal_type(value: Any, others: Sequence[pa.DataType], what: str) -> pa.DataType | None:
    """Return the type of a literal; None if it takes the type of the other operands."""
    if isinstance(value, str):
        return None if others else pa.string()
    if isinstance(value, bool):
        return pa.bool_()
    is_exact = isinstance(value, (int, Decimal))
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return pa.int64()
    if isinstance(value, float) or (is_exact and any(map(at.is_floating, others))):
        return pa.float64()
    if is_exact:
        return _decimal_of(Decimal(value), what)
    if isinstance(value, datetime):
        return pa.timestamp("us", "UTC" if value.tzinfo else None)
    if isinstance(value, date):
        return pa.date32()
    try:
        return pa.scalar(value).type
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SchemaMismatch(f"{what}: {value} cannot be used here") from error


def _decimal_of(value: Decimal, what: str) -> pa.DataType:
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    width = max(len(digits), scale + 1)
    if width > _MAX_DIGITS:
        msg = f"{what}: {value} has more than {_MAX_DIGITS} digits"
        raise SchemaMismatch(msg, hint="Write a float with an exponent.")
    return pa.decimal128(width, scale)


def _wider_type(left: pa.DataType, right: pa.DataType, what: str) -> pa.DataType:
    if left == right:
        return left
    if is_number(left) and is_number(right):
        return _number_type(left, right, what)
    if is_text(left) and is_text(right):
        return pa.string()
    timestamps = [data_type for data_type in (left, right) if at.is_timestamp(data_type)]
    if timestamps and all(
        at.is_timestamp(data_type) or at.is_date(data_type) for data_type in (left, right)
    ):
        zone = "UTC" if any(data_type.tz for data_type in timestamps) else None
        return pa.timestamp(
            "ns" if any(data_type.unit == "ns" for data_type in timestamps) else "us", zone
        )
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
    if width > _MAX_DIGITS:
        raise SchemaMismatch(
            f"{what}: {left} and {right} together have more than {_MAX_DIGITS} digits",
            hint="Cast one of them: CAST(x AS DOUBLE).",
        )
    return pa.decimal128(width, scale)


def _as_decimal(data_type: pa.DataType) -> Any:
    return data_type if at.is_decimal(data_type) else pa.decimal128(_INT64_DIGITS, 0)
