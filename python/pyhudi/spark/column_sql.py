"""What Spark's columns say: their SQL text, and the names in them. Nothing is decided here.

A column of a classic session is asked in the JVM, one of Spark Connect in its own message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

_HARMLESS = re.compile(r"\bcount\(\s*(?:\*|1|unresolvedstar\(\))\s*\)|\*\s*\(", re.IGNORECASE)
"""What counts rows, and what surely multiplies."""
_STAR = re.compile(
    r"unresolvedstar|unresolvedregex|(?<![\w)'\"`\]\s])\s*\*|^\s*\*|\*\s*(?:[),.]|$)", re.IGNORECASE
)
"""A star or a pattern that stands for columns, and not a multiplication."""
_OF_DISTINCT = "DISTINCT "
"""What a text begins with that leaves it out."""
_DISTINCT = re.compile(r"\(distinct ", re.IGNORECASE)
_NAME = PLAIN_NAME = re.compile(r"[^\W\d]\w*")


def sql_of(column: Any) -> str | None:
    """The SQL text of a column; text is taken for SQL. None where it cannot be told."""
    if isinstance(column, str):
        return column
    if hasattr(column, "_jc"):
        return _classic_sql(column._jc)  # noqa: SLF001 - nobody else has the text in full
    expression = getattr(column, "_expr", None)
    return None if expression is None else _connect_sql(expression)


def names_in(given: Iterable[Any], columns: Sequence[str]) -> frozenset[str] | None:
    """Which of the columns anything given speaks of, or more. None: perhaps of all.

    given: names, SQL texts, columns and lists of them.
    """
    lower = {name.lower(): name for name in columns}
    found: set[str] = set()
    for item in given:
        if isinstance(item, list | tuple):
            inner = names_in(item, columns)
            if inner is None:
                return None
            found |= inner
            continue
        text = _words_of(item)
        if text is None or _speaks_of_all(text):
            return None
        found.update(lower[word] for word in _all_words(text) if word in lower)
    return frozenset(found)


def _speaks_of_all(text: str) -> bool:
    counts_rows = not text.startswith(_OF_DISTINCT)
    return _STAR.search(_HARMLESS.sub("", text) if counts_rows else text) is not None


def flat(cols: Sequence[Any]) -> list[Any]:
    """As Spark takes columns: one by one, or in one list."""
    if len(cols) == 1 and isinstance(cols[0], list | tuple):
        return list(cols[0])
    return list(cols)


def plain_name(column: Any) -> str | None:
    """The name of what is nothing but a column."""
    text = sql_of(column)
    if text is None or not PLAIN_NAME.fullmatch(text):
        return None
    return text


def _all_words(text: str) -> set[str]:
    return {word.lower() for word in _NAME.findall(text)}


def _words_of(item: Any) -> str | None:
    """A text with every name in it."""
    if isinstance(item, str) or hasattr(item, "_jc"):
        return sql_of(item)
    expression = getattr(item, "_expr", None)
    return None if expression is None else repr(expression)


def _classic_sql(column: Any) -> str | None:
    from py4j.protocol import Py4JError  # noqa: PLC0415 - of classic sessions
    from pyspark import SparkContext, __version__  # noqa: PLC0415 - not for Spark Connect
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        if __version__.startswith("3."):
            expression = column.expr()
        else:
            classic = SparkContext._jvm.org.apache.spark.sql.classic  # noqa: SLF001
            converter = getattr(classic, "ColumnNodeToExpressionConverter$")
            expression = getattr(converter, "MODULE$").apply(column.node())
        text, whole = _expression_sql(expression), expression.toString()
    except (Py4JError, PySparkException):
        return None
    # The SQL of a function that is not resolved leaves it out.
    is_lost = _DISTINCT.search(whole) and not _DISTINCT.search(text)
    return f"{_OF_DISTINCT}{text}" if is_lost else text


def _expression_sql(expression: Any) -> str:
    """The text of an expression in the JVM. That of 4.x has operators before operands."""
    text: str = expression.sql()
    if expression.getClass().getSimpleName() != "UnresolvedFunction":
        return text
    children = expression.children()
    parts = [_expression_sql(children.apply(number)) for number in range(children.size())]
    return _comparison_sql(expression.nameParts().last(), parts) or text


_OPERATORS = {
    "=": "=",
    "==": "=",
    "<=>": "<=>",
    "!=": "!=",
    ">": ">",
    ">=": ">=",
    "<": "<",
    "<=": "<=",
    "and": "AND",
}
_PLAIN_LITERALS = {"ByteType", "ShortType", "IntegerType", "LongType", "StringType", "BooleanType"}


def _connect_sql(expression: Any) -> str | None:
    """The text of a comparison; of what is none only that it is unknown."""
    kind = type(expression).__name__
    if kind == "ColumnReference":
        name: str = expression._unparsed_identifier  # noqa: SLF001
        return name
    if kind == "SQLExpression":
        return f"({expression._expr})"  # noqa: SLF001
    if kind == "LiteralExpression":
        return _connect_literal(expression)
    if kind != "UnresolvedFunction":
        return None
    parts = [_connect_sql(part) or "?" for part in expression._args]  # noqa: SLF001
    return _comparison_sql(expression._name, parts)  # noqa: SLF001


def _comparison_sql(name: str, parts: Sequence[str]) -> str | None:
    """A comparison of parts, as SQL has it."""
    if name in _OPERATORS and len(parts) == 2:  # noqa: PLR2004
        return f"({parts[0]} {_OPERATORS[name]} {parts[1]})"
    if name in ("isNull", "isnull", "isNotNull", "isnotnull") and len(parts) == 1:
        return f"({parts[0]} IS {'NOT ' if 'not' in name.lower() else ''}NULL)"
    if name == "in":
        return f"({parts[0]} IN ({', '.join(parts[1:])}))"
    return None


def _connect_literal(expression: Any) -> str | None:
    value = expression._value  # noqa: SLF001
    if type(expression._dataType).__name__ not in _PLAIN_LITERALS:  # noqa: SLF001
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str) and not set(value) & set("'\\"):
        return f"'{value}'"
    return None
