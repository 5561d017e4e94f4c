"""`pyhudi sql`: statements of arguments, of standard input and of a terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.cli import main
from pyhudi.cli.sql_shell import complete_word
from pyhudi.sql_statements.relations import Relations
from pyhudi.sql_statements.script import split_statements
from pyhudi.sql_statements.session import SqlSession

ROWS = pa.table({"id": ["a", "b"], "fare": [1.5, 2.5]})
WAIT_S = 30


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    return pyhudi.create_table(tmp_path / "trips", ROWS, key="id")


def lines(capsys: pytest.CaptureFixture[str]) -> list[Any]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_sql_runs_statements_of_arguments(
    table: HudiTable, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "UPDATE trips SET fare = 9 WHERE id = 'a;b'; -- ;\nSELECT ';' AS x, fare FROM trips"
    assert main(["sql", table.uri, "--json", "-e", script, "-e", "DELETE FROM trips"]) == 0
    updated, *rows, deleted = lines(capsys)
    assert updated == {"instant": None, "rows_inserted": 0, "rows_updated": 0, "rows_deleted": 0}
    assert rows == [{"x": ";", "fare": 1.5}, {"x": ";", "fare": 2.5}]
    assert deleted["rows_deleted"] == 2
    assert main(["sql", f"rides={table.uri}/", "--json", "SELECT count(*) AS n FROM rides"]) == 0
    assert lines(capsys) == [{"n": 0}]
    assert main(["sql", "SELECT 1 AS n", "--json"]) == 0
    assert lines(capsys) == [{"n": 1}]
    assert main(["sql", table.uri, f"{table.uri}/"]) == 2


def test_sql_runs_a_script_up_to_its_first_error(
    table: HudiTable, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = """DELETE FROM trips WHERE id = 'a';
        DELETE FROM nowhere;
        DELETE FROM trips"""
    monkeypatch.setattr("sys.stdin", io.StringIO(script))
    assert main(["sql", table.uri]) == 3
    printed = capsys.readouterr()
    assert "rows: 0 inserted, 0 updated, 1 deleted; commit 2" in printed.out
    assert "error: there is no table nowhere" in printed.err
    assert "hint: " in printed.err
    assert table.refresh().count() == 1
    monkeypatch.setattr("sys.stdin", io.StringIO("DELETE FROM trips; SELECT 'unclosed"))
    assert main(["sql", table.uri]) == 3
    assert table.refresh().count() == 1, "no statement of a script that cannot be read runs"


def test_sql_drops_a_table_only_with_yes_in_a_script(
    table: HudiTable, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert main(["sql", table.uri, "-e", "DROP TABLE trips"]) == 2
    assert "give --yes" in capsys.readouterr().err
    assert table.refresh().count() == 2
    assert main(["sql", table.uri, "--yes", "-e", "DROP TABLE trips"]) == 0
    assert not pyhudi.table_exists(table.uri)


def test_sql_drops_no_table_without_a_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    for name in ("missing", f"hudi.`{tmp_path}/missing`"):
        assert main(["sql", "-e", f"DROP TABLE IF EXISTS {name}"]) == 0
        assert f"there is no table {name}; nothing was changed" in capsys.readouterr().err


def test_sql_says_first_that_there_is_no_table_to_drop(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert main(["sql", "-e", "DROP TABLE missing"]) == 3
    assert "there is no table missing" in capsys.readouterr().err


def test_sql_prints_all_lines_of_a_plan(
    table: HudiTable, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", table.uri, "EXPLAIN SELECT fare + 1 FROM trips WHERE fare > 2"]) == 0
    plan = capsys.readouterr().out
    assert len(plan.splitlines()) > 5
    assert "fare" in plan


def test_sql_counts_replaced_file_groups(
    table: HudiTable, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", table.uri, "TRUNCATE TABLE trips"]) == 0
    assert "1 file group replaced" in capsys.readouterr().out


def test_sql_says_that_a_table_exists(table: HudiTable, capsys: pytest.CaptureFixture[str]) -> None:
    for create in ("CREATE TABLE IF NOT EXISTS u (x INT) USING hudi", "CREATE TABLE u USING hudi"):
        assert main(["sql", f"{create} LOCATION '{table.uri}'; SELECT id FROM u LIMIT 0"]) == 0
        printed = capsys.readouterr()
        assert f"u exists at {table.uri}; nothing was changed" in printed.out
        assert "created" not in printed.out + printed.err
    assert main(["sql", "--json", f"{create} LOCATION '{table.uri}'"]) == 0
    assert lines(capsys) == [{"exists": table.uri}]


def test_sql_says_that_a_new_table_has_no_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    create = "CREATE TABLE t (id STRING) USING hudi LOCATION"
    assert main(["sql", f"{create} '{tmp_path}/a'"]) == 0
    assert "no record key: rows get generated keys" in capsys.readouterr().err
    assert main(["sql", f"{create} '{tmp_path}/b' TBLPROPERTIES (primaryKey = 'id')"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("", [], ""),
        (" ; ;\n", [], ""),
        ("-- a;\n", [], ""),
        ("a; b ;c", ["a", "b"], "c"),
        ("SELECT ';' /* ; */ AS \"x;\", `;`;", ["SELECT ';' /* ; */ AS \"x;\", `;`"], ""),
        ("SELECT 'a\\'; SELECT 2", ["SELECT 'a\\'"], "SELECT 2"),
    ],
)
def test_split_statements_keeps_strings(text: str, statements: list[str], rest: str) -> None:
    assert split_statements(text) == (statements, rest)


def test_complete_word_knows_tables_and_columns(table: HudiTable) -> None:
    session = SqlSession(Relations({"Trips": table}))
    assert complete_word("tr", session) == ["Trips", "truncate"]
    assert complete_word("FA", session) == ["fare"]
    assert complete_word("SEL", session) == ["SELECT"]
    assert complete_word("xyz", session) == []


class Terminal:
    """A shell on a terminal."""

    def __init__(self, *arguments: str, home: Path) -> None:
        self._master, slave = pty.openpty()
        environment = {
            **os.environ,
            "XDG_STATE_HOME": str(home),
            "TERM": "dumb",
            "NO_COLOR": "1",
            "COLUMNS": "200",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pyhudi", "sql", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
        )
        os.close(slave)

    def read_until(self, text: str, again: Callable[[], None] | None = None) -> str:
        """Return what the shell prints up to a text; after each 5 silent seconds, call `again`."""
        printed = ""
        end = time.monotonic() + WAIT_S
        while text not in printed:
            left = end - time.monotonic()
            ready, _, _ = select.select([self._master], [], [], min(left, 5) if again else left)
            if ready:
                printed += os.read(self._master, 4096).decode().replace("\r\n", "\n")
                continue
            assert left > 0, printed
            assert again, printed
            again()
        return printed

    def interrupt(self) -> str:
        """Press Ctrl-C and return what the shell prints up to its prompt.

        Python's readline loses a signal that arrives after it printed the prompt and before it
        waits for a key (5 of 3,000 on Python 3.11), so that a person presses Ctrl-C again.
        """
        press = partial(os.killpg, self.process.pid, signal.SIGINT)
        press()
        return self.read_until("hudi> ", again=press)

    def type(self, line: str) -> None:
        """Type a line."""
        os.write(self._master, f"{line}\n".encode())

    def enter(self, line: str, until: str = "hudi> ") -> str:
        """Enter a line and return what the shell prints up to its prompt, without the line."""
        self.type(line)
        return self.read_until(until).removesuffix(until)

    def close(self) -> None:
        os.close(self._master)
        self.process.kill()
        self.process.wait()


@pytest.fixture
def terminal(table: HudiTable, tmp_path: Path) -> Iterator[Terminal]:
    shell = Terminal(table.uri, home=tmp_path / "state")
    shell.read_until("hudi> ")
    yield shell
    shell.close()


def test_shell_goes_on_after_errors(terminal: Terminal, table: HudiTable, tmp_path: Path) -> None:
    assert re.search(r"\bcow\b", terminal.enter("\\d"))
    assert re.search(r"fare +double", terminal.enter("\\d TRIPS"))
    terminal.enter("SELECT sum(fare)", until="-> ")
    assert "    4\n" in terminal.enter("AS total FROM trips;")
    assert "error: there is no table nowhere" in terminal.enter("DELETE FROM nowhere;")
    assert "error: DuckDB: " in terminal.enter("SELECT * FROM nowhere;")
    assert "\\d NAME" in terminal.enter("\\?")
    assert "there is no command \\x" in terminal.enter("\\x")
    assert "timing is on" in terminal.enter("\\timing")
    pyhudi.open_table(table.uri).delete("id = 'a'")
    assert re.search(
        r"2.5\n.*time: [\d,]+ ms", terminal.enter("SELECT fare FROM trips;"), re.DOTALL
    )
    terminal.enter("DELETE FROM trips WHERE id = 'it''s", until="-> ")
    terminal.interrupt()
    assert "1 deleted" in terminal.enter("DELETE FROM trips;")
    terminal.type("\\q")
    assert terminal.process.wait(WAIT_S) == 0
    history = (tmp_path / "state" / "pyhudi" / "sql_history").read_text(encoding="utf-8")
    assert "DELETE FROM trips;" in history


def test_shell_asks_before_it_drops_a_table(terminal: Terminal, table: HudiTable) -> None:
    terminal.enter("DROP TABLE trips;", until="[y/N]: ")
    assert "nothing was changed" in terminal.enter("n")
    assert table.refresh().count() == 2
    terminal.enter("DROP TABLE trips;", until="[y/N]: ")
    assert "done" in terminal.enter("y")
    assert not pyhudi.table_exists(table.uri)


def test_shell_cancels_a_statement_and_not_the_session(terminal: Terminal) -> None:
    slow = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range < 7;"
    terminal.type(slow)
    terminal.read_until("\n")
    time.sleep(1)
    assert "error: " in terminal.interrupt()
    assert "7" in terminal.enter("SELECT 7 AS n;")
