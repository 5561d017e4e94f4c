"""Filters with functions: what Spark's SQL keeps of the same rows, what fails, what prunes."""

from __future__ import annotations

import json
import pickle
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.assignments import set_value
from pyhudi.schema.computed_columns import Names, project
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.schema.predicates import filter_rows
from tests.helpers.sql_function_cases import COLUMNS, filters, rows

CHANGES = {"hoodie.table.cdc.enabled": "true"}
FIXTURE = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "where_functions.json").read_text(encoding="utf-8")
)
TYPES = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "boolean": pa.bool_(),
    "decimal(10,2)": pa.decimal128(10, 2),
    "decimal(8,3)": pa.decimal128(8, 3),
    "array<string>": pa.list_(pa.string()),
    "array<int>": pa.list_(pa.int32()),
    "array<double>": pa.list_(pa.float64()),
    "array<decimal(8,2)>": pa.list_(pa.decimal128(8, 2)),
    "map<string,int>": pa.map_(pa.string(), pa.int32()),
}
TABLE = pa.Table.from_pylist(
    rows(), pa.schema([(name, TYPES[kind]) for name, kind in COLUMNS.items()])
)


def ids(where: str) -> list[int]:
    found = pickle.loads(pickle.dumps(parse_where(where, TABLE.schema)))
    kept = filter_rows(TABLE.select([*{"id": 0, **dict.fromkeys(found.columns)}]), found)
    return [int(value) for value in kept["id"].to_pylist()]


@pytest.mark.parametrize("where", FIXTURE["cases"])
def test_keeps_the_rows_that_spark_keeps(where: str) -> None:
    kept, missed = FIXTURE["cases"][where]
    assert ids(where) == kept
    assert ids(f"NOT ({where})") == missed


def test_parse_where_fixture_matches_filters() -> None:
    assert list(FIXTURE["cases"]) == filters()
    assert FIXTURE["spark"].startswith("3.5.")


@pytest.mark.parametrize("where", ["lower(name) = 'osaka'", "n % m = 1", "greatest(x, y) = 2"])
def test_new_values_are_computed_alike(where: str) -> None:
    names: Names = {(field.name,): field for field in TABLE.schema}
    made = set_value(where, pa.bool_(), names, "set 'flag'")
    found = project(TABLE, {"id": pc.field("id"), "held": made})
    assert found.filter(pc.field("held"))["id"].to_pylist() == ids(where)


@pytest.mark.parametrize(
    ("where", "same"),
    [
        ("starts_with(name, 'os')", "name LIKE 'os%'"),
        ("ends_with(name, 'ka')", "name LIKE '%ka'"),
        ("n::double / 4 = 1.75", "n = 7"),
        ("ltrim('ab', name) = 'x'", "trim(LEADING 'ab' FROM name) = 'x'"),
        ("rtrim('aks', name) = 'o'", "name = 'osaka'"),
        ("trim('oa', name) = 'sak'", "trim('oa' FROM name) = 'sak'"),
        ("CAST(amount AS DOUBLE) IN (0.1e0, 0.3e0, 1.1e0)", "amount IN (0.1, 0.3, 1.1)"),
        (
            "if(name = 'x', CAST('2024-02-29 ' || name AS DATE), NULL) = DATE '2024-02-29'",
            "name = 'x'",
        ),
        ("name::string = 'x'", "name = 'x'"),
        ("least(at, day) = at", "at <= day OR at IS NOT NULL AND day IS NULL"),
        ("greatest(at, day) = at", "at >= day OR at IS NOT NULL AND day IS NULL"),
        ("abs(x) IN (0.5, 'NaN')", "x IN (0.5, -0.5, 'NaN')"),
        ("greatest(n, m) = '7'", "greatest(n, m) = 7"),
        ("at > day AND year(day) = '2024'", "at > day AND year(day) = 2024"),
        ("CASE WHEN flag THEN lower(name) END LIKE 'o%'", "flag AND lower(name) LIKE 'o%'"),
        ("upper('ß' || name) = 'SSX'", "name = 'x' OR name = 'X'"),
    ],
)
def test_parse_where_refuses_functions_spark_formats_differently(where: str, same: str) -> None:
    assert ids(where) == ids(same)
    assert ids(where)


@pytest.mark.parametrize(
    ("start", "length", "kept"),
    [
        (1, 10**20, "abc"),
        (2, 2**63 - 1, "bc"),
        (10**20, 1, ""),
        (-(2**63), 2**63 - 1, "ab"),
        (-(2**63), 2**63 + 1, "abc"),
        (-(10**20), 1, ""),
        (-2, 10**20, "bc"),
    ],
)
def test_parse_where_substring_accepts_any_numbers(start: int, length: int, kept: str) -> None:
    table = pa.table({"name": ["abc"]})
    where = parse_where(f"substring(name, {start}, {length}) = '{kept}'", table.schema)
    assert filter_rows(table, where).num_rows == 1


