"""SQL functions of dates and timestamps in Arrow's terms, and arithmetic with intervals.

Timestamps are in UTC. A date and an interval of years, months, weeks or days give a date, any other
interval gives a timestamp. Months keep the day, or take the last day of a shorter month.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.sql_expressions import (
    Literal,
    Operand,
    Value,
    call,
    cast,
    literal_argument,
    null,
    to_value,
)
from pyhudi.schema.sql_parser import INTERVAL_UNITS

_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_DAY = 86_400_000_000
_SECOND = 1_000_000
_MONTH = 2_629_746_000_000
"""Microseconds of an average month."""
_INTERVAL = re.compile(r"\s*([+-]?)\s*(\d+)(\.\d{1,6})?\s*([A-Za-z]+)\s*")
_MAX_MONTHS = 12 * 20_000
_MAX_MICROS_FROM_1970 = 12 * 10_000 * _MONTH
_MAX_MICROS = 2**62
_CALENDAR_MICROS = 30_000 * 365 * _DAY
"""Maximum distance from 1970 of a time whose year, month or week is computed."""
_CALENDAR_UNITS = {"year", "quarter", "month", "week"}


@dataclass(frozen=True)
class Interval:
    """A length of time: a literal that can only be added to a date or timestamp."""

    months: int
    micros: int
    has_time: bool
    """Whether it names hours or smaller units."""

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.micros, self.has_time)

    def __str__(self) -> str:
        return "an interval"


def interval(what: str, text: Operand) -> Literal:
    """Return the interval that a string such as `3 days` names. Raises `ConfigError`."""
    string = literal_argument(what, text, "INTERVAL", str) or ""
    months = micros = 0
    has_time = False
    parts = list(_INTERVAL.finditer(string))
    is_valid = bool(parts) and "".join(part[0] for part in parts) == string
    for part in parts:
        sign, digits, fraction, unit = part.groups()
        unit_months, unit_micros = INTERVAL_UNITS.get(unit.lower(), (0, 0))
        is_valid &= unit_micros == _SECOND or (unit_months + unit_micros > 0 and not fraction)
        count = Decimal(f"{sign}{digits}{fraction or ''}")
        months, micros = months + int(count * unit_months), micros + int(count * unit_micros)
        has_time |= 0 < unit_micros < _DAY
    if not is_valid or abs(months) > _MAX_MONTHS or abs(micros) > _MAX_MICROS:
        raise ConfigError(
            f"{what}: {string!r} is not an interval",
            hint="Write INTERVAL '3 days': years, months, weeks, days, hours, minutes, seconds.",
        )
    if months and micros:
        raise ConfigError(
            f"{what}: the interval {string!r} has months and days",
            hint="Add two intervals: x + INTERVAL '1 month' + INTERVAL '3 days'.",
        )
    return Literal(Interval(months, micros, has_time))


def interval_of(operand: Operand) -> Interval | None:
    """Return the interval that an operand is; None for another operand."""
    return (
        operand.value if isinstance(operand, Literal) and type(operand.value) is Interval else None
    )


def add_interval(left: Operand, op: str, right: Operand, what: str) -> Value:
    """Add an interval, or subtract it. Raises `ConfigError` for any other operation with one."""
    length = interval_of(right)
    if length is None and op == "+":
        left, length = right, interval_of(left)
    if length is None or interval_of(left) or op not in ("+", "-"):
        raise ConfigError(
            f"{what}: an interval can only be added to a date or timestamp, or subtracted",
            hint="Write at + INTERVAL '3 days'.",
        )
    value = to_value(left, what)
    moment = _timestamp(what, value, "INTERVAL")
    if moment.data_type.unit in ("s", "ms"):
        moment = cast(moment, pa.timestamp("us", moment.data_type.tz))
    length = -length if op == "-" else length
    moment = _add_months(moment, length.months, what) if length.months else moment
    moment = _add(moment, length.micros, what) if length.micros else moment
    returns_date = at.is_date(value.data_type) and not length.has_time
    return cast(moment, value.data_type) if returns_date else moment


def _add(moment: Value, micros: int, what: str) -> Value:
    return call("add_checked", moment, _duration(moment, micros), what=what)


def _duration(moment: Value, micros: int) -> Value:
    """Return microseconds as a duration in the unit of a timestamp."""
    unit = moment.data_type.unit
    scaled = micros * (1000 if unit == "ns" else 1)
    scalar = pa.scalar(scaled, pa.int64()).cast(pa.duration(unit))
    return Value(pc.scalar(scalar), scalar.type)


def _add_months(moment: Value, months: int, what: str) -> Value:
    moment = _check_range(moment, _MAX_MICROS_FROM_1970, what)
    # The beginnings of months are less than a week from their places on an average calendar.
    month = _floor(moment, "month", what)
    target = _floor(_add(month, months * _MONTH + 14 * _DAY, what), "month", what)
    day = _floor(moment, "day", what)
    days = call("subtract_checked", day, month, what=what)
    last_day = _add(_floor(_add(target, 31 * _DAY, what), "month", what), -_DAY, what)
    last = call("subtract_checked", last_day, target, what=what)
    days = call("if_else", call("greater", days, last, what=what), last, days, what=what)
    time = call("subtract_checked", moment, day, what=what)
    return call("add_checked", call("add_checked", target, days, what=what), time, what=what)


def _check_range(moment: Value, max_micros: int, what: str) -> Value:
    """Make evaluation fail far from 1970: Arrow counts years in 16 bits.

    max_micros: from 1970 in both directions.
    """
    if moment.data_type.unit == "ns":
        return moment
    if moment.data_type.unit in ("s", "ms"):
        moment = cast(moment, pa.timestamp("us", moment.data_type.tz))
    room = _duration(moment, 2**63 - 1 - max_micros)
    for there, back in (("add_checked", "subtract"), ("subtract_checked", "add")):
        moment = call(back, call(there, moment, room, what=what), room, what=what)
    return moment


def _floor(value: Value, unit: str, what: str) -> Value:
    options = pc.RoundTemporalOptions(1, unit, week_starts_monday=True)
    return call("floor_temporal", value, options=options, what=what)


# --- functions ------------------------------------------------------------------------------------


def _timestamp(what: str, operand: Operand, function: str) -> Value:
    """Return a timestamp in UTC, or a date as its midnight."""
    value = to_value(operand, what)
    if at.is_null(value.data_type):
        return null(pa.timestamp("us"))
    if at.is_date(value.data_type):
        return cast(value, pa.timestamp("us"))
    if not at.is_timestamp(value.data_type):
        raise SchemaMismatch(
            f"{what}: {function} needs a date or a timestamp, not {value.data_type}",
            hint="Use CAST(x AS DATE) or CAST(x AS TIMESTAMP).",
        )
    return cast(value, pa.timestamp(value.data_type.unit, "UTC")) if value.data_type.tz else value


def _part(function: str, name: str, options: Any = None) -> Callable[..., Value]:
    def part(what: str, timestamp: Operand) -> Value:
        moment = _timestamp(what, timestamp, name)
        if function not in _CLOCK_PARTS:
            moment = _check_range(moment, _CALENDAR_MICROS, what)
        return call(function, moment, options=options, what=what)

    return part


def _seconds(what: str, timestamp: Operand) -> Value:
    """Return the seconds with their fraction, as `extract(SECOND FROM x)` in Spark."""
    moment = _timestamp(what, timestamp, "extract")
    moment = cast(moment, pa.timestamp("us", moment.data_type.tz), safe=False)
    micros = call("subtract", moment, _floor(moment, "minute", what), what=what)
    scale = pa.scalar(Decimal("0.000001"), pa.decimal128(6, 6))
    whole = cast(cast(micros, pa.int64()), pa.decimal128(19, 0))
    seconds = call("multiply", whole, Value(pc.scalar(scale), scale.type), what=what)
    return cast(seconds, pa.decimal128(8, 6))


def _date_trunc(what: str, unit: Operand, timestamp: Operand) -> Value:
    name = literal_argument(what, unit, "date_trunc", str)
    if name is None or name.lower() not in _UNITS:
        raise ConfigError(
            f"{what}: date_trunc to {name!r} is unknown", hint=f"Choose one of {', '.join(_UNITS)}."
        )
    unit_name, moment = name.lower(), _timestamp(what, timestamp, "date_trunc")
    if unit_name in _CALENDAR_UNITS:
        data_type = moment.data_type
        moment = cast(_check_range(moment, _CALENDAR_MICROS, what), data_type)
    return _floor(moment, unit_name, what)


def _extract(what: str, part: Operand, timestamp: Operand) -> Value:
    name = str(literal_argument(what, part, "extract", str)).lower()
    function = _seconds if name == "second" else PARTS.get(_OTHER_PARTS.get(name, name))
    if function is None:
        raise ConfigError(
            f"{what}: extract of {name!r} is unknown", hint=f"Choose one of {', '.join(PARTS)}."
        )
    return function(what, timestamp)


_CLOCK_PARTS = {"hour", "minute", "second", "day_of_week"}
"""Parts that do not depend on the year."""
_SUNDAY_IS_1 = pc.DayOfWeekOptions(count_from_zero=False, week_start=7)
PARTS: dict[str, Callable[..., Value]] = {
    **{name: _part(name, name) for name in ("year", "quarter", "month", "day")},
    **{name: _part(name, name) for name in ("hour", "minute", "second")},
    "weekofyear": _part("iso_week", "weekofyear"),
    "dayofyear": _part("day_of_year", "dayofyear"),
    "dayofweek": _part("day_of_week", "dayofweek", _SUNDAY_IS_1),
}
"""The functions that return a part of a date or timestamp."""
_OTHER_PARTS = {"week": "weekofyear", "doy": "dayofyear", "dow": "dayofweek"}
TIME_FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    **{name: (function, 1, 1) for name, function in PARTS.items()},
    "date_trunc": (_date_trunc, 2, 2),
    "extract": (_extract, 2, 2),
    "interval": (interval, 1, 1),
}
"""Entries of `sql_functions.FUNCTIONS`."""
