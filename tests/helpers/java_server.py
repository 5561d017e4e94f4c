"""A server in a JVM on this machine."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

from tests.helpers.oracle.client import oracle_home


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def pyspark_jars() -> str:
    """The class path of the jars that come with the oracle's PySpark."""
    (jars,) = (oracle_home() / "venv").glob("lib/python*/site-packages/pyspark/jars")
    return f"{jars}/*"


class JavaServer:
    """The server's process, from its answering on the port to `close`."""

    def __init__(
        self, folder: Path, port: int, classes: str, *command: str, java: str = "java"
    ) -> None:
        """folder: of its log. classes: the class path. java: the program."""
        self._port = port
        self._log = (folder / "server.log").open("ab")
        self._process = subprocess.Popen(
            [java, "-Xmx256m", "-cp", classes, *command],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
        self._wait()

    def _wait(self) -> None:
        for _ in range(600):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            if self._process.poll() is not None:
                break
            time.sleep(0.2)
        self.close()
        raise RuntimeError(Path(self._log.name).read_text())

    def close(self) -> None:
        """Kills the server, as a failure of its machine would."""
        self._process.kill()
        self._process.wait()
        self._log.close()
