"""Conditions on a column as conditions on an expression of it, for expression indexes.

Filters contain no functions, so an expression index helps if a condition on its source column
implies one on its value. Supported are `identity`, and for equality `lower` and `upper` (ASCII
strings) and `from_unixtime`. Functions: `HoodieSparkExpressionIndex` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pyarrow.types as at

from pyhudi.input.type_tests import is_text
from pyhudi.metadata.index_definitions import IndexDefinition
from pyhudi.schema.predicates import Conjunct

_MAX_ZONE_OFFSET = timedelta(days=1)
"""No time zone is further from UTC; the index uses that of a session, which is not recorded."""

_FIELDS = (("yyyy", "%Y"), ("MM", "%m"), ("dd", "%d"), ("HH", "%H"), ("mm", "%M"), ("ss", "%S"))
DEFAULT_FORMAT = "yyyy-MM-dd HH:mm:ss"
"""The default pattern of `from_unixtime`."""


def conjuncts_for_index(definition: IndexDefinition, conjunct: Conjunct) -> list[Conjunct]:
    """Return what a condition on an index's column implies for the values in the index.

    Every row that matches the condition matches those returned. Most conditions imply nothing.
    """
    name, op, values = conjunct
    if definition.columns != (name,):
        return []
    match definition.function:
        case "identity":
            return [conjunct]
        case "lower":
            return _map_conjunct(conjunct, str.lower)
        case "upper":
            return _map_conjunct(conjunct, str.upper)
        case "from_unixtime":
            pattern = definition.options.get("format", DEFAULT_FORMAT)
            return (
                _unixtime_conjuncts(name, op, values, pattern) if at.is_int64(values.type) else []
            )
        case _:
            return []


def _map_conjunct(conjunct: Conjunct, function: Callable[[str], str]) -> list[Conjunct]:
    name, op, values = conjunct
    if op not in ("=", "in") or not is_text(values.type):
        return []
    strings = values.to_pylist()
    if not all(value.isascii() for value in strings):
        return []
    return [(name, "in", pa.array([function(value) for value in strings], pa.string()))]


def _unixtime_conjuncts(name: str, op: str, seconds: pa.Array, pattern: str) -> list[Conjunct]:
    """For equality only: a range may contain years beyond 9999, whose strings begin with a plus."""
    if op not in ("=", "in"):
        return []
    numbers = seconds.to_pylist()
    bounds = unixtime_bounds(min(numbers), max(numbers), pattern) if numbers else None
    if bounds is None:
        return []
    low, high = (pa.array([bound], pa.string()) for bound in bounds)
    return [(name, ">=", low), (name, "<=", high)]


def unixtime_bounds(earliest: int, latest: int, pattern: str) -> tuple[str, str] | None:
    """Return bounds of the strings of `from_unixtime` for seconds, in any time zone.

    None for a pattern whose strings do not grow with time, and beyond years with four digits.
    """
    format_ = _monotonic_format(pattern)
    if format_ is None:
        return None
    try:
        return _format_time(earliest, -_MAX_ZONE_OFFSET, format_), _format_time(
            latest, _MAX_ZONE_OFFSET, format_
        )
    except (OverflowError, ValueError):
        return None


def _format_time(second: int, shift: timedelta, format_: str) -> str:
    time = datetime.fromtimestamp(0, timezone.utc) + timedelta(seconds=second) + shift
    if not 1000 <= time.year <= 9998:  # noqa: PLR2004 - years of four digits
        raise ValueError
    return time.strftime(format_)


def _monotonic_format(pattern: str) -> str | None:
    """Return a Java date pattern for Python if later times give greater strings; else None."""
    format_, rest = "", pattern
    for number, (letters, directive) in enumerate(_FIELDS):
        if not rest.startswith(letters):
            break
        format_, rest = format_ + directive, rest.removeprefix(letters)
        if number + 1 < len(_FIELDS) and rest[:1] in ("-", "/", " ", ":", "."):
            format_, rest = format_ + rest[0], rest[1:]
    return format_ if format_ and not rest else None
