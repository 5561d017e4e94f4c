"""An index build that pauses before its last step and loses the lock.

Its lock has expired, and other writers have committed in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.config.actions import INDEXING
from pyhudi.config.property_names import PENDING_OPERATION
from pyhudi.errors import CommitConflict, MetadataTableWarning
from pyhudi.metadata import index_definitions, initialize
from pyhudi.metadata.table_writer import clear_partitions
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.txn.pending_instant import PendingInstant
from pyhudi.write import async_indexing
from pyhudi.write.async_indexing import _Build
from tests.sim.crash import PEOPLE, Killed, people, rows_read
from tests.sim.interrupting_storage import StandingClock

MAKINGS: dict[str, Callable[[HudiTable], object]] = {
    "index": lambda table: table.create_index("record_index"),
    "all": lambda table: table.rebuild_metadata(),
}


@pytest.fixture(params=[(6, "cow"), (9, "cow"), (9, "mor")], ids=lambda one: f"v{one[0]}-{one[1]}")
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    version: Literal[6, 9] = request.param[0]
    base = tmp_path / "table"
    PEOPLE.make(base, version=version, kind=request.param[1], first=range(8))
    return base


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StandingClock:
    return StandingClock.of_all(monkeypatch)


def opened(base: Path) -> HudiTable:
    return pyhudi.open_table(str(base))


def meanwhile(
    monkeypatch: pytest.MonkeyPatch,
    clock: StandingClock,
    others: Callable[[], object],
    making: ModuleType = initialize,
) -> None:
    """What others do once the lock was looked at for the last time; a heartbeat lasts longer."""
    change = index_definitions.change_definitions

    def stood_still(*given: Any, **how: Any) -> Any:
        changed = change(*given, **how)
        monkeypatch.setattr(making, "change_definitions", change)
        clock.stand_still(100_000)
        others()
        return changed

    monkeypatch.setattr(making, "change_definitions", stood_still)


def assert_kept(base: Path, count: int) -> None:
    opened(base).upsert(people([0, 41], 7, 7))
    table = opened(base)
    assert "record_index" in table.config.metadata_partitions
    assert PENDING_OPERATION not in table.config.properties
    assert table.check(deep=True).findings == ()
    rows = rows_read(base, "true")
    assert len({row["id"] for row in rows}) == len(rows) == count
    assert rows == rows_read(base, "false")


@pytest.mark.parametrize("making", list(MAKINGS))
def test_index_build_fails_after_concurrent_service(
    base: Path, monkeypatch: pytest.MonkeyPatch, clock: StandingClock, making: str
) -> None:
    """The service does not check for pending operations, and moves every row."""
    if making == "index":
        opened(base).drop_index("record_index")
    meanwhile(monkeypatch, clock, lambda: opened(base).cluster(sort_by="v"))
    with pytest.raises(CommitConflict, match="changed the table's properties"):
        MAKINGS[making](opened(base))
    # Its heartbeat has run out by then.
    clock.stand_still(200_000)
    assert_kept(base, 9)


def test_write_continues_next_to_takeover_of_index_build(
    base: Path, monkeypatch: pytest.MonkeyPatch, clock: StandingClock
) -> None:
    """What was begun beside writers is ended alone (seed 27005901 of v9-mor-simple-metadata)."""
    opened(base).drop_index("record_index")
    begin = PendingInstant.begin

    def dies(instant: PendingInstant, *given: Any) -> Any:
        if instant.action == INDEXING:
            raise Killed
        return begin(instant, *given)

    with monkeypatch.context() as patch:
        patch.setattr(PendingInstant, "begin", dies)
        patch.setattr("pyhudi.write.async_indexing._Build.roll_back", lambda _: None)
        with pytest.raises(Killed):
            opened(base).create_index("record_index", concurrently=True)
    meanwhile(monkeypatch, clock, lambda: opened(base).upsert(people([41], 4, 4)))
    with pytest.warns(MetadataTableWarning, match="changed the table's properties"):
        opened(base).upsert(people([42], 4, 4))
    assert_kept(base, 10)


def test_restore_is_fenced_from_index_build(
    base: Path, monkeypatch: pytest.MonkeyPatch, clock: StandingClock
) -> None:
    """Its indexing is complete, so no pending instant shows it."""
    opened(base).drop_index("record_index")
    first = opened(base).inspect.commits()["requested"][0].as_py()
    opened(base).upsert(people([40], 3, 3))
    meanwhile(monkeypatch, clock, lambda: opened(base).restore(first), async_indexing)
    with pytest.raises(CommitConflict, match="changed the table's properties"):
        opened(base).create_index("record_index", concurrently=True)
    clock.stand_still(200_000)
    opened(base).create_index("record_index")
    assert_kept(base, 9)


def test_failed_build_keeps_index_of_others(
    base: Path, monkeypatch: pytest.MonkeyPatch, clock: StandingClock
) -> None:
    """They had gone on with it, and stood still as well (seed 28020111, under odds)."""
    opened(base).drop_index("record_index")
    ended = _Build.finish

    def stood_still(build: _Build, stats: list[WriteStat]) -> None:
        monkeypatch.setattr(_Build, "finish", ended)
        clock.stand_still(200_000)

        def takes_back_and_dies() -> None:
            def dies(*given: Any) -> None:
                clear_partitions(*given)
                raise Killed

            monkeypatch.setattr("pyhudi.write.async_indexing.clear_partitions", dies)
            with suppress(Killed), build.table.lock_manager.critical_section():
                build.roll_back()
            monkeypatch.setattr("pyhudi.write.async_indexing.clear_partitions", clear_partitions)

        meanwhile(monkeypatch, clock, takes_back_and_dies)
        with pytest.warns(MetadataTableWarning, match="changed the table's properties"):
            opened(base).upsert(people([40], 4, 4))
        raise CommitConflict(f"{len(stats)} files for nothing")

    monkeypatch.setattr(_Build, "finish", stood_still)
    with pytest.raises(CommitConflict, match="for nothing"):
        opened(base).create_index("record_index", concurrently=True)
    clock.stand_still(200_000)
    opened(base).create_index("record_index")
    assert_kept(base, 10)
