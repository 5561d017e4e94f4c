"""One S3 server for all tests of buckets, and a bucket for each."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyhudi.storage.storage import Storage
from tests.helpers.s3.server import S3Server

_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.s3)


@dataclass(frozen=True)
class Bucket:
    """A bucket of the server's."""

    name: str
    server: S3Server

    @property
    def options(self) -> dict[str, str]:
        return self.server.options

    @property
    def folder(self) -> Path:
        """Where the server keeps it."""
        return self.server.folder / self.name

    def uri(self, prefix: str, scheme: str = "s3") -> str:
        return f"{scheme}://{self.name}/{prefix}"

    def storage(self, prefix: str = "table") -> Storage:
        return Storage(self.uri(prefix), self.options)

    def upload(self, folder: Path, prefix: str) -> str:
        """Puts a local table there and gives its URI."""
        storage = self.storage(prefix)
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            storage.put(file.relative_to(folder).as_posix(), file.read_bytes())
        return self.uri(prefix)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    server = S3Server(tmp_path_factory.mktemp("s3"))
    yield server
    server.close()


@pytest.fixture
def bucket(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """A bucket of its own, and an environment that tells nothing of any other."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    made = Bucket(f"bucket{next(_numbers)}", s3_server)
    s3_server.client.create_dir(made.name)
    return made
