"""Crashes at every change of a clean: the next clean completes it."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyhudi
from pyhudi.admin import run_service
from pyhudi.config.retention_options import CleanOptions
from pyhudi.storage.storage import Storage
from tests.sim.crash import Handle, rows_read
from tests.sim.states import recorded
from tests.sim.test_restore_crash import check_sound
from tests.unit.test_cleaning import data_files, written
from tests.unit.test_savepoints import people, timeline_of

CASES = [(6, "cow"), (6, "mor"), (8, "mor"), (9, "cow")]
KEEPING = CleanOptions(commits=1)

pytestmark = pytest.mark.slow


def clean(storage: Storage) -> None:
    run_service.clean(Handle(storage), KEEPING)


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_clean_crash_is_completed_by_next_clean(version: int, kind: str, tmp_path: Path) -> None:
    table = written(tmp_path / "t", version, kind)
    table.delete_partitions(["oslo"])
    for v in (7, 8):
        table.upsert(people(range(0, 4, 2), v))
    expected = rows_read(tmp_path / "t", "false")
    whole = recorded(tmp_path / "t", tmp_path, clean)
    left = data_files(whole.base)
    assert not (whole.base / "oslo").exists()
    for n, base in whole.deaths():
        assert rows_read(base, "true") == rows_read(base, "false") == expected, f"after change {n}"
        wrong = {one.kind for one in pyhudi.open_table(str(base)).check().errors}
        # Half a log block of the metadata table, which up to version 6 any reader has to pass.
        assert wrong <= ({"metadata_unreadable"} if version == 6 else set()), f"after change {n}"
        clean(Storage(str(base)))
        assert data_files(base) == left, f"after change {n}"
        assert timeline_of(base).pending() == (), f"after change {n}"
        assert rows_read(base, "true") == rows_read(base, "false") == expected, f"after change {n}"
        check_sound(base, n)


@pytest.mark.parametrize(("version", "kind"), [(6, "mor"), (9, "cow")])
def test_writers_continue_next_to_crashed_clean(version: int, kind: str, tmp_path: Path) -> None:
    written(tmp_path / "t", version, kind)
    whole = recorded(tmp_path / "t", tmp_path, clean)
    for n, base in whole.deaths(one_in=2):
        table = pyhudi.open_table(str(base))
        table.upsert(people(range(4), 9))
        assert {row["v"] for row in rows_read(base, "true")} == {9}, f"after change {n}"
        clean(Storage(str(base)))
        assert rows_read(base, "true") == rows_read(base, "false"), f"after change {n}"
        check_sound(base, n)
