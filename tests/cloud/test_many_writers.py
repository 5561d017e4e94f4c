"""Processes that write to a table in a bucket, and are killed; `make soak` runs it for longer."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.config.timeline_layout import HEARTBEAT_FOLDER
from pyhudi.txn.heartbeat import Heartbeat, live_instants
from tests.cloud.conftest import CLOUDS, Bucket
from tests.helpers.soak import soak
from tests.sim.crash import people

SECONDS = float(os.environ.get("PYHUDI_SOAK_SECONDS", "30"))
SOAKED = CLOUDS if "PYHUDI_SOAK_SECONDS" in os.environ else CLOUDS[:1]
"""The others take as long, and find threads that write at once below."""
WRITERS, READERS = (8, 2) if SECONDS > 60 else (3, 1)


class FastClock(SystemClock):
    """Of a machine that is three minutes ahead of the bucket's."""

    def now_ms(self) -> int:
        return super().now_ms() + 180_000


def test_heartbeat_expires_by_server_clock(bucket: Bucket) -> None:
    storage = bucket.storage()
    instant = "20300101000000000"
    beat = Heartbeat(storage, instant, SystemClock())
    beat.start()
    assert live_instants(storage, {instant}, FastClock()) == [instant]
    assert [file.name for file in storage.list(HEARTBEAT_FOLDER)] == [instant]
    beat.stop()
    assert live_instants(storage, {instant}, FastClock()) == []


def test_writers_of_one_table_lose_nothing(bucket: Bucket) -> None:
    uri = bucket.uri("t")
    how: dict[str, Any] = {"storage_options": bucket.options}
    pyhudi.create_table(
        uri, people(range(2), 0, 0), key="id", partition_by="city", order_by="ts", **how
    )

    def write(number: int) -> None:
        for turn in (1, 2, 3):
            table = pyhudi.open_table(uri, **how)
            # A row of its own, and one for which they compete.
            table.upsert(people([0, 10 * number + turn], 10 * turn + number, turn))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, (1, 2)))
    table = pyhudi.open_table(uri, **how)
    rows = {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}
    assert rows.pop("k00") in (31, 32)
    own = {f"k{number}{turn}": 10 * turn + number for number in (1, 2) for turn in (1, 2, 3)}
    assert rows == {"k01": 0, **own}
    assert len(table.inspect.commits()) == 7
    assert list(table.check(deep=True).findings) == []


@pytest.mark.parametrize("bucket", SOAKED, indirect=True)
@pytest.mark.timeout(SECONDS * 2 + 300)
def test_concurrent_writers_lose_and_duplicate_no_row(bucket: Bucket) -> None:
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