def test_fields_of_structs_compare_with_each_other() -> None:
    kind = pa.struct([("fare", pa.int32())])
    images = pa.table(
        {
            "before": pa.array([{"fare": 1}, {"fare": 5}, None], kind),
            "after": pa.array([{"fare": 2}, {"fare": 4}, {"fare": 9}], kind),
        }
    )
    where = parse_where("after.fare > before.fare OR before.fare + 4 = 9", images.schema)
    assert where.columns == ("before", "after")
    assert filter_rows(images, where)["after"].to_pylist() == [{"fare": 2}, {"fare": 4}]


BIG = 2**53 + 1


@pytest.mark.parametrize(
    "value",
    [
        "coalesce(n, 0.0)",
        "greatest(n, 0.5)",
        "least(n, 99999999999999999999)",
        "if(n > 0, n, 0.5)",
        "CASE WHEN n > 0 THEN n ELSE 0.5 END",
        "CASE WHEN n < 0 THEN 0.5 ELSE coalesce(NULL, n) END",
        "nullif(n, 0.5)",
        "n + 0.0",
        f"if(n = {BIG}, {BIG}.0, 0.0)",
    ],
)
def test_numbers_with_a_point_keep_the_digits_of_whole_ones(value: str) -> None:
    table = pa.table({"n": pa.array([BIG - 1, BIG, BIG + 1], pa.int64())})
    where = parse_where(f"{value} = {BIG}", table.schema)
    assert filter_rows(table, where)["n"].to_pylist() == [BIG]


@pytest.mark.parametrize(
    "value", ["coalesce(NULL, {})", "abs(-{})", "greatest({}, 1)", "CASE WHEN true THEN {} END"]
)
def test_written_decimals_keep_their_digits(value: str) -> None:
    numbers = [Decimal("12345678901234567.89"), Decimal("12345678901234567.90")]
    table = pa.table({"d": pa.array(numbers, pa.decimal128(20, 2))})
    for number in numbers:
        where = parse_where(f"d = {value.format(number)}", table.schema)
        assert filter_rows(table, where)["d"].to_pylist() == [number]


def test_decimals_become_the_nearest_double() -> None:
    numbers = [Decimal(number).scaleb(-3) for number in range(2000)]
    table = pa.table({"d": pa.array(numbers, pa.decimal128(10, 3))})
    table = table.append_column("f", pa.array(list(map(float, numbers))))
    assert filter_rows(table, parse_where("d = f", table.schema)).num_rows == len(numbers)


