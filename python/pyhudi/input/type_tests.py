"""Groups of Arrow types that casts, filters and outputs treat alike."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as at


def is_text(data_type: pa.DataType) -> bool:
    """Return whether a type has string values."""
    tests = (at.is_string, at.is_large_string, at.is_string_view)
    return any(test(data_type) for test in tests)


def is_number(data_type: pa.DataType) -> bool:
    """Return whether a type has integers, floats or decimals."""
    return bool(at.is_integer(data_type) or is_real(data_type))


def is_real(data_type: pa.DataType) -> bool:
    """Return whether a type has floats or decimals."""
    return bool(at.is_floating(data_type) or at.is_decimal(data_type))


def is_date_or_timestamp(data_type: pa.DataType) -> bool:
    """Return whether a type has dates or timestamps."""
    return bool(at.is_date(data_type) or at.is_timestamp(data_type))


def is_list(data_type: pa.DataType) -> bool:
    """Return whether a type has lists, of any size or of a fixed one."""
    tests = (at.is_list, at.is_large_list, at.is_fixed_size_list)
    return any(test(data_type) for test in tests)


def is_binary(data_type: pa.DataType) -> bool:
    """Return whether a type has bytes."""
    tests = (at.is_binary, at.is_large_binary, at.is_fixed_size_binary)
    return any(test(data_type) for test in tests)
