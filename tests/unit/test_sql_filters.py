"""SQL filters: what prunes files, and which errors name the column."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.predicate_parser import parse_where

TABLE = pa.table(
    {
        "id": pa.array([0, 1, 2, 3], pa.int32()),
        "n": pa.array([1, None, 3, 4], pa.int64()),
        "x": pa.array([0.5, float("nan"), None, 2.0]),
        "name": ["a", None, "b", "ab"],
        "flag": [True, False, None, True],
        "tags": pa.array([[1], None, [], [2]], pa.list_(pa.int32())),
        "s": pa.array([{"q": 1}, {"q": None}, None, {"q": 4}], pa.struct([("q", pa.int32())])),
    }
)


@pytest.mark.parametrize(
    ("where", "ids", "conjuncts"),
    [
        ("flag", [0, 3], [("flag", "=", [True])]),
        ("flag IS TRUE", [0, 3], [("flag", "=", [True])]),
        ("flag IS NOT TRUE", [1, 2], []),
        ("n <=> 3", [2], [("n", "=", [3])]),
        ("n <=> NULL", [1], []),
        ("n IS DISTINCT FROM 3", [0, 1, 3], []),
        ("4 <= n", [3], [("n", ">=", [4])]),
        ("x > 1", [1, 3], [("x", ">", [1.0])]),
        ("x BETWEEN 0 AND 1", [0], [("x", ">=", [0.0]), ("x", "<=", [1.0])]),
        ("n = 1 OR (n = 3 OR (n IN (4, 5)))", [0, 2, 3], [("n", "in", [1, 3, 4, 5])]),
        ("(n = 1 OR n = 3) AND flag", [0], [("n", "in", [1, 3]), ("flag", "=", [True])]),
        ("flag OR flag = false", [0, 1, 3], [("flag", "in", [True, False])]),
        ("n = 1 OR lower(name) = 'b'", [0, 2], []),
        ("NOT (n <> 1)", [0], []),
        ("n IN ()", [], []),
        ("s.q = 4 AND id > 0", [3], [("id", ">", [0])]),
    ],
)
def test_parse_sql_filter_returns_rows_and_conjuncts(
    where: str, ids: list[int], conjuncts: list[Any]
) -> None:
    parsed = parse_where(where, TABLE.schema)
    assert TABLE.filter(parsed.expression)["id"].to_pylist() == ids
    assert [(name, op, values.to_pylist()) for name, op, values in parsed.conjuncts] == conjuncts


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("n", "the column 'n' is int64 and cannot be compared with True"),
        ("n IS TRUE", "the column 'n' is int64 and cannot be compared with True"),
        ("tags = 1", "the column 'tags' is list<.*> and cannot be compared with 1"),
        ("s.q = 'a'", "the column 's.q' is int32 and cannot be compared with 'a'"),
        ("n LIKE 'a%'", "LIKE needs a string, not the column 'n'"),
        ("lower(name) = 5", "the column 'computed in where' is string"),
    ],
)
def test_parse_sql_filter_mismatch_names_column(where: str, message: str) -> None:
    with pytest.raises(SchemaMismatch, match=message):
        parse_where(where, TABLE.schema)


@pytest.mark.parametrize(
    "where", ["name LIKE NULL", "name LIKE 5", "1 IN (1)", "1 + 1", "n IS 5", "n = DATE 'x'"]
)
def test_parse_sql_filter_refuses_invalid_comparison(where: str) -> None:
    with pytest.raises(ConfigError, match="cannot be used here") as raised:
        parse_where(where, TABLE.schema)
    assert raised.value.hint == (
        "Compare a column, or what is computed from one, with a value or another column."
    )


def test_parse_sql_filter_counts_comparisons() -> None:
    parse_where(" AND ".join(["n BETWEEN 1 AND 2"] * 500), TABLE.schema)
    with pytest.raises(ConfigError, match="1002 comparisons; the maximum is 1000"):
        parse_where(" AND ".join(["n BETWEEN 1 AND 2"] * 501), TABLE.schema)
