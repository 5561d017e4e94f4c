"""Parses statements about tables, partitions and indexes, and calls of procedures."""

from __future__ import annotations

from pyhudi.errors import ConfigError
from pyhudi.sql_statements.statements import (
    HUDI_FORMATS,
    AlterColumns,
    Call,
    ColumnChange,
    CreateIndex,
    CreateTable,
    DropIndex,
    DropPartitions,
    DropTable,
    SetProperties,
    Show,
    Statement,
    TableName,
    Truncate,
)
from pyhudi.sql_statements.tokens import Tokens

_OTHER_OBJECTS = frozenset({"QUERY", "FUNCTION", "DATABASE", "SCHEMA", "CATALOG", "NAMESPACE"})
_LAST = frozenset({"", ";", "."})
_CLAUSES = ("PARTITIONED", "CLUSTERED", "LOCATION", "TBLPROPERTIES", "OPTIONS", "COMMENT", "AS")


def parse(tokens: Tokens) -> Statement | None:
    """Parse a statement; None if it is not one of Hudi's, which leaves the position undefined."""
    match tokens.word(), tokens.word(1):
        case ("CREATE", "INDEX"):
            return _create_index(tokens)
        case ("CREATE", _):
            return _create_table(tokens)
        case ("DROP", "TABLE"):
            return _drop_table(tokens)
        case ("DROP", "INDEX"):
            return _drop_index(tokens)
        case ("TRUNCATE", "TABLE"):
            return _truncate(tokens)
        case ("ALTER", "TABLE"):
            return _alter(tokens)
        case ("CALL", _):
            return _call(tokens)
        case ("SHOW", _) | ("DESCRIBE", _) | ("DESC", _):
            return _show(tokens)
        case _:
            return None


def partition_spec(tokens: Tokens) -> dict[str, str | None]:
    """Parse `PARTITION (city = 'oslo', day)`: an expression for each column that has one."""
    tokens.expect("PARTITION", "(")
    result: dict[str, str | None] = {}
    while True:
        name = tokens.name()
        if name in result:
            tokens.fail(f"the partition column {name} is there twice")
        result[name] = tokens.text_until({","}, "a value") if tokens.accept("=") else None
        if not tokens.accept(","):
            break
    tokens.expect(")")
    return result


def _properties(tokens: Tokens) -> dict[str, str]:
    """Parse `('a' = 'b', c.d = 1)`."""
    tokens.expect("(")
    result = {}
    while not tokens.accept(")"):
        name = tokens.string() if tokens.is_string() else ".".join(tokens.names())
        tokens.accept("=")
        result[name] = (
            tokens.string() if tokens.is_string() else tokens.text_until({","}, "a value")
        )
        if not tokens.accept(","):
            tokens.expect(")")
            break
    return result


def _create_table(tokens: Tokens) -> CreateTable | None:
    tokens.expect("CREATE")
    replace = tokens.accept("OR", "REPLACE")
    tokens.accept("EXTERNAL")
    if not tokens.accept("TABLE"):
        return None
    if_not_exists = tokens.accept("IF", "NOT", "EXISTS")
    try:
        table = TableName(tokens.names())
        columns = tokens.text_in_parentheses("the columns") if tokens.word() == "(" else None
    except ConfigError:  # The engine reports an error in a table of any format.
        return None
    if not tokens.accept("USING") or ".".join(tokens.names()).lower() not in HUDI_FORMATS:
        return None
    if replace:
        tokens.fail("CREATE OR REPLACE TABLE is not supported: use DROP TABLE first")
    partition_by: tuple[str, ...] = ()
    partition_columns = location = query = None
    properties: dict[str, str] = {}
    while tokens.word() in _CLAUSES:
        match tokens.one_of(*_CLAUSES):
            case "PARTITIONED":
                tokens.expect("BY")
                partition_by, partition_columns = _partition_columns(tokens)
            case "CLUSTERED":
                tokens.fail(
                    "CLUSTERED BY is not supported: set hoodie.index.type = 'BUCKET' and "
                    "hoodie.bucket.index.num.buckets in TBLPROPERTIES"
                )
            case "LOCATION":
                location = tokens.string()
            case "TBLPROPERTIES" | "OPTIONS":
                properties.update(_properties(tokens))
            case "COMMENT":
                properties["comment"] = tokens.string()
            case _:
                query = tokens.rest("a query")
    if query is None and tokens.raw() not in {"", ";"}:
        query = tokens.rest("a query")
    return CreateTable(
        table,
        columns,
        partition_by,
        partition_columns,
        if_not_exists,
        location,
        properties,
        query,
    )


