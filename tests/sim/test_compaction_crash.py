"""Crashes at every change of a compaction: readers, the next writer, the next compaction."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyhudi
from pyhudi.admin import run_service
from pyhudi.config.actions import COMPACTION, State
from pyhudi.config.compaction_options import CompactionOptions
from pyhudi.services.table_compaction import CompactionRequest
from pyhudi.storage.storage import Storage
from pyhudi.write import upsert
from tests.sim.crash import Handle, leftovers, values_read
from tests.sim.states import recorded
from tests.unit.test_savepoints import made, people, timeline_of
from tests.unit.test_zombie_commits_same_instant import begin, roll_attempt_back

OPTIONS = {"hoodie.index.bloom.num_entries": "64"}
CASES = [(6, {}), (8, {}), (9, {}), (9, {"hoodie.metadata.compact.max.delta.commits": 2})]

pytestmark = pytest.mark.slow


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{len(case[1])}")
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A table with a metadata table and log files, in the last case one that is compacted often."""
    version, options = request.param
    made(tmp_path / "t", version, "mor")
    pyhudi.open_table(tmp_path / "t", options=options).upsert(people(range(1, 6), 3))
    return tmp_path / "t"


def compact(storage: Storage) -> None:
    run_service.compact(Handle(storage, OPTIONS), CompactionRequest(), CompactionOptions())


def write_to(storage: Storage) -> None:
    upsert.upsert(Handle(storage, OPTIONS), people(range(4, 10), 9))


def write(base: Path) -> None:
    write_to(Storage(str(base)))


@pytest.mark.parametrize("writes_first", [True, False])
def test_compaction_crash_is_completed_by_next_writer(
    table: Path, tmp_path: Path, writes_first: bool
) -> None:
    before = values_read(table)
    whole = recorded(table, tmp_path, compact)
    assert values_read(whole.base) == before
    after = {**before, **{f"k{n}": 9 for n in range(4, 10)}}
    for n, base in whole.deaths(one_in=4):
        assert values_read(base) == before, f"after change {n}"
        if writes_first:
            write(base)
            assert values_read(base) == after, f"after change {n}"
        compact(Storage(str(base)))
        assert values_read(base) == (after if writes_first else before), f"after change {n}"
        assert not timeline_of(base).pending(), f"after change {n}"
        assert leftovers(base) == [], f"after change {n}"
        assert not pyhudi.open_table(base).check(deep=True).findings, f"after change {n}"


def test_compaction_rollback_crash_keeps_plan(table: Path, tmp_path: Path) -> None:
    """Hudi has begun both, and a write of pyhudi carries the rollback out."""
    (planned,) = pyhudi.open_table(table).compact(execute=False).scheduled
    pyhudi.open_table(table).upsert(people(range(2, 5), 5))
    begin(table, planned, COMPACTION)
    roll_attempt_back(table, planned, until=State.REQUESTED)
    before = values_read(table)
    again = {**before, **{f"k{n}": 9 for n in range(4, 10)}}
    whole = recorded(table, tmp_path, write_to)
    for n, base in whole.deaths(one_in=2):
        assert values_read(base) in (before, again), f"after change {n}"
        write(base)
        assert values_read(base) == again, f"after change {n}"
        assert [left.requested for left in timeline_of(base).pending()] == [planned]
        pyhudi.open_table(base).compact(instant=planned)
        assert values_read(base) == again, f"after change {n}"
        assert not timeline_of(base).pending(), f"after change {n}"
