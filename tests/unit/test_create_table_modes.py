"""Modes of `create_table` for an existing table, and directories left by a failure."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.create import create_and_fill
from pyhudi.clock import SystemClock
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import CommitConflict, ConfigError, CorruptTable, LockTimeout, SchemaMismatch
from pyhudi.storage.properties_file import FILE
from pyhudi.storage.storage import Storage
from pyhudi.txn.heartbeat import beating
from pyhudi.txn.locks.storage_lock import StorageLock

ROWS = pa.table({"id": ["a", "b"], "part": ["x", "y/z"], "v": [1, 2], "ts": [1, 1]})
NEW = pa.table({"id": ["n"], "part": ["w"], "v": [7], "ts": [1]})
PARTS: dict[str, Any] = {"key": "id", "partition_by": "part", "order_by": "ts"}
WITHOUT: dict[str, Any] = {"options": {"hoodie.metadata.enable": False}}


def everything(base: Path) -> dict[str, bytes | None]:
    """Files with their contents, and folders."""
    return {
        str(path.relative_to(base)): path.read_bytes() if path.is_file() else None
        for path in base.rglob("*")
    }


def without_locks(base: Path) -> dict[str, bytes | None]:
    """The same but for the table's lock, which is written anew by whoever takes it."""
    return {path: data for path, data in everything(base).items() if ".locks" not in path}


class Failing(LocalEngine):
    """Fails once it has written files."""

    def run(self, work: Any, tasks: Any, *, stage: int = 0, label: str = "") -> Any:
        done = super().run(work, tasks, stage=stage, label=label)
        if label.startswith("write files"):
            raise OSError("disk")
        return done


def test_ignore_gives_the_table_that_is_there(tmp_path: Path) -> None:
    made = pyhudi.create_table(tmp_path, ROWS, mode="ignore", **PARTS)
    before = everything(tmp_path)
    table = pyhudi.create_table(tmp_path, NEW, mode="ignore", **PARTS)
    assert everything(tmp_path) == before
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ["a", "b"]
    assert table.name == made.name


@pytest.mark.parametrize(
    ("how", "name"),
    [
        ({"key": "v"}, "hoodie.table.recordkey.fields"),
        ({"key": ["id", "v"]}, "hoodie.table.recordkey.fields"),
        ({"key": None}, "hoodie.table.recordkey.fields"),
        ({"partition_by": None}, "hoodie.table.partition.fields"),
        ({"partition_by": "id"}, "hoodie.table.partition.fields"),
        ({"partition_by": "part:simple"}, ""),
        ({"type": "mor"}, "hoodie.table.type"),
    ],
)
def test_ignore_refuses_another_table(tmp_path: Path, how: dict[str, Any], name: str) -> None:
    pyhudi.create_table(tmp_path, ROWS.schema, **PARTS, **WITHOUT)
    if not name:
        assert pyhudi.create_table(tmp_path, ROWS, mode="ignore", **{**PARTS, **how}).type == "cow"
        return
    with pytest.raises(ConfigError, match=name):
        pyhudi.create_table(tmp_path, ROWS, mode="ignore", **{**PARTS, **how})


@pytest.mark.parametrize("version", [6, 8, 9])
def test_ignore_knows_typed_partition_fields(tmp_path: Path, version: int) -> None:
    def make(kind: str) -> pyhudi.HudiTable:
        return pyhudi.create_table(
            tmp_path,
            ROWS.schema,
            key="id",
            partition_by=[f"ts:{kind}", "part:simple"],
            version=version,
            mode="ignore",
            options={
                "hoodie.metadata.enable": False,
                "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
                "hoodie.keygen.timebased.output.dateformat": "yyyy",
            }
            if kind == "timestamp"
            else {"hoodie.metadata.enable": False},
        )

    make("timestamp")
    assert make("timestamp").version == version
    if version > 6:
        with pytest.raises(ConfigError, match=r"partition\.fields"):
            make("simple")


