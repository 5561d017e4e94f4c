"""Bounds against conditions, and conditions on expressions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.metadata.expression_predicates import conjuncts_for_index
from pyhudi.metadata.index_definitions import IndexDefinition
from pyhudi.metadata.min_max_pruning import exclude_by_stats
from pyhudi.schema.predicates import Conjunct

STATS = pa.record_batch(
    {
        "min": pa.array([1, 5, None, None, None], pa.int64()),
        "max": pa.array([4, 5, 9, None, None], pa.int64()),
        "only_nulls": pa.array([False, False, False, False, True]),
    }
)
"""1 to 4; just 5; half known; unknown; nothing but nulls."""


@pytest.mark.parametrize(
    ("op", "values", "first", "second"),
    [
        ("=", [3], False, True),
        ("=", [0], True, True),
        ("=", [5], True, False),
        ("in", [0, 9], True, True),
        ("in", [4, 9], False, True),
        ("!=", [5], False, True),
        ("!=", [1], False, False),
        ("<", [1], True, True),
        ("<=", [1], False, True),
        (">", [4], True, False),
        (">=", [4], False, False),
        (">", [5], True, True),
    ],
)
def test_min_max_bounds_exclude_conditions(
    op: str, values: list[int], first: bool, second: bool
) -> None:
    found = exclude_by_stats(STATS, ("n", op, pa.array(values, pa.int64()))).to_pylist()
    assert found == [first, second, False, False, True]


def test_long_list_is_compared_by_its_ends() -> None:
    many = pa.array(range(100, 300), pa.int64())
    assert exclude_by_stats(STATS, ("n", "in", many)).to_pylist() == [
        True,
        True,
        False,
        False,
        True,
    ]


def index(function: str, column: str = "ts", **options: str) -> IndexDefinition:
    return IndexDefinition("expr_index_i", "column_stats", function, (column,), options, 2)


def days(op: str, second: int, **options: str) -> list[tuple[str, list[str]]]:
    conjunct: Conjunct = ("ts", op, pa.array([second], pa.int64()))
    found = conjuncts_for_index(index("from_unixtime", **options), conjunct)
    return [(one[1], one[2].to_pylist()) for one in found]


def test_seconds_become_days_in_any_zone() -> None:
    second = 1_700_000_000  # 2023-11-14T22:13:20Z
    form = {"format": "yyyy-MM-dd"}
    assert days("=", second, **form) == [(">=", ["2023-11-13"]), ("<=", ["2023-11-15"])]
    assert days("=", second)[1] == ("<=", ["2023-11-15 22:13:20"])


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "!="])
def test_key_range_ignores_string_conditions(op: str) -> None:
    """Of a year beyond 9999 the text begins with a plus, and is less than any other."""
    assert days(op, 1_700_000_000, format="yyyy-MM-dd") == []


@pytest.mark.parametrize("pattern", ["dd.MM.yyyy", "yyyy-dd", "yyyy-MM-dd'T'", "E yyyy", "MM", ""])
def test_non_monotonic_pattern_prunes_nothing(pattern: str) -> None:
    assert days("=", 1_700_000_000, format=pattern) == []


def test_times_beyond_four_digit_years_say_nothing() -> None:
    assert days("=", 10**12, format="yyyy-MM-dd") == []
    assert days("!=", 0, format="yyyy-MM-dd") == []


def test_equal_text_is_equal_in_lower_case() -> None:
    conjunct: Conjunct = ("name", "=", pa.array(["Ana"]))
    ((_, op, values),) = conjuncts_for_index(index("lower", "name"), conjunct)
    assert (op, values.to_pylist()) == ("in", ["ana"])
    assert conjuncts_for_index(index("lower", "name"), ("name", "=", pa.array(["Chloé"]))) == []
    assert conjuncts_for_index(index("lower", "name"), ("name", "<", pa.array(["Ana"]))) == []
    assert conjuncts_for_index(index("lower", "other"), conjunct) == []
    assert conjuncts_for_index(index("hour", "name"), conjunct) == []
