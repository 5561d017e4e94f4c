from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.errors import SchemaMismatch
from pyhudi.schema.casts import cast_computed, cast_exactly, literal

NAN = float("nan")
DAY = dt.date(2024, 5, 1)
MIDNIGHT = dt.datetime.combine(DAY, dt.time())
NOON = dt.datetime.combine(DAY, dt.time(12))
CENTS = pa.decimal128(10, 2)


def column(values: list[Any], kind: pa.DataType | None = None) -> Any:
    kind = kind or pa.array(values).type
    return pa.chunked_array([pa.array(values[:1], kind), pa.array(values[1:], kind)])


EXACT = [
    ([0.5, None, NAN, float("inf")], pa.float64(), pa.float32()),
    ([0.25, 2.0], pa.float32(), pa.float64()),
    ([0.1, -12345.67, None], pa.float64(), CENTS),
    ([0.1234567, 1e9], pa.float64(), pa.decimal128(38, 18)),
    ([Decimal("0.10"), None], CENTS, pa.float64()),
    ([Decimal("0.10"), None], pa.decimal128(20, 2), pa.float64()),
    ([3.0, None], pa.float64(), pa.int64()),
    ([1, 2], pa.int64(), pa.int32()),
    ([[0.5, None], None, []], pa.list_(pa.float64()), pa.list_(pa.float32())),
    ([{"a": 0.5}, None], pa.struct([("a", pa.float64())]), pa.struct([("a", pa.float32())])),
    ([None, None], pa.null(), pa.float32()),
]


@pytest.mark.parametrize(("values", "given", "wanted"), EXACT)
def test_values_that_stay_are_cast(values: list[Any], given: Any, wanted: Any) -> None:
    for cast in (cast_exactly, cast_computed):
        made = cast(column(values, given), pa.field("x", wanted))
        assert made.type == wanted
        made = made.cast(given) if given != pa.null() else made
        assert str(made.to_pylist()) == str(column(values, given).to_pylist())


CHANGED = [
    ([0.5, 0.1], pa.float64(), pa.float32(), "0.1"),
    ([0.5, 1e300], pa.float64(), pa.float32(), "1e\\+300"),
    ([0.5, 1.125], pa.float64(), CENTS, "1.125"),
    ([0.5, 0.10000000000000002], pa.float64(), CENTS, "0.10000000000000002"),
    ([Decimal("123456789.1")], pa.decimal128(10, 1), pa.float32(), "123456789.1"),
    ([Decimal("12345678901234567.89")], pa.decimal128(20, 2), pa.float64(), "12345678901234567.89"),
    ([1.0, 1.5], pa.float64(), pa.int64(), "1.5"),
    ([1, 300], pa.int64(), pa.int8(), "300"),
    ([Decimal("1.25")], CENTS, pa.decimal128(10, 1), "1.25"),
    ([NOON.replace(microsecond=5)], pa.timestamp("us"), pa.timestamp("ms"), "12, 0, 0, 5"),
    ([None, [0.5, 0.1]], pa.list_(pa.float64()), pa.list_(pa.float32()), "0.1"),
    ([{"m": [("k", 0.1)]}], pa.struct([("m", pa.map_(pa.string(), pa.float64()))]),
     pa.struct([("m", pa.map_(pa.string(), pa.float32()))]), "0.1 in x.m.value"),
    ([{"a": "1"}], pa.struct([("a", pa.string())]), pa.struct([("a", pa.int64())]), "x.a is str"),
    ([{"b": 1}], pa.struct([("b", pa.int64())]), pa.struct([("a", pa.int64())]), "no x.b"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "given", "wanted", "told"), CHANGED)
def test_a_value_that_would_change_is_told(
    values: list[Any], given: Any, wanted: Any, told: str
) -> None:
    with pytest.raises(SchemaMismatch, match=f"'x' is .*{told}"):
        cast_exactly(column(values, given), pa.field("x", wanted))


