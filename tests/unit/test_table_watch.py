"""Observations of tables whose writers and services are active, failed or planned."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.api.table_activity import TableActivity
from pyhudi.api.table_watch import TableWatch
from pyhudi.clock import SystemClock
from pyhudi.config.lock_options import LockOptions
from pyhudi.engine.local import LocalEngine
from pyhudi.storage.storage import Entries, Entry, Paths, Storage
from pyhudi.txn.locks.providers import table_lock
from tests.helpers.lock_context import held
from tests.helpers.table_builder import TableBuilder
from tests.helpers.tables import unpack
from tests.sim.interrupting_storage import JumpingClock, MeetingStorage

TABLE = TableBuilder(
    {
        "id": (pa.string(), str),
        "city": (pa.string(), lambda name: f"c{len(name) % 2}"),
        "v": (pa.int64(), 1),
    },
    partition_by="city",
    order_by="v",
    kind="mor",
)
SPAWN = multiprocessing.get_context("spawn")
COMPACT_ALWAYS = {"hoodie.compact.inline.max.delta.commits": 1}
TIMELINE = ".hoodie/timeline"
LOCK = ".hoodie/.locks/table_lock.json"
CONSUMERS = ".hoodie/.pyhudi/consumers"


class ReadOnlyStorage(Storage):
    """Records the requests, method and path, and refuses changes."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.calls: list[tuple[str, str]] = []

    def read(self, path: str) -> bytes:
        self.calls.append(("read", path))
        return super().read(path)

    def head(self, path: str) -> Entry | None:
        self.calls.append(("head", path))
        return super().head(path)

    def list(self, prefix: str = "") -> Entries:
        self.calls.append(("list", prefix))
        return super().list(prefix)

    def list_dir(self, prefix: str = "") -> tuple[Paths, Entries]:
        self.calls.append(("list_dir", prefix))
        return super().list_dir(prefix)

    def _refuse(self, *arguments: Any, **_: Any) -> NoReturn:
        raise AssertionError(f"the storage was changed: {arguments}")

    put = put_if_absent = replace_version = set_modified = _refuse
    delete = delete_all = delete_dir = _refuse


def watch_of(
    base: Path | str, options: dict[str, str] | None = None, clock: SystemClock | None = None
) -> TableWatch:
    def open_storage() -> tuple[Storage, dict[str, str]]:
        return ReadOnlyStorage(str(base)), options or {}

    return TableWatch("trips", open_storage, clock or SystemClock(), commits=3)


def observe(base: Path | str) -> TableActivity:
    activity = watch_of(base).observe()
    assert activity.error is None
    return activity


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    table = TABLE.make(tmp_path / "t")
    table.insert(TABLE.rows(["a", "bb"]))
    table.upsert(TABLE.rows(["a", "ccc"], v=2))
    return table


# --- cost -----------------------------------------------------------------------------------------


def test_watch_lists_timeline_once_and_reads_new_files(table: HudiTable) -> None:
    storage = ReadOnlyStorage(table.uri)
    watch = TableWatch("trips", lambda: (storage, {}), SystemClock(), commits=3)
    assert watch.observe().error is None
    idle = [("list_dir", TIMELINE), ("read", LOCK), ("list", CONSUMERS)]
    for _ in range(3):
        storage.calls.clear()
        assert len(watch.observe().commits) == 2
        assert storage.calls == idle
    instant = table.upsert(TABLE.rows(["a"], v=3)).instant
    storage.calls.clear()
    assert watch.observe().commits[0].instant == instant
    (completed,) = (Path(table.uri) / TIMELINE).glob(f"{instant}_*.deltacommit")
    new = [("read", ".hoodie/hoodie.properties"), ("read", f"{TIMELINE}/{completed.name}")]
    assert sorted(storage.calls) == sorted([*idle, *new])


