"""Commands that read rows: snapshots, time travel, changes, SQL, export."""

from __future__ import annotations

import sys
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pyhudi.cli.arguments import (
    AsOf,
    Columns,
    End,
    FileFormat,
    Limit,
    Location,
    Memory,
    Start,
    Where,
    format_of,
    parse_names,
)
from pyhudi.cli.command import FINDINGS, Call
from pyhudi.cli.files import open_for_writing
from pyhudi.config.formatting import count_text
from pyhudi.errors import ConfigError

if TYPE_CHECKING:
    from pyhudi.api.changes import Changes
    from pyhudi.api.scan import Scan

Position = Annotated[
    Path | None,
    typer.Option(
        "--position",
        metavar="FILE",
        dir_okay=False,
        help="Read the start position from this file, and store the next one.",
    ),
]
MetaFields = Annotated[bool, typer.Option("--meta-fields", help="Include Hudi's meta columns.")]


class Hollow(str, Enum):
    """The effect of a pending write on an incremental query, below version 8."""

    fail = "fail"
    block = "block"
    transition_time = "transition_time"


class Images(str, Enum):
    """Format of changed records."""

    struct = "struct"
    json = "json"


def head(
    call: Call,
    table: Location,
    number: Annotated[
        int, typer.Option("-n", "--number", min=0, help="Maximum number of rows.")
    ] = 10,
    columns: Columns = None,
    where: Where = None,
    as_of: AsOf = None,
    memory_limit: Memory = None,
    *,
    meta_fields: MetaFields = False,
    read_optimized: Annotated[
        bool, typer.Option("--read-optimized", help="Read base files only, without log files.")
    ] = False,
) -> int:
    """Show the first rows; exit code 1 if there are no rows."""
    scan = call.open(table, as_of).scan(
        parse_names(columns),
        where,
        meta_fields=meta_fields,
        read_optimized=read_optimized,
        memory_limit=memory_limit,
    )
    rows = scan.head(number)
    call.out.rows(rows)
    return 0 if rows.num_rows else FINDINGS


def count(call: Call, table: Location, where: Where = None, as_of: AsOf = None) -> None:
    """Count the rows."""
    call.out.value(call.open(table, as_of).count(where))


def query(
    call: Call,
    table: Location,
    sql: Annotated[
        str, typer.Argument(metavar="SQL", help="The query; the table is `t`, or has its own name.")
    ],
    as_of: AsOf = None,
    *,
    meta_fields: MetaFields = False,
) -> None:
    """Query the table in SQL with DuckDB."""
    if find_spec("duckdb") is None:
        raise ConfigError("duckdb is not installed", hint="pip install 'pyhudi[duckdb]'")
    import duckdb  # noqa: PLC0415 - an extra

    opened = call.open(table, as_of)
    with duckdb.connect() as connection:
        # UTC as everywhere else, instead of this machine's zone.
        connection.execute("SET TimeZone = 'UTC'")
        for name in {"t", opened.name}:
            opened.scan(meta_fields=meta_fields).to_duckdb(connection, name)
        try:
            relation = connection.sql(sql)
            rows = None if relation is None else relation.to_arrow_table()
        except duckdb.Error as error:
            from pyhudi.sql_statements.duckdb_queries import duckdb_hint  # noqa: PLC0415 - for errors

            text = f"{error}\n{duckdb_hint(error, sql, connection)}".strip()
            raise typer.BadParameter(text) from error
    if rows is not None:
        if len(set(rows.column_names)) < len(rows.column_names):
            raise typer.BadParameter(
                "two columns of the result have the same name; rename one with AS"
            )
        call.out.rows(rows)