class TestFailures:
    """A value that would change without a word is an error that says so."""

    @pytest.mark.parametrize(
        "where",
        [
            "big + 1 > 0",
            "big * 2 > 0",
            "big - 9 > 0",
            "-big > 0",
            "abs(big) > 1",
            "CAST(name AS INT) > 1",
            "CAST(big AS INT) > 1",
            "CAST(x AS BIGINT) > 1",
            "CAST(other AS DATE) = day",
            "CAST(other AS BOOLEAN)",
            "CAST(n AS DECIMAL(3,1)) = 1",
        ],
    )
    def test_rows_that_cannot_be_computed_fail(self, where: str) -> None:
        with pytest.raises(ConfigError, match="cannot be computed for a row") as raised:
            ids(where)
        assert raised.value.hint

    def test_branches_are_computed_for_their_rows_only(self) -> None:
        digits = "CASE WHEN name RLIKE '^[0-9]+$' THEN CAST(name AS INT) ELSE 3 END = 3"
        assert len(ids(digits)) == TABLE.num_rows
        small = "CASE WHEN big > 100 OR big < -100 THEN 0 ELSE big * 2 END"
        assert ids(f"{small} = 10") == ids("big = 5")
        assert ids("if(big < 100, CASE WHEN big > -100 THEN -big END, 1) = -5") == ids("big = 5")

    @pytest.mark.parametrize(
        "where",
        [
            "sum(n) = 1",
            "unheard_of(n) = 1",
            "1 IN (1)",
            "1 BETWEEN 0 AND 2",
            "contains(name, other)",
            "name LIKE other",
            "substring(name, n) = 'a'",
            "round(x, 2) = 1",
            "round(amount, -1) = 1",
            "date_trunc('century', at) = day",
            "name RLIKE '(?=a)'",
            "name RLIKE '[a&&b]'",
            "name LIKE 'a' ESCAPE '/'",
            "TRY_CAST(name AS INT) = 1",
            "CAST(name AS VARCHAR(3)) = 'a'",
            "CAST(name AS BINARY) = 'a'",
            "CAST(n AS DECIMAL(60,2)) = 1",
            "CASE n WHEN 1 THEN true END",
            "n = m AND n IN (SELECT 1)",
            "abs(n) IN (SELECT 1)",
            "abs(n) = (SELECT 1)",
            "day > due + INTERVAL '1 month 1 day'",
            "day > due + INTERVAL '1.5 days'",
            "day > due + INTERVAL '1 day and more'",
            "day > due + INTERVAL '1 quarter'",
            "day > due + INTERVAL n DAY",
            "day > due + INTERVAL '1-2' YEAR TO MONTH",
            "day > INTERVAL '1 day' - due",
            "day > due * INTERVAL '1 day'",
            "extract(century FROM at) = 20",
            "at > now()",
            "day > current_date - INTERVAL '1 day'",
            "array_contains([n, 1], 1)",
            "element_at(tags, 0) = 'a'",
            "tags[n] = 'a'",
            "counts[name] = 1",
            "count(*) > m",
            "row_number() OVER (ORDER BY n) = 1",
            "n & 1 = 1",
            "ltrim(name, 'a') = 'b'",
            "ltrim('a', name, 'b') = 'b'",
            "n > 9223372036854775807 + 1",
            "n > CAST('x' AS INT)",
            'lower(name) = "it\'s"',
        ],
    )
    def test_parse_where_refuses_unknown_functions(self, where: str) -> None:
        with pytest.raises(ConfigError) as raised:
            parse_where(where, TABLE.schema)
        assert raised.value.hint

    @pytest.mark.parametrize(
        "where",
        [
            "lower(n) = 'a'",
            "abs(name) = 1",
            "year(n) = 1",
            "n + name = 1",
            "n + flag = 1",
            "day + 1 = day",
            "name || n = 'a'",
            "n = name",
            "day > n",
            "greatest(n, name) = 1",
            "if(n, 1, 2) = 1",
            "if(flag, n, name) = 1",
            "lower(name)",
            "lower(nmae) = 'a'",
            "n = nmae",
            "lower(name) = 5",
            "year(day) = 'then'",
            "x % 2 = 0",
            "amount % 2 = 0",
            "CAST(x AS STRING) = '1'",
            "CAST(at AS STRING) = 'a'",
            "CAST(x AS DECIMAL(10,2)) = 1",
            "CAST(at AS BIGINT) = 1",
            "CAST(n AS DATE) = day",
            "NOT (n + 1)",
            "at > INTERVAL '1 day'",
            "n + INTERVAL '1 day' > at",
            "array_contains(tags, 5)",
            "array_contains(name, 'a')",
            "cardinality(n) = 1",
            "name[0] = 'a'",
            "isnan(name)",
            "(n + 1) AND flag",
            "coalesce(n, 0.1234567890123456789012345678901234567890) = 1",
            "coalesce(n, 0.12345678901234567890) = 1",
        ],
    )
    def test_types_that_do_not_go_together_are_a_mismatch(self, where: str) -> None:
        with pytest.raises(SchemaMismatch):
            parse_where(where, TABLE.schema)

    @pytest.mark.parametrize(
        "where",
        [
            " AND ".join(f"n + {number} <> 5" for number in range(600)),
            "abs(" * 200 + "n" + ")" * 200 + " = 1",
            "greatest(" * 20 + "x, y" + ", 1)" * 20 + " = 1",
            "greatest(" + "x, " * 2000 + "y) = 1",
            " + ".join(["n"] * 3000) + " > 1",
        ],
    )
    def test_parse_where_refuses_large_expressions(self, where: str) -> None:
        with pytest.raises(ConfigError) as raised:
            parse_where(where, TABLE.schema)
        assert raised.value.hint


