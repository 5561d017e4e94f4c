"""A server of each cloud, one of HDFS, and a bucket or a folder for each test."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from pyhudi.storage.storage import Storage
from tests.helpers.azure import server as azure
from tests.helpers.azure.server import AzureServer
from tests.helpers.gcs import server as gcs
from tests.helpers.gcs.server import GcsServer
from tests.helpers.hdfs.server import HdfsServer
from tests.helpers.s3 import server as s3
from tests.helpers.s3.server import S3Server

CLOUDS = ("s3", "gcs", "azure")
_VARIABLES = (
    "AWS_",
    "GOOGLE_",
    "GCE_METADATA_",
    "SERVICE_ACCOUNT",
    "AZURE_",
    "AZURITE_",
    "HADOOP_",
)
_numbers = itertools.count(1)


def pytest_itemcollected(item: pytest.Item) -> None:
    of_hdfs = item.path.name.startswith("test_hdfs")
    item.add_marker(pytest.mark.hdfs if of_hdfs else pytest.mark.s3)


class Server(Protocol):
    """A server of a cloud, and a client of it that is not pyhudi's."""

    @property
    def url(self) -> str: ...

    @property
    def options(self) -> dict[str, str]: ...

    def make_bucket(self, name: str) -> None: ...

    def mark_folder(self, bucket: str, name: str) -> None: ...

    def read(self, bucket: str, name: str) -> bytes: ...


@dataclass(frozen=True)
class Cloud:
    """What tests say otherwise of each cloud."""

    place: str
    """A location: what stands for a bucket's name, and the path in it."""
    other_scheme: str
    """Another scheme of the same place."""
    endpoint: str
    """The option that names the server."""
    secret_option: str
    secret: str
    wrong_secret: str
    """Of the form that a secret has."""
    missing: str
    """What the server says of a bucket that is not there."""
    refused: str
    """What it says to a wrong secret."""
    replaced: str
    """The header that asks for the version to replace."""


_AZURE_PLACE = f"{{scheme}}://{{bucket}}@{azure.HOST}/{{path}}"
KINDS = {
    "s3": Cloud(
        "{scheme}://{bucket}/{path}", "s3a", "aws_endpoint_url", "aws_secret_access_key",
        s3.SECRET_KEY, "not-the-secret-at-all", "NoSuchBucket", "SignatureDoesNotMatch", "If-Match",
    ),
    "gcs": Cloud(
        "{scheme}://{bucket}/{path}", "gs", "google_base_url", "google_bearer_token",
        gcs.SECRET, "not-the-secret-at-all", "NoSuchBucket", "AuthenticationRequired",
        "x-goog-if-generation-match",
    ),
    "azure": Cloud(
        _AZURE_PLACE, "wasbs", "azure_storage_endpoint", "azure_storage_account_key",
        azure.KEY, "bm90LXRoZS1zZWNyZXQtYXQtYWxs", "ContainerNotFound", "AuthorizationFailure",
        "If-Match",
    ),
}  # fmt: skip
_SCHEMES = {"s3": "s3", "gcs": "gs", "azure": "abfss"}


@dataclass(frozen=True)
class Bucket:
    """A bucket of a server's."""

    name: str
    cloud: str
    server: Server

    @property
    def options(self) -> dict[str, str]:
        return self.server.options

    @property
    def kind(self) -> Cloud:
        return KINDS[self.cloud]

    @property
    def folder(self) -> Path:
        """Where the server keeps it; that of S3 alone has plain files."""
        assert isinstance(self.server, S3Server)
        return self.server.folder / self.name

    def uri(self, prefix: str, scheme: str = "", bucket: str = "") -> str:
        scheme = scheme or _SCHEMES[self.cloud]
        return self.kind.place.format(scheme=scheme, bucket=bucket or self.name, path=prefix)

    def storage(self, prefix: str = "table") -> Storage:
        return Storage(self.uri(prefix), self.options)

    def read(self, path: str) -> bytes:
        """An object, as another client reads it."""
        return self.server.read(self.name, path)

    def upload(self, folder: Path, prefix: str) -> str:
        """Puts a local table there and gives its URI."""
        storage = self.storage(prefix)
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            storage.put(file.relative_to(folder).as_posix(), file.read_bytes())
        return self.uri(prefix)

    def download(self, prefix: str, folder: Path) -> Path:
        """What is there as a local table, by another client."""
        for entry in self.storage(prefix).list():
            file = folder / entry.path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(self.read(f"{prefix}/{entry.path}"))
        return folder


@dataclass(frozen=True)
class HdfsFolder:
    """A folder of HDFS."""

    name: str
    server: HdfsServer

    def uri(self, path: str = "table") -> str:
        return f"{self.server.url}/{self.name}/{path}"

    def storage(self, path: str = "table", **options: str) -> Storage:
        return Storage(self.uri(path), options)

    def download(self, path: str, folder: Path) -> Path:
        """What is there as a local table."""
        storage = self.storage(path)
        for entry in storage.list():
            file = folder / entry.path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(storage.read(entry.path))
        return folder


def mostly_s3(
    names: Sequence[str], all_cases: Sequence[object], few: Sequence[object]
) -> pytest.MarkDecorator:
    """A bucket that speaks S3 with every case, and one of each other cloud with a few."""
    cases = [("s3", case) for case in all_cases]
    cases += [(cloud, case) for cloud in CLOUDS[1:] for case in few]
    flat = [(cloud, *(case if isinstance(case, tuple) else (case,))) for cloud, case in cases]
    return pytest.mark.parametrize(("bucket", *names), flat, indirect=["bucket"])


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    server = S3Server(tmp_path_factory.mktemp("s3"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def gcs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GcsServer]:
    server = GcsServer(tmp_path_factory.mktemp("gcs"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def azure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    server = AzureServer(tmp_path_factory.mktemp("azure"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def hdfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    server = HdfsServer(tmp_path_factory.mktemp("hdfs"))
    yield server
    server.close()


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that tells nothing of any bucket."""
    for name in [name for name in os.environ if name.startswith(_VARIABLES)]:
        monkeypatch.delenv(name)


@pytest.fixture(params=CLOUDS)
def bucket(request: pytest.FixtureRequest, no_variables: None) -> Bucket:
    """A bucket of its own, in each of the clouds."""
    return _make(request.param, request.getfixturevalue(f"{request.param}_server"))


@pytest.fixture
def s3_bucket(s3_server: S3Server, no_variables: None) -> Bucket:
    """A bucket of its own that speaks S3."""
    return _make("s3", s3_server)


@pytest.fixture
def hdfs(hdfs_server: HdfsServer, no_variables: None) -> HdfsFolder:
    """A folder of its own on HDFS."""
    return HdfsFolder(f"folder{next(_numbers)}", hdfs_server)


def _make(cloud: str, server: Server) -> Bucket:
    made = Bucket(f"bucket{next(_numbers)}", cloud, server)
    server.make_bucket(made.name)
    return made
