from __future__ import annotations

import datetime
import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.assignments import set_value
from pyhudi.schema.computed_columns import Names, project
from pyhudi.schema.predicate_parser import parse_where
from tests.unit.test_predicate_parser import in_spark

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", "y", None], "f": [1.5, 2.5, None]})
FIELDS: dict[tuple[str, ...], pa.Field] = {(field.name,): field for field in TABLE.schema}
NAMES: Names = {**FIELDS, ("t", "a"): FIELDS["a",]}
DOUBLE: Names = {("d",): pa.field("d", pa.float64())}


def value_of(value: Any, kind: pa.DataType) -> list[Any]:
    expression = pickle.loads(pickle.dumps(set_value(value, kind, NAMES, "set 'x'")))
    found = project(TABLE, {"x": expression}).column("x")
    assert found.type == kind
    return list(found.to_pylist())


@pytest.mark.parametrize(
    ("text", "kind", "wanted"),
    [
        ("a + 1", pa.int64(), [2, 3, 4]),
        ("t.a * -2", pa.int64(), [-2, -4, -6]),
        ("a / 2", pa.float64(), [0.5, 1.0, 1.5]),
        ("b || '!'", pa.string(), ["x!", "y!", None]),
        ("COALESCE(upper(b), 'none')", pa.string(), ["X", "Y", "none"]),
        ("CASE WHEN f > 2 THEN 'big' WHEN f IS NULL THEN 'none' END", pa.string(),
         [None, "big", "none"]),
        ("CASE WHEN NOT (a = 1 OR a > 2) THEN f ELSE 0 END", pa.float64(), [0.0, 2.5, 0.0]),
        ("CAST(a AS STRING)", pa.string(), ["1", "2", "3"]),
        ("NULL", pa.int32(), [None] * 3),
        ("'2020-02-01'", pa.date32(), [datetime.date(2020, 2, 1)] * 3),
    ],
)  # fmt: skip
def test_sql_gives_values_in_the_type_of_the_column(
    text: str, kind: pa.DataType, wanted: list[Any]
) -> None:
    assert value_of(text, kind) == wanted


UTC = datetime.timezone.utc
MORNING = datetime.datetime(2024, 1, 1, 10, tzinfo=UTC)
DIGITS = Decimal("12345678901234567.89")


@pytest.mark.parametrize(
    ("text", "kind", "wanted"),
    [
        ("12345678901234567.89", pa.decimal128(20, 2), DIGITS),
        ("-12345678901234567.89", pa.decimal128(20, 2), -DIGITS),
        ("coalesce(NULL, 12345678901234567.89)", pa.decimal128(20, 2), DIGITS),
        ("9007199254740993.0", pa.int64(), 2**53 + 1),
        ("coalesce(9007199254740993, 0.0)", pa.int64(), 2**53 + 1),
        ("0.1 + 0.2", pa.float64(), 0.3),
        ("'2024-01-01 10:00:00'", pa.timestamp("us", "UTC"), MORNING),
        ("'2024-01-01T12:00:00+02:00'", pa.timestamp("us", "UTC"), MORNING),
        ("'2024-01-01 10:00:00'", pa.timestamp("us"), MORNING.replace(tzinfo=None)),
        ("'10:00:00'", pa.time64("us"), datetime.time(10)),
        ("1.50", pa.string(), "1.50"),
    ],
)
def test_set_keeps_literal_digits(text: str, kind: pa.DataType, wanted: Any) -> None:
    assert value_of(text, kind) == [wanted] * 3


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("f * 1", pa.string()),
        ("f / 0", pa.string()),
        ("date_trunc('day', TIMESTAMP '2024-01-01 10:00:00')", pa.string()),
        ("coalesce(CAST(a AS DECIMAL(20,8)), 1)", pa.string()),
        (pc.field("f") * 1, pa.string()),
        ("'0x1F'", pa.int64()),
        ("concat('0x', a::string)", pa.int32()),
        ("'10 o''clock'", pa.time64("us")),
        ("'2024-01-01T12:00:00+02:00'", pa.timestamp("us")),
    ],
)
def test_set_refuses_values_spark_formats_differently(text: Any, kind: pa.DataType) -> None:
    with pytest.raises(SchemaMismatch):
        value_of(text, kind)


def test_fields_of_structs_are_columns_as_they_stand() -> None:
    inner = pa.array([{"x": 1, "n": {"q": 0.1}}, None], pa.struct({"x": pa.int32(), "n": POINT}))
    table = pa.table({"st": inner, "source.st": inner})
    plain, of_source = (table.schema.field(number) for number in (0, 1))
    names: Names = {("st",): plain, ("source", "st"): of_source, ("source",): plain}

    def values(text: str, kind: pa.DataType) -> list[Any]:
        return list(project(table, {"v": set_value(text, kind, names, "set 'v'")})["v"].to_pylist())

    assert values("st.x + 1", pa.int64()) == [2, None]
    assert values("source.st.n.q", pa.float64()) == [0.1, None]
    assert values("source.x", pa.int64()) == [1, None]
    with pytest.raises(SchemaMismatch, match=r"0\.1"):
        values("st.n.q", pa.float32())
    with pytest.raises(SchemaMismatch, match=r"Did you mean 'st\.n\.q'"):
        values("st.n.Q", pa.float64())


POINT = pa.struct({"q": pa.float64()})


def test_other_values_are_literals() -> None:
    assert value_of(5, pa.float64()) == [5.0] * 3
    assert value_of(None, pa.string()) == [None] * 3
    assert value_of(pc.field("a") + 1, pa.int32()) == [2, 3, 4]


