"""A table with a column of each kind that engines compare, and odd values in all of them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import pyhudi
from tests.helpers.table_builder import SMALL

COUNT = 60
CITIES = ("lisbon", "osaka", "rome")

DAY = dt.date(2024, 1, 1)
NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.timezone.utc)


def _some(values: list[Any], every: int) -> list[Any]:
    """The values with a null now and then."""
    return [None if n % every == every - 1 else value for n, value in enumerate(values)]


def _floats() -> list[float]:
    odd = {5: math.nan, 6: -0.0, 7: math.inf, 8: -math.inf, 9: 0.1}
    return [odd.get(n, n / 2 - 5) for n in range(COUNT)]


def odd_rows() -> pa.Table:
    numbers = range(COUNT)
    return pa.table(
        {
            "id": [f"k{n:02}" for n in numbers],
            "city": [CITIES[n % 3] for n in numbers],
            "ts": pa.array([1] * COUNT, pa.int64()),
            "n": pa.array(_some([n - 10 for n in numbers], 7), pa.int32()),
            "large": pa.array(_some([2**53 + n for n in numbers], 11), pa.int64()),
            "f": pa.array(_some(_floats(), 13), pa.float64()),
            "g": pa.array(_some(_floats(), 9), pa.float32()),
            "text": _some([("", "a", "ab", "b", "é", "\U0001f600")[n % 6] for n in numbers], 8),
            "flag": pa.array(_some([n % 3 == 0 for n in numbers], 5), pa.bool_()),
            "day": pa.array(_some([DAY + dt.timedelta(n) for n in numbers], 6), pa.date32()),
            "at": pa.array(
                _some([NOON + dt.timedelta(hours=n, microseconds=n) for n in numbers], 10),
                pa.timestamp("us", "UTC"),
            ),
            "price": pa.array(
                _some([Decimal(n * 25).scaleb(-2) for n in numbers], 12), pa.decimal128(10, 2)
            ),
        }
    )


def odd_table(base: Path, **more: Any) -> pyhudi.HudiTable:
    """The rows in base files, a few of them updated in logs."""
    rows = odd_rows()
    options = {"hoodie.metadata.enable": "false", **SMALL}
    table = pyhudi.create_table(
        base, rows, key="id", partition_by="city", order_by="ts", type="mor", options=options
    )
    later = rows.slice(3, 12).set_column(2, "ts", pa.array([2] * 12, pa.int64()))
    table.upsert(later.set_column(3, "n", pa.array([100 + n for n in range(12)], pa.int32())))
    return pyhudi.open_table(base, **more)
