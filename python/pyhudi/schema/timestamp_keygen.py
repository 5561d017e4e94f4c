"""The rules of Hudi's timestamp key generator: timestamps of a column in a partition path.

This module decides which patterns, units and zones a table has, and refuses by name what pyhudi
does not format. Arrow converts zones, the Rust core parses and formats the strings. Source:
`TimestampBasedAvroKeyGenerator`, `HoodieDateTimeParser` (Hudi 0.15.0 to 1.2.0).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.timestamp_keygen_options import (
    INPUT_DELIMITER,
    INPUT_FORMAT,
    INPUT_ZONE,
    OLD_PREFIX,
    OUTPUT_FORMAT,
    OUTPUT_ZONE,
    PARSER_CLASS,
    PREFIX,
    TIME_OPTIONS,
    TYPE,
    UNIT,
    ZONE,
)
from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature

_TEXT_TYPES = ("DATE_STRING", "MIXED")
_UNITS = {
    "UNIX_TIMESTAMP": "SECONDS",
    "EPOCHMILLISECONDS": "MILLISECONDS",
    "EPOCHMICROSECONDS": "MICROSECONDS",
}
_MILLIS = {
    "NANOSECONDS": (1, 1_000_000),
    "MICROSECONDS": (1, 1000),
    "MILLISECONDS": (1, 1),
    "SECONDS": (1000, 1),
    "MINUTES": (60_000, 1),
    "HOURS": (3_600_000, 1),
    "DAYS": (86_400_000, 1),
}
"""Milliseconds of each `TimeUnit`, as a factor and a divisor."""

_PARSER = "org.apache.hudi.keygen.parser.HoodieDateTimeParser"
_WRITTEN_LETTERS = "yYMdDHhkKmsS"
_READ_LETTERS = "yYMdHmsSZ"
_NUMBER_WIDTH = 2
_FRACTION_WIDTH = 3

Pattern = tuple[str, ...]
"""A Joda pattern in parts: runs of one letter, or `'` and the literal text after it."""


@dataclass(frozen=True)
class TimeRules:
    """How one table's timestamp key generator parses and formats timestamps."""

    timestamp_type: str
    """UNIX_TIMESTAMP, EPOCHMILLISECONDS, EPOCHMICROSECONDS, SCALAR, DATE_STRING or MIXED."""
    unit: str | None
    """The `TimeUnit` of numbers; None if strings are parsed."""
    inputs: tuple[Pattern, ...]
    """Patterns of strings; the first that matches a whole string wins."""
    output: Pattern
    input_zone: str | None
    """Zone of strings without one; None if the writer's JVM decides."""
    output_zone: str | None
    """Zone of the formatted strings; None for that of the parsed string."""


def time_rules(properties: Mapping[str, str]) -> TimeRules:
    """Return the rules of a table's properties, with those of its writer's options.

    Raises `UnsupportedTableFeature` naming the property that is missing or that pyhudi does not
    support: names of months and days, eras, zones in the output, two-digit years in the input, a
    custom parser class, or a zone that only the writer's JVM knows.
    """
    parser = properties.get(PARSER_CLASS) or _PARSER
    if parser != _PARSER:
        raise _refuse(PARSER_CLASS, parser)
    timestamp_type = _require(properties, TYPE)
    if timestamp_type not in (*_UNITS, *_TEXT_TYPES, "SCALAR"):
        raise _refuse(TYPE, timestamp_type)
    from_text = timestamp_type in _TEXT_TYPES
    both = _value(properties, ZONE)
    input_zone = _zone(ZONE, both) or _zone(INPUT_ZONE, _value(properties, INPUT_ZONE))
    output_zone = _zone(ZONE, both) or _zone(OUTPUT_ZONE, _value(properties, OUTPUT_ZONE))
    if output_zone is None and not from_text:
        msg = (
            f"{OUTPUT_ZONE} is not set: the time zone of the JVM that wrote the table is not stored"
        )
        raise UnsupportedTableFeature(msg, hint=_as_option(ZONE))
    return TimeRules(
        timestamp_type=timestamp_type,
        unit=None if from_text else _unit(properties, timestamp_type),
        inputs=_inputs(properties) if from_text else (),
        output=_pattern(OUTPUT_FORMAT, _require(properties, OUTPUT_FORMAT), _WRITTEN_LETTERS),
        input_zone=input_zone,
        output_zone=output_zone,
    )


