"""Rows and filters with SQL functions, and a generator of Spark's answers to them.

The fixture is made once, by a Python that has PySpark:
`python tests/helpers/sql_function_cases.py tests/fixtures/where_functions.json`.
"""

from __future__ import annotations

import json
import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

COLUMNS = {
    "id": "int",
    "n": "bigint",
    "m": "int",
    "big": "bigint",
    "x": "double",
    "y": "double",
    "name": "string",
    "other": "string",
    "day": "date",
    "due": "date",
    "at": "timestamp",
    "amount": "decimal(10,2)",
    "price": "decimal(8,3)",
    "flag": "boolean",
    "digits": "string",
    "tags": "array<string>",
    "marks": "array<int>",
    "rates": "array<double>",
    "steps": "array<decimal(8,2)>",
    "counts": "map<string,int>",
}
"""Names and types as Spark writes them."""

_N = [0, 1, -1, 2, -2, 7, -7, 10, None, 100, -100, 1_000_000_000, 3]
_M = [3, -3, 0, 2, None, 1, 7]
_BIG = [2**63 - 1, -(2**63), 0, 5, None, -6, 2**53 + 1]
_X = [0.5, -0.5, 1.5, 2.5, -2.5, float("nan"), None, 0.0, -0.0, 1e300, float("inf"), float("-inf")]
_Y = [2.0, float("nan"), None, 0.0, -1.25, 0.5, 1e-300]
_NAMES = [
    "osaka", "Osaka", " lisbon ", "", None, "Zürich", "ÅRHUS", "東京", "a%b_c", "line\nbreak",
    "osaka-2024", "x", "  ", "😀 ok", "OSAKA", "abcabc", "tab\tend",
]  # fmt: skip
_OTHER = ["osaka", "", None, "x", "zürich", "b", "abc", " "]
_DAYS = [
    date(2024, 2, 29), date(1970, 1, 1), date(1969, 12, 31), None, date(1901, 3, 5),
    date(2024, 12, 30), date(2000, 1, 1), date(1960, 2, 29),
]  # fmt: skip
_DUE = [date(2024, 2, 29), None, date(1950, 6, 15), date(2030, 1, 1), date(1969, 12, 31)]
_AT = [
    None if text is None else datetime.fromisoformat(f"{text}+00:00")
    for text in (
        "2024-02-29T23:59:59.999999", "1970-01-01T00:00:00", None, "1969-12-31T23:59:59.500000",
        "1955-11-05T06:15:01.000001", "2024-01-01T00:00:00", "2024-03-31T01:30:00",
        "1969-12-29T00:00:00.000001",
    )
]  # fmt: skip
_AMOUNTS = ["1.50", "-1.50", "0.00", None, "99999999.99", "2.45", "-2.45", "-99999999.99", "0.10"]
_PRICES = ["1.500", "0.001", None, "-2.445", "0.005", "99999.999", "0.100"]
_FLAGS = [True, False, None]
_DIGITS = ["12", "-7", None, "0", " 3 ", "+4"]
_TAGS = [["a", "b"], [], None, ["osaka"], ["a", None], [""], ["x", "osaka", "a"]]
_MARKS = [[1, 2, 3], None, [7], [], [None, 7], [-7, 0], [1, None]]
_RATES = [[0.5, float("nan")], [-0.0], None, [None], [1.5, 2.5], []]
_STEPS = [[Decimal("1.50")], None, [Decimal("0.10"), None], [], [Decimal("-1.50"), Decimal(2)]]
_COUNTS: list[dict[str, int | None] | None] = [{"a": 1, "b": 7}, {}, None, {"x": None}, {"a": -7}]


def rows() -> list[dict[str, Any]]:
    """Forty rows in which each list of values goes round at its own pace."""
    amounts = [None if text is None else Decimal(text) for text in _AMOUNTS]
    prices = [None if text is None else Decimal(text) for text in _PRICES]
    lists: dict[str, list[Any]] = {
        "n": _N, "m": _M, "big": _BIG, "x": _X, "y": _Y, "name": _NAMES, "other": _OTHER,
        "day": _DAYS, "due": _DUE, "at": _AT, "amount": amounts, "price": prices,
        "flag": _FLAGS, "digits": _DIGITS, "tags": _TAGS, "marks": _MARKS, "rates": _RATES,
        "steps": _STEPS, "counts": _COUNTS,
    }  # fmt: skip
    return [
        {"id": number, **{name: given[number % len(given)] for name, given in lists.items()}}
        for number in range(40)
    ]


