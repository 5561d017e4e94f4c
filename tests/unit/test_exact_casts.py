from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.errors import SchemaMismatch
from pyhudi.input.exact_casts import cast_computed, cast_exactly, restore_type
from pyhudi.input.literals import literal

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
    ([Decimal("0.3"), Decimal("353.3")], pa.decimal128(4, 1), pa.float64()),
    ([Decimal("0.3"), Decimal("0.1")], pa.decimal128(4, 1), pa.float32()),
    ([Decimal("0.3"), Decimal("0.1")], pa.decimal256(50, 1), pa.float64()),
    ([[Decimal("0.3"), None], None], pa.list_(pa.decimal128(4, 1)), pa.list_(pa.float64())),
    ([[Decimal("0.3")] * 2, None], pa.list_(pa.decimal128(4, 1), 2), pa.list_(pa.float64())),
    ([{"a": [("k", Decimal("0.3"))]}, None],
     pa.struct([("a", pa.map_(pa.string(), pa.decimal128(4, 1)))]),
     pa.struct([("a", pa.map_(pa.string(), pa.float64()))])),
    ([1, -(2**63)], pa.int64(), pa.decimal128(20, 1)),
    ([[1, None], []], pa.list_(pa.int64()), pa.list_(pa.decimal128(3, 2))),
    ([3.0, None], pa.float64(), pa.int64()),
    ([2.0**53 - 1, 1 - 2.0**53], pa.float64(), pa.int64()),
    ([1, 2], pa.int64(), pa.int32()),
    ([[0.5, None], None, []], pa.list_(pa.float64()), pa.list_(pa.float32())),
    ([{"a": 0.5}, None], pa.struct([("a", pa.float64())]), pa.struct([("a", pa.float32())])),
    ([None, None], pa.null(), pa.float32()),
]  # fmt: skip


@pytest.mark.parametrize(("values", "given", "wanted"), EXACT)
def test_values_that_stay_are_cast(values: list[Any], given: Any, wanted: Any) -> None:
    for cast in (cast_exactly, cast_computed):
        made = cast(column(values, given), pa.field("x", wanted))
        assert made.type == wanted
        made = made.cast(given) if given != pa.null() else made
        assert str(made.to_pylist()) == str(column(values, given).to_pylist())


AB = pa.struct([("a", pa.int64()), pa.field("b", pa.string())])
BA = pa.struct([("b", pa.string()), ("a", pa.int32())])
ARRANGED = [
    ([{"b": "x", "a": 1}, None, {"b": None, "a": None}], BA, AB),
    ([{"a": 1}, None], pa.struct([("a", pa.int64())]), AB),
    ([[{"b": "x", "a": 1}, None], None, []], pa.list_(BA), pa.list_(AB)),
    ([[{"b": "x", "a": 1}]], pa.large_list(BA), pa.list_(AB)),
    ([[("k", {"b": "x", "a": 1}), ("l", None)], None], pa.map_(pa.string(), BA),
     pa.map_(pa.string(), AB)),
    ([{"s": {"b": "x", "a": 1}}, {"s": None}, None], pa.struct([("s", BA)]),
     pa.struct([("t", pa.int32()), ("s", AB)])),
    ([], BA, AB),
]  # fmt: skip


@pytest.mark.parametrize(("values", "given", "wanted"), ARRANGED)
def test_struct_fields_are_cast_by_name(values: list[Any], given: Any, wanted: Any) -> None:
    """Arrow before release 18 casts no struct to one with other fields, or in another order."""
    for source in (column(values, given), pa.chunked_array([], given)):
        made = cast_exactly(source, pa.field("x", wanted))
        made.validate(full=True)
        assert made.type == wanted
        assert made.to_pylist() == pa.array(source.to_pylist(), wanted).to_pylist()


def test_types_of_a_field_are_restored_after_an_exchange_with_nullable_fields() -> None:
    wanted = pa.struct([pa.field("a", pa.binary(), nullable=False)])
    given = column([{"a": b"x"}, None, {"a": b""}], pa.struct([("a", pa.binary())]))
    made = restore_type(given, pa.field("x", wanted))
    assert made.type == wanted
    assert made.to_pylist() == given.to_pylist()
    assert restore_type(made, pa.field("x", wanted)) is made


