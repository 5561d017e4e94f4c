"""Values of indexed expressions, as far as they are certain without Spark.

Arrow computes most functions as Spark does. Two kinds differ: the string of a time depends on a
session's time zone, which is not recorded, and the case of strings that are not ASCII depends on
the Java release. Then bounds are wide enough for every case, and filters match everything: no row
is missed, less is pruned. All other functions are refused. Functions: `HoodieSparkExpressionIndex`,
`ExpressionIndexSparkFunctions` (Hudi 1.0.2 and 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from pyhudi.config.bloom_options import FILTER_OPTIONS
from pyhudi.config.metadata_names import BLOOM_FILTERS
from pyhudi.metadata.expression_predicates import DEFAULT_FORMAT, unixtime_bounds
from pyhudi.metadata.index_definitions import IndexDefinition

_FROM_UNIXTIME = "from_unixtime"
_GREATEST = "\U0010ffff"
_MOST_GROWTH = 3
"""Maximum number of characters that one can become in another case."""
_LONGEST_TIME = 64
"""Maximum length of a time as a string."""

_Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Bounds:
    """Bounds of an expression's values in one file."""

    min: Any
    max: Any
    nulls: int
    values: int
    """The number of values that are not null."""
    kind: pa.DataType


@dataclass(frozen=True)
class FilterValues:
    """The values of one file as strings."""

    texts: pa.Array[Any]
    more: bool
    """There are more values."""


def _part(part: _Function) -> _Function:
    return lambda dates: part(dates).cast(pa.int32())


_CASES: Mapping[str, _Function] = {"lower": pc.ascii_lower, "upper": pc.ascii_upper}
_TEXTS: Mapping[str, _Function] = {
    "length": pc.utf8_length,
    "trim": lambda texts: pc.utf8_trim(texts, " "),
    "ltrim": lambda texts: pc.utf8_ltrim(texts, " "),
    "rtrim": lambda texts: pc.utf8_rtrim(texts, " "),
}
_DATES: Mapping[str, _Function] = {
    "year": _part(pc.year),
    "month": _part(pc.month),
    "day": _part(pc.day),
}
_EXACT: Mapping[str, _Function] = {**_TEXTS, **_DATES, "identity": lambda column: column}


def find_unsupported_value(definition: IndexDefinition, kind: pa.DataType) -> str | None:
    """Return why expressions over a column of that type are not supported; None if they are."""
    if _is_known(definition, kind):
        return None
    return f"it is of the function {definition.function} over {kind}"


def _is_known(definition: IndexDefinition, kind: pa.DataType) -> bool:
    text = bool(at.is_string(kind))
    whole = bool(at.is_int32(kind) or at.is_int64(kind))
    blooms = definition.kind == BLOOM_FILTERS
    allowed = {"expr", *(FILTER_OPTIONS if blooms else ())}
    function, given = definition.function, definition.options.keys() - allowed
    if function == _FROM_UNIXTIME:
        pattern = definition.options.get("format", DEFAULT_FORMAT)
        grows = unixtime_bounds(0, 0, pattern) is not None
        return whole and grows and given <= {"format"} and not blooms
    if given:
        return False
    if function == "identity":
        return text or whole
    return (text and function in {**_TEXTS, **_CASES}) or (
        bool(at.is_date32(kind)) and function in _DATES
    )


def value_bounds(definition: IndexDefinition, batches: Iterable[pa.RecordBatch]) -> Bounds | None:
    """Return bounds over a file's rows; None without rows. batches: of the source column."""
    parts: list[Bounds] = [
        _bounds(definition, batch.column(0)) for batch in batches if batch.num_rows
    ]
    if not parts:
        return None
    lows = [part.min for part in parts if part.min is not None]
    highs = [part.max for part in parts if part.max is not None]
    return Bounds(
        min(lows, default=None),
        max(highs, default=None),
        sum(part.nulls for part in parts),
        sum(part.values for part in parts),
        parts[0].kind,
    )


def _bounds(definition: IndexDefinition, column: pa.Array[Any]) -> Bounds:
    function = definition.function
    nulls, values = column.null_count, len(column) - column.null_count
    if function in _CASES:
        low, high = _cases(_CASES[function], column)
        return Bounds(low, high, nulls, values, pa.string())
    if function == _FROM_UNIXTIME:
        found = pc.min_max(column).as_py()
        pattern = definition.options.get("format", DEFAULT_FORMAT)
        low, high = _times(found["min"], found["max"], pattern)
        return Bounds(low, high, nulls, values, pa.string())
    made = _EXACT[function](column)
    found = pc.min_max(made).as_py()
    return Bounds(found["min"], found["max"], nulls, values, made.type)


def _cases(function: _Function, column: pa.Array[Any]) -> tuple[str | None, str | None]:
    plain, rest = _by_plainness(column)
    found = pc.min_max(function(plain)).as_py()
    if not len(rest):
        return found["min"], found["max"]
    longest = pc.max(pc.utf8_length(rest)).as_py()
    return "", max(found["max"] or "", _GREATEST * (longest * _MOST_GROWTH))


def _by_plainness(column: pa.Array[Any]) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Return the values in ASCII, and the others; no nulls."""
    known = column.drop_null()
    plain: Any = pc.string_is_ascii(known)
    return known.filter(plain), known.filter(pc.invert(plain))


def _times(low: int | None, high: int | None, pattern: str) -> tuple[str | None, str | None]:
    if low is None or high is None:
        return None, None
    return unixtime_bounds(low, high, pattern) or ("", _GREATEST * _LONGEST_TIME)


def filter_values(
    definition: IndexDefinition, batches: Iterable[pa.RecordBatch]
) -> FilterValues | None:
    """Return the distinct values of a file's rows; None without rows."""
    parts = [
        _filter_values(definition.function, batch.column(0)) for batch in batches if batch.num_rows
    ]
    if not parts:
        return None
    texts = pa.concat_arrays([part.texts for part in parts])
    return FilterValues(texts, any(part.more for part in parts))


def _filter_values(function: str, column: pa.Array[Any]) -> FilterValues:
    if function in _CASES:
        plain, rest = _by_plainness(column.unique())
        return FilterValues(_CASES[function](plain).unique(), more=len(rest) > 0)
    made = _EXACT[function](column.unique()).drop_null().unique()
    return FilterValues(made.cast(pa.string()), more=False)
