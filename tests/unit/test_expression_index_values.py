"""Values of indexed expressions: as Spark makes them, or bounds that are wide enough."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.config.table_config import TableConfig
from pyhudi.metadata.index_definitions import IndexDefinition
from pyhudi.metadata.partition_types.base import DefinitionContext
from pyhudi.metadata.partition_types.expression_index import (
    ExpressionIndex,
    filter_values,
    value_bounds,
)


def index(
    function: str, options: dict[str, str] | None = None, kind: str = "column_stats"
) -> IndexDefinition:
    given = {"expr": function, **(options or {})}
    return IndexDefinition("expr_index_x", kind, function, ("c",), given, 2)


def batches(*parts: pa.Array[Any]) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_arrays([part], names=["c"]) for part in parts]


TEXTS = pa.array([" B ", None, "a", "Ünï"], pa.string())


@pytest.mark.parametrize(
    ("function", "column", "low", "high"),
    [
        ("identity", pa.array([3, None, -2], pa.int32()), -2, 3),
        ("length", TEXTS, 1, 3),
        ("trim", TEXTS, "B", "Ünï"),
        ("ltrim", TEXTS, "B ", "Ünï"),
        ("rtrim", TEXTS, " B", "Ünï"),
        ("upper", pa.array(["b", "A"]), "A", "B"),
        ("year", pa.array([date(2020, 2, 29), date(1969, 12, 31), None]), 1969, 2020),
        ("month", pa.array([date(2020, 2, 29), date(1969, 12, 31)]), 2, 12),
        ("day", pa.array([date(2020, 2, 29), date(1969, 12, 31)]), 29, 31),
    ],
)
def test_exact_bounds(function: str, column: pa.Array[Any], low: Any, high: Any) -> None:
    found = value_bounds(index(function), batches(column.slice(0, 1), column.slice(1)))
    assert found is not None
    assert (found.min, found.max) == (low, high)
    assert (found.nulls, found.values) == (column.null_count, len(column) - column.null_count)


def test_expression_values_accept_no_rows_and_nulls() -> None:
    empty = pa.array([], pa.string())
    assert value_bounds(index("lower"), batches(empty)) is None
    assert filter_values(index("lower", kind="bloom_filters"), batches(empty)) is None
    found = value_bounds(index("lower"), batches(pa.array([None, None], pa.string())))
    assert found is not None
    assert (found.min, found.max, found.nulls, found.values) == (None, None, 2, 0)


@pytest.mark.parametrize("function", ["lower", "upper"])
def test_text_beyond_ascii_is_within_bounds_whatever_its_other_case(function: str) -> None:
    texts = ["straße", "İstanbul", "ŉ", "\U0010ffff\U0010ffff", "mm"]
    found = value_bounds(index(function), batches(pa.array(texts)))
    assert found is not None
    for text in texts:
        for other in (text, text.lower(), text.upper(), text.title()):
            assert found.min.encode() <= other.encode() <= found.max.encode()
    values = filter_values(index(function, kind="bloom_filters"), batches(pa.array(texts)))
    assert values is not None
    assert values.is_incomplete
    assert values.strings.to_pylist() == [getattr("mm", function)()]


@pytest.mark.parametrize("pattern", ["yyyy-MM-dd", "yyyy/MM/dd HH", None])
def test_times_are_within_bounds_in_every_zone(pattern: str | None) -> None:
    seconds = [1_700_000_000, 1_699_000_000]
    options = {} if pattern is None else {"format": pattern}
    found = value_bounds(index("from_unixtime", options), batches(pa.array(seconds, pa.int64())))
    form = {"yyyy-MM-dd": "%Y-%m-%d", "yyyy/MM/dd HH": "%Y/%m/%d %H"}
    shown = form.get(pattern or "", "%Y-%m-%d %H:%M:%S")
    assert found is not None
    for second in seconds:
        for hours in (-18, 0, 18):
            moment = datetime.fromtimestamp(second, timezone.utc) + timedelta(hours=hours)
            assert found.min <= moment.strftime(shown) <= found.max


def test_times_beyond_four_digits_rule_nothing_out() -> None:
    for second in (1 << 40, -(1 << 40)):
        column = pa.array([second], pa.int64())
        found = value_bounds(index("from_unixtime"), batches(column))
        assert found is not None
        assert found.min == ""
        assert found.max > "+999999"


@pytest.mark.parametrize(
    ("function", "kind", "options", "known"),
    [
        ("identity", pa.int64(), {}, True),
        ("identity", pa.timestamp("us", "UTC"), {}, False),
        ("identity", pa.float64(), {}, False),
        ("length", pa.string(), {}, True),
        ("trim", pa.string(), {"trimString": "x"}, False),
        ("year", pa.date32(), {}, True),
        ("year", pa.timestamp("us", "UTC"), {}, False),
        ("from_unixtime", pa.int64(), {"format": "yyyy-MM"}, True),
        ("from_unixtime", pa.int64(), {"format": "MM-dd"}, False),
        ("lower", pa.string(), {}, True),
        ("lower", pa.string(), {"numentries": "9"}, False),
        ("regexp_extract", pa.string(), {}, False),
    ],
)
def test_expression_values_are_exact_only(
    function: str, kind: pa.DataType, options: dict[str, str], *, known: bool
) -> None:
    definition = index(function, options)
    table = DefinitionContext(
        TableConfig({}), {definition.name: definition}, pa.schema([("c", kind)])
    )
    reason = ExpressionIndex().find_unsupported(definition.name, table)
    assert (reason is None) == known
    if reason is not None:
        assert function in reason


@pytest.mark.parametrize(
    ("function", "low", "high"), [("year", -32769, 32768), ("month", 1, 12), ("day", 1, 31)]
)
def test_parts_of_far_dates_are_exact(function: str, low: int, high: int) -> None:
    """Arrow counts years in 16 bits: the year after 32767 would be -32768."""
    days = pa.array([11_248_738, -12_687_795, None], pa.int32()).cast(pa.date32())
    found = value_bounds(index(function), batches(days))
    assert found is not None
    assert (found.min, found.max, found.nulls) == (low, high, 1)
