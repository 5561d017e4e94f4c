"""The command line `pyhudi`. Thin: a command opens a table, calls a verb and shows what came of it.

It needs the extra `cli` (typer and rich), which nothing else in the package does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.util import find_spec

_NEEDED = ("typer", "rich")


class _WithoutPandas(MetaPathFinder):
    """Hides pandas from pyarrow, which imports it with the first array.

    That takes half of the time of a short command. A None among the loaded modules would be taken
    for the module there.
    """

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            msg = "the command line does not use pandas"
            raise ModuleNotFoundError(msg, name=fullname)


def program() -> int:
    """The script `pyhudi`: runs the command that the process was started for.

    Returns:
        The exit code, as `main`.
    """
    sys.meta_path.insert(0, _WithoutPandas())
    return main()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: of the command; those of the process by default.

    Returns:
        The exit code: see `docs/reference/cli.md`.
    """
    if any(find_spec(name) is None for name in _NEEDED):
        sys.stderr.write("The command line needs typer and rich: pip install 'pyhudi[cli]'\n")
        return 2
    from pyhudi.cli.app import run  # noqa: PLC0415 - it needs the extra

    return run(arguments)
