"""A Kafka broker on this machine, in a process of its own; `make kafka` fetches it."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from tests.helpers.java_server import JavaServer, free_port

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
        classes = f"{_jars()}/*"
        tool = ["java", "-cp", classes, "kafka.tools.StorageTool", "format", "-t", _CLUSTER]
        tool += ["-c", str(properties)]
        subprocess.run(tool, check=True, capture_output=True, cwd=folder)
        self._server = JavaServer(folder, port, classes, "kafka.Kafka", str(properties))

    def close(self) -> None:
        """Ends it."""
        self._server.close()


def _jars() -> Path:
    digest = hashlib.sha256((_HERE / "pom.xml").read_bytes()).hexdigest()[:12]
    path = _HOME / f"jars-{digest}"
    if not path.is_dir():
        raise RuntimeError(f"{path} is missing: run `make kafka`")
    return path
