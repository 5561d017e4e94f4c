"""A second attempt at a task that writes its file after the commit: on Spark, a lost executor's.

The attempt pauses after it created the marker of its file, or before that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import LocalEngine
from pyhudi.engine.protocol import Attempt, Watcher
from pyhudi.errors import HudiError
from pyhudi.slices import markers
from pyhudi.txn.late_files import removing_late_files
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.txn.transaction import Transaction

WAIT = 30


class LateEngine(LocalEngine):
    """Runs the first task that creates a marker twice; one attempt pauses next to its marker."""

    def __init__(self) -> None:
        super().__init__(1)
        self.has_marker_first = True
        """Whether the attempt pauses after its marker."""
        self.error: Exception | None = None
        self._thread: threading.Thread | None = None
        self._has_paused = threading.Event()
        self._may_go_on = threading.Event()

    @property
    def has_late_tasks(self) -> bool:
        """Yes, the attempt."""
        return True

    def with_watcher(self, watcher: Watcher) -> LateEngine:
        """The engine itself: a copy would have a late attempt of its own."""
        self.watcher = watcher
        return self

    def run(
        self,
        work: Callable[[Any, Attempt], Any],
        tasks: Sequence[Any],
        *,
        stage: int = 0,
        label: str = "",
    ) -> list[Any]:
        if self._thread is None and label.startswith("write files"):
            attempt = Attempt(0, stage, 77)
            self._thread = threading.Thread(target=self._run_late, args=(work, tasks[0], attempt))
            self._thread.start()
            assert self._has_paused.wait(WAIT)
        return super().run(work, tasks, stage=stage, label=label)

    def end_late_attempt(self) -> None:
        """Let the paused attempt write its file, and wait for its end."""
        assert self._thread is not None
        self._may_go_on.set()
        self._thread.join(WAIT)

    def _run_late(self, work: Any, task: Any, attempt: Attempt) -> None:
        try:
            with removing_late_files():
                work(task, attempt)
        except HudiError as error:
            self.error = error

    def pause(self) -> None:
        """Pause in the late attempt only."""
        if threading.current_thread() is self._thread:
            self._has_paused.set()
            self._may_go_on.wait(WAIT)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> LateEngine:
    engine = LateEngine()
    create = markers.create

    def create_and_pause(*arguments: Any) -> None:
        if not engine.has_marker_first:
            engine.pause()
        create(*arguments)
        if engine.has_marker_first:
            engine.pause()

    monkeypatch.setattr(markers, "create", create_and_pause)
    return engine


def data_files(base: Path) -> set[str]:
    files = (file.relative_to(base) for file in base.rglob("*") if file.is_file())
    return {str(file) for file in files if ".hoodie" not in file.parts}


@pytest.mark.parametrize("has_marker_first", [True, False])
@pytest.mark.parametrize(
    ("type_", "version", "key"),
    [("cow", 9, "b"), ("mor", 9, "b"), ("mor", 6, "b"), ("cow", 6, "c"), ("mor", 8, "c")],
)
def test_late_attempt_removes_its_file(
    type_: Literal["cow", "mor"],
    version: Literal[6, 8, 9],
    key: str,
    has_marker_first: bool,
    engine: LateEngine,
    tmp_path: Path,
) -> None:
    """An update writes a base or a log file, an insert a base file."""
    engine.has_marker_first = has_marker_first
    rows = pa.table({"id": ["a", "b"], "v": [1, 1]})
    base = tmp_path / "table"
    pyhudi.create_table(base, rows, key="id", order_by="v", type=type_, version=version)
    pyhudi.open_table(base, engine=engine).upsert(pa.table({"id": [key], "v": [2]}))
    committed = data_files(base)
    engine.end_late_attempt()
    assert data_files(base) == committed
    assert "after the end of its write" in str(engine.error)
    assert not [file for file in base.glob(".hoodie/.temp/**/*") if file.is_file()]
    rows = pyhudi.open_table(base).scan().to_arrow()
    assert dict(zip(*rows.to_pydict().values(), strict=True)) == {"a": 1, "b": 1, key: 2}
    assert pyhudi.open_table(base).check(deep=True).findings == ()


@pytest.mark.parametrize("has_marker_first", [True, False])
def test_commit_deletes_files_that_late_attempt_wrote_during_it(
    has_marker_first: bool, engine: LateEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt ends after the commit has deleted other attempts' files, before its markers."""
    engine.has_marker_first = has_marker_first
    rows = pa.table({"id": ["a"], "v": [1]})
    base = tmp_path / "table"
    pyhudi.create_table(base, rows, key="id", order_by="v")
    delete_unnamed_files = PendingInstant.delete_unnamed_files

    def delete_and_end_attempt(*arguments: Any) -> None:
        delete_unnamed_files(*arguments)
        engine.end_late_attempt()

    monkeypatch.setattr(PendingInstant, "delete_unnamed_files", delete_and_end_attempt)
    pyhudi.open_table(base, engine=engine).upsert(pa.table({"id": ["a"], "v": [2]}))
    assert engine.error is None
    assert pyhudi.open_table(base).check(deep=True).findings == ()


@pytest.mark.parametrize("is_late", [True, False])
def test_next_writer_removes_files_that_late_attempt_wrote_during_rollback(
    is_late: bool, engine: LateEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt ends while the writer rolls its failed write back, or after that."""
    engine.has_marker_first = False
    rows = pa.table({"id": ["a"], "v": [1]})
    base = tmp_path / "table"
    pyhudi.create_table(base, rows, key="id", order_by="v")
    before = data_files(base)
    delete_unnamed_files = PendingInstant.delete_unnamed_files

    def fail(*_: Any) -> None:
        raise RuntimeError("fails")

    def delete_and_end_attempt(*arguments: Any) -> None:
        delete_unnamed_files(*arguments)
        engine.end_late_attempt()

    monkeypatch.setattr(Transaction, "_check_before_publish", fail)
    if not is_late:
        monkeypatch.setattr(PendingInstant, "delete_unnamed_files", delete_and_end_attempt)
    with pytest.raises(RuntimeError, match="fails"):
        pyhudi.open_table(base, engine=engine).upsert(pa.table({"id": ["a"], "v": [2]}))
    engine.end_late_attempt()
    monkeypatch.undo()
    assert (engine.error is not None) == is_late
    if is_late:
        assert data_files(base) == before
    pyhudi.open_table(base).upsert(pa.table({"id": ["b"], "v": [3]}))
    assert pyhudi.open_table(base).check(deep=True).findings == ()
    rows = pyhudi.open_table(base).scan().to_arrow()
    assert dict(zip(*rows.to_pydict().values(), strict=True)) == {"a": 1, "b": 3}
    assert not [*base.glob(".hoodie/.temp/*")]
