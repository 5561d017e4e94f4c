"""SQL text of Spark's columns, and the names in it.

The text of a classic session's column comes from the JVM, that of Spark Connect from its message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

_NO_STAR = re.compile(r"\bcount\(\s*(?:\*|1|unresolvedstar\(\))\s*\)|\*\s*\(", re.IGNORECASE)
"""Text whose star counts rows or multiplies."""
_STAR = re.compile(
    r"unresolvedstar|unresolvedregex|(?<![\w)'\"`\]\s])\s*\*|^\s*\*|\*\s*(?:[),.]|$)", re.IGNORECASE
)
"""A star or a pattern of column names; not a multiplication."""
_OF_DISTINCT = "DISTINCT "
"""Prefix of the text of a distinct aggregate, which omits the word."""
_DISTINCT = re.compile(r"\(distinct ", re.IGNORECASE)
_NAME = PLAIN_NAME = re.compile(r"[^\W\d]\w*")


def sql_of(column: Any) -> str | None:
    """Return the SQL text of a column; a string is SQL already. None if it is unknown."""
    if isinstance(column, str):
        return column
    if hasattr(column, "_jc"):
        return _classic_sql(column._jc)  # noqa: SLF001 - the only complete text
    expression = getattr(column, "_expr", None)
    return None if expression is None else _connect_sql(expression)


def names_in(args: Iterable[Any], columns: Sequence[str]) -> frozenset[str] | None:
    """Return the columns that any of the arguments refers to, or more; None for possibly all.

    args: names, SQL texts, columns and lists of them.
    """
    lower = {name.lower(): name for name in columns}
    names: set[str] = set()
    for item in args:
        if isinstance(item, list | tuple):
            inner = names_in(item, columns)
            if inner is None:
                return None
            names |= inner
            continue
        text = _text_with_names(item)
        if text is None or _may_use_all_columns(text):
            return None
        names.update(lower[word] for word in _all_words(text) if word in lower)
    return frozenset(names)


def _may_use_all_columns(text: str) -> bool:
    counts_rows = not text.startswith(_OF_DISTINCT)
    return _STAR.search(_NO_STAR.sub("", text) if counts_rows else text) is not None


def flat(cols: Sequence[Any]) -> list[Any]:
    """Return Spark's column arguments, which are passed one by one or in one list."""
    if len(cols) == 1 and isinstance(cols[0], list | tuple):
        return list(cols[0])
    return list(cols)


def plain_name(column: Any) -> str | None:
    """Return the name of a column that is not an expression."""
    text = sql_of(column)
    if text is None or not PLAIN_NAME.fullmatch(text):
        return None
    return text


def _all_words(text: str) -> set[str]:
    return {word.lower() for word in _NAME.findall(text)}


def _text_with_names(item: Any) -> str | None:
    """Return a text with every name of a column."""
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
        text, full_text = _expression_sql(expression), expression.toString()
    except (Py4JError, PySparkException):
        return None
    # The SQL text of an unresolved function omits it.
    is_lost = _DISTINCT.search(full_text) and not _DISTINCT.search(text)
    return f"{_OF_DISTINCT}{text}" if is_lost else text


def _expression_sql(expression: Any) -> str:
    """Return the text of an expression in the JVM; 4.x puts operators before operands."""
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
    """Return the text of a comparison; of other expressions only a placeholder."""
    type_name = type(expression).__name__
    if type_name == "ColumnReference":
        name: str = expression._unparsed_identifier  # noqa: SLF001
        return name
    if type_name == "SQLExpression":
        return f"({expression._expr})"  # noqa: SLF001
    if type_name == "LiteralExpression":
        return _connect_literal(expression)
    if type_name != "UnresolvedFunction":
        return None
    parts = [_connect_sql(part) or "?" for part in expression._args]  # noqa: SLF001
    return _comparison_sql(expression._name, parts)  # noqa: SLF001


def _comparison_sql(name: str, parts: Sequence[str]) -> str | None:
    """Return a comparison of parts as SQL."""
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
