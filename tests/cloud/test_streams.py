"""Streams of a table in a bucket: consumers, shards, killed processes, the cost of a poll."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.stream import StreamBatch
from tests.cloud.conftest import Bucket
from tests.helpers.s3.proxy import Proxy
from tests.helpers.s3.server import S3Server

KILLED = """
import json, os, signal, sys
import pyhudi

uri, options = sys.argv[1], json.loads(sys.argv[2])
stream = pyhudi.open_table(uri, storage_options=options).stream("earliest", consumer="c")
for number, batch in enumerate(stream):
    print(sorted(batch.to_arrow()["id"].to_pylist())[0], flush=True)
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    batch.commit()
"""
"""A consumer that is killed after it read its second batch."""
MAX_REQUESTS_PER_POLL = 1
MAX_REQUESTS_PER_BATCH = 16
"""14 for a commit of one file: listings, commit metadata, the file, the consumer's position."""


def make(bucket: Bucket) -> pyhudi.HudiTable:
    """Make a table with three commits of two partitions."""
    schema = pa.schema([("id", pa.string()), ("city", pa.string())])
    table = pyhudi.create_table(
        bucket.uri("t"), schema, key="id", partition_by="city", storage_options=bucket.options
    )
    for number in range(3):
        upsert(table, number)
    return table


def upsert(table: pyhudi.HudiTable, number: int) -> None:
    keys = [f"{letter}{number}" for letter in "ab"]
    table.upsert(pa.table({"id": keys, "city": ["oslo", "rome"]}))


def ids(batches: Iterable[StreamBatch]) -> list[list[str]]:
    return [sorted(batch.to_arrow()["id"].to_pylist()) for batch in batches]


@pytest.mark.parametrize("bucket", ["s3", "gcs", "azure"], indirect=True)
def test_stream_keeps_a_position_for_each_consumer(bucket: Bucket) -> None:
    table = make(bucket)
    first = table.stream("earliest", consumer="first", wait=False)
    for batch in first:
        batch.commit()
    second = table.stream("earliest", consumer="second", wait=False)
    next(second).commit()
    upsert(table, 3)
    assert ids(table.stream(consumer="first", wait=False)) == [["a3", "b3"]]
    again = ids(table.stream(consumer="second", wait=False))
    assert again == [["a1", "b1"], ["a2", "b2"], ["a3", "b3"]]
    assert set(table.consumers()["consumer"].to_pylist()) == {"first", "second"}


@pytest.mark.parametrize("bucket", ["s3", "azure"], indirect=True)
def test_stream_raises_if_two_processes_use_one_consumer(bucket: Bucket) -> None:
    table = make(bucket)
    streams = [table.stream("earliest", consumer="c", wait=False) for _ in range(2)]
    batches = [next(stream) for stream in streams]
    batches[0].commit()
    next(streams[0]).commit()
    with pytest.raises(pyhudi.ConsumerConflict):
        batches[1].commit()


@pytest.mark.parametrize("bucket", ["s3"], indirect=True)
def test_shards_divide_the_rows_of_each_commit(bucket: Bucket) -> None:
    table = make(bucket)
    shards: list[Any] = []
    for shard in ((0, 2), (1, 2)):
        shards.append([])
        for batch in table.stream("earliest", consumer="c", shard=shard, wait=False):
            shards[-1] += batch.to_arrow()["id"].to_pylist()
            batch.commit()
        assert not list(table.stream("earliest", consumer="c", shard=shard, wait=False))
    assert sorted(shards[0] + shards[1]) == ["a0", "a1", "a2", "b0", "b1", "b2"]


@pytest.mark.parametrize("bucket", ["s3"], indirect=True)
def test_stream_repeats_a_batch_whose_process_was_killed_before_commit(bucket: Bucket) -> None:
    table = make(bucket)
    program = [sys.executable, "-c", KILLED, table.uri, json.dumps(bucket.options)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert done.stdout.split() == ["a0", "a1"]
    assert ids(table.stream(consumer="c", wait=False)) == [["a1", "b1"], ["a2", "b2"]]


def test_poll_sends_one_request(s3_server: S3Server, request: pytest.FixtureRequest) -> None:
    """A poll lists the timeline; the batch of a commit reads a bounded number of files."""
    bucket = Bucket("stream-polls", "s3", s3_server)
    s3_server.make_bucket(bucket.name)
    table = make(bucket)
    proxy = Proxy(s3_server.port)
    request.addfinalizer(proxy.close)
    options = {**s3_server.options, "aws_endpoint_url": f"http://127.0.0.1:{proxy.port}"}
    reader = pyhudi.open_table(table.uri, storage_options=options)
    stream = reader.stream("latest", consumer="c")
    assert stream.next_completed() is None
    proxy.set_delay(0)
    polls = 5
    assert [stream.next_completed() for _ in range(polls)] == [None] * polls
    assert proxy.requests <= polls * MAX_REQUESTS_PER_POLL
    table.upsert(pa.table({"id": ["a9"], "city": ["oslo"]}))
    proxy.set_delay(0)
    batch = next(stream)
    assert batch.to_arrow()["id"].to_pylist() == ["a9"]
    batch.commit()
    assert proxy.requests <= MAX_REQUESTS_PER_BATCH, proxy.requests