def test_watch_reads_pending_files_once(tmp_path: Path) -> None:
    storage = ReadOnlyStorage(str(unpack("v9_mor_inflight", tmp_path)))
    watch = TableWatch("trips", lambda: (storage, {}), SystemClock(), commits=3)
    first = watch.observe().pending
    assert first
    storage.calls.clear()
    again = watch.observe().pending
    assert [work.instant for work in again] == [work.instant for work in first]
    listed = [("list_dir", TIMELINE), ("list_dir", ".hoodie/.heartbeat")]
    assert storage.calls == [*listed, ("read", LOCK), ("list", CONSUMERS)]


# --- pending work ---------------------------------------------------------------------------------


def test_watch_during_each_change_of_a_write(table: HudiTable) -> None:
    """Between any two changes of a write it can be observed, and its one instant is active."""
    seen: list[TableActivity] = []
    watch = watch_of(table.uri)
    for at in range(1, 200, 3):
        before = len(seen)
        storage = MeetingStorage(table.uri, at, lambda: seen.append(watch.observe()))
        HudiTable(storage, LocalEngine(1), {}).upsert(TABLE.rows(["a", f"n{at}"], v=at + 3))
        if len(seen) == before:
            break
    assert len(seen) > 5
    assert {each.error for each in seen} == {None}
    statuses = {work.status for each in seen for work in each.pending if work.action != "clean"}
    assert statuses == {"active"}
    inflight = [work for each in seen for work in each.pending if work.rows is not None]
    assert {(work.operation, work.rows, work.process) for work in inflight} == {
        ("UPSERT", 2, os.getpid())
    }
    assert {work.partitions for work in inflight} == {1, 2}
    assert any(each.lock and each.lock.holder for each in seen)
    assert any(each.lock and each.lock.holder is None for each in seen)
    last = watch.observe()
    assert (last.pending, last.lock and last.lock.holder) == ((), None)


def _write_and_wait(uri: str, waiting: Connection) -> None:
    """Write, and stop before the commit is published."""
    put = Storage.put_if_absent

    def stop(storage: Storage, path: str, data: bytes) -> bool:
        if storage.uri == uri and path.startswith(TIMELINE) and path.endswith(".deltacommit"):
            waiting.send("publishing")
            waiting.recv()
        return put(storage, path, data)

    setattr(Storage, "put_if_absent", stop)  # noqa: B010 - mypy refuses the assignment
    pyhudi.open_table(uri).upsert(TABLE.rows(["a", "dd"], v=7))


@pytest.fixture
def writer(table: HudiTable) -> Iterator[tuple[Any, Connection]]:
    """A process that writes to the table and waits before it publishes."""
    own, others = SPAWN.Pipe()
    process = SPAWN.Process(target=_write_and_wait, args=(table.uri, others))
    process.start()
    assert own.poll(60)
    assert own.recv() == "publishing"
    yield process, own
    process.kill()
    process.join()


def test_watch_shows_writer_of_other_process(
    table: HudiTable, writer: tuple[Any, Connection]
) -> None:
    process, connection = writer
    watch = watch_of(table.uri)
    activity = watch.observe()
    (work,) = activity.pending
    assert (work.status, work.state, work.process) == ("active", "INFLIGHT", process.pid)
    assert (work.operation, work.rows) == ("UPSERT", 2)
    assert work.age_ms is not None
    assert work.heartbeat_age_ms is not None
    assert 0 <= work.heartbeat_age_ms <= work.age_ms + 1000
    assert activity.lock is not None
    assert f"(process {process.pid} of this machine)" in (activity.lock.holder or "")
    connection.send("go on")
    process.join()
    done = watch.observe()
    assert (done.pending, done.lock and done.lock.holder) == ((), None)
    assert (done.commits[0].instant, done.commits[0].operation) == (work.instant, "UPSERT")


def test_watch_shows_killed_writer_as_failed_and_rolls_nothing_back(
    table: HudiTable, writer: tuple[Any, Connection]
) -> None:
    process, _ = writer
    watch = watch_of(table.uri)
    assert [work.status for work in watch.observe().pending] == ["active"]
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    before = contents(Path(table.uri))
    activity = watch.observe()
    assert [work.status for work in activity.pending] == ["failed"]
    assert activity.lock is not None
    assert activity.lock.holder is None
    assert contents(Path(table.uri)) == before