def time_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the generator's properties of a table or its writer's options, by current names."""
    values = {name: _value(properties, name) for name in (*TIME_OPTIONS, PARSER_CLASS)}
    return {name: value for name, value in values.items() if value is not None}


def _value(properties: Mapping[str, str], name: str) -> str | None:
    old = name.replace(PREFIX, OLD_PREFIX)
    value = properties.get(name, properties.get(old))
    return value if value is not None and value.strip() else None


def _require(properties: Mapping[str, str], name: str) -> str:
    value = _value(properties, name)
    if value is None:
        msg = f"{name} is not set: the key generator is not stored"
        raise UnsupportedTableFeature(msg, hint=_as_option(name))
    return value


def _as_option(name: str) -> str:
    """Return a hint for opening and for creating a table."""
    return f'Give options={{"{name}": "…"}} to create_table or open_table.'


def _refuse(name: str, value: str) -> UnsupportedTableFeature:
    return UnsupportedTableFeature(f"{name} is {value}: pyhudi does not support that")


def _unit(properties: Mapping[str, str], timestamp_type: str) -> str:
    unit = _UNITS.get(timestamp_type) or (_value(properties, UNIT) or "SECONDS").upper()
    if unit not in _MILLIS:
        raise _refuse(UNIT, unit)
    return unit


def _inputs(properties: Mapping[str, str]) -> tuple[Pattern, ...]:
    formats = _require(properties, INPUT_FORMAT)
    delimiter = _value(properties, INPUT_DELIMITER) or ","
    try:
        parts = re.split(delimiter, formats)
    except re.error:
        raise _refuse(INPUT_DELIMITER, delimiter) from None
    return tuple(_pattern(INPUT_FORMAT, part.strip(), _READ_LETTERS) for part in parts)


def _zone(name: str, java: str | None) -> str | None:
    """Return Arrow's name of a Java `TimeZone` id; refuse ids that only Java knows."""
    if java is None:
        return None
    if java in ("UTC", "GMT"):
        return "UTC"
    offset = re.fullmatch(r"GMT([+-])(\d|[01]\d|2[0-3])(?::?([0-5]\d))?", java)
    if offset:
        sign, hours, minutes = offset.groups("00")
        return f"{sign}{int(hours):02}:{minutes}"
    try:
        if "/" in java:
            pc.local_timestamp(pa.array([0], pa.timestamp("ms", java)))
            return java
    except pa.ArrowInvalid:
        pass
    raise _refuse(name, java)


def _pattern(name: str, pattern: str, letters: str) -> Pattern:
    """Parse a Joda pattern; raises `UnsupportedTableFeature` for letters other than `letters`."""
    parts: list[str] = []
    for match in re.finditer(r"''|'(?:[^']|'')*'|([A-Za-z])\1*|.", pattern, re.DOTALL):
        run = match.group()
        if match.group(1) is None:
            _add_literal(parts, _literal(run))
            continue
        if not _is_known(run, letters):
            msg = f"{name} is {pattern}: pyhudi does not support {run} in a pattern"
            raise UnsupportedTableFeature(msg)
        parts.append(run)
    return tuple(parts)


def _literal(quoted: str) -> str:
    if quoted == "''":
        return "'"
    if len(quoted) > 1:
        return quoted[1:-1].replace("''", "'")
    return quoted


def _add_literal(parts: list[str], literal: str) -> None:
    if parts and parts[-1].startswith("'"):
        parts[-1] += literal
    else:
        parts.append("'" + literal)


def _is_known(run: str, letters: str) -> bool:
    letter, width = run[0], len(run)
    if letter not in letters:
        return False
    if letter in "yY":
        return width != _NUMBER_WIDTH or letters is _WRITTEN_LETTERS
    if letter == "Z":
        return width <= _NUMBER_WIDTH
    return width <= (_FRACTION_WIDTH if letter in "SD" else _NUMBER_WIDTH)


