"""Parses the statements of Spark SQL that read or change rows; `ddl_parser.py` has the others.

The grammar is Spark's (`SqlBaseParser.g4`, 4.1) with what Hudi adds to it (`HoodieSqlBase.g4`,
1.2.0). A statement that neither file knows is a `Query`.
"""

from __future__ import annotations

import re
from typing import Literal

from pyhudi.config.formatting import count_text
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.sql_statements import ddl_parser
from pyhudi.sql_statements.statements import (
    Assignment,
    Clause,
    ClauseType,
    Delete,
    Insert,
    MergeInto,
    Query,
    Statement,
    TableName,
    Update,
)
from pyhudi.sql_statements.table_references import find_tables
from pyhudi.sql_statements.tokens import Dialect, Tokens

_CHANGES = frozenset({"MERGE", "UPDATE", "DELETE", "INSERT", "ALTER", "DROP", "TRUNCATE"})
_BEFORE_TARGET = _CHANGES | frozenset(
    """WITH SCHEMA EVOLUTION INTO OVERWRITE FROM TABLE IF EXISTS""".split()  # noqa: SIM905
)
_STORED_QUERY = re.compile(
    r"(?P<cache>CACHE)|(CREATE (OR REPLACE )?(GLOBAL )?(?P<temporary>TEMP |TEMPORARY )?|ALTER )VIEW"
)
_QUERY_WORDS = frozenset({"SELECT", "WITH", "VALUES", "FROM", "TABLE", "MAP", "REDUCE"})


def parse_statement(sql: str, dialect: Dialect = "spark") -> Statement:
    """Parse one statement; a semicolon may end it.

    Raises `ConfigError` that says where a statement that pyhudi runs itself is incomplete or
    unknown, and for no statement or several.
    """
    tokens = Tokens(sql, dialect)
    if not tokens.raw():
        tokens.fail("expected a statement")
    statement = _parse(tokens)
    tokens.finish()
    return statement


def first_word(sql: str) -> str:
    """Return the first word of a statement in upper case; "" if it cannot be read."""
    try:
        return Tokens(sql).word()
    except ConfigError:
        return ""


def target_table(sql: str) -> TableName | None:
    """Return the table that a statement changes, even if the rest of it cannot be parsed."""
    if first_word(sql) not in _CHANGES:
        return None
    try:
        tokens = Tokens(sql)
        while tokens.word() in _BEFORE_TARGET:
            tokens.at += 1
        return TableName(tokens.names())
    except ConfigError:
        return None


def is_query(sql: str, dialect: Dialect = "spark") -> bool:
    """Return whether a text is a query, and not the name of a table."""
    return Tokens(sql, dialect).word() in _QUERY_WORDS


def query_of_source(source: str, dialect: Dialect = "spark") -> str:
    """Return the source of a merge as a query."""
    return source if is_query(source, dialect) else f"SELECT * FROM {source}"  # noqa: S608 - a name of the statement


def name_of_source(source: str, dialect: Dialect = "spark") -> str | None:
    """Return the name by which a condition may call the source of a merge without an alias."""
    if is_query(source, dialect):
        return None
    (reference,) = find_tables(f"TABLE {source}", dialect)
    return None if reference.table.path is not None else reference.table.parts[-1]


def column_to_set(assignment: Assignment, statement: MergeInto | Update | Delete) -> str:
    """Return the column of an assignment without the name of the table or its alias."""
    first, *rest = assignment.column
    name = statement.alias or statement.table.parts[-1]
    column = rest if rest and first.lower() == name.lower() else [first, *rest]
    if len(column) > 1:
        raise UnsupportedTableFeature(
            f"the assignment to {'.'.join(column)}, a field of a struct",
            hint=f"Set {column[0]} to a whole struct.",
        )
    return column[0]


def _parse(tokens: Tokens) -> Statement:
    match tokens.word():
        case "MERGE":
            return _merge(tokens)
        case "UPDATE":
            return _update(tokens)
        case "DELETE":
            return _delete(tokens)
        case "INSERT":
            return _insert(tokens)
        case _:
            first = tokens.at
            statement = ddl_parser.parse(tokens)
            if statement is not None:
                return statement
            tokens.at = first
            stored_in = _store_of_query(tokens)
            return Query(tokens.rest("a statement"), stored_in)


def _store_of_query(tokens: Tokens) -> Literal["session", "catalog"] | None:
    """Return where the engine stores the query of a statement (`Query.stored_in`)."""
    first_words = " ".join(tokens.word(offset) for offset in range(6))
    match = _STORED_QUERY.match(first_words)
    if match is None:
        return None
    return "session" if match["cache"] or match["temporary"] else "catalog"


