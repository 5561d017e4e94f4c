"""A column of each Arrow type that a table takes: what is given, what it is stored as and read as.

`docs/reference/types.md` lists the same types; `tests/unit/test_supported_types.py` compares them.
In `tests/compat/test_supported_types.py` Apache Hudi reads the columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

MOST = {"u1": 2**8 - 1, "u2": 2**16 - 1, "u4": 2**32 - 1}
LONG_TEXT = "longer than the twelve bytes of a view"


@dataclass(frozen=True)
class Case:
    """One column: two values and a null."""

    given: pa.Array[Any]
    avro: str
    """In short, as the page has it."""
    back: pa.DataType
    group: str = "all"
    """Columns of one group are read alike by each release of Hudi."""

    @property
    def values(self) -> list[Any]:
        """What is to be read, in the type that is read."""
        values: list[Any] = _cast(self.given, self.back).to_pylist()
        return values


def _cast(given: pa.Array[Any], back: pa.DataType) -> pa.Array[Any]:
    """By way of Python's values, so that no cast of Arrow's is trusted but between times."""
    if pa.types.is_temporal(given.type):
        return given.cast(back)
    return pa.array(given.to_pylist(), back)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array[Any]:
    return pa.array([*values, None], kind)


def _decimals(kind: pa.DataType) -> pa.Array[Any]:
    return _array([Decimal("-99.9"), Decimal("0.1")], kind)


def _times() -> dict[str, Case]:
    cases = {}
    for unit in ("s", "ms", "us", "ns"):
        kept = "ms" if unit == "ms" else "us"
        word = "millis" if unit == "ms" else "micros"
        # Whole microseconds, before and after 1970; the year 2105 in seconds.
        values = {
            "s": [-1, 4_270_000_000],
            "ms": [-1, 1_700_000_000_123],
            "us": [-1, 1_700_000_000_123_456],
            "ns": [-1000, 1_700_000_000_123_456_000],
        }[unit]
        cases[f"at_{unit}_utc"] = Case(
            _array(values, pa.timestamp(unit, "UTC")),
            f"long, timestamp-{word}",
            pa.timestamp(kept, "UTC"),
        )
        cases[f"at_{unit}_zone"] = Case(
            _array(values, pa.timestamp(unit, "Europe/Berlin")),
            f"long, timestamp-{word}",
            pa.timestamp(kept, "UTC"),
        )
        cases[f"at_{unit}_local"] = Case(
            _array(values, pa.timestamp(unit)),
            f"long, local-timestamp-{word}",
            pa.timestamp(kept),
            "local",
        )
    return cases


CASES: dict[str, Case] = {
    "flag": Case(_array([True, False], pa.bool_()), "boolean", pa.bool_()),
    "i1": Case(_array([-(2**7), 2**7 - 1], pa.int8()), "int", pa.int32()),
    "i2": Case(_array([-(2**15), 2**15 - 1], pa.int16()), "int", pa.int32()),
    "i4": Case(_array([-(2**31), 2**31 - 1], pa.int32()), "int", pa.int32()),
    "i8": Case(_array([-(2**63), 2**63 - 1], pa.int64()), "long", pa.int64()),
    "u1": Case(_array([0, MOST["u1"]], pa.uint8()), "int", pa.int32()),
    "u2": Case(_array([0, MOST["u2"]], pa.uint16()), "int", pa.int32()),
    "u4": Case(_array([0, MOST["u4"]], pa.uint32()), "long", pa.int64()),
    "f2": Case(_array([65504.0, -0.5], pa.float16()), "float", pa.float32()),
    "f4": Case(_array([0.5, -1.25], pa.float32()), "float", pa.float32()),
    "f8": Case(_array([0.1, -1e300], pa.float64()), "double", pa.float64()),
    "text": Case(_array(["", "é漢🙂"], pa.string()), "string", pa.string()),
    "large_text": Case(_array(["", "é"], pa.large_string()), "string", pa.string()),
    "text_view": Case(_array(["", LONG_TEXT], pa.string_view()), "string", pa.string()),
    "words": Case(
        _array(["a", "b"], pa.string()).dictionary_encode(), "that of its values", pa.string()
    ),
    "data": Case(_array([b"", b"\x00\xff"], pa.binary()), "bytes", pa.binary()),
    "large_data": Case(_array([b"", b"\x00\xff"], pa.large_binary()), "bytes", pa.binary()),
    "data_view": Case(_array([b"", LONG_TEXT.encode()], pa.binary_view()), "bytes", pa.binary()),
    "fixed_data": Case(_array([b"\x00\xff", b"ab"], pa.binary(2)), "fixed", pa.binary(2)),
    "dec4": Case(_decimals(pa.decimal32(3, 1)), "fixed, decimal", pa.decimal128(3, 1)),
    "dec8": Case(_decimals(pa.decimal64(12, 1)), "fixed, decimal", pa.decimal128(12, 1)),
    "dec16": Case(_decimals(pa.decimal128(38, 9)), "fixed, decimal", pa.decimal128(38, 9)),
    "dec32": Case(_decimals(pa.decimal256(20, 1)), "fixed, decimal", pa.decimal128(20, 1)),
    "day": Case(_array([-1, 20_000], pa.date32()), "int, date", pa.date32()),
    "day8": Case(_array([-86_400_000, 86_400_000], pa.date64()), "int, date", pa.date32()),
    "time_s": Case(
        _array([0, 86_399], pa.time32("s")), "int, time-millis", pa.time32("ms"), "time"
    ),
    "time_ms": Case(
        _array([0, 86_399_999], pa.time32("ms")), "int, time-millis", pa.time32("ms"), "time"
    ),
    "time_us": Case(
        _array([0, 86_399_999_999], pa.time64("us")), "long, time-micros", pa.time64("us"), "time"
    ),
    "time_ns": Case(
        _array([0, 86_399_999_999_000], pa.time64("ns")),
        "long, time-micros",
        pa.time64("us"),
        "time",
    ),
    **_times(),
    "list": Case(_array([[1], []], pa.list_(pa.int32())), "array", pa.list_(pa.int32())),
    "large_list": Case(
        _array([[1, 2], []], pa.large_list(pa.uint8())), "array", pa.list_(pa.int32())
    ),
    "list_view": Case(
        _array([["a"], []], pa.list_view(pa.string_view())), "array", pa.list_(pa.string())
    ),
    "large_list_view": Case(
        _array([[b"a"], []], pa.large_list_view(pa.binary())), "array", pa.list_(pa.binary())
    ),
    "fixed_list": Case(
        _array([[1, 2], [3, 4]], pa.list_(pa.int16(), 2)), "array", pa.list_(pa.int32())
    ),
    "map": Case(
        _array([[("a", 1), ("b", None)], []], pa.map_(pa.string(), pa.uint16())),
        "map",
        pa.map_(pa.string(), pa.int32()),
    ),
    "struct": Case(
        _array(
            [{"a": [{"b": 255}], "c": {"k": [1.5]}}, {"a": None, "c": None}],
            pa.struct(
                [
                    ("a", pa.large_list(pa.struct([("b", pa.uint8())]))),
                    ("c", pa.map_(pa.large_string(), pa.list_view(pa.float16()))),
                ]
            ),
        ),
        "record",
        pa.struct(
            [
                ("a", pa.list_(pa.struct([("b", pa.int32())]))),
                ("c", pa.map_(pa.string(), pa.list_(pa.float32()))),
            ]
        ),
    ),
}

NAMES = ("größe", "日本", "_hoodie_x", "_1")
"""Names that are odd and taken."""

LACKING: dict[str, tuple[pa.DataType, str]] = {
    "null": (pa.null(), "Cast it to the type"),
    "uint64": (pa.uint64(), "decimal128(20, 0)"),
    "duration": (pa.duration("us"), "int64"),
    "interval": (pa.month_day_nano_interval(), "int64"),
    "wide decimal": (pa.decimal256(39, 1), "38 digits"),
    "negative scale": (pa.decimal128(5, -2), "scale"),
    "empty struct": (pa.struct([]), "field"),
    "other keys": (pa.map_(pa.int32(), pa.int32()), "list of structs"),
    "no bytes": (pa.binary(0), "binary"),
    "list of maps": (pa.list_(pa.map_(pa.string(), pa.int32())), "structs with the map"),
    "deep lists": (pa.list_(pa.list_(pa.list_(pa.int32()))), "old-list-structure=false"),
}
"""Types that no table has, and what the hint says."""


def columns(group: str | None = None) -> pa.Table:
    """Three rows, keys k0 to k2, with the columns of a group or of all."""
    chosen = {name: case.given for name, case in CASES.items() if group in (None, case.group)}
    return pa.table({"id": ["k0", "k1", "k2"], **chosen})
