"""The one source of wall clock time and randomness, and the text form of instant times.

Whatever needs the time or a fresh id takes a `Clock`; nothing else may ask the system for either,
so that a test can hold time still and repeat a history. Nothing here knows a timeline.
"""

from __future__ import annotations

import re
import time
import uuid
from datetime import date, datetime, timedelta, timezone
from typing import Any, Literal, Protocol, TypeAlias, cast

from pyhudi.errors import ConfigError

Zone = Literal["UTC", "LOCAL"]
"""How instants are rendered: `hoodie.table.timeline.timezone`."""

Moment: TypeAlias = str | int | date | datetime
"""A point in time as callers give it: see `instant_of`."""

INSTANT_DIGITS = 17
"""Digits of an instant with milliseconds, `yyyyMMddHHmmssSSS`."""

SECOND_INSTANT_DIGITS = 14
"""Digits of an instant without milliseconds, as tables before Hudi 0.10 have."""

_SUFFIXED_INSTANT_DIGITS = 20
"""Digits of an instant of a metadata table's own service: three more than its commit's."""

_EPOCH_MS = {10: 1000, 13: 1}
"""By its digits, how many milliseconds a number since 1970 counts."""

_NUMPY_DAYS = ("Y", "M", "W", "D")
"""Units in which NumPy counts whole days."""

_BOOTSTRAPS = ("00000000000001", "00000000000002")
"""Instants of bootstraps, by which they come first (`HoodieTimeline`, Hudi 1.2.0)."""


_TICKS = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux alone has one that does not stand still while the machine sleeps."""


class Clock(Protocol):
    """Time and randomness as a thing that can be replaced."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        ...

    def ticks_ms(self) -> int:
        """Milliseconds since some moment: what has passed, also where the clock is set anew."""
        ...

    def uuid(self) -> str:
        """A random UUID, 36 characters, lower case."""
        ...

    def sleep(self, seconds: float) -> None:
        """Waits; a simulated clock moves on instead."""
        ...


class SystemClock:
    """The machine's clock and random numbers. Without state, so it pickles."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1_000_000

    def ticks_ms(self) -> int:
        """Milliseconds since the machine was started, asleep or not."""
        return time.clock_gettime_ns(_TICKS) // 1_000_000

    def uuid(self) -> str:
        """A random UUID, 36 characters, lower case."""
        return str(uuid.uuid4())

    def sleep(self, seconds: float) -> None:
        """Waits that long."""
        time.sleep(seconds)


def parse_zone(text: str) -> Zone:
    """The zone of a property's value, in any case. Raises `ConfigError` for any other word."""
    zone = text.upper()
    if zone not in ("UTC", "LOCAL"):
        msg = f"hoodie.table.timeline.timezone is {text!r}, not UTC or LOCAL"
        raise ConfigError(msg)
    return cast("Zone", zone)


def is_bootstrap(instant: str) -> bool:
    """Whether an instant is a bootstrap's, which says where it stands and not when it was."""
    return instant in _BOOTSTRAPS


def format_instant(ms: int, zone: Zone) -> str:
    """Epoch milliseconds as `yyyyMMddHHmmssSSS` in UTC or in the machine's own zone."""
    seconds, millis = divmod(ms, 1000)
    utc = datetime.fromtimestamp(seconds, tz=timezone.utc)
    wall = utc if zone == "UTC" else utc.astimezone()
    return f"{wall:%Y%m%d%H%M%S}{millis:03d}".zfill(INSTANT_DIGITS)


def parse_instant(text: str, zone: Zone) -> int:
    """Epoch milliseconds of an instant.

    An instant of 14 digits counts as the last millisecond of its second, and of one longer than 17
    digits the first 17 are the time (`HoodieInstantTimeGenerator`, Hudi 1.2.0). Instants of
    bootstraps, which come before all others, are 1 and 2 milliseconds of 1970
    (`HoodieActiveTimeline.parseDateFromInstantTimeSafely`, 0.15.0). Other instants that are no
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
    moment = wall.replace(tzinfo=timezone.utc) if zone == "UTC" else wall.astimezone()
    return int(moment.timestamp()) * 1000 + int(digits[SECOND_INSTANT_DIGITS:])


_WRITTEN = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<minute>\d{2}:\d{2})(?:(?P<second>:\d{2})(?:\.(?P<fraction>\d{1,9}))?)?"
    r" ?(?P<offset>[Zz]|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII,
)


def instant_of(moment: Moment, zone: Zone) -> str:
    """The instant of a point in time that a caller named, rendered in a table's zone.

    moment: an instant of 14, 17 or 20 digits, which is taken as it stands; `yyyy-MM-dd`; the same
    with `HH:mm[:ss[.SSS]]` after a blank or a `T`, and with an offset or `Z`; 10 digits of seconds
    or 13 of milliseconds since 1970, also as a number, which Hudi renders in its machine's zone
    instead of the table's; a `datetime` or a `date`. Text without an offset is the wall clock's
    time in the table's own zone, as Hudi takes it (`HoodieSqlCommonUtils.formatQueryInstant`,
    1.2.0); a `datetime` without a zone, and a `date`, are this machine's local time, as Python's
    own methods take them. Text that ends with a second means all of it, its last millisecond, as in
    Hudi. Digits after the milliseconds are cut.

    Raises `ConfigError` for anything else, digits that are no time among it.
    """
    if isinstance(moment, str):
        text = moment.strip()
        if text.isdecimal() and text.isascii():
            return _since_epoch(text, zone) or _check_instant(text)
        return _render(_parse_iso(text), zone)
    if type(moment) is int and 0 <= moment < 10 ** max(_EPOCH_MS):
        instant = _since_epoch(str(moment), zone)
        if instant is not None:
            return instant
    if is_numpy_time(type(moment)):
        moment = python_time(moment)
    if isinstance(moment, date):
        return _render(_aware(moment), zone)
    raise _no_moment(moment)


def is_numpy_time(kind: type) -> bool:
    """Whether a type is NumPy's of days and times, without its import."""
    return kind.__name__ == "datetime64" and kind.__module__ == "numpy"


