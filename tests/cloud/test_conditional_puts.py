"""Conditional puts where the way to the server, or the server, is not what it should be."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import pyhudi
from pyhudi.storage.storage import Storage
from tests.cloud.conftest import Bucket


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The URL of a server of this process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        pass

    def content(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class Overlooking(Handler):
    """Takes every object, whatever the condition."""

    def do_PUT(self) -> None:
        self.content()
        self.answer(
            201,
            {
                "ETag": '"1"',
                "x-goog-generation": "1",
                "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT",
            },
        )


def test_put_refuses_server_without_conditional_puts(bucket: Bucket) -> None:
    with serving(Overlooking) as url:
        storage = Storage(bucket.uri("t"), {**bucket.options, bucket.kind.endpoint: url})
        with pytest.raises(pyhudi.UnsupportedTableFeature, match="no conditional puts"):
            storage.put_if_absent(".hoodie/hoodie.properties", b"1")
        with pytest.raises(pyhudi.UnsupportedTableFeature, match=bucket.kind.replaced):
            storage.replace_version(".hoodie/.locks/table_lock.json", b"1", None)


class Losing(Handler):
    """A proxy that passes every request on, and loses the first answer to each key's put."""

    seen: set[str]

    def do_PUT(self) -> None:
        self.forward()

    def do_HEAD(self) -> None:
        self.forward()

    def do_GET(self) -> None:
        self.forward()

    def forward(self) -> None:
        _, _, host, path = self.path.split("/", 3)
        server = http.client.HTTPConnection(host)
        server.request(self.command, f"/{path}", self.content(), dict(self.headers))
        answer = server.getresponse()
        body = answer.read()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        server.close()
        if self.command == "PUT" and path not in self.seen:
            self.seen.add(path)
            self.answer(500, {})
        elif self.command == "HEAD":
            self.send_response(answer.status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
        else:
            names = ("etag", "last-modified", "x-goog-generation")
            kept = {name: headers[name] for name in names if name in headers}
            self.answer(answer.status, kept, body)


def test_put_finds_own_object_after_lost_response(bucket: Bucket) -> None:
    bucket.storage().put("theirs", b"first")
    assert bucket.storage().put_if_absent("others", b"first")
    Losing.seen = set()
    with serving(Losing) as url:
        storage = Storage(bucket.uri("table"), {**bucket.options, "proxy_url": url})
        assert storage.put_if_absent("ours", b"1")
        assert not storage.put_if_absent("theirs", b"2")
        assert not storage.put_if_absent("others", b"2")
        assert len(Losing.seen) == 3
    read = bucket.storage().read
    assert (read("ours"), read("theirs"), read("others")) == (b"1", b"first", b"first")


def test_replace_finds_own_version_after_lost_response(bucket: Bucket) -> None:
    first = bucket.storage().replace_version("lock", b"first", None)
    assert first is not None
    Losing.seen = set()
    with serving(Losing) as url:
        storage = Storage(bucket.uri("table"), {**bucket.options, "proxy_url": url})
        second = storage.replace_version("lock", b"second", first)
        assert second == storage.read_version("lock")[1]  # type: ignore[index]
        assert storage.replace_version("lock", b"late", first) is None
        assert Losing.seen
    assert bucket.storage().read("lock") == b"second"
