"""SQL functions in Arrow's terms, and their calls in a syntax tree.

A result of Spark SQL that Arrow cannot compute (rounding a double to digits, the remainder of
floating-point numbers) is an error, never another result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
from sqlglot import exp

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.input.type_tests import is_list, is_number, is_text
from pyhudi.schema.sql_expressions import (
    Literal,
    Operand,
    Value,
    boolean,
    call,
    cast,
    common_type,
    in_type,
    literal_argument,
    null,
    to_value,
)
from pyhudi.schema.sql_lists import LIST_FUNCTIONS, list_length
from pyhudi.schema.sql_operators import arithmetic
from pyhudi.schema.sql_times import TIME_FUNCTIONS

_MAX_DIGITS = 38
_FAR = 2**31
_PART = re.compile(r"\\([%_\\])|([^\\])", re.DOTALL)
_WILD = {"%": ".*", "_": "."}
_SIGNS = frozenset(".?+*^$\\[]{}()|")
"""Characters with a meaning in regular expressions."""


def call_function(name: str, arguments: Sequence[Operand], what: str) -> Operand | None:
    """Call a function; None for an unknown one, or with other arguments.

    Raises `SchemaMismatch` for unsupported types.
    """
    function_and_arity = FUNCTIONS.get(name)
    if function_and_arity is None:
        return None
    function, minimum, maximum = function_and_arity
    if not minimum <= len(arguments) <= maximum:
        return None
    return function(what, *arguments)


# --- strings --------------------------------------------------------------------------------------


def _string_operand(what: str, operand: Operand, function: str) -> Value:
    value = to_value(operand, what)
    if at.is_null(value.data_type):
        return null(pa.string())
    if not is_text(value.data_type) and value.column:
        column = value.label(what)
        raise SchemaMismatch(f"{what}: {function} needs a string, not the column {column!r}")
    if not is_text(value.data_type):
        raise SchemaMismatch(
            f"{what}: {function} needs a string, not {value.data_type}",
            hint="Use CAST(x AS STRING).",
        )
    return value


def _lower(what: str, operand: Operand) -> Value:
    return call("utf8_lower", _string_operand(what, operand, "lower"), what=what)


def _upper(what: str, operand: Operand) -> Value:
    # Java turns this letter into two, Arrow into another one.
    options = pc.ReplaceSubstringOptions("ß", "SS")
    value = _string_operand(what, operand, "upper")
    return call(
        "utf8_upper", call("replace_substring", value, options=options, what=what), what=what
    )


def _trim_function(function: str) -> Callable[..., Value]:
    def trim(what: str, operand: Operand, characters: Operand = Literal(" ")) -> Value:  # noqa: B008 - frozen
        trimmed = literal_argument(what, characters, "trim", str)
        value = _string_operand(what, operand, "trim")
        if trimmed is None:
            return null(pa.string())
        return call(function, value, options=pc.TrimOptions(trimmed), what=what)

    return trim


def _length(what: str, operand: Operand) -> Value:
    if isinstance(operand, Value) and is_list(operand.data_type):
        return list_length(what, operand)
    return call("utf8_length", _string_operand(what, operand, "length"), what=what)


def _substring(
    what: str,
    operand: Operand,
    start: Operand,
    length: Operand = Literal(2**31),  # noqa: B008 - frozen
) -> Value:
    """Return a substring. Positions begin at 1; negative positions count from the end."""
    value = _string_operand(what, operand, "substring")
    first, count = (
        literal_argument(what, argument, "substring", int) for argument in (start, length)
    )
    if first is None or count is None:
        return null(pa.string())
    first = first - 1 if first > 0 else first
    stop: int | None = first + max(count, 0)
    if first < 0 and first + count >= 0:
        stop = None
    if count <= 0:
        stop = first = 0
    # No string is that long, and Arrow adds both numbers in 64 bits.
    first = max(first, -_FAR)
    stop = None if stop is None or stop > _FAR else max(stop, -_FAR)
    options = pc.SliceOptions(min(first, _FAR), stop)
    return call("utf8_slice_codeunits", value, options=options, what=what)


def _concat(what: str, *operands: Operand) -> Value:
    values = [_string_operand(what, operand, "concat") for operand in operands]
    return call("binary_join_element_wise", *values, to_value(Literal(""), what), what=what)


def _matcher(function: str, name: str, options: Callable[[str], Any]) -> Callable[..., Value]:
    """Build a function that searches for a literal string."""

    def match(what: str, operand: Operand, pattern: Operand) -> Value:
        value = _string_operand(what, operand, name)
        literal = literal_argument(what, pattern, name, str)
        if literal is None:
            return null(pa.bool_())
        return call(function, value, options=options(literal), what=what)

    return match


def like(what: str, operand: Operand, pattern: Operand, *, ignore_case: bool = False) -> Value:
    """Return whether a string matches a literal pattern."""
    name = "ILIKE" if ignore_case else "LIKE"
    value = _string_operand(what, operand, name)
    literal = literal_argument(what, pattern, name, str)
    if literal is None:
        return null(pa.bool_())
    function, options = _like_options(literal, ignore_case=ignore_case)
    return call(function, value, options=options, what=what)


def _like_options(
    pattern: str, *, ignore_case: bool = False
) -> tuple[str, pc.MatchSubstringOptions]:
    """Return the Arrow function that matches a pattern of LIKE, and its options.

    Arrow's own function takes the beginning or end of many patterns literally, with their escapes,
    and skips a backslash before any character. A pattern with a backslash becomes a regular
    expression.

    Raises `ConfigError` for a backslash that escapes nothing, as Spark does.
    """
    if "\\" not in pattern:
        return "match_like", pc.MatchSubstringOptions(pattern, ignore_case=ignore_case)
    parts = list(_PART.finditer(pattern))
    if sum(len(part[0]) for part in parts) < len(pattern):
        raise ConfigError(
            f"LIKE {pattern!r}: a backslash may only precede %, _ and \\",
            hint="Write two backslashes for one.",
        )
    signs = [_WILD.get(part[2]) or _escape(part[1] or part[2]) for part in parts]
    regex = f"(?s)^{''.join(signs)}$"
    return "match_substring_regex", pc.MatchSubstringOptions(regex, ignore_case=ignore_case)


def _escape(character: str) -> str:
    return f"\\{character}" if character in _SIGNS else character


def _regex(pattern: str) -> Any:
    """Return an RE2 regular expression; refuse what Java reads differently without an error."""
    hint = "Use RE2 syntax."
    for syntax in ("&&", "\\v", "(?U", "(?iU", "(?sU"):
        if syntax in pattern:
            raise ConfigError(
                f"RLIKE {pattern!r}: {syntax} has another meaning in Spark", hint=hint
            )
    options = pc.MatchSubstringOptions(pattern)
    try:
        pc.call_function("match_substring_regex", [pa.array([""])], options)
    except pa.ArrowInvalid as error:
        raise ConfigError(f"RLIKE {pattern!r}: {error}", hint=hint) from error
    return options


# --- numbers --------------------------------------------------------------------------------------


def _number(what: str, operand: Operand, function: str) -> Value:
    value = to_value(operand, what)
    if at.is_null(value.data_type):
        return null(pa.int64())
    if not is_number(value.data_type):
        raise SchemaMismatch(f"{what}: {function} needs a number, not {value.data_type}")
    return value


def _is_nan(what: str, operand: Operand) -> Value:
    """Return whether a number is NaN; false for null, as in Spark."""
    value = cast(_number(what, operand, "isnan"), pa.float64())
    return call("coalesce", call("is_nan", value, what=what), boolean(value=False), what=what)


def _abs(what: str, number: Operand) -> Value:
    value = _number(what, number, "abs")
    wide = cast(value, pa.int64()) if at.is_integer(value.data_type) else value
    return call("abs_checked", wide, what=what)


def _with_room_to_round(value: Value) -> Value:
    """Return a decimal with room for one more leading digit, which rounding may need."""
    data_type = value.data_type
    if not at.is_decimal(data_type) or data_type.precision >= _MAX_DIGITS:
        return value
    return cast(value, pa.decimal128(data_type.precision + 1, data_type.scale))


def _round(what: str, number: Operand, digits: Operand = Literal(0)) -> Value:  # noqa: B008 - frozen
    value = _number(what, number, "round")
    places = literal_argument(what, digits, "round", int)
    if places is None:
        return null(value.data_type)
    if places < 0 or (at.is_floating(value.data_type) and places):
        raise ConfigError(
            f"{what}: round to {places} digits is unknown for {value.data_type}",
            hint="Floats round to integers, decimals to digits after the point.",
        )
    return round_half_up(value, places, what)


def round_half_up(value: Value, places: int, what: str) -> Value:
    """Round, halves away from zero."""
    if at.is_integer(value.data_type) or (
        at.is_decimal(value.data_type) and places >= value.data_type.scale
    ):
        return value
    options = pc.RoundOptions(places, "half_towards_infinity")
    return call("round", _with_room_to_round(value), options=options, what=what)


def _floor_or_ceil(function: str) -> Callable[..., Value]:
    def round_number(what: str, number: Operand) -> Value:
        value = _number(what, number, function)
        if at.is_integer(value.data_type):
            return value
        return call(function, _with_room_to_round(value), what=what)

    return round_number


def _pmod(what: str, number: Operand, divisor: Operand) -> Value:
    """Return the remainder of an integer with the sign of the divisor, a positive literal."""
    positive = literal_argument(what, divisor, "pmod", int)
    if positive is None or positive < 1:
        raise ConfigError(
            f"{what}: the divisor of pmod is {positive}", hint="Use a positive integer."
        )
    remainder = arithmetic(_number(what, number, "pmod"), "%", divisor, what)
    return arithmetic(arithmetic(remainder, "+", divisor, what), "%", divisor, what)


# --- several --------------------------------------------------------------------------------------


def _in_common_type(what: str, operands: Sequence[Operand]) -> list[Value]:
    data_type = common_type(operands, what)
    return [in_type(operand, data_type, what) for operand in operands]


def _coalesce(what: str, *operands: Operand) -> Value:
    return call("coalesce", *_in_common_type(what, operands), what=what)


def _greatest(what: str, *operands: Operand) -> Value:
    values = _in_common_type(what, operands)
    greatest = _minimum_or_maximum("max_element_wise", values, what)
    if not at.is_floating(greatest.data_type):
        return greatest
    # Arrow prefers any number to NaN, which is the maximum.
    for value in values:
        false = Value(pc.scalar(pa.scalar(value=False)), pa.bool_())
        is_nan = call("coalesce", call("is_nan", value, what=what), false, what=what)
        nan = Value(pc.scalar(pa.scalar(float("nan"), greatest.data_type)), greatest.data_type)
        greatest = call("if_else", is_nan, nan, greatest, what=what)
    return greatest


def _least(what: str, *operands: Operand) -> Value:
    return _minimum_or_maximum("min_element_wise", _in_common_type(what, operands), what)


def _minimum_or_maximum(function: str, values: Sequence[Value], what: str) -> Value:
    """Return the minimum or maximum of values, timestamps in UTC: Arrow takes none with a zone."""
    data_type = values[0].data_type
    if not at.is_timestamp(data_type) or not data_type.tz:
        return call(function, *values, what=what)
    without_zone = [
        cast(cast(value, pa.timestamp(data_type.unit, "UTC")), pa.timestamp(data_type.unit))
        for value in values
    ]
    return cast(call(function, *without_zone, what=what), pa.timestamp(data_type.unit, "UTC"))


_ANY = 1000
FUNCTIONS: dict[str, tuple[Callable[..., Operand], int, int]] = {
    "lower": (_lower, 1, 1),
    "upper": (_upper, 1, 1),
    "trim": (_trim_function("utf8_trim"), 1, 2),
    "ltrim": (_trim_function("utf8_ltrim"), 1, 2),
    "rtrim": (_trim_function("utf8_rtrim"), 1, 2),
    "length": (_length, 1, 1),
    "substring": (_substring, 2, 3),
    "concat": (_concat, 1, _ANY),
    "abs": (_abs, 1, 1),
    "coalesce": (_coalesce, 1, _ANY),
    "round": (_round, 1, 2),
    "pmod": (_pmod, 2, 2),
    "floor": (_floor_or_ceil("floor"), 1, 1),
    "ceil": (_floor_or_ceil("ceil"), 1, 1),
    "isnan": (_is_nan, 1, 1),
    **TIME_FUNCTIONS,
    **LIST_FUNCTIONS,
    "starts_with": (_matcher("starts_with", "starts_with", pc.MatchSubstringOptions), 2, 2),
    "ends_with": (_matcher("ends_with", "ends_with", pc.MatchSubstringOptions), 2, 2),
    "contains": (_matcher("match_substring", "contains", pc.MatchSubstringOptions), 2, 2),
    "rlike": (_matcher("match_substring_regex", "RLIKE", _regex), 2, 2),
    "greatest": (_greatest, 2, _ANY),
    "least": (_least, 2, _ANY),
}
"""By name: its implementation, and its minimum and maximum number of arguments."""


# --- calls in a syntax tree -----------------------------------------------------------------------

_FUNCTION_NODES: dict[str, tuple[str, tuple[str, ...]]] = {
    "Lower": ("lower", ("this",)),
    "Upper": ("upper", ("this",)),
    "Trim": ("trim", ("this", "expression")),
    "Length": ("length", ("this",)),
    "Substring": ("substring", ("this", "start", "length")),
    "Concat": ("concat", ("expressions",)),
    "DPipe": ("concat", ("this", "expression")),
    "Abs": ("abs", ("this",)),
    "Coalesce": ("coalesce", ("this", "expressions")),
    "Round": ("round", ("this", "decimals")),
    "Floor": ("floor", ("this",)),
    "Ceil": ("ceil", ("this",)),
    **{name.title(): (name, ("this",)) for name in ("year", "quarter", "month", "day")},
    **{name.title(): (name, ("this",)) for name in ("hour", "minute", "second")},
    "DayOfMonth": ("day", ("this",)),
    "Week": ("weekofyear", ("this",)),
    "WeekOfYear": ("weekofyear", ("this",)),
    "DayOfWeek": ("dayofweek", ("this",)),
    "DayOfYear": ("dayofyear", ("this",)),
    "Extract": ("extract", ("this", "expression")),
    "IsNan": ("isnan", ("this",)),
    "ArraySize": ("array_size", ("this",)),
    "ArrayContains": ("array_contains", ("this", "expression")),
    "Bracket": ("subscript", ("this", "expressions")),
    "DateTrunc": ("date_trunc", ("unit", "this")),
    "StartsWith": ("starts_with", ("this", "expression")),
    "EndsWith": ("ends_with", ("this", "expression")),
    "Contains": ("contains", ("this", "expression")),
    "RegexpLike": ("rlike", ("this", "expression")),
    "Greatest": ("greatest", ("this", "expressions")),
    "Least": ("least", ("this", "expressions")),
}
_OTHER_NAMES = {
    "startswith": "starts_with",
    "endswith": "ends_with",
    "regexp": "rlike",
    "char_length": "length",
    "character_length": "length",
    "dayofmonth": "day",
    "week": "weekofyear",
    "date_part": "extract",
    "size": "cardinality",
    "list_contains": "array_contains",
    "list_has": "array_contains",
    "list_element": "element_at",
    "list_extract": "element_at",
    "is_nan": "isnan",
}
_IGNORED = {"safe", "is_nvl", "is_null", "ignore_nulls", "position"}
"""Arguments for the behaviour of dialects, and `position`, which `call_of` reads itself."""


def call_of(node: Any) -> tuple[str, list[Any]] | None:
    """Return name and arguments of a call; None for another node, or for unknown arguments.

    sqlglot has its own nodes for some functions, which differ between its releases.
    """
    if type(node) is exp.Anonymous:
        name = str(node.this).lower()
        return _OTHER_NAMES.get(name, name), list(node.expressions)
    keys_of_function = _FUNCTION_NODES.get(type(node).__name__)
    if keys_of_function is None:
        return None
    name, keys = keys_of_function
    if any(value for key, value in node.args.items() if key not in (*keys, *_IGNORED)):
        return None
    if name == "trim":
        position = node.args.get("position")
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(position or "").upper(), name)
    arguments: list[Any] = []
    for key in keys:
        value = node.args.get(key)
        if value is not None:
            arguments += value if isinstance(value, list) else [value]
    return name, arguments