FILTERS = r"""
lower(name) = 'osaka'
UPPER(name) = 'OSAKA'
upper(name) = 'ZÜRICH'
lower(name) = 'århus'
lower(name) IN ('osaka', 'x')
lower(name) NOT IN ('osaka', 'x')
lower(name) IN ('osaka', NULL)
NOT lower(name) IN ('osaka', NULL)
lower(name) = other
NOT (lower(name) = other)
trim(name) = ''
trim(name) = 'lisbon'
ltrim(name) = 'lisbon '
rtrim(name) = ' lisbon'
trim(BOTH 'o' FROM name) = 'saka'
length(name) = 2
length(name) > length(other)
char_length(name) = 5
substring(name, 1, 2) = 'os'
substr(name, -2) = 'ka'
substring(name, -2, 1) = 'k'
substring(name, -9, 3) = ''
substring(name, -7, 4) = 'osa'
substring(name, 0, 3) = 'abc'
substring(name, 3) = 'aka'
substring(name, 2, 0) = ''
substring(name, 2, -1) = ''
substring(name FROM 2 FOR 3) = 'bca'
concat(name, '-', other) = 'x-x'
name || other = 'osakaosaka'
name || other IS NULL
concat(name, other) LIKE '%ab%'
coalesce(name, other, 'none') = 'none'
coalesce(name, other) = ''
nullif(name, '') IS NULL
nullif(name, other) IS NULL
nullif(n, m) IS NOT NULL

startswith(name, 'Os')
endswith(name, 'ka')
NOT startswith(name, 'o')
contains(name, 'sak')
NOT contains(name, 'a')
name ILIKE 'OSA%'
name NOT ILIKE 'o%'
name ILIKE '%ü%'
name ILIKE '_sAKA'
upper(name) LIKE 'O%A'
lower(name) NOT LIKE '%a%'
name RLIKE 'a'
name RLIKE '^o.*a$'
name RLIKE '[0-9]{4}'
name RLIKE '\d'
NOT name RLIKE 'a'
regexp_like(name, '(?i)^osaka$')
name = other
name <> other
name < other
name <=> other
name IS DISTINCT FROM other
name IS NOT DISTINCT FROM other
n = m
n > m
NOT (n > m)
n <= m
n <> m
n <=> m
big > n
big % 7 = 0
big % -1 = 0
big = n
n + 1 = m
n - m > 5
n * m < 0
n * 2 + m = 7
-n = 7
n / 2 = 3.5
n / m > 1
n / m IS NULL
x / y IS NULL
n / 0 IS NULL
n % 3 = 1
n % 3 = -1
n % m = 1
n % m IS NULL
mod(n, 4) = 2
n % -3 = -1
abs(n) = 7
abs(x) = 0.5
abs(x) > 1
abs(amount) = 1.5
n + x > 2
x = y
x < y
x > y
x <> y
x >= y
x <=> y
x + y > 1
x * y = 0
x - y = 0
x > n
x = m
round(x) = 3
round(x) = -1
round(x) = -3
round(amount) = 2
round(amount, 1) = 2.5
round(amount, 1) = -2.5
round(price, 2) = 0.01
round(price, 2) = -2.45
round(n) = 7
floor(amount) = -3
ceil(amount) = 2
floor(price) = 0
ceiling(price) = 1
floor(n) = 2
amount > price
amount = price
amount + price > 2
amount - price = 0
amount * price < 0
amount + 0.1 = 0.2
amount * 3 = 0.3
amount > n
n * 0.1 = 0.3
amount / 2 = 0.75
amount < x
year(day) = 1969
year(at) = 1969
month(day) = 2
day(day) = 29
day(at) = 31
dayofmonth(day) = 1
hour(at) = 23
minute(at) = 59
second(at) = 59
hour(day) = 0
second(at) = 1
year(day) < year(due)
month(day) = month(due)
date_trunc('month', at) = TIMESTAMP '2024-02-01 00:00:00'
date_trunc('year', at) = TIMESTAMP '1969-01-01 00:00:00'
date_trunc('day', at) = TIMESTAMP '1969-12-31 00:00:00'
date_trunc('week', at) = TIMESTAMP '1969-12-29 00:00:00'
date_trunc('week', at) = TIMESTAMP '2024-01-01 00:00:00'
date_trunc('quarter', at) = TIMESTAMP '2024-01-01 00:00:00'
date_trunc('hour', at) = TIMESTAMP '1955-11-05 06:00:00'
date_trunc('minute', at) = TIMESTAMP '1969-12-31 23:59:00'
date_trunc('second', at) = TIMESTAMP '1969-12-31 23:59:59'
date_trunc('month', day) = TIMESTAMP '2024-02-01 00:00:00'
day = due
day < due
day <= at
at > day
greatest(n, m) = 7
least(n, m) = -7
greatest(x, y) = 2
greatest(x, y) > 1e301
greatest(x, y) = CAST('NaN' AS DOUBLE)
least(x, y) = 0.5
least(x, y) IS NULL
greatest(name, other) = 'x'
greatest(day, due) = DATE '2024-02-29'
greatest(n, m, 5) = 5
if(n > 0, m, -m) = 3
if(flag, n, m) > 0
if(flag, name, 'none') = 'none'
CASE WHEN n > 5 THEN 'big' WHEN n IS NULL THEN 'none' ELSE 'small' END = 'small'
CASE WHEN n > 5 THEN 'big' WHEN n < 0 THEN 'low' END IS NULL
CASE WHEN x > 1 THEN x ELSE y END > 1
CASE WHEN flag THEN n > 0 ELSE m > 0 END
CAST(n AS STRING) = '7'
CAST(n AS DOUBLE) = x
CAST(digits AS INT) = 3
CAST(digits AS BIGINT) + 1 = 13
CAST(digits AS DOUBLE) = -7
CAST(flag AS INT) = 1
CAST(m AS BOOLEAN)
CAST(amount AS INT) = -1
CAST(price AS DECIMAL(10,2)) = 0.01
CAST(amount AS DOUBLE) = 0.1
CAST(amount AS STRING) = '1.50'
CAST(at AS DATE) = DATE '1969-12-31'
CAST(day AS TIMESTAMP) = at
CAST(day AS STRING) = '2024-02-29'
CAST(flag AS STRING) = 'true'
n > 5 + 3
n = 2 * 5
n BETWEEN m AND 10
n NOT BETWEEN m AND 10
abs(n) BETWEEN 2 AND 7
n + 1 IN (1, m, 8)
n + 1 NOT IN (1, 8)
(n > m) IS NULL
(n > m) IS TRUE
(n > m) IS NOT TRUE
(n > m) IS FALSE
NOT (n > m AND x > y)
n > m OR x > y
NOT (lower(name) = 'osaka' OR n > m)
n + m IS NULL
NOT (n + m > 0)
day >= CAST('2024-01-01' AS DATE)
flag = (n > 0)
NOT contains(other, 'b') AND n > m
day + INTERVAL '1 month' = DATE '2024-03-29'
day + INTERVAL '1 month' = DATE '1970-01-31'
day - INTERVAL '1 month' = DATE '1969-11-30'
day - INTERVAL '1' MONTH = DATE '2024-11-30'
day + INTERVAL '2 months' = DATE '2025-02-28'
day + INTERVAL '12 months' = DATE '2025-02-28'
day + INTERVAL 1 YEAR = DATE '1961-02-28'
day - INTERVAL '4 years' = DATE '2020-02-29'
day - INTERVAL '100 years' = DATE '1924-02-29'
day + INTERVAL '3 days' = DATE '1970-01-03'
day + INTERVAL '-3 days' = DATE '2024-12-27'
day - INTERVAL 2 WEEKS = DATE '1960-02-15'
day + INTERVAL '1 week' > due
day + INTERVAL '1 day' = due + INTERVAL '1 day'
day + INTERVAL '2 hours' = CAST('1970-01-01 02:00:00' AS TIMESTAMP)
at + INTERVAL '1 month' = CAST('2024-03-29 23:59:59.999999' AS TIMESTAMP)
at + INTERVAL '1 month' = CAST('2024-04-30 01:30:00' AS TIMESTAMP)
at - INTERVAL '1 month' = CAST('2024-02-29 01:30:00' AS TIMESTAMP)
at - INTERVAL '13 months' = CAST('1968-11-30 23:59:59.5' AS TIMESTAMP)
at - INTERVAL '1 day' = CAST('1955-11-04 06:15:01.000001' AS TIMESTAMP)
at + INTERVAL '1 day 2 hours 3 minutes' = CAST('1970-01-02 02:03:00' AS TIMESTAMP)
at + INTERVAL '1.5 seconds' = CAST('1970-01-01 00:00:01.5' AS TIMESTAMP)
at + INTERVAL '500 milliseconds' = CAST('1970-01-01 00:00:00' AS TIMESTAMP)
at - INTERVAL 1 MICROSECOND = CAST('1969-12-29 00:00:00' AS TIMESTAMP)
INTERVAL '1 day' + at > CAST('2024-03-01' AS DATE)
at > CAST('2024-03-01' AS DATE) - INTERVAL '1 day'
at + INTERVAL '1 month' IS NULL
extract(YEAR FROM at) = 1969
extract(quarter FROM day) = 1
extract(week FROM day) = 1
extract(week FROM at) = 1
extract(doy FROM day) = 60
extract(dow FROM day) = 5
extract(DAYOFWEEK FROM at) = 1
extract(minute FROM at) = 59
extract(second FROM at) = 59.999999
extract(second FROM at) = 59.5
extract(second FROM at) > 1
extract(second FROM day) = 0
date_part('month', due) = 6
quarter(at) = 4
weekofyear(day) = 52
dayofweek(day) = 5
dayofyear(day) = 365
date(at) = DATE '1969-12-31'
date(at) = day
date(day) = due
day > CAST('1970-01-01 12:00:00' AS TIMESTAMP)
day >= CAST('1970-01-01 00:00:01' AS TIMESTAMP)
day < CAST('1970-01-01 12:00:00' AS TIMESTAMP)
day <= CAST('1969-12-31 23:59:59' AS TIMESTAMP)
day = CAST('1970-01-01 12:00:00' AS TIMESTAMP)
day <> CAST('1970-01-01 12:00:00' AS TIMESTAMP)
day < CAST('1970-01-01 00:00:00' AS TIMESTAMP)
day IN (CAST('1970-01-01 12:00:00' AS TIMESTAMP), DATE '2024-02-29')
array_contains(tags, 'a')
array_contains(tags, 'osaka')
array_contains(tags, name)
array_contains(tags, '')
array_contains(marks, 7)
array_contains(marks, m)
array_contains(marks, n)
array_contains(marks, 7.0)
array_contains(marks, 1.5)
array_contains(marks, x)
array_contains(rates, 0e0)
array_contains(rates, x)
array_contains(rates, CAST('NaN' AS DOUBLE))
array_contains(steps, 1.5)
array_contains(steps, amount)
array_contains(array(1, 7), n)
array_contains(array('a', NULL), tags[0])
size(tags) = 2
cardinality(tags) = 0
cardinality(tags) = -1
size(marks) > m
array_size(tags) = 2
array_size(tags) IS NULL
tags[0] = 'a'
tags[1] = 'osaka'
tags[5] IS NULL
tags[-1] IS NULL
element_at(tags, 1) = 'a'
element_at(marks, 2) = 7
marks[0] + marks[1] = 3
rates[1] IS NULL
steps[0] = 1.5
counts['a'] = 1
counts['a'] < 0
counts['x'] IS NULL
element_at(counts, 'b') = 7
isnan(x)
isnan(y) OR isnan(x)
NOT isnan(y)
isnan(n)
"""