@pytest.mark.parametrize("version", [6, 9])
def test_overwrite_replaces_the_table(tmp_path: Path, version: int) -> None:
    pyhudi.create_table(tmp_path, ROWS, type="mor", version=version, **PARTS)
    schema = pa.schema([("k", pa.int64()), ("w", pa.string())])
    table = pyhudi.create_table(
        tmp_path, pa.table({"k": [1], "w": ["q"]}, schema), key="k", mode="overwrite"
    )
    assert table.scan().to_arrow().to_pylist() == [{"k": 1, "w": "q"}]
    assert (table.type, table.version, table.inspect.timeline().num_rows) == ("cow", 9, 1)
    assert not (tmp_path / "x").exists()
    assert not table.check(deep=True)
    table.upsert(pa.table({"k": [1], "w": ["r"]}, schema))
    assert pyhudi.open_table(tmp_path).scan().to_arrow().to_pylist() == [{"k": 1, "w": "r"}]


def test_overwrite_where_there_is_nothing_makes_a_table(tmp_path: Path) -> None:
    table = pyhudi.create_table(tmp_path / "new", ROWS, mode="overwrite", **PARTS)
    assert table.scan().count() == 2


@pytest.mark.parametrize(
    "name", ["notes.txt", "x/sales_eu_2024.parquet", "z/a-0_0-1-0_20240101000000000.parquet"]
)
@pytest.mark.parametrize("is_table", [True, False])
def test_overwrite_removes_nothing_but_a_table(tmp_path: Path, name: str, is_table: bool) -> None:
    if is_table:
        pyhudi.create_table(tmp_path, ROWS, **PARTS, **WITHOUT)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    before = without_locks(tmp_path)
    with pytest.raises(ConfigError, match=Path(name).name):
        pyhudi.create_table(tmp_path, NEW, mode="overwrite", **PARTS)
    assert without_locks(tmp_path) == before


def test_overwrite_waits_for_no_living_writer(tmp_path: Path) -> None:
    table = pyhudi.create_table(tmp_path, ROWS, **PARTS, **WITHOUT)
    refused = pytest.raises(CommitConflict, match="20260101000000000")
    with beating(table.storage, "20260101000000000", SystemClock()), refused:
        pyhudi.create_table(tmp_path, NEW, mode="overwrite", **PARTS)
    assert pyhudi.open_table(tmp_path).scan().count() == 2
    assert pyhudi.create_table(tmp_path, NEW, mode="overwrite", **PARTS).scan().count() == 1


def test_overwrite_takes_the_lock(tmp_path: Path) -> None:
    pyhudi.create_table(tmp_path, ROWS, **PARTS, **WITHOUT)
    lock = StorageLock(Storage(str(tmp_path)), SystemClock(), validity_ms=60_000, renew_ms=6_000)
    assert lock.acquire(1000)
    options = {"hoodie.write.lock.wait_time_ms": 50, "hoodie.write.lock.client.num_retries": 0}
    try:
        with pytest.raises(LockTimeout):
            pyhudi.create_table(tmp_path, NEW, mode="overwrite", options=options, **PARTS)
    finally:
        lock.release()
    assert pyhudi.open_table(tmp_path).scan().count() == 2


@pytest.mark.parametrize("folder", ["", "{}/.hoodie", "{}/locks", "{}-locks"])
def test_overwrite_keeps_its_file_lock(tmp_path: Path, folder: str) -> None:
    base = tmp_path / "t"
    options = {
        "hoodie.write.lock.provider": "FileSystemBasedLockProvider",
        "hoodie.write.lock.filesystem.path": folder.format(base),
    }
    pyhudi.create_table(base, ROWS, options=options, **PARTS)
    table = pyhudi.create_table(base, NEW, mode="overwrite", options=options, **PARTS)
    assert table.scan().count() == 1


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"key": "nothing"}, ConfigError),
        ({"data": ROWS.set_column(0, "id", pa.array([None, "b"]))}, SchemaMismatch),
        ({"options": {"hoodie.index.type": "NONE"}}, ConfigError),
        ({"mode": "append"}, ConfigError),
    ],
    ids=["column", "null key", "index", "mode"],
)
def test_overwrite_with_bad_arguments_changes_nothing(
    tmp_path: Path, how: dict[str, Any], error: type[Exception]
) -> None:
    pyhudi.create_table(tmp_path, ROWS, **PARTS, **WITHOUT)
    before = everything(tmp_path)
    given = {"mode": "overwrite", **PARTS, **how}
    with pytest.raises(error):
        pyhudi.create_table(tmp_path, given.pop("data", NEW), **given)
    assert everything(tmp_path) == before


