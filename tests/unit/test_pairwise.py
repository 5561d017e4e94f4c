"""The chooser of test cases: few, and no pair of values that never meets."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest

from tests.helpers.pairwise import Setting, covering, each_value, pairwise

AXES: list[tuple[Any, ...]] = [
    ((6, 8, 9), ("cow", "mor")),
    ((6, 8, 9), ("cow", "mor", "cdc"), ("upsert", "delete", "overwrite", "merge")),
    ((6, 8, 9), ("cow", "mor"), tuple("abcdefg"), (False, True)),
]


def pairs(cases: list[tuple[Any, ...]]) -> set[Any]:
    return {pair for case in cases for pair in combinations(enumerate(case), 2)}


@pytest.fixture(autouse=True)
def _chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYHUDI_EVERY_SETTING", raising=False)
    monkeypatch.delenv("PYHUDI_EVERY_PAIR", raising=False)


@pytest.mark.parametrize("axes", AXES)
def test_pairwise_covers_each_pair(axes: tuple[Any, ...]) -> None:
    every = list(product(*axes))
    chosen = pairwise(*axes)
    assert pairs(chosen) == pairs(every)
    assert chosen == [case for case in every if case in chosen]


def test_three_axes_take_a_third_of_the_cross() -> None:
    assert len(pairwise(*AXES[1])) <= 14
    assert len(pairwise(*AXES[2])) <= 24


@pytest.mark.parametrize("axes", AXES)
def test_pairwise_covers_each_value(axes: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = each_value(*axes)
    assert [{*met} for met in zip(*chosen, strict=True)] == [{*axis} for axis in axes]
    assert len(chosen) == max(map(len, axes))
    monkeypatch.setenv("PYHUDI_EVERY_PAIR", "1")
    assert pairs(each_value(*axes)) == pairs(pairwise(*axes))


def test_pairwise_skips_impossible_cases() -> None:
    def allowed(version: int, kind: str, index: str, *_: Any) -> bool:
        return (version, index) != (6, "a") and (kind, index) != ("cow", "g")

    chosen = pairwise(*AXES[2], allowed=allowed)
    every: list[Any] = [case for case in product(*AXES[2]) if allowed(*case)]
    assert pairs(chosen) == pairs(every)
    assert all(allowed(*case) for case in chosen)


def test_pairwise_gives_full_cross_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYHUDI_EVERY_SETTING", "1")
    assert pairwise(*AXES[1]) == list(product(*AXES[1]))


def test_oracle_pool_covers_each_test_and_value() -> None:
    """As tests beside Apache Hudi are chosen."""
    axes = product(("a", "b"), ("one", "two"), (6, 8, 9), ("cow", "mor"))
    cases: list[list[Setting]] = [
        [("file", file), ("test", file + test), ("hudi", hudi), ("kind", kind)]
        for file, test, hudi, kind in axes
    ]
    chosen = [cases[number] for number in covering(cases, with_first=True)]
    assert len(chosen) == 6
    for file in ("a", "b"):
        met = {setting for case in chosen if ("file", file) in case for setting in case[1:]}
        assert met == {setting for case in cases if ("file", file) in case for setting in case[1:]}
