"""Clauses of a merge that give one column values of different types: none changes another's."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as st

import pyhudi
from pyhudi.errors import SchemaMismatch
from pyhudi.spark import SparkHudiTable, create_table
from pyhudi.spark.clause_types import carries

pytestmark = [pytest.mark.spark35, pytest.mark.filterwarnings("ignore")]

COLUMNS = (
    "id string, l bigint, d decimal(38,18), f double, t timestamp, u string, n int, "
    "s struct<a:bigint,b:array<string>>"
)
FINE = Decimal("0.123456789012345678")
GREAT = 2**53 + 1


@pytest.fixture
def base(spark: SparkSession, tmp_path: Path) -> Path:
    create_table(spark, tmp_path / "t", COLUMNS, key="id")
    rows = [("a", GREAT, FINE, 0.5, None, "007", 3, (1, ["x"])), ("b", 5, Decimal(1), 1.5)]
    given = spark.createDataFrame([(*row, *[None] * (8 - len(row))) for row in rows], COLUMNS)
    pyhudi.open_table(tmp_path / "t").upsert(given)
    return tmp_path / "t"


def merged(spark: SparkSession, base: Path, column: str, one: Any, other: Any) -> list[Any]:
    source = spark.createDataFrame([("a",), ("b",)], "id string")
    (
        SparkHudiTable.forPath(spark, base)
        .alias("t")
        .merge(source.alias("s"), "t.id = s.id")
        .whenMatchedUpdate("t.id = 'a'", {column: one})
        .whenMatchedUpdate("t.id = 'b'", {column: other})
        .execute()
    )
    found = pyhudi.open_table(base).scan(["id", column]).to_arrow().sort_by("id")
    values: list[Any] = found[column].to_pylist()
    return values


@pytest.mark.parametrize(
    ("column", "one", "other", "wanted"),
    [
        ("l", "t.l", "0", [GREAT, 0]),
        ("l", "t.l", "null", [GREAT, None]),
        ("l", "null", "null", [None, None]),
        ("n", "t.n", "length(t.id) + 1L", [3, 2]),
        ("d", "t.d", "7", [FINE, 7]),
        ("d", "t.d", "0.50", [FINE, Decimal("0.5")]),
        ("f", "t.f * 2", "0.0", [1.0, 0.0]),
        ("f", "t.f", "7", [0.5, 7.0]),
        (
            "s",
            "t.s",
            "named_struct('a', 7, 'b', array())",
            [{"a": 1, "b": ["x"]}, {"a": 7, "b": []}],
        ),
    ],
)
def test_values_that_one_type_holds(
    spark: SparkSession, base: Path, column: str, one: str, other: str, wanted: list[Any]
) -> None:
    assert merged(spark, base, column, one, other) == wanted


@pytest.mark.parametrize(
    ("column", "one", "other"),
    [
        ("l", "t.l", "6D"),
        ("d", "t.d", "7D"),
        ("d", "t.d", "cast(7 as decimal(38,0))"),
        ("u", "t.u", "7"),
    ],
)
def test_values_that_no_type_holds(
    spark: SparkSession, base: Path, column: str, one: str, other: str
) -> None:
    before = pyhudi.open_table(base).scan().to_arrow()
    with pytest.raises(SchemaMismatch, match=f"clauses give '{column}' values of the types"):
        merged(spark, base, column, one, other)
    assert pyhudi.open_table(base).scan().to_arrow() == before


def test_keys_of_inserts_stay_what_they_are(spark: SparkSession, tmp_path: Path) -> None:
    create_table(spark, tmp_path / "t", "l bigint, v int", key="l")
    source = spark.createDataFrame([(GREAT, 1), (7, 2)], "l bigint, v int")
    table = SparkHudiTable.forPath(spark, tmp_path / "t").alias("t")
    merge = table.merge(source.alias("s"), "t.l = s.l").whenNotMatchedInsert(
        "s.v = 1", {"l": "s.l", "v": "s.v"}
    )
    with pytest.raises(SchemaMismatch, match="clauses give 'l'"):
        merge.whenNotMatchedInsert(None, {"l": "cast(s.l as double)", "v": "s.v"}).execute()
    merge.whenNotMatchedInsert(None, {"l": "1", "v": "s.v"}).execute()
    found = pyhudi.open_table(tmp_path / "t").scan(["l"]).to_arrow()
    assert sorted(found["l"].to_pylist()) == [1, GREAT]


def test_which_types_carry_which() -> None:
    decimal = st.DecimalType
    for kind, wider in (
        (st.ByteType(), st.FloatType()),
        (st.IntegerType(), st.LongType()),
        (st.IntegerType(), st.DoubleType()),
        (st.LongType(), decimal(19, 0)),
        (decimal(15, 2), st.DoubleType()),
        (decimal(5, 2), decimal(6, 3)),
        (st.MapType(st.StringType(), st.IntegerType()), st.MapType(st.StringType(), st.LongType())),
        (st.NullType(), st.StringType()),
    ):
        assert carries(kind, wider)
        assert not carries(wider, kind)
    for kind, other in (
        (st.LongType(), st.DoubleType()),
        (st.IntegerType(), st.FloatType()),
        (decimal(16, 0), st.DoubleType()),
        (decimal(5, 2), decimal(6, 1)),
        (st.IntegerType(), st.StringType()),
        (st.DateType(), st.TimestampType()),
    ):
        assert not carries(kind, other)
