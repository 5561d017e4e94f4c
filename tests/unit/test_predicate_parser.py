"""Row filters: what callers may write, SQL's logic, literals in the columns' types."""

from __future__ import annotations

import math
import pickle
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.predicate_parser import parse_where

UTC = timezone.utc
TABLE = pa.table(
    {
        "id": pa.array([0, 1, 2, 3, 4], pa.int32()),
        "n": pa.array([1, 2, None, 4, 5], pa.int64()),
        "name": pa.array(["a", "B%", None, "ab", ""], pa.string()),
        "day": pa.array([date(2024, 2, 28), date(2024, 2, 29), None, None, date(1960, 1, 1)]),
        "at": pa.array(
            [datetime(2024, 1, day, 10, tzinfo=UTC) if day < 4 else None for day in range(1, 6)],
            pa.timestamp("us", "UTC"),
        ),
        "local": pa.array([datetime(2024, 1, d, 10) for d in range(1, 6)], pa.timestamp("us")),  # noqa: DTZ001
        "amount": pa.array(
            [Decimal("1.50"), None, Decimal("-2.00"), Decimal(3), Decimal(4)], pa.decimal128(10, 2)
        ),
        "flag": pa.array([True, False, None, True, False]),
        "x": pa.array([0.5, float("nan"), None, 2.0, -1.0], pa.float64()),
        "s": pa.array(
            [{"q": 1}, {"q": None}, None, {"q": 4}, {"q": 5}], pa.struct([("q", pa.int32())])
        ),
        "raw": pa.array([b"\x00", b"\x01", None, b"", b"\x02"], pa.binary()),
        "odd name": pa.array([1, 2, 3, 4, 5], pa.int32()),
    }
)


