"""Dates, intervals and lists in filters, compared with DuckDB over random expressions and rows."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from calendar import monthrange
from contextlib import nullcontext
from datetime import date, timedelta

import duckdb
import pyarrow as pa
import pytest

from pyhudi.errors import ConfigError
from pyhudi.schema.assignments import parse_expression
from pyhudi.schema.computed_columns import Names, project
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.schema.predicates import filter_rows

_UNITS = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")
_PARTS = ("year", "quarter", "month", "week", "doy", "day", "hour", "minute")
_TRUNC = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_TAGS = ("a", "b", "", "ü")


class Expressions:
    """Random expressions on which DuckDB and Spark agree, with rows for them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def rows(self, count: int) -> pa.Table:
        moments = [self.maybe(self.number(-(10**15) * 3, 10**15 * 3)) for _ in range(count)]
        ends = [
            date(y, m, 28) + timedelta(self.number(0, 4))
            for y in (1900, 1999, 2024)
            for m in range(1, 13)
        ]
        columns = {
            "id": pa.array(range(count), pa.int32()),
            "ts": pa.array(moments, pa.timestamp("us")),
            "day": pa.array(
                [self.maybe(self.random.choice(ends)) for _ in range(count)], pa.date32()
            ),
            "tags": pa.array(
                [self.maybe(self.random.choices(_TAGS, k=self.number(0, 3))) for _ in range(count)]
            ),
            "marks": pa.array(
                [
                    self.maybe(self.random.choices(range(3), k=self.number(0, 3)))
                    for _ in range(count)
                ],
                pa.list_(pa.int32()),
            ),
            "n": pa.array([self.maybe(self.number(0, 3)) for _ in range(count)], pa.int64()),
        }
        return pa.table(columns)

    def maybe(self, value: object) -> object:
        return None if self.random.random() < 0.1 else value

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def moment(self, depth: int = 2) -> str:
        if depth == 0:
            return self.random.choice(("ts", "CAST(day AS TIMESTAMP)"))
        inner = self.moment(depth - 1)
        match self.number(0, 3):
            case 0:
                return inner
            case 1:
                return f"date_trunc('{self.random.choice(_TRUNC)}', {inner})"
            case _:
                length = f"INTERVAL '{self.number(-50, 50)} {self.random.choice(_UNITS)}'"
                return f"({inner}) {self.random.choice('+-')} {length}"

    def condition(self, depth: int = 2) -> str:
        op = self.random.choice(_COMPARISONS)
        match self.number(0, 7 if depth else 5):
            case 0:
                return f"({self.moment()}) {op} ({self.moment()})"
            case 1:
                part = self.random.choice(_PARTS)
                return f"extract({part} FROM {self.moment()}) {op} {self.number(1, 53)}"
            case 2:
                constant = "TIMESTAMP '2024-02-29 10:30:00' - INTERVAL"
                return f"({self.moment()}) {op} ({constant} '{self.number(0, 99)} months')"
            case 3:
                return f"len({self.random.choice(('tags', 'marks'))}) {op} {self.number(0, 3)}"
            case 4:
                return f"list_contains(tags, '{self.random.choice(_TAGS)}')"
            case 5:
                return self.random.choice(
                    (
                        f"list_contains(marks, {self.number(0, 3)})",
                        "list_contains(marks, n)",
                        "list_contains([0, 2], n)",
                    )
                )
            case 6:
                return f"NOT ({self.condition(depth - 1)})"
            case _:
                joined = self.random.choice(("AND", "OR"))
                return f"({self.condition(depth - 1)}) {joined} ({self.condition(depth - 1)})"


@pytest.mark.parametrize("seed", range(8))
def test_times_and_lists_keep_the_rows_that_duckdb_keeps(seed: int) -> None:
    expressions = Expressions(seed)
    rows = expressions.rows(200)
    connection = duckdb.connect()
    connection.register("rows", rows)
    for _ in range(60):
        where = expressions.condition()
        result = filter_rows(rows, parse_where(where, rows.schema))
        expected = connection.execute(f"SELECT id FROM rows WHERE {where} ORDER BY id").fetchall()
        assert [(number,) for number in result["id"].to_pylist()] == expected, where


@pytest.mark.parametrize("months", [1, -1, 11, 25, -1200, 4801, -4807, 7777])
def test_add_interval_clamps_to_month_end(months: int) -> None:
    days = [
        date(year, month, day)
        for year in range(1000, 2800, 7)
        for month in range(1, 13)
        for day in (1, 28, monthrange(year, month)[1])
    ]
    rows = pa.table({"day": pa.array(days, pa.date32())})
    names: Names = {("day",): rows.schema.field("day")}
    added = parse_expression(f"day + INTERVAL '{months} months'", names, "SET")
    assert project(rows, {"end": added})["end"].to_pylist() == [_add(day, months) for day in days]


def _add(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


@pytest.mark.parametrize(
    ("unit", "zone"), [("ms", None), ("us", "UTC"), ("ns", None), ("us", "Europe/Oslo")]
)
def test_add_interval_keeps_zone_and_nanoseconds(unit: str, zone: str | None) -> None:
    day = pa.array([date(2024, 3, 31)]).cast(pa.timestamp(unit))
    rows = pa.table({"at": day.cast(pa.timestamp(unit, zone))})
    where = parse_where("at - INTERVAL '1 month' < at - INTERVAL '29 days'", rows.schema)
    assert filter_rows(rows, where).num_rows == 1


def test_add_interval_overflow_is_an_error() -> None:
    rows = pa.table({"at": pa.array([2**63 - 1], pa.timestamp("us"))})
    where = parse_where("at + INTERVAL '19999 years' > at", rows.schema)
    with pytest.raises(ConfigError, match="overflow"):
        filter_rows(rows, where)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    "text",
    ["year(at)", "month(at)", "day(at)", "dayofyear(at)", "weekofyear(at)", "quarter(at)"]
    + [f"date_trunc('{unit}', at)" for unit in ("year", "quarter", "month", "week")],
)
def test_calendar_of_far_times_is_an_error(text: str, sign: int) -> None:
    """Arrow counts years in 16 bits, so the year after 32767 would be -32768."""
    year = 366 * 24 * 3600 * 10**6
    where = parse_where(f"{text} IS NOT NULL", pa.schema([("at", pa.timestamp("us"))]))
    for years, raises in ((29_000, False), (32_768, True), (200_000, True)):
        rows = pa.table({"at": pa.array([sign * years * year], pa.timestamp("us"))})
        with pytest.raises(ConfigError, match="overflow") if raises else nullcontext():
            assert filter_rows(rows, where).num_rows == 1


def test_clock_of_far_times_is_exact() -> None:
    hours = 200_000 * 366 * 24 + 5
    rows = pa.table({"at": pa.array([hours * 3600 * 10**6], pa.timestamp("us"))})
    where = parse_where("hour(at) = 5 AND date_trunc('hour', at) = at", rows.schema)
    assert filter_rows(rows, where).num_rows == 1


def test_array_contains_filters_in_another_process() -> None:
    """Expressions travel to executors, functions that are registered with Arrow do not."""
    rows = pa.table({"id": [1, 2], "tags": [["a"], ["b"]]})
    where = parse_where("array_contains(tags, 'b')", rows.schema)
    script = (
        "import pickle, sys\nfrom pyhudi.schema.predicates import filter_rows\n"
        "rows, where = pickle.load(sys.stdin.buffer)\n"
        "print(filter_rows(rows, where)['id'].to_pylist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=pickle.dumps((rows, where)),
        capture_output=True,
        check=True,
    )
    assert done.stdout.split() == [b"[2]"]
