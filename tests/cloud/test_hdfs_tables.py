"""Tables on HDFS: read as on a local disk, written by several writers, of which some die."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import StorageError, UnsupportedTableFeature
from pyhudi.timeline import Timeline
from pyhudi.txn.locks.base import TableLock
from pyhudi.txn.locks.file_lock import FileLock
from pyhudi.txn.locks.storage_lock import StorageLock
from tests.cloud.conftest import HdfsFolder
from tests.cloud.test_tables import SMALL
from tests.helpers.lock_context import held
from tests.helpers.snippets import snippets
from tests.sim.crash import people

FILE_LOCK = {"hoodie.write.lock.provider": "FileSystemBasedLockProvider"}


def rows_of(uri: str, **how: Any) -> dict[str, int]:
    rows = pyhudi.open_table(uri, **how).scan().to_arrow().to_pylist()
    found = {row["id"]: row["v"] for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize(("version", "kind"), [(6, "mor"), (9, "cow")])
def test_hdfs_table_life_cycle(
    hdfs: HdfsFolder, tmp_path: Path, version: Literal[6, 8, 9], kind: Literal["cow", "mor"]
) -> None:
    uri = hdfs.uri("lake/people")
    table = pyhudi.create_table(
        uri, people(range(8), 1, 10), key="id", partition_by="city", order_by="ts", type=kind,
        version=version, options=SMALL,
    )  # fmt: skip
    first = table.upsert(people([2, 3, 8], 2, 20)).instant
    table.delete_keys(pa.table({"id": ["k00"], "city": ["rome"]}))
    table.update("id = 'k01'", {"v": 9})
    table.overwrite_partitions(people([10], 4, 1))
    expected = {"k01": 9, "k03": 2, "k05": 1, "k07": 1, "k10": 4}
    assert rows_of(uri) == expected
    local = str(hdfs.download("lake/people", tmp_path))
    assert rows_of(local) == expected
    opened = pyhudi.open_table(uri)
    since, on_a_disk = (
        sorted(one.incremental(start=first).to_arrow()["id"].to_pylist())
        for one in (opened, pyhudi.open_table(local))
    )
    assert since == on_a_disk
    assert {"k01", "k10"} <= set(since) < set(expected)
    before = opened.inspect.commits()["requested"][0].as_py()
    assert len(opened.scan(as_of=before).to_arrow()) == 8
    storage = hdfs.storage("lake/people")
    config = TableConfig.load(storage)
    kept = storage.list_dir(".hoodie/metadata")[0]
    assert {f".hoodie/metadata/{name}" for name in ("files", "record_index")} <= set(kept)
    assert storage.list(".hoodie/.temp") == []
    assert not Timeline.load(storage, config).pending()
    assert [one.path for one in storage.list() if one.path.endswith(".tmp")] == []


def test_incremental_after_services_gives_later_changes(hdfs: HdfsFolder) -> None:
    uri = hdfs.uri()
    table = pyhudi.create_table(
        uri, people(range(6), 1, 10), key="id", partition_by="city", order_by="ts", type="mor",
        options=SMALL,
    )  # fmt: skip
    first = table.upsert(people([1, 2, 7], 2, 20)).instant
    assert table.compact().instants
    table.upsert(people([2], 3, 30))
    table.delete_keys(pa.table({"id": ["k00"], "city": ["rome"]}))
    assert table.cluster().instants
    table.clean()
    table.archive()
    since = pyhudi.open_table(uri).incremental(start=first).to_arrow()
    assert dict(zip(since["id"].to_pylist(), since["v"].to_pylist(), strict=True)) == {"k02": 3}
    assert rows_of(uri) == {"k01": 2, "k02": 3, "k03": 1, "k04": 1, "k05": 1, "k07": 2}
    assert list(table.check(deep=True).findings) == []


def test_hdfs_read_only_user_reads_table(hdfs: HdfsFolder) -> None:
    uri = hdfs.uri()
    of: dict[str, Any] = {name: {"storage_options": {"user": name}} for name in ("ada", "bob")}
    pyhudi.create_table(uri, people(range(4), 1, 10), key="id", options=SMALL, **of["ada"])
    assert len(rows_of(uri, **of["bob"])) == 4
    table = pyhudi.open_table(uri, **of["bob"])
    with pytest.raises(StorageError, match="Permission denied: user=bob"):
        table.upsert(people([1], 2, 20))
    with pytest.raises(StorageError, match="Permission denied: user=bob"):
        table.delete("id = 'k01'")
    assert rows_of(uri, **of["ada"]) == {f"k0{number}": 1 for number in range(4)}
    pyhudi.open_table(uri, **of["ada"]).upsert(people([1], 2, 20))


def test_open_raises_where_no_table_exists(hdfs: HdfsFolder) -> None:
    with pytest.raises(pyhudi.TableNotFound):
        pyhudi.open_table(hdfs.uri("nothing"))


@pytest.mark.parametrize("lock", [StorageLock, FileLock])
def test_lock_has_one_holder(hdfs: HdfsFolder, lock: type) -> None:
    counter = {"value": 0, "most": 0, "now": 0}

    def made() -> TableLock:
        path = [".hoodie/lock"] if lock is FileLock else []
        taken: TableLock = lock(hdfs.storage(), *path, clock=SystemClock())
        return taken

    def work(_: int) -> None:
        for _ in range(4):
            with held(made(), 60_000) as mine:
                counter["now"] += 1
                counter["most"] = max(counter["most"], counter["now"])
                mine.check()
                mine._renew()  # type: ignore[attr-defined]
                mine.check()
                assert not made().acquire(0)
                counter["value"] += 1
                counter["now"] -= 1

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    assert counter == {"value": 12, "most": 1, "now": 0}


def test_lock_respects_file_of_other_writer(hdfs: HdfsFolder) -> None:
    uri = hdfs.uri()
    pyhudi.create_table(uri, people(range(2), 1, 10), key="id", options=SMALL)
    storage = hdfs.storage()
    assert storage.put_if_absent(".hoodie/lock", b"")  # as Hudi leaves it
    with pytest.raises(UnsupportedTableFeature, match=r"\.hoodie/lock"):
        pyhudi.open_table(uri).upsert(people([1], 2, 20))
    quick = {"hoodie.write.lock.wait_time_ms": "100", "hoodie.write.lock.client.num_retries": "0"}
    with pytest.raises(pyhudi.LockTimeout, match=r"\.hoodie/lock"):
        pyhudi.open_table(uri, options={**FILE_LOCK, **quick}).upsert(people([1], 2, 20))
    storage.delete(".hoodie/lock")
    place = f"/{hdfs.name}/locks"  # of the same file system
    elsewhere = {**FILE_LOCK, "hoodie.write.lock.filesystem.path": place}
    assert hdfs.storage("locks").put_if_absent("lock", b"")
    with pytest.raises(pyhudi.LockTimeout):
        pyhudi.open_table(uri, options={**elsewhere, **quick}).upsert(people([1], 2, 20))
    elsewhere["hoodie.write.lock.filesystem.path"] = hdfs.uri("other")
    pyhudi.open_table(uri, options=elsewhere).upsert(people([1], 2, 20))
    assert rows_of(uri)["k01"] == 2


@pytest.mark.parametrize("options", [{}, FILE_LOCK], ids=["default", "file"])
def test_writers_of_one_table_lose_nothing(hdfs: HdfsFolder, options: dict[str, str]) -> None:
    uri = hdfs.uri()
    pyhudi.create_table(
        uri, people(range(2), 0, 0), key="id", partition_by="city", order_by="ts", options=options
    )

    def write(number: int) -> None:
        for turn in (1, 2, 3):
            table = pyhudi.open_table(uri, options=options)
            # A row of its own, and one for which they compete.
            table.upsert(people([0, 10 * number + turn], 10 * turn + number, turn))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, (1, 2)))
    rows = rows_of(uri)
    assert rows.pop("k00") in (31, 32)
    own = {f"k{number}{turn}": 10 * turn + number for number in (1, 2) for turn in (1, 2, 3)}
    assert rows == {"k01": 0, **own}
    table = pyhudi.open_table(uri, options=options)
    assert len(table.inspect.commits()) == 7
    assert list(table.check(deep=True).findings) == []


WRITE = """
import sys
import pyhudi
from pyhudi.txn.pending_instant import PendingInstant
from tests.sim.crash import people

