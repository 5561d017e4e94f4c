"""HDFS on this machine, for the length of a test session; `make hdfs` fetches it.

Hadoop's own `MiniDFSCluster`: a real name node and a real data node, in one process.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from tests.helpers.server_process import ServerProcess

_HOME = Path(os.environ.get("PYHUDI_HDFS_HOME") or Path.home() / ".cache" / "pyhudi-hdfs")
_HERE = Path(__file__).parent
SUPERUSER = "hdfs"
"""Whom nothing is forbidden to."""


class HdfsServer:
    """The server's process. `close` ends it."""

    def __init__(self, folder: Path) -> None:
        """folder: a new one for what it keeps."""
        command = ("java", "-Xmx256m", "-cp", f"{_jars()}/*", str(_HERE / "MiniHdfs.java"))
        self._log = folder / "server.log"
        self._process = ServerProcess(
            (*command, str(folder / "data")), folder, {"HADOOP_USER_NAME": SUPERUSER}
        )
        self.url = self._process.url
        """`hdfs://host:port`."""

    def close(self) -> None:
        """Ends it."""
        self._process.close()

    def tell(self, command: str, *, wait: bool = True) -> None:
        """`mode 700 /folder`; `stop` and `start` of the name node. Returns when it is done."""
        done = self._log.read_text().count(f"did {command}")
        self._process.write(f"{command}\n")
        for _ in range(600 if wait else 0):
            if self._log.read_text().count(f"did {command}") > done:
                return
            time.sleep(0.05)
        if wait:
            raise RuntimeError(self._log.read_text())


def _jars() -> Path:
    digest = hashlib.sha256((_HERE / "pom.xml").read_bytes()).hexdigest()[:12]
    path = _HOME / f"jars-{digest}"
    if not path.is_dir():
        raise RuntimeError(f"{path} is missing: run `make hdfs`")
    return path
