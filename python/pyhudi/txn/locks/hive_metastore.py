"""Hudi's lock in a Hive metastore: an exclusive lock of a table, which need not exist there.

The metastore stores the locks in its database, in the order of the requests, and drops those
without a heartbeat for `hive.txn.timeout`. Hudi cancels a request that is not granted immediately;
pyhudi stays in the queue.
Source: `HiveMetastoreBasedLockProvider` (Hudi 0.15.0, 1.2.0).
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any

from pyhudi.clock import Clock
from pyhudi.config.metastore_options import MetastoreOptions
from pyhudi.errors import retryable_conflict
from pyhudi.storage.options import mask_credentials
from pyhudi.txn.locks.base import attempts
from pyhudi.txn.locks.hive_client import HiveClient, error_message, hive_types, user_name
from pyhudi.txn.renewal import Renewal


class HiveMetastoreLock:
    """The lock of one name in a metastore."""

    def __init__(
        self,
        uris: str,
        database: str,
        table: str,
        clock: Clock,
        *,
        heartbeat_ms: int = 60_000,
        options: MetastoreOptions = MetastoreOptions(),  # noqa: B008 - frozen
    ) -> None:
        """uris: `thrift://host:port` of the servers of one metastore, separated by commas."""
        self._uris = mask_credentials(uris)
        self._database = database
        self._table = table
        self._clock = clock
        # As Hudi's first heartbeat: a server may drop the lock after less than two full intervals.
        self._interval_ms = max(heartbeat_ms // 2, 1)
        self._renewal = Renewal(self._renew, self._interval_ms, "pyhudi-hive-lock")
        self._client = HiveClient(uris, "hoodie.write.lock.hivemetastore.uris", options)
        self._lock_id = 0

    def acquire(self, timeout_ms: int) -> bool:
        """Acquire the lock. Raises `StorageError` if no server responds."""
        types = hive_types()
        is_acquired = False
        try:
            for _ in attempts(self._clock, timeout_ms):
                is_acquired = self._request_lock(types).state == types.LockState.ACQUIRED
                if is_acquired:
                    break
        except self._client.errors as error:
            raise self._client.storage_error(error) from error
        finally:
            # The queue entry of an interrupted writer would block all later ones.
            if not is_acquired:
                self._release()
        if is_acquired:
            self._renewal.start()
        return is_acquired

    def _request_lock(self, types: Any) -> Any:
        """Return the metastore's state of the queue entry, which is created first."""
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
            user=user_name(),
            hostname=socket.gethostname(),
            agentInfo="pyhudi",
        )
        # A lock that was requested twice would wait for itself.
        response = self._client.call("lock", request, retry=False)
        self._lock_id = response.lockid
        return response

    def _renew(self) -> None:
        types = hive_types()
        self._client.call("heartbeat", types.HeartbeatRequest(lockid=self._lock_id))

    @property
    def min_lease_ms(self) -> int | None:
        """A server waits for at least one interval, half of which may be over."""
        return self._interval_ms

    def check(self, within_ms: int = 0) -> None:  # noqa: ARG002
        """Raise `CommitConflict` unless the metastore confirms that the lock is still held."""
        cause = ""
        if self._lock_id:
            try:
                self._renew()
            except self._client.errors as error:
                cause = f": {error_message(error)}"
            else:
                return
        raise retryable_conflict(
            f"the table's lock {self._name} in the Hive metastore was lost{cause}"
        )

    def release(self) -> None:
        """Release the lock; if no server can be reached, the lock expires by itself."""
        self._renewal.stop()
        self._release()

    def _release(self) -> None:
        types = hive_types()
        if self._lock_id:
            # Raises for a lost lock, too.
            with suppress(*self._client.errors):
                self._client.call("unlock", types.UnlockRequest(lockid=self._lock_id))
        self._lock_id = 0
        self._client.disconnect()

    @property
    def _name(self) -> str:
        return f"{self._database}.{self._table}"

    def holder(self) -> str:
        """Return the name of the lock."""
        return f"a holder of {self._name} in the Hive metastore at {self._uris}"

    def read_holder(self) -> str | None:
        """Return user and machine of the granted lock, None if the lock is free."""
        types = hive_types()
        request = types.ShowLocksRequest(dbname=self._database, tablename=self._table)
        try:
            locks = self._client.call("show_locks", request).locks or ()
        except self._client.errors as error:
            raise self._client.storage_error(error) from error
        granted = (lock for lock in locks if lock.state == types.LockState.ACQUIRED)
        lock = next(granted, None)
        return None if lock is None else ascii(f"{lock.user}@{lock.hostname}")[1:-1]
