"""Processes that write to a table in a bucket, and are killed; `make soak` runs it for longer."""

from __future__ import annotations

import os

import pytest

from tests.cloud.conftest import Bucket
from tests.helpers.soak import soak

SECONDS = float(os.environ.get("PYHUDI_SOAK_SECONDS", "30"))
WRITERS, READERS = (8, 2) if SECONDS > 60 else (3, 1)


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
