"""Azure's Blob Storage on this machine, for the length of a test session: Azurite, in memory.

`make clouds` installs it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import urllib.parse
import urllib.request
from email.utils import formatdate
from pathlib import Path

from tests.helpers.server_process import ServerProcess

_HOME = Path(os.environ.get("PYHUDI_AZURE_HOME") or Path.home() / ".cache" / "pyhudi-azure")
_LOCK = Path(__file__).with_name("package-lock.json")
ACCOUNT = "lake"
KEY = base64.b64encode(b"a key that nobody prints").decode()
HOST = f"{ACCOUNT}.dfs.core.windows.net"
_VERSION = "2023-11-03"


class AzureServer:
    """The server's process. `close` ends it."""

    def __init__(self, folder: Path) -> None:
        """folder: where it says what it does."""
        command = (
            "node", _program(), "--blobHost", "127.0.0.1", "--blobPort", "0",
            "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry",
        )  # fmt: skip
        self._process = ServerProcess(command, folder, {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"})
        self.url = f"{self._process.url}/{ACCOUNT}"

    @property
    def options(self) -> dict[str, str]:
        """Storage options that reach the server."""
        return {
            "azure_storage_account_name": ACCOUNT,
            "azure_storage_account_key": KEY,
            "azure_storage_endpoint": self.url,
            "azure_allow_http": "true",
            "max_retries": "2",
            "retry_timeout": "20",
        }

    def make_bucket(self, name: str) -> None:
        """Makes a container."""
        self._call("PUT", name, "restype=container", {})

    def mark_folder(self, bucket: str, name: str) -> None:
        """Makes the empty blob that others make for a folder."""
        self._call(
            "PUT", f"{bucket}/{name}", "", {"blob-type": "BlockBlob", "meta-hdi_isfolder": "true"}
        )

    def read(self, bucket: str, name: str) -> bytes:
        """A blob."""
        return self._call("GET", f"{bucket}/{name}", "", {})

    def _call(self, method: str, path: str, query: str, facts: dict[str, str]) -> bytes:
        facts = {"date": formatdate(usegmt=True), "version": _VERSION, **facts}
        headers = {f"x-ms-{name}": value for name, value in sorted(facts.items())}
        path = urllib.parse.quote(path)
        parts = (
            *(method, *[""] * 11),
            *(f"{name}:{value}" for name, value in headers.items()),
            f"/{ACCOUNT}/{ACCOUNT}/{path}",
            *([query.replace("=", ":")] if query else []),
        )
        digest = hmac.digest(base64.b64decode(KEY), "\n".join(parts).encode(), hashlib.sha256)
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
        request = urllib.request.Request(  # noqa: S310 - of this machine
            f"{self.url}/{path}?{query}", method=method, headers=headers
        )
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - of this machine
            content: bytes = answer.read()
            return content

    def close(self) -> None:
        """Ends it."""
        self._process.close()


def _program() -> str:
    # As setup.sh names it.
    home = _HOME / f"azurite-{hashlib.sha256(_LOCK.read_bytes()).hexdigest()[:12]}"
    if not home.exists():
        raise FileNotFoundError(f"{home} is missing: run `make clouds`")
    return str(home / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js")
