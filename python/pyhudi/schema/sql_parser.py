"""Parses a caller's SQL into a syntax tree, within limits. It does not interpret nodes.

sqlglot parses `a % b * c` in one way or another by its release, and `a = b IS NULL` differently
from Spark. These expressions need parentheses here: pyhudi refuses to guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined] # imported there in some releases

from pyhudi.errors import ConfigError

_MAX_DIGITS = 400
"""More digits than any number of a column has, also a double with all its digits."""
INTERVAL_UNITS = {
    f"{unit}{plural}": (months, micros)
    for unit, months, micros in (
        ("year", 12, 0),
        ("month", 1, 0),
        ("week", 0, 7 * 86_400_000_000),
        ("day", 0, 86_400_000_000),
        ("hour", 0, 3_600_000_000),
        ("minute", 0, 60_000_000),
        ("second", 0, 1_000_000),
        ("millisecond", 0, 1000),
        ("microsecond", 0, 1),
    )
    for plural in ("", "s")
}
"""Months and microseconds of each unit of an interval."""
_NUMBERS = (TokenType.STRING, TokenType.NUMBER)
_MAX_QUOTED = 200
"""Characters of the SQL that a message repeats."""


def _trim_of(name: str, position: str) -> Callable[[list[Any]], exp.Expression]:
    def build_expression(args: list[Any]) -> exp.Expression:
        match args:
            case [string]:
                return exp.Trim(this=string, position=position)
            case [characters, string]:
                return exp.Trim(this=string, expression=characters, position=position)
            case _:
                return exp.Anonymous(this=name, expressions=args)

    return build_expression


class _Sql(Dialect):
    """Standard SQL, except for what Spark orders differently: `ltrim(characters, text)`.

    Backticks quote names, as in Spark SQL, and so do double quotes.
    """

    class Tokenizer(tokens.Tokenizer):
        """The dialect's tokenizer."""

        IDENTIFIERS: ClassVar = ['"', "`"]

    class Parser(parser.Parser):
        """The dialect's parser."""

        TRIM_PATTERN_FIRST = True
        FUNCTIONS: ClassVar = {
            **parser.Parser.FUNCTIONS,
            "LTRIM": _trim_of("ltrim", "LEADING"),
            "RTRIM": _trim_of("rtrim", "TRAILING"),
        }

        def _parse_interval(self, *_: Any, **__: Any) -> Any:
            """Parse an interval as a call with its text: sqlglot 26 drops signs and fractions."""
            index, words = self._index, []
            if not self._match(TokenType.INTERVAL):
                return None
            while True:
                sign = "-" if self._match(TokenType.DASH) else ""
                if not self._match_set(_NUMBERS):
                    break
                words.append(sign + self._prev.text)
                if self._curr and self._curr.text.lower() in INTERVAL_UNITS:
                    self._advance()
                    words.append(self._prev.text)
                elif self._prev.token_type is not TokenType.STRING:
                    break
                if not self._match_set(_NUMBERS, advance=False):
                    text = exp.Literal.string(" ".join(words))
                    return exp.Anonymous(this="interval", expressions=[text])
            self._retreat(index)
            return None

        def _parse_as_command(self, start: Any) -> Any:
            """Refuse statements that sqlglot does not know; it would print a warning."""
            raise ParseError(f"{start.text} begins a statement")


class SqlTree(str):
    """An expression with its syntax tree, whose names a statement has already resolved."""

    __slots__ = ("tree",)
    tree: Any

    def __new__(cls, sql: str, tree: Any = None) -> SqlTree:
        """Return the text with its tree. Without one it is restored from a pickle."""
        result = super().__new__(cls, sql)
        result.tree = tree
        return result


def parse_one(sql: str, what: str, *, hint: str = "") -> Any:
    """Parse one SQL expression; a `SqlTree` is parsed already.

    Raises `ConfigError` for an invalid expression, for one that needs parentheses
    (see `check_order`), and for one that is nested too deep: the parser takes more of
    Python's stack with each level, and some thirty levels always fit.
    """
    if isinstance(sql, SqlTree):
        return sql.tree.copy()
    try:
        parsed = sqlglot.parse(sql, read=_Sql)
        statements = [statement for statement in parsed if statement is not None]
        for statement in statements:
            check_order(statement, what)
    except SqlglotError as error:
        msg = f"{what}: {_quote_text(sql)} is not a SQL expression: {_parse_error_text(error)}"
        if "&&" in sql:
            hint = AND_OR
        elif _INNER.search(str(error)):
            hint = "Complete it, such as fare > 5."
        raise ConfigError(msg, hint=_QUOTES if "`" in sql or not hint else hint) from error
    except RecursionError:
        raise too_deep(what) from None
    if len(statements) != 1:
        msg = f"{what}: {_quote_text(sql)} is not one SQL expression"
        raise ConfigError(msg, hint=hint or _QUOTES)
    return statements[0]


