"""JSON requests to a catalog's REST API, by the standard library. Paths and tokens are given.

A redirect is not followed: it would send the token to another server.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from pyhudi.config.bounded_json import parse_json
from pyhudi.config.certificate_files import trusting_context
from pyhudi.errors import ConfigError, CorruptTable, StorageError
from pyhudi.storage.options import mask_credentials

_MAX_BYTES = 64 << 20
_NOT_CONTROL = 0x20
"""The first character that is no control character."""


@dataclass(frozen=True)
class Response:
    """An answer of the server."""

    status: int
    content: Any
    """The parsed JSON, None for an empty answer."""

    @property
    def is_success(self) -> bool:
        """Whether the server did what was requested."""
        return 200 <= self.status < 300  # noqa: PLR2004 - HTTP's own numbers

    @property
    def error_type(self) -> str:
        """The name of the error, "" if the answer has none."""
        return str(self._error.get("type") or self._error.get("error") or "")

    @property
    def message(self) -> str:
        """The text of the error."""
        error = self._error
        text = error.get("message") or error.get("error_description")
        return str(text or f"HTTP status {self.status}")

    @property
    def _error(self) -> Mapping[str, Any]:
        content = self.content if isinstance(self.content, dict) else {}
        nested = content.get("error")
        return nested if isinstance(nested, dict) else content


class RestClient:
    """Requests to one server. Threads may share it."""

    def __init__(self, name: str, uri: str, *, ca_file: str | None, timeout_s: float) -> None:
        """Prepare requests. Raises `ConfigError` for a wrong URI or file.

        name: the server in errors.
        """
        parts = _split(uri)
        if parts is None or parts.scheme not in ("http", "https") or not parts.netloc:
            msg = f"the uri {mask_credentials(uri)!r} of {name} is not an http address"
            raise ConfigError(msg, hint="It is such as https://host:8181/api/catalog.")
        if parts.username is not None:
            raise ConfigError(f"the uri of {name} contains credentials")
        self.uri = uri.rstrip("/")
        self._name = name
        self._timeout_s = timeout_s
        self._opener = build_opener(_NoRedirects, HTTPSHandler(context=trusting_context(ca_file)))

    def send(
        self,
        method: str,
        path: str,
        *,
        content: Any = None,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Return the server's answer, also to a request that fails there.

        Raises `StorageError` without an answer in time, or for one that is not JSON.

        path: below the URI, with its query. content: what is sent as JSON. form: what is sent as a
        form instead.
        """
        sent = {"Accept": "application/json", **(headers or {})}
        data = None
        if form is not None:
            data = urlencode(form).encode()
        elif content is not None:
            data = json.dumps(content).encode()
            sent["Content-Type"] = "application/json"
        request = Request(f"{self.uri}{path}", data, sent, method=method)  # noqa: S310 - checked above
        try:
            with self._opener.open(request, timeout=self._timeout_s) as response:
                status, text = response.status, response.read(_MAX_BYTES + 1)
        except HTTPError as error:
            return self._failure(error)
        except (OSError, HTTPException) as error:
            raise self._unreachable(error) from error
        return Response(status, self._parse(text))

    def _failure(self, error: HTTPError) -> Response:
        """Return the answer with an error status. Its text may be a web page, or incomplete."""
        with error:
            try:
                return Response(error.code, self._parse(error.read(_MAX_BYTES + 1)))
            except (OSError, HTTPException):
                return Response(error.code, None)

    def _parse(self, text: bytes) -> Any:
        if not text.strip():
            return None
        try:
            return parse_json(text, self._name, max_bytes=_MAX_BYTES, is_file=False)
        except CorruptTable as error:
            msg = f"{self._name} at {self.uri} did not answer with JSON"
            raise StorageError(msg, hint="Check the uri of the catalog.") from error

    def _unreachable(self, error: Exception) -> StorageError:
        reason = error.reason if isinstance(error, URLError) else error
        hint = "Check the uri of the catalog, and that the server is running."
        if isinstance(reason, ssl.SSLCertVerificationError):
            hint = "Set ca_file to the PEM file of the authority that signed the certificate."
        if isinstance(reason, TimeoutError):
            reason = f"no answer in {self._timeout_s:g} seconds"
        return StorageError(f"{self._name} at {self.uri}: {reason}", hint=hint)


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(
        self,
        req: Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        """Return nothing, so that the redirect is an error."""


def path_segment(value: str, what: str) -> str:
    """Return a name as a part of a path. Raises `ConfigError` for a name that cannot be one.

    what: what the name belongs to, in the error.
    """
    if value in ("", ".", "..") or any(ord(each) < _NOT_CONTROL for each in value):
        raise ConfigError(f"{value!r} cannot be the name of a {what}")
    return quote(value, safe="")


def _split(uri: str) -> SplitResult | None:
    """Return the parts of an address, None for text that is no address."""
    try:
        parts = urlsplit(uri)
        parts.port  # noqa: B018 - it is parsed here
    except ValueError:
        return None
    return parts if uri.isascii() and not parts.query else None
