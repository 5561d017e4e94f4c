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
from pyhudi.input.literals import format_value
from pyhudi.input.type_tests import is_text

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


def to_scalar(value: Any, data_type: pa.DataType, column: str) -> pa.Scalar:
    """Convert a literal to a column's type; a number that does not fit keeps its own.

    A string for a date, time, number or boolean is parsed; a time without zone is UTC if the column
    has timestamps with a zone. Raises `SchemaMismatch` for a value that cannot be compared.
    """
    try:
        if isinstance(value, str):
            return parse_literal(value, data_type)
        if _is_number(value):
            return _number_scalar(value, data_type)
        return _other_scalar(value, data_type)
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError) as error:
        hint = "Quote strings, leave numbers unquoted, write dates as '2024-02-29'."
        if is_text(data_type) and isinstance(value, date):
            hint = "CAST(x AS DATE) and CAST(x AS TIMESTAMP) read text."
        raise SchemaMismatch(
            f"where: the column {column!r} is {data_type} and cannot be compared with "
            f"{format_value(value)}",
            hint=hint,
        ) from error


def as_strings(values: Sequence[Any], data_type: pa.DataType) -> pa.Array[Any] | None:
    """Convert many strings for a string column; None for other values or columns."""
    if not is_text(data_type) or not all(type(value) is str for value in values):
        return None
    try:
        return pa.array(values, data_type)
    except (pa.ArrowException, ValueError):
        return None  # the conversion of single values names the invalid one


def fits_column(literal: pa.Scalar, data_type: pa.DataType) -> bool:
    """Return whether a literal has exactly the column's type and a place in its order."""
    if literal.type != data_type or not literal.is_valid:
        return False
    return not (at.is_floating(data_type) and math.isnan(literal.as_py()))


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


def within_column(
    op: str, literal: pa.Scalar, data_type: pa.DataType
) -> tuple[str, pa.Scalar] | bool:
    """Return an equivalent comparison whose literal has the type of an integer, decimal or date.

    literal: one that `to_scalar` left in its own type. A boolean is the outcome for every value of
    the column.
    """
    if at.is_timestamp(literal.type):
        day = literal.cast(pa.date32(), safe=False)
        return {">": (">", day), ">=": (">", day), "<": ("<=", day), "<=": ("<=", day)}.get(
            op, op == "!="
        )
    own = Decimal(literal.as_py())
    if own.is_nan():
        return op in ("<", "<=", "!=")  # as in Spark's SQL it is greater than any number
    if own.is_finite():
        scale = data_type.scale if at.is_decimal(data_type) else 0
        floor = own.quantize(Decimal(1).scaleb(-scale), ROUND_FLOOR, Context(prec=_ANY_DIGITS))
        try:
            below = pa.scalar(floor).cast(data_type)
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


def _is_numeric(data_type: pa.DataType) -> bool:
    return bool(at.is_integer(data_type) or at.is_floating(data_type) or at.is_decimal(data_type))


def parse_literal(value: str, data_type: pa.DataType) -> pa.Scalar:
    """Parse a string in a type. Raises errors of Arrow, `ValueError` and `TypeError`."""
    if is_text(data_type):
        return pa.scalar(value, data_type)
    if at.is_timestamp(data_type):
        return _timestamp_of_text(value, data_type)
    if at.is_time(data_type):
        return _time_scalar(time.fromisoformat(value), data_type)
    if _is_numeric(data_type):
        return _number_scalar(_decimal(value.strip()), data_type)
    if at.is_date(data_type) or at.is_boolean(data_type):
        return pa.scalar(value.strip()).cast(data_type)
    raise TypeError


def _decimal(string: str) -> Decimal:
    if "_" in string or not string.isascii():
        raise ValueError  # which Python takes
    return Decimal(string)


def _timestamp_of_text(value: str, data_type: pa.DataType) -> pa.Scalar:
    string = pa.scalar(value.strip())
    if data_type.tz is None:
        return string.cast(data_type)
    try:
        return string.cast(data_type)
    except pa.ArrowInvalid:
        return string.cast(pa.timestamp(data_type.unit)).cast(data_type)


def _number_scalar(value: float | Decimal, data_type: pa.DataType) -> pa.Scalar:
    if not _is_numeric(data_type):
        raise TypeError
    if isinstance(value, Decimal) and not value.is_finite():
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return pa.scalar(value, data_type if at.is_floating(data_type) else pa.float64())
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if at.is_floating(data_type):
        double = pa.scalar(float(exact), pa.float64())
        own = double.cast(data_type)
        return own if own.as_py() == double.as_py() else double
    try:
        own = pa.scalar(exact)
    except pa.ArrowInvalid:
        return pa.scalar(float(exact), pa.float64())
    try:
        return own.cast(data_type)
    except pa.ArrowInvalid:
        return own


def _other_scalar(value: Any, data_type: pa.DataType) -> pa.Scalar:
    if isinstance(value, bool) and at.is_boolean(data_type):
        return pa.scalar(value, data_type)
    if isinstance(value, datetime) and at.is_timestamp(data_type):
        if value.tzinfo is not None and data_type.tz is None:
            raise TypeError
        exact = pa.timestamp("ns", data_type.tz) if getattr(value, "nanosecond", 0) else None
        return pa.scalar(value, exact).cast(data_type)
    if isinstance(value, date) and (at.is_timestamp(data_type) or at.is_date(data_type)):
        if isinstance(value, datetime) and value.time() != time():
            if value.tzinfo is not None or not at.is_date32(data_type):
                raise TypeError
            return pa.scalar(value, pa.timestamp("us"))
        return pa.scalar(value).cast(data_type)
    if isinstance(value, time) and at.is_time(data_type):
        return _time_scalar(value, data_type)
    if isinstance(value, bytes):
        return _bytes_scalar(value, data_type)
    raise TypeError


def _time_scalar(value: time, data_type: pa.DataType) -> pa.Scalar:
    if value.tzinfo is not None:
        raise TypeError  # which would be dropped
    return pa.scalar(value, data_type)


def _bytes_scalar(value: bytes, data_type: pa.DataType) -> pa.Scalar:
    if at.is_binary(data_type) or at.is_large_binary(data_type) or at.is_binary_view(data_type):
        return pa.scalar(value, data_type)
    if at.is_fixed_size_binary(data_type) and len(value) == data_type.byte_width:
        return pa.scalar(value, data_type)
    raise TypeError
