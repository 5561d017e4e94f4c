"""Row filters: what callers may write, SQL's logic, literals in the columns' types."""

from __future__ import annotations

import pickle
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.where import parse_where

UTC = timezone.utc
TABLE = pa.table(
    {
        "id": pa.array([0, 1, 2, 3, 4], pa.int32()),
        "n": pa.array([1, 2, None, 4, 5], pa.int64()),
        "name": pa.array(["a", "B%", None, "ab", ""], pa.string()),
        "day": pa.array([date(2024, 2, 28), date(2024, 2, 29), None, None, date(1960, 1, 1)]),
        "at": pa.array(
            [datetime(2024, 1, day, 10, tzinfo=UTC) if day < 4 else None for day in range(1, 6)],
            pa.timestamp("us", "UTC"),
        ),
        "local": pa.array([datetime(2024, 1, d, 10) for d in range(1, 6)], pa.timestamp("us")),  # noqa: DTZ001
        "amount": pa.array(
            [Decimal("1.50"), None, Decimal("-2.00"), Decimal(3), Decimal(4)], pa.decimal128(10, 2)
        ),
        "flag": pa.array([True, False, None, True, False]),
        "x": pa.array([0.5, float("nan"), None, 2.0, -1.0], pa.float64()),
        "s": pa.array(
            [{"q": 1}, {"q": None}, None, {"q": 4}, {"q": 5}], pa.struct([("q", pa.int32())])
        ),
        "raw": pa.array([b"\x00", b"\x01", None, b"", b"\x02"], pa.binary()),
        "odd name": pa.array([1, 2, 3, 4, 5], pa.int32()),
    }
)


def ids(where: Any) -> list[int]:
    found = TABLE.filter(parse_where(where, TABLE.schema).expression)
    return [int(value) for value in found["id"].to_pylist()]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("n > 1 AND n < 5", [1, 3]),
        ("1 < n", [1, 3, 4]),
        ("n = 1 OR name = 'ab'", [0, 3]),
        ("n <> 2", [0, 3, 4]),
        ("n == 2", [1]),
        ("NOT n = 2", [0, 3, 4]),
        ("n IN (1, 5)", [0, 4]),
        ("n NOT IN (1, 5)", [1, 3]),
        ("n NOT IN (1, NULL)", []),
        ("n IN (1, NULL)", [0]),
        ("n = NULL", []),
        ("NOT (n = NULL)", []),
        ("n IS NULL", [2]),
        ("n IS NOT NULL AND (n = 1 OR n = 2)", [0, 1]),
        ("n <=> 2", [1]),
        ("n IS NOT DISTINCT FROM NULL", [2]),
        ("n BETWEEN 2 AND 4", [1, 3]),
        ("n NOT BETWEEN 2 AND 4", [0, 4]),
        ("flag", [0, 3]),
        ("NOT flag", [1, 4]),
        ("flag IS TRUE", [0, 3]),
        ("flag IS NOT TRUE", [1, 2, 4]),
        ("name LIKE 'a%'", [0, 3]),
        ("name NOT LIKE 'a%'", [1, 4]),
        ("name = ''", [4]),
        ("day = '2024-02-29'", [1]),
        ("day < DATE '2024-01-01'", [4]),
        ("at >= '2024-01-02 10:00:00'", [1, 2]),
        ("at = TIMESTAMP '2024-01-02T11:00:00+01:00'", [1]),
        ("at > '2024-01-02'", [1, 2]),
        ("local <= '2024-01-02 10:00:00'", [0, 1]),
        ("amount = 1.5", [0]),
        ("amount > 1.499", [0, 3, 4]),
        ("amount < -1", [2]),
        ("n > 1.5", [1, 3, 4]),
        ("n >= 1.5", [1, 3, 4]),
        ("n < 2.5", [0, 1]),
        ("n <= -1.5", []),
        ("n > -0.5", [0, 1, 3, 4]),
        ("n = 1.5", []),
        ("n <> 1.5", [0, 1, 3, 4]),
        ("n IN (1.5, 2)", [1]),
        ("NOT n IN (1.5, 2)", [0, 3, 4]),
        ("n < 1e300", [0, 1, 3, 4]),
        ("n > 1e300", []),
        ("n > 'inf'", []),
        ("n <> 'nan'", [0, 1, 3, 4]),
        ("id = 99999999999999999999", []),
        ("id < 3000000000", [0, 1, 2, 3, 4]),
        ("id > -3000000000", [0, 1, 2, 3, 4]),
        ("amount <= 1.501", [0, 2]),
        ("amount = 1.501", []),
        ("amount < 1e30", [0, 2, 3, 4]),
        ("amount > -2.001", [0, 2, 3, 4]),
        ("n = '4'", [3]),
        ("x > 0", [0, 3]),
        ("s.q = 4", [3]),
        ("s.q IS NULL", [1, 2]),
        ('"odd name" = 2', [1]),
        ("true", [0, 1, 2, 3, 4]),
        ("n = 1 -- OR true", [0]),
        ([("n", ">", 1), ("n", "<", 5)], [1, 3]),
        ([[("n", "=", 1)], [("n", "==", 5)]], [0, 4]),
        ([("n", "in", [1, 2])], [0, 1]),
        ([("n", "not in", {1, 2})], [3, 4]),
        ([("n", "is null")], [2]),
        ([("n", "IS NOT NULL", None)], [0, 1, 3, 4]),
        ([("at", "<", datetime(2024, 1, 2, tzinfo=UTC))], [0]),
        ([("day", "=", date(2024, 2, 28))], [0]),
        ([("raw", "=", b"\x01")], [1]),
        ([("amount", ">=", Decimal("3.00"))], [3, 4]),
        ((("n", ">", 4),), [4]),
        (pc.field("n") > 2, [3, 4]),
        (pc.field("n").isin([1]) | pc.field("flag"), [0, 3]),
    ],
)
def test_keeps_the_rows_that_sql_keeps(where: Any, expected: list[int]) -> None:
    assert ids(where) == expected


