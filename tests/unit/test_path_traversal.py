"""Tables with links or names that lead outside: nothing outside is changed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.clock import SystemClock
from pyhudi.config.actions import Instant, State
from pyhudi.errors import (
    CorruptTable,
    MetadataTableWarning,
    SchemaMismatch,
    UnsupportedTableFeature,
)
from pyhudi.storage.storage import Storage
from pyhudi.timeline import instant_files, serde
from pyhudi.txn import rollback
from pyhudi.txn.rollback_plan import RollbackRequest
from tests.helpers.table_builder import TableBuilder

TIME = "20240101000000200"
DATA_FILE = f"g-0_0-1-0_{TIME}.parquet"


TABLE = TableBuilder(
    {"id": (pa.string(), str), "part": (pa.string(), lambda key: key[0]), "v": (pa.int64(), 1)},
    partition_by="part",
    first=["a1", "b1"],
)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the table, with a file that a rollback of `TIME` would delete."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / DATA_FILE).write_bytes(b"not the table's")
    (folder / ".hoodie_partition_metadata").write_bytes(b"")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """All files but the lock, which says who had it last."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    files = (path for path in files if ".locks" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def fail_a_write(table: HudiTable, action: str = "commit") -> None:
    """What a writer leaves that died once it had begun."""
    instant_files.request(table.config.layout, table.storage, TIME, action)
    instant_files.start(table.config.layout, table.storage, TIME, action)


def mark(base: Path, line: str) -> None:
    folder = base / ".hoodie" / ".temp" / TIME
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
    (folder / "MARKERS0").write_text(f"{line}\n")


@pytest.mark.parametrize("marked", [True, False], ids=["markers", "listing"])
@pytest.mark.parametrize("version", [6, 9])
def test_rollback_deletes_nothing_behind_linked_partition(
    tmp_path: Path, outside: Path, version: int, marked: bool
) -> None:
    base = tmp_path / "t"
    table = TABLE.make(base, version=version)
    (base / "linked").symlink_to(outside)
    fail_a_write(table)
    if marked:
        mark(base, f"linked/{DATA_FILE}.marker.CREATE")
    before = contents(outside)
    for _ in range(2):
        with pytest.raises(UnsupportedTableFeature, match=r"symbolic link .*/t/linked"):
            table.upsert(TABLE.rows(["a2"]))
        assert contents(outside) == before
    (base / "linked").unlink()
    pyhudi.open_table(base).upsert(TABLE.rows(["a2"]))
    assert contents(outside) == before


@pytest.mark.parametrize("committed", [True, False])
def test_markers_are_not_removed_behind_a_link(
    tmp_path: Path, outside: Path, committed: bool
) -> None:
    base = tmp_path / "t"
    table = TABLE.make(base)
    time = table.inspect.timeline()["requested"][0].as_py() if committed else TIME
    if not committed:
        fail_a_write(table)
    temp = base / ".hoodie" / ".temp"
    if temp.exists():
        temp.rmdir()
    precious = outside / time / "precious"
    precious.parent.mkdir()
    precious.write_bytes(b"x")
    temp.symlink_to(outside)
    before = contents(outside)
    with pytest.raises(UnsupportedTableFeature, match=r"symbolic link .*/t/\.hoodie/\.temp"):
        table.upsert(TABLE.rows(["a2"]))
    assert contents(outside) == before


