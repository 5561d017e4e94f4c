"""Filters that Spark pushes down to a Python data source, as filter tuples.

Spark applies every filter itself again, so the only requirement is that no row is skipped that
Spark would keep. Comparisons that differ between Spark and Arrow (NaN, collations) are not pushed.
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
    """Return the filters that can be applied when files are read. schema: that of scans."""
    tuples = (_tuple(spark_filter) for spark_filter in filters)
    return tuple(
        triple for triple in tuples if triple is not None and is_comparable(triple, schema)
    )


def _tuple(spark_filter: Any) -> FilterTuple | None:
    filter_type = type(spark_filter).__name__
    if filter_type == "Not":
        return _negate(spark_filter.child)
    if len(spark_filter.attribute) != 1:
        return None
    column = spark_filter.attribute[0]
    if filter_type == "IsNull":
        return (column, "is null")
    if filter_type == "IsNotNull":
        return (column, "is not null")
    if filter_type == "In":
        values = [value for value in spark_filter.value if value is not None]
        return (column, "in", values) if values else None
    if filter_type in _OPERATORS and spark_filter.value is not None:
        return (column, _OPERATORS[filter_type], spark_filter.value)
    return None


def _negate(child: Any) -> FilterTuple | None:
    if type(child).__name__ != "EqualTo" or len(child.attribute) != 1 or child.value is None:
        return None
    return (child.attribute[0], "!=", child.value)


def is_comparable(triple: FilterTuple, schema: pa.Schema) -> bool:
    """Return whether Spark and Arrow evaluate a filter in the same way."""
    column = triple[0]
    if column not in schema.names:
        return False
    data_type = schema.field(column).type
    values = triple[2] if triple[1] == "in" else triple[2:]
    if not all(_is_of(value, data_type) for value in values):
        return False
    try:
        parse_where([triple], schema)
    except HudiError:
        return False
    return True


def _is_of(value: Any, data_type: pa.DataType) -> bool:
    """Return whether Spark and Arrow order a literal in the same way in a column of the type."""
    if isinstance(value, bool):
        return bool(at.is_boolean(data_type))
    if isinstance(value, int):
        return bool(at.is_integer(data_type))
    if isinstance(value, str):
        return bool(at.is_string(data_type))
    if isinstance(value, dt.datetime):
        return bool(at.is_timestamp(data_type)) and (value.tzinfo is None) == (data_type.tz is None)
    if isinstance(value, dt.date):
        return bool(at.is_date32(data_type))
    return isinstance(value, Decimal) and bool(at.is_decimal(data_type))