def ids(where: Any) -> list[int]:
    found = TABLE.filter(parse_where(where, TABLE.schema).expression)
    return [int(value) for value in found["id"].to_pylist()]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("n > 1 AND n < 5", [1, 3]),
        ("1 < n", [1, 3, 4]),
        ("n = 1 OR name = 'ab'", [0, 3]),
        ("n <> 2", [0, 3, 4]),
        ("n == 2", [1]),
        ("NOT n = 2", [0, 3, 4]),
        ("n IN (1, 5)", [0, 4]),
        ("n NOT IN (1, 5)", [1, 3]),
        ("n NOT IN (1, NULL)", []),
        ("n IN (1, NULL)", [0]),
        ("n = NULL", []),
        ("NOT (n = NULL)", []),
        ("n IS NULL", [2]),
        ("n IS NOT NULL AND (n = 1 OR n = 2)", [0, 1]),
        ("n <=> 2", [1]),
        ("n IS NOT DISTINCT FROM NULL", [2]),
        ("n BETWEEN 2 AND 4", [1, 3]),
        ("n NOT BETWEEN 2 AND 4", [0, 4]),
        ("flag", [0, 3]),
        ("NOT flag", [1, 4]),
        ("flag IS TRUE", [0, 3]),
        ("1 = 1 AND flag", [0, 3]),
        ("7 <> 7.0 OR 'a' > 'b' OR flag", [0, 3]),
        ("NOT (1 = NULL)", []),
        ("1 = '1' AND flag", [0, 3]),
        ("CAST('NaN' AS DOUBLE) = CAST('NaN' AS DOUBLE) AND flag", [0, 3]),
        ("0.1 = CAST('0.1' AS DOUBLE) AND flag", [0, 3]),
        ("DATE '2024-01-02' > TIMESTAMP '2024-01-01 10:00:00' AND flag", [0, 3]),
        ("flag IS NOT TRUE", [1, 2, 4]),
        ("name LIKE 'a%'", [0, 3]),
        ("name NOT LIKE 'a%'", [1, 4]),
        ("name = ''", [4]),
        ("day = '2024-02-29'", [1]),
        ("day < DATE '2024-01-01'", [4]),
        ("at >= '2024-01-02 10:00:00'", [1, 2]),
        ("at = TIMESTAMP '2024-01-02T11:00:00+01:00'", [1]),
        ("at > '2024-01-02'", [1, 2]),
        ("local <= '2024-01-02 10:00:00'", [0, 1]),
        ("amount = 1.5", [0]),
        ("amount > 1.499", [0, 3, 4]),
        ("amount < -1", [2]),
        ("n > 1.5", [1, 3, 4]),
        ("n >= 1.5", [1, 3, 4]),
        ("n < 2.5", [0, 1]),
        ("n <= -1.5", []),
        ("n > -0.5", [0, 1, 3, 4]),
        ("n = 1.5", []),
        ("n <> 1.5", [0, 1, 3, 4]),
        ("n IN (1.5, 2)", [1]),
        ("NOT n IN (1.5, 2)", [0, 3, 4]),
        ("n < 1e300", [0, 1, 3, 4]),
        ("n > 1e300", []),
        ("n > 'inf'", []),
        ("n <> 'nan'", [0, 1, 3, 4]),
        ("n < 'nan'", [0, 1, 3, 4]),
        ("n >= 'nan'", []),
        ("n = 1 OR n = NULL", [0]),
        ("NOT (n = 1 OR n = NULL)", []),
        ("NOT (n = 1 OR n = 2)", [3, 4]),
        ("n = 1 OR name = 'ab' OR n = 5", [0, 3, 4]),
        ("id = 99999999999999999999", []),
        ("id < 3000000000", [0, 1, 2, 3, 4]),
        ("id > -3000000000", [0, 1, 2, 3, 4]),
        ("amount <= 1.501", [0, 2]),
        ("amount = 1.501", []),
        ("amount < 1e30", [0, 2, 3, 4]),
        ("amount > -2.001", [0, 2, 3, 4]),
        ("n = '4'", [3]),
        ("x > 0", [0, 1, 3]),
        ("s.q = 4", [3]),
        ("s.q IS NULL", [1, 2]),
        ('"odd name" = 2', [1]),
        ("true", [0, 1, 2, 3, 4]),
        ("n = 1 -- OR true", [0]),
        ([("n", ">", 1), ("n", "<", 5)], [1, 3]),
        ([[("n", "=", 1)], [("n", "==", 5)]], [0, 4]),
        ([("n", "in", [1, 2])], [0, 1]),
        ([("n", "not in", {1, 2})], [3, 4]),
        ([("n", "is null")], [2]),
        ([("n", "IS NOT NULL", None)], [0, 1, 3, 4]),
        ([("at", "<", datetime(2024, 1, 2, tzinfo=UTC))], [0]),
        ([("day", "=", date(2024, 2, 28))], [0]),
        ([("raw", "=", b"\x01")], [1]),
        ([("amount", ">=", Decimal("3.00"))], [3, 4]),
        ((("n", ">", 4),), [4]),
        (pc.field("n") > 2, [3, 4]),
        (pc.field("n").isin([1]) | pc.field("flag"), [0, 3]),
    ],
)
def test_keeps_the_rows_that_sql_keeps(where: Any, expected: list[int]) -> None:
    assert ids(where) == expected


FLOATS = [float("nan"), float("-inf"), -1.0, -0.0, 0.0, 1.0, float("inf"), None]
LITERALS = ("'NaN'", "'-inf'", "-1", "-0.0", "0", "0.5", "1", "'inf'")


