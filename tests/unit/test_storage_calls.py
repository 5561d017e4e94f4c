"""Numbers of storage requests and Python calls of a small commit with default settings.

The bounds may be lowered; a change that raises them makes every small commit slower.
"""

from __future__ import annotations

import cProfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

from pyhudi.storage.storage import Storage
from tests.helpers.table_builder import TableBuilder

TABLE = TableBuilder(
    {
        "id": (pa.string(), str),
        "city": (pa.string(), lambda name: f"c{len(name) % 2}"),
        "v": (pa.int64(), 1),
    },
    partition_by="city",
    order_by="v",
)
MOST_PYTHON_CALLS_COW = 15_500
MOST_PYTHON_CALLS_MOR = 16_000
"""14,140 and 14,580 of the main thread."""
MOST_PYTHON_CALLS_OF_APPEND = 18_700
MOST_STORAGE_CALLS_OF_APPEND = 37
"""17,050 and 35."""
CALLS = ("read", "list", "list_dir", "head", "exists", "put", "put_if_absent", "delete")
MOST = {("read",): 6, ("list", "list_dir"): 18, ("head",): 1, ("put", "put_if_absent"): 9}


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    found: Counter[str] = Counter()

    def watched(name: str) -> Callable[..., Any]:
        own = getattr(Storage, name)

        def call(self: Storage, *args: Any) -> Any:
            found[name] += 1
            return own(self, *args)

        return call

    for name in CALLS:
        monkeypatch.setattr(Storage, name, watched(name))
    return found


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_small_commit_has_expected_storage_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Literal["cow", "mor"]
) -> None:
    table = TABLE.make(tmp_path / "t", kind=kind)
    turns = []
    for turn in range(30):
        rows = TABLE.rows([f"k{turn}", "a"], v=turn)
        with monkeypatch.context() as patch:
            calls = counted(patch)
            table.upsert(rows)
        turns.append(calls)

    def least(names: tuple[str, ...], found: list[Counter[str]]) -> int:
        """Of a commit that no service follows."""
        return min(sum(calls[name] for name in names) for calls in found)

    for names, most in MOST.items():
        assert least(names, turns[4:12]) <= most, (names, turns)
        assert least(names, turns[22:]) <= most, (names, turns)


@pytest.mark.parametrize(
    ("kind", "most"), [("cow", MOST_PYTHON_CALLS_COW), ("mor", MOST_PYTHON_CALLS_MOR)]
)
def test_small_commit_has_expected_python_calls(
    tmp_path: Path, kind: Literal["cow", "mor"], most: int
) -> None:
    table = TABLE.make(tmp_path / "t", kind=kind)
    counts = []
    for turn in range(24):
        rows = TABLE.rows([f"k{turn}", "a"], v=turn)
        counts.append(python_calls(lambda rows=rows: table.upsert(rows)))  # type: ignore[misc]
    # A service follows each of the later commits, but not all of them.
    assert min(counts[16:]) <= most, counts


@pytest.mark.slow
@pytest.mark.each_time
def test_append_to_log_files_has_expected_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of files whose commits are archived; and no clean is planned after each commit."""
    table = TABLE.make(tmp_path / "t", kind="mor")
    keys = [f"{'k' * (number % 2 + 1)}{number}" for number in range(8)]
    table.upsert(TABLE.rows(keys, v=0))
    python, storage = [], []
    for turn in range(1, 30):
        rows = TABLE.rows(keys, v=turn)
        with monkeypatch.context() as patch:
            calls = counted(patch)
            python.append(python_calls(lambda rows=rows: table.upsert(rows)))  # type: ignore[misc]
        storage.append(calls.total())
    # The 25th commit compacts, because there are 24 log files.
    assert sorted(storage[10:])[9] <= MOST_STORAGE_CALLS_OF_APPEND, storage
    assert sorted(python[10:])[9] <= MOST_PYTHON_CALLS_OF_APPEND, python


def python_calls(step: Callable[[], object]) -> int:
    """How many functions the main thread calls."""
    profile = cProfile.Profile()
    profile.enable()
    step()
    profile.disable()
    return sum(entry.callcount for entry in profile.getstats())
