"""What every command is made by: the options that all have, and what errors come to.

Errors of pyhudi are told without a traceback and end with code 3, a wrong call with 2.
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
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _flag(*names: str, help: str) -> Any:  # noqa: A002 - as typer calls it
    return Annotated[bool, typer.Option(*names, help=help, rich_help_panel=_PANEL)]


def _pairs(*names: str, help: str) -> Any:  # noqa: A002 - as typer calls it
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
    """What every command is told."""

    options: Mapping[str, str]
    storage_options: Mapping[str, str] | None
    out: Output

    def open(self, location: str, as_of: str | None = None) -> HudiTable:
        """The table that the command is about."""
        return open_table(
            location, storage_options=self.storage_options, options=self.options, as_of=as_of
        )

    @property
    def progress(self) -> bool:
        """Whether verbs draw their bar, which they do in a terminal alone."""
        return not self.out.quiet

    def confirm(self, question: Callable[[], str], *, yes: bool) -> None:
        """Asks before what cannot be taken back; without a terminal `--yes` must be given.

        question: makes it, since what would go may have to be looked up.
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
    """Makes functions commands, by name."""
    for name, work in works.items():
        command(app, name)(work)


def command(app: typer.Typer, name: str) -> Callable[[Work], Work]:
    """Makes a function a command of this name.

    Its first parameter is the `Call`; the options that make it are added to its own. It gives an
    exit code, None for 0.
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
    """Turns errors into words and exit codes, and warnings into words."""
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
