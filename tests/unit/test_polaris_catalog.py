"""Settings of Polaris catalogs, and answers that a real server does not give on request."""

from __future__ import annotations

import json
import pickle
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import pyhudi
from pyhudi.catalog import NamespaceCatalog, PolarisCatalog
from pyhudi.catalog.catalog_settings import settings_from_json, settings_of
from pyhudi.catalog.protocol import CatalogTable
from pyhudi.cli import main
from pyhudi.errors import ConfigError, StorageError, UnsupportedTableFeature

GENERIC = "GET polaris/v1/{prefix}/namespaces/{namespace}/generic-tables"
SETTINGS = {
    "type": "polaris",
    "uri": "https://polaris:8181/api/catalog",
    "warehouse": "lake",
    "credential": "root:s3cr3t",
}


class Answer(NamedTuple):
    status: int
    content: str | dict[str, Any]
    location: str = ""
    wait_s: float = 0


CONFIG = Answer(200, {"overrides": {"prefix": "lake"}, "endpoints": [GENERIC]})


class Server(ThreadingHTTPServer):
    """Gives the answers of a test by path, and records the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = {"/v1/config?warehouse=lake": CONFIG}
        self.requests: list[tuple[str, str | None]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def catalog(self, **settings: Any) -> PolarisCatalog:
        return PolarisCatalog(self.uri, "lake", **{"token": "t0ken", **settings})


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:  # noqa: N802 - called by the base class
        self.server.requests.append((self.path, self.headers.get("Authorization")))
        answer = self.server.answers[self.path]
        time.sleep(answer.wait_s)
        content = answer.content if isinstance(answer.content, str) else json.dumps(answer.content)
        self.send_response(answer.status)
        if answer.location:
            self.send_header("Location", answer.location)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        with suppress(BrokenPipeError):  # the client has stopped waiting
            self.wfile.write(content.encode())

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def no_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYHUDI_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def test_settings_reach_the_catalog_without_being_displayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f'{name} = "{value}"' for name, value in SETTINGS.items()]
    (tmp_path / "pyhudi.toml").write_text("\n".join(["[catalog.prod]", *lines]))
    settings = settings_of("prod")
    catalog = settings.connect()
    assert isinstance(catalog, PolarisCatalog)
    assert isinstance(catalog, NamespaceCatalog)
    assert repr(catalog) == "PolarisCatalog('https://polaris:8181/api/catalog', 'lake')"
    assert "s3cr3t" not in repr(settings)
    options = pickle.loads(pickle.dumps({"pyhudi.sync.catalog": settings.to_json()}))
    assert "s3cr3t" not in repr(options)
    assert settings_from_json(options["pyhudi.sync.catalog"]).properties == settings.properties
    assert main(["catalog", "list"]) == 0
    printed = capsys.readouterr().out
    assert "warehouse=lake" in printed
    assert "s3cr3t" not in printed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"uri": None}, "of type polaris needs uri"),
        ({"warehouse": None}, "of type polaris needs warehouse"),
        ({"url": "x"}, "unknown key 'url'\nHint: Did you mean 'uri'"),
        ({"client_secret": "x"}, "unknown key 'client_secret'\nHint: Did you mean 'credential'"),
        ({"region": "x"}, "belongs to the type glue"),
        ({"credential": None}, "needs a credential or a token"),
        ({"token": "x"}, "needs a credential or a token, and not both"),
        ({"credential": "s3cr3t"}, "is not client_id:client_secret"),
        ({"uri": "polaris:8181"}, "is not an http address"),
        ({"uri": "https://polaris:port/api"}, "is not an http address"),
        ({"uri": "https://[::1/api"}, "is not an http address"),
        ({"uri": "https://polaris/ä"}, "is not an http address"),
        ({"credential": None, "token": "s3cr3t\n"}, "characters that no token has"),
        ({"uri": "https://root:s3cr3t@polaris/api"}, "contains credentials"),
        ({"ca_file": "/missing.pem"}, "ca_file '/missing.pem' cannot be used"),
    ],
)
def test_wrong_setting_is_refused(changes: dict[str, str | None], message: str) -> None:
    settings = {key: value for key, value in {**SETTINGS, **changes}.items() if value is not None}
    with pytest.raises(ConfigError, match=message) as raised:
        pyhudi.load_catalog("prod", **settings)
    assert "s3cr3t" not in str(raised.value)


@pytest.mark.parametrize(
    ("catalog_type", "message"),
    [
        ("unity", "Unity Catalog has no data source format for Hudi tables"),
        ("gravitino", "those of a Hive metastore: use that one, with the type hive"),
        ("nessie", "pyhudi has the types hive, glue, polaris"),
    ],
)
def test_catalog_without_hudi_tables_is_refused(catalog_type: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        pyhudi.load_catalog("prod", type=catalog_type)


def test_redirect_is_not_followed(server: Server) -> None:
    """The token stays with the server that it is for."""
    other = Server()
    server.answers["/v1/config?warehouse=lake"] = Answer(302, "", f"{other.uri}/v1/config")
    with pytest.raises(StorageError, match="HTTP status 302"):
        server.catalog().list_databases()
    assert other.requests == []
    other.shutdown()
    other.server_close()


def test_server_that_does_not_answer_is_reported(server: Server) -> None:
    server.answers["/v1/lake/namespaces"] = Answer(200, {"namespaces": []}, wait_s=1)
    catalog = server.catalog(timeout_s=0.2)
    with pytest.raises(StorageError, match=r"no answer in 0\.2 seconds"):
        catalog.list_databases()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(200, "<html>Welcome</html>"), r"Polaris at \S+ did not answer with JSON"),
        (Answer(404, "<html>Not found</html>"), "HTTP status 404[\\s\\S]*Check the uri; "),
        (Answer(404, {"error": {"message": "no route"}}), "no route[\\s\\S]*Check the uri; "),
        (Answer(200, ""), "answered without an object\nHint: Check the uri"),
        (Answer(200, {"namespace": []}), "answered without 'table'"),
        (Answer(200, {"table": {"name": "trips"}}), "answered without 'format'"),
        (Answer(500, {"error": {"message": "broken", "type": "X"}}), "Apache Polaris: broken"),
    ],
)
def test_other_answers_are_no_missing_table(server: Server, answer: Answer, message: str) -> None:
    server.answers["/polaris/v1/lake/namespaces/sales/generic-tables/trips"] = answer
    with pytest.raises(StorageError, match=message):
        server.catalog().get_table("sales", "trips")


def test_server_without_generic_tables_is_refused(server: Server) -> None:
    for content in ({"overrides": {"prefix": "lake"}}, {"endpoints": [GENERIC]}, {}):
        server.answers["/v1/config?warehouse=lake"] = Answer(200, content)
        with pytest.raises(ConfigError, match="has no generic tables"):
            server.catalog().list_databases()


def test_pages_are_read_to_the_end(server: Server) -> None:
    first = {"namespaces": [["b"]], "next-page-token": "a/b"}
    server.answers["/v1/lake/namespaces"] = Answer(200, first)
    server.answers["/v1/lake/namespaces?pageToken=a%2Fb"] = Answer(200, {"namespaces": [["a"]]})
    assert server.catalog().list_databases() == ["a", "b"]
    assert {token for _, token in server.requests} == {"Bearer t0ken"}


def test_entry_has_no_columns_and_partitions() -> None:
    catalog = PolarisCatalog("http://127.0.0.1:1", "lake", token="t")
    assert catalog.get_partitions("sales", "trips") == []
    refused = partial(pytest.raises, UnsupportedTableFeature, match="no columns and no partitions")
    with refused():
        catalog.alter_table("sales", CatalogTable("trips", "file:///trips", ()), cascade=False)
    with refused():
        catalog.add_partitions("sales", "trips", (), 1)
    with refused():
        catalog.move_partitions("sales", "trips", (), 1)
    with refused():
        catalog.drop_partitions("sales", "trips", ())


@pytest.mark.parametrize(
    ("uri", "location"),
    [
        ("s3://lake/a b/", "s3://lake/a b"),
        ("/lake/a%20b", "file:///lake/a%20b"),
        ("file:///lake/a", "file:///lake/a"),
        ("file:/lake/a", "file:///lake/a"),
    ],
)
def test_location_is_a_uri(uri: str, location: str) -> None:
    assert PolarisCatalog("http://polaris", "lake", token="t").location_of(uri) == location
