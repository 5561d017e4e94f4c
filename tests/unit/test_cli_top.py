"""The command `top`: one-shot output, and the view that is redrawn in a terminal."""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from pyhudi.cli import main
from tests.helpers.table_builder import TableBuilder

TABLE = TableBuilder({"id": (pa.string(), str), "v": (pa.int64(), 1)}, order_by="v")
ALTERNATE_SCREEN, NORMAL_SCREEN = "\x1b[?1049h", "\x1b[?1049l"
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
WAIT_S = 60


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    table = TABLE.make(tmp_path / "trips")
    table.insert(TABLE.rows(["a", "b"]))
    for batch in table.stream(consumer="mirror", wait=False):
        batch.commit()
    table.upsert(TABLE.rows(["a", "c"], v=2))
    return table


def lines_of(text: str, title: str) -> list[list[str]]:
    """The rows of a section, each as its cells."""
    section = text.split(f"{title}\n")[1].split("\n\n", maxsplit=1)[0]
    return [re.split(r" {2,}", line.strip()) for line in section.splitlines()[2:]]


def test_top_prints_tables_consumers_and_commits(
    table: HudiTable, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "missing"
    assert main(["top", table.uri, str(missing), "-n", "1"]) == 3
    text = capsys.readouterr().out
    trips, other = lines_of(text, "Tables")
    assert trips[:3] == ["trips", "cow v9", "ok"]
    assert trips[4:] == ["0", "0", "0", "free", "2", "-", "1 of 1"]
    assert other[0] == "missing"
    assert other[2].startswith(f"no Hudi table at {missing}")
    (consumer,) = lines_of(text, "Consumers")
    assert (consumer[1], consumer[3]) == ("mirror", "1")
    (commit,) = lines_of(text, "Last commits")
    last = table.history()["instant"][0].as_py()
    assert commit[:7] == ["trips", last, "commit", "UPSERT", "1", "1", "0"]
    assert "Pending" not in text
    assert main(["top", table.uri, "--once"]) == 0


def test_top_json_has_one_line_per_table(
    table: HudiTable, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "missing")
    assert main(["top", table.uri, missing, "--json"]) == 3
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["table"], first["error"], first["version"]) == (table.uri, None, 9)
    assert first["lock"] == {"provider": "StorageBasedLockProvider", "holder": None, "note": None}
    assert [lag["commits_behind"] for lag in first["consumers"]] == [1]
    assert [commit["operation"] for commit in first["commits"]] == ["UPSERT", "INSERT"]
    assert (second["table"], second["commits"]) == (missing, [])
    assert "no Hudi table" in second["error"]


def test_top_of_unreachable_store_shows_error(
    table: HudiTable, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {
        "endpoint_url": "http://127.0.0.1:1",
        "allow_http": "true",
        "access_key_id": "k",
        "secret_access_key": "s",
        "region": "r",
        "max_retries": "0",
    }
    arguments = [f"--storage-option={name}={value}" for name, value in options.items()]
    assert main(["top", "s3://bucket/lake/orders", "--json", *arguments]) == 3
    assert "127.0.0.1" in json.loads(capsys.readouterr().out)["error"]


@pytest.mark.parametrize("interval", ["0", "soon", "-1s"])
def test_top_refuses_wrong_interval(
    table: HudiTable, interval: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["top", table.uri, f"--interval={interval}"]) == 3
    error = capsys.readouterr().err
    assert "--interval is" in error
    assert "is ''" not in error


class Terminal:
    """`pyhudi top` in a terminal of 200 columns."""

    def __init__(self, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
        self.settings = termios.tcgetattr(self._master)
        environment = {**os.environ, "TERM": "xterm-256color"}
        for name in ("NO_COLOR", "COLUMNS", "LINES"):
            environment.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pyhudi", "top", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - no threads
        )
        os.close(slave)
        self.printed = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def read_until(self, pattern: str) -> None:
        """Read what is printed from now on, up to a match; colors do not count."""
        end, before = time.monotonic() + WAIT_S, len(self.printed)
        while True:
            text = re.sub("\x1b\\[[0-9;]*m", "", self.printed[before:])
            if re.search(pattern, text):
                return
            ready, _, _ = select.select([self._master], [], [], max(end - time.monotonic(), 0))
            assert ready, f"{pattern!r} is not in {text!r}"
            assert self._read(), f"the command ended: {text!r}"

    def read_rest(self) -> None:
        """Read what is printed until the end."""
        while self._read():
            pass

    def _read(self) -> bool:
        """Read a part; return False at the end."""
        try:
            chunk = os.read(self._master, 65536)
        except OSError:  # Linux's end of a terminal
            return False
        self.printed += self._decoder.decode(chunk)
        return bool(chunk)

    def press_ctrl_c(self) -> None:
        os.write(self._master, b"\x03")

    def settings_now(self) -> list[object]:
        return termios.tcgetattr(self._master)

    def close(self) -> None:
        os.close(self._master)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def terminal(table: HudiTable, tmp_path: Path) -> Iterator[Terminal]:
    top = Terminal(table.uri, str(tmp_path / "other"), "--interval", "200ms")
    yield top
    top.close()


def test_top_redraws_and_leaves_terminal_clean(
    table: HudiTable, terminal: Terminal, tmp_path: Path
) -> None:
    """It shows a new commit, a table that appears, and one that vanishes, until Ctrl-C."""
    terminal.read_until("trips +cow v9 +ok")
    terminal.read_until("other +- +no Hudi table")
    last = table.upsert(TABLE.rows(["a"], v=3)).instant
    terminal.read_until(f"trips +{last} +commit +UPSERT")
    TABLE.make(tmp_path / "other")
    terminal.read_until("other +cow v9 +ok")
    shutil.rmtree(table.uri)
    terminal.read_until("trips +- +no Hudi table")
    terminal.press_ctrl_c()
    terminal.read_rest()
    assert terminal.process.wait(WAIT_S) == 0
    printed = terminal.printed
    for begin, end in ((ALTERNATE_SCREEN, NORMAL_SCREEN), (HIDE_CURSOR, SHOW_CURSOR)):
        assert printed.count(begin) == printed.count(end) == 1
        assert printed.index(begin) < printed.index(end)
    assert "Traceback" not in printed
    after = printed[max(printed.rindex(NORMAL_SCREEN), printed.rindex(SHOW_CURSOR)) :]
    assert re.sub("\x1b\\[[?0-9;]*[a-zA-Z]|\\^C", "", after).strip() == ""


def test_top_ends_before_first_answer(table: HudiTable) -> None:
    top = Terminal(table.uri)
    try:
        top.read_until(re.escape(HIDE_CURSOR))
        top.press_ctrl_c()
        top.read_rest()
        assert top.process.wait(WAIT_S) == 0
        assert top.settings_now() == top.settings
    finally:
        top.close()
