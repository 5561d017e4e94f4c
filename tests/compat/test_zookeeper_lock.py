"""The ZooKeeper lock against a real server: turns, and a session that is lost."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyhudi.clock import SystemClock
from pyhudi.errors import CommitConflict, StorageError
from pyhudi.txn.locks.zookeeper import ZooKeeperLock
from tests.helpers.lock_context import held
from tests.helpers.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.jvm


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    server = ZooKeeperServer(tmp_path)
    yield server
    server.close()


def lock(server: ZooKeeperServer) -> ZooKeeperLock:
    return ZooKeeperLock(
        server.hosts, "/hudi/table", clock=SystemClock(), session_ms=4000, connection_ms=4000
    )


def test_turns_and_a_lost_session(server: ZooKeeperServer) -> None:
    counter = {"value": 0, "most": 0, "now": 0}

    def work() -> None:
        own = lock(server)
        for _ in range(5):
            with held(own, 60_000):
                counter["now"] += 1
                counter["most"] = max(counter["most"], counter["now"])
                counter["value"] += 1
                own.check()
                counter["now"] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter == {"value": 20, "most": 1, "now": 0}

    holder, waiting = lock(server), lock(server)
    assert waiting.read_holder() is None
    assert holder.acquire(10_000)
    assert not waiting.acquire(300)
    holder.check()
    assert re.fullmatch(
        r"_c_[0-9a-f-]+-lock-\d+ \(session 0x[0-9a-f]+\)", waiting.read_holder() or ""
    )
    server.close()
    _until_lost(holder)
    holder.release()
    with pytest.raises(StorageError, match="ZooKeeper at"):
        waiting.read_holder()
    with pytest.raises(StorageError, match="ZooKeeper at"):
        lock(server).acquire(1000)


def _until_lost(holder: ZooKeeperLock) -> None:
    """The client notices by itself; how soon is its own business."""
    for _ in range(300):
        try:
            holder.check()
        except CommitConflict:
            return
        time.sleep(0.1)
    raise AssertionError("the holder still believes that it has the lock")
