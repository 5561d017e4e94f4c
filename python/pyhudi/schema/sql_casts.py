"""`CAST(x AS type)`: which types go into which, by Spark's SQL.

Where a value does not fit, evaluation fails: Spark would give null or wrap around. Casts whose
outcome Arrow spells or rounds in another way than Spark (floating numbers as text or decimals,
timestamps as text or numbers) are refused.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
from sqlglot import exp

from pyhudi.errors import SchemaMismatch
from pyhudi.input.exact_casts import is_spelled_alike
from pyhudi.schema.predicate_literals import is_text
from pyhudi.schema.sql_expressions import Value, call, cast, is_number, null
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
_DIGITS_MOST = 38
DAY_AND_TIME = "^([0-9]{4}-[0-9]{2}-[0-9]{2})[ T].*$"
"""Text that is a day for `CAST(x AS DATE)`, though more follows."""


def type_of(node: Any) -> pa.DataType | None:
    """The Arrow type of a type in SQL; None for one that values cannot be cast to."""
    name, parameters = node.this.name, node.expressions
    if name == "DECIMAL":
        return _decimal(parameters)
    return None if parameters else _TYPES.get(name)


def _decimal(parameters: list[Any]) -> pa.DataType | None:
    numbers = [one.this for one in parameters]
    if not all(isinstance(one, exp.Literal) and str(one.this).isdecimal() for one in numbers):
        return None
    width, scale = [*(int(str(one.this)) for one in numbers), *(10, 0)[len(numbers) :]][:2]
    if not 1 <= width <= _DIGITS_MOST or scale > width:
        return None
    return pa.decimal128(width, scale)


def cast_value(value: Value, kind: pa.DataType, what: str) -> Value:
    """A value in a type that `type_of` told. Raises `SchemaMismatch` for a pair that is refused."""
    given = value.kind
    if at.is_null(given):
        return null(kind)
    if given == kind or (is_text(given) and is_text(kind)):
        return cast(value, kind)
    if is_text(given):
        return _of_text(value, kind, what)
    if _is_moment(given) and _is_moment(kind):
        return _of_moment(value, kind)
    if at.is_decimal(kind) and at.is_decimal(given):
        return cast(round_half_up(value, kind.scale, what), kind)
    if at.is_decimal(kind) and at.is_integer(given):
        return cast(cast(value, pa.decimal128(19, 0)), kind)
    if at.is_integer(kind) and (at.is_floating(given) or at.is_decimal(given)):
        return cast(call("trunc", value, what=what), kind)
    if any(is_kind(kind) and is_given(given) for is_kind, is_given in _AS_ARROW):
        # A number is rounded to the nearest floating one.
        return cast(value, kind, safe=not at.is_floating(kind))
    raise SchemaMismatch(
        f"{what}: CAST from {given} to {kind} is unknown",
        hint="Give a pyarrow expression for it.",
    )


def _is_moment(kind: pa.DataType) -> bool:
    return bool(at.is_date(kind) or at.is_timestamp(kind))


_AS_ARROW = (
    (is_text, is_spelled_alike),
    (at.is_integer, at.is_integer),
    (at.is_integer, at.is_boolean),
    (at.is_floating, is_number),
    (at.is_floating, at.is_boolean),
    (at.is_boolean, at.is_integer),
    (at.is_boolean, at.is_floating),
)
"""Types, and those that Arrow casts to them as Spark does."""


def _of_text(value: Value, kind: pa.DataType, what: str) -> Value:
    bare = call("utf8_trim_whitespace", value, what=what)
    if at.is_date(kind):
        # A time of day may follow, which Spark does not look at.
        day = pc.ReplaceSubstringOptions(DAY_AND_TIME, "\\1")
        bare = call("replace_substring_regex", bare, options=day, what=what)
    if at.is_integer(kind):
        # Arrow reads 0x10 as a number, Spark does not.
        options = pc.ReplaceSubstringOptions("[xX]", "?")
        bare = call("replace_substring_regex", bare, options=options, what=what)
        sign = pc.ReplaceSubstringOptions("^[+]([0-9])", "\\1")
        bare = call("replace_substring_regex", bare, options=sign, what=what)
    return cast(bare, kind)


def _of_moment(value: Value, kind: pa.DataType) -> Value:
    if at.is_timestamp(value.kind) and value.kind.tz:
        value = cast(value, pa.timestamp(value.kind.unit, "UTC"))
    # A moment loses its time of day, and nanoseconds their last digits.
    return cast(value, kind, safe=False)
