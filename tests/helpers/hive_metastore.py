"""A real Hive metastore on this machine: Hive 2.3 on Derby, with locks of short lives."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.java_server import JavaServer, free_port

TIMEOUT_S = 6
_MAIN = Path(__file__).with_name("HiveMetastore.java")


class HiveMetastore:
    """The metastore's process. `close` ends it, `start` begins another one on what it kept."""

    def __init__(self, folder: Path, timeout_s: int = TIMEOUT_S) -> None:
        """folder: a new one for what it keeps. timeout_s: after which a lock ends by itself."""
        self._folder = folder
        self.port = free_port()
        settings = {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/db;create=true",
            "hive.metastore.warehouse.dir": f"{folder}/warehouse",
            "hive.metastore.schema.verification": "false",
            "datanucleus.schema.autoCreateAll": "true",
            "hive.async.log.enabled": "false",
            # What ends the locks of the dead runs beside the compactor alone.
            "hive.txn.timeout": f"{timeout_s}s",
            "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
            "hive.support.concurrency": "true",
            "hive.compactor.initiator.on": "true",
            "hive.timedout.txn.reaper.start": "1s",
            "hive.timedout.txn.reaper.interval": "1s",
        }
        properties = "".join(
            f"<property><name>{name}</name><value>{value}</value></property>\n"
            for name, value in settings.items()
        )
        (folder / "hive-site.xml").write_text(f"<configuration>\n{properties}</configuration>\n")
        self.start()

    @property
    def uris(self) -> str:
        """What clients connect to."""
        return f"thrift://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Begins the process."""
        folders = (f"-Dhive.log.dir={self._folder}", f"-Dderby.system.home={self._folder}")
        self._server = JavaServer(
            self._folder, self.port, str(self._folder), *folders, str(_MAIN), "-p", str(self.port)
        )

    def close(self) -> None:
        """Kills the server, as a failure of its machine would."""
        self._server.close()