def time_of_call(node: Any) -> str | None:
    """Return the type of a call that gives the current time or date; None for another node."""
    if type(node) is exp.Anonymous and str(node.this).lower() == "now":
        return None if node.expressions else "TIMESTAMP"
    types = {exp.CurrentTimestamp: "TIMESTAMP", exp.CurrentDate: "DATE"}
    return None if node.args.get("this") else types.get(type(node))


def too_deep(what: str) -> ConfigError:
    """Return the error for an expression that is nested too deep."""
    return ConfigError(
        f"{what}: the expression is nested too deep",
        hint="Use at most about 30 levels of parentheses and NOT.",
    )


def number(digits: str, what: str) -> int | float | Decimal:
    """Parse a number literal. Raises `ConfigError` for one of more than 400 characters."""
    if len(digits) > _MAX_DIGITS:
        raise ConfigError(
            f"{what}: a number of {len(digits)} digits",
            hint=f"Numbers can have up to {_MAX_DIGITS} digits.",
        )
    if "e" in digits.lower():
        return float(digits)
    return int(digits) if digits.isdecimal() else Decimal(digits)


def _quote_text(sql: str) -> str:
    return repr(sql if len(sql) <= _MAX_QUOTED else f"{sql[:_MAX_QUOTED]}…")


def _parse_error_text(error: SqlglotError) -> str:
    """Return sqlglot's message without names of its classes and without the marked position."""
    message = _INNER.sub("an operand is missing", str(error).split("\n", 1)[0])
    return _TOKEN.sub(
        lambda match: "the end" if match[1] == "SENTINEL" else repr(match[1]), message
    )


_QUOTES = (
    "Quote strings with single quotes, and columns named like an SQL word with double quotes or "
    "backticks."
)
_TOKEN = re.compile(r"<Token token_type: [\w.]+, text: (.*?), line: [^>]*>")
_INNER = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]+'>")


_ADDING = (exp.Add, exp.Sub, exp.DPipe)
_MULTIPLYING = (exp.Mul, exp.Div, exp.Mod)
_COMPARING = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.Is,
    exp.Between,
    exp.In,
    exp.Like,
    exp.ILike,
    exp.RegexpLike,
)
_SIDES = ("this", "expression", "low", "high")


AND_OR = "SQL says AND and OR, where Python says & and |."


def has_bits(tree: Any) -> bool:
    """Return whether it has bit operators, which users of data frames take for AND and OR."""
    return tree.find(exp.BitwiseAnd, exp.BitwiseOr) is not None


def check_order(tree: Any, what: str) -> None:
    """Raise `ConfigError` for nested operators that need parentheses."""
    for node in tree.walk():
        for side in _SIDES:
            operand = node.args.get(side)
            if isinstance(
                operand, _operators_to_enclose(type(node), side)
            ) or _has_added_parentheses(node, side, operand):
                raise ConfigError(
                    f"{what}: {node.sql()} is ambiguous",
                    hint=AND_OR
                    if has_bits(node)
                    else "Put parentheses around the operands, and one with IS to the left.",
                )


def _has_added_parentheses(node: Any, side: str, operand: Any) -> bool:
    """Match `a = (b IS NULL)`: some releases add these parentheses where the caller had none."""
    if not isinstance(node, _COMPARING) or side == "this" or not isinstance(operand, exp.Paren):
        return False
    return isinstance(operand.this, exp.Is)


def _operators_to_enclose(node_type: type[Any], side: str) -> tuple[type[Any], ...]:
    """Return the operators that need parentheses as an operand of this one."""
    if node_type in _MULTIPLYING:
        if side != "this":
            return (*_ADDING, *_MULTIPLYING)
        return (*_ADDING, *(_MULTIPLYING if node_type is exp.Mod else (exp.Mod,)))
    if node_type in _ADDING:
        return () if side == "this" else _ADDING
    if node_type is exp.Neg:
        return (*_ADDING, *_MULTIPLYING)
    if node_type is exp.And:
        return (exp.Or,)
    return (*_COMPARING, exp.Not) if node_type in _COMPARING else ()


def is_column_name(name: str) -> bool:
    """Return whether SQL reads a name without quotes as a column."""
    try:
        tree = sqlglot.parse_one(name, read=_Sql)
    except SqlglotError:
        return False
    return type(tree) is exp.Column and tree.name == name