def publish(*arguments):
    print("written", flush=True)
    sys.stdin.read()

PendingInstant.publish = publish
pyhudi.open_table(sys.argv[1]).upsert(people([0, 1, 9], 7, 99))
"""
"""Holds the lock, with all files written, and never publishes."""


def test_recovery_rolls_back_killed_writer(hdfs: HdfsFolder) -> None:
    uri = hdfs.uri()
    pyhudi.create_table(
        uri, people(range(4), 1, 10), key="id", partition_by="city", order_by="ts", type="mor",
        options=SMALL,
    )  # fmt: skip
    storage = hdfs.storage()
    before = {one.path for one in storage.list()}
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITE, uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"written\n"
    writer.kill()
    writer.communicate()
    config = TableConfig.load(storage)
    (dead,) = {one.requested for one in Timeline.load(storage, config).pending()}
    assert {one.path for one in storage.list()} > before
    assert rows_of(uri) == dict.fromkeys(("k00", "k01", "k02", "k03"), 1)
    pyhudi.open_table(uri).upsert(people([2], 2, 20))
    assert rows_of(uri) == {"k00": 1, "k01": 1, "k02": 2, "k03": 1}
    assert not Timeline.load(storage, config).pending()
    assert storage.list(".hoodie/.temp") == []
    left = [one.path for one in storage.list() if dead in one.path and "rollback" not in one.path]
    assert left == []
    assert list(pyhudi.open_table(uri).check(deep=True).findings) == []


def test_docs_hdfs_example_runs(hdfs: HdfsFolder) -> None:
    pyhudi.create_table(
        hdfs.uri("trips"), people([1], 1, 1), key="id", options=SMALL,
        storage_options={"user": "ada"},
    )  # fmt: skip
    (code,) = snippets(Path(__file__).parents[2] / "docs" / "how-to" / "hdfs.md", "hdfs")
    real = code.replace("hdfs://namenode:8020/lake/trips", hdfs.uri("trips"))
    assert real != code
    names: dict[str, Any] = {"pyhudi": pyhudi}
    exec(compile(real, "example", "exec"), names)
    assert names["table"].scan().count() == 1
