"""The commands of docs/how-to/command-line.md run in order and print what the page shows."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from pyhudi.cli import main
from pyhudi.cli.app import application

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "command-line.md"
CATALOGS = PAGE.with_name("catalogs.md")
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
FLAGS = re.MULTILINE | re.DOTALL
BLOCK = re.compile(r"^```bash\n(?P<code>.*?)^```\n(?:\n```text\n(?P<said>.*?)^```)?", FLAGS)
VARYING = re.compile(r"\d[\d.,]*|─+|\s+")
"""Instants and sizes, and what is as wide as they are."""
GROUPS = ("savepoint", "index", "consumer", "ingest", "catalog")
ASKING = """
pyhudi() {
  printf '%s\\0' "$@" > "$PIPES/asked"
  cat "$PIPES/said"
  return "$(cat "$PIPES/code")"
}
"""
"""The command as a function of bash that asks this process: to start Python takes longer than most
commands do."""


def blocks() -> list[tuple[str, str]]:
    """The page's commands with what it shows below them, "" for nothing."""
    found = BLOCK.finditer(PAGE.read_text(encoding="utf-8"))
    return [(match["code"], match["said"] or "") for match in found]


def alike(text: str, folder: str) -> str:
    """The text without what no two runs have in common."""
    return VARYING.sub(" ", text.replace(folder, "")).strip()


def answer(pipes: Path) -> None:
    """Runs each command that is asked for, until one without arguments."""
    while asked := (pipes / "asked").read_bytes():
        said, errors = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
        with redirect_stdout(said), redirect_stderr(errors):
            code = main(asked.decode().split("\0")[:-1])
        said.seek(0)
        (pipes / "code").write_text(str(code))
        (pipes / "said").write_text(said.read() + errors.getvalue(), encoding="utf-8")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """An environment for bash in which `pyhudi` is the command line, in a folder of its own."""
    folder, pipes = tmp_path / "work", tmp_path / "pipes"
    folder.mkdir()
    pipes.mkdir()
    for name in ("asked", "said"):
        os.mkfifo(pipes / name)
    (pipes / "python").symlink_to(sys.executable)
    monkeypatch.chdir(folder)
    answering = threading.Thread(target=answer, args=(pipes,))
    answering.start()
    yield {**os.environ, "PIPES": str(pipes), "PATH": f"{pipes}:{os.environ['PATH']}"}
    (pipes / "asked").write_bytes(b"")
    answering.join()


def test_commands_run_in_order_and_say_what_is_shown(shell: dict[str, str]) -> None:
    for code, said in blocks():
        called = ["bash", "-euo", "pipefail", "-c", ASKING + code]
        done = subprocess.run(called, check=False, env=shell, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), code
        assert alike(done.stdout, str(Path.cwd())) == alike(said, "/data"), code


def test_catalogs_page_lists_its_catalogs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = CATALOGS.read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```$", text, FLAGS)
    (config,) = [block for block in blocks if "[catalog.aws]" in block]
    (tmp_path / "pyhudi.toml").write_text(config, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAKE_SECRET", "hidden")
    assert main(["catalog", "list"]) == 0
    assert f"$ pyhudi catalog list\n{capsys.readouterr().out}$ pyhudi" in text


def test_cli_page_names_existing_commands() -> None:
    top: Any = get_command(application())
    known = set(top.commands) - set(GROUPS)
    known |= {f"{group} {name}" for group in GROUPS for name in top.commands[group].commands}
    table = REFERENCE.read_text(encoding="utf-8").split("## Compared with")[1].split("\n## ")[0]
    rows = [line.split("|")[4] for line in table.splitlines() if line.startswith("| ")][1:]
    named = [name.split() for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert {" ".join(name[: 2 if name[0] in GROUPS else 1]) for name in named} == known
