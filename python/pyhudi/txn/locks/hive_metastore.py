"""Hudi's lock in a Hive metastore: an exclusive lock of a table, which need not exist there.

The metastore keeps the locks in its database, in the order in which they were asked for, and lets
go those that show no sign of life for `hive.txn.timeout`. Hudi asks and gives up what it does not
get at once; pyhudi stays in the queue. Kerberos and TLS are not spoken.
Source: `HiveMetastoreBasedLockProvider` (Hudi 0.15.0, 1.2.0).
"""

from __future__ import annotations

import getpass
import socket
from contextlib import suppress
from typing import Any

from pyhudi.clock import Clock
from pyhudi.errors import StorageError, retryable_conflict
from pyhudi.storage.credentials import mask_credentials
from pyhudi.txn.locks.base import pauses
from pyhudi.txn.locks.hive_client import HiveClient, hive_types, said
from pyhudi.txn.locks.lease_renewal import Renewal


class HiveMetastoreLock:
    """The lock of one name in a metastore."""

    def __init__(
        self, uris: str, database: str, table: str, clock: Clock, *, heartbeat_ms: int = 60_000
    ) -> None:
        """uris: `thrift://host:port` of the servers of one metastore, with commas between."""
        self._uris = mask_credentials(uris)
        self._database = database
        self._table = table
        self._clock = clock
        # As Hudi's first one comes: a server may let go after less than two whole intervals.
        self._lasts_ms = max(heartbeat_ms // 2, 1)
        self._renewal = Renewal(self._renew, self._lasts_ms, "pyhudi-hive-lock")
        self._client = HiveClient(uris, "hoodie.write.lock.hivemetastore.uris")
        self._lock_id = 0

    def acquire(self, timeout_ms: int) -> bool:
        """Takes the lock. Raises `StorageError` where no server answers."""
        types = hive_types()
        taken = False
        try:
            for _ in pauses(self._clock, timeout_ms):
                taken = self._request_lock(types).state == types.LockState.ACQUIRED
                if taken:
                    break
        except self._client.errors as error:
            raise StorageError(f"Hive metastore at {self._uris}: {said(error)}") from error
        finally:
            # A place in the queue of one that was interrupted would keep all behind it waiting.
            if not taken:
                self._give_back()
        if taken:
            self._renewal.start()
        return taken

    def _request_lock(self, types: Any) -> Any:
        """What the metastore says of the place in the queue, which is taken first."""
        if self._lock_id:
            request = types.CheckLockRequest(lockid=self._lock_id)
            return self._client.call("check_lock", request)
        component = types.LockComponent(
            type=types.LockType.EXCLUSIVE,
            level=types.LockLevel.TABLE,
            dbname=self._database,
            tablename=self._table,
            operationType=types.DataOperationType.NO_TXN,
        )
        request = types.LockRequest(
            component=[component],
            user=_user(),
            hostname=socket.gethostname(),
            agentInfo="pyhudi",
        )
        # A lock that was asked for twice would wait for itself.
        answer = self._client.call("lock", request, again=False)
        self._lock_id = answer.lockid
        return answer

    def _renew(self) -> None:
        types = hive_types()
        self._client.call("heartbeat", types.HeartbeatRequest(lockid=self._lock_id))

    @property
    def lasts_ms(self) -> int | None:
        """A server waits for an interval at least, of which half may be over."""
        return self._lasts_ms

    def check(self, within_ms: int = 0) -> None:  # noqa: ARG002
        """Raises `CommitConflict` unless the metastore says that the lock is there still."""
        told = ""
        if self._lock_id:
            try:
                self._renew()
            except self._client.errors as error:
                told = f": {said(error)}"
            else:
                return
        raise retryable_conflict(
            f"the table's lock {self._name} in the Hive metastore was lost{told}"
        )

    def release(self) -> None:
        """Gives the lock back; one that the server cannot be told of ends by itself."""
        self._renewal.stop()
        self._give_back()

    def _give_back(self) -> None:
        types = hive_types()
        if self._lock_id:
            # Raises for a lock that was lost, too.
            with suppress(*self._client.errors):
                self._client.call("unlock", types.UnlockRequest(lockid=self._lock_id))
        self._lock_id = 0
        self._client.disconnect()

    @property
    def _name(self) -> str:
        return f"{self._database}.{self._table}"

    def holder(self) -> str:
        """The name of the lock."""
        return f"a holder of {self._name} in the Hive metastore at {self._uris}"


def _user() -> str:
    """As Hudi, the user of the operating system."""
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return "pyhudi"
