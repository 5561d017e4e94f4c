"""Keeps one oracle at a time: a JVM takes gigabytes, and starting one costs half a minute.

Also says which tests need it, so that they can be left out and put in an order that starts each
release once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import pytest

from tests.helpers.oracle.client import HudiOracle
from tests.helpers.pairwise import Setting, covering

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


def without_repeated_pairs(items: list[pytest.Item]) -> list[pytest.Item]:
    """Of the tests beside Apache Hudi as many as it takes for a file to meet each of its values.

    A file is a feature: each of its tests runs on some release, and one of them on each release and
    with each value of an axis. They are chosen so that many values meet each other. `make
    test-jvm-pairs` runs as many cases as it takes for all that can, `make test-every-setting` all.
    """
    crossed = [item for item in items if needs_jvm(item) and hasattr(item, "callspec")]
    chosen = covering([_settings(item) for item in crossed], with_first=True)
    left_out = {*crossed} - {crossed[number] for number in chosen}
    return [item for item in items if item not in left_out]


def _settings(item: pytest.Item) -> list[Setting]:
    """File and test, and what the test is given; of a setting of several axes each one."""
    test = item.nodeid.partition("[")[0]
    found: list[Setting] = [("file", test.partition("::")[0]), ("test", test)]
    callspec = item.callspec  # type: ignore[attr-defined]
    plain = (str, int, tuple)
    for name, value in sorted(callspec.params.items()):
        if is_dataclass(value):
            axes = {one.name: getattr(value, one.name) for one in fields(value)}
            found += [(axis, one) for axis, one in axes.items() if isinstance(one, plain)]
        else:
            axis = "hudi" if name == "release" else name
            found.append((axis, value if isinstance(value, plain) else callspec.id))
    return found


def order(item: pytest.Item) -> tuple[bool, bool, str]:
    """Sort key: no JVM first, then one release after another, then the tests that mix them."""
    if not needs_jvm(item):
        return (False, False, "")
    release = release_of(item)
    return (True, not release, release)
