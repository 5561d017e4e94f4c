"""PEM files of connections with TLS to a catalog or a lock."""

from __future__ import annotations

import ssl

from pyhudi.errors import ConfigError


def trusting_context(ca_file: str | None) -> ssl.SSLContext:
    """Return the context of connections that accept the certificates of some authorities.

    ca_file: PEM file of the authorities; None or "" for those of the system. Raises `ConfigError`
    for a file that cannot be used.
    """
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:
        raise file_error("ca_file", ca_file, error) from error


def file_error(setting: str, path: str | None, error: OSError) -> ConfigError:
    """Return the error about a setting whose file cannot be used."""
    reason = error.strerror if not isinstance(error, ssl.SSLError) else error.reason or error
    hint = "It has to be a readable file in PEM format; a key must not be encrypted."
    return ConfigError(f"{setting} {path!r} cannot be used: {reason}", hint=hint)
