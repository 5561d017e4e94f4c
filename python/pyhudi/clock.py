"""The one source of wall clock time and randomness, and the text form of instant times.

Whatever needs the time or a fresh id takes a `Clock`; nothing else may ask the system for either,
so that a test can hold time still and repeat a history. Nothing here knows a timeline.
"""

from __future__ import annotations

import time
import uuid
from datetime import datetime, timezone
from typing import Literal, Protocol, cast

from pyhudi.errors import ConfigError

Zone = Literal["UTC", "LOCAL"]
"""How instants are rendered: `hoodie.table.timeline.timezone`."""

INSTANT_DIGITS = 17
"""Digits of an instant with milliseconds, `yyyyMMddHHmmssSSS`."""

SECOND_INSTANT_DIGITS = 14
"""Digits of an instant without milliseconds, as tables before Hudi 0.10 have."""


class Clock(Protocol):
    """Time and randomness as a thing that can be replaced."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
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


def format_instant(ms: int, zone: Zone) -> str:
    """Epoch milliseconds as `yyyyMMddHHmmssSSS` in UTC or in the machine's own zone."""
    seconds, millis = divmod(ms, 1000)
    utc = datetime.fromtimestamp(seconds, tz=timezone.utc)
    wall = utc if zone == "UTC" else utc.astimezone()
    return f"{wall:%Y%m%d%H%M%S}{millis:03d}".zfill(INSTANT_DIGITS)


def parse_instant(text: str, zone: Zone) -> int:
    """Epoch milliseconds of an instant.

    An instant of 14 digits counts as the last millisecond of its second, and of one longer than 17
    digits the first 17 are the time (`HoodieInstantTimeGenerator`, Hudi 1.2.0). Instants that are
    no time, such as `00000000000000`, raise `ConfigError`.
    """
    digits = text + "999" if len(text) == SECOND_INSTANT_DIGITS else text[:INSTANT_DIGITS]
    if len(digits) != INSTANT_DIGITS or not digits.isdecimal():
        msg = f"{text!r} is not an instant of the form yyyyMMddHHmmssSSS"
        raise ConfigError(msg)
    try:
        wall = datetime.strptime(digits[:SECOND_INSTANT_DIGITS], "%Y%m%d%H%M%S")  # noqa: DTZ007
    except ValueError as error:
        msg = f"{text!r} is not an instant of the form yyyyMMddHHmmssSSS"
        raise ConfigError(msg) from error
    moment = wall.replace(tzinfo=timezone.utc) if zone == "UTC" else wall.astimezone()
    return int(moment.timestamp()) * 1000 + int(digits[SECOND_INSTANT_DIGITS:])
