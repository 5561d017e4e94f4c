"""Instants as text: both zones, both lengths, and what is no instant."""

from __future__ import annotations

import pickle
import re
import time
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyhudi.clock import (
    SystemClock,
    early_now_ms,
    format_instant,
    instant_of,
    parse_instant,
    parse_zone,
)
from pyhudi.errors import ConfigError

MOMENT = 1_700_000_000_123


@pytest.fixture
def _in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_clock_never_goes_back() -> None:
    clock = SystemClock()
    before = clock.ticks_ms()
    clock.sleep(0.02)
    assert 20 <= clock.ticks_ms() - before < 60_000


_READS = re.compile(
    r"\b(SystemTime|Instant|Utc|Local)::now\b|\btime\.(time|monotonic|perf_counter|clock_gettime)"
    r"|\bdatetime\.(now|utcnow|today)\b|\bdate\.today\b|\.elapsed\(\)"
)


def test_clock_module_alone_reads_clocks() -> None:
    """Others take a `Clock`, or are Rust and need no time."""
    root = Path(__file__).parents[2]
    files = [*root.glob("python/pyhudi/**/*.py"), *root.glob("rust/*/src/**/*.rs")]
    assert len(files) > 500
    readers = {file.name for file in files if _READS.search(file.read_text("utf-8"))}
    assert readers == {"clock.py"}


def test_early_time_ignores_step_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, now = SystemClock(), SystemClock.now_ms
    before = clock.now_ms()
    monkeypatch.setattr(SystemClock, "now_ms", lambda self: now(self) + 86_400_000)
    # The system adjusts the time of day, and not the ticks, by fractions of a second.
    assert before - 1000 <= early_now_ms(clock) < before + 60_000
    monkeypatch.setattr(SystemClock, "now_ms", lambda self: now(self) - 3_600_000)
    assert early_now_ms(clock) == pytest.approx(clock.now_ms(), abs=1000)


def test_instant_in_utc() -> None:
    assert format_instant(MOMENT, "UTC") == "20231114221320123"
    assert parse_instant("20231114221320123", "UTC") == MOMENT


@pytest.mark.usefixtures("_in_tokyo")
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_numpy_time_is_naive_datetime(unit: Any) -> None:
    moment: Any = np.datetime64("2023-11-15T07:13:20.123", unit)
    day: Any = np.datetime64("2023-11-15")
    none: Any = np.datetime64("NaT")
    assert instant_of(moment, "LOCAL") == "20231115071320123"
    assert instant_of(day, "LOCAL") == "20231115000000000"
    with pytest.raises(ConfigError):
        instant_of(none, "UTC")


@pytest.mark.usefixtures("_in_tokyo")
def test_instant_in_local_zone() -> None:
    assert format_instant(MOMENT, "LOCAL") == "20231115071320123"
    assert parse_instant("20231115071320123", "LOCAL") == MOMENT


def test_instant_of_seconds_counts_as_last_millisecond() -> None:
    assert parse_instant("20231114221320", "UTC") == 1_700_000_000_999


def test_longer_instant_is_its_first_17_digits() -> None:
    assert parse_instant("20231114221320123006", "UTC") == MOMENT


@pytest.mark.parametrize("text", ["", "00000000000000", "2023111422132012", "2023x114221320123"])
def test_invalid_instant_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="yyyyMMddHHmmssSSS"):
        parse_instant(text, "UTC")


def test_zone_in_any_case() -> None:
    assert parse_zone("utc") == "UTC"
    with pytest.raises(ConfigError, match=r"timeline\.timezone"):
        parse_zone("CET")


def test_system_clock_pickles_and_moves_on() -> None:
    clock = pickle.loads(pickle.dumps(SystemClock()))  # noqa: S301
    before = clock.now_ms()
    clock.sleep(0.002)
    assert clock.now_ms() > before
    assert clock.uuid() != clock.uuid()


TOKYO = timezone(timedelta(hours=9))


