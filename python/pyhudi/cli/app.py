"""The application: all commands under one name."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from keyword import iskeyword
from typing import Annotated, Any

import typer

from pyhudi._native import __version__
from pyhudi.cli import COMMANDS, INSPECTIONS, PANELS

_NAME_AND_TABLE = 2


def application(modules: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the application with the commands of some modules. Only these are imported."""
    from pyhudi.cli.command import add_command  # noqa: PLC0415 - the version needs no command

    app = typer.Typer(
        name="pyhudi",
        help="Reads and writes Apache Hudi tables without a JVM.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for module in modules:
        for name in COMMANDS[module].split():
            add_command(app, name, _function(module, name), PANELS[module])
    return app


def _function(module: str, name: str) -> Any:
    """Return the function of a command, or the group of this name."""
    function = name.replace("-", "_")
    if iskeyword(function):
        function += "_"
    return getattr(import_module(f"pyhudi.cli.{module}"), function)


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
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        if not _inspect(words):
            application(_modules(words))(args=words, prog_name="pyhudi")
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
    if name not in INSPECTIONS or table.startswith("-"):
        return False
    from pyhudi.cli.command import execute  # noqa: PLC0415 - as above

    execute(_function("inspect_commands", name), {"table": table})
    return True


def _modules(arguments: Sequence[str]) -> Iterable[str]:
    """Return the module that has the command; all modules for help and for unknown commands."""
    name = arguments[0] if arguments else ""
    return [module for module, names in COMMANDS.items() if name in names.split()] or COMMANDS


def _without_reader() -> int:
    """Return the exit code after the reader closed the pipe, and discard the rest of the buffer."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
