"""The storage lock in a bucket, where Apache Hudi has the same one."""

from __future__ import annotations

import json
import threading

from pyhudi.clock import SystemClock
from pyhudi.txn.locks.storage_lock import PATH, StorageLock
from tests.cloud.conftest import Bucket
from tests.helpers.lock_context import held


def test_lock_has_one_holder(bucket: Bucket) -> None:
    one = StorageLock(bucket.storage(), SystemClock())
    other = StorageLock(bucket.storage(), SystemClock())
    for _ in range(3):
        with held(one, 0):
            one.check()
            assert not other.acquire(0)
            one._renew()
            one.check()
            # No field but Hudi's own: its writers would not keep others.
            said = json.loads(bucket.storage().read(PATH))
            assert list(said) == ["expired", "validUntil", "owner"]
        with held(other, 0):
            assert not one.acquire(0)


def test_threads_take_turns(bucket: Bucket) -> None:
    counter = {"value": 0, "most": 0, "now": 0}

    def work() -> None:
        lock = StorageLock(bucket.storage(), SystemClock())
        for _ in range(5):
            with held(lock, 60_000):
                counter["now"] += 1
                counter["most"] = max(counter["most"], counter["now"])
                counter["value"] += 1
                counter["now"] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter == {"value": 20, "most": 1, "now": 0}
