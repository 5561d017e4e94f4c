"""Savepoints: their files, errors, and leftovers of failed writers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.clock import SystemClock
from pyhudi.config.actions import SAVEPOINT
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict, ConfigError, HistoryUnavailable, LockTimeout
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.storage.storage import Storage
from pyhudi.testing import comparable_rows
from pyhudi.timeline import Timeline, instant_files, serde
from pyhudi.txn import savepoint
from pyhudi.write.table_opening import open_for_change
from tests.helpers.pairwise import pairwise
from tests.helpers.tables import unpack
from tests.sim.crash import CrashingStorage, Handle, Killed

CASES = pairwise((6, 8, 9), ("cow", "mor"))


def people(ids: range, v: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{n}" for n in ids],
            "city": [("rome", "oslo")[n % 2] for n in ids],
            "v": [v] * len(ids),
        }
    )


def made(base: Path, version: int = 9, kind: str = "mor") -> HudiTable:
    table = pyhudi.create_table(
        base, people(range(4), 1), key="id", partition_by="city", order_by="v",
        type="mor" if kind == "mor" else "cow", version=version,
    )  # fmt: skip
    table.upsert(people(range(2), 2))
    return table


def timeline_of(base: Path) -> Timeline:
    storage = Storage(str(base))
    return Timeline.load(storage, TableConfig.load(storage))


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_savepoint_lists_files_of_commit(version: int, kind: str, tmp_path: Path) -> None:
    table = made(tmp_path / "t", version, kind)
    first, last = table.inspect.commits()["requested"].to_pylist()
    assert table.savepoint("before the change") == last
    assert table.savepoint(instant=first) == first
    table.upsert(people(range(4), 3))

    saved = table.savepoints().to_pylist()
    assert [(one["instant"], one["comment"]) for one in saved] == [
        (first, ""),
        (last, "before the change"),
    ]
    assert {one["saved_by"] for one in saved} == {"pyhudi"}
    assert {one["partitions"] for one in saved} == {2}
    timeline = timeline_of(tmp_path / "t")
    for one in savepoint.savepoints(timeline):
        then = pyhudi.open_table(table.uri, as_of=one.instant)
        view = FileSystemView(then.storage, then.config, then.state.timeline)
        read = {file.name for of in view.slices() for file in (of.base, *of.logs) if file}
        names = {name for of in one.files.values() for name in of}
        # Up to version 6 later log files belong to the same slices.
        assert names <= read if version == 6 else names == read
        assert all(
            (tmp_path / "t" / path / name).exists() for path, of in one.files.items() for name in of
        )
    assert timeline.commits[0].requested == first


def test_savepoints_of_hudi_are_listed(tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack("v9_mor_restore", tmp_path))
    (saved,) = table.savepoints().to_pylist()
    assert (saved["comment"], saved["saved_by"], saved["files"]) == ("keep", "golden", 5)
    assert saved["saved_at"].year == 2026
    # Ours of the same commit has the same files.
    (theirs,) = savepoint.savepoints(table.state.timeline)
    table.delete_savepoint(saved["instant"])
    assert table.savepoints().num_rows == 0
    table.savepoint("keep", theirs.instant)
    (ours,) = savepoint.savepoints(table.state.timeline)
    assert {path: sorted(of) for path, of in ours.files.items()} == {
        path: sorted(of) for path, of in theirs.files.items()
    }


def test_savepoint_refuses_impossible_commits(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    with pytest.raises(HistoryUnavailable, match="no completed commit 20200101000000000"):
        table.savepoint(instant="20200101000000000")
    last = table.savepoint()
    with pytest.raises(ConfigError, match="has a savepoint already"):
        table.savepoint()
    table.delete_savepoint(last)
    with pytest.raises(ConfigError, match="there is no savepoint"):
        table.delete_savepoint(last)
    empty = pyhudi.create_table(
        tmp_path / "empty", people(range(1), 1).schema, key="id", partition_by="city"
    )
    with pytest.raises(HistoryUnavailable, match="no completed commit"):
        empty.savepoint()


@pytest.mark.parametrize("name", ["v9_cow_clean_commits", "v6_cow_clean_versions"])
def test_savepoint_raises_for_cleaned_commits(name: str, tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack(name, tmp_path))
    first = table.inspect.commits()["requested"][0].as_py()
    with pytest.raises(HistoryUnavailable, match="may have been cleaned"):
        table.savepoint(instant=first)
    table.savepoint()


def test_savepoint_refuses_files_of_pending_clean(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    (path, name), *_ = (
        (one["partition"], one["base_file"]) for one in table.inspect.slices().to_pylist()
    )
    storage, config = table.storage, table.config
    plan: dict[str, Any] = {
        "earliestInstantToRetain": None,
        "lastCompletedCommitTimestamp": "",
        "policy": "KEEP_LATEST_FILE_VERSIONS",
        "filesToBeDeletedPerPartition": {},
        "filePathsToBeDeletedPerPartition": {
            path: [{"filePath": f"/x/{path}/{name}", "isBootstrapBaseFile": False}]
        },
        "partitionsToBeDeleted": [],
        "version": 2,
    }
    at = "20990101000000000"
    data = serde.encode_container("HoodieCleanerPlan", plan, SystemClock())
    instant_files.request(config.layout, storage, at, "clean", data)
    with pytest.raises(CommitConflict, match=f"{at}.clean"):
        table.savepoint()
    assert table.refresh().savepoints().num_rows == 0


@pytest.mark.parametrize("version", [6, 9])
def test_savepoint_crash_leaves_nothing(version: int, tmp_path: Path) -> None:
    table = made(tmp_path / "t", version)
    for dies_at in range(1, 20):
        storage = CrashingStorage(table.uri, dies_at)
        try:
            savepoint.create(open_for_change(Handle(storage), SystemClock()), "c")
        except Killed:
            for beat in (tmp_path / "t" / ".hoodie" / ".heartbeat").glob("*"):
                beat.unlink()
        finished = storage.changes < dies_at
        timeline = timeline_of(tmp_path / "t")
        if timeline.filter_completed(SAVEPOINT):
            savepoint.delete(
                open_for_change(Handle(Storage(table.uri)), SystemClock()),
                timeline.filter_completed(SAVEPOINT)[0].requested,
            )
        table.refresh().upsert(people(range(1), dies_at + 2))
        assert not timeline_of(tmp_path / "t").pending(SAVEPOINT), dies_at
        table.savepoint()
        assert table.savepoints().num_rows == 1
        table.delete_savepoint(table.savepoints()["instant"][0].as_py())
        if finished:
            break
    else:
        pytest.fail("the savepoint never came to its end")


def test_savepoint_waits_for_lock(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    impatient = {
        "hoodie.write.lock.wait_time_ms": 20,
        "hoodie.write.lock.client.num_retries": 0,
    }
    other = pyhudi.open_table(table.uri, options=impatient)
    with open_for_change(Handle(table.storage), SystemClock()).lock_manager.critical_section():
        with pytest.raises(LockTimeout):
            other.savepoint()
        with pytest.raises(LockTimeout):
            other.upsert(people(range(1), 5))
    assert other.savepoint()


def test_damaged_savepoint_raises(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.savepoint()
    (file,) = (tmp_path / "t" / ".hoodie" / "timeline").glob("*.savepoint")
    file.write_text(json.dumps({"partitionMetadata": {"../x": {"savepointDataFile": []}}}))
    with pytest.raises(pyhudi.CorruptTable, match="savepoint"):
        table.refresh().savepoints()


def cleaned_past(table: HudiTable) -> tuple[str, Any, list[str]]:
    """A saved commit, its rows, and the commits beside it: a clean has passed them all."""
    before = table.upsert(people(range(1, 3), 3)).instant
    saved = table.upsert(people(range(3), 4)).instant
    rows = comparable_rows(table)
    table.savepoint(instant=saved)
    after = table.upsert(people(range(2), 5)).instant
    for v in (6, 7):
        if table.config.is_merge_on_read:
            table.compact()
        table.upsert(people(range(4), v))
    assert table.clean(retain=1).files_removed
    return saved, rows, [before, after]


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_savepoint_is_readable_after_cleans(version: int, kind: str, tmp_path: Path) -> None:
    table = made(tmp_path / "t", version, kind)
    saved, rows, others = cleaned_past(table)
    assert comparable_rows(table.scan(as_of=saved)) == rows
    assert comparable_rows(pyhudi.open_table(table.uri, as_of=saved)) == rows
    last = table.inspect.commits()["requested"].to_pylist()[-1]
    assert {row["before"]["v"] for row in table.diff(saved, last).to_arrow().to_pylist()} == {1, 4}
    for other in others:
        with pytest.raises(HistoryUnavailable, match="have been cleaned"):
            table.scan(as_of=other)
    table.delete_savepoint(saved)
    with pytest.raises(HistoryUnavailable, match="have been cleaned"):
        table.scan(as_of=saved)


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_savepoint_with_deleted_files_raises(version: int, kind: str, tmp_path: Path) -> None:
    table = made(tmp_path / "t", version, kind)
    folder = tmp_path / "t" / table.config.layout.folder
    # As a cleaner leaves it that does not see the savepoint.
    (tmp_path / "aside").mkdir()
    clean = table.clean

    def unseen(**given: Any) -> Any:
        marks = list(folder.glob("*savepoint*"))
        for mark in marks:
            mark.rename(tmp_path / "aside" / mark.name)
        done = clean(**given)
        for mark in marks:
            (tmp_path / "aside" / mark.name).rename(mark)
        return done

    table.clean = unseen  # type: ignore[method-assign]
    saved, _, _ = cleaned_past(table)
    again = pyhudi.open_table(table.uri)
    assert again.savepoints().num_rows == 1
    with pytest.raises(HistoryUnavailable, match="that this snapshot needs"):
        again.scan(as_of=saved).to_arrow()
