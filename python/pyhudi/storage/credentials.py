"""Credentials in a URI, which no message may show. Storage takes them as options."""

from __future__ import annotations

import re

from pyhudi.errors import ConfigError

_SCHEME = r"([A-Za-z][A-Za-z0-9+.-]*:/+)"
_PORT = r"(?![^/:@,\s]*:\d*(?:[/,\s]|$))"
"""Excludes a host and its port, after which a path may have an `@`."""
_WITH_SECRET = re.compile(rf"{_SCHEME}{_PORT}[^/:@,\s]*:[^@,\s]*@")
"""`scheme://user:secret@`; a secret may have slashes."""
_WITH_NAME = re.compile(r"((?:s3[an]?|gs):/+)[^/@\s]*@")
"""A bucket has no `@` in its name. Azure's URIs do: `abfss://container@account`."""


def mask_credentials(text: str) -> str:
    """Replace the credentials in the URIs of a text by `***`."""
    return _WITH_NAME.sub(r"\1***@", _WITH_SECRET.sub(r"\1***@", text))


def check_no_credentials(uri: str, name: str = "the table's URI") -> None:
    """Raise `ConfigError` for a URI that contains credentials. name: the name of its argument."""
    masked = mask_credentials(uri)
    if masked != uri:
        raise ConfigError(
            f"{name} contains credentials: {masked}",
            hint="Give them as storage_options, or by environment variables.",
        )
