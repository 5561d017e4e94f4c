"""The lock in a Hive metastore against a real one: turns, the dead, and a server that goes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyhudi.clock import SystemClock
from pyhudi.errors import CommitConflict, StorageError
from pyhudi.txn.locks.hive_client import user_name
from pyhudi.txn.locks.hive_metastore import HiveMetastoreLock
from tests.helpers.hive_metastore import TIMEOUT_S, HiveMetastore
from tests.helpers.lock_context import held

pytestmark = pytest.mark.jvm
SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    server = HiveMetastore(tmp_path_factory.mktemp("metastore"))
    yield server
    server.close()


def lock(uris: str, table: str, heartbeat_ms: int = 2000) -> HiveMetastoreLock:
    return HiveMetastoreLock(uris, "default", table, SystemClock(), heartbeat_ms=heartbeat_ms)


def _count(uris: str, file: str, turns: int) -> None:
    own = lock(uris, "counted")
    for _ in range(turns):
        with held(own, 120_000):
            number = int(Path(file).read_text())
            own.check()
            Path(file).write_text(str(number + 1))


def test_processes_take_turns(metastore: HiveMetastore, tmp_path: Path) -> None:
    file = tmp_path / "count"
    file.write_text("0")
    workers = [SPAWN.Process(target=_count, args=(metastore.uris, str(file), 8)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert file.read_text() == "16"


def _take_and_die(uris: str) -> None:
    assert lock(uris, "dead").acquire(10_000)
    os.kill(os.getpid(), signal.SIGKILL)


def test_hive_lock_of_killed_process_expires(metastore: HiveMetastore) -> None:
    worker = SPAWN.Process(target=_take_and_die, args=(metastore.uris,))
    worker.start()
    worker.join()
    assert worker.exitcode == -signal.SIGKILL
    waiting = lock(metastore.uris, "dead")
    assert not waiting.acquire(0)
    assert waiting.acquire(10 * TIMEOUT_S * 1000)
    waiting.release()


def test_read_holder_names_user_and_machine(metastore: HiveMetastore) -> None:
    holder, reader = (lock(metastore.uris, "read") for _ in range(2))
    assert reader.read_holder() is None
    with held(holder, 10_000):
        assert reader.read_holder() == f"{user_name()}@{socket.gethostname()}"
    assert reader.read_holder() is None


def test_hive_lock_without_heartbeat_is_lost(metastore: HiveMetastore) -> None:
    holder, waiting = (lock(metastore.uris, "asleep", 3_600_000) for _ in range(2))
    assert holder.acquire(10_000)
    holder.check()
    assert waiting.acquire(10 * TIMEOUT_S * 1000)
    with pytest.raises(CommitConflict, match=r"default\.asleep in the Hive metastore was lost"):
        holder.check()
    holder.release()
    waiting.check()
    waiting.release()


def test_signs_of_life_keep_it_longer_than_its_time(metastore: HiveMetastore) -> None:
    holder, waiting = (lock(metastore.uris, "long") for _ in range(2))
    with held(holder, 10_000):
        assert not waiting.acquire(2 * TIMEOUT_S * 1000)
        holder.check()
    assert waiting.acquire(0)
    waiting.release()


def test_hive_lock_survives_server_restart(tmp_path: Path) -> None:
    server = HiveMetastore(tmp_path, timeout_s=300)
    try:
        holder = lock(server.uris, "t", 60_000)
        assert holder.acquire(10_000)
        server.close()
        with pytest.raises(CommitConflict, match="was lost"):
            holder.check()
        with pytest.raises(StorageError, match="Hive metastore at thrift://127"):
            lock(server.uris, "t").acquire(1000)
        server.start()
        holder.check()
        assert not lock(server.uris, "t").acquire(0)
        holder.release()
        with held(lock(server.uris, "t"), 0):
            pass
    finally:
        server.close()
