"""Keeps one oracle at a time: a JVM takes gigabytes, and starting one costs half a minute.

Also says which tests need it, so that they can be left out and put in an order that starts each
release once.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256

import pytest

from tests.helpers.oracle.client import HudiOracle

FIXTURES = frozenset({"hudi", "oracle"})
"""Names of the fixtures that start Apache Hudi."""


class OraclePool:
    """Gives the oracle of a release, closing the one of another release first."""

    def __init__(self) -> None:
        self._current: HudiOracle | None = None

    def __call__(self, release: str, conf: Mapping[str, str] | None = None) -> HudiOracle:
        """The oracle of `release`, with Spark settings that must be there from the start."""
        wanted = (release, dict(conf or {}))
        if self._current is not None and (self._current.hudi, self._current.conf) != wanted:
            self.close()
        if self._current is None:
            self._current = HudiOracle(release, conf=conf)
        return self._current.start()

    def close(self) -> None:
        """Ends the running JVM, if there is one."""
        if self._current is not None:
            self._current.close()
            self._current = None


def needs_jvm(item: pytest.Item) -> bool:
    """Whether a test asks for Apache Hudi through one of the fixtures."""
    return not FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def release_of(item: pytest.Item) -> str:
    """The release a test's `hudi` is, "" where the test chooses while it runs."""
    callspec = getattr(item, "callspec", None)
    if callspec is not None and "hudi" in callspec.params:
        return str(callspec.params["hudi"])
    marker = item.get_closest_marker("hudi")
    return str(marker.args[0]) if marker is not None else ""


_FEW = 6
"""Tests with fewer cases of Apache Hudi run all of them."""


def halved(items: list[pytest.Item]) -> list[pytest.Item]:
    """Without about half of the cases of tests that cross many settings beside Apache Hudi.

    With PYHUDI_EVERY_SETTING set nothing is left out (`make test-every-setting`).
    """
    if os.environ.get("PYHUDI_EVERY_SETTING"):
        return items
    cases = Counter(_function(item) for item in items if needs_jvm(item))
    return [
        item
        for item in items
        if not needs_jvm(item) or cases[_function(item)] < _FEW or not _is_odd(item)
    ]


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _is_odd(item: pytest.Item) -> bool:
    """By the case's name: the same cases run each time."""
    return bool(sha256(item.nodeid.encode()).digest()[0] % 2)


def order(item: pytest.Item) -> tuple[bool, bool, str]:
    """Sort key: no JVM first, then one release after another, then the tests that mix them."""
    if not needs_jvm(item):
        return (False, False, "")
    release = release_of(item)
    return (True, not release, release)