def python_time(value: Any) -> Any:
    """A day or time of NumPy's as Python's, where that one has all of it; None for NaT."""
    if value != value:  # noqa: PLR0124 - NaT is
        return None
    unit = str(value.dtype).removeprefix("datetime64[").removesuffix("]")
    kept = value.astype("M8[D]" if unit in _NUMPY_DAYS else "M8[us]")
    plain = kept.item()
    is_kept = isinstance(plain, date) and kept.astype(value.dtype) == value
    return plain if is_kept else value


def _since_epoch(digits: str, zone: Zone) -> str | None:
    """The instant of a number since 1970, None for as many digits as none has."""
    ms = _EPOCH_MS.get(len(digits))
    return None if ms is None else format_instant(int(digits) * ms, zone)


def _check_instant(instant: str) -> str:
    """An instant that is a time, of a length that Hudi gives instants."""
    lengths = (SECOND_INSTANT_DIGITS, INSTANT_DIGITS, _SUFFIXED_INSTANT_DIGITS)
    if is_bootstrap(instant):
        return instant
    if len(instant) not in lengths:
        raise _no_moment(instant)
    try:
        parse_instant(instant, "UTC")
    except ConfigError as error:
        raise _no_moment(instant) from error
    return instant


def _aware(moment: date) -> datetime:
    """A moment with its zone: the local one where it has none."""
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)  # noqa: DTZ001 - local, see below
    if moment != moment:  # noqa: PLR0124 - the missing value of pandas is a datetime
        raise _no_moment(moment)
    # A plain datetime: what pandas derives from it refuses to be local, or takes itself for UTC.
    plain = datetime.combine(moment.date(), moment.timetz())
    try:
        return plain.astimezone() if plain.tzinfo is None else plain
    except (OverflowError, ValueError, OSError) as error:
        raise _no_moment(moment) from error


def _parse_iso(text: str) -> datetime:
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise _no_moment(text)
    day, minute, second, fraction, offset = match.group(
        "day", "minute", "second", "fraction", "offset"
    )
    wall = f"{day}T{minute or '00:00'}{second or ':00'}"
    # Hudi adds 999 to a second without a fraction (`getInstantForDateString`).
    micros = (fraction or ("999" if second else "")).ljust(6, "0")[:6]
    try:
        moment = datetime.fromisoformat(f"{wall}.{micros}")
    except ValueError as error:
        raise _no_moment(text) from error
    return moment if offset is None else moment.replace(tzinfo=_offset(offset, text))


def _offset(offset: str, text: str) -> timezone:
    if offset in "Zz":
        return timezone.utc
    hours, minutes = int(offset[1:3]), int(offset[3:].lstrip(":") or 0)
    try:
        ahead = timezone(timedelta(hours=hours, minutes=minutes))
        return timezone(-timedelta(hours=hours, minutes=minutes)) if offset[0] == "-" else ahead
    except ValueError as error:
        raise _no_moment(text) from error


def _render(moment: datetime, zone: Zone) -> str:
    if moment.tzinfo is not None:
        try:
            moment = moment.astimezone(timezone.utc if zone == "UTC" else None)
        except (OverflowError, ValueError, OSError) as error:
            raise _no_moment(moment) from error
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}".zfill(INSTANT_DIGITS)


def _no_moment(moment: object) -> ConfigError:
    return ConfigError(
        f"{moment!r} is not a time",
        hint="Give yyyyMMddHHmmss[SSS], yyyy-MM-dd, yyyy-MM-dd HH:mm:ss[.SSS], ISO-8601, seconds "
        "or milliseconds since 1970, a date or a datetime.",
    )