def test_times_of_a_zone_are_not_taken_for_local_ones_unless_they_have_the_same_digits() -> None:
    local = pa.field("x", pa.timestamp("us"))
    for zone in ("UTC", "+00:00"):
        made = cast_exactly(column([NOON], pa.timestamp("us", zone)), local)
        assert made.to_pylist() == [NOON]
    rome = column([NOON], pa.timestamp("us", "Europe/Rome"))
    nested = pa.chunked_array([pa.array([[NOON]], pa.list_(rome.type))])
    with pytest.raises(SchemaMismatch, match=r"'x'.*has a zone.*local_timestamp"):
        cast_exactly(rome, local)
    with pytest.raises(SchemaMismatch, match=r"x.element has a zone"):
        cast_exactly(nested, pa.field("x", pa.list_(local.type)))


def test_computed_floats_are_rounded_but_stay_finite() -> None:
    field = pa.field("x", pa.float32())
    assert cast_computed(column([0.1, NAN]), field)[0].as_py() == pytest.approx(0.1)
    assert cast_computed(column(["0.1", "inf"]), field)[1].as_py() == float("inf")
    for values in ([1e300], ["1e300"], [Decimal("1e60")]):
        with pytest.raises(SchemaMismatch, match="1e\\+"):
            cast_computed(column(values), field)


def test_computed_moments_are_days_only_at_midnight() -> None:
    days = pa.field("x", pa.date32())
    assert cast_computed(column([MIDNIGHT, None], pa.timestamp("us")), days)[0].as_py() == DAY
    assert cast_computed(column([DAY]), pa.field("x", pa.timestamp("us")))[0].as_py() == MIDNIGHT
    with pytest.raises(SchemaMismatch, match="12, 0"):
        cast_computed(column([NOON], pa.timestamp("us")), days)
    with pytest.raises(SchemaMismatch, match="no form"):
        cast_computed(column([1]), days)


@pytest.mark.parametrize(
    ("value", "kind", "made"),
    [
        (3.0, pa.int64(), 3),
        (1, pa.float32(), 1.0),
        (NAN, pa.float32(), NAN),
        (None, pa.int64(), None),
        (MIDNIGHT, pa.date32(), DAY),
        (MIDNIGHT, pa.timestamp("us", "UTC"), MIDNIGHT.replace(tzinfo=dt.timezone.utc)),
        (NOON.astimezone(dt.timezone.utc), pa.timestamp("us"), None),
        (Decimal("1.5"), CENTS, Decimal("1.50")),
        ({"a": 1}, pa.struct([("a", pa.int64()), ("b", pa.int64())]), {"a": 1, "b": None}),
        ([1.0, None], pa.list_(pa.int64()), [1, None]),
        ([("k", 1)], pa.map_(pa.string(), pa.int64()), [("k", 1)]),
        (pa.scalar(0.5), pa.float32(), 0.5),
        (b"ab", pa.binary(), b"ab"),
    ],
)
def test_literals_that_fit(value: Any, kind: pa.DataType, made: Any) -> None:
    found = literal(value, kind, "set 'x'")
    assert found.type == kind
    assert made is None or str(found.as_py()) == str(made)


def test_a_literal_float_is_rounded() -> None:
    assert literal(0.1, pa.float32(), "set 'x'").as_py() == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1.5, pa.int64()),
        (1e300, pa.float32()),
        (2**24 + 1, pa.float32()),
        (NOON, pa.date32()),
        (NOON.replace(microsecond=5), pa.timestamp("ms")),
        (dt.time(1, 2, 3, 4), pa.time32("ms")),
        (Decimal("1.5"), pa.int64()),
        (Decimal("1.125"), CENTS),
        (5, pa.date32()),
        ([1.5], pa.list_(pa.int64())),
        ({"a": 1.5}, pa.struct([("a", pa.int64())])),
        ({"z": 1}, pa.struct([("a", pa.int64())])),
        (pa.scalar(1.5), pa.int64()),
        (object(), pa.int64()),
    ],
)
def test_literals_that_would_change_are_refused(value: Any, kind: pa.DataType) -> None:
    with pytest.raises(SchemaMismatch, match="set 'x'"):
        literal(value, kind, "set 'x'")


def test_a_time_that_python_has_no_form_of_is_named() -> None:
    far = pa.chunked_array([pa.array([2**62], pa.timestamp("s"))])
    with pytest.raises(SchemaMismatch, match=r"column 'at' is timestamp\[s\]"):
        cast_exactly(far, pa.field("at", pa.timestamp("us")))
