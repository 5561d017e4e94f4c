"""A cursor over the tokens of one SQL statement, which knows the position of each in the text."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any, Literal, NoReturn, TypeAlias

from pyhudi.errors import ConfigError

Dialect: TypeAlias = Literal["spark", "standard"]
"""How names and strings are quoted. In "spark", backticks quote names, double quotes quote strings,
and a backslash in a string escapes. In "standard", double quotes and backticks quote names, and a
backslash is a backslash."""

_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_STRING_QUOTES = {"spark": ("'", '"'), "standard": ("'",)}
_NAME_QUOTES = {"spark": ("`",), "standard": ("`", '"')}
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}
_QUOTED_LENGTH = 40
"""Characters of the statement that an error repeats."""


class Tokens:
    """The tokens of a statement, and the position of the next one.

    A word is compared in upper case. A quoted identifier or a string is never a word.
    """

    def __init__(self, sql: str, dialect: Dialect = "spark") -> None:
        """Split a statement into tokens. Raises `ConfigError` for an unclosed quote or comment."""
        from sqlglot.errors import SqlglotError  # noqa: PLC0415 - slow to import

        self.sql = sql
        self.dialect = dialect
        try:
            self._tokens: list[Any] = _tokenizer(dialect)().tokenize(sql)
        except SqlglotError as error:
            msg = f"the SQL statement cannot be read: {str(error).splitlines()[0]}"
            raise ConfigError(msg, hint="Close each quote and comment.") from error
        self.at = 0

    def __len__(self) -> int:
        return len(self._tokens)

    def raw(self, offset: int = 0) -> str:
        """Return the text of a token as the caller wrote it; "" after the last one."""
        at = self.at + offset
        if not 0 <= at < len(self._tokens):
            return ""
        token = self._tokens[at]
        return self.sql[token.start : token.end + 1]

    def word(self, offset: int = 0) -> str:
        """Return a token in upper case."""
        return self.raw(offset).upper()

    def start(self, at: int) -> int:
        """Return where a token begins in the text; the text's length after the last one."""
        return int(self._tokens[at].start) if at < len(self._tokens) else len(self.sql)

    def end(self, at: int) -> int:
        """Return where a token ends in the text."""
        return int(self._tokens[at].end) + 1

    def accept(self, *words: str) -> bool:
        """Step over these words if they come next."""
        if any(self.word(offset) != word for offset, word in enumerate(words)):
            return False
        self.at += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Step over these words. Raises `ConfigError` if others come next."""
        if not self.accept(*words):
            self.fail(f"expected {' '.join(words)}")

    def one_of(self, *words: str) -> str:
        """Step over one of these words and return it."""
        word = self.word()
        if word not in words:
            self.fail(f"expected {', '.join(words[:-1])} or {words[-1]}")
        self.at += 1
        return word

    def is_name(self, offset: int = 0) -> bool:
        """Return whether a token is an identifier or a word."""
        raw = self.raw(offset)
        return raw[:1] in {"_", *_NAME_QUOTES[self.dialect]} or raw[:1].isalpha()

    def is_quoted(self, offset: int = 0) -> bool:
        """Return whether a token is a quoted identifier."""
        return self.raw(offset)[:1] in _NAME_QUOTES[self.dialect]

    def name(self) -> str:
        """Step over an identifier, quoted or not, and return it."""
        if not self.is_name():
            self.fail("expected a name")
        raw, is_quoted = self.raw(), self.is_quoted()
        self.at += 1
        return raw[1:-1].replace(raw[0] * 2, raw[0]) if is_quoted else raw

    def names(self) -> tuple[str, ...]:
        """Step over names that dots join."""
        names = [self.name()]
        while self.accept("."):
            names.append(self.name())
        return tuple(names)

    def name_list(self) -> tuple[str, ...]:
        """Step over names with commas between them, and the closing parenthesis."""
        names = [self.name()]
        while self.accept(","):
            names.append(self.name())
        self.expect(")")
        return tuple(names)

    def is_string(self, offset: int = 0) -> bool:
        """Return whether a token is a string."""
        return self.raw(offset)[:1] in _STRING_QUOTES[self.dialect]

    def string(self) -> str:
        """Step over a string and return its value. Two quotes in it are one, as in Spark 4."""
        if not self.is_string():
            self.fail("expected a string")
        text = str(self._tokens[self.at].text)
        self.at += 1
        while self.is_string() and self.start(self.at) == self.end(self.at - 1):
            text += self.raw()[0] + str(self._tokens[self.at].text)
            self.at += 1
        return text

    def integer(self) -> int:
        """Step over a number and return it."""
        raw = self.raw()
        if not raw.isdecimal():
            self.fail("expected a number")
        self.at += 1
        return int(raw)

    def literal(self) -> str | int | bool | None:
        """Step over a string, an integer, TRUE, FALSE or NULL, and return its value."""
        if self.is_string():
            return self.string()
        negative = self.accept("-")
        if self.raw().isdecimal():
            value = self.integer()
            return -value if negative else value
        if negative or self.word() not in _CONSTANTS:
            self.fail("expected a string, an integer, true, false or null")
        self.at += 1
        return _CONSTANTS[self.word(-1)]

    def text_until(self, stops: Collection[str], what: str, *, is_type: bool = False) -> str:
        """Step to the first of some words that is in no parentheses and no CASE, or to the end.

        Raises `ConfigError` if there is nothing before it.

        what: what the text is, for the error.
        is_type: < and > are parentheses.
        """
        first, depth, cases = self.at, 0, 0
        while self.at < len(self._tokens) and self.raw() != ";":
            word = self.word()
            if not depth and not cases and word in stops:
                break
            depth += (word in _OPENING) - (word in _CLOSING)
            if is_type:
                depth += word.count("<") - word.count(">")
            if depth < 0:
                break
            cases += (word == "CASE") - (word == "END" and cases > 0)
            self.at += 1
        if self.at == first:
            self.fail(f"expected {what}")
        return self.text(first)

    def text_in_parentheses(self, what: str) -> str:
        """Step over a pair of parentheses and return the text between them, which may be empty."""
        self.expect("(")
        first, depth = self.at, 1
        while depth:
            if not self.raw():
                self.fail(f"expected ) after {what}")
            depth += (self.raw() in _OPENING) - (self.raw() in _CLOSING)
            self.at += 1
        closing = self.at - 1
        return self.sql[self.end(first - 1) : self.start(closing)].strip()

    def text(self, first: int) -> str:
        """Return the text from one token up to the next token of the cursor."""
        return self.sql[self.start(first) : self.end(self.at - 1)]

    def rest(self, what: str) -> str:
        """Step to the end, and return the text up to it."""
        return self.text_until((), what)

    def finish(self) -> None:
        """Step over a last semicolon. Raises `ConfigError` if anything follows."""
        while self.accept(";"):
            pass
        if self.raw():
            self.fail("expected the end of the statement")

    def fail(self, what: str) -> NoReturn:
        """Raise a `ConfigError` that says what was expected where."""
        at = self.start(self.at)
        line = self.sql.count("\n", 0, at) + 1
        column = at - self.sql.rfind("\n", 0, at)
        near = self.sql[at : at + _QUOTED_LENGTH] or "the end"
        raise ConfigError(f"SQL, line {line}, column {column}: {what}, found {near!r}")


def quote_name(name: str, dialect: Dialect = "standard") -> str:
    """Return a name in quotes."""
    sign = "`" if dialect == "spark" else '"'
    return f"{sign}{name.replace(sign, sign * 2)}{sign}"


def quote_text(text: str) -> str:
    """Return a string for a statement: DuckDB, pyhudi and Spark 4 read two quotes as one."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


@cache
def _tokenizer(dialect: Dialect) -> Any:
    """Return the tokenizer of a dialect, with each word as a token of its own.

    Otherwise the rest of a CALL is one token, and so is GROUP BY.
    """
    # These are slow to import.
    from sqlglot.dialects.duckdb import DuckDB  # noqa: PLC0415
    from sqlglot.dialects.spark import Spark  # noqa: PLC0415

    base: Any = Spark.Tokenizer if dialect == "spark" else DuckDB.Tokenizer
    keywords = {text: token for text, token in base.KEYWORDS.items() if " " not in text}
    own = {"COMMANDS": set(), "KEYWORDS": keywords}
    return type(
        "_Tokenizer", (base,), own | ({} if dialect == "spark" else {"IDENTIFIERS": ['"', "`"]})
    )
