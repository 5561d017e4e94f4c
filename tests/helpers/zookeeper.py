"""A real ZooKeeper server on this machine."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.java_server import JavaServer, free_port, pyspark_jars

_MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"


class ZooKeeperServer:
    """The server's process. `close` ends it."""

    def __init__(self, folder: Path) -> None:
        """folder: a new one for what it keeps."""
        self.port = free_port()
        (folder / "data").mkdir()
        settings = folder / "zoo.cfg"
        settings.write_text(
            f"dataDir={folder / 'data'}\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
            "tickTime=500\nadmin.enableServer=false\n"
        )
        self._server = JavaServer(
            folder, self.port, f"{folder}:{pyspark_jars()}", _MAIN, str(settings)
        )

    @property
    def hosts(self) -> str:
        """What clients connect to."""
        return f"127.0.0.1:{self.port}"

    def close(self) -> None:
        """Kills the server, as a failure of its machine would."""
        self._server.close()