def _merge(tokens: Tokens) -> MergeInto:
    tokens.expect("MERGE")
    if tokens.word() == "WITH":
        tokens.fail(
            "MERGE WITH SCHEMA EVOLUTION is not supported: add columns by ALTER TABLE first"
        )
    tokens.expect("INTO")
    table = TableName(tokens.names())
    alias = _alias(tokens, ("USING",))
    tokens.expect("USING")
    enclosed = tokens.word() == "("
    source = tokens.text_in_parentheses("the source") if enclosed else _source_name(tokens)
    source_alias = _alias(tokens, ("ON",))
    tokens.expect("ON")
    condition = tokens.text_until({"WHEN"}, "a condition")
    clauses = []
    while tokens.word() == "WHEN":
        clauses.append(_clause(tokens))
    if not clauses:
        tokens.fail("expected WHEN")
    return MergeInto(table, alias, source, source_alias, condition, tuple(clauses))


def _source_name(tokens: Tokens) -> str:
    """Step over the name of a table, with a time if there is one."""
    first = tokens.at
    tokens.names()
    tokens.accept("FOR")
    if tokens.word(1) == "AS" and tokens.word(2) == "OF":
        tokens.at += 4
    return tokens.text(first)


def _clause(tokens: Tokens) -> Clause:
    tokens.expect("WHEN")
    when: ClauseType = "matched"
    if tokens.accept("NOT", "MATCHED"):
        when = "not_matched_by_source" if tokens.accept("BY", "SOURCE") else "not_matched"
        tokens.accept("BY", "TARGET")
    else:
        tokens.expect("MATCHED")
    condition = tokens.text_until({"THEN"}, "a condition") if tokens.accept("AND") else None
    tokens.expect("THEN")
    if when == "not_matched":
        tokens.expect("INSERT")
        return Clause(when, "insert", condition, _insert_values(tokens))
    if tokens.one_of("UPDATE", "DELETE") == "DELETE":
        return Clause(when, "delete", condition)
    tokens.expect("SET")
    if tokens.accept("*"):
        if when == "not_matched_by_source":
            tokens.fail("UPDATE SET * has no source row here: name the columns")
        return Clause(when, "update", condition)
    return Clause(when, "update", condition, _assignments(tokens, {"WHEN"}))


def _insert_values(tokens: Tokens) -> tuple[Assignment, ...] | None:
    if tokens.accept("*"):
        return None
    tokens.expect("(")
    columns = [tokens.names()]
    while tokens.accept(","):
        columns.append(tokens.names())
    tokens.expect(")")
    tokens.expect("VALUES", "(")
    values = [tokens.text_until({","}, "a value")]
    while tokens.accept(","):
        values.append(tokens.text_until({","}, "a value"))
    tokens.expect(")")
    if len(values) != len(columns):
        has = count_text(len(values), "value")
        tokens.fail(f"INSERT names {count_text(len(columns), 'column')} and has {has}")
    return tuple(Assignment(*pair) for pair in zip(columns, values, strict=True))


def _assignments(tokens: Tokens, stops: set[str]) -> tuple[Assignment, ...]:
    result = []
    while True:
        column = tokens.names()
        tokens.expect("=")
        result.append(Assignment(column, tokens.text_until({",", *stops}, "a value")))
        if not tokens.accept(","):
            return tuple(result)


def _update(tokens: Tokens) -> Update:
    tokens.expect("UPDATE")
    table = TableName(tokens.names())
    alias = _alias(tokens, ("SET",))
    tokens.expect("SET")
    return Update(table, alias, _assignments(tokens, {"WHERE"}), _where(tokens))


def _delete(tokens: Tokens) -> Delete:
    tokens.expect("DELETE", "FROM")
    table = TableName(tokens.names())
    return Delete(table, _alias(tokens, ("WHERE",)), _where(tokens))


def _where(tokens: Tokens) -> str | None:
    return tokens.rest("a condition") if tokens.accept("WHERE") else None


def _alias(tokens: Tokens, stops: tuple[str, ...]) -> str | None:
    if tokens.accept("AS"):
        return tokens.name()
    return tokens.name() if tokens.is_name() and tokens.word() not in stops else None


def _insert(tokens: Tokens) -> Insert:
    tokens.expect("INSERT")
    overwrite = tokens.one_of("INTO", "OVERWRITE") == "OVERWRITE"
    if tokens.accept("TABLE") or tokens.word() != "DIRECTORY":
        table = TableName(tokens.names())
    else:
        tokens.fail("expected a table")
    partition = ddl_parser.partition_spec(tokens) if tokens.word() == "PARTITION" else {}
    if tokens.accept("IF", "NOT", "EXISTS"):
        tokens.fail("INSERT OVERWRITE ... IF NOT EXISTS is not supported")
    if tokens.word() == "REPLACE":
        tokens.fail("INSERT INTO ... REPLACE WHERE is not supported: use DELETE, then INSERT")
    by_name = tokens.accept("BY", "NAME")
    columns = None
    if not by_name and tokens.word() == "(" and tokens.word(1) not in {*_QUERY_WORDS, "("}:
        tokens.expect("(")
        columns = tokens.name_list()
    query = tokens.rest("a query")
    return Insert(table, query, overwrite, columns, by_name, partition)