def filters() -> list[str]:
    """The filters, one a line."""
    return [line for line in FILTERS.splitlines() if line]


def main(target: str) -> None:
    """Writes the ids of the rows that Spark keeps, by each filter and by NOT of it."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only the maker has it

    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.ansi.enabled", "false")
        .config("spark.sql.parser.escapedStringLiterals", "true")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    given = [tuple(row[name] for name in COLUMNS) for row in rows()]
    frame = session.createDataFrame(given, schema).coalesce(1).cache()
    cases: dict[str, list[list[int]]] = {}
    refused: dict[str, str] = {}
    for text in filters():
        try:
            cases[text] = [
                sorted(row["id"] for row in frame.filter(asked).select("id").collect())
                for asked in (text, f"NOT ({text})")
            ]
        except Exception as error:  # noqa: BLE001, PERF203 - whatever Spark does not take is told
            refused[text] = str(error).split("\n", 1)[0]
    lines = ",\n".join(f"{json.dumps(k, ensure_ascii=False)}: {v}" for k, v in cases.items())
    made = f'{{"spark": "{session.version}", "cases": {{\n{lines}\n}}}}\n'
    Path(target).write_text(made, encoding="utf-8")
    session.stop()
    for filter_, why in refused.items():
        sys.stderr.write(f"{filter_}: {why}\n")


if __name__ == "__main__":
    main(sys.argv[1])