@pytest.mark.parametrize(
    ("moment", "instant"),
    [
        ("20231114221320", "20231114221320"),
        ("20231114221320123", "20231114221320123"),
        ("20231114221320123006", "20231114221320123006"),
        (" 20231114221320123 ", "20231114221320123"),
        ("00000000000001", "00000000000001"),
        ("2023-11-14", "20231114000000000"),
        ("2023-11-14 22:13", "20231114221300000"),
        ("2023-11-14 22:13:20", "20231114221320999"),
        ("2023-11-14 22:13:20.123", "20231114221320123"),
        ("2023-11-14T22:13:20.1", "20231114221320100"),
        ("2023-11-14T22:13:20.123999999", "20231114221320123"),
        ("2023-11-14T22:13:20Z", "20231114221320999"),
        ("2023-11-15T07:13:20.123+09:00", "20231114221320123"),
        ("2023-11-14T17:43:20-0430", "20231114221320999"),
        ("2023-11-15 07:13:20 +09", "20231114221320999"),
        (datetime(2023, 11, 15, 7, 13, 20, tzinfo=TOKYO), "20231114221320000"),
        ("1700000000", "20231114221320000"),
        (" 1700000000123", "20231114221320123"),
        (1_700_000_000, "20231114221320000"),
        (MOMENT, "20231114221320123"),
    ],
)
def test_time_argument_accepts_every_form(moment: Any, instant: str) -> None:
    assert instant_of(moment, "UTC") == instant


@pytest.mark.usefixtures("_in_tokyo")
def test_time_argument_uses_table_time_zone() -> None:
    assert instant_of("2023-11-14T22:13:20.5Z", "LOCAL") == "20231115071320500"
    assert instant_of("2023-11-14T22:13:20.5Z", "UTC") == "20231114221320500"
    assert instant_of("2023-11-14 22:13:20.5", "LOCAL") == "20231114221320500"
    assert instant_of(MOMENT, "LOCAL") == instant_of(str(MOMENT), "LOCAL") == "20231115071320123"


@pytest.mark.usefixtures("_in_tokyo")
@pytest.mark.parametrize(
    ("moment", "in_utc", "in_local"),
    [
        (
            datetime(2023, 11, 15, 7, 13, 20, 123999),  # noqa: DTZ001 - without a zone on purpose
            "20231114221320123",
            "20231115071320123",
        ),
        (pd.Timestamp("2023-11-15T07:13:20.123"), "20231114221320123", "20231115071320123"),
        (
            pd.Timestamp("2023-11-14T22:13:20.123Z"),
            "20231114221320123",
            "20231115071320123",
        ),
        (date(2023, 11, 15), "20231114150000000", "20231115000000000"),
    ],
)
def test_naive_datetime_is_local_time(moment: date, in_utc: str, in_local: str) -> None:
    assert instant_of(moment, "UTC") == in_utc
    assert instant_of(moment, "LOCAL") == in_local


@pytest.mark.usefixtures("_in_tokyo")
def test_now_is_now_in_every_zone() -> None:
    now = datetime.now()  # noqa: DTZ005 - without a zone on purpose
    millis = int(now.timestamp() * 1000)
    for zone in ("UTC", "LOCAL"):
        assert parse_instant(instant_of(now, parse_zone(zone)), parse_zone(zone)) == millis


@pytest.mark.parametrize(
    "moment",
    [
        "",
        "000",
        "00000000000000",
        "00000000000003",
        "20231301000000",
        "20230230000000000",
        "20231114240000000",
        "20231114221360000",
        "00001114221320000",
        "202311142213201",
        "202311142213201234",
        "2023111422132012345",
        "202311142213201234567",
        "9" * 4400,
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        datetime.min.replace(tzinfo=TOKYO),
        datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))),
        pd.NaT,
        "2023",
        "2023-13-01",
        "2023-11-14 25:00:00",
        "2023-11-14T22:13:20+99:00",
        "2023-11-14 22",
        "2023-11-14 22:13.5",
        "yesterday",
        "\N{ARABIC-INDIC DIGIT ONE}" * 14,
        20231114221320,
        20231114221320123,
        -1_700_000_000,
        1_700_000,
        10**20,
        1_700_000_000.5,
        True,
        None,
    ],
)
def test_invalid_time_argument_is_refused(moment: Any) -> None:
    with pytest.raises(ConfigError, match="is not a time"):
        instant_of(moment, "UTC")
