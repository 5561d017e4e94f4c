"""Retries of requests to an object store: failed requests, and truncated responses.

A small server on loopback simulates these faults, which a real one does not produce on request.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest

from pyhudi import events
from pyhudi.errors import StorageError
from pyhudi.storage.storage import Storage

PAGES = {"": ["t/a", "t/b/c"], "second": ["t/d"]}
"""Keys of a list's pages, by the token that asks for them."""


@dataclass
class Faults:
    """What goes wrong, and what was asked."""

    cut: dict[str, int] = field(default_factory=dict)
    """How often the answers to these requests are cut in their body, by `Handler.asked`."""
    refused: int = 0
    """How many requests are answered with 503 first."""
    asked: list[str] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    """Lists, gets and deletes of one bucket."""

    faults: Faults
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" not in query:
            self.answer("get", b"content", {"ETag": '"1"', "Last-Modified": MODIFIED})
            return
        token = query.get("continuation-token", [""])[0]
        self.answer(f"list {token}".strip(), page(token))

    def do_HEAD(self) -> None:
        self.answer("head", b"", {"ETag": '"1"', "Last-Modified": MODIFIED})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer("delete", b"<DeleteResult><Deleted><Key>t/b/c</Key></Deleted></DeleteResult>")

    def answer(self, name: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        faults = self.faults
        faults.asked.append(name)
        status = 200
        if faults.refused > 0:
            faults.refused -= 1
            status, body = 503, b"<Error><Code>SlowDown</Code><Message>m</Message></Error>"
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if faults.cut.get(name, 0) > 0 and status == 200:
            faults.cut[name] -= 1
            body = body[: len(body) // 2]
            self.close_connection = True
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


MODIFIED = "Mon, 01 Jan 2024 00:00:00 GMT"


def page(token: str) -> bytes:
    keys = "".join(
        f"<Contents><Key>{key}</Key><Size>1</Size>"
        "<LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>"
        for key in PAGES[token]
    )
    more = "" if token else "<NextContinuationToken>second</NextContinuationToken>"
    return f"<ListBucketResult>{keys}{more}</ListBucketResult>".encode()


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def storage(faults: Faults, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    for name in [name for name in os.environ if name.startswith(("AWS_", "HTTP_", "http_"))]:
        monkeypatch.delenv(name)
    handler = type("FaultyHandler", (Handler,), {"faults": faults})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    options = {
        "aws_endpoint_url": f"http://127.0.0.1:{server.server_port}",
        "aws_allow_http": True,
        "aws_access_key_id": "a",
        "aws_secret_access_key": "b",
    }
    yield Storage("s3://bucket/t", options)
    server.shutdown()
    server.server_close()
    thread.join()


def test_cut_listing_is_retried(storage: Storage, faults: Faults) -> None:
    faults.cut = {"list": 2, "list second": 1}
    assert [entry.path for entry in storage.list()] == ["a", "b/c", "d"]
    assert faults.asked == ["list", "list", "list", "list second", "list second"]


def test_cut_listing_of_one_level_is_retried(storage: Storage, faults: Faults) -> None:
    faults.cut = {"list second": 1}
    files = storage.list_dir()[1]
    assert [entry.path for entry in files] == ["a", "b/c", "d"]
    assert faults.asked == ["list", "list second", "list second"]


def test_always_cut_listing_raises(storage: Storage, faults: Faults) -> None:
    faults.cut = {"list": 1_000}
    few = Storage(storage.uri, {**storage.options, "max_retries": 2})
    with pytest.raises(StorageError, match="the answer was cut"):
        few.list()
    assert faults.asked == ["list"] * 3


def test_cut_delete_is_retried(storage: Storage, faults: Faults) -> None:
    faults.cut = {"delete": 1}
    storage.delete_dir("b")
    assert faults.asked[-2:] == ["delete", "delete"]


def test_refused_request_is_retried(storage: Storage, faults: Faults) -> None:
    faults.refused = 3
    assert storage.read("a") == b"content"
    assert faults.asked == ["get"] * 4


def counts_since(before: dict[str, events.Requests]) -> dict[str, events.Requests]:
    now = events.storage_requests()
    return {kind: now[kind].since(before[kind]) for kind in now if now[kind] != before[kind]}


def test_retries_and_throttled_requests_are_counted(storage: Storage, faults: Faults) -> None:
    """An equal request after that is no retry, and neither is one that failed for good."""
    body = b"<Error><Code>SlowDown</Code><Message>m</Message></Error>"
    faults.refused = 3
    before = events.storage_requests()
    assert storage.read("a") == b"content"
    received = 3 * len(body) + len(b"content")
    assert counts_since(before) == {"read": (4, 0, received, 3, 3)}
    before = events.storage_requests()
    assert storage.read("a") == b"content"
    assert counts_since(before) == {"read": (1, 0, len(b"content"), 0, 0)}
    faults.cut = {"list": 1}
    before = events.storage_requests()
    storage.list()
    (count,) = counts_since(before).values()
    assert (count.total, count.retries, count.throttled) == (3, 1, 0)
    assert count.bytes_received == len(page("")) + len(page("second"))


def test_max_retries_limits_requests(storage: Storage, faults: Faults) -> None:
    faults.refused = 1_000
    few = Storage(storage.uri, {**storage.options, "max_retries": 1})
    with pytest.raises(StorageError, match="SlowDown"):
        few.read("a")
    assert faults.asked == ["get", "get"]


@pytest.mark.slow
def test_unreachable_server_raises_after_timeout(storage: Storage) -> None:
    """Long before the time for retries is over: the endpoint may be wrong."""
    options = {**storage.options, "aws_endpoint_url": "http://127.0.0.1:9", "retry_timeout": 100000}
    with pytest.raises(StorageError, match="the server was never reached"):
        Storage(storage.uri, options).read("a")
