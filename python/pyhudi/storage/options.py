"""The options of storage: which there are, by their names in `object_store` and deltalake.

What a bucket is reached with is theirs alone: the table's name for it is the URI's business.
The provider's part of a name (`aws_`, `google_`, `azure_`, `azure_storage_`) may be left out, and
letters may be large. `retry_timeout` is a number of seconds, after which a failing request is given
up (180), and `max_retries` a number of tries that may end it before (none); other times are such as
"30s". Without an option, the environment variable of its name in large letters is taken. Those of
HDFS are properties of Hadoop's besides, such as `dfs.client.use.datanode.hostname`. Values can be
secrets, so nothing here shows one.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from pyhudi.errors import ConfigError
from pyhudi.storage.credentials import check_no_credentials
from pyhudi.storage.option_names import BY_SCHEME, Names


class StorageOptions(dict[str, str]):
    """Options with their full names. Shown, it tells names and no value."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(sorted(self))})"

    __str__ = __repr__


def scheme_of(uri: str) -> str | None:
    """The URI's scheme in small letters, None for a path."""
    scheme, found, rest = uri.partition(":")
    return scheme.lower() if found and rest.startswith("/") else None


def is_remote(uri: str) -> bool:
    """Whether the URI is one of a bucket that pyhudi can reach, or of HDFS."""
    return scheme_of(uri) in BY_SCHEME


def is_bucket(uri: str) -> bool:
    """Whether it is a bucket's: no folders, and objects that come whole or not at all."""
    return is_remote(uri) and not is_hdfs(uri)


def is_hdfs(uri: str) -> bool:
    """Whether it is one of HDFS."""
    return scheme_of(uri) == "hdfs"


def check_storage_options(uri: str, options: Mapping[str, object] | None) -> StorageOptions:
    """The options by their full names, as text.

    Raises `ConfigError` for an unknown one, with the nearest known, and for one given twice. Those
    of a local place are left for the store to refuse.
    """
    given = options or {}
    names = BY_SCHEME.get(scheme_of(uri) or "")
    if names is None:
        return StorageOptions({name: str(value) for name, value in given.items()})
    checked = StorageOptions()
    for name, value in given.items():
        full = _full_name(name, names)
        if full in checked:
            raise ConfigError(f"the storage option {full!r} is given twice")
        checked[full] = str(value).lower() if isinstance(value, bool) else str(value)
        if "proxy" not in full:
            # Errors of requests name the endpoint; of proxies they do not.
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
            f"the storage option {name!r} is not taken", hint=f"The table's URI names the {place}."
        )
    spellings = (*(f"{prefix}{short}" for prefix in names.prefixes), short)
    known = sorted(names.full)
    near = [one for name in spellings for one in difflib.get_close_matches(name, known, n=1)]
    raise ConfigError(
        f"the storage option {name!r} is unknown",
        hint=f"Did you mean {near[0]}?" if near else "",
    )
