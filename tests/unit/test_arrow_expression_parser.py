"""Parsing pyarrow expressions: complete, or refused if the meaning is in doubt."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi.errors import ConfigError
from pyhudi.schema.arrow_expression_parser import (
    Call,
    Field,
    Literal,
    condition_of,
    fields_of,
    tree_of,
)
from pyhudi.schema.predicate_parser import parse_where, where_of
from pyhudi.schema.predicates import And, Compare, In, IsNull, Not, Or

DAY = 86_400_000
ODD = "it's: 'a'"
TWO_LINES = "a'\nend: 'b"
SCHEMA = pa.schema(
    {
        "a": pa.int64(),
        "value": pa.int32(),
        "f": pa.float64(),
        "text": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "price": pa.decimal128(10, 2),
        "day": pa.date32(),
        "hour": pa.time64("us"),
        "hash": pa.binary(2),
        "s": pa.struct({"x": pa.int64()}),
        ODD: pa.int64(),
        TWO_LINES: pa.int64(),
    }
)


def test_expression_tree_holds_whole_expression() -> None:
    expression = (pc.field("a") > 5) & pc.match_like(pc.field("s", "x").cast(pa.string()), "1%")
    tree = tree_of(expression)
    assert isinstance(tree, Call)
    left, right = tree.arguments
    assert (tree.name, left) == (
        "and_kleene",
        Call("greater", (Field(("a",)), Literal(pa.scalar(5))), {}),
    )
    assert isinstance(right, Call)
    assert right.options["pattern"].as_py() == "1%"
    assert right.arguments[0] == Call("cast", (Field(("s", "x")),), right.arguments[0].options)  # type: ignore[union-attr]
    assert fields_of(tree) == {"a", "s"}


@pytest.mark.parametrize("name", [ODD, TWO_LINES])
@pytest.mark.parametrize("op", ["=", ">"])
def test_odd_names_of_columns_are_never_others(name: str, op: str) -> None:
    field = pc.field(name)
    expression = (field == 3) if op == "=" else (field > 3)
    where = parse_where(expression & (pc.field("a") < 7), SCHEMA)
    assert name in where.columns
    known = {(name, op, 3), ("a", "<", 7)}
    assert {(n, o, v[0].as_py()) for n, o, v in where.conjuncts} <= known


def test_unsupported_expression_has_no_tree() -> None:
    assert tree_of(pc.field(0) > 3) is None

    def own(context: Any, values: Any) -> Any:
        return values

    name = "pyhudi_test_own"
    pc.register_scalar_function(
        own, name, {"summary": "", "description": ""}, {"x": pa.int64()}, pa.int64()
    )
    called = pc.Expression._call(name, [pc.field("a")]) > 3
    where = parse_where(called & (pc.field("value") > 3), SCHEMA)
    assert set(where.columns) >= {"a", "value"}


LONG = [f"{'a' * before}日本語" * 30 for before in range(3)]
"""Where pyarrow prints them it cuts one of them within a character."""


def test_unprintable_expression_is_still_a_filter(tmp_path: Path) -> None:
    rows = pa.table({"a": [1, 2, 3, 4], "text": [*LONG, "x"]})
    table = pyhudi.create_table(tmp_path, rows, key="a")
    for value in LONG:
        for where in (pc.field("text").isin([value]), f"text IN ('{value}', 'other')"):
            scan = table.scan(where=where)
            assert scan.to_arrow()["text"].to_pylist() == [value]
            assert "where" in repr(scan)


@pytest.mark.parametrize("value", LONG)
def test_column_by_number_is_refused(value: str) -> None:
    for expression in (pc.field(3).isin([value]), (pc.field(0) > 3) & (pc.field("text") == value)):
        with pytest.raises(ConfigError, match="by number"):
            parse_where(expression, SCHEMA)


def test_text_that_is_compared_names_no_column_by_number() -> None:
    assert parse_where(pc.field("text") == "FieldPath(0)", SCHEMA).columns == ("text",)


def test_filter_reads_only_named_columns() -> None:
    """By its text the expression would name `a`, which is in `value` and in `value_set` too."""
    assert parse_where(pc.field("value").isin([1, 2]), SCHEMA).columns == ("value",)


@pytest.mark.parametrize(
    ("expression", "condition"),
    [
        (pc.field("a") > 5, Compare(("a",), ">", 5)),
        (pc.scalar(5) > pc.field("a"), Compare(("a",), "<", 5)),
        (pc.field("s", "x") == 5, Compare(("s", "x"), "=", 5)),
        (~pc.field("a").is_null(), Not(IsNull(("a",)))),
        (pc.field("text").is_valid(), Not(IsNull(("text",)))),
        (
            (pc.field("text") == "x") | (pc.field("price") <= Decimal("2.5")),
            Or((Compare(("text",), "=", "x"), Compare(("price",), "<=", Decimal("2.5")))),
        ),
        (
            pc.field("a").isin([1, 2]),
            And((Not(IsNull(("a",))), In(("a",), (1, 2)))),
        ),
        (
            pc.if_else(
                pc.field("a").is_valid(), pc.field("a").isin([1]), pa.scalar(None, pa.bool_())
            ),
            In(("a",), (1,)),
        ),
        (pc.field("f").is_null(nan_is_null=True), None),
        (pc.field("a").isin([1, None]), None),
        (pc.field("a") + 1 > 5, None),
        (pc.field("a") > 2.5, None),
        (pc.field("price") > 2.5, None),
        (pc.field("a") > pc.field("value"), None),
        (pc.if_else(pc.field("a").is_valid(), pc.field("f").isin([1.0]), pc.scalar(True)), None),
        ((pc.field("a") > 5) & pc.starts_with(pc.field("text"), "x"), None),
        (pc.field("at") > pa.scalar(5, pa.timestamp("ns", "UTC")), None),
        (
            pc.field("day") < pa.scalar(DAY, pa.date64()),
            Compare(("day",), "<", dt.date(1970, 1, 2)),
        ),
        (pc.field("day") < pa.scalar(DAY + 1, pa.date64()), None),
        (pc.field("day").isin(pa.array([0, DAY + 1], pa.date64())), None),
        (pc.field("hour") >= dt.time(12), Compare(("hour",), ">=", dt.time(12))),
        (pc.field("hour") > pa.scalar(5, pa.time64("ns")), None),
        (pc.field("hash") == b"ab", Compare(("hash",), "=", b"ab")),
        (pc.field("hash") > pa.scalar(b"ab", pa.binary(2)), Compare(("hash",), ">", b"ab")),
        (pc.field("hash") > b"a", None),
    ],
    ids=str,
)
def test_conditions(expression: pc.Expression, condition: Any) -> None:
    tree = tree_of(expression)
    assert tree is not None
    assert condition_of(tree, SCHEMA) == condition


def test_conditions_of_times_compare_as_times() -> None:
    noon = dt.datetime(2024, 1, 1, 12, tzinfo=dt.timezone.utc)
    tree = tree_of(pc.field("at") >= pa.scalar(noon).cast(pa.timestamp("s", "UTC")))
    assert tree is not None
    condition = condition_of(tree, SCHEMA)
    assert condition is not None
    rows = SCHEMA.empty_table().select(["at"])
    rows = pa.concat_tables([rows, pa.table({"at": pa.array([noon], pa.timestamp("us", "UTC"))})])
    assert rows.filter(where_of(condition, SCHEMA).expression).num_rows == 1


def test_long_list_prunes_by_minimum_and_maximum() -> None:
    many = list(range(10, 2010))
    where = parse_where(pc.field("a").isin(many) & pc.field("text").isin(map(str, many)), SCHEMA)
    assert [(name, op, values[0].as_py()) for name, op, values in where.conjuncts] == [
        ("a", ">=", 10),
        ("a", "<=", 2009),
        ("text", ">=", "10"),
        ("text", "<=", "999"),
    ]
    assert parse_where(pc.field("f").isin([*map(float, many)]), SCHEMA).conjuncts == ()
    assert parse_where(pc.field("a").isin([*many, None]), SCHEMA).conjuncts == ()
