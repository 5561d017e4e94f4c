"""The command `sql`: statements of the command line, of standard input, or of a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyhudi.cli.arguments import Yes
from pyhudi.cli.command import Call
from pyhudi.clock import SystemClock
from pyhudi.config.formatting import count_text
from pyhudi.errors import ConfigError, HudiError, InterruptedAfterCommit, without_hint

if TYPE_CHECKING:
    import pyarrow as pa

    from pyhudi.sql_statements.session import SqlResult, SqlSession

_PROMPT, _CONTINUATION = "hudi> ", "   -> "
_HISTORY_LENGTH = 10_000
_HELP = r"""Statements end with a semicolon and may have several lines.
\d         list the tables
\d NAME    list the columns of a table
\timing    print how long each statement takes, or stop it
\?         print this help
\q         quit (or Ctrl-D); Ctrl-C cancels the statement"""
_EXPLAIN = ["explain_key", "explain_value"]
"""The columns of DuckDB's EXPLAIN: each value is a drawing of several lines."""
_NO_KEY = "A key cannot be added later; TBLPROPERTIES (primaryKey = 'id') sets one."
_KEYWORDS = [
    "ALTER",
    "TABLE",
    "AND",
    "AS",
    "BETWEEN",
    "BY",
    "CALL",
    "CASE",
    "CAST",
    "COLUMN",
    "CREATE",
    "DELETE",
    "FROM",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ELSE",
    "END",
    "EXISTS",
    "GROUP",
    "HAVING",
    "HISTORY",
    "IN",
    "INSERT",
    "INTO",
    "INTERVAL",
    "IS",
    "JOIN",
    "LIKE",
    "LIMIT",
    "LOCATION",
    "MATCHED",
    "MERGE",
    "NOT",
    "NULL",
    "ON",
    "OR",
    "ORDER",
    "OVERWRITE",
    "PARTITION",
    "PARTITIONED",
    "SELECT",
    "SET",
    "SHOW",
    "TABLES",
    "TBLPROPERTIES",
    "THEN",
    "TIMESTAMP",
    "TRUNCATE",
    "UNION",
    "UPDATE",
    "USING",
    "VALUES",
    "VERSION",
    "WHEN",
    "WHERE",
    "WITH",
]
_FIRST_WORDS = frozenset(
    """ALTER CALL CREATE DELETE DESC DESCRIBE DROP EXPLAIN FROM INSERT MERGE PIVOT SELECT SET SHOW
    SUMMARIZE TABLE TRUNCATE UNPIVOT UPDATE VALUES WITH""".split()  # noqa: SIM905 - easier to read
)


def sql(
    call: Call,
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLES",
            help="Tables as PATH or NAME=PATH; without NAME the last part of the path. A "
            "statement may follow them.",
        ),
    ] = None,
    execute: Annotated[
        list[str] | None,
        typer.Option("--execute", "-e", metavar="SQL", help="Run these statements. Repeatable."),
    ] = None,
    *,
    yes: Yes = False,
) -> None:
    """Run SQL statements that read and change tables; without statements, open a shell."""
    from pyhudi.sql_statements.relations import Relations  # noqa: PLC0415 - help does not need it
    from pyhudi.sql_statements.session import SqlSession  # noqa: PLC0415 - as above

    locations, scripts = list(tables or ()), list(execute or ())
    if not scripts and locations and _is_statement(locations[-1]):
        scripts.append(locations.pop())
    relations = Relations(None, call.storage_options, call.options)
    for location in locations:
        name, uri = _name_and_location(location)
        if name.lower() in map(str.lower, relations.names):
            raise typer.BadParameter(f"two tables are called {name!r}; give NAME=PATH")
        relations.add(name, uri)
    session = SqlSession(relations)
    if not scripts and sys.stdin.isatty():
        _Shell(call, session, yes=yes).run()
        return
    for script in scripts or [sys.stdin.read()]:
        _run_script(call, session, script, yes=yes)


def _is_statement(argument: str) -> bool:
    words = argument.split(maxsplit=1)
    return len(words) > 1 and words[0].upper() in _FIRST_WORDS


