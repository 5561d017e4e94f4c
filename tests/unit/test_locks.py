"""Locks with the table or in the process: one holder at a time; foreign files are kept."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pymetastore.hive_metastore import ThriftHiveMetastore, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TServerSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.config.lock_options import LockOptions
from pyhudi.errors import (
    CommitConflict,
    ConfigError,
    CorruptTable,
    LockTimeout,
    StorageError,
    UnsupportedTableFeature,
)
from pyhudi.storage.storage import Storage
from pyhudi.txn import process_liveness
from pyhudi.txn.locks.base import TableLock
from pyhudi.txn.locks.file_lock import FileLock
from pyhudi.txn.locks.hive_metastore import HiveMetastoreLock
from pyhudi.txn.locks.providers import ProcessLock, implicit_key, table_lock
from pyhudi.txn.locks.storage_lock import PATH, StorageLock
from pyhudi.txn.locks.zookeeper import ZooKeeperLock
from tests.helpers.lock_context import held
from tests.sim.interrupting_storage import JumpingClock, StandingClock

KINDS = ["storage", "file", "process"]


def lock_of(kind: str, folder: Path) -> TableLock:
    storage, clock = Storage(str(folder)), SystemClock()
    if kind == "process":
        return ProcessLock(storage.native.uri)
    if kind == "file":
        return FileLock(storage, ".hoodie/lock", clock)
    return StorageLock(storage, clock)


@pytest.mark.parametrize("kind", KINDS)
def test_lock_has_one_holder(kind: str, tmp_path: Path) -> None:
    one, other = lock_of(kind, tmp_path), lock_of(kind, tmp_path)
    for _ in range(3):
        with held(one, 1000):
            one.check()
            assert not other.acquire(0)
            with pytest.raises(LockTimeout, match="was held by"), held(other, 30):
                pass
        with held(other, 1000):
            assert not one.acquire(0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_threads_take_turns(kind: str, tmp_path: Path) -> None:
    counter = {"value": 0, "most": 0, "now": 0}

    def work() -> None:
        lock = lock_of(kind, tmp_path)
        for _ in range(10):
            with held(lock, 60_000):
                counter["now"] += 1
                counter["most"] = max(counter["most"], counter["now"])
                counter["value"] += 1
                lock.check()
                counter["now"] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter == {"value": 40, "most": 1, "now": 0}


def _count(kind: str, folder: str, turns: int) -> None:
    lock, file = lock_of(kind, Path(folder)), Path(folder) / "count"
    for _ in range(turns):
        with held(lock, 60_000):
            file.write_text(str(int(file.read_text()) + 1))


@pytest.mark.parametrize("kind", ["storage", "file"])
@pytest.mark.slow
def test_processes_take_turns(kind: str, tmp_path: Path) -> None:
    (tmp_path / "count").write_text("0")
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_count, args=(kind, str(tmp_path), 10)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert (tmp_path / "count").read_text() == "30"


def _take_and_die(kind: str, folder: str) -> None:
    lock_of(kind, Path(folder)).acquire(1000)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("kind", ["storage", "file"])
@pytest.mark.slow
def test_lock_of_killed_process_is_free(kind: str, tmp_path: Path) -> None:
    worker = multiprocessing.get_context("spawn").Process(
        target=_take_and_die, args=(kind, str(tmp_path))
    )
    worker.start()
    worker.join()
    assert worker.exitcode == -signal.SIGKILL
    assert lock_of(kind, tmp_path).acquire(0)


class Interrupted(Storage):
    """Interrupts one change of the lock file, just before or just after it."""

    def __init__(self, uri: str, at: int, *, is_made: bool) -> None:
        super().__init__(uri)
        self._left = at
        self._is_made = is_made

    def _change(self, make: Callable[[], Any]) -> Any:
        self._left -= 1
        made = make() if self._left or self._is_made else None
        if not self._left:
            raise KeyboardInterrupt
        return made

    def replace_version(
        self, path: str, data: bytes, expected: str | None, *, durable: bool = False
    ) -> Any:
        return self._change(
            lambda: super(Interrupted, self).replace_version(path, data, expected, durable=durable)
        )

    def delete(self, path: str) -> Any:
        return self._change(lambda: super(Interrupted, self).delete(path))


class InterruptedClock(SystemClock):
    """Interrupts each wait."""

    def sleep(self, seconds: float) -> None:
        raise KeyboardInterrupt


def is_free(folder: Path) -> bool:
    """Also for other processes, which this one is alive for."""
    storage_file = folder / PATH
    if storage_file.exists():
        return bool(json.loads(storage_file.read_bytes())["expired"])
    return not (folder / ".hoodie/lock").exists()


@pytest.mark.parametrize("is_made", [False, True])
@pytest.mark.parametrize("at", [1, 2], ids=["taking", "giving back"])
@pytest.mark.parametrize("kind", ["storage", "file"])
def test_interrupted_acquire_holds_nothing(
    kind: str, at: int, is_made: bool, tmp_path: Path
) -> None:
    storage, clock = Interrupted(str(tmp_path), at, is_made=is_made), SystemClock()
    lock = FileLock(storage, ".hoodie/lock", clock) if kind == "file" else None
    before = set(process_liveness.active_owners)
    with pytest.raises(KeyboardInterrupt), held(lock or StorageLock(storage, clock), 0):
        pass
    assert is_free(tmp_path)
    assert process_liveness.active_owners == before


class SteppedClock(SystemClock):
    """A clock that the test sets."""

    ahead_ms = 0
    """By how much its time of day is ahead."""
    ahead_by_sleep_ms = 0
    """What each sleep adds to that."""
    ticked_ms = 0
    """How much more time has passed."""

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms

    def ticks_ms(self) -> int:
        return super().ticks_ms() + self.ticked_ms

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.ahead_ms += self.ahead_by_sleep_ms


class TestStorageLock:
    def test_storage_lock_file_matches_hudi(self, tmp_path: Path) -> None:
        lock, file = StorageLock(Storage(str(tmp_path)), SystemClock()), tmp_path / PATH
        with held(lock, 0):
            said = json.loads(file.read_bytes())
            assert file.read_bytes().startswith(b'{"expired":false,"validUntil":')
            assert list(said)[:3] == ["expired", "validUntil", "owner"]
        given = json.loads(file.read_bytes())
        assert given == {**{name: said[name] for name in ("validUntil", "owner")}, "expired": True}

    def test_lock_of_others_is_kept_until_expiry(self, tmp_path: Path) -> None:
        clock = JumpingClock()
        file = tmp_path / PATH
        file.parent.mkdir(parents=True)
        until = clock.now_ms() + 300_000
        file.write_text(f'{{"expired":false,"validUntil":{until},"owner":"java"}}')
        lock = StorageLock(Storage(str(tmp_path)), clock)
        assert not lock.acquire(0)
        assert "java" in lock.holder()
        clock.ahead_ms += 300_400
        assert not lock.acquire(0)
        clock.ahead_ms += 200
        assert lock.acquire(0)

    def test_lock_holder_detects_theft(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = StandingClock(monkeypatch)
        one = StorageLock(Storage(str(tmp_path)), clock)
        assert one.acquire(0)
        clock.stand_still(70_000)
        with pytest.raises(CommitConflict, match="was lost"):
            one.check()
        other = StorageLock(Storage(str(tmp_path)), clock)
        assert other.acquire(0)
        before = (tmp_path / PATH).read_bytes()
        one._renew()
        one.release()
        assert (tmp_path / PATH).read_bytes() == before
        other.check()

    def test_wrong_clock_ends_no_lease(self, tmp_path: Path) -> None:
        """Neither a clock that is ahead of the holder's, nor a holder's that is behind."""
        late, early = SteppedClock(), SteppedClock()
        late.ahead_ms = -3_600_000
        early.ahead_ms = 86_400_000
        for holder, other in ((SystemClock(), early), (late, SystemClock()), (late, early)):
            one = StorageLock(Storage(str(tmp_path)), holder)
            assert one.acquire(0)
            assert not StorageLock(Storage(str(tmp_path)), other).acquire(0)
            one.check()
            one.release()

    def test_lease_ends_if_clock_is_set_back(self, tmp_path: Path) -> None:
        """A holder that stalls does not hold its lock for the hour that its clock was set back."""
        clock = SteppedClock()
        lock = StorageLock(Storage(str(tmp_path)), clock)
        assert lock.acquire(0)
        clock.ahead_ms = -3_600_000
        lock.check()
        clock.ticked_ms = 70_000
        with pytest.raises(CommitConflict, match="was lost"):
            lock.check()

    def test_lock_of_holder_with_early_clock_ends(self, tmp_path: Path) -> None:
        """Its lease would last for a day; a waiter sees for a minute that nobody renews it."""
        early, clock = SteppedClock(), SteppedClock()
        early.ahead_ms = 86_400_000
        holder = StorageLock(Storage(str(tmp_path)), early)
        assert holder.acquire(0)
        holder._renewal.stop()
        waiter = StorageLock(Storage(str(tmp_path)), clock)
        assert not waiter.acquire(0)
        clock.ticked_ms = 60_000
        assert not waiter.acquire(0)
        clock.ticked_ms = 61_000
        assert waiter.acquire(0)

    def test_wait_ends_if_clock_is_set_back(self, tmp_path: Path) -> None:
        with held(StorageLock(Storage(str(tmp_path)), SystemClock()), 0):
            clock = SteppedClock()
            clock.ahead_by_sleep_ms = -3_600_000
            assert not StorageLock(Storage(str(tmp_path)), clock).acquire(100)

    def test_renewal_keeps_lock(self, tmp_path: Path) -> None:
        clock = JumpingClock()
        one = StorageLock(Storage(str(tmp_path)), clock)
        assert one.acquire(0)
        for _ in range(5):
            clock.ahead_ms += 40_000
            one._renew()
        one.check()
        assert not StorageLock(Storage(str(tmp_path)), clock).acquire(0)
        one.release()
        assert StorageLock(Storage(str(tmp_path)), clock).acquire(0)

    def test_storage_lock_of_hudi_1_0_raises(self, tmp_path: Path) -> None:
        clock = SystemClock()
        file = tmp_path / PATH
        file.parent.mkdir(parents=True)
        lock = StorageLock(Storage(str(tmp_path)), clock)

        def held(until: int) -> None:
            file.write_text(f'{{"expired":false,"validUntil":{until},"owner":"java"}}')

        now = clock.now_ms()
        held(now + 4_000)
        # One alone may be a long one that took its time to arrive, however often it is seen.
        assert not lock.acquire(0)
        assert not lock.acquire(0)
        held(now + 4_300)
        with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.write\.lock\.provider"):
            lock.acquire(0)
        # The shortest that there is otherwise, which took three seconds to arrive.
        for more in (7_000, 7_300):
            held(now + more)
            assert not StorageLock(Storage(str(tmp_path)), clock).acquire(0)

    def test_lock_is_free_after_machine_crash(self, tmp_path: Path) -> None:
        """The file is not synced: its content may be lost, and the holder is."""
        file = tmp_path / PATH
        file.parent.mkdir(parents=True)
        file.write_bytes(b"")
        lock = StorageLock(Storage(str(tmp_path)), SystemClock())
        assert lock.acquire(0)
        lock.check()
        assert not StorageLock(Storage(str(tmp_path)), SystemClock()).acquire(0)

    @pytest.mark.parametrize("expired", [True, False])
    def test_storage_lock_parses_boolean_strings(self, tmp_path: Path, expired: bool) -> None:
        """As Jackson reads them."""
        file = tmp_path / PATH
        file.parent.mkdir(parents=True)
        until = SystemClock().now_ms() + 60_000
        said = {"expired": str(expired).lower(), "validUntil": until, "owner": "java"}
        file.write_text(json.dumps(said))
        assert StorageLock(Storage(str(tmp_path)), SystemClock()).acquire(0) is expired

    @pytest.mark.parametrize(
        "text",
        [
            " ",
            "{}",
            "[]",
            "[" * 100_000,
            '{"expired":false,"validUntil":"x"}',
            '{"expired":false,"validUntil":1e999,"owner":"x"}',
            '{"expired":"no","validUntil":1,"owner":"x"}',
            '{"expired":0,"validUntil":1,"owner":"x"}',
            "\xff",
        ],
    )
    def test_damaged_lock_file_raises(self, text: str, tmp_path: Path) -> None:
        file = tmp_path / PATH
        file.parent.mkdir(parents=True)
        file.write_text(text, "latin-1")
        with pytest.raises(CorruptTable, match="is not a lock file"):
            StorageLock(Storage(str(tmp_path)), SystemClock()).acquire(0)

    def test_lost_lock_response_is_resolved(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        storage = Storage(str(tmp_path))
        write = storage.replace_version

        def losing(*given: Any) -> None:
            write(*given)
            raise ConnectionError("the answer was lost")

        monkeypatch.setattr(storage, "replace_version", losing)
        lock = StorageLock(storage, SystemClock())
        assert lock.acquire(0)
        lock.check()
        lock.release()
        assert StorageLock(Storage(str(tmp_path)), SystemClock()).acquire(0)


class TestFileLock:
    @pytest.mark.parametrize("text", ["", "[" * 100_000])
    def test_foreign_lock_file_is_kept(self, text: str, tmp_path: Path) -> None:
        file = tmp_path / ".hoodie" / "lock"
        file.parent.mkdir()
        file.write_text(text)
        lock = FileLock(Storage(str(tmp_path)), ".hoodie/lock", SystemClock())
        assert not lock.acquire(0)
        lock.release()
        assert file.exists()

    def test_expired_lock_is_taken(self, tmp_path: Path) -> None:
        file = tmp_path / ".hoodie" / "lock"
        file.parent.mkdir()
        file.touch()
        os.utime(file, (1, 1))
        never = FileLock(Storage(str(tmp_path)), ".hoodie/lock", SystemClock())
        assert not never.acquire(0)
        lock = FileLock(Storage(str(tmp_path)), ".hoodie/lock", SystemClock(), 60_000)
        assert lock.acquire(0)
        lock.check()

    def test_robbed_holder_keeps_lock_of_thief(self, tmp_path: Path) -> None:
        file = tmp_path / ".hoodie" / "lock"
        lock = FileLock(Storage(str(tmp_path)), ".hoodie/lock", SystemClock(), 60_000)
        assert lock.acquire(0)
        file.unlink()
        with pytest.raises(CommitConflict, match="lost lock"):
            lock.check()
        file.write_text("java")
        lock._renew()
        lock.release()
        assert file.read_text() == "java"

    def test_lost_lock_stays_lost(self, tmp_path: Path) -> None:
        file = tmp_path / ".hoodie" / "lock"
        lock = FileLock(Storage(str(tmp_path)), ".hoodie/lock", SystemClock(), 60_000)
        assert lock.acquire(0)
        file.write_text("java")
        lock._renew()
        file.unlink()
        lock._renew()
        assert not file.exists()
        with pytest.raises(CommitConflict, match="lost lock"):
            lock.check()
        lock.release()
        assert lock.acquire(0)
        lock.check()
        lock.release()

    def test_interrupt_during_skew_wait_holds_nothing(self, tmp_path: Path) -> None:
        lock = FileLock(Storage(str(tmp_path)), ".hoodie/lock", InterruptedClock())
        before = set(process_liveness.active_owners)
        with pytest.raises(KeyboardInterrupt), held(lock, 0):
            pass
        assert is_free(tmp_path)
        assert process_liveness.active_owners == before


class Nodes:
    """What a ZooKeeper server keeps, as its client shows it; whoever waits is interrupted."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.connected = True

    def client(self, *_: Any, **__: Any) -> Nodes:
        return self

    def start(self, **_: Any) -> None: ...

    def stop(self) -> None: ...

    close = stop

    def add_listener(self, listener: Any) -> None: ...

    remove_listener = add_listener

    def ensure_path_async(self, path: str) -> Answer:
        return Answer(path)

    def create_async(self, path: str, *_: Any, **__: Any) -> Answer:
        self.names.append(f"{path}{len(self.names):010d}")
        return Answer(self.names[-1])

    def get_children_async(self, path: str) -> Answer:
        return Answer([name.removeprefix(f"{path}/") for name in self.names])

    def exists_async(self, path: str) -> Answer:
        return Answer(path if path in self.names else None)

    def delete_async(self, path: str) -> Answer:
        self.names.remove(path)
        return Answer(None)

    def get_async(self, path: str, **_: Any) -> Answer:
        raise KeyboardInterrupt