REQUIRED = [
    *(pa.bool_(), pa.int8(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(10, 2)),
    *(pa.string(), pa.large_string(), pa.binary(), pa.binary(3), pa.date32(), pa.time32("ms")),
    *(pa.time64("us"), pa.timestamp("us", "UTC"), pa.timestamp("ms"), pa.list_(pa.int32())),
    pa.map_(pa.string(), pa.int32()),
    pa.struct([pa.field("x", pa.float64(), nullable=False)]),
]


@pytest.mark.parametrize("kind", REQUIRED)
def test_null_structs_take_required_fields_of_any_type(kind: pa.DataType) -> None:
    loose = pa.struct([("a", kind)])
    wanted = pa.struct([pa.field("a", kind, nullable=False)])
    nulls = pa.StructArray.from_arrays(
        [pa.nulls(3, kind)], fields=list(loose), mask=pa.array([True] * 3)
    )
    made = cast_exactly(pa.chunked_array([nulls, nulls.slice(1, 0)]), pa.field("x", wanted))
    assert made.type == wanted
    assert made.to_pylist() == [None] * 3
    made.validate(full=True)
    assert made.cast(wanted, safe=True).to_pylist() == [None] * 3
    with pytest.raises(SchemaMismatch, match=r"x\.a has nulls"):
        cast_exactly(column([{"a": None}, None], loose), pa.field("x", wanted))


CHANGED = [
    ([0.5, 0.1], pa.float64(), pa.float32(), "0.1"),
    ([0.5, 1e300], pa.float64(), pa.float32(), "1e\\+300"),
    ([0.5, 1.125], pa.float64(), CENTS, "1.125"),
    ([0.5, 0.10000000000000002], pa.float64(), CENTS, "0.10000000000000002"),
    ([Decimal("123456789.1")], pa.decimal128(10, 1), pa.float32(), "123456789.1"),
    ([Decimal("12345678901234567.89")], pa.decimal128(20, 2), pa.float64(), "12345678901234567.89"),
    ([Decimal("0.3"), Decimal("0.3000000000000000167")], pa.decimal128(25, 19), pa.float64(),
     "0.3000000000000000167.* would become 0.3"),
    ([Decimal("123456789.25")], pa.decimal128(12, 2), pa.float32(), "123456789.25"),
    ([Decimal("9" * 38)], pa.decimal128(38, 0), pa.float32(), "precision"),
    ([[Decimal("0.3"), Decimal("12345678901234567.8")]], pa.list_(pa.decimal128(20, 1)),
     pa.list_(pa.float64()), "12345678901234567.8"),
    ([1, 10**8], pa.int64(), CENTS, "100000000 is out of range"),
    ([1, 10**8], pa.int32(), CENTS, "100000000 is out of range"),
    ([[1, -(10**8)]], pa.list_(pa.int64()), pa.list_(CENTS), "-100000000 is out of range"),
    ([Decimal(123456789)], pa.decimal128(12, 0), CENTS, "'123456789'. is out of range"),
    ([1.0, NAN], pa.float64(), CENTS, "nan"),
    ([1.0, 1e300], pa.float64(), CENTS, "1e\\+300"),
    ([1.0, 1.5], pa.float64(), pa.int64(), "1.5"),
    ([1.0, 2.0**53], pa.float64(), pa.int64(), "9007199254740992.0 may be a rounded integer"),
    ([1.0, -(2.0**53)], pa.float64(), pa.int64(), "rounded integer(.|\n)*Int64"),
    ([1.0, 2.0**24], pa.float32(), pa.int64(), "16777216.0 may be a rounded integer"),
    ([{"a": [2.0**60]}], pa.struct([("a", pa.list_(pa.float64()))]),
     pa.struct([("a", pa.list_(pa.int64()))]), "in x.a may be a rounded integer"),
    ([1, 300], pa.int64(), pa.int8(), "300"),
    ([Decimal("1.25")], CENTS, pa.decimal128(10, 1), "1.25"),
    ([NOON.replace(microsecond=5)], pa.timestamp("us"), pa.timestamp("ms"), "12, 0, 0, 5"),
    ([90000, 4294967], pa.time32("s"), pa.time32("ms"), "would become"),
    ([None, [0.5, 0.1]], pa.list_(pa.float64()), pa.list_(pa.float32()), "0.1"),
    ([{"m": [("k", 0.1)]}], pa.struct([("m", pa.map_(pa.string(), pa.float64()))]),
     pa.struct([("m", pa.map_(pa.string(), pa.float32()))]), "0.1 in x.m.value"),
    ([{"a": "1"}], pa.struct([("a", pa.string())]), pa.struct([("a", pa.int64())]), "x.a is str"),
    ([{"b": 1}], pa.struct([("b", pa.int64())]), pa.struct([("a", pa.int64())]), "no x.b"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "given", "wanted", "told"), CHANGED)
def test_exact_cast_names_value_that_would_change(
    values: list[Any], given: Any, wanted: Any, told: str
) -> None:
    with pytest.raises(SchemaMismatch, match=f"'x' is .*{told}"):
        cast_exactly(column(values, given), pa.field("x", wanted))


def test_decimal_casts_to_nearest_float() -> None:
    prices = [Decimal(cents) / 100 for cents in range(35_000, 36_000)]
    given = column(prices, pa.decimal128(9, 2))
    for cast in (cast_exactly, cast_computed):
        assert cast(given, pa.field("x", pa.float64())).to_pylist() == list(map(float, prices))


@pytest.mark.parametrize("kind", [pa.decimal128, pa.decimal256])
@pytest.mark.parametrize(
    ("text", "scale"),
    [
        ("0.1", 18),
        ("123.456", 15),
        ("123.456", 20),
        ("0.10000000000000000555", 20),  # digits that the float has beyond its shortest
        (str(2**60), 0),
        (str(10**23), 0),
    ],
)
def test_decimal_is_accepted_if_float_prints_as_it(text: str, scale: int, kind: Any) -> None:
    made = cast_exactly(column([Decimal(text)], kind(38, scale)), pa.field("x", pa.float64()))
    assert made.to_pylist() == [float(text)]


def test_float_casts_to_shortest_decimal() -> None:
    floats = [0.1, 123.456, 1e20, 1e-16, -0.7]
    for kind in (pa.float64(), pa.float32()):
        made = cast_exactly(column(floats, kind), pa.field("x", pa.decimal128(38, 16)))
        assert made.to_pylist() == [Decimal(str(each)) for each in floats]


def test_whole_numbers_of_any_size_become_decimals() -> None:
    most = 2**64 - 1
    made = cast_exactly(column([most], pa.uint64()), pa.field("x", pa.decimal128(38, 18)))
    assert made.to_pylist() == [most]


def test_local_times_are_days_at_midnight_alone() -> None:
    days = pa.field("x", pa.date32())
    made = cast_exactly(column([MIDNIGHT, None], pa.timestamp("ns")), days)
    assert made.to_pylist() == [DAY, None]
    with pytest.raises(SchemaMismatch, match="12, 0"):
        cast_exactly(column([MIDNIGHT, NOON], pa.timestamp("us")), days)
    with pytest.raises(SchemaMismatch, match="not compatible"):
        cast_exactly(column([MIDNIGHT], pa.timestamp("us", "UTC")), days)


def test_times_of_a_zone_are_not_taken_for_local_ones_unless_they_have_the_same_digits() -> None:
    local = pa.field("x", pa.timestamp("us"))
    for zone in ("UTC", "+00:00"):
        made = cast_exactly(column([NOON], pa.timestamp("us", zone)), local)
        assert made.to_pylist() == [NOON]
    rome = column([NOON], pa.timestamp("us", "Europe/Rome"))
    nested = pa.chunked_array([pa.array([[NOON]], pa.list_(rome.type))])
    with pytest.raises(SchemaMismatch, match=r"'x'.*has a time zone.*local_timestamp"):
        cast_exactly(rome, local)
    with pytest.raises(SchemaMismatch, match=r"x.element has a time zone"):
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
    with pytest.raises(SchemaMismatch, match="not compatible"):
        cast_computed(column([1]), days)


@pytest.mark.parametrize(
    ("value", "kind", "made"),
    [
        (3.0, pa.int64(), 3),
        (1, pa.float32(), 1.0),
        (NAN, pa.float32(), NAN),
        (None, pa.int64(), None),
        (MIDNIGHT, pa.date32(), DAY),
        (Decimal("0.3"), pa.float64(), 0.3),
        (0.1, CENTS, Decimal("0.10")),
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


def test_float_literal_is_rounded() -> None:
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
        (1.125, CENTS),
        (NAN, CENTS),
        (Decimal("NaN"), pa.float64()),
        (2.0**53, pa.int64()),
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


def test_exact_cast_names_time_outside_python_range() -> None:
    far = pa.chunked_array([pa.array([2**62], pa.timestamp("s"))])
    with pytest.raises(SchemaMismatch, match=r"column 'at' is timestamp\[s\]"):
        cast_exactly(far, pa.field("at", pa.timestamp("us")))


@pytest.mark.parametrize(
    ("value", "given", "hint"),
    [
        ("123456.78", pa.decimal128(10, 2), "'decimal(10,2)'"),
        ("1.2345", pa.decimal128(6, 4), "'decimal(7,4)'"),
        ("1" * 36 + ".5", pa.decimal128(38, 1), "Cast the column before writing"),
    ],
)
def test_decimal_of_more_digits_is_told_how_to_widen(
    value: str, given: pa.DataType, hint: str
) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        cast_exactly(column([Decimal(value)], given), pa.field("d", pa.decimal128(5, 2)))
    assert hint in caught.value.hint
    assert ("table.alter().change_type('d', " in caught.value.hint) == ("decimal" in hint)
