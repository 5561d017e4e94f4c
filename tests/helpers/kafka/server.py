"""A Kafka broker on this machine, in a process of its own; `make kafka` fetches it."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import time
from pathlib import Path

from tests.helpers.java_server import free_port

_HOME = Path(os.environ.get("PYHUDI_KAFKA_HOME") or Path.home() / ".cache" / "pyhudi-kafka")
_HERE = Path(__file__).parent
_CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"


class KafkaServer:
    """One broker, which is its own controller. `close` ends it."""

    def __init__(self, folder: Path) -> None:
        """folder: a new one for what it keeps."""
        port, controller = free_port(), free_port()
        self.address = f"127.0.0.1:{port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": f"{folder}/logs",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }
        properties = folder / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        java = ("java", "-Xmx256m", "-cp", f"{_jars()}/*")
        tool = (*java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(properties))
        subprocess.run(tool, check=True, capture_output=True, cwd=folder)
        self._log = (folder / "server.log").open("wb")
        self._process = subprocess.Popen(
            (*java, "kafka.Kafka", str(properties)),
            cwd=folder,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._wait(port)

    def _wait(self, port: int) -> None:
        for _ in range(600):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    return
            if self._process.poll() is not None:
                break
            time.sleep(0.1)
        self.close()
        raise RuntimeError(Path(self._log.name).read_text())

    def close(self) -> None:
        """Ends it."""
        self._process.kill()
        self._process.wait()
        self._log.close()


def _jars() -> Path:
    digest = hashlib.sha256((_HERE / "pom.xml").read_bytes()).hexdigest()[:12]
    path = _HOME / f"jars-{digest}"
    if not path.is_dir():
        raise RuntimeError(f"{path} is missing: run `make kafka`")
    return path
