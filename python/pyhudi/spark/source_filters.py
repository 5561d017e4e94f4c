"""Spark's filters as filter tuples: those of a data source, and SQL conditions of a DataFrame.

Spark applies every filter itself again, so the only requirement is that no row is skipped that
Spark would keep. Comparisons that differ between Spark and Arrow (NaN, collations) are not pushed,
and only simple comparisons of a SQL condition are parsed.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as at

from pyhudi.errors import HudiError
from pyhudi.schema.predicate_parser import parse_where

FilterTuple = tuple[Any, ...]

_FILTER_OPERATORS = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}


def pushable(filters: Iterable[Any], schema: pa.Schema) -> tuple[FilterTuple, ...]:
    """Return the filters that can be applied when files are read. schema: that of scans."""
    tuples = (_tuple(spark_filter) for spark_filter in filters)
    return tuple(
        triple for triple in tuples if triple is not None and is_comparable(triple, schema)
    )


def _tuple(spark_filter: Any) -> FilterTuple | None:
    filter_type = type(spark_filter).__name__
    if filter_type == "Not":
        return _negate(spark_filter.child)
    if len(spark_filter.attribute) != 1:
        return None
    column = spark_filter.attribute[0]
    if filter_type == "IsNull":
        return (column, "is null")
    if filter_type == "IsNotNull":
        return (column, "is not null")
    if filter_type == "In":
        values = [value for value in spark_filter.value if value is not None]
        return (column, "in", values) if values else None
    if filter_type in _FILTER_OPERATORS and spark_filter.value is not None:
        return (column, _FILTER_OPERATORS[filter_type], spark_filter.value)
    return None


def _negate(child: Any) -> FilterTuple | None:
    if type(child).__name__ != "EqualTo" or len(child.attribute) != 1 or child.value is None:
        return None
    return (child.attribute[0], "!=", child.value)


def is_comparable(triple: FilterTuple, schema: pa.Schema) -> bool:
    """Return whether Spark and Arrow evaluate a filter in the same way."""
    column = triple[0]
    if column not in schema.names:
        return False
    data_type = schema.field(column).type
    values = triple[2] if triple[1] == "in" else triple[2:]
    if not all(_is_of(value, data_type) for value in values):
        return False
    try:
        parse_where([triple], schema)
    except HudiError:
        return False
    return True


def _is_of(value: Any, data_type: pa.DataType) -> bool:
    """Return whether Spark and Arrow order a literal in the same way in a column of the type."""
    if isinstance(value, bool):
        return bool(at.is_boolean(data_type))
    if isinstance(value, int):
        return bool(at.is_integer(data_type))
    if isinstance(value, str):
        return bool(at.is_string(data_type))
    if isinstance(value, dt.datetime):
        return bool(at.is_timestamp(data_type)) and (value.tzinfo is None) == (data_type.tz is None)
    if isinstance(value, dt.date):
        return bool(at.is_date32(data_type))
    return isinstance(value, Decimal) and bool(at.is_decimal(data_type))


_TOKEN = re.compile(
    r"\s*(?:(?P<text>'[^'\\]*'(?!'))|(?P<number>\d+(?:\.\d+)?(?:BD|[LSY])?(?![\w.]))"
    r"|(?P<name>`\w+`|[A-Za-z_]\w*)|(?P<sign><=>|<=|>=|<>|!=|==|[=<>(),-])|(?P<other>\S))",
    re.IGNORECASE,
)
_SQL_OPERATORS = {
    "=": "=",
    "==": "=",
    "<=>": "=",
    "!=": "!=",
    "<>": "!=",
    ">": ">",
    ">=": ">=",
    "<": "<",
    "<=": "<=",
}
_MIRRORED = {"=": "=", "!=": "!=", ">": "<", ">=": "<=", "<": ">", "<=": ">="}
_BINDS_LOOSER = {"OR", "BETWEEN", "CASE", "SELECT"}
"""Words next to which an AND does not separate conditions."""


@dataclass(frozen=True)
class Conjuncts:
    """The parsed part of a condition."""

    tuples: tuple[FilterTuple, ...] = ()
    complete: bool = False
    """Whether the tuples are the whole condition."""


def conjuncts_of(sql: str) -> Conjuncts:
    """Return the comparisons of columns with literals that a condition joins by AND."""
    if "--" in sql or "/*" in sql:
        return Conjuncts()
    tokens = [(str(match.lastgroup), match[0].strip()) for match in _TOKEN.finditer(sql)]
    # An unmatched quote may hide an AND in a string or a name.
    if any(category == "other" and word in "\"'`\\" for category, word in tokens):
        return Conjuncts()
    return _all_of(tokens)


Tokens = Sequence[tuple[str, str]]


def _all_of(tokens: Tokens) -> Conjuncts:
    inner = _without_parentheses(tokens)
    if inner is not None:
        return _all_of(inner)
    single = _comparison(tokens)
    if single is not None:
        return Conjuncts((single,), complete=True)
    parts = _split_conjuncts(tokens)
    if len(parts) < 2:  # noqa: PLR2004 - nothing was parted
        return Conjuncts()
    parsed = [_all_of(part) for part in parts]
    tuples = tuple(triple for part in parsed for triple in part.tuples)
    return Conjuncts(tuples, all(part.complete for part in parsed))


def _without_parentheses(tokens: Tokens) -> Tokens | None:
    """Return the tokens inside parentheses that enclose all tokens."""
    if len(tokens) < 3 or tokens[0][1] != "(":  # noqa: PLR2004
        return None
    depths = _depths(tokens)
    closes = next((at for at, depth in enumerate(depths) if depth == 0), None)
    return tokens[1:-1] if closes == len(tokens) - 1 else None


def _depths(tokens: Tokens) -> list[int]:
    """Return how many parentheses are open after each token."""
    depths, depth = [], 0
    for _, word in tokens:
        depth += (word == "(") - (word == ")")
        depths.append(depth)
    return depths


def _split_conjuncts(tokens: Tokens) -> list[Tokens]:
    """Return the parts between the outermost ANDs; none if an operator binds looser."""
    parts: list[list[tuple[str, str]]] = [[]]
    for token, depth in zip(tokens, _depths(tokens), strict=True):
        word = token[1].upper() if token[0] == "name" else ""
        if depth < 0 or (depth == 0 and word in _BINDS_LOOSER):
            return []
        if depth == 0 and word == "AND":
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part] if all(parts) else []


def _comparison(tokens: Tokens) -> FilterTuple | None:
    words = [word.upper() for _, word in tokens]
    column = _column(tokens[0]) if tokens else None
    if column is None:
        return _mirror_comparison(tokens)
    if words[1:] in (["IS", "NULL"], ["IS", "NOT", "NULL"]):
        return (column, " ".join(words[1:]).lower())
    if len(tokens) > 2 and words[1] in _SQL_OPERATORS:  # noqa: PLR2004
        value = _literal(tokens[2:])
        return None if value is None else (column, _SQL_OPERATORS[words[1]], value)
    if words[1:3] == ["IN", "("] and words[-1] == ")":
        return _in_list(column, tokens[3:-1])
    return None


def _mirror_comparison(tokens: Tokens) -> FilterTuple | None:
    """Return the comparison of a literal with a column."""
    if len(tokens) < 3 or tokens[-2][1] not in _SQL_OPERATORS:  # noqa: PLR2004
        return None
    column, value = _column(tokens[-1]), _literal(tokens[:-2])
    if column is None or value is None:
        return None
    return (column, _MIRRORED[_SQL_OPERATORS[tokens[-2][1]]], value)


def _in_list(column: str, tokens: Tokens) -> FilterTuple | None:
    values, item = [], []
    for token in [*tokens, ("sign", ",")]:
        if token[1] != ",":
            item.append(token)
            continue
        value = _literal(item)
        if value is None:
            return None
        values.append(value)
        item = []
    return (column, "in", values)


_NOT_NAMES = {"TRUE", "FALSE", "NULL", "NOT", "DATE", "TIMESTAMP", "INTERVAL", "EXISTS"}


def _column(token: tuple[str, str]) -> str | None:
    category, word = token
    if category != "name" or word.upper() in _NOT_NAMES:
        return None
    return word.strip("`")


def _literal(tokens: Tokens) -> Any:
    """Return the value of a literal; None if it is not one, or NULL."""
    types = [category for category, _ in tokens]
    words = [word for _, word in tokens]
    if words[:1] == ["-"] and types[1:] == ["number"]:
        return -_number(words[1])
    if types == ["number"]:
        return _number(words[0])
    if types == ["text"]:
        return words[0][1:-1]
    if types == ["name"] and words[0].upper() in ("TRUE", "FALSE"):
        return words[0].upper() == "TRUE"
    if types == ["name", "text"] and words[0].upper() == "DATE":
        return _date(words[1][1:-1])
    return None


def _number(word: str) -> int | Decimal:
    digits = word.upper().rstrip("BDLSY")
    return Decimal(digits) if "." in word or word.upper().endswith("BD") else int(digits)


def _date(text: str) -> dt.date | None:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return None
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None
