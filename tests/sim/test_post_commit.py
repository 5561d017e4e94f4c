"""A storage failure or an interrupt at any change of a write: the error states the outcome."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi.api.table_handle import TableHandle
from pyhudi.errors import (
    AfterCommitError,
    AfterCommitWarning,
    HudiError,
    InterruptedAfterCommit,
    StorageError,
)
from pyhudi.storage.storage import Storage
from pyhudi.write import conflict_retries, upsert
from tests.sim.crash import PEOPLE, CrashingStorage, Handle, leftovers, people
from tests.sim.interrupting_storage import FailingStorage

TABLES = [(6, "mor"), (8, "cow"), (9, "mor")]
OPTIONS = {"hoodie.parquet.small.file.limit": "0"}


@pytest.fixture(params=TABLES, ids=lambda one: f"v{one[0]}_{one[1]}")
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    version, kind = request.param
    base = tmp_path / "table"
    created = PEOPLE.make(base, version=version, kind=kind)
    created.insert(people(range(4), 1, 10))
    return base


def insert(storage: Storage) -> str:
    """A verb that doubles rows when it is done twice."""
    return upsert.insert(Handle(storage, OPTIONS), people([6, 7], 2, 20)).instant


def ids(base: Path) -> list[str]:
    rows = pyhudi.open_table(str(base)).scan(["id"]).to_arrow().column("id").to_pylist()
    return sorted(rows)


BEFORE = ["k00", "k01", "k02", "k03"]
AFTER = [*BEFORE, "k06", "k07"]


def copies(base: Path, tmp_path: Path) -> Iterator[tuple[int, Path]]:
    counting = CrashingStorage(str(shutil.copytree(base, tmp_path / "counted")))
    insert(counting)
    assert counting.changes > 8
    for n in range(1, counting.changes + 1):
        copy = shutil.copytree(base, tmp_path / f"at{n}")
        yield n, copy
        shutil.rmtree(copy)


def assert_next_writer_goes_on(base: Path, wanted: list[str], n: int) -> None:
    pyhudi.open_table(str(base)).upsert(people([0], 9, 90))
    assert ids(base) == wanted, f"change {n}"
    assert leftovers(base) == [], f"change {n}"
    assert not pyhudi.open_table(str(base)).check(deep=True).findings, f"change {n}"


@pytest.mark.parametrize("answer_lost", [False, True])
def test_storage_failure_raises_only_if_nothing_was_committed(
    table: Path, tmp_path: Path, *, answer_lost: bool
) -> None:
    """What fails after the commit is a warning."""
    seen, warned = set(), 0
    for n, base in copies(table, tmp_path):
        error = StorageError("input/output error")
        failing = FailingStorage(str(base), n, error, answer_lost=answer_lost)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                instant = insert(failing)
                committed = True
            except AfterCommitError:
                instant, committed = "", True
            except HudiError:
                instant, committed = "", False
        said = [str(one.message) for one in caught if one.category is AfterCommitWarning]
        if instant:
            warned += len(said)
            assert all(f"committed as {instant}" in text for text in said), f"change {n}"
        seen.add(committed)
        assert ids(base) == (AFTER if committed else BEFORE), f"change {n}"
        assert_next_writer_goes_on(base, AFTER if committed else BEFORE, n)
    assert seen == {True, False}
    assert warned


def test_interrupt_reports_whether_write_committed(table: Path, tmp_path: Path) -> None:
    seen = set()
    for n, base in copies(table, tmp_path):
        failing = FailingStorage(str(base), n, KeyboardInterrupt(), answer_lost=False)
        with pytest.raises(KeyboardInterrupt) as raised:
            insert(failing)
        committed = isinstance(raised.value, InterruptedAfterCommit)
        seen.add(committed)
        assert ids(base) == (AFTER if committed else BEFORE), f"change {n}"
        assert_next_writer_goes_on(base, AFTER if committed else BEFORE, n)
    assert seen == {True, False}


class AfterTheVerb:
    """Counts calls to storage once a verb has done its part, and fails at one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        self.fails_at = 0
        self.error: BaseException | None = None
        self._is_on = False
        for name in ("read", "list_dir", "list", "head", "put", "put_if_absent", "delete"):
            monkeypatch.setattr(Storage, name, self._counted(getattr(Storage, name)))
        monkeypatch.setattr(
            conflict_retries, "retry_on_conflict", self._then_on(conflict_retries.retry_on_conflict)
        )

    def insert(self, table: pyhudi.HudiTable, error: BaseException | None, at: int) -> bool:
        """Whether the call came back."""
        self.calls, self.fails_at, self.error = 0, at, error
        try:
            return table.insert(people([6, 7], 2, 20)).committed
        except InterruptedAfterCommit:
            return False
        finally:
            self._is_on = False

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **more: Any) -> Any:
            if self._is_on:
                self.calls += 1
                if self.calls == self.fails_at and self.error is not None:
                    raise self.error
            return call(*given, **more)

        return counted

    def _then_on(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def then_on(*given: Any) -> Any:
            done = call(*given)
            self._is_on = True
            return done

        return then_on


@pytest.mark.parametrize("error", [StorageError("the server is away"), KeyboardInterrupt()])
def test_post_commit_failure_is_never_error_of_commit(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """The handle looks at the table again, as if threads shared it, and at what is due."""
    monkeypatch.setattr(TableHandle, "_advance", lambda *_: False)
    after, came_back, warned = AfterTheVerb(monkeypatch), [], 0
    assert after.insert(pyhudi.open_table(shutil.copytree(table, tmp_path / "counted")), None, 0)
    assert after.calls > 2
    for n in range(1, after.calls + 1):
        handle = pyhudi.open_table(shutil.copytree(table, tmp_path / f"after{n}"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            came_back.append(after.insert(handle, error, n))
        warned += any(one.category is AfterCommitWarning for one in caught)
        shown = handle.scan(["id"]).to_arrow().column("id").to_pylist()
        assert sorted(shown) == AFTER, f"call {n}"
    told_all = all(came_back) and warned
    assert not any(came_back) if isinstance(error, KeyboardInterrupt) else told_all


def test_handle_reloads_on_next_use_after_failed_reload(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = pyhudi.open_table(table)

    def away(*_: Any) -> Any:
        raise StorageError("the server is away")

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "list_dir", away)
        with pytest.warns(AfterCommitWarning, match="done; reloading the table after it is left"):
            handle._reload()
        with pytest.raises(StorageError):
            _ = handle.schema
    handle_of_another = pyhudi.open_table(table)
    handle_of_another.set_properties({"own": "1"})
    assert handle.properties["own"] == "1"