def _name_and_location(argument: str) -> tuple[str, str]:
    """Return the name of a table and its location."""
    name, sign, uri = argument.partition("=")
    if sign and name and not {"/", ":"} & set(name):
        return name, uri
    return argument.rstrip("/").rpartition("/")[2], argument


def _run_script(call: Call, session: SqlSession, script: str, *, yes: bool) -> None:
    """Run statements in order up to the first that fails; the others before it stay committed."""
    from pyhudi.sql_statements.script import split_statements  # noqa: PLC0415 - as above

    statements, rest = split_statements(script)
    for statement in [*statements, *([rest] if rest else [])]:
        _run_statement(call, session, statement, yes=yes)


def _run_statement(call: Call, session: SqlSession, statement: str, *, yes: bool) -> None:
    """Run a statement; ask before DROP TABLE, which cannot be reverted."""
    from pyhudi.sql_statements.definition_statements import (  # noqa: PLC0415 - as above
        drops_nothing,
        find_existing,
    )
    from pyhudi.sql_statements.statement_parser import parse_statement  # noqa: PLC0415 - as above
    from pyhudi.sql_statements.statements import CreateTable, DropTable  # noqa: PLC0415 - as above

    parsed = parse_statement(statement, "standard")
    if isinstance(parsed, DropTable):
        if drops_nothing(parsed, session.relations):
            call.out.note(f"there is no table {parsed.table}; nothing was changed")
            return
        # An error about the name comes before the question.
        session.relations.table(parsed.table)
        call.confirm(lambda: f"Remove the table {parsed.table} with all its rows?", yes=yes)
    if isinstance(parsed, CreateTable):
        existing = find_existing(parsed, session.relations)
        if existing is not None:
            session.run(statement)
            text = f"{parsed.table} exists at {existing.uri}; nothing was changed"
            call.out.print_done(text, exists=existing.uri)
            return
    _print_result(call, session.run(statement))


def _print_result(call: Call, result: SqlResult) -> None:
    import pyarrow as pa  # noqa: PLC0415 - as above

    from pyhudi.api.table import HudiTable  # noqa: PLC0415 - as above

    match result:
        case pa.Table() if result.column_names == _EXPLAIN and not call.out.json:
            call.out.text("\n".join(result.column(1).to_pylist()), result)
        case pa.Table():
            call.out.rows(result)
        case HudiTable():
            call.out.print_done(f"created {result.name} at {result.uri}", created=result.uri)
            if not result.config.record_key_fields:
                call.out.note("The table has no record key: rows get generated keys. " + _NO_KEY)
        case None:
            call.out.note("done")
        case _:
            counts = {
                "inserted": result.rows_inserted,
                "updated": result.rows_updated,
                "deleted": result.rows_deleted,
            }
            listed = ", ".join(f"{count:,} {name}" for name, count in counts.items())
            replaced = result.file_groups_replaced
            if replaced:  # pyhudi does not count their rows.
                listed += f"; {count_text(replaced, 'file group')} replaced"
            text = f"rows: {listed}; commit {result.instant}" if result.committed else "no change"
            call.out.print_done(
                text,
                instant=result.instant if result.committed else None,
                **{f"rows_{name}": count for name, count in counts.items()},
            )


