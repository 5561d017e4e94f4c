"""Builds commands: the options that all commands have, and the handling of errors.

Errors of pyhudi are printed without a traceback and end with exit code 3, wrong use with 2.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any

import pyarrow as pa
import typer

from pyhudi.api.table import HudiTable, open_table
from pyhudi.cli.arguments import UnreadableFile, pairs
from pyhudi.cli.output import Output
from pyhudi.errors import (
    HudiError,
    InterruptedAfterCommit,
    InterruptedAfterRollback,
    without_hint,
)

FOUND = 1
"""There are findings, or nothing was found."""
WRONG_USE = 2
FAILED = 3
INTERRUPTED = 130

_PANEL = "Options of every command"


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    keyword_only = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword_only, default=default, annotation=annotation)


def _flag(*names: str, help: str) -> Any:  # noqa: A002 - typer's name for it
    return Annotated[bool, typer.Option(*names, help=help, rich_help_panel=_PANEL)]


def _pairs(*names: str, help: str) -> Any:  # noqa: A002 - typer's name for it
    option = typer.Option(*names, metavar="NAME=VALUE", help=help, rich_help_panel=_PANEL)
    return Annotated[list[str] | None, option]


_SHARED = (
    _keyword("option", _pairs("--option", "-o", help="A hoodie.… option."), None),
    _keyword(
        "storage_option",
        _pairs("--storage-option", help="A storage option, such as region=eu-west-1."),
        None,
    ),
    _keyword("json", _flag("--json", help="Print JSON, one row a line."), False),
    _keyword(
        "quiet", _flag("--quiet", "-q", help="Print no progress and no success message."), False
    ),
    _keyword(
        "traceback", _flag("--traceback", help="Print the traceback of an error, too."), False
    ),
)


@dataclass(frozen=True)
class Call:
    """The context of a command: shared options and the output."""

    options: Mapping[str, str]
    storage_options: Mapping[str, str] | None
    out: Output

    def open(self, location: str, as_of: str | None = None) -> HudiTable:
        """Open the table of the command."""
        return open_table(
            location, storage_options=self.storage_options, options=self.options, as_of=as_of
        )

    @property
    def progress(self) -> bool:
        """Whether methods draw a progress bar, which they do in a terminal only."""
        return not self.out.quiet

    def confirm(self, question: Callable[[], str], *, yes: bool) -> None:
        """Ask before an operation that cannot be undone; without a terminal `--yes` is required.

        question: builds the question, which may need to look up what would be removed.
        """
        if yes:
            return
        if not sys.stdin.isatty():
            raise typer.BadParameter(
                "it cannot be undone, and there is no terminal to ask: give --yes"
            )
        if not typer.confirm(question(), err=True):
            self.out.note("nothing was changed")
            raise typer.Exit(FOUND)


Work = Callable[..., "int | None"]


def commands(app: typer.Typer, works: Mapping[str, Work]) -> None:
    """Register functions as commands, by name."""
    for name, work in works.items():
        command(app, name)(work)


def command(app: typer.Typer, name: str) -> Callable[[Work], Work]:
    """Register a function as a command of this name.

    Its first parameter is the `Call`; the options for it are added to its own parameters. It
    returns an exit code, None for 0.
    """

    def command(work: Work) -> Work:
        own = list(inspect.signature(work, eval_str=True).parameters.values())[1:]
        parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]

        @wraps(work)
        def run(**given: Any) -> None:
            option, storage = given.pop("option"), given.pop("storage_option")
            out = Output(json=given.pop("json"), quiet=given.pop("quiet"))
            with _report_errors(out, traceback=given.pop("traceback")):
                options = pairs(option, "--option")
                storage_options = pairs(storage, "--storage-option") or None
                code = work(Call(options, storage_options, out), **given)
                if code:
                    raise typer.Exit(code)

        shown: Any = run
        shown.__signature__ = inspect.Signature([*parameters, *_SHARED])
        shown.__annotations__ = {each.name: each.annotation for each in (*parameters, *_SHARED)}
        app.command(name)(run)
        return work

    return command


@contextmanager
def _report_errors(out: Output, *, traceback: bool) -> Iterator[None]:
    """Turn errors into messages and exit codes, and warnings into messages."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: out.warning(str(message))
        try:
            yield
        except HudiError as error:
            if traceback:
                raise
            out.error(without_hint(error), error.hint)
            raise typer.Exit(WRONG_USE if isinstance(error, UnreadableFile) else FAILED) from None
        except InterruptedAfterCommit as error:
            out.error(
                f"interrupted, but committed as {error.instant}", "Do not write the rows again."
            )
            raise typer.Exit(INTERRUPTED) from None
        except InterruptedAfterRollback as error:
            out.error(*str(error).split("\nHint: ", 1))
            raise typer.Exit(INTERRUPTED) from None
        except KeyboardInterrupt:
            out.error("interrupted", "")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            raise
        except (pa.ArrowException, OSError) as error:
            if traceback:
                raise
            out.error(str(error), "")
            raise typer.Exit(WRONG_USE) from None
