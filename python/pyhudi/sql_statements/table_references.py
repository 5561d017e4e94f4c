"""Finds the tables that a query reads, and puts other relations in their place in its text.

The query is not parsed: only the positions of relations are found, so that the engine gets the rest
as the caller wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyhudi.errors import ConfigError
from pyhudi.sql_statements.statements import TableName
from pyhudi.sql_statements.tokens import Dialect, Tokens, quote_name

TABLE_FUNCTIONS = ("as_of", "hudi_table_changes", "hudi_query_timeline", "hudi_filesystem_view")
"""Functions that return the rows of a query about a table: those of Hudi's SQL, and `as_of`."""

_BEFORE_TABLE = frozenset({"", "(", "UNION", "ALL", "DISTINCT", "EXCEPT", "MINUS", "INTERSECT"})
"""Words before a query `TABLE trips`; after others, TABLE belongs to a statement."""
_SUBQUERY = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "(", "MAP", "REDUCE"})
_END_OF_FROM = frozenset(
    """SELECT WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW UNION EXCEPT
    MINUS INTERSECT PIVOT UNPIVOT LATERAL SET WHEN""".split()  # noqa: SIM905 - easier to read
)
_NO_TABLE = _SUBQUERY | {"LATERAL", "UNNEST"}
_NO_ALIAS = _END_OF_FROM | frozenset(
    """ON JOIN INNER CROSS LEFT RIGHT FULL SEMI ANTI NATURAL USING TABLESAMPLE VALUES FOR
    TIMESTAMP VERSION THEN""".split()  # noqa: SIM905 - easier to read
)
"""Words after a table that are no alias."""


@dataclass(frozen=True)
class TableReference:
    """A table in a query."""

    table: TableName
    start: int
    """Position in the query at which it begins."""
    end: int
    as_of: str | None = None
    """The time or instant of TIMESTAMP AS OF and VERSION AS OF."""
    time_error: ConfigError | None = None
    """The error if that is no literal. Other formats than Hudi may allow it."""
    has_alias: bool = False
    function: str | None = None
    """One of `TABLE_FUNCTIONS`; the table is its first argument."""
    arguments: tuple[Any, ...] = ()
    """The other arguments of the function."""


def find_tables(sql: str, dialect: Dialect = "spark") -> list[TableReference]:
    """Return the relations that a statement names, in order, without those of its WITH clauses."""
    tokens = Tokens(sql, dialect)
    references: list[TableReference] = []
    local = _common_tables(tokens)
    in_from = [False]  # one for each open parenthesis
    relation_follows = False
    while tokens.raw():
        if relation_follows and tokens.is_name() and tokens.word() not in _NO_TABLE:
            reference = _reference(tokens)
            if reference is not None and reference.table.parts[0].lower() not in local:
                references.append(reference)
            relation_follows = False
            continue
        word = tokens.word()
        tokens.at += 1
        if word == "(":
            in_from.append(relation_follows)
        elif word == ")":
            in_from = in_from[:-1] or [False]
            relation_follows = False
        elif word in {"FROM", "JOIN"} and _is_from_clause(tokens):
            in_from[-1] = relation_follows = True
        elif word == "TABLE" and tokens.word(-2) in _BEFORE_TABLE:
            relation_follows = True
        else:
            in_from[-1] = in_from[-1] and word not in _END_OF_FROM
            relation_follows = word == "," and in_from[-1]
    return references


def replace_tables(
    sql: str,
    references: Sequence[TableReference],
    relation: Callable[[TableReference], str | None],
    dialect: Dialect = "spark",
) -> str:
    """Return a query with another relation in the place of each reference that has one.

    A table without an alias keeps its name as the alias, since columns may be named by it.
    """
    result, at = [], 0
    for reference in references:
        text = relation(reference)
        if text is None:
            continue
        result += [sql[at : reference.start], text]
        if not reference.has_alias and reference.table.path is None and not reference.function:
            result.append(f" AS {quote_name(reference.table.parts[-1], dialect)}")
        at = reference.end
    return "".join([*result, sql[at:]])


