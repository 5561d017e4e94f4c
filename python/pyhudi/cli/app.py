"""The application: all commands under one name."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import typer

from pyhudi._native import __version__
from pyhudi.cli import admin, history, inspect_commands, read, services, write

app = typer.Typer(
    name="pyhudi",
    help="Reads and writes Apache Hudi tables without a JVM.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _family in (inspect_commands, read, write, history, services, admin):
    _family.add_to(app)


def _version(*, is_set: bool) -> None:
    if is_set:
        typer.echo(f"pyhudi {__version__}")
        raise typer.Exit


@app.callback()
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
    try:
        app(args=None if arguments is None else list(arguments), prog_name="pyhudi")
    except SystemExit as done:
        if isinstance(done.__context__, BrokenPipeError):
            return _without_reader()
        code = done.code
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _without_reader()
    return code if isinstance(code, int) else 0


def _without_reader() -> int:
    """Return the exit code after the reader closed the pipe, and discard the rest of the buffer."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