@pytest.mark.parametrize(
    "text", ["sum(a)", "a; b", "(select 1)", "a ->> 'x'", "CASE a WHEN 1 THEN 2 END"]
)
def test_set_refuses_unsupported_sql(text: str) -> None:
    with pytest.raises(ConfigError):
        value_of(text, pa.int64())


def test_values_that_do_not_fit_are_refused() -> None:
    for value in ("unknown + 1", "b || 1", "b + 1"):
        with pytest.raises(SchemaMismatch):
            value_of(value, pa.int64())
    with pytest.raises(SchemaMismatch):
        value_of(object(), pa.int64())
    with pytest.raises(SchemaMismatch):
        value_of("f", pa.int64())
    with pytest.raises(SchemaMismatch, match="overflow"):
        value_of("a + 9223372036854775807", pa.int64())


def test_set_refuses_value_that_would_change() -> None:
    for value in (1.5, "a / 2", "1.5", "'1.5'", pc.field("f")):
        with pytest.raises(SchemaMismatch, match=r"1\.5|0\.5"):
            value_of(value, pa.int64())
    assert value_of("a * 2.0", pa.int64()) == [2, 4, 6]
    for value in (1e300, "1e300", "f * 1e300"):
        with pytest.raises(SchemaMismatch, match=r"1\.?5?e\+300"):
            value_of(value, pa.float32())
    noon = datetime.datetime.combine(datetime.date(2024, 5, 1), datetime.time(12))
    with pytest.raises(SchemaMismatch, match="12, 0"):
        value_of(noon, pa.date32())


def test_floats_are_rounded_unless_they_are_another_column() -> None:
    tenths = pa.table({"d": [0.1]})
    for value in (0.1, "0.1", "d * 1", pc.field("d") * 1):
        made = set_value(value, pa.float32(), DOUBLE, "set 'x'")
        assert project(tenths, {"x": made}).column("x").to_pylist() == [pytest.approx(0.1)]
    for value in ("d", "(d)", pc.field("d")):
        with pytest.raises(SchemaMismatch, match=r"'x' is double, the table has float: 0\.1"):
            project(tenths, {"x": set_value(value, pa.float32(), DOUBLE, "set 'x'")})


NAN = float("nan")
FLOATS = (None, NAN, float("inf"), 1.5, 0.0, -0.0, -1.5)
PAIRS = [(a, b) for a in FLOATS for b in FLOATS]


@pytest.mark.parametrize("kinds", [(pa.float64(), pa.float64()), (pa.float32(), pa.float64())])
@pytest.mark.parametrize("op", ["=", "<>", "<", "<=", ">", ">="])
def test_floating_numbers_compare_as_in_filters(op: str, kinds: tuple[Any, Any]) -> None:
    left, right = zip(*PAIRS, strict=True)
    table = pa.table({"a": pa.array(left, kinds[0]), "b": pa.array(right, kinds[1])})
    names: Names = {(field.name,): field for field in table.schema}
    wanted = [None if b is None else in_spark(op, a, b) for a, b in PAIRS]

    def outcome(text: str) -> list[Any]:
        made = set_value(text, pa.bool_(), names, "set 'x'")
        found = project(table, {"x": made}).column("x")
        return list(found.to_pylist())

    assert outcome(f"a {op} b") == wanted
    assert outcome(f"NOT (a {op} b)") == [None if one is None else not one for one in wanted]
    assert outcome(f"(a * 1) {op} COALESCE(b, b)") == wanted
    cases = [True if one else None if one is None else False for one in wanted]
    assert outcome(f"CASE WHEN a {op} b THEN true WHEN NOT a {op} b THEN false END") == cases


def test_floating_numbers_compare_with_what_is_written_down() -> None:
    assert value_of("f < CAST('NaN' AS DOUBLE)", pa.bool_()) == [True, True, None]
    assert value_of("CAST('NaN' AS DOUBLE) = CAST('NaN' AS FLOAT)", pa.bool_()) == [True] * 3
    assert value_of("CAST('NaN' AS DOUBLE) > a", pa.bool_()) == [True] * 3
    assert value_of("-0.0 = a - a", pa.bool_()) == [True] * 3
    assert value_of("b = 'x'", pa.bool_()) == [True, False, None]


def test_comparisons_in_comparisons_are_bounded() -> None:
    text = "f"
    for _ in range(20):
        text = f"CASE WHEN {text} > 1 THEN f END"
    with pytest.raises(ConfigError, match="nested too deep"):
        value_of(text, pa.float64())


def test_set_suggests_column_of_other_case() -> None:
    with pytest.raises(SchemaMismatch, match=r"Did you mean 't\.a'"):
        set_value("T.A", pa.int64(), NAMES, "set 'x'")


STATEMENTS = [
    "set x",
    "show tables",
    "grant x",
    "explain x",
    "alter x",
    "drop table x",
    "SET a = b",
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_text_that_begins_a_statement_is_an_error_alone(
    text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """sqlglot printed a warning about text that lacks its quotes."""
    with pytest.raises(ConfigError, match="set 'x'"):
        set_value(text, pa.string(), NAMES, "set 'x'")
    with pytest.raises(ConfigError, match="where"):
        parse_where(text, TABLE.schema)
    assert capfd.readouterr() == ("", "")


def test_unquoted_set_is_told_to_quote_text() -> None:
    with pytest.raises(ConfigError, match="begins a statement") as caught:
        set_value("set in stone", pa.string(), NAMES, "set 'x'")
    assert "Quote strings with single quotes" in caught.value.hint
