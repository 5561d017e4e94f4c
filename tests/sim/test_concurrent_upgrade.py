"""Reads during a change of the table version: the rows, or an error of pyhudi.

A writer that waits looks like one that died to whoever reads meanwhile, so the reader stalls at a
call of its own, and the writer gets as far as one of its changes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi.admin.upgrade import change_version
from pyhudi.api.table import HudiTable
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import HistoryUnavailable, HudiError, MetadataTableWarning, TimelineMoved
from pyhudi.storage.storage import Entry, Storage
from pyhudi.testing import comparable_rows
from tests.helpers.tables import unpack
from tests.sim.crash import Handle
from tests.sim.states import Recorded, State, recorded

CASES = [("v6_mor_part_avro", 8), ("v9_mor_event_time", 6), ("v6_cow_archived", 9)]
STOPS = 12
"""At so many of its changes the writer waits; each kind of stall begins at another one."""


class StallingStorage(Storage):
    """Lets others go on before the first call of one kind."""

    def __init__(self, uri: str, call: str, meanwhile: Callable[[], None]) -> None:
        super().__init__(uri)
        self.call = call
        self.meanwhile = meanwhile

    def _stall(self, call: str) -> None:
        if call == self.call:
            self.call = ""
            self.meanwhile()

    def read(self, path: str) -> bytes:
        self._stall("properties" if path.endswith(".properties") else "instant")
        return super().read(path)

    def list_dir(self, prefix: str = "") -> tuple[list[str], list[Entry]]:
        self._stall("timeline")
        return super().list_dir(prefix)


@contextmanager
def without_warnings() -> Iterator[None]:
    """The metadata table goes and comes; readers do without meanwhile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MetadataTableWarning)
        yield


def version_changed(start: Path, to: int, tmp_path: Path) -> Recorded:
    """What a change of its version makes of a table, step by step."""
    return recorded(start, tmp_path, lambda storage: change(storage, to))


def change(storage: Storage, to: int) -> None:
    now = pyhudi.open_table(storage.uri).version
    change_version(Handle(storage), to, up=to > now, dry_run=False)


def rows(table: HudiTable, **how: Any) -> list[str]:
    return comparable_rows(table.scan(**how).to_arrow())


def all_since_the_start(table: HudiTable) -> list[str]:
    return sorted(map(str, table.incremental(meta_fields=False).to_arrow().to_pylist()))


@pytest.mark.parametrize("call", ["properties", "timeline", "instant"])
@pytest.mark.parametrize(("name", "to"), CASES)
def test_open_during_upgrade_reads_rows(name: str, to: int, call: str, tmp_path: Path) -> None:
    start = unpack(name, tmp_path / "start")
    expected = rows(pyhudi.open_table(start))
    before = State.of(start)
    writer = version_changed(start, to, tmp_path)
    changes, base = len(writer.states), writer.base
    offset = ("properties", "timeline", "instant").index(call)
    for n in [0, *range(1 + offset, changes + 1, max(changes // STOPS, 1))]:
        before.restore(base)
        stalls = 0

        def meanwhile(n: int = n) -> None:
            nonlocal stalls
            stalls += 1
            writer.stops_at(n).restore(base)

        with without_warnings():
            table = HudiTable(StallingStorage(str(base), call, meanwhile), LocalEngine(1), {})
            try:
                found = rows(table)
            except TimelineMoved:
                # What had been read when the version changed cannot be read on.
                assert call == "instant"
                found = rows(table.refresh())
            assert found == expected, f"at change {n}"
        assert stalls == 1


@pytest.mark.parametrize(("name", "to"), CASES)
def test_open_handle_reads_or_raises_during_upgrade(name: str, to: int, tmp_path: Path) -> None:
    start = unpack(name, tmp_path / "start")
    fresh = pyhudi.open_table(start)
    first = fresh.inspect.commits()["requested"].to_pylist()[0]
    reads: dict[str, Callable[[HudiTable], list[str]]] = {
        "scan": rows,
        "incremental": all_since_the_start,
        "as_of": lambda table: rows(table, as_of=first),
    }
    expected = {kind: told(read, fresh) for kind, read in reads.items()}
    before = State.of(start)
    writer = version_changed(start, to, tmp_path)
    changes, base = len(writer.states), writer.base
    for n in [0, *range(1, changes + 1, max(changes // STOPS, 1))]:
        with without_warnings():
            for kind, read in reads.items():
                before.restore(base)
                table = pyhudi.open_table(base)
                writer.stops_at(n).restore(base)
                found = told(read, table)
                assert found == expected[kind] or found == "told", f"{kind} at change {n}"


def told(read: Callable[[HudiTable], list[str]], table: HudiTable) -> list[str] | str:
    try:
        return read(table)
    except HistoryUnavailable:
        return "told"
    except HudiError as error:
        return f"{type(error).__name__}: {error}"


def test_refreshed_handle_reads_during_upgrade(tmp_path: Path) -> None:
    base = unpack("v6_mor_part_avro", tmp_path)
    table = pyhudi.open_table(base)
    before = rows(table)
    change(Storage(str(base)), 9)
    assert rows(table.refresh()) == before
    assert table.version == 9
