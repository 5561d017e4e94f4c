"""Credentials that stand in a URI, where no text may show them. Storage takes them as options."""

from __future__ import annotations

import re

from pyhudi.errors import ConfigError

_SCHEME = r"([A-Za-z][A-Za-z0-9+.-]*:/+)"
_PORT = r"(?![^/:@,\s]*:\d*(?:[/,\s]|$))"
"""Not a host and its port, after which a path may have an `@`."""
_WITH_SECRET = re.compile(rf"{_SCHEME}{_PORT}[^/:@,\s]*:[^@,\s]*@")
"""`scheme://user:secret@`; a secret may have slashes."""
_WITH_NAME = re.compile(r"((?:s3[an]?|gs):/+)[^/@\s]*@")
"""A bucket has no `@` in its name. Azure's URIs do: `abfss://container@account`."""


def mask_credentials(text: str) -> str:
    """The text with `***` in place of the credentials in its URIs."""
    return _WITH_NAME.sub(r"\1***@", _WITH_SECRET.sub(r"\1***@", text))


def check_no_credentials(uri: str, name: str = "the table's URI") -> None:
    """Raises `ConfigError` for a URI that holds credentials. name: what it was given as."""
    masked = mask_credentials(uri)
    if masked != uri:
        raise ConfigError(
            f"{name} holds credentials: {masked}",
            hint="Give them as storage_options, or by environment variables.",
        )
