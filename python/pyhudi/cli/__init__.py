"""The command line `pyhudi`: a command opens a table, calls a method and prints the result.

It needs the extra `cli` (typer and rich), which nothing else in the package needs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.util import find_spec

_NEEDED = ("typer", "rich")


class _WithoutPandas(MetaPathFinder):
    """Hides pandas from pyarrow, which imports it with the first array.

    The import takes half of the time of a short command. None in `sys.modules` would not work:
    pyarrow would take it for the module.
    """

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            msg = "the command line does not use pandas"
            raise ModuleNotFoundError(msg, name=fullname)


def program() -> int:
    """Run the command of this process; the script `pyhudi`.

    Returns:
        The exit code, as in `main`.
    """
    sys.meta_path.insert(0, _WithoutPandas())
    return main()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: arguments of the command; those of the process by default.

    Returns:
        The exit code: see `docs/reference/cli.md`.
    """
    if any(find_spec(name) is None for name in _NEEDED):
        sys.stderr.write("The command line needs typer and rich: pip install 'pyhudi[cli]'\n")
        return 2
    from pyhudi.cli.app import run  # noqa: PLC0415 - it needs the extra

    return run(arguments)
