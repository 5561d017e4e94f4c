"""Table services in a thread, next to the commits of the same handle."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.admin import inline_services, run_service
from pyhudi.api.table import HudiTable
from pyhudi.config.actions import COMMIT
from pyhudi.config.options import SERVICES_MODE
from pyhudi.errors import AfterCommitWarning, ConfigError, StorageError
from pyhudi.services import compaction_strategy
from tests.helpers.table_builder import SMALL, TableBuilder

IN_BACKGROUND = {**SMALL, SERVICES_MODE: "background"}
DUE = {
    **IN_BACKGROUND,
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.clean.max.commits": "1",
    "hoodie.clean.commits.retained": "1",
}
TABLE = TableBuilder(
    {"id": (pa.string(), str), "v": (pa.int64(), 1)}, options=IN_BACKGROUND, metadata=False
)


class Gate:
    """Stops the services after a commit until it is opened, and counts their runs."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()
        self.instants: list[str] = []

    def after_commit(self, table: Any, look: Any, instant: str, **more: Any) -> bool:
        self.instants.append(instant)
        self.reached.set()
        assert self.opened.wait(60)
        return AFTER_COMMIT(table, look, instant, **more)


AFTER_COMMIT = inline_services.after_commit


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    monkeypatch.setattr(inline_services, "after_commit", gate.after_commit)
    yield gate
    gate.opened.set()


def values(table: HudiTable) -> dict[str, int]:
    return {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}


def test_commits_do_not_wait_for_services(tmp_path: Path, gate: Gate) -> None:
    """One run of services serves several commits."""
    table = TABLE.make(tmp_path / "t", kind="mor")
    first = table.upsert(TABLE.rows("a"))
    assert gate.reached.wait(60)
    results = [table.upsert(TABLE.rows("ab", v=turn)) for turn in range(3)]
    assert values(table) == {"a": 2, "b": 2}
    gate.opened.set()
    table.finish_services()
    assert gate.instants == [first.instant, results[-1].instant]


def test_services_in_background_are_those_of_commits(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", kind="mor", options=DUE)
    for turn in range(6):
        table.upsert(TABLE.rows("abc", v=turn))
    table.finish_services()
    assert table.state.timeline.filter_completed(COMMIT), "the handle loads the table again"
    assert values(table) == dict.fromkeys("abc", 5)
    table.upsert(TABLE.rows("abc", v=6))
    table.finish_services()
    opened = pyhudi.open_table(table.uri)
    assert not opened.state.timeline.pending()
    assert opened.check(deep=True).ok
    assert values(opened) == dict.fromkeys("abc", 6)


def test_services_run_after_handle_is_deleted(tmp_path: Path, gate: Gate) -> None:
    table = TABLE.make(tmp_path / "t", kind="mor", options=DUE)
    for turn in range(2):
        table.upsert(TABLE.rows("a", v=turn))
    assert gate.reached.wait(60)
    (thread,) = [each for each in threading.enumerate() if each.name == "pyhudi-services"]
    uri = table.uri
    del table
    gc.collect()
    gate.opened.set()
    thread.join(60)
    assert pyhudi.open_table(uri).state.timeline.filter_completed(COMMIT)


def fail(*_: Any, **__: Any) -> None:
    raise StorageError("the server is away")


def error_after_two_commits(table: HudiTable) -> str:
    for turn in range(2):
        table.upsert(TABLE.rows("a", v=turn))
    with pytest.raises(StorageError) as raised:
        table.finish_services()
    return str(raised.value)


def fail_compactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_service, "compact", fail)


def test_failed_service_is_warning_and_error_of_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TABLE.make(tmp_path / "t", kind="mor", options=DUE)
    fail_compactions(monkeypatch)
    with pytest.warns(AfterCommitWarning, match="compaction after it is left to a later commit"):
        error = error_after_two_commits(table)
    assert "the server is away" in error
    table.finish_services()
    monkeypatch.undo()
    table.upsert(TABLE.rows("a", v=2))
    table.finish_services()
    assert table.state.timeline.filter_completed(COMMIT)


