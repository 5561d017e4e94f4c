"""Literals of a row filter in the type of the column with which they are compared.

Only for single values. A number that the column's type cannot represent (1.5 for an integer column)
keeps its own type; a comparison with it becomes one with the nearest value of the column's type,
because Arrow's own comparison across types differs between its releases.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from pyhudi.errors import SchemaMismatch
from pyhudi.input.exact_casts import format_value

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ANY_DIGITS = 400
"""More decimal digits than any literal has, also a double with all its digits."""


def compare(left: pc.Expression, op: str, literal: pa.Scalar) -> pc.Expression:
    """Compare a column with a literal of its type, as Arrow does."""
    return OPERATORS[op](left, literal)


def to_scalar(value: Any, kind: pa.DataType, column: str) -> pa.Scalar:
    """Convert a literal to a column's type; a number that does not fit keeps its own.

    A string for a date, time, number or boolean is parsed; a time without zone is UTC if the column
    has timestamps with a zone. Raises `SchemaMismatch` for a value that cannot be compared.
    """
    try:
        if isinstance(value, str):
            return of_text(value, kind)
        if _is_number(value):
            return _of_number(value, kind)
        return _of_other(value, kind)
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError) as error:
        hint = "Quote strings, leave numbers unquoted, write dates as '2024-02-29'."
        if is_text(kind) and isinstance(value, date):
            hint = "CAST(x AS DATE) and CAST(x AS TIMESTAMP) read text."
        raise SchemaMismatch(
            f"where: the column {column!r} is {kind} and cannot be compared with "
            f"{format_value(value)}",
            hint=hint,
        ) from error


def plain_texts(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any] | None:
    """Convert many strings for a string column; None for other values or columns."""
    if not is_text(kind) or not all(type(value) is str for value in values):
        return None
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, ValueError):
        return None  # one by one it is said which


def fits_column(literal: pa.Scalar, kind: pa.DataType) -> bool:
    """Return whether a literal has exactly the column's type and a place in its order."""
    if literal.type != kind or not literal.is_valid:
        return False
    return not (at.is_floating(kind) and math.isnan(literal.as_py()))


def python_value(value: pa.Scalar) -> Any:
    """Convert an Arrow scalar to a Python value; None for null.

    Raises `ValueError` for a value that Python cannot represent, such as a `date64` with hours.
    """
    # as_py drops the hours of a date64, and the nanoseconds of a time.
    if at.is_date64(value.type):
        value = value.cast(pa.date32())
    elif at.is_time64(value.type):
        value = value.cast(pa.time64("us"))
    return value.as_py()


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type has string values."""
    return bool(at.is_string(kind) or at.is_large_string(kind) or at.is_string_view(kind))


def within_column(op: str, literal: pa.Scalar, kind: pa.DataType) -> tuple[str, pa.Scalar] | bool:
    """Return an equivalent comparison whose literal has the type of an integer or decimal column.

    literal: one that `to_scalar` left in its own type. A boolean is the outcome for every value of
    the column.
    """
    own = Decimal(literal.as_py())
    if own.is_nan():
        return op in ("<", "<=", "!=")  # as in Spark's SQL it is greater than any number
    if own.is_finite():
        scale = kind.scale if at.is_decimal(kind) else 0
        floor = own.quantize(Decimal(1).scaleb(-scale), ROUND_FLOOR, Context(prec=_ANY_DIGITS))
        try:
            below = pa.scalar(floor).cast(kind)
        except pa.ArrowInvalid:
            pass  # beyond what the column can hold
        else:
            # The literal lies between `below` and the value after it.
            return {
                ">": (">", below),
                ">=": (">", below),
                "<": ("<=", below),
                "<=": ("<=", below),
            }.get(op, op == "!=")
    return op in (("<", "<=", "!=") if own > 0 else (">", ">=", "!="))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(at.is_integer(kind) or at.is_floating(kind) or at.is_decimal(kind))


def of_text(value: str, kind: pa.DataType) -> pa.Scalar:
    """Parse a string in a type. Raises errors of Arrow, `ValueError` and `TypeError`."""
    if is_text(kind):
        return pa.scalar(value, kind)
    if at.is_timestamp(kind):
        return _timestamp_of_text(value, kind)
    if at.is_time(kind):
        return _of_time(time.fromisoformat(value), kind)
    if _is_numeric(kind):
        return _of_number(_decimal(value.strip()), kind)
    if at.is_date(kind) or at.is_boolean(kind):
        return pa.scalar(value.strip()).cast(kind)
    raise TypeError


def _decimal(text: str) -> Decimal:
    if "_" in text or not text.isascii():
        raise ValueError  # which Python takes
    return Decimal(text)


def _timestamp_of_text(value: str, kind: pa.DataType) -> pa.Scalar:
    text = pa.scalar(value.strip())
    if kind.tz is None:
        return text.cast(kind)
    try:
        return text.cast(kind)
    except pa.ArrowInvalid:
        return text.cast(pa.timestamp(kind.unit)).cast(kind)


def _of_number(value: float | Decimal, kind: pa.DataType) -> pa.Scalar:
    if not _is_numeric(kind):
        raise TypeError
    if isinstance(value, Decimal) and not value.is_finite():
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return pa.scalar(value, kind if at.is_floating(kind) else pa.float64())
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if at.is_floating(kind):
        double = pa.scalar(float(exact), pa.float64())
        own = double.cast(kind)
        return own if own.as_py() == double.as_py() else double
    try:
        own = pa.scalar(exact)
    except pa.ArrowInvalid:
        return pa.scalar(float(exact), pa.float64())
    try:
        return own.cast(kind)
    except pa.ArrowInvalid:
        return own


def _of_other(value: Any, kind: pa.DataType) -> pa.Scalar:
    if isinstance(value, bool) and at.is_boolean(kind):
        return pa.scalar(value, kind)
    if isinstance(value, datetime) and at.is_timestamp(kind):
        if value.tzinfo is not None and kind.tz is None:
            raise TypeError
        exact = pa.timestamp("ns", kind.tz) if getattr(value, "nanosecond", 0) else None
        return pa.scalar(value, exact).cast(kind)
    if isinstance(value, date) and (at.is_timestamp(kind) or at.is_date(kind)):
        if isinstance(value, datetime) and value.time() != time():
            raise TypeError
        return pa.scalar(value).cast(kind)
    if isinstance(value, time) and at.is_time(kind):
        return _of_time(value, kind)
    if isinstance(value, bytes):
        return _of_bytes(value, kind)
    raise TypeError


def _of_time(value: time, kind: pa.DataType) -> pa.Scalar:
    if value.tzinfo is not None:
        raise TypeError  # which would be dropped
    return pa.scalar(value, kind)


def _of_bytes(value: bytes, kind: pa.DataType) -> pa.Scalar:
    if at.is_binary(kind) or at.is_large_binary(kind) or at.is_binary_view(kind):
        return pa.scalar(value, kind)
    if at.is_fixed_size_binary(kind) and len(value) == kind.byte_width:
        return pa.scalar(value, kind)
    raise TypeError