def in_spark(op: str, value: float | None, literal: float) -> bool | None:
    """A comparison as Spark's SQL has it: NaN equals NaN and is greater than any other number."""
    if value is None:
        return None
    a, b = ((math.isnan(one), 0.0 if math.isnan(one) else one) for one in (value, literal))
    outcomes = {"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}
    return outcomes[op]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("literal", LITERALS)
@pytest.mark.parametrize("op", ["=", "<>", "<", "<=", ">", ">="])
def test_floating_numbers_compare_as_in_spark(op: str, literal: str, kind: Any) -> None:
    table = pa.table({"f": pa.array(FLOATS, kind), "row": range(len(FLOATS))})
    outcomes = [in_spark(op, value, float(literal.strip("'"))) for value in FLOATS]

    def rows(where: str) -> list[int]:
        expression = parse_where(where, table.schema).expression
        return [int(row) for row in table.filter(expression)["row"].to_pylist()]

    hit = [row for row, outcome in enumerate(outcomes) if outcome]
    missed = [row for row, outcome in enumerate(outcomes) if outcome is False]
    assert rows(f"f {op} {literal}") == hit
    assert rows(f"NOT f {op} {literal}") == missed
    if op == "=":
        assert rows(f"f IN (7, {literal})") == rows(f"f = {literal} OR f = 7") == hit
        assert rows(f"f NOT IN ({literal})") == missed
        assert rows(f"f IN ({literal}, NULL)") == hit
        assert rows(f"f NOT IN ({literal}, NULL)") == []
        both = sorted({*hit, *rows("f = 'NaN'"), *rows("f = 0")})
        assert rows(f"f IN ({literal}, 'NaN', 0)") == both


@pytest.mark.parametrize("literal", ["0.1", "-0.1", "0.3", "16777217", "1e39", "-1e39", "1e-60"])
@pytest.mark.parametrize("op", ["=", "<>", "<", "<=", ">", ">="])
def test_narrow_floats_compare_with_what_is_written_as_doubles(op: str, literal: str) -> None:
    given = [*FLOATS, 0.1, -0.1, 0.3, 16777217.0, 16777218.0]
    table = pa.table({"f": pa.array(given, pa.float32()), "row": range(len(given))})
    values = table["f"].to_pylist()
    hit = [row for row, value in enumerate(values) if in_spark(op, value, float(literal))]
    for where in (f"f {op} {literal}", f"f {op} '{literal}'", [("f", op, float(literal))]):
        found = parse_where(where, table.schema)
        assert table.filter(found.expression)["row"].to_pylist() == hit
        for _, told, (bound,) in found.conjuncts:
            assert all(in_spark(told, values[row], bound.as_py()) for row in hit)
    if op == "=":
        found = parse_where(f"f IN (7, {literal})", table.schema)
        assert table.filter(found.expression)["row"].to_pylist() == hit


TEXTS = [
    "", "C:\\Users", "C:\\Users\\x", "a_b", "axb", "a%b", "100%", "x\\", "a\nb", "(a.b)*", "ÄB",
]  # fmt: skip
PATTERNS = [
    "C:\\\\Users", "C:\\\\Users%", "%\\\\Users", "%\\\\Users%", "C:\\\\User_", "%\\\\", "a\\_b",
    "a\\_%", "%\\_b", "%\\_%", "100\\%", "%\\%", "%\\%%", "a_b", "(a.b)*", "(a.b)*%\\%",
    "(a\\_b)*", "ä\\_", "ä_", "", "%",
]  # fmt: skip


def likes(text: str, pattern: str) -> bool:
    """SQL's LIKE, letter by letter."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return likes(text, pattern[1:]) or bool(text and likes(text[1:], pattern))
    wanted, rest = (pattern[1], pattern[2:]) if pattern[0] == "\\" else (pattern[0], pattern[1:])
    return bool(text) and (pattern[0] == "_" or text[0] == wanted) and likes(text[1:], rest)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_may_have_backslashes_anywhere(pattern: str) -> None:
    table = pa.table({"s": TEXTS})
    for like, lower in (("LIKE", str), ("ILIKE", str.lower)):
        wanted = [text for text in TEXTS if likes(lower(text), lower(pattern))]
        for side in ("s", "concat(s, '')"):
            found = parse_where(f"{side} {like} '{pattern}'", table.schema)
            assert table.filter(found.expression)["s"].to_pylist() == wanted


@pytest.mark.parametrize("pattern", ["C:\\Users", "C:\\Users%", "a\\"])
def test_parse_where_refuses_meaningless_backslash(pattern: str) -> None:
    for where in (f"name LIKE '{pattern}'", f"name ILIKE '{pattern}'"):
        with pytest.raises(ConfigError, match="two backslashes"):
            parse_where(where, TABLE.schema)


def test_parse_where_date_is_midnight() -> None:
    noon = "CAST('2024-01-02 12:34:56' AS DATE)"
    assert ids(f"at >= {noon}") == [1, 2]
    assert ids(f"local < {noon}") == [0]
    assert ids(f"day > CAST({noon} AS TIMESTAMP)") == [0, 1]
    assert ids("day IN (DATE '2024-02-29', TIMESTAMP '2024-02-28 00:00:00')") == [0, 1]
    ((_, op, values),) = parse_where(f"at >= {noon}", TABLE.schema).conjuncts
    assert (op, values.to_pylist()) == (">=", [datetime(2024, 1, 2, tzinfo=UTC)])


@pytest.mark.parametrize(
    "where",
    [
        "name = DATE '2024-01-02'",
        "name > TIMESTAMP '2024-01-02 00:00:00'",
        "name IN ('a', DATE '2024-01-02')",
        "lower(name) = DATE '2024-01-02'",
        [("name", "<", date(2024, 1, 2))],
        "n = '1_0'",
        "n = '\uff11'",
    ],
)
def test_parse_where_refuses_other_types(where: Any) -> None:
    with pytest.raises(SchemaMismatch):
        parse_where(where, TABLE.schema)


def test_moments_beyond_the_years_of_python_are_compared() -> None:
    assert ids("at >= '0001-01-01T00:00:00+05:00'") == [0, 1, 2]
    assert ids("at < '9999-12-31T23:00:00-05:00'") == [0, 1, 2]
    assert ids("at IN ('0001-01-01T00:00:00+05:00', '2024-01-01 10:00:00')") == [0]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ([("x", ">", np.float64(0.25))], [0, 1, 3]),
        ([("n", "=", np.int64(2))], [1]),
        ([("flag", "=", np.bool_(True))], [0, 3]),
        ([("day", "=", np.datetime64("2024-02-29"))], [1]),
        ([("local", "<=", np.datetime64("2024-01-02T10:00:00"))], [0, 1]),
        ([("name", "=", np.str_("ab"))], [3]),
        ([("n", "in", np.array([1, 5]))], [0, 4]),
        ([("x", "in", np.array([0.5, math.nan]))], [0, 1]),
        ([("name", "in", pa.array(["a", "ab"]))], [0, 3]),
        ([("n", "not in", pa.array([1, None]))], []),
        ([("amount", "=", pa.scalar(Decimal("1.50")))], [0]),
    ],
)
def test_tuples_take_scalars_and_arrays_of_numpy_and_arrow(where: Any, expected: list[int]) -> None:
    assert ids(where) == expected


def test_parse_where_day_refuses_hours() -> None:
    with pytest.raises(ConfigError):
        ids([("day", "<", pa.scalar(86_400_001, pa.date64()))])


@pytest.mark.parametrize(
    "late",
    [
        pc.field("day") < pc.scalar(pa.scalar(2**31 - 1, pa.date32())),
        pc.field("local") < pc.scalar(pa.scalar(2**60, pa.timestamp("us"))),
        ~pc.field("day").isin(pa.array([2**31 - 1], pa.date32())),
        ~pc.field("day").isin(pa.array(range(2**31 - 2000, 2**31 - 1), pa.date32())),
    ],
    ids=str,
)
def test_parse_where_compares_far_dates_in_arrow(late: pc.Expression) -> None:
    assert ids(late) == TABLE.filter(late)["id"].to_pylist() != []


def test_parse_where_reports_dates_outside_python_range() -> None:
    with pytest.raises(ConfigError, match="cannot be converted to Python"):
        ids([("day", "<", pa.scalar(2**31 - 1, pa.date32()))])


@pytest.mark.parametrize(
    "where",
    [
        "t = '00:00:00+05:00'",
        [("t", "=", time(0, tzinfo=UTC))],
        [("t", "in", [time(0, tzinfo=UTC)])],
    ],
)
def test_parse_where_time_of_day_has_no_zone(where: Any) -> None:
    with pytest.raises(SchemaMismatch):
        parse_where(where, pa.schema([("t", pa.time64("us"))]))


def test_parse_where_reports_missing_arrow_function() -> None:
    with pytest.raises(SchemaMismatch, match="and_"):
        parse_where(pc.and_(pc.field("flag"), pc.field("flag")), TABLE.schema)


def test_parse_where_keeps_every_digit_of_time() -> None:
    pandas = pytest.importorskip("pandas")
    later = pandas.Timestamp("2024-01-01 10:00:00.000000001")
    with pytest.raises(SchemaMismatch):
        ids([("local", "=", later)])


def test_floating_fields_of_structs_compare_alike() -> None:
    image = pa.array([{"f": value} for value in FLOATS], pa.struct([("f", pa.float64())]))
    table = pa.table({"after": image, "row": range(len(FLOATS))})
    expression = parse_where("after.f > 0.5 OR after.f IN (0)", table.schema).expression
    assert table.filter(expression)["row"].to_pylist() == [0, 3, 4, 5, 6]


class TestBounds:
    """Filters that are larger than any sensible one end in rows or in an error that names it."""

    @pytest.mark.slow
    def test_many_equalities_are_one_list(self) -> None:
        found = parse_where(" OR ".join(f"n = {n}" for n in range(5, 4000)), TABLE.schema)
        assert TABLE.filter(found.expression)["id"].to_pylist() == [4]
        assert [(name, op) for name, op, _ in found.conjuncts] == [("n", "in")]
        assert ids([[("n", "=", n)] for n in range(5, 20_000)]) == [4]

    def test_parse_where_accepts_a_thousand_comparisons(self) -> None:
        assert ids(" OR ".join(f"n > {n}" for n in range(4, 1004))) == [4]
        assert ids(" AND ".join(f"n <> {n}" for n in range(4, 1004))) == [0, 1]

    @pytest.mark.parametrize("joined", [" OR ", " AND "])
    @pytest.mark.slow
    def test_parse_where_refuses_more_comparisons(self, joined: str) -> None:
        with pytest.raises(ConfigError, match="3000 comparisons") as raised:
            parse_where(joined.join(f"n > {n}" for n in range(3000)), TABLE.schema)
        assert raised.value.hint

    @pytest.mark.parametrize(
        "where",
        [
            "(" * 10_000 + "n = 1" + ")" * 10_000,
            "NOT " * 10_000 + "n = 1",
            "n = " + "- " * 10_000 + "1",
            "n IN " + "(" * 10_000 + "1" + ")" * 10_000,
        ],
    )
    def test_deep_nesting_is_refused(self, where: str) -> None:
        with pytest.raises(ConfigError, match="nested too deep") as raised:
            parse_where(where, TABLE.schema)
        assert raised.value.hint

    def test_thirty_levels_are_read(self) -> None:
        assert ids("(" * 30 + "n = 1" + ")" * 30) == [0]
        assert ids("NOT " * 30 + "n = 1") == [0]

    @pytest.mark.parametrize("sign", ["", "-"])
    @pytest.mark.parametrize("digits", ["1" * 4301, "0." + "1" * 4301])
    def test_endless_numbers_are_refused(self, sign: str, digits: str) -> None:
        with pytest.raises(ConfigError, match="digits") as raised:
            parse_where(f"n < {sign}{digits}", TABLE.schema)
        assert raised.value.hint

    def test_long_numbers_are_compared(self) -> None:
        assert ids("n < " + "9" * 400) == [0, 1, 3, 4]
        assert ids([("n", "<", 10**5000)]) == [0, 1, 3, 4]
        assert ids("amount > '" + "9" * 5000 + "'") == []
        with pytest.raises(SchemaMismatch, match="too long to print"):
            parse_where([("name", "=", 10**5000)], TABLE.schema)


@pytest.mark.parametrize(
    "where",
    [
        "n IN (SELECT 1)",
        "EXISTS (SELECT 1)",
        "n = 1; DROP TABLE t",
        "n >",
        "",
        "n BETWEEN SYMMETRIC 4 AND 2",
        [],
        [[]],
        ["n = 1"],
        [("n", "~", 1)],
        [("n", "=", None)],
        [("n", "in", "12")],
        [("n", "in", 12)],
        [("n", "=")],
        5,
        pc.field(1) > 1,
    ],
)
def test_parse_where_refuses_invalid_filter(where: Any) -> None:
    with pytest.raises(ConfigError):
        parse_where(where, TABLE.schema)


@pytest.mark.parametrize(
    "where",
    [
        "name = 5",
        "n = 'five'",
        "day = 5",
        "day = '2024-02-30'",
        "flag = 1",
        "n = true",
        "s = 1",
        "n LIKE '4'",
        "nmae = 'a'",
        "s.r = 1",
        "n.q = 1",
        [("local", "=", datetime(2024, 1, 1, tzinfo=UTC))],
        [("day", "=", datetime(2024, 1, 1, 5, tzinfo=UTC))],
        pc.field("nmae") == "a",
    ],
)
def test_parse_where_mismatch_names_column(where: Any) -> None:
    with pytest.raises(SchemaMismatch):
        parse_where(where, TABLE.schema)


def test_parse_where_unknown_column_suggests_nearest() -> None:
    with pytest.raises(SchemaMismatch, match="Did you mean 'name'"):
        parse_where("nmae = 'a'", TABLE.schema)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("n > 1 AND name = 'a'", [("n", ">", [1]), ("name", "=", ["a"])]),
        ("n IN (1, 2)", [("n", "in", [1, 2])]),
        ("n BETWEEN 1 AND 2", [("n", ">=", [1]), ("n", "<=", [2])]),
        ("n = 1 OR n = 2", [("n", "in", [1, 2])]),
        ("(n = 1 OR n IN (3, 2)) AND x < 1", [("n", "in", [1, 3, 2]), ("x", "<", [1.0])]),
        ("n = 1 OR n = NULL", []),
        ("n = 1 OR n > 2", []),
        ("n = 1 OR name = 'a'", []),
        ("NOT n = 1", []),
        ("n IN (1, NULL)", []),
        ("n > 1.5", []),
        ("n = NULL", []),
        ("x <> 1", []),
        ("x > 1", [("x", ">", [1.0])]),
        ("s.q = 1", []),
        ("day = '2024-02-29'", [("day", "=", [date(2024, 2, 29)])]),
    ],
)
def test_conjuncts_are_what_every_kept_row_meets(where: str, expected: list[Any]) -> None:
    found = parse_where(where, TABLE.schema).conjuncts
    assert [(name, op, values.to_pylist()) for name, op, values in found] == expected
    assert all(values.type == TABLE.schema.field(name).type for name, _, values in found)


def test_parse_where_columns_are_in_table_order() -> None:
    assert parse_where("name = 'a' OR n = 1", TABLE.schema).columns == ("n", "name")
    assert set(parse_where(pc.field("name") == "a", TABLE.schema).columns) >= {"name"}


def test_parse_where_filter_pickles() -> None:
    where = pickle.loads(pickle.dumps(parse_where("n IN (1, 5) AND day IS NOT NULL", TABLE.schema)))
    assert TABLE.filter(where.expression)["id"].to_pylist() == [0, 4]


@pytest.mark.parametrize(
    ("where", "meant"),
    [("NAME = 'a'", "name"), ("Day IS NULL", "day"), ("nmae LIKE 'a'", "name"), ("s.Q = 1", "s.q")],
)
def test_names_match_exactly_and_the_error_says_the_near_one(where: str, meant: str) -> None:
    with pytest.raises(SchemaMismatch, match=f"Did you mean '{meant}'"):
        parse_where(where, TABLE.schema)


def test_parse_where_prefers_exact_case() -> None:
    table = pa.table({"City": ["a", "b"], "city": ["b", "a"]})
    assert (
        table.filter(parse_where("City = 'a'", table.schema).expression)["city"][0].as_py() == "b"
    )


@pytest.mark.parametrize(
    "where", ['name = "it\'s"', "name IN ('a', \"it's\")", 'name LIKE "it\'s"']
)
def test_text_in_double_quotes_is_told_to_take_single_ones(where: str) -> None:
    with pytest.raises(ConfigError, match="Put strings into single quotes: 'it''s'"):
        parse_where(where, TABLE.schema)


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("`n` = 1", [0]),
        ("`odd name` > 3", [3, 4]),
        ("`s`.`q` = 4", [3]),
        ("`id` IN (1, 2) AND n = 2", [1]),
        ("name = '`'", []),
    ],
)
def test_parse_where_takes_names_in_backticks(where: str, wanted: list[int]) -> None:
    """As Spark's SQL writes names."""
    rows = TABLE.filter(parse_where(where, TABLE.schema).expression)
    assert rows["id"].to_pylist() == wanted


def test_parse_where_with_an_open_backtick_is_refused() -> None:
    with pytest.raises(ConfigError, match="not a SQL expression") as caught:
        parse_where("`n = 1", TABLE.schema)
    assert "double quotes or backticks" in caught.value.hint
