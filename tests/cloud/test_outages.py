"""Buckets that refuse all requests for a while, or answer each of them slowly.

`make test-machines` has an outage last for a minute.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable, StorageError
from tests.helpers.s3.proxy import Proxy
from tests.helpers.s3.server import S3Server

SECONDS = float(os.environ.get("PYHUDI_OUTAGE_SECONDS", "3"))
LOCK = "hoodie.write.lock.storage."
SHORT_LEASE = {f"{LOCK}validity.timeout.secs": 10, f"{LOCK}renew.interval.secs": 1}


def rows(value: int) -> pa.Table:
    ids = [f"k{number}" for number in range(20)]
    return pa.table({"id": ids, "p": [key[-1] for key in ids], "v": [value] * 20})


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[Proxy]:
    proxy = Proxy(s3_server.port)
    yield proxy
    proxy.close()


def make(server: S3Server, proxy: Proxy, bucket: str, **retries: str) -> HudiTable:
    server.make_bucket(bucket)
    created = pyhudi.create_table(
        f"s3://{bucket}/t", rows(0).schema, key="id", partition_by="p", type="mor",
        storage_options=reached_by(server, proxy), options=SHORT_LEASE,
    )  # fmt: skip
    created.upsert(rows(1))
    options = {**reached_by(server, proxy), **retries}
    return pyhudi.open_table(created.uri, storage_options=options, options=SHORT_LEASE)


def reached_by(server: S3Server, proxy: Proxy) -> dict[str, str]:
    """With pyhudi's own retries, of which most tests have fewer."""
    retries = ("max_retries", "retry_timeout")
    own = {name: value for name, value in server.options.items() if name not in retries}
    return {**own, "aws_endpoint_url": f"http://127.0.0.1:{proxy.port}"}


def values(table: HudiTable) -> set[Any]:
    return set(table.refresh().scan().to_arrow()["v"].to_pylist())


@pytest.mark.slow
@pytest.mark.usefixtures("no_variables")
def test_write_survives_outage(s3_server: S3Server, proxy: Proxy) -> None:
    """Requests are sent again for three minutes, with pauses that grow."""
    table = make(s3_server, proxy, "outage")
    proxy.refuse_after(25)
    refused: list[int] = []
    timer = threading.Timer(SECONDS, lambda: refused.append(proxy.serve_again()))
    timer.start()
    began = time.monotonic()
    table.upsert(rows(2))
    timer.join()
    assert time.monotonic() - began >= SECONDS
    # Far fewer than without growing pauses, of all requests under way.
    assert 0 < refused[0] < 40 + 20 * SECONDS
    assert values(table) == {2}
    assert not table.check(deep=True).findings


@pytest.mark.slow
@pytest.mark.usefixtures("no_variables")
@pytest.mark.filterwarnings("ignore::pyhudi.errors.LockWarning")
@pytest.mark.filterwarnings("ignore::pyhudi.errors.AfterCommitWarning")
@pytest.mark.parametrize("requests", [0, 8, 20, 30, 40, 50])
def test_outage_longer_than_retries_is_storage_error(
    requests: int, s3_server: S3Server, proxy: Proxy
) -> None:
    """Wherever in a write it begins, the write happens or not, and later ones are served."""
    table = make(s3_server, proxy, f"refusing{requests}", retry_timeout="1", max_retries="2")
    proxy.refuse_after(requests)
    error: Exception | None = None
    try:
        table.upsert(rows(2))
    except StorageError as caught:
        error = caught
    is_written = error is None
    assert is_written or "503" in str(error) or "SlowDown" in str(error), error
    assert proxy.serve_again() or is_written
    assert values(table) == {2} if is_written else values(table) <= {1, 2}
    assert len(values(table)) == 1
    table.upsert(rows(3))
    assert values(table) == {3}
    assert not table.check(deep=True).findings


@pytest.mark.slow
@pytest.mark.usefixtures("no_variables")
def test_slow_bucket_keeps_locks_and_heartbeats(s3_server: S3Server, proxy: Proxy) -> None:
    """With 300 ms a request, two writers of the same rows take turns under a short lease."""
    table = make(s3_server, proxy, "slow")
    storage = reached_by(s3_server, proxy)
    other = pyhudi.open_table(table.uri, storage_options=storage, options=SHORT_LEASE)
    proxy.set_delay(0.3)
    errors: list[Exception] = []

    def write(writer: HudiTable, value: int) -> None:
        try:
            writer.upsert(rows(value))
        except Exception as error:  # noqa: BLE001 - of a thread
            errors.append(error)

    threads = [threading.Thread(target=write, args=(table, 2))]
    threads += [threading.Thread(target=write, args=(other, 3))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    proxy.set_delay(0)
    assert not errors
    assert values(table) in ({2}, {3})
    assert not table.check(deep=True).findings