def test_overwrite_requires_supported_write(
    tmp_path: Path,
) -> None:
    pyhudi.create_table(tmp_path, ROWS, **PARTS, **WITHOUT)
    before = everything(tmp_path)

    def fill(sort: tuple[str, ...]) -> pyhudi.HudiTable:
        return create_and_fill(
            tmp_path,
            NEW,
            lambda table, rows: table.bulk_insert(rows, sort="global", sort_columns=sort),
            type="cow",
            version=9,
            index=None,
            mode="overwrite",
            options=None,
            storage_options=None,
            **PARTS,
        )

    with pytest.raises(ConfigError, match="sort_columns"):
        fill(("nothing",))
    assert everything(tmp_path) == before
    assert fill(("v",)).history().column("operation").to_pylist() == ["BULK_INSERT"]


def test_create_overwrites_table_left_by_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyhudi.create_table(tmp_path, ROWS, **PARTS)
    left = [3]
    real = Storage.delete_dir

    def dying(self: Storage, path: str) -> None:
        left[0] -= self.uri == str(tmp_path)
        if not left[0]:
            raise KeyboardInterrupt
        real(self, path)

    monkeypatch.setattr(Storage, "delete_dir", dying)
    with pytest.raises(KeyboardInterrupt):
        pyhudi.create_table(tmp_path, NEW, mode="overwrite", **PARTS)
    monkeypatch.undo()
    assert (tmp_path / FILE).exists()
    assert not (tmp_path / "x").exists()
    table = pyhudi.create_table(tmp_path, NEW, mode="overwrite", **PARTS)
    assert table.scan().to_arrow()["id"].to_pylist() == ["n"]


def test_create_overwrites_table_without_properties_after_crash(
    tmp_path: Path,
) -> None:
    pyhudi.create_table(tmp_path, ROWS, **PARTS)
    shutil.rmtree(tmp_path / ".hoodie" / "timeline")
    with pytest.raises(CorruptTable, match=r"\.hoodie/timeline is missing"):
        pyhudi.open_table(tmp_path)
    table = pyhudi.create_table(tmp_path, NEW, mode="overwrite", **PARTS)
    assert table.scan().to_arrow()["id"].to_pylist() == ["n"]


def test_folders_that_were_made_go_and_others_stay(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="disk"):
        pyhudi.create_table(tmp_path / "new" / "deep", ROWS, engine=Failing(1), **PARTS)
    assert everything(tmp_path) == {}
    for folder in ("x", "y", "empty", ".hoodie"):
        (tmp_path / folder).mkdir()
    before = everything(tmp_path)
    with pytest.raises(OSError, match="disk"):
        pyhudi.create_table(tmp_path, ROWS, engine=Failing(1), **PARTS)
    assert everything(tmp_path) == before


def test_create_leaves_nothing_if_properties_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> bool:
        raise OSError("disk")

    monkeypatch.setattr(Storage, "put_if_absent", full)
    with pytest.raises(OSError, match="disk"):
        pyhudi.create_table(tmp_path / "new", ROWS, **PARTS)
    assert everything(tmp_path) == {}


def test_concurrent_overwrites_leave_one_whole_table(tmp_path: Path) -> None:
    pyhudi.create_table(tmp_path, ROWS, **PARTS, **WITHOUT)
    start, failed = threading.Barrier(2), []

    def overwrite(rows: pa.Table) -> None:
        start.wait()
        try:
            pyhudi.create_table(tmp_path, rows, mode="overwrite", **PARTS, **WITHOUT)
        except pyhudi.HudiError as error:
            failed.append(error)

    threads = [threading.Thread(target=overwrite, args=(rows,)) for rows in (NEW, ROWS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = sorted(pyhudi.open_table(tmp_path).scan().to_arrow()["id"].to_pylist())
    assert ids in (["n"], ["a", "b"]), failed
    assert not pyhudi.open_table(tmp_path).check(deep=True)
