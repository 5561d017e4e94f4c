"""Errors of failed or interrupted rollbacks and restores: they report whether rows changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import pyhudi
from pyhudi import AfterRollbackError, HudiError, InterruptedAfterRollback, StorageError
from pyhudi.admin import restore
from tests.helpers.pairwise import pairwise
from tests.sim.crash import Handle
from tests.sim.interrupting_storage import FailingStorage
from tests.unit.test_restore import rows_of, sound
from tests.unit.test_savepoints import made, people, timeline_of

pytestmark = pytest.mark.slow

ERRORS = {"fails": StorageError("no room"), "interrupted": KeyboardInterrupt()}
EXPECTED = {
    "fails": (StorageError, AfterRollbackError),
    "interrupted": (KeyboardInterrupt, InterruptedAfterRollback),
}


@pytest.mark.parametrize(
    ("version", "kind", "how", "verb"),
    pairwise((6, 8, 9), ("cow", "mor"), tuple(ERRORS), ("rollback", "restore")),
)
def test_rollback_error_reports_whether_rows_changed(
    version: int, kind: str, how: str, verb: str, tmp_path: Path
) -> None:
    start = tmp_path / "t"
    made(start, version, kind).upsert(people(range(1, 6), 3))
    commits = [one.requested for one in timeline_of(start).commits]
    target = commits[-1] if verb == "rollback" else commits[0]
    act = restore.roll_back if verb == "rollback" else restore.restore
    seen: set[type] = set()
    for at in range(1, 200, 3):
        base = shutil.copytree(start, tmp_path / f"{at}")
        storage = FailingStorage(str(base), at, ERRORS[how], answer_lost=False)
        error = failure(lambda: act(Handle(storage), target))  # noqa: B023 - called at once
        if storage.changes < at:
            break
        left = [one.requested for one in timeline_of(base).commits]
        if isinstance(error, EXPECTED[how][1]):
            seen.add(EXPECTED[how][1])
            gone = set(getattr(error, "instants", ()))
            assert gone == {*commits} - {*left} != set(), f"at change {at}"
            table = pyhudi.open_table(base)
            if verb == "restore":
                table.restore(target)
            table.upsert(people(range(8, 10), 9))
            assert sound(table)
            assert rows_of(table)["k1"] == (2 if verb == "rollback" else 1)
        elif error is not None:
            seen.add(EXPECTED[how][0])
            assert left == commits, f"at change {at}"
        shutil.rmtree(base)
    assert seen == set(EXPECTED[how])


def failure(call: Callable[[], object]) -> BaseException | None:
    try:
        call()
    except (HudiError, KeyboardInterrupt) as error:
        return error
    return None
