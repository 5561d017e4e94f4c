"""The application: all commands under one name."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Annotated

import typer

from pyhudi._native import __version__

FAMILIES = {
    "inspect_commands": "show schema files slices partitions logs metadata health report",
    "read": "head count query export incremental changes diff",
    "write": "upsert insert bulk-insert import update delete",
    "history": "timeline commits history rollback restore savepoint",
    "services": "maintain compact log-compact cluster clean archive expire",
    "admin": "create check upgrade downgrade rebuild-metadata sync index",
}
"""The names of the commands of each module, in the order of the help."""
_NAME_AND_TABLE = 2


def application(families: Iterable[str] = FAMILIES) -> typer.Typer:
    """Return the application with the commands of some modules. Only these are imported."""
    app = typer.Typer(
        name="pyhudi",
        help="Reads and writes Apache Hudi tables without a JVM.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for family in families:
        import_module(f"pyhudi.cli.{family}").add_to(app)
    return app


def _version(*, is_set: bool) -> None:
    if is_set:
        typer.echo(f"pyhudi {__version__}")
        raise typer.Exit


def _options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=lambda value: _version(is_set=value),
            help="Print the version.",
        ),
    ] = False,
) -> None:
    pass


def run(arguments: Sequence[str] | None) -> int:
    """Run one command and return its exit code; a closed output pipe is not a failure."""
    code: object = 0
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        if not _inspect(given):
            application(_families(given))(args=given, prog_name="pyhudi")
    except typer.Exit as done:
        code = done.exit_code
    except BrokenPipeError:
        return _without_reader()
    except SystemExit as done:
        if isinstance(done.__context__, BrokenPipeError):
            return _without_reader()
        code = done.code
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _without_reader()
    return code if isinstance(code, int) else 0


def _inspect(arguments: Sequence[str]) -> bool:
    """Run a command that inspects a table, if the table is its only argument.

    The parser of typer takes as long as the command. Returns whether it ran a command.
    """
    if len(arguments) != _NAME_AND_TABLE or "_PYHUDI_COMPLETE" in os.environ:
        return False
    name, table = arguments
    if name not in FAMILIES["inspect_commands"].split() or table.startswith("-"):
        return False
    from pyhudi.cli.command import execute  # noqa: PLC0415 - the version needs no command
    from pyhudi.cli.inspect_commands import of_table  # noqa: PLC0415 - as above

    work = of_table().get(name)
    if work is not None:
        execute(work, {"table": table})
    return work is not None


def _families(arguments: Sequence[str]) -> Iterable[str]:
    """Return the module that has the command; all modules for help and for unknown commands."""
    name = arguments[0] if arguments else ""
    return [each for each, names in FAMILIES.items() if name in names.split()] or FAMILIES


def _without_reader() -> int:
    """Return the exit code after the reader closed the pipe, and discard the rest of the buffer."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
