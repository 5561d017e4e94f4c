"""The command line `pyhudi`: a command opens a table, calls a method and prints the result.

It needs the extra `cli` (typer and rich), which nothing else in the package needs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from pathlib import Path

COMMANDS = {
    "inspect_commands": "show schema files slices partitions logs metadata health readers report",
    "top": "top",
    "read": "head count query export incremental changes diff",
    "sql_shell": "sql",
    "write": "upsert insert bulk-insert import update delete",
    "ingest_commands": "ingest",
    "history": "timeline commits history rollback restore savepoint consumer",
    "services": "maintain compact log-compact cluster clean archive expire",
    "admin": "create check upgrade downgrade rebuild-metadata sync index",
    "catalog": "catalog",
}
"""The commands of each module, in the order of the help. Their functions have the same names."""
PANELS = {
    "inspect_commands": "Inspect",
    "top": "Inspect",
    "read": "Read",
    "sql_shell": "SQL",
    "write": "Write",
    "ingest_commands": "Write",
    "history": "History",
    "services": "Services",
    "admin": "Administration",
    "catalog": "Administration",
}
"""The heading of each module's commands in the help."""
INSPECTIONS = frozenset(COMMANDS["inspect_commands"].split()) - {"report"}
"""Commands that describe a table and need no other argument."""
_WITHOUT_NUMPY = INSPECTIONS | {"timeline", "commits", "history"}
"""Commands that need no library but pyarrow."""

_NEEDED = ("typer", "rich")
_OPTIONAL_NUMPY = 18
"""The first release of pyarrow that does without numpy."""


class _Hider(MetaPathFinder):
    """Hides libraries from pyarrow, which imports them although the command does not use them.

    The imports take half of the time of a short command. None in `sys.modules` would not work:
    pyarrow would take it for the module.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname in self._names:
            raise ModuleNotFoundError(f"the command line does not use {fullname}", name=fullname)


def program() -> int:
    """Run the command of this process; the script `pyhudi`.

    Returns:
        The exit code, as in `main`.
    """
    needs_numpy = _WITHOUT_NUMPY.isdisjoint(sys.argv[1:2]) or _pyarrow_needs_numpy()
    sys.meta_path.insert(0, _Hider({"pandas"} if needs_numpy else {"pandas", "numpy"}))
    return main()


def _pyarrow_needs_numpy() -> bool:
    """Return whether the installed pyarrow needs numpy, or its release is unknown."""
    spec = find_spec("pyarrow")
    if spec is None or spec.origin is None:
        return True
    try:
        text = Path(spec.origin).with_name("_generated_version.py").read_text(encoding="utf-8")
    except OSError:
        return True
    release = re.search(r"^__version__ = .*'(\d+)\.", text, re.MULTILINE)
    return release is None or int(release[1]) < _OPTIONAL_NUMPY


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