def contents(base: Path) -> dict[str, tuple[bytes, int]]:
    """Content and time of each file."""
    files = (path for path in base.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_expired_heartbeat_is_failed(table: HudiTable, writer: tuple[Any, Connection]) -> None:
    clock = JumpingClock()
    watch = watch_of(table.uri, clock=clock)
    assert [work.status for work in watch.observe().pending] == ["active"]
    clock.ahead_ms = 121_000
    (work,) = watch.observe().pending
    assert work.status == "failed"
    assert (work.heartbeat_age_ms or 0) >= 120_000


@pytest.mark.parametrize(
    ("name", "works"),
    [
        ("v6_cow_inflight", [("commit", "no heartbeat", 4), ("commit", "active", 1)]),
        ("v8_mor_inflight", [("deltacommit", "no heartbeat", 4), ("deltacommit", "active", 1)]),
        ("v9_cow_pending_clean", [("clean", "no heartbeat", None)]),
        (
            "v9_mor_pending_clusterings",
            [("clustering", "no heartbeat", None), ("clustering", "planned", None)],
        ),
    ],
)
def test_watch_shows_pending_work_of_hudi(
    name: str, works: list[tuple[str, str, int | None]], tmp_path: Path
) -> None:
    activity = observe(unpack(name, tmp_path))
    shown = [(work.action, work.status, work.rows) for work in activity.pending]
    assert shown == works


def test_watch_shows_plan_with_its_file_groups(table: HudiTable) -> None:
    table.upsert(TABLE.rows(["bb"], v=3))
    compactor = pyhudi.open_table(table.uri, options=COMPACT_ALWAYS)
    assert compactor.compact(execute=False).scheduled
    (work,) = observe(table.uri).pending
    assert (work.action, work.status, work.state) == ("compaction", "planned", "REQUESTED")
    assert (work.partitions, work.file_groups, work.heartbeat_age_ms) == (1, 1, None)


# --- commits and figures --------------------------------------------------------------------------


def test_watch_describes_last_commits(table: HudiTable) -> None:
    activity = observe(table.uri)
    assert (activity.table, activity.name, activity.type) == ("trips", table.name, "mor")
    newest, first = activity.commits
    assert (newest.operation, newest.rows_inserted, newest.rows_updated) == ("UPSERT", 1, 1)
    assert (first.operation, first.rows_inserted) == ("INSERT", 2)
    assert newest.duration_ms is not None
    assert newest.age_ms is not None
    assert newest.duration_ms > 0
    assert newest.age_ms <= first.age_ms if first.age_ms is not None else False
    health = activity.health
    assert health is not None
    assert (health.commits_since_clean, health.delta_commits_since_compaction) == (2, 2)
    assert (health.small_files, health.base_files) == (3, 3)
    table.upsert(TABLE.rows(["bb"], v=3))
    assert pyhudi.open_table(table.uri, options=COMPACT_ALWAYS).compact().instants
    after = observe(table.uri)
    assert after.health is not None
    assert after.health.delta_commits_since_compaction == 0
    assert (after.commits[0].operation, after.commits[0].rows_inserted) == ("COMPACT", None)


# --- consumers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [6, 9])
def test_consumer_lag_counts_commits_without_services(tmp_path: Path, version: int) -> None:
    new_groups = {"hoodie.parquet.small.file.limit": 0}
    table = TABLE.make(tmp_path / "t", version=version, options=new_groups)
    table.insert(TABLE.rows(["a", "bb"]))
    table.insert(TABLE.rows(["ccc"]))
    for batch in table.stream(consumer="mirror", wait=False):
        batch.commit()
    watch = watch_of(table.uri)
    (lag,) = watch.observe().consumers
    assert (lag.consumer, lag.commits_behind, lag.lag_ms, lag.has_archived) == (
        "mirror",
        0,
        None,
        False,
    )
    table.upsert(TABLE.rows(["a"], v=2))
    table.upsert(TABLE.rows(["bb"], v=3))
    (lag,) = watch.observe().consumers
    assert (lag.commits_behind, lag.shards) == (2, 1)
    assert lag.lag_ms is not None
    for batch in table.refresh().stream(consumer="mirror", wait=False):
        batch.commit()
    services = pyhudi.open_table(table.uri, options=COMPACT_ALWAYS)
    assert services.compact().instants
    assert services.cluster().instants
    (lag,) = watch.observe().consumers
    assert (lag.commits_behind, lag.lag_ms) == (0, None)


def test_consumer_before_archived_commits_has_a_minimum(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    table.insert(TABLE.rows(["a"]))
    stream = table.stream(start="earliest", consumer="late", wait=False)
    next(stream)
    watch = watch_of(table.uri)
    (lag,) = watch.observe().consumers
    assert (lag.position, lag.commits_behind, lag.has_archived) == (None, 1, False)
    for turn in range(8):
        table.upsert(TABLE.rows(["a"], v=turn + 2))
    table.clean(retain=1)
    table.archive(min_commits=2, max_commits=3)
    activity = watch.observe()
    (lag,) = activity.consumers
    assert lag.has_archived
    assert 0 < (lag.commits_behind or 0) < 9


# --- lock -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["StorageBasedLockProvider", "FileSystemBasedLockProvider"])
def test_watch_names_holder_of_lock(table: HudiTable, provider: str) -> None:
    options = {"hoodie.write.lock.provider": provider}
    watch = watch_of(table.uri, options)
    storage = Storage(table.uri)
    lock = table_lock(storage, LockOptions.of(options), SystemClock())
    for _ in range(2):
        with held(lock, 1000):
            status = watch.observe().lock
            assert status is not None
            assert f"(process {os.getpid()} of this machine)" in (status.holder or "")
        status = watch.observe().lock
        assert status is not None
        assert (status.provider, status.holder, status.note) == (provider, None, None)


def test_watch_goes_on_without_lock_service(table: HudiTable) -> None:
    options = {
        "hoodie.write.lock.provider": "HiveMetastoreBasedLockProvider",
        "hoodie.write.lock.hivemetastore.uris": "thrift://127.0.0.1:1",
        "hoodie.write.lock.hivemetastore.database": "d",
        "hoodie.write.lock.hivemetastore.table": "t",
    }
    activity = watch_of(table.uri, options).observe()
    assert activity.error is None
    assert activity.lock is not None
    assert "Hive metastore at thrift://127.0.0.1:1" in (activity.lock.note or "")
    assert len(activity.commits) == 2


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ({"hoodie.write.lock.provider": "InProcessLockProvider"}, "only the writers' process"),
        ({"hoodie.write.concurrency.mode": "SINGLE_WRITER"}, "there is one writer"),
    ],
)
def test_watch_says_why_holder_is_unknown(
    table: HudiTable, options: dict[str, str], note: str
) -> None:
    status = watch_of(table.uri, options).observe().lock
    assert status is not None
    assert note in (status.note or "")