class Answer(NamedTuple):
    said: Any

    def get(self, **_: Any) -> Any:
        return self.said


def test_interrupted_zookeeper_waiter_leaves_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = Nodes()
    monkeypatch.setattr("kazoo.client.KazooClient", nodes.client)
    holder, waiting = (ZooKeeperLock("h:1", "/t", clock=SystemClock()) for _ in range(2))
    assert holder.acquire(0)
    own = list(nodes.names)
    with pytest.raises(KeyboardInterrupt):
        waiting.acquire(60_000)
    assert nodes.names == own
    holder.release()
    assert nodes.names == []


def raises(error: type[Exception]) -> Callable[..., Any]:
    def call(*_: Any, **__: Any) -> Any:
        raise error

    return call


def test_stalled_zookeeper_holder_asks_server(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = Nodes()
    monkeypatch.setattr("kazoo.client.KazooClient", nodes.client)
    lock = ZooKeeperLock("h:1", "/t", clock=SystemClock())
    assert lock.acquire(0)
    lock.check()
    with monkeypatch.context() as cut_off:
        cut_off.setattr(Answer, "get", raises(TimeoutError))
        with pytest.raises(CommitConflict, match="in ZooKeeper was lost: TimeoutError"):
            lock.check()
    nodes.names.clear()
    with pytest.raises(CommitConflict, match="in ZooKeeper was lost"):
        lock.check()


class Metastore:
    """A metastore in which another has the lock, behind a real connection."""

    def __init__(self) -> None:
        self.asked = 0
        self.unlocked: list[int] = []
        self._socket = TServerSocket("127.0.0.1", 0)
        self._socket.listen()
        self.uri = f"thrift://127.0.0.1:{self._socket.handle.getsockname()[1]}"
        self._thread = threading.Thread(target=self._answer)
        self._thread.start()

    def _answer(self) -> None:
        client = TBufferedTransport(self._socket.accept())
        protocol = TBinaryProtocol(client)
        processor = ThriftHiveMetastore.Processor(self)
        with suppress(TTransportException):
            while True:
                processor.process(protocol, protocol)
        client.close()

    def close(self) -> None:
        self._thread.join()
        self._socket.close()

    def lock(self, _: Any) -> Any:
        self.asked += 1
        return ttypes.LockResponse(lockid=self.asked, state=ttypes.LockState.WAITING)

    def unlock(self, request: Any) -> None:
        self.unlocked.append(request.lockid)


def test_interrupted_metastore_waiter_leaves_queue() -> None:
    metastore = Metastore()
    lock = HiveMetastoreLock(metastore.uri, "d", "t", InterruptedClock())
    with pytest.raises(KeyboardInterrupt):
        lock.acquire(60_000)
    metastore.close()
    assert metastore.unlocked == [1]


class TestChoice:
    def of(self, folder: Path, options: dict[str, str]) -> TableLock:
        properties = {
            "hoodie.table.name": "t",
            "hoodie.table.type": "COPY_ON_WRITE",
            "hoodie.table.version": "9",
        }
        given = {f"hoodie.write.lock.{name}": value for name, value in options.items()}
        text = "".join(f"{name}={value}\n" for name, value in properties.items())
        (folder / ".hoodie").mkdir(parents=True, exist_ok=True)
        (folder / ".hoodie/hoodie.properties").write_text(text)
        return table_lock(Storage(str(folder)), LockOptions.of(given), SystemClock())

    def test_storage_lock_is_default(self, tmp_path: Path) -> None:
        assert isinstance(self.of(tmp_path, {}), StorageLock)

    def test_lock_providers_are_known_by_class_name(self, tmp_path: Path) -> None:
        package = "org.apache.hudi.client.transaction.lock"
        file = self.of(tmp_path, {"provider": f"{package}.FileSystemBasedLockProvider"})
        assert isinstance(file, FileLock)
        assert isinstance(self.of(tmp_path, {"provider": "InProcessLockProvider"}), ProcessLock)

    @pytest.mark.parametrize(
        ("options", "min_lease_ms"),
        [
            ({}, 30_000),
            ({"storage.validity.timeout.secs": "300"}, 150_000),
            ({"provider": "InProcessLockProvider"}, None),
            ({"provider": "FileSystemBasedLockProvider"}, None),
            ({"provider": "FileSystemBasedLockProvider", "filesystem.expire": "1"}, 30_000),
            ({"provider": "DynamoDBBasedLockProvider"}, 30_000),
            (
                {
                    "provider": "HiveMetastoreBasedLockProvider",
                    "hivemetastore.uris": "thrift://localhost:1",
                    "hivemetastore.database": "d",
                    "hivemetastore.table": "t",
                },
                30_000,
            ),
            (
                {
                    "provider": "ZookeeperBasedLockProvider",
                    "zookeeper.url": "localhost:1",
                    "zookeeper.base_path": "/locks",
                },
                26_666,
            ),
        ],
    )
    def test_lock_minimum_lease(
        self, options: dict[str, str], min_lease_ms: int | None, tmp_path: Path
    ) -> None:
        assert self.of(tmp_path, options).min_lease_ms == min_lease_ms

    @pytest.mark.parametrize("spelled", ["{}", "{}/", "file://{}", "{}/../table", "//{}"])
    def test_process_shares_one_lock_per_table(self, spelled: str, tmp_path: Path) -> None:
        options = LockOptions.of({"hoodie.write.lock.provider": "InProcessLockProvider"})
        one, other = (
            table_lock(Storage(uri), options, SystemClock())
            for uri in (str(tmp_path / "table"), spelled.format(tmp_path / "table"))
        )
        with held(one, 0):
            assert not other.acquire(0)

    def test_process_shares_one_lock_per_bucket_table(self) -> None:
        options = LockOptions.of({"hoodie.write.lock.provider": "InProcessLockProvider"})
        one, other = (
            table_lock(Storage(uri), options, SystemClock()) for uri in ("s3://b/t", "S3A://b/t/")
        )
        with held(one, 0):
            assert not other.acquire(0)

    @pytest.mark.parametrize("spelled", ["{}", "{}/", "file:{}", "file://{}", "FILE:{}"])
    def test_file_lock_accepts_other_directory(self, spelled: str, tmp_path: Path) -> None:
        elsewhere = tmp_path / "locks" / "t"
        path = spelled.format(elsewhere)
        options = {"provider": "FileSystemBasedLockProvider", "filesystem.path": path}
        lock = self.of(tmp_path / "table", options)
        with held(lock, 0):
            assert (elsewhere / "lock").exists()
        assert not (elsewhere / "lock").exists()

    @pytest.mark.parametrize("path", ["locks", ".hoodie", "../other", "c:locks"])
    def test_file_lock_directory_must_be_absolute(self, path: str, tmp_path: Path) -> None:
        options = {"provider": "FileSystemBasedLockProvider", "filesystem.path": path}
        with pytest.raises(ConfigError, match=r"hoodie\.write\.lock\.filesystem\.path .* absolute"):
            self.of(tmp_path, options)

    @pytest.mark.parametrize("path", ["s3a://b/locks", "viewfs://c/locks", "abfs://c@a/locks"])
    def test_file_lock_needs_local_or_hdfs_storage(self, path: str, tmp_path: Path) -> None:
        options = {"provider": "FileSystemBasedLockProvider", "filesystem.path": path}
        with pytest.raises(ConfigError, match=r"hoodie\.write\.lock\.filesystem\.path .* no file"):
            self.of(tmp_path, options)

    def test_zookeeper_lock_needs_path(self, tmp_path: Path) -> None:
        options = {"provider": "ZookeeperBasedLockProvider", "zookeeper.url": "localhost:1"}
        with pytest.raises(ConfigError, match=r"hoodie\.write\.lock\.zookeeper\.base_path"):
            self.of(tmp_path, options)
        lock = self.of(tmp_path, {**options, "zookeeper.base_path": "/hudi/"})
        assert isinstance(lock, ZooKeeperLock)
        assert "/hudi/t in ZooKeeper at localhost:1" in lock.holder()

    def test_hive_metastore_lock_needs_server_and_name(self, tmp_path: Path) -> None:
        options = {
            "provider": "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
            "hivemetastore.database": "sales",
            "hivemetastore.table": "trips",
        }
        with pytest.raises(ConfigError, match=r"hoodie\.write\.lock\.hivemetastore\.uris"):
            self.of(tmp_path, options)
        with pytest.raises(
            ConfigError, match="'jdbc:hive2://a' is not of the form thrift://host:port"
        ):
            self.of(tmp_path, {**options, "hivemetastore.uris": "jdbc:hive2://a"})
        nobody = "thrift://localhost:1, localhost:2"
        lock = self.of(tmp_path, {**options, "hivemetastore.uris": nobody})
        assert lock.holder() == f"a holder of sales.trips in the Hive metastore at {nobody}"
        with pytest.raises(StorageError, match=r"Hive metastore at .*Could not connect"):
            lock.acquire(0)

    def test_unknown_lock_provider_raises(self, tmp_path: Path) -> None:
        with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.write\.lock\.provider"):
            self.of(tmp_path, {"provider": "com.example.OurLocks"})

    def test_lock_validity_below_renewals_raises(self, tmp_path: Path) -> None:
        options = {"storage.validity.timeout.secs": "30", "storage.renew.interval.secs": "10"}
        with pytest.raises(ConfigError, match="less than ten times"):
            self.of(tmp_path, options)

    def test_implicit_lock_key_matches_hudi(self, tmp_path: Path) -> None:
        class Named(Storage):
            pass

        storage = Named(str(tmp_path))
        storage.uri = "s3a://bucket/table"
        assert implicit_key(storage) == "4DCF035CB614089C"


HELD = '{"expired":false,"validUntil":4102444800000,"owner":%s,"process":%s}'
DAMAGED = {
    "null": b"null",
    "list": b"[]",
    "text": b'"x"',
    "garbage": b"\xff\xfe\0",
    "cut": b'{"expired":false,"val',
    "no owner": (HELD % ("null", '""')).encode(),
    "deep": b"[" * 100_000,
    "infinite": b'{"expired":false,"validUntil":1e400,"owner":"a"}',
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_damaged_storage_lock_is_no_lost_lock(content: bytes, tmp_path: Path) -> None:
    """Whoever retried would do so for ever."""
    table = pyhudi.create_table(tmp_path / "t", pa.table({"id": ["a"]}), key="id")
    (tmp_path / "t" / PATH).write_bytes(content)
    table = pyhudi.open_table(tmp_path / "t")
    with pytest.raises(CorruptTable, match=r"is not a lock file[^\n]*\nHint: Remove it") as raised:
        table.upsert(pa.table({"id": ["b"]}))
    assert raised.value.file == PATH
    assert table.scan().count() == 1
    (tmp_path / "t" / PATH).unlink()
    table.upsert(pa.table({"id": ["b"]}))


def test_storage_lock_with_dangling_link_raises(tmp_path: Path) -> None:
    file = tmp_path / PATH
    file.parent.mkdir(parents=True)
    file.symlink_to(tmp_path / "nowhere")
    with pytest.raises(CorruptTable, match="can be neither read nor created"):
        lock_of("storage", tmp_path).acquire(1000)


@pytest.mark.parametrize("kind", ["storage", "file"])
def test_storage_lock_owner_must_be_string(kind: str, tmp_path: Path) -> None:
    """Lone surrogates and control characters can be in JSON, and not in a terminal."""
    lock = lock_of(kind, tmp_path)
    file = tmp_path / (PATH if kind == "storage" else ".hoodie/lock")
    file.parent.mkdir(parents=True)
    file.write_text(HELD % (r'"\ud800\u001b[31m"', r'"\udfff"'))
    assert not lock.acquire(0)
    assert lock.holder().isascii()
    assert lock.holder().isprintable()


@pytest.mark.parametrize("kind", KINDS)
def test_read_holder_changes_nothing(kind: str, tmp_path: Path) -> None:
    holder, reader = lock_of(kind, tmp_path), lock_of(kind, tmp_path)
    assert reader.read_holder() is None
    assert not any(tmp_path.rglob("*"))
    with held(holder, 1000):
        name = reader.read_holder()
        assert name is not None
        assert kind == "process" or f"(process {os.getpid()} of this machine)" in name
        holder.check()
    assert reader.read_holder() is None