def _partition_columns(tokens: Tokens) -> tuple[tuple[str, ...], str | None]:
    """Return the partition columns, and their declaration if they have types."""
    first = tokens.at
    tokens.expect("(")
    names, typed = [], False
    while True:
        names.append(tokens.name())
        if tokens.raw() not in {",", ")"}:
            if tokens.raw() == "(":
                tokens.fail("a partition transform is not supported: name a column")
            typed = True
            tokens.text_until({","}, "a type", is_type=True)
        if not tokens.accept(","):
            break
    tokens.expect(")")
    last = tokens.at
    tokens.at = first
    declaration = tokens.text_in_parentheses("the partition columns")
    tokens.at = last
    return tuple(names), declaration if typed else None


def _drop_table(tokens: Tokens) -> DropTable:
    tokens.expect("DROP", "TABLE")
    if_exists = tokens.accept("IF", "EXISTS")
    table = TableName(tokens.names())
    tokens.accept("PURGE")
    return DropTable(table, if_exists)


def _truncate(tokens: Tokens) -> Truncate:
    tokens.expect("TRUNCATE", "TABLE")
    table = TableName(tokens.names())
    return Truncate(table, partition_spec(tokens) if tokens.word() == "PARTITION" else {})


def _alter(tokens: Tokens) -> Statement | None:
    tokens.expect("ALTER", "TABLE")
    table = TableName(tokens.names())
    match tokens.word(), tokens.word(1):
        case ("ADD", "COLUMN" | "COLUMNS"):
            return AlterColumns(table, _column_additions(tokens))
        case ("RENAME", "COLUMN"):
            tokens.expect("RENAME", "COLUMN")
            column = ".".join(tokens.names())
            tokens.expect("TO")
            return AlterColumns(table, (ColumnChange("rename", column, tokens.name()),))
        case ("DROP", "COLUMN" | "COLUMNS"):
            tokens.at += 2
            enclosed = tokens.accept("(")
            changes = [ColumnChange("drop", ".".join(tokens.names()))]
            while tokens.accept(","):
                changes.append(ColumnChange("drop", ".".join(tokens.names())))
            if enclosed:
                tokens.expect(")")
            return AlterColumns(table, tuple(changes))
        case ("ALTER" | "CHANGE", _):
            return AlterColumns(table, _column_changes(tokens))
        case ("SET", "TBLPROPERTIES"):
            tokens.at += 2
            return SetProperties(table, _properties(tokens))
        case ("DROP", "PARTITION" | "IF"):
            tokens.expect("DROP")
            if_exists = tokens.accept("IF", "EXISTS")
            partitions = [partition_spec(tokens)]
            while tokens.accept(","):
                partitions.append(partition_spec(tokens))
            tokens.accept("PURGE")
            return DropPartitions(table, tuple(partitions), if_exists)
        case _:
            return None


def _column_additions(tokens: Tokens) -> tuple[ColumnChange, ...]:
    tokens.at += 2
    enclosed = tokens.accept("(")
    changes = []
    while True:
        column = ".".join(tokens.names())
        stops = {",", "COMMENT", "FIRST", "AFTER", "NOT", "DEFAULT"}
        data_type = tokens.text_until(stops, "a type", is_type=True)
        comment, first, after = None, False, None
        while tokens.raw() not in {"", ";", ",", ")"}:
            match tokens.one_of("COMMENT", "FIRST", "AFTER"):
                case "COMMENT":
                    comment = tokens.string()
                case "FIRST":
                    first = True
                case _:
                    after = tokens.name()
        changes.append(ColumnChange("add", column, data_type, comment, first, after))
        if not tokens.accept(","):
            break
    if enclosed:
        tokens.expect(")")
    return tuple(changes)