class _Shell:
    """Reads statements from a terminal until its end."""

    def __init__(self, call: Call, session: SqlSession, *, yes: bool) -> None:
        self._call, self._session, self._yes = call, session, yes
        self._clock = SystemClock()
        self._has_timing = False

    def run(self) -> None:
        """Run statements and the commands of the shell; an error ends neither."""
        buffer = ""
        with _line_editing(self._session):
            while True:
                try:
                    line = input(_CONTINUATION if buffer else _PROMPT)
                except KeyboardInterrupt:
                    print()  # noqa: T201 - ends the line of the terminal
                    buffer = ""
                    continue
                except EOFError:
                    print()  # noqa: T201 - as above
                    return
                if not buffer and line.strip().startswith("\\"):
                    if line.strip() in {"\\q", "\\quit"}:
                        return
                    self._guard(partial(self._command, line.strip()))
                    continue
                buffer = self._run_complete(f"{buffer}{line}\n")

    def _run_complete(self, text: str) -> str:
        """Run the complete statements of a text, and return the rest of it."""
        from pyhudi.sql_statements.script import split_statements  # noqa: PLC0415 - as above

        try:
            statements, rest = split_statements(text)
        except ConfigError:  # A quote or comment goes on in the next line.
            return text
        for statement in statements:
            if not self._guard(partial(self._run_statement, statement)):
                return ""
        return rest

    def _run_statement(self, statement: str) -> None:
        start = self._clock.ticks_ms()
        self._session.relations.refresh()
        _run_statement(self._call, self._session, statement, yes=self._yes)
        if self._has_timing:
            self._call.out.note(f"time: {self._clock.ticks_ms() - start:,} ms")

    def _command(self, text: str) -> None:
        """Run a command of the shell."""
        word, _, argument = text.partition(" ")
        match word:
            case "\\d" if argument.strip():
                _print_result(self._call, self._session.run(f"DESCRIBE {argument.rstrip(';')}"))
            case "\\d":
                self._call.out.rows(_tables(self._session))
            case "\\timing":
                self._has_timing = not self._has_timing
                self._call.out.note(f"timing is {'on' if self._has_timing else 'off'}")
            case "\\?":
                self._call.out.note(_HELP)
            case _:
                self._call.out.error(f"there is no command {word}", "\\? lists the commands.")

    def _guard(self, work: Any) -> bool:
        """Run work and print its error; returns whether it succeeded."""
        out = self._call.out
        try:
            work()
        except HudiError as error:
            out.error(without_hint(error), error.hint)
        except InterruptedAfterCommit as error:
            out.error(f"interrupted, but committed as {error.instant}", "")
        except (KeyboardInterrupt, typer.Abort):
            out.error("interrupted", "")
        except typer.Exit:  # the answer to a question was no
            return False
        except (OSError, ValueError) as error:
            out.error(str(error), "")
        else:
            return True
        return False


def _tables(session: SqlSession) -> pa.Table:
    """Return the names, locations and types of the session's tables."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    from pyhudi.sql_statements.statements import TableName  # noqa: PLC0415 - as above

    names = session.relations.names
    opened = [session.relations.table(TableName((name,))) for name in names]
    return pa.table(
        {
            "name": pa.array(names, pa.string()),
            "type": pa.array([table.type for table in opened], pa.string()),
            "location": pa.array([table.uri for table in opened], pa.string()),
        }
    )


@contextmanager
def _line_editing(session: SqlSession) -> Iterator[None]:
    """Edit lines with readline, with a history file and completion; without it on other systems."""
    try:
        import readline  # noqa: PLC0415 - not on every system
    except ImportError:
        yield
        return
    file = _history_file()
    with suppress(OSError):
        readline.read_history_file(file)
    readline.set_history_length(_HISTORY_LENGTH)
    matches: list[str] = []

    def complete(text: str, state: int) -> str | None:
        if state == 0:
            matches[:] = complete_word(text, session)
        return matches[state] if state < len(matches) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n\"`'()[]=<>,;*+-/|.")
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(file)


def _history_file() -> Path:
    """Return the file of the shell's history, by the XDG base directory specification."""
    directory = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(directory) / "pyhudi" / "sql_history"


def complete_word(text: str, session: SqlSession) -> list[str]:
    """Return the keywords, tables and columns that begin with a text."""
    from pyhudi.api.table import HudiTable  # noqa: PLC0415 - as above
    from pyhudi.sql_statements.statements import TableName  # noqa: PLC0415 - as above

    relations = session.relations
    names = list(relations.names)
    for name in relations.names:
        table = relations.find(TableName((name,)))
        names += table.schema.names if isinstance(table, HudiTable) else []
    keywords = [word.lower() if text.islower() else word for word in _KEYWORDS]
    return sorted({word for word in [*names, *keywords] if word.lower().startswith(text.lower())})
