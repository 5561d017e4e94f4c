"""A real Hive metastore on this machine: Hive 2.3 on Derby, with locks of short lives."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.java_server import JavaServer, free_port, pyspark_jars

TIMEOUT_S = 6
_MAIN = Path(__file__).with_name("HiveMetastore.java")


_PASSWORD = "metastore"


def new_keystore(folder: Path, name: str, san: str) -> tuple[Path, Path]:
    """Make a keystore with a certificate that signs itself; return it, and the certificate as PEM.

    san: the names of the certificate, such as `ip:127.0.0.1`.
    """
    keystore, certificate = folder / f"{name}.jks", folder / f"{name}.pem"
    common = ["-alias", name, "-keystore", str(keystore), "-storepass", _PASSWORD]
    key = ["-keyalg", "RSA", "-validity", "30", "-dname", f"CN={name}", "-ext", f"san={san}"]
    for command in (
        ["-genkeypair", *key, "-keypass", _PASSWORD, *common],
        ["-exportcert", "-rfc", "-file", str(certificate), *common],
    ):
        subprocess.run(["keytool", *command], check=True, capture_output=True)
    return keystore, certificate


@dataclass(frozen=True)
class ServerKerberos:
    """The identity of a metastore, and how it protects its connections."""

    krb5_conf: Path
    principal: str
    keytab: Path
    protection: str
    """`authentication`, `integrity` or `privacy`; several with commas."""


class HiveMetastore:
    """The metastore's process. `close` ends it, `start` begins another one on what it kept."""

    def __init__(
        self,
        folder: Path,
        timeout_s: int = TIMEOUT_S,
        keystore: Path | None = None,
        kerberos: ServerKerberos | None = None,
    ) -> None:
        """folder: a new one for what it keeps. timeout_s: after which a lock ends by itself.

        keystore: of `new_keystore`, for connections with TLS only.
        kerberos: for connections with Kerberos only.
        """
        self._folder = folder
        self._kerberos = kerberos
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
        if keystore is not None:
            settings |= {
                "hive.metastore.use.SSL": "true",
                "hive.metastore.keystore.path": str(keystore),
                "hive.metastore.keystore.password": _PASSWORD,
            }
        if kerberos is not None:
            settings |= {
                "hive.metastore.sasl.enabled": "true",
                "hive.metastore.kerberos.principal": kerberos.principal,
                "hive.metastore.kerberos.keytab.file": str(kerberos.keytab),
            }
            hadoop = {
                "hadoop.security.authentication": "kerberos",
                "hadoop.rpc.protection": kerberos.protection,
            }
            _write_settings(folder / "core-site.xml", hadoop)
        _write_settings(folder / "hive-site.xml", settings)
        self.start()

    @property
    def uris(self) -> str:
        """What clients connect to."""
        return f"thrift://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Begins the process."""
        options = [f"-Dhive.log.dir={self._folder}", f"-Dderby.system.home={self._folder}"]
        if self._kerberos is not None:
            options.append(f"-Djava.security.krb5.conf={self._kerberos.krb5_conf}")
        self._server = JavaServer(
            self._folder,
            self.port,
            f"{self._folder}:{pyspark_jars()}",
            *options,
            str(_MAIN),
            "-p",
            str(self.port),
        )

    def close(self) -> None:
        """Kills the server, as a failure of its machine would."""
        self._server.close()


def _write_settings(file: Path, settings: Mapping[str, str]) -> None:
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>\n"
        for name, value in settings.items()
    )
    file.write_text(f"<configuration>\n{properties}</configuration>\n")
