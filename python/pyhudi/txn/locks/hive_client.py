"""A connection to a Hive metastore by Thrift, for the lock and the catalog. No Kerberos, no TLS."""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import urlsplit

from pyhudi.errors import ConfigError
from pyhudi.storage.credentials import mask_credentials
from pyhudi.txn.locks.optional_imports import extra

_PORT = 9083
_ANSWER_MS = 30_000
_EXTRA = "hive"


def hive_types() -> Any:
    """The types of what a metastore is asked. Raises `ConfigError` without the extra."""
    return extra("pymetastore.hive_metastore.ttypes", _EXTRA)


class HiveClient:
    """One connection, made when it is needed. Threads may share it."""

    def __init__(self, uris: str, named_by: str = "uris") -> None:
        """uris: `thrift://host:port` of the servers of one metastore, with commas between.

        named_by: the option or argument that gave them, for the error where one is none.
        """
        self._servers = [_server(uri, named_by) for uri in uris.split(",")]
        self._one_call = threading.Lock()
        self._client: Any = None
        self._transport: Any = None

    def call(self, name: str, *arguments: Any, again: bool = True) -> Any:
        """The answer, by another connection where the one that was there had gone.

        again: whether a call whose answer was lost may be made again.
        """
        lost = extra("thrift.transport.TTransport", _EXTRA).TTransportException
        with self._one_call:
            is_new = self._client is None
            try:
                return self._answer(name, arguments)
            except (lost, OSError):
                if is_new or not again:
                    raise
            return self._answer(name, arguments)

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What a call raises."""
        return (extra("thrift.Thrift", _EXTRA).TException, OSError)

    def disconnect(self) -> None:
        """Ends the connection; the next call makes another."""
        transport, self._transport, self._client = self._transport, None, None
        if transport is not None:
            transport.close()

    def _answer(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if self._client is None:
            self._connect()
        try:
            return getattr(self._client, name)(*arguments)
        except BaseException:
            # Not to take an answer that comes late for that of the next call.
            self.disconnect()
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


def said(error: Exception) -> str:
    """What a metastore's error says."""
    return f"{type(error).__name__} {getattr(error, 'message', None) or error}"


def _server(uri: str, named_by: str) -> tuple[str, int]:
    text = uri.strip()
    parts = urlsplit(text if "://" in text else f"thrift://{text}")
    if parts.scheme != "thrift" or not parts.hostname:
        msg = f"{named_by}: {mask_credentials(text)!r} is no thrift://host:port"
        raise ConfigError(msg)
    return parts.hostname, parts.port or _PORT
