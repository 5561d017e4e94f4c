"""Row numbers of tagged rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi import _native
from pyhudi.slices.tagged_rows import Tagged, find_untagged


def numbers(*values: int | None) -> pa.Int64Array:
    return pa.array(values, pa.int64())


def test_find_untagged_returns_the_other_rows_ascending() -> None:
    tagged = Tagged(numbers(4, 1, 1), numbers(0, 0, 1))
    assert find_untagged(6, tagged).equals(numbers(0, 2, 3, 5))
    assert find_untagged(0, Tagged(numbers(), numbers())).equals(numbers())
    sliced = numbers(9, 0, 2, 9).slice(1, 2)
    assert find_untagged(3, Tagged(sliced, sliced)).equals(numbers(1))


@pytest.mark.parametrize(
    ("rows", "values", "expected"),
    [
        ([2, 0], [7, 8], [8, None, 7]),
        ([1, 1], [7, 8], [None, 8, None]),
        ([], [], [None] * 3),
        ([3, -1, None, 2], [1, 2, 3, None], [None] * 3),
    ],
)
def test_scatter_puts_each_value_at_its_row(
    rows: list[int | None], values: list[int | None], expected: list[int | None]
) -> None:
    assert _native.scatter(numbers(*rows), numbers(*values), 3).to_pylist() == expected
