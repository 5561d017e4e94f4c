"""The options of storage: which there are, by their names in `object_store` and deltalake.

What a bucket is reached with is theirs alone: the table's name for it is the URI's business.
Values can be secrets, so nothing here shows one.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from pyhudi.errors import ConfigError

_AWS = (
    "access_key_id",
    "secret_access_key",
    "session_token",
    "region",
    "default_region",
    "endpoint_url",
    "endpoint_url_s3",
    "virtual_hosted_style_request",
    "skip_signature",
    "unsigned_payload",
    "checksum_algorithm",
    "disable_tagging",
    "disable_bulk_delete",
    "request_payer",
    "s3_express",
    "imdsv1_fallback",
    "metadata_endpoint",
    "container_credentials_relative_uri",
    "container_credentials_full_uri",
    "container_authorization_token_file",
    "web_identity_token_file",
    "role_arn",
    "role_session_name",
    "endpoint_url_sts",
    "server_side_encryption",
    "sse_kms_key_id",
    "sse_bucket_key_enabled",
    "sse_customer_key_base64",
    "allow_http",
)
_CLIENT = (
    "allow_invalid_certificates",
    "connect_timeout",
    "timeout",
    "read_timeout",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_url",
    "proxy_ca_certificate",
    "proxy_excludes",
    "http1_only",
    "user_agent",
    "max_retries",
    "retry_timeout",
)
_OTHER_NAMES = {"endpoint": "endpoint_url", "token": "session_token"}

S3_OPTIONS = frozenset((*(f"aws_{name}" for name in _AWS), *_CLIENT))
"""The options of `s3://` and `s3a://`, in full.

`aws_` may be left out of a name, and letters may be large. `retry_timeout` is a number of seconds,
after which a failing request is given up (180), and `max_retries` a number of tries that may end it
before (none); other times are such as "30s". Without an option, the environment variable of its
name in large letters is taken.
"""

_SCHEMES = ("s3", "s3a")


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
    """Whether the URI is one of a bucket that pyhudi can reach."""
    return scheme_of(uri) in _SCHEMES


def check_storage_options(uri: str, options: Mapping[str, object] | None) -> StorageOptions:
    """The options by their full names, as text.

    Raises `ConfigError` for an unknown one, with the nearest known, and for one given twice. Those
    of a place that is not a bucket are left for the store to refuse.
    """
    given = options or {}
    if not is_remote(uri):
        return StorageOptions({name: str(value) for name, value in given.items()})
    checked = StorageOptions()
    for name, value in given.items():
        full = _full_name(name)
        if full in checked:
            raise ConfigError(f"the storage option {full!r} is given twice")
        checked[full] = str(value).lower() if isinstance(value, bool) else str(value)
    return checked


def _full_name(name: str) -> str:
    short = name.lower().removeprefix("aws_")
    short = _OTHER_NAMES.get(short, short)
    for full in (f"aws_{short}", short):
        if full in S3_OPTIONS:
            return full
    if short in ("bucket", "bucket_name"):
        raise ConfigError(
            f"the storage option {name!r} is not taken", hint="The table's URI names the bucket."
        )
    near = difflib.get_close_matches(f"aws_{short}", sorted(S3_OPTIONS), n=1)
    near = near or difflib.get_close_matches(short, sorted(S3_OPTIONS), n=1)
    raise ConfigError(
        f"the storage option {name!r} is not known",
        hint=f"Did you mean {near[0]}?" if near else "",
    )
