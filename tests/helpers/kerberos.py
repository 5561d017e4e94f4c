"""A Kerberos realm on this machine: MIT's KDC, which k5test starts."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from k5test import K5Realm

from tests.helpers.hive_metastore import ServerKerberos
from tests.helpers.java_server import free_port

REALM = "LAKE.TEST"
USER = "ana"
SERVICE = f"hive/localhost@{REALM}"
OTHER_SERVICE = f"impala/localhost@{REALM}"
"""A service of the realm that no server is."""


class Realm:
    """The KDC with a user and two services, and the tickets of the user. `close` ends it."""

    def __init__(self) -> None:
        self._realm = K5Realm(
            realm=REALM, portbase=free_port(), create_user=False, create_host=False
        )
        self._realm.addprinc(USER, self._realm.password(USER))
        self._realm.addprinc(SERVICE)
        self._realm.addprinc(OTHER_SERVICE)
        self._realm.extract_keytab(SERVICE, self._realm.keytab)

    @property
    def variables(self) -> dict[str, str]:
        """The variables of the user's environment; their keytab does not exist yet."""
        return {name: value for name, value in self._realm.env.items() if name.startswith("KRB5")}

    def server(self, protection: str) -> ServerKerberos:
        """What a metastore needs to be `SERVICE`."""
        krb5_conf, keytab = Path(self._realm.env["KRB5_CONFIG"]), Path(self._realm.keytab)
        return ServerKerberos(krb5_conf, SERVICE, keytab, protection)

    def get_ticket(self, seconds: int = 3600) -> None:
        """Get a ticket with the user's password."""
        flags = ["-l", f"{seconds}s"]
        self._realm.kinit(USER, self._realm.password(USER), flags=flags)

    def wait_until_expired(self) -> None:
        """Wait until the user's ticket is not valid."""
        while subprocess.run(["klist", "-s"], env=self._realm.env, check=False).returncode == 0:
            time.sleep(0.2)
        # klist does not count the last second of a ticket, the library does.
        time.sleep(1.1)

    def remove_tickets(self) -> None:
        """Remove the tickets, and the keytab."""
        for file in (self._realm.ccache, self._realm.client_keytab):
            Path(file).unlink(missing_ok=True)

    def write_keytab(self) -> None:
        """Give the user a keytab."""
        self._realm.extract_keytab(USER, self._realm.client_keytab)

    def stop_kdc(self) -> None:
        """End the KDC's process."""
        self._realm.stop_kdc()

    def start_kdc(self) -> None:
        """Start the KDC again."""
        self._realm.start_kdc()

    def close(self) -> None:
        """End the process, and remove its files."""
        self._realm.stop()
