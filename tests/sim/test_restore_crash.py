"""Crashes at every change of a rollback or a restore: the next writer completes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi.admin import restore
from pyhudi.config.actions import RESTORE, ROLLBACK
from pyhudi.storage.storage import Storage
from pyhudi.write import upsert
from tests.sim.crash import Handle, leftovers, values_read
from tests.sim.states import recorded
from tests.unit.test_savepoints import made, people, timeline_of

OPTIONS = {"hoodie.index.bloom.num_entries": "64"}
COMPACTING = {"hoodie.metadata.compact.max.delta.commits": 2}
CASES = [(6, "cow", {}), (6, "mor", {}), (8, "cow", {}), (9, "mor", {}), (9, "mor", COMPACTING)]
Rows = list[dict[str, Any]]

pytestmark = pytest.mark.slow


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}-{len(case[2])}")
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A table of three commits with a metadata table, in the last case one that cannot follow."""
    version, kind, options = request.param
    made(tmp_path / "t", version, kind)
    pyhudi.open_table(tmp_path / "t", options=options).upsert(people(range(1, 6), 3))
    return tmp_path / "t"


def write(base: Path) -> None:
    upsert.upsert(Handle(Storage(str(base)), OPTIONS), people(range(8, 10), 9))


def check_sound(base: Path, n: int) -> None:
    """Nothing is left that counts.

    Up to version 6 an attempt that died may leave a log file that calls off what is gone, and half
    a log file of the metadata table, which is not used then.
    """
    opened = pyhudi.open_table(base)
    found = opened.check(deep=True)
    allowed = {"unnamed_file", "metadata_unreadable"} if opened.version == 6 else set()
    assert {one.kind for one in found.findings} <= allowed, f"after change {n}: {found}"


NEW = {"k8": 9, "k9": 9}


def test_restore_crash_is_completed_by_next_write(table: Path, tmp_path: Path) -> None:
    commits = [one.requested for one in timeline_of(table).commits]
    before = values_read(table)
    wanted = {f"k{n}": 1 for n in range(4)}

    whole = recorded(table, tmp_path, lambda s: restore.restore(Handle(s, OPTIONS), commits[0]))
    assert values_read(whole.base) == wanted
    for n, base in whole.deaths(one_in=3):
        # Nobody sees rows that are in no commit.
        values_read(base)
        begun = {one.action for one in timeline_of(base).instants} & {RESTORE}
        write(base)
        assert values_read(base) == {**(wanted if begun else before), **NEW}, f"after change {n}"
        assert leftovers(base) == [], f"after change {n}"
        check_sound(base, n)


def test_rollback_crash_is_completed_or_undone(table: Path, tmp_path: Path) -> None:
    last = timeline_of(table).commits[-1].requested
    before = values_read(table)
    wanted = {"k0": 2, "k1": 2, "k2": 1, "k3": 1}

    whole = recorded(table, tmp_path, lambda s: restore.roll_back(Handle(s, OPTIONS), last))
    assert values_read(whole.base) == wanted
    for n, base in whole.deaths(one_in=4):
        stands = any(one.requested == last for one in timeline_of(base).commits)
        assert values_read(base) == (before if stands else wanted), f"after change {n}"
        write(base)
        assert values_read(base) == {**(before if stands else wanted), **NEW}, f"after change {n}"
        assert leftovers(base) == [], f"after change {n}"
        check_sound(base, n)


def test_restore_can_be_repeated_after_crash(table: Path, tmp_path: Path) -> None:
    first = timeline_of(table).commits[0].requested
    whole = recorded(table, tmp_path, lambda s: restore.restore(Handle(s, OPTIONS), first))
    for n, base in whole.deaths(one_in=4):
        restore.restore(Handle(Storage(str(base)), OPTIONS), first)
        assert values_read(base) == {f"k{n}": 1 for n in range(4)}, f"after change {n}"
        assert not timeline_of(base).pending(ROLLBACK, RESTORE)
