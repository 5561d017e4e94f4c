"""A real S3 server on this machine, for the length of a test session; `make s3` builds it.

A bucket is a folder of plain files below `folder`, so that what a writer left can be looked at, and
read by Apache Hudi, without the server. Another S3 client, pyarrow's, sets up what is tested.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

import pyarrow.fs

from tests.helpers.server_process import end

_VERSION = "v1.8.0"
_HOME = Path(os.environ.get("PYHUDI_S3_HOME") or Path.home() / ".cache" / "pyhudi-s3")
ACCESS_KEY = "tests"
SECRET_KEY = "a-secret-that-nobody-prints"  # noqa: S105 - of a server that lives for the tests
REGION = "us-east-1"


class S3Server:
    """The server's process. `close` ends it."""

    def __init__(self, folder: Path) -> None:
        """folder: a new one for buckets, on a file system with extended attributes."""
        self.folder = folder / "buckets"
        self.folder.mkdir()
        self.port = _free_port()
        self._log = (folder / "server.log").open("wb")
        secrets = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
        address = f"127.0.0.1:{self.port}"
        self._process = subprocess.Popen(
            [_program(), "--port", address, "--region", REGION, "posix", str(self.folder)],
            env={**os.environ, **secrets, "GOMAXPROCS": "2", "GOMEMLIMIT": "256MiB"},
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._wait()
        self.client = pyarrow.fs.S3FileSystem(
            access_key=ACCESS_KEY,
            secret_key=SECRET_KEY,
            region=REGION,
            scheme="http",
            endpoint_override=address,
            allow_bucket_creation=True,
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def options(self) -> dict[str, str]:
        """Storage options that reach the server."""
        return {
            "aws_access_key_id": ACCESS_KEY,
            "aws_secret_access_key": SECRET_KEY,
            "aws_region": REGION,
            "aws_endpoint_url": self.url,
            "aws_allow_http": "true",
            "max_retries": "2",
            "retry_timeout": "20",
        }

    def make_bucket(self, name: str) -> None:
        """Makes a bucket."""
        self.client.create_dir(name)

    def mark_folder(self, bucket: str, name: str) -> None:
        """Makes the empty object that others make for a folder."""
        self.client.create_dir(f"{bucket}/{name}", recursive=True)

    def read(self, bucket: str, name: str) -> bytes:
        """An object, as the file that it is."""
        return (self.folder / bucket / name).read_bytes()

    def close(self) -> None:
        end(self._process)
        self._log.close()

    def _wait(self) -> None:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if self._process.poll() is not None:
                break
            time.sleep(0.1)
        self.close()
        raise RuntimeError(f"the S3 server did not start; see {self._log.name}")


def _program() -> str:
    path = _HOME / f"versitygw-{_VERSION}"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run `make s3`")
    return str(path)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
