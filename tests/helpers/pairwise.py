"""Cases of crossed axes in which each pair of values meets at least once.

What breaks where two settings meet is found by such cases as well as by the whole cross, of which
they are a fraction. The whole cross is for `make test-every-setting`, which sets
PYHUDI_EVERY_SETTING.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from itertools import combinations, product
from typing import Any

Case = tuple[Any, ...]
Setting = tuple[Hashable, Hashable]
"""An axis, and a value on it."""


def pairwise(*axes: Sequence[Any], allowed: Callable[..., bool] = lambda *_: True) -> list[Case]:
    """The chosen cases, in the order of the cross; always the same ones.

    allowed: whether a case, its values as arguments, can be at all. Pairs that are in no allowed
    case are in none.
    """
    every = _allowed(axes, allowed)
    chosen = covering([[*enumerate(places)] for places in every])
    return [_values(axes, every[number]) for number in chosen]


def each_value(*axes: Sequence[Any], allowed: Callable[..., bool] = lambda *_: True) -> list[Case]:
    """Cases in which each value is met, for long tests; each pair where PYHUDI_EVERY_PAIR asks."""
    every = _allowed(axes, allowed)
    chosen = covering([[("", ""), *enumerate(places)] for places in every], with_first=True)
    return [_values(axes, every[number]) for number in chosen]


def _allowed(axes: Sequence[Sequence[Any]], allowed: Callable[..., bool]) -> list[tuple[int, ...]]:
    crossed = product(*(range(len(axis)) for axis in axes))
    return [places for places in crossed if allowed(*_values(axes, places))]


def with_kinds(releases: Sequence[Any]) -> list[tuple[Any, str]]:
    """Releases, oldest first, each with one type of table in turn, the newest one with both.

    For long tests; all by `make test-jvm-pairs`.
    """
    if os.environ.get("PYHUDI_EVERY_PAIR") or os.environ.get("PYHUDI_EVERY_SETTING"):
        return list(product(releases, ("cow", "mor")))
    some = [(release, ("mor", "cow")[at % 2]) for at, release in enumerate(releases)]
    return [*some, (releases[-1], "cow" if some[-1][1] == "mor" else "mor")]


def _values(axes: Sequence[Sequence[Any]], places: tuple[int, ...]) -> Case:
    return tuple(axis[place] for axis, place in zip(axes, places, strict=True))


def covering(cases: Sequence[Sequence[Setting]], *, with_first: bool = False) -> list[int]:
    """Which cases to take so that settings that meet in any of them meet in one that is taken.

    with_first: of those alone that meet with a case's first setting; PYHUDI_EVERY_PAIR asks for
    all. Greedy: always the first of those with the most pairs that are lacking.
    """
    if os.environ.get("PYHUDI_EVERY_SETTING"):
        return list(range(len(cases)))
    pairs = [set(combinations(case, 2)) for case in cases]
    wanted = pairs
    if with_first and not os.environ.get("PYHUDI_EVERY_PAIR"):
        wanted = [{(case[0], other) for other in case[1:]} for case in cases]
    lacking = set[tuple[Setting, Setting]]().union(*wanted)
    unmet = set[tuple[Setting, Setting]]().union(*pairs)
    chosen = []
    while lacking:
        best = max(
            range(len(cases)),
            key=lambda number: (len(wanted[number] & lacking), len(pairs[number] & unmet)),
        )
        lacking -= pairs[best]
        unmet -= pairs[best]
        chosen.append(best)
    return sorted(chosen)
