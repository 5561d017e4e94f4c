"""A paused writer of the LSM timeline history that lost the lock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pyhudi.config.retention_options import HistoryOptions
from pyhudi.errors import CommitConflict, retryable_conflict
from pyhudi.storage.storage import Storage
from pyhudi.timeline.archive_lsm import LsmHistory
from pyhudi.timeline.archive_lsm_write import ArchivedInstant, add_to_history, merge_and_clean
from pyhudi.timeline.lsm_manifest import current_manifest, write_manifest

FOLDER = "history"


def one(number: int) -> ArchivedInstant:
    time = str(20260101000000000 + number)
    return ArchivedInstant(time, time, "commit", b"metadata")


def numbers(storage: Storage) -> list[int]:
    found = LsmHistory(storage, FOLDER).instants(None)
    return sorted(int(instant.requested[-3:]) for instant in found)


def stood_still(others: Callable[[], None], at: int) -> Callable[[], None]:
    """A look at the lock: the one after look `at` finds it lost, others went on in between."""
    looks = 0

    def check() -> None:
        nonlocal looks
        looks += 1
        if looks == at:
            others()
        elif looks > at:
            raise retryable_conflict("the lock was taken")

    return check


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    made = Storage(str(tmp_path))
    add_to_history(made, FOLDER, [one(0)])
    return made


@pytest.mark.parametrize("at", [1, 2])
def test_history_keeps_instants_archived_by_other_writer(storage: Storage, at: int) -> None:
    """at: 1 before the manifest, 2 before the file that says which one counts."""

    def others() -> None:
        add_to_history(storage, FOLDER, [one(1), one(2)])
        merge_and_clean(storage, FOLDER, HistoryOptions())

    with pytest.raises(CommitConflict):
        add_to_history(storage, FOLDER, [one(1)], stood_still(others, at))
    assert numbers(storage) == [0, 1, 2]
    add_to_history(storage, FOLDER, [one(3)])
    assert numbers(storage) == [0, 1, 2, 3]


def test_history_ignores_manifest_of_failed_writer(storage: Storage) -> None:
    before = current_manifest(storage, FOLDER)
    storage.put(f"{FOLDER}/manifest_{before.number + 1}", b'{"files": []}')
    write_manifest(storage, FOLDER, before, before.files, lambda: None)
    assert current_manifest(storage, FOLDER).number == before.number + 2
    assert numbers(storage) == [0]


def test_history_removes_nothing_without_lock(storage: Storage) -> None:
    for number in range(1, 30):
        add_to_history(storage, FOLDER, [one(number)])
    before = {entry.path for entry in storage.list()}
    with pytest.raises(CommitConflict):
        merge_and_clean(storage, FOLDER, HistoryOptions(), stood_still(lambda: None, 0))
    assert {entry.path for entry in storage.list()} >= before
    assert numbers(storage) == list(range(30))
