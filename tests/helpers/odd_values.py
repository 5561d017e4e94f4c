"""Values whose statistics are odd, and filters over them with what they must find.

Text at bounds that Parquet cuts off, times with and without fractions of a millisecond and before
1970, columns of milliseconds, decimals, nulls alone, NaN and both zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("name", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("f", pa.float64()),
        ("ms", pa.timestamp("ms", "UTC")),
        ("price", pa.decimal128(10, 2)),
        ("nothing", pa.string()),
        ("ts", pa.int64()),
    ]
)
DDL = (
    "id string, city string, name string, at timestamp, day date, f double, ms timestamp, "
    "price decimal(10, 2), nothing string, ts long"
)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
LONG = "a" * 90
"""Longer than the bounds that Parquet keeps whole."""
NAN = float("nan")
PRICES = Decimal("12345678.91")


def row(number: int, city: str, name: str | None, micros: int, f: float | None) -> Row:
    return {
        "id": f"k{number:02}",
        "city": city,
        "name": name,
        "at": EPOCH + timedelta(microseconds=micros),
        "day": (EPOCH + timedelta(microseconds=micros)).date(),
        "f": f,
        "ms": EPOCH + timedelta(milliseconds=micros // 1000),
        "price": None if f is None or math.isnan(f) else int(f) * PRICES,
        "nothing": None,
        "ts": number,
    }


def first_rows() -> list[Row]:
    return [
        row(0, "texts", LONG + "b", 1_000, 1.0),
        row(1, "texts", LONG + "c", 1_001, 2.0),
        row(2, "old", "b", -1, -1.0),
        row(3, "old", "\ud7ff", -1_000_000, -2.0),
        row(4, "nan", "ab", 5_000_000, NAN),
        row(5, "nan", "", 5_000_001, 1.5),
        row(6, "zeros", "a", 0, -0.0),
        row(7, "zeros", None, 999, 0.0),
        row(8, "low", "zz", -86_400_000_001, NAN),
        row(9, "low", "\U0001f600", 1_700_000_000_123_456, -3.0),
    ]


def second_rows() -> list[Row]:
    return [
        row(1, "texts", LONG + "\ue000", 1_002, NAN),
        row(4, "nan", "a", 5_000_000, -0.0),
        row(9, "low", LONG, -1_700_000_000_123_456, None),
        row(20, "fresh", "b" * 80, 2_000, NAN),
        row(21, "fresh", "b", -999, NAN),
    ]


def greater(value: float | None, than: float) -> bool:
    return value is not None and (math.isnan(value) or value > than)


def known(value: Any, test: Callable[[Any], bool]) -> bool:
    return value is not None and test(value)


MILLI = timedelta(milliseconds=1)
MOMENT = "TIMESTAMP '1969-12-31 23:59:59.999999'"
FILTERS: dict[str, Callable[[Row], bool]] = {
    "name LIKE 'a%'": lambda r: known(r["name"], lambda n: n.startswith("a")),
    f"name LIKE '{LONG}%'": lambda r: known(r["name"], lambda n: n.startswith(LONG)),
    f"name > '{LONG}'": lambda r: known(r["name"], lambda n: n > LONG),
    f"name = '{LONG}b'": lambda r: r["name"] == LONG + "b",
    f"name <= '{LONG}b'": lambda r: known(r["name"], lambda n: n <= LONG + "b"),
    "name = ''": lambda r: r["name"] == "",
    "name >= 'zz'": lambda r: known(r["name"], lambda n: n >= "zz"),
    f"at = {MOMENT}": lambda r: r["at"] == EPOCH - timedelta(microseconds=1),
    "at < TIMESTAMP '1970-01-01 00:00:00'": lambda r: r["at"] < EPOCH,
    "at >= TIMESTAMP '1970-01-01 00:00:00.001001'": lambda r: (
        r["at"] >= EPOCH + timedelta(microseconds=1_001)
    ),
    "at = TIMESTAMP '1970-01-01 00:00:05'": lambda r: r["at"] == EPOCH + timedelta(seconds=5),
    "day < DATE '1970-01-01'": lambda r: r["day"] < date(1970, 1, 1),
    "day = DATE '1969-12-31'": lambda r: r["day"] == date(1969, 12, 31),
    "f > 1": lambda r: greater(r["f"], 1),
    "NOT (f <= 1)": lambda r: greater(r["f"], 1),
    "f >= 2": lambda r: greater(r["f"], 1.99),
    "f = 'NaN'": lambda r: known(r["f"], math.isnan),
    "f < 'NaN'": lambda r: known(r["f"], lambda f: not math.isnan(f)),
    "f = 0": lambda r: r["f"] == 0,
    "f IN (0, 77)": lambda r: r["f"] == 0,
    "f < 0": lambda r: known(r["f"], lambda f: f < 0),
    "f <= 0": lambda r: known(r["f"], lambda f: f <= 0),
    "f >= 0": lambda r: greater(r["f"], -1e-9),
    "ms = TIMESTAMP '1969-12-31 23:59:59.999'": lambda r: r["ms"] == EPOCH - MILLI,
    "ms > TIMESTAMP '1970-01-01 00:00:00.001'": lambda r: r["ms"] > EPOCH + MILLI,
    "ms < TIMESTAMP '1970-01-01 00:00:00'": lambda r: r["ms"] < EPOCH,
    "price = -37037036.73": lambda r: r["price"] == -3 * PRICES,
    "price < 0": lambda r: known(r["price"], lambda p: p < 0),
    "price >= 12345678.91": lambda r: known(r["price"], lambda p: p >= PRICES),
    "price IS NULL": lambda r: r["price"] is None,
    "nothing IS NULL": lambda _: True,
    "nothing IS NOT NULL": lambda _: False,
    "nothing > 'a'": lambda _: False,
    "name IS NULL": lambda r: r["name"] is None,
    "f <> 0": lambda r: known(r["f"], lambda f: f != 0),
}


def expected(rows: dict[str, Row]) -> dict[str, list[str]]:
    """The ids that each filter must find in rows by id."""
    return {
        where: sorted(key for key, one in rows.items() if holds(one))
        for where, holds in FILTERS.items()
    }
