"""Splits a text into SQL statements at the semicolons between them."""

from __future__ import annotations

from pyhudi.sql_statements.tokens import Tokens


def split_statements(text: str) -> tuple[list[str], str]:
    """Return the statements that a semicolon ends, and the text after the last of them.

    The second is "" if no statement begins there. Raises `ConfigError` for an unclosed quote or
    comment.
    """
    tokens = Tokens(text, "standard")
    statements, first = [], 0
    while tokens.raw():
        if tokens.raw() == ";":
            if tokens.at > first:
                statements.append(text[tokens.start(first) : tokens.start(tokens.at)].rstrip())
            first = tokens.at + 1
        tokens.at += 1
    return statements, text[tokens.start(first) :] if tokens.at > first else ""
