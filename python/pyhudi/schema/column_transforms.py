"""Transforms of columns, such as the day of a timestamp: SQL expressions with known properties.

A transform is only its SQL expression, so a query engine computes it as pyhudi does. This module
recognizes the expressions of transforms, also if a caller wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as at

from pyhudi.errors import ConfigError
from pyhudi.input.type_tests import is_date_or_timestamp, is_text
from pyhudi.schema.predicates import column_type

_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_DATES: dict[str, str] = {
    "day": "CAST({0} AS DATE)",
    "month": "year({0}) * 100 + month({0})",
    "year": "year({0})",
    "hour": "(year({0}) * 10000 + month({0}) * 100 + day({0})) * 100 + hour({0})",
}
_BUCKET = "pmod(hash({0}), {1})"
_TEXT_PREFIX = "substring({0}, 1, {1})"
_MULTIPLE = "{0} - pmod({0}, {1})"
_MONOTONE = (
    *_DATES.values(),
    *(f"date_trunc('{unit}', {{0}})" for unit in _UNITS),
    *(f"CAST(date_trunc('{unit}', {{0}}) AS DATE)" for unit in _UNITS),
    _TEXT_PREFIX,
    _MULTIPLE,
)
"""Expressions whose value never decreases if the column's value increases."""
_NUMBERS = re.compile(r"\d+")
_PLAIN_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class ColumnTransform:
    """A column to generate from another one; made by `pyhudi.day` and its siblings."""

    function: str
    column: str
    argument: int | None = None
    as_: str | None = None

    @property
    def name(self) -> str:
        """The name of the generated column."""
        return self.as_ or f"{self.column.replace('.', '_')}_{self.function}"

    def sql(self, schema: pa.Schema) -> str:
        """Return the SQL expression for a table with these columns.

        Raises `SchemaMismatch` for an unknown column, `ConfigError` for a type that the transform
        does not have.
        """
        data_type = column_type(tuple(self.column.split(".")), schema)
        column = quote_column(self.column)
        if self.function in _DATES and is_date_or_timestamp(data_type):
            if self.function != "hour" or at.is_timestamp(data_type):
                return _DATES[self.function].format(column)
        elif self.function == "bucket" and can_hash(data_type):
            return _BUCKET.format(column, self.argument)
        elif self.function == "truncate" and is_text(data_type):
            return _TEXT_PREFIX.format(column, self.argument)
        elif self.function == "truncate" and at.is_integer(data_type):
            return _MULTIPLE.format(column, self.argument)
        raise ConfigError(
            f"{self.function}({self.column!r}): the column has the type {data_type}",
            hint=f"{self.function} takes {_ACCEPTED.get(self.function, 'a date or a timestamp')}.",
        )


_ACCEPTED = {
    "hour": "a timestamp",
    "bucket": "a string, an integer, a date or a timestamp of microseconds",
    "truncate": "a string or an integer",
}


def day(column: str, *, as_: str | None = None) -> ColumnTransform:
    """Describe the day of a date or timestamp, as a date; timestamps with a zone in UTC.

    Args:
        column: name of the column, dotted for a field of a struct.
        as_: name of the generated column, by default `at_day` for the column `at`.

    Returns:
        What `create_table` takes in `partition_by` and `generated`.

    Raises:
        ConfigError: an argument is wrong.
    """
    return _transform("day", column, None, as_)


def month(column: str, *, as_: str | None = None) -> ColumnTransform:
    """Describe the month of a date or timestamp as an integer, such as 202403.

    Args:
        column: as in `day`.
        as_: as in `day`; `at_month` by default.

    Returns:
        As `day`.

    Raises:
        ConfigError: an argument is wrong.
    """
    return _transform("month", column, None, as_)


def year(column: str, *, as_: str | None = None) -> ColumnTransform:
    """Describe the year of a date or timestamp as an integer.

    Args:
        column: as in `day`.
        as_: as in `day`; `at_year` by default.

    Returns:
        As `day`.

    Raises:
        ConfigError: an argument is wrong.
    """
    return _transform("year", column, None, as_)