def time_of_function(reference: TableReference) -> str:
    """Return the time or instant that the function `as_of` reads a table at."""
    arguments = reference.arguments
    # A bool is an int.
    if len(arguments) != 1 or type(arguments[0]) not in {str, int}:
        raise ConfigError(
            "as_of needs a table, and a time or an instant as a literal",
            hint=f"as_of('{reference.table}', '2026-01-01')",
        )
    return str(arguments[0])


def range_of_changes(reference: TableReference) -> tuple[str, str | None, str | None]:
    """Return the query that `hudi_table_changes` runs, and its start and end; None: no bound."""
    arguments = reference.arguments
    if len(arguments) not in {2, 3} or not all(isinstance(value, str) for value in arguments):
        raise ConfigError(
            "hudi_table_changes needs a table, a type of query and a start as strings",
            hint="hudi_table_changes('trips', 'latest_state', 'earliest')",
        )
    query, start, *end = arguments
    if query not in {"latest_state", "cdc"}:
        raise ConfigError(f"the type of query is {query!r}", hint="latest_state or cdc")
    return query, None if start == "earliest" else start, end[0] if end else None


def _common_tables(tokens: Tokens) -> set[str]:
    """Return the names that WITH clauses define: `name [(columns)] AS (query)`."""
    names = set()
    for at in range(len(tokens)):
        tokens.at = at
        if not (tokens.word() == "AS" and tokens.raw(1) == "(" and tokens.word(2) in _SUBQUERY):
            continue
        back = -1
        if tokens.raw(back) == ")":
            while tokens.raw(back) not in {"(", ""}:
                back -= 1
            back -= 1
        if tokens.is_name(back) and tokens.word(back - 1) in {"WITH", ",", "RECURSIVE"}:
            names.add(tokens.raw(back).strip('`"').lower())
    tokens.at = 0
    return names


def _is_from_clause(tokens: Tokens) -> bool:
    """Return whether a FROM begins a clause, unlike `IS DISTINCT FROM` and `trim(x FROM y)`."""
    if tokens.word(-2) == "DISTINCT" and tokens.word(-3) in {"IS", "NOT"}:
        return False
    depth, back = 0, -2
    while tokens.raw(back):
        raw = tokens.raw(back)
        if raw == ")":
            depth += 1
        elif raw == "(":
            if depth == 0:
                return tokens.word(back + 1) in _SUBQUERY
            depth -= 1
        back -= 1
    return True


def _reference(tokens: Tokens) -> TableReference | None:
    first = tokens.at
    table = TableName(tokens.names())
    if tokens.raw() == "(":
        name = table.parts[-1].lower()
        return _function(tokens, first, name) if name in TABLE_FUNCTIONS else None
    end = tokens.end(tokens.at - 1)
    as_of = time_error = None
    ahead = 1 if tokens.word() == "FOR" else 0
    is_time = tokens.word(ahead) in {"TIMESTAMP", "SYSTEM_TIME", "VERSION", "SYSTEM_VERSION"}
    if is_time and tokens.word(ahead + 1) == "AS" and tokens.word(ahead + 2) == "OF":
        tokens.at += ahead + 3
        if tokens.word() in {"TIMESTAMP", "DATE"} and tokens.is_string(1):
            tokens.at += 1
        try:
            as_of = tokens.string() if tokens.is_string() else str(tokens.integer())
        except ConfigError as error:
            time_error = error
        end = tokens.end(tokens.at - 1)
    # `TABLE trips` takes no alias, and no other clause names it.
    follows_table = tokens.word(first - tokens.at - 1) == "TABLE"
    is_alias = tokens.is_name() and tokens.word() not in _NO_ALIAS
    has_alias = follows_table or is_alias or tokens.word() == "AS"
    return TableReference(table, tokens.start(first), end, as_of, time_error, has_alias)


def _function(tokens: Tokens, first: int, name: str) -> TableReference:
    tokens.expect("(")
    arguments = [tokens.literal()]
    while tokens.accept(","):
        arguments.append(tokens.literal())
    tokens.expect(")")
    table, *rest = arguments
    if not isinstance(table, str):
        tokens.fail(f"{name} needs the name or path of a table as a string")
    end = tokens.end(tokens.at - 1)
    return TableReference(
        TableName.parse(table),
        tokens.start(first),
        end,
        has_alias=True,
        function=name,
        arguments=tuple(rest),
    )