@pytest.mark.parametrize(
    "where",
    [
        "n % m * 2 = 1",
        "n * m % 2 = 1 AND n % 2 * m = 1",
        "flag = flag IS NULL",
        "flag = true IS NULL",
        "n = m < id",
        "n > m = flag",
        "flag = name LIKE 'a'",
        "flag = NOT flag",
        "n BETWEEN 1 AND m = flag",
    ],
)
def test_parse_where_ambiguous_precedence_needs_parentheses(where: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_where(where, TABLE.schema)
    assert "parentheses" in str(raised.value.hint)


def test_parentheses_say_what_is_meant() -> None:
    assert ids("mod(n + 1, 2) = 0 AND (n % 5) * 2 = 6") == ids("n = 3")
    assert ids("(flag = (n > 0)) IS NULL") == ids("flag IS NULL OR n IS NULL")
    assert ids("n - 1 - 1 = 5 AND n + 2 * 3 = 13 AND -n * 2 = -14") == ids("n = 7")


@pytest.mark.parametrize(
    ("where", "conjuncts", "columns"),
    [
        ("n > 5 + 3", [("n", ">", [8])], ["n"]),
        ("2 * -3 < n", [("n", ">", [-6])], ["n"]),
        ("n = CAST('1' AS INT)", [("n", "=", [1])], ["n"]),
        ("n IN (1 + 1, abs(-7))", [("n", "in", [2, 7])], ["n"]),
        ("n BETWEEN 1 + 1 AND (10 % 4) * 2", [("n", ">=", [2]), ("n", "<=", [4])], ["n"]),
        ("name = lower('OSAKA')", [("name", "=", ["osaka"])], ["name"]),
        ("amount >= 0.1 + 0.2", [("amount", ">=", [Decimal("0.30")])], ["amount"]),
        ("n > 1 / 0", [], ["n"]),
        (
            "day >= CAST('2024-01-01' AS DATE)",
            [("day", ">=", [date(2024, 1, 1)])],
            ["day"],
        ),
        (
            "at >= TIMESTAMP '2024-03-31 10:00:00' - INTERVAL '1 month'",
            [("at", ">=", [datetime(2024, 2, 29, 10, tzinfo=timezone.utc)])],
            ["at"],
        ),
        ("day > TIMESTAMP '2024-01-01 12:00:00'", [("day", ">", [date(2024, 1, 1)])], ["day"]),
        ("day = TIMESTAMP '2024-01-01 12:00:00'", [], ["day"]),
        ("array_contains([1, 2], n) AND n > 1", [("n", ">", [1])], ["n"]),
        (
            "at >= date_trunc('month', TIMESTAMP '2024-02-29 10:00:00')",
            [("at", ">=", [datetime(2024, 2, 1, tzinfo=timezone.utc)])],
            ["at"],
        ),
        ("n = 5 AND lower(name) = 'osaka'", [("n", "=", [5])], ["n", "name"]),
        ("n = 5 OR lower(name) = 'osaka'", [], ["n", "name"]),
        ("NOT (n = 5 AND m > n)", [], ["n", "m"]),
        ("lower(name) = 'osaka'", [], ["name"]),
        ("n = m", [], ["n", "m"]),
        ("CASE WHEN flag THEN n ELSE m END IN (id, 1)", [], ["id", "n", "m", "flag"]),
    ],
)
def test_parse_where_prunes_by_columns_not_by_computed_values(
    where: str, conjuncts: list[Any], columns: list[str]
) -> None:
    found = parse_where(where, TABLE.schema)
    assert [(name, op, values.to_pylist()) for name, op, values in found.conjuncts] == conjuncts
    assert sorted(found.columns) == sorted(columns)
    schema = TABLE.schema
    assert all(values.type == schema.field(name).type for name, _, values in found.conjuncts)


def test_tables_are_read_changed_and_compared_by_what_is_computed(tmp_path: Path) -> None:
    rides = pa.table(
        {
            "id": ["a", "b", "c", "d"],
            "city": ["Osaka", "lisbon", "OSAKA", "Lyon"],
            "fare": [1.0, 2.0, 3.0, 4.0],
            "tip": [2.0, 1.0, None, 4.0],
            "n": pa.array([1, 2, 3, 2**62], pa.int64()),
        }
    )
    table = pyhudi.create_table(
        tmp_path / "rides", rides, key="id", partition_by="city", options=CHANGES
    )
    kept = table.scan(columns=["id"], where="lower(city) = 'osaka' AND fare > coalesce(tip, 0)")
    assert kept.to_arrow()["id"].to_pylist() == ["c"]
    assert table.scan(where="fare = tip OR tip IS NULL").count() == 2
    with pytest.raises(ConfigError, match="overflow"):
        table.scan(where="n * 4 > 0").to_arrow()
    table.update("upper(city) = 'OSAKA'", {"tip": "round(fare * 1.4)", "n": "n % 2"})
    found = table.scan(where="upper(city) = 'OSAKA'").to_arrow().sort_by("id")
    assert found.select(["tip", "n"]).to_pydict() == {"tip": [1.0, 4.0], "n": [1, 1]}
    changes = table.changes(where="after.tip < before.tip OR before.tip IS NULL AND op = 'u'")
    assert sorted(row["id"] for row in changes.to_arrow()["after"].to_pylist()) == ["a", "c"]
    table.delete_partitions("starts_with(lower(city), 'l')")
    assert sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == ["a", "c"]
