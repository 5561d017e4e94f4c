"""Converts Python values to Arrow scalars without a change of the value."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from pyhudi.config.formatting import type_text
from pyhudi.errors import SchemaMismatch
from pyhudi.input.exact_casts import CAST_ERRORS, cast_computed, exact_integer_bound
from pyhudi.input.type_tests import is_real


def literal(value: Any, data_type: pa.DataType, what: str) -> pa.Scalar[Any]:
    """Convert a Python value to a type. A float is rounded to the nearest, nothing else changes.

    what: for messages. Raises `SchemaMismatch`.
    """
    if isinstance(value, (float, Decimal)) and is_real(data_type):
        value = _as_number(value, what)
    if isinstance(value, pa.Scalar):
        column = pa.chunked_array([pa.array([value.as_py()], value.type)])
        return cast_computed(column, pa.field(what, data_type))[0]
    try:
        scalar = pa.scalar(value, data_type)
    except (*CAST_ERRORS, OverflowError, TypeError, ValueError) as error:
        raise SchemaMismatch(f"{what}: {format_value(value)} is no {data_type}: {error}") from error
    if not _is_kept(value, scalar.as_py()):
        msg = f"{what}: {format_value(value)} is no {data_type}: it would become {scalar.as_py()!r}"
        raise SchemaMismatch(msg)
    return scalar


def format_value(value: Any) -> str:
    """Format a Python value for a message; Python prints no huge integers and no deep lists."""
    try:
        return repr(value)
    except (ValueError, RecursionError):
        return f"{type_text(type(value))} that is too long to print"


def _as_number(value: float | Decimal, what: str) -> pa.Scalar[Any]:
    """Return a float or decimal in a type of its own."""
    try:
        return pa.scalar(value)
    except CAST_ERRORS as error:
        raise SchemaMismatch(f"{what}: {value!r} is not a number: {error}") from error


def _is_kept(value: Any, converted: Any) -> bool:
    """Return whether a Python value survives the round trip through Arrow."""
    if value is None or converted is None:
        return value is converted or value != value  # noqa: PLR0124 - a NaN, which pandas has for null
    if isinstance(converted, float):
        return math.isinf(converted) == math.isinf(value)
    if isinstance(converted, int) and isinstance(value, float):
        return converted == value and abs(value) < exact_integer_bound(pa.float64())
    if isinstance(converted, dict) and isinstance(value, Mapping):
        return set(value) <= set(converted) and all(
            _is_kept(value.get(name), item) for name, item in converted.items()
        )
    if isinstance(converted, list):
        items = list(value.items() if isinstance(value, Mapping) else value)
        return len(items) == len(converted) and all(map(_is_kept, items, converted))
    if isinstance(converted, tuple):
        return len(value) == len(converted) and all(map(_is_kept, value, converted))
    if isinstance(converted, datetime.date) and isinstance(value, datetime.datetime):
        return _is_same_moment(value, converted)
    return bool(converted == value)


def _is_same_moment(value: datetime.datetime, converted: datetime.date) -> bool:
    if not isinstance(converted, datetime.datetime):
        return value == datetime.datetime.combine(converted, datetime.time(), value.tzinfo)
    if value.tzinfo is None:
        return value == converted.replace(tzinfo=None)
    # A column without a time zone holds the timestamp in UTC.
    return value == (
        converted if converted.tzinfo else converted.replace(tzinfo=datetime.timezone.utc)
    )
