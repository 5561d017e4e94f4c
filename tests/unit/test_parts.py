"""How long tests are dealt into parts: each in one, and some of each file in each."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.helpers.parts import chosen_part, in_part, is_dealt

PARTS = 3


def test_long_test_is_in_one_part(request: pytest.FixtureRequest) -> None:
    items = request.session.items
    parts = [in_part(items, (number, PARTS)) for number in range(PARTS)]
    met = Counter(item for part in parts for item in part)
    assert met == {item: 1 if is_dealt(item) else PARTS for item in items}
    assert in_part(items, None) == items


def test_parts_take_tests_of_each_file(request: pytest.FixtureRequest) -> None:
    dealt = [item for item in request.session.items if is_dealt(item)]
    whole = Counter(item.path for item in dealt)
    for number in range(PARTS):
        part = Counter(item.path for item in in_part(dealt, (number, PARTS)))
        for file, count in whole.items():
            assert count // PARTS <= part[file] <= -(-count // PARTS)


@pytest.mark.parametrize("bad", ["0/3", "4/3", "2", "a/3", "1/"])
def test_missing_part_is_refused(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYHUDI_PART", bad)
    with pytest.raises(pytest.UsageError, match="PYHUDI_PART"):
        chosen_part()


def test_second_of_three_parts_is_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYHUDI_PART", "2/3")
    assert chosen_part() == (1, 3)
