"""Processes that write to a table in a bucket, and are killed; `make soak` runs it for longer."""

from __future__ import annotations

import os

import pytest

from pyhudi.clock import SystemClock
from pyhudi.txn.heartbeat import HEARTBEAT_FOLDER, Heartbeat, live_instants
from tests.cloud.conftest import Bucket
from tests.helpers.soak import soak

SECONDS = float(os.environ.get("PYHUDI_SOAK_SECONDS", "30"))
WRITERS, READERS = (8, 2) if SECONDS > 60 else (3, 1)


class FastClock(SystemClock):
    """Of a machine that is three minutes ahead of the bucket's."""

    def now_ms(self) -> int:
        return super().now_ms() + 180_000


def test_the_buckets_clock_says_who_is_dead(bucket: Bucket) -> None:
    storage = bucket.storage()
    instant = "20300101000000000"
    beat = Heartbeat(storage, instant, SystemClock())
    beat.start()
    assert live_instants(storage, {instant}, FastClock()) == [instant]
    assert [file.name for file in storage.list(HEARTBEAT_FOLDER)] == [instant]
    beat.stop()
    assert live_instants(storage, {instant}, FastClock()) == []


@pytest.mark.timeout(SECONDS * 2 + 300)
def test_nothing_is_lost_or_doubled(bucket: Bucket) -> None:
    # The shortest time there is: who died with the lock keeps the others waiting so long.
    short = "hoodie.write.lock.storage.validity.timeout.secs"
    found = soak(
        bucket.uri("table"),
        SECONDS,
        type_="cow",
        writers=WRITERS,
        readers=READERS,
        storage_options=bucket.options,
        options={short: 10},
    )
    assert found.findings == []
    assert found.said
    assert found.reads