# --- tables that change or vanish -----------------------------------------------------------------


def test_watch_goes_on_after_table_was_dropped_and_recreated(table: HudiTable) -> None:
    watch = watch_of(table.uri)
    assert watch.observe().error is None
    shutil.rmtree(table.uri)
    for _ in range(2):
        activity = watch.observe()
        assert f"no Hudi table at {table.uri}" in (activity.error or "")
        assert (activity.table, activity.commits) == ("trips", ())
    TABLE.make(table.uri, version=6)
    activity = watch.observe()
    assert (activity.error, activity.version, activity.commits) == (None, 6, ())


def test_watch_follows_downgrade_and_upgrade(table: HudiTable) -> None:
    watch = watch_of(table.uri)
    instants = [commit.instant for commit in watch.observe().commits]
    for version in (6, 9):
        (table.downgrade if version == 6 else table.upgrade)(version)
        activity = watch.observe()
        assert (activity.error, activity.version) == (None, version)
        assert {commit.instant for commit in activity.commits} & set(instants)


def test_watch_shows_damaged_commit(table: HudiTable) -> None:
    (file,) = (Path(table.uri) / TIMELINE).glob(f"{table.history()['instant'][0]}_*.deltacommit")
    file.write_bytes(b"damaged")
    activity = watch_of(table.uri).observe()
    assert file.name in (activity.error or "")
