"""The options of storage, by their names in `object_store` and deltalake, and its credentials.

They configure the access to an object store; the URI names the bucket. The provider's part of a
name (`aws_`, `google_`, `azure_`, `azure_storage_`) is optional, and case does not matter.
`retry_timeout` is a number of seconds after which a failing request is given up (180), and
`max_retries` a number of retries that may end it earlier (no limit); other times are such as
"30s". Without an option, the environment variable of its name in upper case is used. HDFS also
takes properties of Hadoop, such as `dfs.client.use.datanode.hostname`. Values can be secrets, so
nothing here shows one. A URI must not contain credentials.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.storage.option_names import BY_SCHEME, Names
from pyhudi.suggestions import did_you_mean


class StorageOptions(dict[str, str]):
    """Options with their full names. The representation contains names and no values."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(sorted(self))})"

    __str__ = __repr__


def scheme_of(uri: str) -> str | None:
    """Return the URI's scheme in lower case, None for a path."""
    scheme, colon, rest = uri.partition(":")
    return scheme.lower() if colon and rest.startswith("/") else None


_TABLE_NAME = re.compile(r"[^\W\d]\w*(\.[^\s./\\:]+){2}")


def is_table_name(uri: str | os.PathLike[str]) -> bool:
    """Return whether an argument is a table's name in a catalog, not a location.

    A name has three parts: catalog, database and table. Text with a slash or a scheme is a
    location, and so is an existing directory.
    """
    if not isinstance(uri, str):
        return getattr(uri, "is_table_name", False)
    return _TABLE_NAME.fullmatch(uri) is not None and not os.path.isdir(uri)  # noqa: PTH112 - text stays text


def is_remote(uri: str) -> bool:
    """Return whether the URI is one of a supported object store, or of HDFS."""
    return scheme_of(uri) in BY_SCHEME


def is_bucket(uri: str) -> bool:
    """Return whether it is of an object store: no directories, and atomic writes of objects."""
    return is_remote(uri) and not is_hdfs(uri)


def is_s3(uri: str) -> bool:
    """Return whether it is of S3 or a compatible server."""
    return scheme_of(uri) in ("s3", "s3a")


def is_hdfs(uri: str) -> bool:
    """Return whether it is of HDFS."""
    return scheme_of(uri) == "hdfs"


def check_storage_options(uri: str, options: Mapping[str, object] | None) -> StorageOptions:
    """Return the options by their full names, as strings.

    Raises `ConfigError` for an unknown one, with the closest name, and for a duplicate;
    `UnsupportedTableFeature` for an option of a local path.
    """
    entries = options or {}
    names = BY_SCHEME.get(scheme_of(uri) or "")
    if entries and scheme_of(uri) in (None, "file"):
        msg = f"storage option {min(entries)!r} for the local path {uri}"
        raise UnsupportedTableFeature(msg, hint="Leave storage_options out for local paths.")
    if names is None:
        return StorageOptions({name: str(value) for name, value in entries.items()})
    checked = StorageOptions()
    for name, value in entries.items():
        full = _full_name(name, names)
        if full in checked:
            raise ConfigError(f"the storage option {full!r} is set twice")
        checked[full] = str(value).lower() if isinstance(value, bool) else str(value)
        if "proxy" not in full:
            # Errors of requests name the endpoint, but no proxy.
            check_no_credentials(checked[full], f"the storage option {full!r}")
    return checked


def _full_name(name: str, names: Names) -> str:
    full = names.find(name)
    if full is not None:
        return full
    short = names.short(name)
    if short in names.in_uri:
        place = min(names.in_uri)
        raise ConfigError(
            f"the storage option {name!r} is not supported",
            hint=f"The table's URI names the {place}.",
        )
    spellings = (*(f"{prefix}{short}" for prefix in names.prefixes), short)
    accepted = sorted(names.full)
    suggestions = (did_you_mean(spelling, accepted) for spelling in spellings)
    hint = next(filter(None, suggestions), "")
    raise ConfigError(f"the storage option {name!r} is unknown", hint=hint)


# --- credentials in URIs --------------------------------------------------------------------------


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
