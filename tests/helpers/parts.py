"""Tests that take long, in parts: `make test` runs one part, with each commit another one.

PYHUDI_PART says which: "2/3" is the second of three. Without it all of them run.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Sequence

import pytest

LONG = ("jvm", "s3", "spark", "slow", "in_parts")
"""Markers of the tests that are dealt out."""


def chosen_part() -> tuple[int, int] | None:
    """Number of the part, from 0 on, and of how many; None for all tests."""
    text = os.environ.get("PYHUDI_PART", "")
    if not text:
        return None
    number, _, parts = text.partition("/")
    if not (number.isdigit() and parts.isdigit() and 1 <= int(number) <= int(parts)):
        msg = f"PYHUDI_PART is {text!r}, and should be like 2/3"
        raise pytest.UsageError(msg)
    return int(number) - 1, int(parts)


def in_part(items: Sequence[pytest.Item], part: tuple[int, int] | None) -> list[pytest.Item]:
    """Those of a part, and all that are not long or are marked `each_time`.

    The tests of a file are dealt in turn, so that each part has some of each file, and the first
    one of a file to any part, so that files of one test are not all in the same.
    """
    if part is None:
        return [*items]
    number, parts = part
    dealt = Counter[str]()
    chosen = []
    for item in items:
        if not is_dealt(item):
            chosen.append(item)
            continue
        file = item.nodeid.partition("::")[0]
        if (zlib.crc32(file.encode()) + dealt[file]) % parts == number:
            chosen.append(item)
        dealt[file] += 1
    return chosen


def is_dealt(item: pytest.Item) -> bool:
    """Whether a test is in one part only."""
    markers = {marker.name for marker in item.iter_markers()}
    return not markers.isdisjoint(LONG) and "each_time" not in markers
