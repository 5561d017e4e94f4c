"""Opens a connection to the database of a URL."""

from __future__ import annotations

from importlib import import_module
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from pyhudi.errors import ConfigError

_DRIVERS = {"postgresql": "psycopg", "postgres": "psycopg", "mysql": "pymysql"}
_EXTRAS = {"psycopg": "postgres", "pymysql": "mysql"}


def connect(url: str) -> Any:
    """Return a DB-API connection to the database of a URL.

    Raises `ConfigError` for another scheme, and if the driver is not installed.
    """
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        import sqlite3  # noqa: PLC0415 - few sources need it

        return sqlite3.connect(f"file:{parts.path.removeprefix('/')}?mode=ro", uri=True)
    if parts.scheme not in _DRIVERS:
        raise ConfigError(
            f"a database URL begins with {parts.scheme or 'no scheme'!r}",
            hint="Pass postgresql://, mysql:// or sqlite:///; in Python, a function that opens a "
            "connection of any driver.",
        )
    module = _DRIVERS[parts.scheme]
    try:
        driver = import_module(module)
    except ImportError as error:
        hint = f"Run: pip install 'pyhudi[{_EXTRAS[module]}]'"
        raise ConfigError(f"{parts.scheme}:// needs {module}", hint=hint) from error
    return driver.connect(url) if module == "psycopg" else driver.connect(**_arguments(parts))


def _arguments(parts: SplitResult) -> dict[str, Any]:
    return {
        "host": parts.hostname or "localhost",
        "port": parts.port or 3306,
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "database": unquote(parts.path.lstrip("/")),
    }