@pytest.mark.filterwarnings("ignore::pyhudi.errors.AfterCommitWarning")
def test_close_of_writer_raises_error_of_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TABLE.make(tmp_path / "t", kind="mor", options=DUE)
    fail_compactions(monkeypatch)
    writer = table.writer()
    results = [writer.upsert(TABLE.rows("a", v=turn)).result() for turn in range(2)]
    with pytest.raises(StorageError, match="the server is away"):
        writer.close()
    assert all(result.committed for result in results)
    assert values(table) == {"a": 1}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({SERVICES_MODE: "elsewhere"}, "'elsewhere'"),
        (
            {SERVICES_MODE: "background", "hoodie.write.concurrency.mode": "SINGLE_WRITER"},
            "allows one writer only",
        ),
    ],
)
def test_mode_of_services_is_checked(tmp_path: Path, options: dict[str, str], match: str) -> None:
    table = TABLE.make(tmp_path / "t")
    with pytest.raises(ConfigError, match=match):
        pyhudi.open_table(table.uri, options=options)


def test_services_turned_off_start_no_thread(tmp_path: Path, gate: Gate) -> None:
    options = {"hoodie.table.services.enabled": "false"}
    table = TABLE.make(tmp_path / "t", kind="mor", options=options)
    gate.opened.set()
    table.upsert(TABLE.rows("a"))
    table.finish_services()
    assert not [each for each in threading.enumerate() if each.name == "pyhudi-services"]


@pytest.mark.slow
def test_forked_process_has_services_of_its_own(tmp_path: Path, gate: Gate) -> None:
    table = TABLE.make(tmp_path / "t", kind="mor", options=DUE)
    table.upsert(TABLE.rows("a"))
    assert gate.reached.wait(60)
    child = os.fork()
    if not child:
        code = 1
        try:
            table.finish_services()
            gate.opened.set()
            table.upsert(TABLE.rows("b"))
            table.finish_services()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    gate.opened.set()
    table.finish_services()
    assert values(table.refresh()) == {"a": 1, "b": 1}


PROGRAM = """
import sys, threading
import pyarrow as pa
import pyhudi
from pyhudi.admin import inline_services

running, due = threading.Event(), inline_services._due

def services(*arguments):
    for name, service in due(*arguments):
        def run(service=service, name=name):
            running.set()
            print(name, flush=True)
            return service()
        yield name, run

inline_services._due = services
options = dict(pair.split("=") for pair in sys.argv[2:])
table = pyhudi.open_table(sys.argv[1], options=options)
for v in range(4):
    table.upsert(pa.table({"id": ["a"], "v": [v]}))
running.wait(60)
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "raise KeyboardInterrupt"])
def test_exit_ends_services_without_harm(tmp_path: Path, end: str) -> None:
    """The service that runs is ended; no further one begins."""
    table = TABLE.make(tmp_path / "t", kind="mor")
    options = [f"{name}={value}" for name, value in DUE.items()]
    program = [sys.executable, "-c", PROGRAM + end, table.uri, *options]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
    assert "Fatal" not in ended.stderr
    assert "pyhudi-services" not in ended.stderr
    assert "cleaning" in ended.stdout or "compaction" in ended.stdout
    opened = pyhudi.open_table(table.uri, options={SERVICES_MODE: "inline"})
    assert not opened.state.timeline.pending()
    assert values(opened) == {"a": 3}
    assert opened.check(deep=True).ok


def test_overgrown_file_groups_are_compacted_in_successive_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few at a time, so that no commit waits for all of them."""
    builder = TableBuilder(
        {"id": (pa.string(), str), "v": (pa.int64(), 1)},
        partition_by="id",
        options={**SMALL, "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"},
        metadata=False,
    )
    table = builder.make(tmp_path / "t", kind="mor")
    sizes: list[list[int]] = []
    compact, limit = run_service.compact, compaction_strategy._limit_io

    def count(*arguments: Any, **more: Any) -> Any:
        result = compact(*arguments, **more)
        sizes[-1].append(result.file_groups)
        return result

    monkeypatch.setattr(run_service, "compact", count)
    # As if each file group were large.
    monkeypatch.setattr(
        compaction_strategy, "_limit_io", lambda slices, options: limit(slices, options)[:1]
    )
    for turn in range(36):
        sizes.append([])
        table.upsert(builder.rows("abc", v=turn))
    first = next(turn for turn, each in enumerate(sizes) if sum(each))
    assert sizes[first : first + 5] == [[1], [1], [1], [0], []]
    assert values(table.refresh()) == dict.fromkeys("abc", 35)
