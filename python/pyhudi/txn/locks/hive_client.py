"""A Thrift connection to a Hive metastore, for the lock and the catalog. No Kerberos, no TLS."""

from __future__ import annotations

import getpass
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from pyhudi.errors import ConfigError
from pyhudi.storage.options import mask_credentials
from pyhudi.txn.locks.optional_imports import extra

_PORT = 9083
_TIMEOUT_MS = 30_000
_EXTRA = "hive"


def hive_types() -> Any:
    """Return the Thrift types of metastore requests. Raises `ConfigError` without the extra."""
    return extra("pymetastore.hive_metastore.ttypes", _EXTRA)


def user_name() -> str:
    """Return the user of the operating system, as Hudi does."""
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return "pyhudi"


class HiveClient:
    """One connection, opened on first use. Threads may share it."""

    def __init__(self, uris: str, named_by: str = "uris") -> None:
        """uris: `thrift://host:port` of the servers of one metastore, separated by commas.

        named_by: the option or argument that contains them, for the error about an invalid one.
        """
        self._client: Any = None
        self._transport: Any = None
        self._call_lock = threading.Lock()
        self._servers = [_server(uri, named_by) for uri in uris.split(",")]

    def __del__(self) -> None:
        # No caller closes the catalog of a table that is opened by name.
        self.disconnect()

    def call(self, name: str, *arguments: Any, retry: bool = True) -> Any:
        """Return the response, from a new connection if the previous one was closed.

        retry: whether to send a call again whose response was lost.
        """
        lost = extra("thrift.transport.TTransport", _EXTRA).TTransportException
        with self._call_lock:
            is_new = self._client is None
            try:
                return self._send(name, arguments)
            except (lost, OSError):
                if is_new or not retry:
                    raise
            return self._send(name, arguments)

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors that a call raises."""
        return (extra("thrift.Thrift", _EXTRA).TException, OSError)

    def disconnect(self) -> None:
        """Close the connection; the next call opens another."""
        transport, self._transport, self._client = self._transport, None, None
        if transport is not None:
            transport.close()

    def _send(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if self._client is None:
            self._connect()
        try:
            return getattr(self._client, name)(*arguments)
        except BaseException:
            # So that the next call does not read the late response of this one.
            self.disconnect()
            raise

    def _connect(self) -> None:
        """Connect to the first server that responds. Raises the error of the last one."""
        transports = extra("thrift.transport.TTransport", _EXTRA)
        sockets = extra("thrift.transport.TSocket", _EXTRA)
        protocols = extra("thrift.protocol.TBinaryProtocol", _EXTRA)
        service = extra("pymetastore.hive_metastore.ThriftHiveMetastore", _EXTRA)
        for number, (host, port) in enumerate(self._servers, 1):
            to = sockets.TSocket(host, port)
            to.setTimeout(_TIMEOUT_MS)
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


def error_message(error: Exception) -> str:
    """Return the message of a metastore's error."""
    return f"{type(error).__name__} {getattr(error, 'message', None) or error}"


def _server(uri: str, named_by: str) -> tuple[str, int]:
    server = uri.strip()
    parts = urlsplit(server if "://" in server else f"thrift://{server}")
    if parts.scheme != "thrift" or not parts.hostname:
        msg = f"{named_by}: {mask_credentials(server)!r} is not of the form thrift://host:port"
        raise ConfigError(msg)
    return parts.hostname, parts.port or _PORT