def hour(column: str, *, as_: str | None = None) -> ColumnTransform:
    """Describe the hour of a timestamp as an integer, such as 2024030114.

    Args:
        column: as in `day`.
        as_: as in `day`; `at_hour` by default.

    Returns:
        As `day`.

    Raises:
        ConfigError: an argument is wrong.
    """
    return _transform("hour", column, None, as_)


def bucket(column: str, buckets: int, *, as_: str | None = None) -> ColumnTransform:
    """Describe a number below `buckets` from the hash of a value, `pmod(hash(x), n)` in Spark.

    Args:
        column: a column of strings, integers, dates or timestamps of microseconds.
        buckets: the number of buckets.
        as_: as in `day`; `id_bucket` by default for the column `id`.

    Returns:
        As `day`.

    Raises:
        ConfigError: an argument is wrong.
    """
    return _transform("bucket", column, _positive("buckets", buckets), as_)


def truncate(column: str, width: int, *, as_: str | None = None) -> ColumnTransform:
    """Describe the first characters of a string, or an integer rounded down to a multiple.

    Args:
        column: a column of strings or integers.
        width: the number of characters, or the distance of multiples.
        as_: as in `day`; `name_truncate` by default for the column `name`.

    Returns:
        As `day`.

    Raises:
        ConfigError: an argument is wrong.
    """
    return _transform("truncate", column, _positive("width", width), as_)


def _positive(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**31:
        raise ConfigError(f"{name} is {value!r}", hint="Pass a positive integer below 2**31.")
    return value


def _transform(function: str, column: object, argument: int | None, as_: object) -> ColumnTransform:
    for name, value in (("column", column), ("as_", "x" if as_ is None else as_)):
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(f"{function}: {name} is {value!r}", hint="Pass a column's name.")
    return ColumnTransform(function, str(column), argument, None if as_ is None else str(as_))


def can_hash(data_type: pa.DataType) -> bool:
    """Return whether `bucket` has the hash of values of this type."""
    is_micros = at.is_timestamp(data_type) and data_type.unit == "us"
    return (
        is_text(data_type)
        or at.is_signed_integer(data_type)
        or at.is_date32(data_type)
        or is_micros
    )


# --- recognizing ----------------------------------------------------------------------------------


def quote_column(path: str) -> str:
    """Return a column or dotted struct field for SQL, in quotes if it needs them."""
    return ".".join(map(_quote_name, path.split(".")))


def _quote_name(name: str) -> str:
    from pyhudi.schema.sql_parser import is_column_name  # noqa: PLC0415 - sqlglot takes a while to import

    quoted = '"{}"'.format(name.replace('"', '""'))
    return name if _PLAIN_NAME.fullmatch(name) and is_column_name(name) else quoted


def canonical_sql(sql: str, column: str) -> str:
    """Return the expression of the transform of a column that `sql` is; else `sql` itself."""
    from pyhudi.schema.sql_parser import parse_one  # noqa: PLC0415 - as above

    tree = parse_one(sql, "generated")
    for _, text in _expressions_of(sql, column):
        if parse_one(text, "generated") == tree:
            return text
    return sql


def is_monotone(sql: str, column: str) -> bool:
    """Return whether an expression of `canonical_sql` never decreases if the column increases."""
    return any(
        text == sql and template in _MONOTONE for template, text in _expressions_of(sql, column)
    )


def buckets_of(sql: str, column: str) -> int | None:
    """Return the number of buckets if an expression of `canonical_sql` is a bucket; else None."""
    for number in _NUMBERS.findall(sql):
        if sql == _BUCKET.format(quote_column(column), number):
            return int(number)
    return None


def _expressions_of(sql: str, column: str) -> Iterator[tuple[str, str]]:
    """Yield templates and the expressions that they make of a column and the numbers of `sql`."""
    quoted = quote_column(column)
    for template in (*_MONOTONE, _BUCKET):
        numbers = _NUMBERS.findall(sql) if "{1}" in template else ("",)
        for number in dict.fromkeys(numbers):
            yield template, template.format(quoted, number)
