"""A real ZooKeeper server on this machine, from the jars that come with the oracle's PySpark."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

from tests.helpers.oracle.client import oracle_home

_MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"


class ZooKeeperServer:
    """The server's process. `close` ends it."""

    def __init__(self, folder: Path) -> None:
        """folder: a new one for what it keeps."""
        (jars,) = (oracle_home() / "venv").glob("lib/python*/site-packages/pyspark/jars")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (folder / "data").mkdir()
        settings = folder / "zoo.cfg"
        settings.write_text(
            f"dataDir={folder / 'data'}\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
            "tickTime=500\nadmin.enableServer=false\n"
        )
        self._log = (folder / "server.log").open("wb")
        self._process = subprocess.Popen(
            ["java", "-Xmx128m", "-cp", f"{jars}/*", _MAIN, str(settings)],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._wait()

    @property
    def hosts(self) -> str:
        """What clients connect to."""
        return f"127.0.0.1:{self.port}"

    def _wait(self) -> None:
        for _ in range(300):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", self.port)) == 0:
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
