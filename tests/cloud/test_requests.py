"""Kinds of requests, counted in each cloud."""

from __future__ import annotations

from pyhudi import events
from tests.cloud.conftest import Bucket


def test_requests_are_counted_by_kind(bucket: Bucket) -> None:
    """One request for each call; a delete asks first whether there is a file."""
    storage = bucket.storage()
    storage.exists("a")
    before = events.storage_requests()
    storage.put("a", b"12345")
    assert storage.read("a") == b"12345"
    assert storage.head("a")
    assert len(storage.list()) == 1
    storage.delete("a")
    now = {kind: total.since(before[kind]) for kind, total in events.storage_requests().items()}
    assert {kind: requests.total for kind, requests in now.items()} == {
        "read": 1,
        "head": 2,
        "list": 1,
        "write": 1,
        "delete": 1,
        "other": 0,
    }
    assert (now["write"].bytes_sent, now["read"].bytes_received) == (5, 5)
    assert now["list"].bytes_received > 100
    assert (now["head"].bytes_sent, now["head"].bytes_received) == (0, 0)
