"""Savepoints, rollbacks by hand and restores, by pyhudi and by Apache Hudi in turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.oracle.client import HudiOracle
from tests.helpers.shared_table import Pair

RELEASES = ["0.15.0", "1.0.2", "1.2.0"]


@pytest.fixture(params=["cow", "mor"])
def pair(request: pytest.FixtureRequest, hudi: HudiOracle, tmp_path: Path) -> Pair:
    return Pair(hudi, tmp_path / "visits", request.param)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("hudi", RELEASES, indirect=True)
def test_savepoints_of_other_writer_are_listed_and_deleted(pair: Pair) -> None:
    pair.hudi_writes(range(2), 2)
    ours = pair.table.refresh().savepoint("by pyhudi")
    (row,) = pair.call("show_savepoints()")
    assert ours in row.values()
    pair.hudi_writes(range(1, 5), 3)
    theirs = pair.last()
    pair.call(f"create_savepoint(commit_time => '{theirs}', user => 'u', comments => 'c')")
    found = pair.table.refresh().savepoints().to_pylist()
    assert [(one["instant"], one["comment"]) for one in found] == [
        (ours, "by pyhudi"),
        (theirs, "c"),
    ]
    pair.call(f"delete_savepoint(instant_time => '{ours}')")
    pair.table.refresh().delete_savepoint(theirs)
    assert pair.call("show_savepoints()") == []
    pair.pyhudi_writes(range(3, 6), 4)
    pair.check({"k0": 2, "k1": 3, "k2": 3, "k3": 4, "k4": 4, "k5": 4})


@pytest.mark.timeout(900)
@pytest.mark.parametrize("hudi", RELEASES, indirect=True)
def test_restore_removes_commits_of_other_writer(pair: Pair) -> None:
    """A savepoint, commits of both, one rolled back by hand, and a restore; by each of them."""
    pair.hudi_writes(range(2), 2)
    rows = {"k0": 2, "k1": 2, "k2": 1, "k3": 1}
    saved = pair.table.refresh().savepoint("both go back to it")
    for v, ours in ((3, True), (13, False)):
        pair.pyhudi_writes(range(1, 5), v)
        pair.hudi_writes(range(3, 8), v + 1)
        written = {**rows, **{f"k{n}": v for n in range(1, 3)}}
        written |= {f"k{n}": v + 1 for n in range(3, 8)}
        pair.check(written)

        (pair.pyhudi_writes if not ours else pair.hudi_writes)(range(6, 10), v + 2)
        if ours:
            done = pair.table.refresh().rollback(pair.last())
            assert done.files_deleted + done.log_files_called_off > 0
        else:
            pair.call(f"rollback_to_instant(instant_time => '{pair.last()}')")
        pair.check(written)

        if ours:
            assert pair.table.refresh().restore(saved).restored_to == saved
        else:
            pair.call(f"rollback_to_savepoint(instant_time => '{saved}')")
        assert pair.last() == saved
        pair.check(rows)

        pair.hudi_writes(range(4, 6), v + 5)
        pair.pyhudi_writes(range(5, 7), v + 6)
        pair.check({**rows, "k4": v + 5, "k5": v + 6, "k6": v + 6})
        pair.table.refresh().restore(saved)
        pair.check(rows)