def _column_changes(tokens: Tokens) -> tuple[ColumnChange, ...]:
    """Parse `ALTER COLUMN c TYPE t` and `CHANGE COLUMN c [c] t COMMENT 's' AFTER d`."""
    tokens.one_of("ALTER", "CHANGE")
    tokens.accept("COLUMN")
    column = ".".join(tokens.names())
    changes: list[ColumnChange] = []
    if tokens.accept("DROP", "NOT", "NULL"):
        return (ColumnChange("nullable", column),)
    stops = {"COMMENT", "FIRST", "AFTER"}
    if tokens.word() not in stops:
        if not tokens.accept("TYPE"):
            name = tokens.name()
            if name != column.rsplit(".", 1)[-1]:
                tokens.fail(f"CHANGE COLUMN cannot rename {column}: use RENAME COLUMN")
        changes.append(
            ColumnChange("type", column, tokens.text_until(stops, "a type", is_type=True))
        )
    while tokens.raw() not in {"", ";"}:
        match tokens.one_of("COMMENT", "FIRST", "AFTER"):
            case "COMMENT":
                changes.append(ColumnChange("comment", column, tokens.string()))
            case "FIRST":
                changes.append(ColumnChange("move", column, first=True))
            case _:
                changes.append(ColumnChange("move", column, after=tokens.name()))
    return tuple(changes)


def _create_index(tokens: Tokens) -> CreateIndex:
    tokens.expect("CREATE", "INDEX")
    if_not_exists = tokens.accept("IF", "NOT", "EXISTS")
    name = tokens.name()
    tokens.expect("ON")
    tokens.accept("TABLE")
    table = TableName(tokens.names())
    index_type = tokens.name() if tokens.accept("USING") else ""
    columns = tokens.name_list() if tokens.accept("(") else ()
    options = _properties(tokens) if tokens.accept("OPTIONS") else {}
    return CreateIndex(name, table, index_type, columns, options, if_not_exists)


def _drop_index(tokens: Tokens) -> DropIndex:
    tokens.expect("DROP", "INDEX")
    if_exists = tokens.accept("IF", "EXISTS")
    name = tokens.name()
    tokens.expect("ON")
    tokens.accept("TABLE")
    return DropIndex(name, TableName(tokens.names()), if_exists)


def _show(tokens: Tokens) -> Show | None:
    for words, what in (
        (("DESCRIBE", "HISTORY"), "history"),
        (("DESC", "HISTORY"), "history"),
        (("DESCRIBE", "DETAIL"), "detail"),
        (("DESC", "DETAIL"), "detail"),
        (("SHOW", "PARTITIONS"), "partitions"),
        (("SHOW", "TBLPROPERTIES"), "properties"),
        (("SHOW", "CREATE", "TABLE"), "create"),
        (("SHOW", "INDEXES", "FROM"), "indexes"),
        (("SHOW", "INDEXES", "IN"), "indexes"),
    ):
        if tokens.accept(*words):
            table = TableName(tokens.names())
            limit = tokens.integer() if tokens.accept("LIMIT") else None
            return Show(what, table, limit)  # type: ignore[arg-type]
    if tokens.one_of("SHOW", "DESCRIBE", "DESC") == "SHOW":
        return None
    tokens.accept("TABLE")
    extended = tokens.accept("EXTENDED") or tokens.accept("FORMATTED")
    is_table = tokens.is_name() and tokens.word() not in _OTHER_OBJECTS and tokens.raw(1) in _LAST
    return Show("columns", TableName(tokens.names()), extended=extended) if is_table else None


def _call(tokens: Tokens) -> Call:
    tokens.expect("CALL")
    procedure = tokens.names()[-1].lower()
    tokens.expect("(")
    positional: list[object] = []
    named: dict[str, object] = {}
    while not tokens.accept(")"):
        if tokens.raw(1) == "=>":
            name = tokens.name().lower()
            tokens.expect("=>")
            if name in named:
                tokens.fail(f"the argument {name} is there twice")
            named[name] = tokens.literal()
        elif named:
            tokens.fail("expected name => value after the first argument with a name")
        else:
            positional.append(tokens.literal())
        if not tokens.accept(","):
            tokens.expect(")")
            break
    return Call(procedure, tuple(positional), named)
