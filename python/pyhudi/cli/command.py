"""Builds commands: the options of all commands, and the handling of errors.

An error of pyhudi is printed without a traceback. Its exit code is 3, that of wrong use 2.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from pyhudi.cli.arguments import pair_option, parse_pairs
from pyhudi.cli.printer import Printer
from pyhudi.errors import (
    HudiError,
    InterruptedAfterCommit,
    InterruptedAfterRollback,
    without_hint,
)

if TYPE_CHECKING:  # Help needs none of it.
    from pyhudi.api.table import HudiTable

FINDINGS = 1
"""There are findings or differences, or there are no rows."""
WRONG_USE = 2
FAILED = 3
INTERRUPTED = 130

_PANEL = "Options of every command"


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    keyword_only = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword_only, default=default, annotation=annotation)


def _fields(group: Any) -> list[inspect.Parameter]:
    """Return the fields of a dataclass as parameters."""
    types = get_type_hints(group, include_extras=True)
    return [_keyword(field.name, types[field.name], field.default) for field in fields(group)]


def _flag(*names: str, help: str) -> Any:  # noqa: A002 - typer's name for it
    return Annotated[bool, typer.Option(*names, help=help, rich_help_panel=_PANEL)]


def _pairs(*names: str, help: str) -> Any:  # noqa: A002 - typer's name for it
    return Annotated[list[str] | None, pair_option(*names, help=help, panel=_PANEL)]


_SHARED = (
    _keyword("option", _pairs("--option", "-o", help="Set a hoodie.… option."), None),
    _keyword(
        "storage_option",
        _pairs("--storage-option", help="Set a storage option, such as region=eu-west-1."),
        None,
    ),
    _keyword("json", _flag("--json", help="Print JSON, one row per line."), False),
    _keyword("quiet", _flag("--quiet", "-q", help="Hide progress and success messages."), False),
    _keyword("traceback", _flag("--traceback", help="Print the traceback of an error."), False),
)


@dataclass(frozen=True)
class Call:
    """The context of a command: shared options and the output."""

    options: Mapping[str, str]
    storage_options: Mapping[str, str] | None
    out: Printer

    def open(self, location: str, as_of: str | None = None) -> HudiTable:
        """Open the table of the command."""
        from pyhudi.api.table import open_table  # noqa: PLC0415 - help does not need it

        return open_table(
            location, storage_options=self.storage_options, options=self.options, as_of=as_of
        )

    @property
    def progress(self) -> bool:
        """Whether methods draw a progress bar, which they do in a terminal only."""
        return not self.out.quiet

    def confirm(self, question: Callable[[], str], *, yes: bool) -> None:
        """Ask before an operation that cannot be reverted; without a terminal `--yes` is required.

        question: builds the question, which may need to look up what would be removed.
        """
        if yes:
            return
        if not sys.stdin.isatty():
            raise typer.BadParameter(
                "this cannot be undone, and there is no terminal to confirm it: give --yes"
            )
        if not typer.confirm(question(), err=True):
            self.out.note("nothing was changed")
            raise typer.Exit(FINDINGS)


CommandFunction = Callable[..., "int | None"]
"""A command. Its first parameter is the `Call`; it returns an exit code, None for 0."""


@dataclass(frozen=True)
class Group:
    """Commands under one name, such as `savepoint create`."""

    help: str
    functions: Mapping[str, CommandFunction]


def add_command(
    app: typer.Typer, name: str, command: CommandFunction | Group, panel: str | None = None
) -> None:
    """Add a command, or a group of commands, to an application.

    A command has the options of its own parameters and those of all commands. Each field of a
    dataclass among its parameters is an option. panel: the heading above it in the help.
    """
    if isinstance(command, Group):
        group = typer.Typer(help=command.help, no_args_is_help=True)
        for each, function in command.functions.items():
            add_command(group, each, function)
        app.add_typer(group, name=name, rich_help_panel=panel)
        return
    work = command
    own = list(inspect.signature(work, eval_str=True).parameters.values())[1:]
    groups: dict[str, Any] = {
        each.name: each.annotation for each in own if is_dataclass(each.annotation)
    }
    parameters = [
        parameter
        for each in own
        for parameter in (
            _fields(groups[each.name])
            if each.name in groups
            else [_keyword(each.name, each.annotation, each.default)]
        )
    ]

    @wraps(work)
    def run(**arguments: Any) -> None:
        shared = {each.name: arguments.pop(each.name) for each in _SHARED}
        for parameter, group in groups.items():
            values = {field.name: arguments.pop(field.name) for field in fields(group)}
            arguments[parameter] = group(**values)
        execute(work, arguments, **shared)

    typer_command: Any = run
    typer_command.__signature__ = inspect.Signature([*parameters, *_SHARED])
    typer_command.__annotations__ = {
        parameter.name: parameter.annotation for parameter in (*parameters, *_SHARED)
    }
    app.command(name, rich_help_panel=panel)(run)


def execute(
    work: CommandFunction,
    arguments: Mapping[str, Any],
    *,
    option: Sequence[str] | None = None,
    storage_option: Sequence[str] | None = None,
    json: bool = False,
    quiet: bool = False,
    traceback: bool = False,
) -> None:
    """Run a command with its own arguments and those of all commands.

    Raises `typer.Exit` if the exit code is not 0.
    """
    out = Printer(json=json, quiet=quiet)
    with _report_errors(out, traceback=traceback):
        options = parse_pairs(option, "--option")
        storage_options = parse_pairs(storage_option, "--storage-option") or None
        code = work(Call(options, storage_options, out), **arguments)
        if code:
            raise typer.Exit(code)


def _arrow_errors() -> tuple[type[Exception], ...]:
    """Return the errors of pyarrow; none if the command has not imported it."""
    pyarrow = sys.modules.get("pyarrow")
    return () if pyarrow is None else (pyarrow.ArrowException,)


@contextmanager
def _report_errors(out: Printer, *, traceback: bool) -> Iterator[None]:
    """Turn errors into messages and exit codes, and warnings into messages."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: out.warning(str(message))
        try:
            yield
        except HudiError as error:
            if traceback:
                raise
            from pyhudi.input.unreadable_file import UnreadableFile  # noqa: PLC0415 - for errors

            out.error(without_hint(error), error.hint)
            is_wrong_use = isinstance(error, (UnreadableFile, TypeError))
            raise typer.Exit(WRONG_USE if is_wrong_use else FAILED) from None
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
        except Exception as error:
            if traceback or not isinstance(error, (OSError, *_arrow_errors())):
                raise
            out.error(str(error), "")
            raise typer.Exit(WRONG_USE) from None
