"""Crashes at every change of an archiver: no instant is lost, and the next archiver continues."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyhudi
from pyhudi.admin import run_service
from pyhudi.config.retention_options import ArchiveOptions
from pyhudi.storage.storage import Storage
from tests.sim.crash import Handle, rows_read
from tests.sim.states import recorded
from tests.sim.test_restore_crash import check_sound
from tests.unit.test_archiving_operation import OPTIONS, known, written
from tests.unit.test_savepoints import people, timeline_of

pytestmark = pytest.mark.slow


def archive(storage: Storage) -> None:
    run_service.archive(Handle(storage, OPTIONS), ArchiveOptions(min_commits=2, max_commits=3))


@pytest.mark.parametrize(("version", "kind"), [(6, "cow"), (8, "mor"), (9, "cow")])
@pytest.mark.parametrize("writes_first", [True, False])
def test_archive_crash_is_completed_by_next_archive(
    version: int, kind: str, writes_first: bool, tmp_path: Path
) -> None:
    table = written(tmp_path / "t", version, kind, commits=5)
    # There is an archive already.
    assert table.archive(min_commits=2, max_commits=3).instants
    table.overwrite(people(range(4), 20))
    for v in range(21, 26):
        table.upsert(people(range(2), v))
    table.clean()
    before, expected = known(tmp_path / "t"), rows_read(tmp_path / "t", "false")
    whole = recorded(tmp_path / "t", tmp_path, archive)
    assert known(whole.base) == before
    assert len(timeline_of(whole.base).commits) <= 3
    for n, base in whole.deaths(one_in=2):
        assert rows_read(base, "true") == rows_read(base, "false") == expected, f"after change {n}"
        assert known(base) == before, f"after change {n}"
        if writes_first:
            pyhudi.open_table(str(base)).upsert(people(range(4), 9_000))
        archive(Storage(str(base)))
        assert known(base) >= before, f"after change {n}"
        timeline = timeline_of(base)
        assert timeline.pending() == (), f"after change {n}"
        assert len(timeline.commits) <= 3, f"after change {n}"
        times = [(one.requested, one.action) for one in timeline.archive.instants()]
        assert len(times) == len(set(times)), f"after change {n}"
        check_sound(base, n)
