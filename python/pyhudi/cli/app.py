"""The application: all commands under one name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from pyhudi._native import __version__
from pyhudi.cli import admin, history, look, read, services, write

app = typer.Typer(
    name="pyhudi",
    help="Reads and writes Apache Hudi tables without a JVM.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _family in (look, read, write, history, services, admin):
    _family.add_to(app)


def _version(*, asked: bool) -> None:
    if asked:
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
            callback=lambda value: _version(asked=value),
            help="Say the version.",
        ),
    ] = False,
) -> None:
    pass


def run(arguments: Sequence[str] | None) -> int:
    """Runs one command and gives its exit code."""
    try:
        app(args=None if arguments is None else list(arguments), prog_name="pyhudi")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0
    return 0