# --- rendering ------------------------------------------------------------------------------------


def render_times(column: pa.ChunkedArray[Any], rules: TimeRules, name: str) -> pa.Array[Any]:
    """Format a column's timestamps; null counts as 1 in its unit, as in Hudi.

    Raises `SchemaMismatch` for a column that the table's `timestamp.type` does not fit, and for a
    string that is not a date.
    """
    values = column.combine_chunks()
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    if is_text != (rules.unit is None):
        msg = (
            f"column {name!r} is {values.type}, which does not match {TYPE} {rules.timestamp_type}"
        )
        raise SchemaMismatch(msg)
    local = _local_of_text(values, rules) if is_text else _local_of_number(values, rules, name)
    return _native.format_times(local, list(rules.output))


def _local_of_number(values: pa.Array[Any], rules: TimeRules, name: str) -> pa.Array[Any]:
    try:
        numbers = _integers(values)
        factor, divisor = _MILLIS[str(rules.unit)]
        millis = pc.multiply_checked(pc.fill_null(numbers, 1), factor)
        return _at_zone(pc.divide(millis, divisor), str(rules.output_zone))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        msg = f"column {name!r} of type {values.type} is not {rules.timestamp_type}: {error}"
        raise SchemaMismatch(msg) from error


def _integers(values: pa.Array[Any]) -> pa.Array[Any]:
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        return pc.trunc(values).cast(pa.int64())
    if pa.types.is_date32(values.type):
        return values.cast(pa.int32()).cast(pa.int64())
    return values.cast(pa.int64())


def _at_zone(millis: pa.Array[Any], zone: str) -> pa.Array[Any]:
    """Return local times in a zone, from milliseconds since 1970."""
    return pc.local_timestamp(millis.cast(pa.timestamp("ms", zone)))


def _local_of_text(values: pa.Array[Any], rules: TimeRules) -> pa.Array[Any]:
    if values.null_count:
        values = pc.fill_null(values, _string_of_null(rules))
    parsed = _native.parse_times(values, [list(pattern) for pattern in rules.inputs])
    local, offsets = parsed.field("time"), parsed.field("offset")
    zone = rules.output_zone or rules.input_zone
    if zone is None:
        return local
    if rules.input_zone is None and offsets.null_count:
        msg = (
            f"{INPUT_ZONE} is not set: the time zone of the JVM that wrote the table is not stored"
        )
        raise UnsupportedTableFeature(msg, hint=_as_option(INPUT_ZONE))
    return _at_zone(_utc(local, offsets, rules.input_zone or "UTC"), zone)


def _utc(local: pa.Array[Any], offsets: pa.Array[Any], zone: str) -> pa.Array[Any]:
    """Return milliseconds since 1970 of local times with their own offset, or else in the zone."""
    by_offset = pc.subtract(local.cast(pa.int64()), pc.multiply(offsets.cast(pa.int64()), 60_000))
    if not offsets.null_count:
        return by_offset
    unzoned = pc.if_else(offsets.is_null(), local, pa.scalar(None, local.type))
    try:
        zoned = pc.assume_timezone(unzoned, zone, ambiguous="earliest", nonexistent="raise")
    except pa.ArrowInvalid as error:
        raise SchemaMismatch(f"a date does not exist in the time zone {zone}: {error}") from error
    return pc.coalesce(by_offset, zoned.cast(pa.int64()))


def _string_of_null(rules: TimeRules) -> str:
    """Return the string of null: the first millisecond of 1970 by the first input pattern."""
    zone = rules.input_zone or rules.output_zone or "UTC"
    local = _at_zone(pa.array([1], pa.int64()), zone)
    minutes = (local.cast(pa.int64())[0].as_py() - 1) // 60_000
    sign, size = ("-" if minutes < 0 else "+"), abs(minutes)
    offsets = {"Z": f"'{sign}{size // 60:02}{size % 60:02}"}
    offsets["ZZ"] = f"'{sign}{size // 60:02}:{size % 60:02}"
    pattern = [offsets.get(part, part) for part in rules.inputs[0]]
    return str(_native.format_times(local, pattern)[0].as_py())
