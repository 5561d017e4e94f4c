"""Filters that Spark pushes down to a Python data source, as filter tuples.

Spark goes on to apply every filter itself, so only one thing counts here: no row may be left out
that Spark would keep. What Spark sees otherwise than Arrow (NaN, collations) is not pushed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as at

from pyhudi.errors import HudiError
from pyhudi.schema.predicate_parser import parse_where

FilterTuple = tuple[Any, ...]

_OPERATORS = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}


def pushable(filters: Iterable[Any], schema: pa.Schema) -> tuple[FilterTuple, ...]:
    """The filters that can be applied where files are read. schema: as scans give rows."""
    found = (_tuple(given) for given in filters)
    return tuple(triple for triple in found if triple is not None and fitting(triple, schema))


def _tuple(given: Any) -> FilterTuple | None:
    kind = type(given).__name__
    if kind == "Not":
        return _negate(given.child)
    if len(given.attribute) != 1:
        return None
    column = given.attribute[0]
    if kind == "IsNull":
        return (column, "is null")
    if kind == "IsNotNull":
        return (column, "is not null")
    if kind == "In":
        values = [value for value in given.value if value is not None]
        return (column, "in", values) if values else None
    if kind in _OPERATORS and given.value is not None:
        return (column, _OPERATORS[kind], given.value)
    return None


def _negate(child: Any) -> FilterTuple | None:
    if type(child).__name__ != "EqualTo" or len(child.attribute) != 1 or child.value is None:
        return None
    return (child.attribute[0], "!=", child.value)


def fitting(triple: FilterTuple, schema: pa.Schema) -> bool:
    """Whether Spark and Arrow test a column alike by the filter."""
    column = triple[0]
    if column not in schema.names:
        return False
    kind = schema.field(column).type
    values = triple[2] if triple[1] == "in" else triple[2:]
    if not all(_is_of(value, kind) for value in values):
        return False
    try:
        parse_where([triple], schema)
    except HudiError:
        return False
    return True


def _is_of(value: Any, kind: pa.DataType) -> bool:
    """Whether a literal is what Spark and Arrow order alike in a column of the type."""
    if isinstance(value, bool):
        return bool(at.is_boolean(kind))
    if isinstance(value, int):
        return bool(at.is_integer(kind))
    if isinstance(value, str):
        return bool(at.is_string(kind))
    if isinstance(value, dt.datetime):
        return bool(at.is_timestamp(kind)) and (value.tzinfo is None) == (kind.tz is None)
    if isinstance(value, dt.date):
        return bool(at.is_date32(kind))
    return isinstance(value, Decimal) and bool(at.is_decimal(kind))
