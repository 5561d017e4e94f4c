"""The one source of wall clock time and randomness, and the text format of instant times.

Code that needs the time or a fresh id takes a `Clock`. No other module may ask the system for
either, so that a test can stop the time and repeat a history. Nothing here depends on a timeline.
"""

from __future__ import annotations

import re
import time
import uuid
from datetime import date, datetime, timedelta, timezone
from typing import Any, Literal, Protocol, TypeAlias, cast

from pyhudi.errors import ConfigError

Zone = Literal["UTC", "LOCAL"]
"""Zone in which instants are rendered: `hoodie.table.timeline.timezone`."""

Moment: TypeAlias = str | int | date | datetime
"""A point in time as callers pass it: see `instant_of`."""

INSTANT_DIGITS = 17
"""Number of digits of an instant with milliseconds, `yyyyMMddHHmmssSSS`."""

SECOND_INSTANT_DIGITS = 14
"""Number of digits of an instant without milliseconds, as in tables before Hudi 0.10."""

_SUFFIXED_INSTANT_DIGITS = 20
"""Number of digits of an instant of a metadata table's own service: three more than its
commit's."""

_EPOCH_MS = {10: 1000, 13: 1}
"""Milliseconds of one unit of a number since 1970, by its number of digits."""

_NUMPY_DAYS = ("Y", "M", "W", "D")
"""NumPy units of whole days."""

_BOOTSTRAPS = ("00000000000001", "00000000000002")
"""Instants of bootstraps, which sort before all others (`HoodieTimeline`, Hudi 1.2.0)."""


_TICKS = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""CLOCK_BOOTTIME, which only Linux has, also advances while the machine sleeps."""


class Clock(Protocol):
    """Source of time and randomness that tests can replace."""

    def now_ms(self) -> int:
        """Return milliseconds since 1970-01-01 UTC."""
        ...

    def ticks_ms(self) -> int:
        """Return milliseconds since an arbitrary point, unaffected by changes of the wall clock."""
        ...

    def uuid(self) -> str:
        """Return a random UUID: 36 characters, lower case."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait; a simulated clock advances instead."""
        ...


class SystemClock:
    """The machine's clock and random numbers. It has no state, so it pickles."""

    def now_ms(self) -> int:
        """Return milliseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1_000_000

    def ticks_ms(self) -> int:
        """Return milliseconds since the machine started, including time asleep."""
        return self.ticks_ns() // 1_000_000

    def ticks_ns(self) -> int:
        """Return nanoseconds since the machine started, including time asleep."""
        return time.clock_gettime_ns(_TICKS)

    def early_now_ms(self) -> int:
        """Return milliseconds since 1970, without what the clock was set forward by.

        Only steps since this process began are known.
        """
        return min(self.now_ms(), _BEGAN_MS + self.ticks_ms())

    def uuid(self) -> str:
        """Return a random UUID: 36 characters, lower case."""
        return str(uuid.uuid4())

    def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        time.sleep(seconds)


_BEGAN_MS = SystemClock().now_ms() - SystemClock().ticks_ms()
"""The time of day at which ticks were 0, by the clock of the time when this process began."""


def early_now_ms(clock: Clock) -> int:
    """Return the time by which old data may be removed: see `SystemClock.early_now_ms`."""
    return clock.early_now_ms() if isinstance(clock, SystemClock) else clock.now_ms()


def parse_zone(text: str) -> Zone:
    """Return the zone that a property's value names, in any case.

    Raises `ConfigError` for any value but UTC and LOCAL.
    """
    zone = text.upper()
    if zone not in ("UTC", "LOCAL"):
        msg = f"hoodie.table.timeline.timezone is {text!r}, not UTC or LOCAL"
        raise ConfigError(msg)
    return cast("Zone", zone)


def is_bootstrap(instant: str) -> bool:
    """Return whether an instant is a bootstrap's, which gives its order and not its time."""
    return instant in _BOOTSTRAPS


