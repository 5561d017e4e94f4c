"""Hudi's lock in a Hive metastore: an exclusive lock of a table, which need not exist there.

The metastore keeps the locks in its database, in the order in which they were asked for, and lets
go those that show no sign of life for `hive.txn.timeout`. Hudi asks and gives up what it does not
get at once; pyhudi stays in the queue. Kerberos and TLS are not spoken.
Source: `HiveMetastoreBasedLockProvider` (Hudi 0.15.0, 1.2.0).
"""

from __future__ import annotations

import getpass
import socket
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from pyhudi.clock import Clock
from pyhudi.errors import ConfigError, StorageError, overtaken
from pyhudi.txn.locks.extras import extra
from pyhudi.txn.locks.lock import pauses
from pyhudi.txn.locks.renewal import Renewal

_PORT = 9083
_ANSWER_MS = 30_000
_EXTRA = "hive"


class HiveMetastoreLock:
    """The lock of one name in a metastore."""

    def __init__(
        self, uris: str, database: str, table: str, clock: Clock, *, heartbeat_ms: int = 60_000
    ) -> None:
        """uris: `thrift://host:port` of the servers of one metastore, with commas between."""
        self._uris = uris
        self._servers = [_server(uri) for uri in uris.split(",")]
        self._database = database
        self._table = table
        self._clock = clock
        # As Hudi's first one comes: a server may let go after less than two whole intervals.
        self._renewal = Renewal(self._renew, max(heartbeat_ms // 2, 1), "pyhudi-hive-lock")
        self._one_call = threading.Lock()
        self._client: Any = None
        self._transport: Any = None
        self._lock_id = 0

    def acquire(self, patience_ms: int) -> bool:
        """Takes the lock. Raises `StorageError` where no server answers."""
        types = extra("pymetastore.hive_metastore.ttypes", _EXTRA)
        try:
            for _ in pauses(self._clock, patience_ms):
                if self._asked(types).state == types.LockState.ACQUIRED:
                    self._renewal.start()
                    return True
        except self._errors as error:
            self._give_back()
            raise StorageError(f"Hive metastore at {self._uris}: {_said(error)}") from error
        self._give_back()
        return False

    def _asked(self, types: Any) -> Any:
        """What the metastore says of the place in the queue, which is taken first."""
        if self._lock_id:
            request = types.CheckLockRequest(lockid=self._lock_id)
            return self._call("check_lock", request)
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
        answer = self._call("lock", request)
        self._lock_id = answer.lockid
        return answer

    def _call(self, name: str, request: Any) -> Any:
        """The answer, by another connection where the one that was there had gone."""
        lost = extra("thrift.transport.TTransport", _EXTRA).TTransportException
        with self._one_call:
            is_new = self._client is None
            try:
                return self._answer(name, request)
            except (lost, OSError):
                # A lock that was asked for twice would wait for itself.
                if is_new or name == "lock":
                    raise
            return self._answer(name, request)

    def _answer(self, name: str, request: Any) -> Any:
        thrift = extra("thrift.Thrift", _EXTRA)
        if self._client is None:
            self._connect()
        try:
            return getattr(self._client, name)(request)
        except (thrift.TException, OSError):
            # Not to take an answer that comes late for that of the next call.
            self._disconnect()
            raise

    def _connect(self) -> None:
        """To the first server that answers. Raises what the last one said."""
        transports = extra("thrift.transport.TTransport", _EXTRA)
        sockets = extra("thrift.transport.TSocket", _EXTRA)
        protocols = extra("thrift.protocol.TBinaryProtocol", _EXTRA)
        service = extra("pymetastore.hive_metastore.ThriftHiveMetastore", _EXTRA)
        for number, (host, port) in enumerate(self._servers, 1):
            to = sockets.TSocket(host, port)
            to.setTimeout(_ANSWER_MS)
            transport = transports.TBufferedTransport(to)
            try:
                transport.open()
            except transports.TTransportException:
                if number == len(self._servers):
                    raise
                continue
            self._transport = transport
            self._client = service.Client(protocols.TBinaryProtocol(transport))
            return

    def _renew(self) -> None:
        types = extra("pymetastore.hive_metastore.ttypes", _EXTRA)
        self._call("heartbeat", types.HeartbeatRequest(lockid=self._lock_id))

    def check(self) -> None:
        """Raises `CommitConflict` unless the metastore says that the lock is there still."""
        told = ""
        if self._lock_id:
            try:
                self._renew()
            except self._errors as error:
                told = f": {_said(error)}"
            else:
                return
        raise overtaken(f"the table's lock {self._name} in the Hive metastore was lost{told}")

    def release(self) -> None:
        """Gives the lock back; one that the server cannot be told of ends by itself."""
        self._renewal.stop()
        self._give_back()

    def _give_back(self) -> None:
        types = extra("pymetastore.hive_metastore.ttypes", _EXTRA)
        if self._lock_id:
            # Raises for a lock that was lost, too.
            with suppress(*self._errors):
                self._call("unlock", types.UnlockRequest(lockid=self._lock_id))
        self._lock_id = 0
        self._disconnect()

    def _disconnect(self) -> None:
        transport, self._transport, self._client = self._transport, None, None
        if transport is not None:
            transport.close()

    @property
    def _errors(self) -> tuple[type[Exception], ...]:
        return (extra("thrift.Thrift", _EXTRA).TException, OSError)

    @property
    def _name(self) -> str:
        return f"{self._database}.{self._table}"

    def holder(self) -> str:
        """The name of the lock."""
        return f"a holder of {self._name} in the Hive metastore at {self._uris}"


def _server(uri: str) -> tuple[str, int]:
    text = uri.strip()
    parts = urlsplit(text if "://" in text else f"thrift://{text}")
    if parts.scheme != "thrift" or not parts.hostname:
        msg = f"hoodie.write.lock.hivemetastore.uris: {text!r} is no thrift://host:port"
        raise ConfigError(msg)
    return parts.hostname, parts.port or _PORT


def _user() -> str:
    """As Hudi, the user of the operating system."""
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return "pyhudi"


def _said(error: Exception) -> str:
    return f"{type(error).__name__} {getattr(error, 'message', None) or error}"
