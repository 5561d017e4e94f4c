"""Instants as text: both zones, both lengths, and what is no instant."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator

import pytest

from pyhudi.clock import SystemClock, format_instant, parse_instant, parse_zone
from pyhudi.errors import ConfigError

MOMENT = 1_700_000_000_123


@pytest.fixture
def _in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_instant_in_utc() -> None:
    assert format_instant(MOMENT, "UTC") == "20231114221320123"
    assert parse_instant("20231114221320123", "UTC") == MOMENT


@pytest.mark.usefixtures("_in_tokyo")
def test_instant_in_local_zone() -> None:
    assert format_instant(MOMENT, "LOCAL") == "20231115071320123"
    assert parse_instant("20231115071320123", "LOCAL") == MOMENT


def test_instant_of_seconds_counts_as_last_millisecond() -> None:
    assert parse_instant("20231114221320", "UTC") == 1_700_000_000_999


def test_longer_instant_is_its_first_17_digits() -> None:
    assert parse_instant("20231114221320123006", "UTC") == MOMENT


@pytest.mark.parametrize("text", ["", "00000000000000", "2023111422132012", "2023x114221320123"])
def test_no_instant(text: str) -> None:
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