@pytest.mark.parametrize(
    "where",
    [
        "lower(name) = 'a'",
        "n = id",
        "n + 1 = 2",
        "n IN (SELECT 1)",
        "EXISTS (SELECT 1)",
        "n = 1; DROP TABLE t",
        "n >",
        "",
        "name ILIKE 'a'",
        "n BETWEEN SYMMETRIC 4 AND 2",
        "n = CAST('1' AS INT)",
        "1 = 1",
        [],
        [[]],
        ["n = 1"],
        [("n", "~", 1)],
        [("n", "=", None)],
        [("n", "in", "12")],
        [("n", "=")],
        5,
        pc.field(1) > 1,
    ],
)
def test_what_is_no_filter_is_an_error_of_the_call(where: Any) -> None:
    with pytest.raises(ConfigError):
        parse_where(where, TABLE.schema)


@pytest.mark.parametrize(
    "where",
    [
        "name = 5",
        "n = 'five'",
        "day = 5",
        "day = '2024-02-30'",
        "flag = 1",
        "n = true",
        "s = 1",
        "n LIKE '4'",
        "nmae = 'a'",
        "s.r = 1",
        "n.q = 1",
        [("local", "=", datetime(2024, 1, 1, tzinfo=UTC))],
        [("day", "=", datetime(2024, 1, 1, 5, tzinfo=UTC))],
        pc.field("nmae") == "a",
    ],
)
def test_what_does_not_fit_the_columns_is_a_mismatch(where: Any) -> None:
    with pytest.raises(SchemaMismatch):
        parse_where(where, TABLE.schema)


def test_an_unknown_column_names_the_nearest() -> None:
    with pytest.raises(SchemaMismatch, match="Did you mean 'name'"):
        parse_where("nmae = 'a'", TABLE.schema)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("n > 1 AND name = 'a'", [("n", ">", [1]), ("name", "=", ["a"])]),
        ("n IN (1, 2)", [("n", "in", [1, 2])]),
        ("n BETWEEN 1 AND 2", [("n", ">=", [1]), ("n", "<=", [2])]),
        ("n = 1 OR n = 2", []),
        ("NOT n = 1", []),
        ("n IN (1, NULL)", []),
        ("n > 1.5", []),
        ("n = NULL", []),
        ("x <> 1", []),
        ("x > 1", [("x", ">", [1.0])]),
        ("s.q = 1", []),
        ("day = '2024-02-29'", [("day", "=", [date(2024, 2, 29)])]),
    ],
)
def test_conjuncts_are_what_every_kept_row_meets(where: str, expected: list[Any]) -> None:
    found = parse_where(where, TABLE.schema).conjuncts
    assert [(name, op, values.to_pylist()) for name, op, values in found] == expected
    assert all(values.type == TABLE.schema.field(name).type for name, _, values in found)


def test_the_columns_of_a_filter_come_in_table_order() -> None:
    assert parse_where("name = 'a' OR n = 1", TABLE.schema).columns == ("n", "name")
    assert set(parse_where(pc.field("name") == "a", TABLE.schema).columns) >= {"name"}


def test_a_filter_pickles() -> None:
    where = pickle.loads(pickle.dumps(parse_where("n IN (1, 5) AND day IS NOT NULL", TABLE.schema)))
    assert TABLE.filter(where.expression)["id"].to_pylist() == [0, 4]