def format_instant(ms: int, zone: Zone) -> str:
    """Return epoch milliseconds as `yyyyMMddHHmmssSSS` in UTC or in the machine's own zone."""
    seconds, millis = divmod(ms, 1000)
    utc = datetime.fromtimestamp(seconds, tz=timezone.utc)
    wall = utc if zone == "UTC" else utc.astimezone()
    return f"{wall:%Y%m%d%H%M%S}{millis:03d}".zfill(INSTANT_DIGITS)


def parse_instant(text: str, zone: Zone) -> int:
    """Return the epoch milliseconds of an instant.

    An instant of 14 digits counts as the last millisecond of its second. Of an instant with more
    than 17 digits the first 17 are the time (`HoodieInstantTimeGenerator`, Hudi 1.2.0). Instants of
    bootstraps, which sort before all others, are 1 and 2 milliseconds of 1970
    (`HoodieActiveTimeline.parseDateFromInstantTimeSafely`, 0.15.0). Other instants that are not a
    time, such as `00000000000000`, raise `ConfigError`.
    """
    if is_bootstrap(text):
        return int(text)
    digits = text + "999" if len(text) == SECOND_INSTANT_DIGITS else text[:INSTANT_DIGITS]
    if len(digits) != INSTANT_DIGITS or not digits.isdecimal():
        msg = f"{text!r} is not an instant of the form yyyyMMddHHmmssSSS"
        raise ConfigError(msg)
    try:
        day = (int(digits[:4]), int(digits[4:6]), int(digits[6:8]))
        wall = datetime(*day, int(digits[8:10]), int(digits[10:12]), int(digits[12:14]))  # noqa: DTZ001
    except ValueError as error:
        msg = f"{text!r} is not an instant of the form yyyyMMddHHmmssSSS"
        raise ConfigError(msg) from error
    timestamp = wall.replace(tzinfo=timezone.utc) if zone == "UTC" else wall.astimezone()
    return int(timestamp.timestamp()) * 1000 + int(digits[SECOND_INSTANT_DIGITS:])


_WRITTEN = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<minute>\d{2}:\d{2})(?:(?P<second>:\d{2})(?:\.(?P<fraction>\d{1,9}))?)?"
    r" ?(?P<offset>[Zz]|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII,
)


def instant_of(timestamp: Moment, zone: Zone) -> str:
    """Return the instant of a point in time that a caller passed, rendered in the table's zone.

    Text without an offset is wall clock time in the table's own zone, as in Hudi
    (`HoodieSqlCommonUtils.formatQueryInstant`, 1.2.0). A `datetime` without a zone and a `date` are
    local time of this machine, as in Python's own methods. Text that ends with a second means the
    last millisecond of that second, as in Hudi. Digits after the milliseconds are cut.

    Args:
        timestamp: one of
            - an instant of 14, 17 or 20 digits, which is used unchanged;
            - `yyyy-MM-dd`, optionally with `HH:mm[:ss[.SSS]]` after a blank or a `T`, and with an
              offset or `Z`;
            - 10 digits of seconds or 13 of milliseconds since 1970, as text or as a number, which
              are rendered in this machine's zone instead of the table's, as in Hudi;
            - a `datetime` or a `date`.
        zone: the table's zone.

    Raises:
        ConfigError: `timestamp` is anything else, including digits that are not a time.
    """
    if isinstance(timestamp, str):
        text = timestamp.strip()
        if text.isdecimal() and text.isascii():
            return _since_epoch(text, zone) or _check_instant(text)
        return _render(_parse_iso(text), zone)
    if type(timestamp) is int and 0 <= timestamp < 10 ** max(_EPOCH_MS):
        instant = _since_epoch(str(timestamp), zone)
        if instant is not None:
            return instant
    if is_numpy_time(type(timestamp)):
        timestamp = python_time(timestamp)
    if isinstance(timestamp, date):
        return _render(_aware(timestamp), zone)
    raise _timestamp_error(timestamp)


def is_numpy_time(kind: type) -> bool:
    """Return whether a type is NumPy's type of days and times, without importing NumPy."""
    return kind.__name__ == "datetime64" and kind.__module__ == "numpy"