def test_metadata_table_behind_link_is_not_changed(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = TABLE.make(base)
    moved = tmp_path / "moved"
    metadata = base / ".hoodie" / "metadata"
    metadata.rename(moved)
    metadata.symlink_to(moved)
    before = contents(moved)
    assert sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == ["a1", "b1"]
    with pytest.raises(UnsupportedTableFeature, match=r"symbolic link .*/\.hoodie/metadata"):
        table.upsert(TABLE.rows(["a2"]))
    assert contents(moved) == before


def test_write_behind_link_is_rolled_back(tmp_path: Path) -> None:
    """The table goes on: what was refused was never made."""
    base = tmp_path / "t"
    table = TABLE.make(base)
    moved = tmp_path / "moved"
    (base / "b").rename(moved)
    (base / "b").symlink_to(moved)
    before = contents(moved)
    with pytest.raises(UnsupportedTableFeature, match=r"symbolic link .*/t/b"):
        table.upsert(TABLE.rows(["a1", "b1", "b2"]))
    assert contents(moved) == before
    table.upsert(TABLE.rows(["a2"]))
    found = table.scan(columns=["id"]).to_arrow()["id"].to_pylist()
    assert sorted(found) == ["a1", "a2", "b1"]


def test_table_location_may_be_link(tmp_path: Path) -> None:
    TABLE.make(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    table = pyhudi.open_table(tmp_path / "link")
    table.upsert(TABLE.rows(["a2"]))
    assert table.scan(columns=["id"]).to_arrow().num_rows == 3


CLIMBING = [
    f"../outside/{DATA_FILE}",
    f"a/../../outside/{DATA_FILE}",
    ".hoodie/hoodie.properties",
]


@pytest.mark.parametrize("path", CLIMBING)
def test_markers_name_data_files_of_the_table(tmp_path: Path, outside: Path, path: str) -> None:
    base = tmp_path / "t"
    table = TABLE.make(base)
    fail_a_write(table)
    mark(base, f"{path}.marker.CREATE")
    before, known = contents(outside), contents(base)
    with pytest.raises(CorruptTable, match="not a data file"):
        table.upsert(TABLE.rows(["a2"]))
    assert contents(outside) == before
    assert contents(base) == known


@pytest.mark.parametrize("path", CLIMBING)
def test_markers_of_a_finished_write_name_files_of_the_table(
    tmp_path: Path, outside: Path, path: str
) -> None:
    """Those of a write that is on no timeline any more: its files are deleted with them."""
    base = tmp_path / "t"
    table = TABLE.make(base)
    config = table.config
    instant_files.request(config.layout, table.storage, "20240101000000100", "commit")
    mark(base, f"{path}.marker.CREATE")
    before = contents(outside)
    try:
        table.upsert(TABLE.rows(["a2"]))
    except CorruptTable as error:
        assert DATA_FILE in str(error)  # noqa: PT017 - whether it comes to that is not the point
    assert contents(outside) == before
    assert (base / ".hoodie" / "hoodie.properties").exists()


@pytest.mark.parametrize("path", CLIMBING)
def test_rollback_plans_name_data_files_of_the_table(
    tmp_path: Path, outside: Path, path: str
) -> None:
    base = tmp_path / "t"
    table = TABLE.make(base)
    fail_a_write(table)
    partition, _, name = path.rpartition("/")
    target = Instant(TIME, "commit", State.INFLIGHT, None, "")
    record = rollback._plan_record("/t", target, [RollbackRequest("a", "g-0", TIME, files=(name,))])
    record["RollbackRequests"][0]["partitionPath"] = partition
    plan = serde.encode_container("HoodieRollbackPlan", record, SystemClock())
    instant_files.request(table.config.layout, table.storage, "20240101000000300", "rollback", plan)
    before = contents(outside)
    with pytest.raises(CorruptTable, match="path of a partition") as raised:
        table.upsert(TABLE.rows(["a2"]))
    assert "20240101000000300.rollback.requested" in str(raised.value.file)
    assert contents(outside) == before
    assert (base / ".hoodie" / "hoodie.properties").exists()


OF_TIME: dict[str, Any] = {"instantToRollback": {"commitTime": TIME, "action": "commit"}}
ODD_REQUESTS: list[Any] = [
    5,
    [None],
    [{}],
    [{"partitionPath": "/tmp", "filesToBeDeleted": ["f"]}],
    [{"partitionPath": "a", "filesToBeDeleted": [5]}],
    [{"partitionPath": "a", "filesToBeDeleted": ["x/.."]}],
    [{"partitionPath": "a", "logBlocksToBeDeleted": [5]}],
]
ODD_PLANS: list[tuple[str, dict[str, Any]]] = [
    ("rollback", {"instantToRollback": 5}),
    ("rollback", {"instantToRollback": {"action": "commit"}}),
    ("rollback", {"instantToRollback": {"commitTime": 5, "action": "commit"}}),
    *(("rollback", {**OF_TIME, "RollbackRequests": requests}) for requests in ODD_REQUESTS),
    ("compaction", {"operations": {"a": 1}}),
    ("compaction", {"operations": [{"partitionPath": "a"}]}),
    ("compaction", {"operations": [{"partitionPath": 5, "fileId": "f", "baseInstantTime": TIME}]}),
    ("clustering", {"clusteringPlan": {"inputGroups": [{"slices": [{"fileId": 5}]}]}}),
    ("clustering", {"clusteringPlan": ["a"]}),
]


@pytest.mark.parametrize(("action", "plan"), ODD_PLANS)
def test_plans_that_nobody_can_carry_out_are_named(
    tmp_path: Path, action: str, plan: dict[str, Any]
) -> None:
    base = tmp_path / "t"
    table = TABLE.make(base, kind="mor")
    if action == "rollback":
        fail_a_write(table, "deltacommit")
    name = f"20240101000000300.{action}.requested"
    path = base / ".hoodie" / "timeline" / name
    path.write_text(json.dumps(plan))
    known = contents(base)
    with pytest.raises(CorruptTable) as raised:
        pyhudi.open_table(base, options={"hoodie.index.type": "SIMPLE"}).upsert(TABLE.rows(["a2"]))
    assert raised.value.file == f".hoodie/timeline/{name}"
    assert name in str(raised.value)
    assert contents(base) == known


@pytest.mark.parametrize(
    "files",
    [
        {"../outside": [{"filePath": DATA_FILE}]},
        {"files": [{"filePath": "files/.."}]},
        {"files": [{"filePath": 5}]},
        {"files": [None]},
        {"files": 5},
    ],
)
def test_plans_of_cleans_name_files_of_the_metadata_table(
    tmp_path: Path, outside: Path, files: dict[str, Any]
) -> None:
    base = tmp_path / "t"
    TABLE.make(base)
    timeline = base / ".hoodie" / "metadata" / ".hoodie" / "timeline"
    name = "20240101000000300.clean.requested"
    (timeline / name).write_text(json.dumps({"filePathsToBeDeletedPerPartition": files}))
    before = contents(outside)
    with pytest.warns(MetadataTableWarning, match=name):
        pyhudi.open_table(base).upsert(TABLE.rows(["a2"]))
    assert contents(outside) == before


@pytest.mark.parametrize(
    ("action", "record"),
    [
        ("clean", {"partitionMetadata": {"a": {"successDeleteFiles": [5]}}}),
        ("clean", {"partitionMetadata": {"../a": {}}}),
        ("rollback", {"partitionMetadata": {"a": None}}),
        ("rollback", {"commitsRollback": TIME}),
        ("restore", {"hoodieRestoreMetadata": {TIME: {}}}),
    ],
)
def test_records_that_say_nothing_are_named(
    tmp_path: Path, action: str, record: dict[str, Any]
) -> None:
    base = tmp_path / "t"
    TABLE.make(base)
    name = f"20240101000000300_20240101000000301.{action}"
    (base / ".hoodie" / "timeline" / name).write_text(json.dumps(record))
    with pytest.raises(CorruptTable, match=name):
        pyhudi.open_table(base).check()


def test_inflight_file_without_profile_is_named(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = TABLE.make(base, version=6)
    fail_a_write(table)
    path = base / ".hoodie" / f"{TIME}.inflight"
    path.write_text('{"partitionToWriteStats": 5}')
    with pytest.raises(CorruptTable, match=path.name):
        table.upsert(TABLE.rows(["a2"]))


def test_markers_that_are_no_text_are_named(tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = TABLE.make(base)
    fail_a_write(table)
    mark(base, "")
    (base / ".hoodie" / ".temp" / TIME / "MARKERS0").write_bytes(b"a/\xff.marker.CREATE")
    with pytest.raises(CorruptTable, match=r"MARKERS0 is not text"):
        table.upsert(TABLE.rows(["a2"]))


@pytest.mark.parametrize("path", ["../outside/f", "a/../../f", "/etc/passwd", "a//b", "./a", ""])
def test_malformed_path_raises_corrupt_table(tmp_path: Path, path: str) -> None:
    storage = Storage(str(tmp_path))
    for call in (storage.read, storage.head, storage.delete, storage.delete_dir):
        with pytest.raises(CorruptTable) as caught:
            call(path)
        assert caught.value.file == path


@pytest.fixture
def piped(tmp_path: Path) -> Path:
    base = tmp_path / "t"
    TABLE.make(base)
    return base


PIPES = [
    ".hoodie/hoodie.properties",
    ".hoodie/timeline/20990101000000000_20990101000000001.commit",
    ".hoodie/.index_defs/index.json",
    "a/.hoodie_partition_metadata",
    f"a/{DATA_FILE}",
]


@pytest.mark.parametrize("path", PIPES)
def test_pipe_instead_of_file_raises_immediately(piped: Path, path: str) -> None:
    pipe = piped / path
    pipe.parent.mkdir(exist_ok=True)
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)

    def use() -> None:
        table = pyhudi.open_table(piped)
        table.scan().to_arrow()
        table.upsert(TABLE.rows(["a2"]))
        pyhudi.open_table(piped).check(deep=True)

    with pytest.raises(UnsupportedTableFeature, match="a pipe, socket or device"):
        use()


def test_pipe_instead_of_data_file_raises_immediately(piped: Path) -> None:
    (file,) = (piped / "a").glob("*.parquet")
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(UnsupportedTableFeature, match="a pipe, socket or device"):
        pyhudi.open_table(piped).scan().to_arrow()


def test_device_instead_of_file_raises_immediately(piped: Path) -> None:
    file = piped / ".hoodie" / "hoodie.properties"
    file.unlink()
    file.symlink_to("/dev/zero")
    with pytest.raises(UnsupportedTableFeature, match="a pipe, socket or device"):
        pyhudi.open_table(piped)


@pytest.mark.parametrize("value", ["..", ".", "a/../..", "/a", "a//b", ".hoodie", "a\0"])
def test_rows_whose_partition_leads_elsewhere_are_refused(tmp_path: Path, value: str) -> None:
    base = tmp_path / "t"
    table = TABLE.make(base)
    known = contents(base)
    with pytest.raises(SchemaMismatch, match="no folder for rows"):
        table.upsert(pa.table({"id": ["c"], "part": [value], "v": [1]}))
    assert contents(base) == known
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t"]
