"""A real PostgreSQL of this machine, for the length of a test."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.helpers.java_server import free_port


def programs() -> Path | None:
    """Where `initdb` and `postgres` are: on the path, or where Debian puts them."""
    named = shutil.which("initdb")
    if named:
        return Path(named).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return folders[-1] if folders else None


def is_available() -> bool:
    """Whether there are a server and its client."""
    return programs() is not None and find_spec("psycopg") is not None


@contextmanager
def server() -> Iterator[str]:
    """Starts a server with a database of its own; yields its URL."""
    folder = programs()
    assert folder is not None
    base = Path(tempfile.mkdtemp(prefix="pyhudi-postgres-"))
    data = base / "data"
    # PostgreSQL does not run as root.
    user: dict[str, Any] = {"user": "nobody"} if os.geteuid() == 0 else {}
    try:
        if user:
            shutil.chown(base, "nobody")
        common: dict[str, Any] = {"cwd": base, **user}
        init: list[str | Path] = [
            folder / "initdb",
            "-D",
            data,
            "-U",
            "reader",
            "-A",
            "trust",
            "-N",
        ]
        subprocess.run(init, check=True, capture_output=True, **common)
        port = free_port()
        settings = ("fsync=off", f"unix_socket_directories={base}", "TimeZone=Asia/Tokyo")
        options = [word for setting in settings for word in ("-c", setting)]
        command: list[str | Path] = [folder / "postgres", "-D", data, "-p", str(port), *options]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, **common) as process:
            try:
                url = f"postgresql://reader@127.0.0.1:{port}/postgres"
                _wait(url)
                yield url
            finally:
                process.terminate()
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _wait(url: str) -> None:
    for _ in range(300):
        if _is_up(url):
            return
        time.sleep(0.1)
    raise RuntimeError("PostgreSQL did not start")


def _is_up(url: str) -> bool:
    import psycopg

    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True
