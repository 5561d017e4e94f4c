"""What commands import, since a short command takes as long as its imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.main import get_command

import pyhudi
from pyhudi.cli import COMMANDS
from pyhudi.cli.app import application

SLOW = ("numpy", "pandas", "rich", "pydantic", "sqlglot", "pyarrow.compute", "pyarrow.dataset")
COMMAND = "import atexit, sys; from pyhudi.cli import program; atexit.register(lambda: print("
MODULES = "*sys.modules, file=sys.stderr)); sys.exit(program())"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("imports") / "t")
    pyhudi.create_table(path, pa.table({"id": ["a"], "v": [1]}), key="id")
    return path


def imports(code: str, *arguments: str) -> set[str]:
    """The modules that a process has imported in the end, as it prints them on standard error."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def own(modules: set[str]) -> int:
    return sum(module.split(".")[0] == "pyhudi" for module in modules)


@pytest.mark.parametrize("command", ["show", "schema", "partitions", "files"])
def test_inspecting_imports_no_slow_library(command: str, table: str) -> None:
    modules = imports(COMMAND + MODULES, command, table)
    assert "pyarrow" in modules
    # Before release 18, pyarrow needs numpy.
    allowed = {"numpy"} if int(pa.__version__.split(".")[0]) < 18 else set()
    assert not modules & (set(SLOW) - allowed)
    assert own(modules) <= 98


def test_help_imports_neither_pyarrow_nor_tables() -> None:
    modules = imports(COMMAND + MODULES, "--help")
    assert not modules & {"pyarrow", "numpy", "pyhudi.api.table"}
    assert own(modules) <= 27


def test_open_table_imports_no_slow_library(table: str) -> None:
    code = (
        "import sys, pyhudi; pyhudi.open_table(sys.argv[1]); print(*sys.modules, file=sys.stderr)"
    )
    modules = imports(code, table)
    assert not modules & (set(SLOW) - {"numpy"})
    assert own(modules) <= 78


def test_application_has_all_commands() -> None:
    for module, names in COMMANDS.items():
        group: Any = get_command(application([module]))
        assert list(group.commands) == names.split()


def test_pyarrow_without_version_file_needs_numpy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from pyhudi import cli

    class Spec:
        origin = str(tmp_path / "__init__.py")

    monkeypatch.setattr(cli, "find_spec", lambda _: Spec)
    assert cli._pyarrow_needs_numpy()
    file = tmp_path / "_generated_version.py"
    for release, needs in (("17.0.0", True), ("18.0.0", False), ("26.0.1.dev3", False)):
        file.write_text(f"version: str\n__version__ = version = '{release}'\n")
        assert cli._pyarrow_needs_numpy() is needs