def python_time(value: Any) -> Any:
    """Return a NumPy day or time as Python's type; None for NaT.

    A value that Python's type cannot hold exactly is returned unchanged.
    """
    if value != value:  # noqa: PLR0124 - NaT differs from itself
        return None
    unit = str(value.dtype).removeprefix("datetime64[").removesuffix("]")
    rounded = value.astype("M8[D]" if unit in _NUMPY_DAYS else "M8[us]")
    converted = rounded.item()
    is_exact = isinstance(converted, date) and rounded.astype(value.dtype) == value
    return converted if is_exact else value


def _since_epoch(digits: str, zone: Zone) -> str | None:
    """Return the instant of a number since 1970; None if it has another number of digits."""
    ms = _EPOCH_MS.get(len(digits))
    return None if ms is None else format_instant(int(digits) * ms, zone)


def _check_instant(instant: str) -> str:
    """Return `instant` if it is a time and has a length that Hudi gives instants."""
    lengths = (SECOND_INSTANT_DIGITS, INSTANT_DIGITS, _SUFFIXED_INSTANT_DIGITS)
    if is_bootstrap(instant):
        return instant
    if len(instant) not in lengths:
        raise _timestamp_error(instant)
    try:
        parse_instant(instant, "UTC")
    except ConfigError as error:
        raise _timestamp_error(instant) from error
    return instant


def _aware(timestamp: date) -> datetime:
    """Return a time with its zone: the local zone if it has none."""
    if not isinstance(timestamp, datetime):
        timestamp = datetime(timestamp.year, timestamp.month, timestamp.day)  # noqa: DTZ001 - local, see below
    if timestamp != timestamp:  # noqa: PLR0124 - the missing value of pandas is a datetime
        raise _timestamp_error(timestamp)
    # A standard datetime: pandas' subclass cannot be converted to local time, or counts as UTC.
    standard = datetime.combine(timestamp.date(), timestamp.timetz())
    try:
        return standard.astimezone() if standard.tzinfo is None else standard
    except (OverflowError, ValueError, OSError) as error:
        raise _timestamp_error(timestamp) from error


def _parse_iso(text: str) -> datetime:
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise _timestamp_error(text)
    day, minute, second, fraction, offset = match.group(
        "day", "minute", "second", "fraction", "offset"
    )
    wall = f"{day}T{minute or '00:00'}{second or ':00'}"
    # Hudi adds 999 to a second without a fraction (`getInstantForDateString`).
    micros = (fraction or ("999" if second else "")).ljust(6, "0")[:6]
    try:
        timestamp = datetime.fromisoformat(f"{wall}.{micros}")
    except ValueError as error:
        raise _timestamp_error(text) from error
    return timestamp if offset is None else timestamp.replace(tzinfo=_offset(offset, text))


def _offset(offset: str, text: str) -> timezone:
    if offset in "Zz":
        return timezone.utc
    hours, minutes = int(offset[1:3]), int(offset[3:].lstrip(":") or 0)
    try:
        east = timezone(timedelta(hours=hours, minutes=minutes))
        return timezone(-timedelta(hours=hours, minutes=minutes)) if offset[0] == "-" else east
    except ValueError as error:
        raise _timestamp_error(text) from error


def _render(timestamp: datetime, zone: Zone) -> str:
    if timestamp.tzinfo is not None:
        try:
            timestamp = timestamp.astimezone(timezone.utc if zone == "UTC" else None)
        except (OverflowError, ValueError, OSError) as error:
            raise _timestamp_error(timestamp) from error
    return f"{timestamp:%Y%m%d%H%M%S}{timestamp.microsecond // 1000:03d}".zfill(INSTANT_DIGITS)


def _timestamp_error(timestamp: object) -> ConfigError:
    return ConfigError(
        f"{timestamp!r} is not a time",
        hint="Give yyyyMMddHHmmss[SSS], yyyy-MM-dd, yyyy-MM-dd HH:mm:ss[.SSS], ISO-8601, seconds "
        "or milliseconds since 1970, a date or a datetime.",
    )
