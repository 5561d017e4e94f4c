"""A real Apache Polaris on this machine, in a process of its own; `make polaris` compiles it."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from tests.helpers.java_server import JavaServer, free_port

_HOME = Path(os.environ.get("PYHUDI_POLARIS_HOME") or Path.home() / ".cache" / "pyhudi-polaris")
_POM = Path(__file__).parent / "server" / "pom.xml"
_FEATURE = "polaris.features."


class PolarisServer:
    """One server with its catalogs in memory. `close` ends it.

    `call` uses its API without pyhudi.
    """

    credential = "root:s3cr3t"

    def __init__(
        self, folder: Path, certificate: tuple[Path, Path] | None = None, **settings: str
    ) -> None:
        """folder: a new one for its log.

        certificate: the files of one and its key, for a server with TLS, too. settings: more
        settings, by names with _ for a dot.
        """
        home = _home()
        self._port, self._tls_port = free_port(), free_port()
        features = {
            f'{_FEATURE}"SUPPORTED_CATALOG_STORAGE_TYPES"': '["FILE","S3"]',
            f'{_FEATURE}"ALLOW_INSECURE_STORAGE_TYPES"': "true",
        }
        properties = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": str(self._port),
            "quarkus.management.host": "127.0.0.1",
            "quarkus.management.port": str(free_port()),
            "quarkus.log.file.enable": "false",
            "polaris.persistence.type": "in-memory",
            "polaris.readiness.ignore-severe-issues": "true",
            "polaris.bootstrap.credentials": f"POLARIS,{self.credential.replace(':', ',')}",
            **features,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        if certificate is not None:
            files = dict(zip(("files", "key-files"), map(str, certificate), strict=True))
            properties |= {f"quarkus.http.ssl.certificate.{name}": f for name, f in files.items()}
            properties["quarkus.http.ssl-port"] = str(self._tls_port)
        self._server = JavaServer(
            folder,
            self._port,
            str(home / "quarkus-run.jar"),
            *(f"-D{name}={value}" for name, value in properties.items()),
            "io.quarkus.bootstrap.runner.QuarkusEntryPoint",
            java=str(home / "java" / "bin" / "java"),
        )
        self.token = self.new_token()

    @property
    def uri(self) -> str:
        """What clients connect to."""
        return f"http://127.0.0.1:{self._port}/api/catalog"

    @property
    def tls_uri(self) -> str:
        """What clients connect to with TLS."""
        return f"https://127.0.0.1:{self._tls_port}/api/catalog"

    def new_token(self) -> str:
        """A token of the first principal."""
        name, secret = self.credential.split(":")
        form = {
            "grant_type": "client_credentials",
            "client_id": name,
            "client_secret": secret,
            "scope": "PRINCIPAL_ROLE:ALL",
        }
        request = Request(f"{self.uri}/v1/oauth/tokens", urlencode(form).encode(), method="POST")
        with urlopen(request) as response:
            token: str = json.load(response)["access_token"]
        return token

    def create_catalog(self, name: str, location: str) -> None:
        """Make a catalog with its tables below a location of local files or of S3."""
        storage = "FILE" if location.startswith("file:") else "S3"
        catalog = {
            "type": "INTERNAL",
            "name": name,
            "properties": {"default-base-location": location},
            "storageConfigInfo": {"storageType": storage, "allowedLocations": [location]},
        }
        answer = self.call("POST", "../management/v1/catalogs", {"catalog": catalog})
        assert answer["name"] == name

    def call(self, method: str, path: str, content: Any = None) -> Any:
        """The answer to a request; for one that fails, the error's type in Polaris."""
        data = None if content is None else json.dumps(content).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        base = self.uri
        while path.startswith("../"):
            base, path = base.rpartition("/")[0], path.removeprefix("../")
        try:
            with urlopen(Request(f"{base}/{path}", data, headers, method=method)) as response:
                text = response.read()
        except HTTPError as error:
            return json.loads(error.read() or "{}").get("error", {}).get("type", error.code)
        return json.loads(text) if text else None

    def close(self) -> None:
        """Ends it."""
        self._server.close()


def _home() -> Path:
    path = _HOME / f"server-{hashlib.sha256(_POM.read_bytes()).hexdigest()[:12]}"
    if not path.is_dir():
        raise RuntimeError(f"{path} is missing: run `make polaris`")
    return path
