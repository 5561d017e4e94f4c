"""What every crash test stands on: files of the Rust core count as changes of storage."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyhudi.errors import LockWarning, MetadataTableWarning
from tests.sim.crash import count_native_writes
from tests.sim.table_kinds import Kind, create_table


def pytest_itemcollected(item: pytest.Item) -> None:
    """All of these judge many states of a table."""
    item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    count_native_writes(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Up to version 6 a log file that a dying writer tore stays; pyhudi does without then.
        warnings.filterwarnings("ignore", r".*log blocks are damaged", MetadataTableWarning)
        # A storage that is dead or full does not take the lock back.
        warnings.simplefilter("ignore", LockWarning)
        yield


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Kind], Path]:
    """Return a function that creates a table of each kind once; its callers copy it."""
    made: dict[Kind, Path] = {}

    def table(kind: Kind) -> Path:
        if kind not in made:
            base = tmp_path_factory.mktemp("kinds") / "table"
            create_table(base, kind)
            made[kind] = base
        return made[kind]

    return table