def export(
    call: Call,
    table: Location,
    file: Annotated[Path, typer.Argument(help="The file to write; - is standard output.")],
    columns: Columns = None,
    where: Where = None,
    as_of: AsOf = None,
    limit: Limit = None,
    requested_format: FileFormat = None,
    memory_limit: Memory = None,
    *,
    meta_fields: MetaFields = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Export rows to a Parquet, CSV, JSON lines or Arrow file."""
    file_format = format_of(file, requested_format)
    if file.exists() and not force:
        raise typer.BadParameter(f"{file} exists; --force replaces it")
    if not file.parent.is_dir():
        raise typer.BadParameter(f"there is no directory {file.parent}")
    scan = call.open(table, as_of).scan(
        parse_names(columns), where, limit=limit, meta_fields=meta_fields, memory_limit=memory_limit
    )
    rows = 0
    with (
        call.out.counting("export") as add_rows,
        open_for_writing(file, file_format, scan.schema) as write,
    ):
        for batch in scan.to_reader():
            write(batch)
            add_rows(batch.num_rows)
            rows += batch.num_rows
    if str(file) != "-":
        call.out.print_done(
            f"{count_text(rows, 'row')} to {file}",
            file=str(file),
            format=file_format.value,
            rows=rows,
        )


def incremental(
    call: Call,
    table: Location,
    start: Start = None,
    end: End = None,
    columns: Columns = None,
    where: Where = None,
    limit: Limit = None,
    memory_limit: Memory = None,
    *,
    meta_fields: MetaFields = False,
    hollow_commits: Annotated[
        Hollow,
        typer.Option(help="If a write is pending before completed ones, up to version 6."),
    ] = Hollow.fail,
    position: Position = None,
) -> int:
    """Show the rows that a range of commits wrote; exit code 1 if there are no rows."""
    scan = call.open(table).incremental(
        _start(start, limit, position),
        end,
        columns=parse_names(columns),
        where=where,
        limit=limit,
        meta_fields=meta_fields,
        hollow_commits=hollow_commits.value,
        memory_limit=memory_limit,
    )
    return _stream(call, scan, position)


def changes(
    call: Call,
    table: Location,
    start: Start = None,
    end: End = None,
    where: Where = None,
    limit: Limit = None,
    images: Annotated[
        Images, typer.Option(help="Print records as structs, or as Hudi's JSON text.")
    ] = Images.struct,
    memory_limit: Memory = None,
    position: Position = None,
) -> int:
    """Show record changes from change data capture; exit code 1 if there are no changes."""
    changed = call.open(table).changes(
        _start(start, limit, position),
        end,
        where=where,
        limit=limit,
        images=images.value,
        memory_limit=memory_limit,
    )
    return _stream(call, changed, position)


def diff(
    call: Call,
    table: Location,
    before: Annotated[str, typer.Argument(metavar="A", help="The earlier snapshot.")],
    after: Annotated[str, typer.Argument(metavar="B", help="The later snapshot.")],
    memory_limit: Memory = None,
) -> int:
    """Compare two snapshots by record key; exit code 1 if they differ."""
    differences = call.open(table).diff(before, after, memory_limit=memory_limit)
    return FINDINGS if call.out.stream(differences) else 0


def _start(start: str | None, limit: int | None, position: Path | None) -> str | None:
    """Return where a range begins: `start`, or the end of the previous range."""
    if position is None:
        return start
    if start is not None:
        raise typer.BadParameter(
            "--position and --start both set where to begin: leave out --start"
        )
    if limit is not None:
        raise typer.BadParameter("rows beyond --limit would be lost with --position: leave it out")
    return position.read_text("utf-8").strip() or None if position.exists() else None


def _stream(call: Call, rows_of_range: Scan | Changes, position: Path | None) -> int:
    """Print the rows of a range, then store where the next one begins; returns the exit code."""
    rows, after = call.out.stream(rows_of_range), rows_of_range.position
    limit = rows_of_range.request.limit
    if position is not None:
        sys.stdout.flush()
        part = position.with_name(f".{position.name}.part")
        part.write_text(f"{after or ''}\n", "utf-8")
        part.replace(position)
    elif after is not None and limit is None:
        call.out.note(f"position {after}: the next run begins with --start {after}")
    return 0 if rows else FINDINGS
