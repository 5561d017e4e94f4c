"""Google Cloud Storage on this machine, for the length of a test session; `make clouds` builds it.

fake-gcs-server in memory, with a front for the XML API. See `front/main.go`.
"""

from __future__ import annotations

import hashlib
import json
import os
import urllib.parse
import urllib.request
from pathlib import Path

from tests.helpers.server_process import ServerProcess

_HOME = Path(os.environ.get("PYHUDI_GCS_HOME") or Path.home() / ".cache" / "pyhudi-gcs")
_SOURCE = Path(__file__).parent / "front"
SECRET = "a-token-that-nobody-prints"  # noqa: S105 - of a server that lives for the tests
_PAGE = 5
"""Objects in a page of a list: few, so that lists of the tests have several."""


class GcsServer:
    """The server's process. `close` ends it."""

    def __init__(self, folder: Path, lifetime: str = "1h") -> None:
        """lifetime: of the tokens that it gives out as a machine's metadata server, such as 1s."""
        self.account = folder / "account.json"
        """The file of a service account."""
        command = (
            _program(), "-token", SECRET, "-page", str(_PAGE), "-lifetime", lifetime,
            "-account", str(self.account),
        )  # fmt: skip
        self._process = ServerProcess(command, folder, {"GOMAXPROCS": "2"})
        self.url = self._process.url

    @property
    def options(self) -> dict[str, str]:
        """Storage options that reach the server."""
        return {
            "google_base_url": self.url,
            "google_bearer_token": SECRET,
            "max_retries": "2",
            "retry_timeout": "20",
        }

    def make_bucket(self, name: str) -> None:
        """Makes a bucket."""
        self._json("/storage/v1/b", json.dumps({"name": name}).encode())

    def mark_folder(self, bucket: str, name: str) -> None:
        """Makes the empty object that others make for a folder."""
        name = urllib.parse.quote(f"{name}/", safe="")
        self._json(f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}", b"")

    def read(self, bucket: str, name: str) -> bytes:
        """An object, by the JSON API."""
        name = urllib.parse.quote(name, safe="")
        return self._json(f"/storage/v1/b/{bucket}/o/{name}?alt=media", None)

    def _json(self, path: str, data: bytes | None) -> bytes:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            content: bytes = answer.read()
            return content

    def close(self) -> None:
        """Ends it."""
        self._process.close()


def _program() -> str:
    # As setup.sh names it.
    source = b"".join(path.read_bytes() for path in sorted(_SOURCE.iterdir()))
    path = _HOME / f"gcs-front-{hashlib.sha256(source).hexdigest()[:12]}"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run `make clouds`")
    return str(path)
