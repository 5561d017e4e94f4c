"""`CAST(x AS type)` by the rules of Spark SQL.

Evaluation fails if a value does not fit: Spark would return null or wrap around. Casts are not
supported if Arrow formats or rounds differently from Spark: floats to strings or decimals,
timestamps to strings or numbers.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
from sqlglot import exp

from pyhudi.errors import SchemaMismatch
from pyhudi.input.exact_casts import has_spark_format
from pyhudi.input.type_tests import is_date_or_timestamp, is_number, is_text
from pyhudi.schema.sql_expressions import Value, call, cast, null
from pyhudi.schema.sql_functions import round_half_up

_TYPES = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "TEXT": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPNTZ": pa.timestamp("us"),
}
_MAX_DIGITS = 38
DAY_AND_TIME = "^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T].*$"
"""A string that `CAST(x AS DATE)` accepts: a date, and a time of day that is ignored."""


def type_of(node: Any) -> pa.DataType | None:
    """Return the Arrow type of a SQL type; None if values cannot be cast to it."""
    name, parameters = node.this.name, node.expressions
    if name == "DECIMAL":
        return _decimal(parameters)
    return None if parameters else _TYPES.get(name)


def _decimal(parameters: list[Any]) -> pa.DataType | None:
    numbers = [number.this for number in parameters]
    if not all(
        isinstance(number, exp.Literal) and str(number.this).isdecimal() for number in numbers
    ):
        return None
    width, scale = [*(int(str(number.this)) for number in numbers), *(10, 0)[len(numbers) :]][:2]
    if not 1 <= width <= _MAX_DIGITS or scale > width:
        return None
    return pa.decimal128(width, scale)


def cast_value(value: Value, data_type: pa.DataType, what: str) -> Value:
    """Cast a value to a type of `type_of`. Raises `SchemaMismatch` for an unsupported cast."""
    source = value.data_type
    if at.is_null(source):
        return null(data_type)
    if source == data_type or (is_text(source) and is_text(data_type)):
        return cast(value, data_type)
    if is_text(source):
        return _cast_text(value, data_type, what)
    if is_date_or_timestamp(source) and is_date_or_timestamp(data_type):
        return _cast_time(value, data_type)
    if at.is_decimal(data_type) and at.is_decimal(source):
        return cast(round_half_up(value, data_type.scale, what), data_type)
    if at.is_decimal(data_type) and at.is_integer(source):
        return cast(cast(value, pa.decimal128(19, 0)), data_type)
    if at.is_integer(data_type) and (at.is_floating(source) or at.is_decimal(source)):
        return cast(call("trunc", value, what=what), data_type)
    if any(is_kind(data_type) and is_source(source) for is_kind, is_source in _AS_ARROW):
        # A number is rounded to the nearest float.
        return cast(value, data_type, safe=not at.is_floating(data_type))
    raise SchemaMismatch(
        f"{what}: CAST from {source} to {data_type} is unknown",
        hint="Pass a pyarrow expression for it.",
    )


_AS_ARROW = (
    (is_text, has_spark_format),
    (at.is_integer, at.is_integer),
    (at.is_integer, at.is_boolean),
    (at.is_floating, is_number),
    (at.is_floating, at.is_boolean),
    (at.is_boolean, at.is_integer),
    (at.is_boolean, at.is_floating),
)
"""Target types, and source types that Arrow casts to them as Spark does."""


def _cast_text(value: Value, data_type: pa.DataType, what: str) -> Value:
    bare = call("utf8_trim_whitespace", value, what=what)
    if at.is_date(data_type):
        # A time of day may follow, which Spark ignores.
        day = pc.ReplaceSubstringOptions(DAY_AND_TIME, "\\1")
        bare = call("replace_substring_regex", bare, options=day, what=what)
    if at.is_integer(data_type):
        # Arrow reads 0x10 as a number, Spark does not.
        options = pc.ReplaceSubstringOptions("[xX]", "?")
        bare = call("replace_substring_regex", bare, options=options, what=what)
        sign = pc.ReplaceSubstringOptions("^[+]([0-9])", "\\1")
        bare = call("replace_substring_regex", bare, options=sign, what=what)
    return cast(bare, data_type)


def _cast_time(value: Value, data_type: pa.DataType) -> Value:
    if at.is_timestamp(value.data_type) and value.data_type.tz:
        value = cast(value, pa.timestamp(value.data_type.unit, "UTC"))
    # A cast drops the time of day for a date, and the last digits of nanoseconds.
    return cast(value, data_type, safe=False)
