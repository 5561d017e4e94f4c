"""Azure with a hierarchical namespace: directories stay after their files are deleted.

No emulator has it, so a server of this file does what Microsoft's documents say of it: lists tell
folders, a folder is deleted by its name, and only when it is empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

from pyhudi.storage.storage import Storage
from tests.cloud.test_conditional_puts import Handler, serving

_DATE = "Thu, 01 Jan 2026 00:00:00 GMT"
_ENTRY = (
    "<Blob><Name>{}</Name><Properties><Last-Modified>" + _DATE + "</Last-Modified>"
    "<Etag>1</Etag><ResourceType>{}</ResourceType><Content-Length>{}</Content-Length>"
    "<Content-Type>text/plain</Content-Type></Properties></Blob>"
)


class Namespace(Handler, BaseHTTPRequestHandler):
    """Files and folders of one container, `/lake/c`."""

    files: dict[str, bytes]
    folders: set[str]

    def name(self, path: str) -> str:
        return unquote(urlsplit(path).path).removeprefix("/lake/c").strip("/")

    def do_PUT(self) -> None:
        name = self.name(self.path)
        self.files[name] = self.content()
        parts = name.split("/")[:-1]
        self.folders.update("/".join(parts[: end + 1]) for end in range(len(parts)))
        self.answer(201, {"ETag": '"1"', "Last-Modified": _DATE})

    def do_HEAD(self) -> None:
        name = self.name(self.path)
        kind = "directory" if name in self.folders else "file"
        there = name in self.folders or name in self.files
        self.send_response(200 if there else 404)
        size = str(len(self.files.get(name, b"")))
        facts = {"ETag": '"1"', "Last-Modified": _DATE, "x-ms-resource-type": kind}
        for header, value in {**facts, "Content-Length": size}.items():
            self.send_header(header, value)
        self.end_headers()

    def do_GET(self) -> None:
        query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
        prefix, has_levels = query.get("prefix", ""), "delimiter" in query
        body = ""
        for name in sorted([*self.files, *self.folders]):
            below = name.removeprefix(prefix)
            if not name.startswith(prefix) or (has_levels and "/" in below):
                continue
            if has_levels and name in self.folders:
                body += f"<BlobPrefix><Name>{escape(name)}/</Name></BlobPrefix>"
            else:
                kind = "directory" if name in self.folders else "file"
                body += _ENTRY.format(escape(name), kind, len(self.files.get(name, b"")))
        text = f"<EnumerationResults><Blobs>{body}</Blobs><NextMarker/></EnumerationResults>"
        self.answer(200, {"Content-Type": "application/xml"}, text.encode())

    def do_POST(self) -> None:
        asked = re.findall(r"^DELETE (\S+) ", self.content().decode(), re.MULTILINE)
        parts = (
            f"--b\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
            f"HTTP/1.1 {self.delete(self.name(path))} said\r\nx-ms-version: 1\r\n\r\n"
            for number, path in enumerate(asked)
        )
        body = f"{''.join(parts)}--b--\r\n"
        self.answer(202, {"Content-Type": "multipart/mixed; boundary=b"}, body.encode())

    def delete(self, name: str) -> int:
        if name in self.folders:
            if any(other.startswith(f"{name}/") for other in (*self.files, *self.folders)):
                return 409
            self.folders.remove(name)
            return 202
        return 404 if self.files.pop(name, None) is None else 202


@pytest.fixture
def storage(no_variables: None) -> Iterator[Storage]:
    Namespace.files, Namespace.folders = {}, set()
    with serving(Namespace) as url:
        options = {"endpoint": f"{url}/lake", "token": "t", "allow_http": "true"}
        yield Storage("abfss://c@lake.dfs.core.windows.net/t", options)


def test_folders_go_with_their_files(storage: Storage) -> None:
    for path in ("x/a/b/1", "x/a/2", "x/c/d/3", "x/4", "xx/5", "6"):
        storage.put(path, b"1")
    Namespace.folders |= {"t/x/none", "t/x/none/deep", "t/x/a/none"}
    assert storage.list_dir("x")[0] == ["x/a", "x/c", "x/none"]
    assert [file.path for file in storage.list("x")] == ["x/4", "x/a/2", "x/a/b/1", "x/c/d/3"]
    storage.delete_dir("x")
    assert Namespace.folders == {"t", "t/xx"}
    assert list(Namespace.files) == ["t/xx/5", "t/6"]
    storage.delete_dir("x")
    storage.delete_dir("missing/folder")
    assert storage.list_dir("") == (["xx"], [storage.head("6")])


def test_listing_ignores_directory_markers(storage: Storage) -> None:
    storage.put("x/1", b"1")
    assert storage.head("x") is None
    assert not storage.delete("x")
    assert storage.list_dir("x")[0] == []
    assert Namespace.folders == {"t", "t/x"}
