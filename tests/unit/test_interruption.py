"""Ctrl-C while the core searches a damaged log file."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.engine import local
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Attempt
from tests.helpers.table_builder import SMALL, TableBuilder

TABLE = TableBuilder(
    {"id": (pa.string(), str), "v": (pa.int64(), 1)}, kind="mor", first="abc", options=SMALL
)
ZEROS = bytes(40 << 20)


def damaged(base: Path) -> None:
    """A table with a log file that ends in zeros which are on the disk, not a hole."""
    TABLE.make(base).upsert(TABLE.rows("a", v=2))
    (log,) = base.glob(".*.log.*")
    with log.open("ab") as file:
        file.write(ZEROS)


def test_search_of_log_file_ends_on_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged(tmp_path)
    asked = []

    def press() -> None:
        asked.append(threading.current_thread())
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(local, "check_running", press)
    unchecked = {"pyhudi.read.check.file.sizes": "false"}
    table = pyhudi.open_table(tmp_path, options=unchecked, engine=LocalEngine(1))
    with pytest.raises(KeyboardInterrupt):
        table.scan().to_arrow()
    assert asked == [threading.main_thread()]


def test_core_ends_the_search_of_a_thread_whose_call_failed() -> None:
    begun = threading.Event()

    def work(task: int, _attempt: Attempt) -> None:
        local.check_running()
        if task:
            begun.wait(10)
            raise ValueError("failed")
        begun.set()
        while True:
            local.check_running()

    with pytest.raises(ValueError, match="failed"):
        LocalEngine(2).run(work, [0, 1])
    local.check_running()
