"""What is read of a condition never rules out a row that Spark would keep."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from pyhudi.spark.column_sql import names_in, plain_name
from pyhudi.spark.source_filters import conjuncts_of


@pytest.mark.parametrize(
    ("sql", "tuples"),
    [
        ("id = 5", [("id", "=", 5)]),
        ("((id > 5L) AND (name = 'x'))", [("id", ">", 5), ("name", "=", "x")]),
        ("-5 <= `id`", [("id", ">=", -5)]),
        ("id IS NOT NULL", [("id", "is not null")]),
        ("x < 1.50BD", [("x", "<", Decimal("1.50"))]),
        ("d >= DATE '2020-01-02'", [("d", ">=", dt.date(2020, 1, 2))]),
        ("id IN (1, 2) and flag = TRUE", [("id", "in", [1, 2]), ("flag", "=", True)]),
    ],
)
def test_plain_comparisons_are_the_whole_condition(sql: str, tuples: list[Any]) -> None:
    found = conjuncts_of(sql)
    assert found.complete
    assert list(found.tuples) == tuples


@pytest.mark.parametrize(
    ("sql", "tuples"),
    [
        ("a = 1 AND upper(b) = 'X AND c = 3'", [("a", "=", 1)]),
        ("(a = 1 OR b = 2) AND c = 3", [("c", "=", 3)]),
        ("NOT a = 1 AND b = 2", [("b", "=", 2)]),
    ],
)
def test_conjuncts_leave_rest_to_spark(sql: str, tuples: list[Any]) -> None:
    found = conjuncts_of(sql)
    assert not found.complete
    assert list(found.tuples) == tuples


@pytest.mark.parametrize(
    "sql",
    [
        "a = 1 AND b = 2 OR c = 3",
        "a BETWEEN 1 AND b = 2",
        "CASE WHEN a = 1 AND b = 2 THEN true END",
        'name = "x AND id = 1 AND y"',
        "`a AND b = 1 AND c` = 2",
        "a = 'it''s' AND b = 1",
        r"a = 'it\' AND b = 1",
        "a = 1 -- AND b = 2",
        "a = NULL",
        "a IN (1, NULL)",
        "a = 1.5D",
        "a = 1e5",
        "a = 'b' 'c'",
        "a = b",
        "a = 1 = true",
        "(a = 1) = (b = 2)",
        "a = 1 AND",
        "exists(list, x -> a = 1 AND b = 2)",
        "a = DATE '2020-02-31'",
    ],
)
def test_conjuncts_skip_ambiguous_sql(sql: str) -> None:
    assert conjuncts_of(sql).tuples == ()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("sum((A * b))", {"a", "b"}),
        ("*(a, b)", {"a", "b"}),
        ("count(*)", set()),
        ("count(1)", set()),
        ("start + 1", {"start"}),
        ("a * -1", {"a"}),
    ],
)
def test_names_in_an_expression(text: str, names: set[str]) -> None:
    assert names_in([text], ["a", "b", "start"]) == frozenset(names)


@pytest.mark.parametrize(
    "text",
    [
        "*",
        "t.*",
        "struct(*)",
        "f(a, *)",
        "struct(* EXCEPT (a))",
        "f(unresolvedstar())",
        "hash( * )",
    ],
)
def test_star_selects_all_columns(text: str) -> None:
    assert names_in([text], ["a", "b"]) is None


def test_names_are_of_any_letters() -> None:
    assert names_in(["été > 1"], ["a", "été"]) == frozenset({"été"})
    assert plain_name("été") == "été"
